"""An interpreter for modules of MLIR's own dialects, and random inputs for their functions.

It executes the generic form of a module, one op at a time, with the semantics that MLIR documents, and calls no pass of
MLIR. So it is the reference for the check of an external pass (`external_passes.py`), even if the pass is a folder or a
lowering. `machine.py` runs regions; each `*_rules.py` has the ops of a few dialects; `inputs.py` draws arguments.
"""
