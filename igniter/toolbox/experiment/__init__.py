"""`igniter experiment`: variants of a compilation beside each other, with intervals, tables, plots and an archive.

spec.py        a specification in TOML: models x variants x sizes x threads, checked
subjects.py    its models: files, folders, the shipped networks, the models of the benchmark
variants.py    a variant as options of a compilation; plug-ins
jobs.py        work in processes of its own: writing models, inputs, builds, comparisons of outputs
comparison.py  one comparison: builds, checks, and times in random order, each step kept in a file
statistics.py  ratios, bootstrap intervals, verdicts
results.py     the result: frozen rows; records.py makes it from the files of a run
outputs.py     CSV, LaTeX, HTML; plots.py draws
archive.py     the archive of a run, and its replay
runs.py        a whole run, here or on a Ray cluster (cluster.py)
"""
