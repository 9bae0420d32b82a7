"""The comparison of a compiled model with ONNX Runtime on the original: see `docs/explanation/verification.md`.

    inputs.py       values of inputs, by the kind of each input
    roles.py        the roles of symbolic dims
    sizes.py        the search for sizes that run in the original
    given.py        inputs from files
    original.py     the original model: its sessions, its noise, its internal values
    judgement.py    the comparison of two arrays, by tolerance and noise
    decisions.py    integers and booleans from roundings
    report.py       the results of a verification
    regions.py      the values at the borders of regions

`igniter.verification.verify` combines them.
"""
