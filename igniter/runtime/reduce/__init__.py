"""`igniter reduce`: a model, a region, a kernel or a pipeline that fails, made small as long as it fails alike.

The search (`search.py`) edits IR of any level and asks a check (`checks.py`) of each candidate whether it still fails
in the way that the input did (`outcome.py`). What a candidate does happens in a process of its own (`worker.py`,
`judge.py`), so that a crash or a hang is an outcome like any other. The edits are in a file a level: `graph_edits.py`,
`size_edits.py`, `nest_edits.py`, `loop_edits.py`; all are lists of `Edit`s, of which any set can be tried at once
(`edits.py`), and what an edit takes out of the middle becomes inputs and outputs (`frames.py`). `bisect.py` looks for
the first rewrite of a pass that makes the difference.
"""
