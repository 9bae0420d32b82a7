"""A model of the team of threads whose interleavings are all tried: the shipped LLVM IR, interpreted.

`code.py` reads the functions of a program and of `team.c` as they are linked, so what is checked is what is compiled,
and an instruction or an ordering that the model does not know is an error. `execution.py` runs them on several threads
under the C11 memory model: a thread is a view, the oldest message of each location that it may still read.
`search.py` visits every state that these threads can reach.

    pool      hands out the runs of the team's task to its threads, each when it likes: a thread that sleeps is one that
              starts late, one that is busy elsewhere never starts, and one thread may make several runs in turn
    program   jobs of a few tasks each, written as LLVM IR too
    checked   each task of each job runs once, with the arguments of its job, while the leader waits for that job; it
              sees what the jobs before wrote, and the leader what all tasks wrote; nobody touches the team after the
              pool has returned; from every state, an end can be reached

Orderings weaker than the code's, and steps in another order, are faults that the tests plant in the C source.

The memory model is RC11 without its cycles of relaxed loads and stores (load buffering), which no such step of the
protocol could close: a value that is stored never comes from a relaxed load of another thread's store. A store goes
to the end of its location's order. That is exact here, because each location but `ticket` and `finished` is stored by
one thread only, and behind an atomic addition nothing can be put between it and its predecessor.
"""
