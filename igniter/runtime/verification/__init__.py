"""Whether a compiled model computes what ONNX Runtime computes on the original: see `docs/verification.md`.

    inputs.py       values for inputs, of the kind that each input is
    roles.py        what a symbolic dim stands for
    sizes.py        sizes at which the original runs
    given.py        inputs from files
    original.py     the original model: its sessions, its noise, its values cut out
    judgement.py    two arrays, the tolerance and the noise
    decisions.py    integers and booleans that come out of a rounding
    report.py       what a verification says
    regions.py      every value that crosses a region

`igniter.runtime.verify` puts them together.
"""
