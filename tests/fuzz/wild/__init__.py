"""A second generator of random graphs, of another make than `tests.fuzz.generator`.

That one keeps to what is valid for every size of its symbols. This one takes any node that ONNX Runtime runs on the
values at hand, gives the inputs' dims names afterwards, and runs the model at sizes that it never promised: there
ONNX Runtime may refuse, and Igniter then has to refuse as well, and nothing else.

    python -m tests.fuzz.wild --seed 0 --count 1000
"""
