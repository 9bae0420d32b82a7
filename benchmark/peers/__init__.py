"""Igniter and its peers on the same inputs in one interleaved run, each in a process of its own.

`protocol` is what a peer's process is told and answers, `worker` the process, `systems` how each peer loads a model,
`race` the taking of turns, `table` what is printed, saved and drawn; `python -m benchmark.peers` runs models.
"""
