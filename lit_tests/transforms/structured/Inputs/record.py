"""Records a schedule for each kernel of an .mlir file in a database: record.py FILE DATABASE CPU SCHEDULE..."""

import sys
from pathlib import Path

import igniter
from igniter.dialects.loop import KernelOp
from igniter.schedules.citation import structure_hash
from igniter.transforms.structured.schedule_database import Entry, Subject, opened

file, path, cpu, *schedules = sys.argv[1:]
Path(path).unlink(missing_ok=True)
kernels = [op for op in igniter.load(file).ir.ops if isinstance(op, KernelOp)]
with opened(path, create=True) as database:
    for kernel, schedule in zip(kernels, schedules, strict=False):
        subject = Subject(structure_hash(kernel), cpu, "n<=64, threads=1")
        database.record(Entry(subject, (schedule,), 1e-6, 2e-6, 0.5, 0.01, 8))
