"""The elements that iterations of a loop share, and the proofs of their accesses, where a loop begins at data."""

from __future__ import annotations

import igniter
from igniter.analysis.scheduled.loop_accesses import shared_element
from igniter.analysis.structured.bounds import unproven_accesses
from igniter.dialects.loop import ForOp, FuncOp

FUNC = """
loop.func @f symbols [n] (%starts: memref<?xi64, #sym.dims<n>>, %x: memref<?xf32, #sym.dims<4*n>>) outputs 1 {
  loop.for i = 0 to n {
    %start = loop.load %starts[i] : i64
    loop.for k = FIRST to 4 with %start {
      %c = arith.constant 1.000000e+00 : f32
      loop.store %c, %x[4*i + k]
    }
  }
}
"""


def test_a_loop_may_begin_below_0_where_it_begins_at_data() -> None:
    """From -4 on, the second iteration writes what the first one does, and the first one before the buffer."""
    module = igniter.parse(FUNC.replace("FIRST", "_0")).ir
    func, loop = (next(op for op in module.walk() if isinstance(op, kind)) for kind in (FuncOp, ForOp))
    assert "two iterations may access the same element" in str(shared_element(loop))
    (unproven,) = unproven_accesses(func)
    assert "4*i + k may be negative" in unproven.reason


def test_a_loop_that_begins_at_data_or_0_does_not() -> None:
    module = igniter.parse(FUNC.replace("FIRST", "max(_0, 0)")).ir
    func, loop = (next(op for op in module.walk() if isinstance(op, kind)) for kind in (FuncOp, ForOp))
    assert shared_element(loop) is None
    assert not unproven_accesses(func)
