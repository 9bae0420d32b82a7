"""The GPUs with products of scaled factors (`tt.dot_scaled`).

Triton emulates them on others: it converts the factors to bf16 and multiplies these, which is no faster than a product
of 16-bit factors that a lowering writes itself. So kernels with such products are refused for these GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.dialects import triton as tt
from igniter.dialects.loop import FuncOp, LaunchOp
from igniter.errors import IgniterError

SCALED = (120,)
"""The compute capabilities, times ten, whose tensor cores scale factors. Those of sm_100 do too, but in PTX 8.8, and
kernels have 8.7."""


def refuse_scaled(func: FuncOp, archs: Sequence[int]) -> None:
    """Raises `IgniterError` if a kernel that a func launches has a scaled product, and a GPU does not."""
    lacking = [arch for arch in archs if arch not in SCALED]
    module = func.parent_op()
    if not lacking or module is None:
        return
    launched = {op.kernel for op in func.walk() if isinstance(op, LaunchOp)}
    for kernel in module.regions[0].block.ops:
        if isinstance(kernel, tt.FuncOp) and kernel.sym_name.data in launched:
            require_scaled(kernel, lacking)


def require_scaled(kernel: tt.FuncOp, lacking: Sequence[int]) -> None:
    """Raises `IgniterError` if a kernel has a scaled product; `lacking` are its GPUs without one."""
    if lacking and any(isinstance(op, tt.DotScaledOp) for op in kernel.walk()):
        gpus = ", ".join(f"sm_{arch}" for arch in lacking)
        known = ", ".join(f"cuda:sm_{arch}" for arch in SCALED)
        raise IgniterError(
            f"kernel @{kernel.sym_name.data} multiplies blocks with scales (tt.dot_scaled), which {gpus} would "
            f"emulate; compile it for {known}"
        )
