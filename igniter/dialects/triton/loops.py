"""Hints of Triton on the loops of a kernel, as attributes of `scf.for`:

* `tt.num_stages = 3 : i32`: the iterations in flight, instead of the number of the launch;
* `tt.warp_specialize`: other warps of the program load the blocks of later iterations while its own warps multiply.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

STAGES, SPECIALIZED = "tt.num_stages", "tt.warp_specialize"


def stages_of(loop: scf.ForOp) -> int | None:
    """Returns the iterations of a loop in flight; None for those of the launch."""
    found = loop.attributes.get(STAGES)
    return found.value.data if isinstance(found, IntegerAttr) else None


def is_specialized(loop: scf.ForOp) -> bool:
    """True if other warps load the blocks of a loop."""
    return SPECIALIZED in loop.attributes


def specialize(loop: scf.ForOp) -> None:
    """Lets other warps load the blocks of a loop."""
    loop.attributes[SPECIALIZED] = UnitAttr()


def specializes(kernel: Operation) -> bool:
    """True if a loop of a kernel has warps for loads."""
    return any(isinstance(op, scf.ForOp) and is_specialized(op) for op in kernel.walk())


def verify_hints(kernel: Operation) -> None:
    """Checks the hints of the loops of a kernel; raises `VerifyException` for one that Triton would not read."""
    for op in kernel.walk():
        stages, special = op.attributes.get(STAGES), op.attributes.get(SPECIALIZED)
        if (stages, special) != (None, None) and not isinstance(op, scf.ForOp):
            raise VerifyException(f"{op.name} has a hint for loops; only scf.for can have it")
        if stages is not None and not _is_count(stages):
            raise VerifyException(f"'{STAGES}' must be an i32 of at least 1, not {stages}")
        if special is not None and not isinstance(special, UnitAttr):
            raise VerifyException(f"'{SPECIALIZED}' has no value, but here {special}")


def _is_count(value: object) -> bool:
    if not isinstance(value, IntegerAttr):
        return False
    kind: object = value.type  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(kind, IntegerType) and kind == i32 and value.value.data >= 1
