"""The parts of the comparison of a compiled model with ONNX Runtime on the original: see `docs/verification.md`.

    inputs.py       values of inputs, by the kind of each input
    roles.py        the roles of symbolic dims
    sizes.py        sizes at which the original runs
    given.py        inputs from files
    original.py     the original model: its sessions, its noise, its internal values
    judgement.py    the comparison of two arrays, by tolerance and noise
    decisions.py    integers and booleans that result from a rounding
    report.py       the results of a verification
    regions.py      every value that crosses a region

`igniter.runtime.verify` combines them.
"""
