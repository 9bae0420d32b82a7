"""Tiles of sums in registers: there is one for every window and every number of registers that a machine may have."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from igniter.analysis.machine import MachineModel
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import Loop
from igniter.schedules.best_tile import best_tile, loss_over
from igniter.schedules.choice import choose
from igniter.schedules.groups import form_groups
from igniter.schedules.tiles import Window, register_tile

MACHINE = MachineModel()

DEPTHWISE = """
builtin.module {
  loop.kernel @k symbols [] (%x: tensor<20xSIZExf32>, %w: tensor<TAPSx32xf32>) -> (tensor<20x32xf32>) {
    %y = loop.nest "conv" [i: parallel 20, c: parallel 32, t: reduction TAPS] -> tensor<20x32xf32> {
      %a = loop.read %x[i + t, c] : f32
      %b = loop.read %w[t, c] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, c]
    }
    loop.return %y : tensor<20x32xf32>
  }
}
"""


@pytest.mark.parametrize("registers", [8, 16, 32])
@pytest.mark.parametrize("taps", [2, 3, 5, 7, 9])
def test_a_window_is_unrolled_where_its_weights_leave_registers_to_sums(taps: int, registers: int) -> None:
    from xdsl.parser import Parser

    text = DEPTHWISE.replace("20xSIZE", f"{19 + taps}x32").replace("TAPS", str(taps))
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    machine = replace(MACHINE, registers=registers)
    (choice,) = choose(form_groups(kernel, machine), machine)
    loops = [step for step in choice.schedules["conv"].data if isinstance(step, Loop)]
    unrolled = next(loop for loop in loops if loop.axis == "t").unroll is not None
    assert unrolled == (taps <= min(7, registers // 2))
    height = next(loop.by for loop in loops if loop.axis == "i")
    assert height > 1 and height + (taps if unrolled else 1) + 1 <= registers


@pytest.mark.parametrize(
    ("stride", "dilation", "places"),
    [(1, 1, 9), (2, 1, 15), (3, 1, 21), (1, 2, 11), (2, 2, 9), (4, 2, 15)],
)
def test_rows_of_a_window_share_what_they_read(stride: int, dilation: int, places: int) -> None:
    window = Window("t", 3, stride, dilation)
    assert window.places(7) == places
    height, columns = register_tile(56, 64, 16, MACHINE, window)
    assert columns == 1 and 1 <= height <= MACHINE.registers - 4


def test_the_preferred_of_nearly_equal_candidates_is_best() -> None:
    costs = {1: 3.0, 2: 1.04, 4: 1.0, 8: 1.0}
    assert best_tile(costs, costs.__getitem__, prefer=int) == 4
    assert best_tile(costs, costs.__getitem__, prefer=lambda tile: -tile) == 8
    assert best_tile(costs, costs.__getitem__, prefer=int, near=1.05) == 2


def test_a_loss_weighs_every_case_by_its_own_best() -> None:
    """A candidate twice as slow in a short case loses to one slightly slower in a long one."""
    short, long = {1: 1e-6, 2: 2e-6}, {1: 1.1, 2: 1.0}
    loss = loss_over([short.__getitem__, long.__getitem__], [1, 2])
    assert loss(1) == pytest.approx(math.log(1.1)) and loss(2) == pytest.approx(math.log(2))
    assert best_tile([1, 2], loss, prefer=int) == 1
