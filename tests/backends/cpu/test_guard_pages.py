"""What the guard pages of `tests.guarded` find, and that they find nothing else."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.jit import CompiledFunc
from igniter.backends.cpu.target import target_of
from tests.guarded import Guarded

from .cpu_kit import check_against_interpreter, compiled, parse_func, run_on_guard_pages

SHIFTED = """
loop.func @shifted symbols [] (%x: memref<24xf32>, %y: memref<24xf32>) outputs 1 {{
  loop.for i = 0 to 24 step 8 {{
    %a = loop.load %{load}] lane v : vector<8xf32>
    loop.store %a, %{store}] lane v
  }}
}}"""


@pytest.mark.parametrize("shift, side", [(1, "after"), (-1, "before")])
@pytest.mark.parametrize("which", ["load", "store"])
def test_one_element_too_far_is_a_failure(which: str, shift: int, side: str):
    at = {"load": "x[i + v", "store": "y[i + v"}
    at[which] += f" + {shift}"
    func = parse_func(SHIFTED.format(**at))
    with pytest.raises(AssertionError, match=f"SIGSEGV.*not mapped {side} every buffer|bytes written {side} the"):
        run_on_guard_pages(func, [np.ones(24, "f4"), np.zeros(24, "f4")], {}, "native")


def test_what_is_right_passes():
    func = SHIFTED.format(load="x[i + v", store="y[i + v")
    check_against_interpreter(func, [np.ones(24, "f4"), np.zeros(24, "f4")], targets=["native"])


CONCATENATION = """
loop.func @cat symbols [] (%x: memref<256xf32>, %z: memref<16384xf32>, %y: memref<65x256xf32>) outputs 1 {
  loop.for i = 0 to 65 {
    loop.for j = 0 to 256 step 8 {
      %a = loop.load %x[256*i + j + v] lane v if [-i] : vector<8xf32>
      %b = loop.load %z[256*i - 256 + j + v] lane v if [256*i + j + v - 256] else %a : vector<8xf32>
      loop.store %b, %y[i, j + v] lane v
    }
  }
}"""


def test_loads_without_a_lane_do_not_touch_their_address():
    """A masked load at an address that is not mapped takes a CPU 100 cycles or more, though nothing is loaded."""
    x, z = np.random.rand(256).astype("f4"), np.random.rand(16384).astype("f4")
    call = compiled(CONCATENATION, "native")
    assert isinstance(call, CompiledFunc)
    times: list[float] = []
    guarded = Guarded(x, "after").array
    for first in (np.concatenate([x, z])[:256], guarded):
        y = np.zeros((65, 256), "f4")
        run = call.prepared([first, z, y], {})
        times.append(min(timeit.repeat(run, number=5, repeat=50)))
        np.testing.assert_array_equal(y.ravel(), np.concatenate([x, z]))
    assert times[1] < 5 * times[0], f"{times} seconds, with a neighbour that is mapped and without"


@pytest.mark.parametrize("guard, redirected", [("n - 1 - i - v", False), ("n - 9 - i - v", True), ("i + v - 1", False)])
def test_only_accesses_that_may_have_no_lane_are_redirected(guard: str, redirected: bool):
    text = f"""
loop.func @tail symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {{
  loop.for i = 0 to n step 8 {{
    %a = loop.load %x[i + v] lane v if [{guard}] : vector<8xf32>
    loop.store %a, %y[i + v] lane v if [n - 1 - i - v]
  }}
}}"""
    assert ("%unused" in emit_llvm(parse_func(text), target_of("x86-64-v4"))) is redirected
