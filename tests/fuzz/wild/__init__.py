"""A second generator of random graphs, of another make than `tests.fuzz.generator`.

That one keeps to what is valid for every size of its symbols. This one takes any node that ONNX Runtime runs on the
values at hand, gives the inputs' dims names afterwards, and runs the model at sizes that it never promised: there
ONNX Runtime may refuse, and Igniter then has to refuse as well, and nothing else.

    python -m tests.fuzz.wild --seed 0 --count 1000
    python -m tests.fuzz.wild --seed 17 --shrink

The nodes are of all ops that have a lowering, of quantised ones and of control flow, in every type that ONNX Runtime
has a kernel for (`nodes*.py`); an eighth of the models starts from a node of ONNX's own test cases (`catalogue.py`).
The seed decides everything: which fusion and CPU, whether kernels are sanitized (every tenth), and whether LLVM
optimises the code (every fourth): most of the time of a small model would go there (`quick.py`). A core runs two to
five models a second.

`ort` counts what is ONNX Runtime's own doing: it crashes by itself, disagrees with itself once it has rewritten the
graph or with ONNX's own evaluator, or makes something of what is no valid run.
"""
