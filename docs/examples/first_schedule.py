"""The schedule of `docs/tutorials/my-first-schedule.md`: `python first_schedule.py linear.mlir` prints the result."""

import sys

import numpy as np

import igniter

s = igniter.Schedule(sys.argv[1])
s.split("matmul", "j", 48)
s.split("matmul", "i", 4)
s.reorder("matmul", "j by 48", "i by 4", "k", "i", "j")
s.vectorize("matmul", "j", 16)
s.threads("matmul", "j by 48")
s.compute_at("relu", "matmul", "i by 4")
s.vectorize("relu", "j", 16)
print(s)

rng = np.random.default_rng(0)
a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((19, 64), (64, 96), (96,)))
(found,) = s.run(a, b, c)
print("right" if np.allclose(found, np.maximum(a @ b + c, 0), atol=1e-4) else "wrong")

try:
    s.threads("matmul", "k")
except igniter.IgniterError as error:
    print(error)
