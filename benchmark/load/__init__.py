"""Compiled models on machines that are busy, limited or shared: `python -m benchmark.load`.

`settings` says what is tried, `worker` is the process of one system in one setting, `surroundings` makes the
neighbours and the limits, `__main__` takes turns and prints the table.
"""
