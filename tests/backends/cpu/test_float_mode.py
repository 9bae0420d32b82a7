"""Elementary functions in threads that take subnormal numbers for 0: `session.set_denormal_as_zero`, `flush-values`."""

from __future__ import annotations

import numpy as np
import pytest

from .cpu_kit import TARGETS, Array, Elementary
from .emulator import is_emulated
from .float_mode import flushing
from .test_vmath import BOUNDS32, BOUNDS64, SPECIAL, floats

HOSTED = [target for target in TARGETS if not is_emulated(target)]


def allowed(x: Array, kept: Array, flushed: Array, of_zero: Array) -> Array:
    """True where a result is that of the usual mode, up to four times the least normal number, or that of a zero for a
    subnormal argument."""
    tiny = np.finfo(x.dtype).tiny
    bits = np.dtype(f"u{x.itemsize}")
    with np.errstate(all="ignore"):
        same = (kept.view(bits) == flushed.view(bits)) | (np.isnan(kept) & np.isnan(flushed))
        near = np.abs(kept - flushed) <= 4 * tiny
        zero = np.where(np.signbit(x), of_zero[1], of_zero[0])
        # A subnormal result counts as 0.
        as_zero = (zero == flushed) | ((zero == 0) & (np.abs(flushed) < tiny)) | (np.isnan(zero) & np.isnan(flushed))
        return same | near | ((np.abs(x) < tiny) & as_zero)


@pytest.mark.parametrize("target", HOSTED)
@pytest.mark.parametrize("element", ["f4", "f8"])
def test_results_are_those_of_the_usual_mode_or_of_zero(element: str, target: str) -> None:
    x = floats(900001)
    if element == "f8":
        numbers = np.random.default_rng(0).integers(0, 2**64 - 1, 5000, dtype="u8").view("f8")
        numbers[::4].view("u8")[:] &= np.uint64(0x800FFFFFFFFFFFFF)
        x = np.concatenate([np.array(SPECIAL), np.array([5e-324, -5e-324, 1e-310, 2.3e-308]), numbers])
    zeros = np.array([0.0, -0.0], element)
    for name in sorted(BOUNDS32 if element == "f4" else BOUNDS64.keys() - {"pow", "atan2"}):
        function = Elementary(name, element, target)
        kept, of_zero = function(x), function(zeros)
        with flushing():
            flushed = function(x)
        good = allowed(x, kept, flushed, of_zero)
        worst = int(np.argmin(good))
        assert good.all(), f"{name}({x[worst]!r}) = {flushed[worst]!r}, and {kept[worst]!r} in the usual mode"
