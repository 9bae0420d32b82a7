"""`igniter reduce`: a failing model, region, kernel or pipeline, shrunk while it still fails in the same way.

The search (`search.py`) edits IR of any level and runs a check (`checks.py`) on each candidate: does it still fail in
the same way as the input (`outcome.py`)? A candidate runs in a process of its own (`worker.py`, `judge.py`), so a crash
or a hang is an outcome like any other. The edits are in a file a level: `graph_edits.py`, `size_edits.py`,
`nest_edits.py`, `loop_edits.py`; all are lists of `Edit`s, and any subset can be tried at once (`edits.py`). Values at
the border of a removed part become inputs and outputs (`frames.py`). `bisect.py` finds the first rewrite of a pass
responsible for the failure.
"""
