"""Measured compiles (`igniter compile --measure`): regions slower than ONNX Runtime's nodes here stay with it.

    request    the options of a measurement
    digests    the keys of outcomes in the cache
    formed     the regions of a model, as formed and as compiled
    machine    this machine, and the requirement that the target runs on it
    regions    each distinct region beside its nodes: outputs compared, then times
    candidates the sets of nodes worth leaving to ONNX Runtime, by these times
    trials     the model compiled without a kernel for a set, beside the best so far; the whole model decides
    measure    all of it, or its outcome from the cache
    outcome    the figures and decisions, for reports

The outcome is a set of node names with reasons, `CompileOptions.left`. The compile after it is an ordinary one.
"""
