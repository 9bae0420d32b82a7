"""The power of verification: the share of planted faults that a compile's own verification finds.

faults.py    faults in a written folder: weights, wiring, kernels
sessions.py  the faulty model in a process of its own, and an original that computes each run once
measure.py   the verdict on each fault of a model
__main__.py  the command and its table
"""
