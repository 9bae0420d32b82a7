"""`lower-linalg-to-loop`: lowers every function of `linalg` on tensors to a `loop.kernel` of the same name.

    func.func @scale(%x: tensor<?x8xf32>, %s: tensor<?xf32>) -> tensor<?x8xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x8xf32>
      %e = tensor.empty(%n) : tensor<?x8xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %s : tensor<?x8xf32>, tensor<?xf32>) outs(%e : tensor<?x8xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %p = arith.mulf %a, %b : f32
        linalg.yield %p : f32
      } -> tensor<?x8xf32>
      return %y : tensor<?x8xf32>
    }

becomes

    loop.kernel @scale symbols [x_d0] (%0: tensor<?x8xf32, #sym.dims<x_d0, 8>>, %1: tensor<?xf32, #sym.dims<x_d0>>)
        -> (tensor<?x8xf32, #sym.dims<x_d0, 8>>) attributes {igniter.arguments = [{name = "x"}, {name = "s"}], ...} {
      %2 = loop.nest "generic" [i0: parallel x_d0, i1: parallel 8] -> tensor<?x8xf32, #sym.dims<x_d0, 8>> {
        %3 = loop.read %0[i0, i1] : f32
        %4 = loop.read %1[i0] : f32
        %5 = arith.mulf %3, %4 : f32
        loop.yield none %5 at [i0, i1]
      }
      loop.return %2 : ...
    }

Dynamic dims become symbols. Dims that the ops' meaning or a `cf.assert` makes equal share a symbol, and the caller's
sizes are checked against it; any other condition is a requirement of the kernel (`linalg/facts.py`). Calls are inlined.
A private function disappears, a public one becomes a kernel. A constant of more than 16 different elements becomes a
weight: an argument with its value in the kernel's signature (`igniter.analysis.structured.kernel_signature`).

The pass is first in a pipeline for MLIR from other tools, before `cpu-schedule` or `cuda-schedule`. It refuses what it
does not know; the error names the op and its line.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.dialects.loop import KernelOp
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget
from igniter.transforms.conversion.linalg.function import FunctionLowering


@dataclass(frozen=True)
class LowerLinalgToLoop(ModulePass):
    """Lowers functions of `linalg` on tensors to structured kernels."""

    name = "lower-linalg-to-loop"
    one_rewrite = "a function lowered to a kernel"

    function: str = ""
    """Lowers this function, and drops the others."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.walk() if isinstance(f, func.FuncOp)}
        wanted = [f for f in functions.values() if f.body.blocks and not _is_private(f)]
        if self.function:
            if self.function not in functions:
                known = ", ".join(f"@{name}" for name in functions) or "none"
                raise IgniterError(f"lower-linalg-to-loop: there is no function @{self.function}; there are: {known}")
            wanted = [functions[self.function]]
        made: list[KernelOp] = []
        for each in wanted:
            if not budget(ctx, self.name).take(f"@{each.sym_name.data}", "the function is lowered"):
                return
            kernel, signature = FunctionLowering(each, functions).run()
            signature.write(kernel)
            made.append(kernel)
        for each in functions.values():
            _erase(each)
        for inner in [m for m in op.ops if isinstance(m, ModuleOp) and not list(m.ops)]:
            _erase(inner)
        op.body.block.add_ops(made)


def _is_private(function: func.FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _erase(op: Operation) -> None:
    op.detach()
    op.erase(safe_erase=False)
