"""`guard-assumptions`: emits a kernel to check the assumptions of a graph, if no other kernel knows the dims.

    onnx.graph @main(%x: tensor<6x4x?xf32, #sym.dims<6, 4, n>>) attributes {igniter.assumptions = [1 <= n "..."]} {
      %y = onnx.Reshape(%x, %t) : ...                   // left to ONNX Runtime, which checks less than the model did

    ->  %g = fusion.region @guard0 (%x_1 = %x : ...) -> (tensor<0xi64>) {
          %s = onnx.Shape(%x_1) {start = 0 : i64, end = 0 : i64} : ...
          fusion.yield %s : tensor<0xi64>
        }
        %y = onnx.Reshape(%x, %t) : ...

Every kernel with the symbols checks the graph's assumptions from `infer-shapes` and `canonicalize-onnx`. If no kernel
knows them, because the nodes around are left to ONNX Runtime, a separate kernel checks them; it computes nothing, and
nothing reads its result. Assumptions about dims of no graph input are not checked.

The pass runs after `lower-onnx-to-loop`, when the kernels are known, and before a second run of it, to lower the new
region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.base import make_op
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.bind_symbols import bind_symbols
from igniter.dialects.sym.requirements import Requirement
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.remarks import remark
from igniter.transforms.fusion.extract_regions import form_region
from igniter.transforms.onnx.infer_shapes import graph_assumptions


@dataclass(frozen=True)
class GuardAssumptions(ModulePass):
    """Emits a kernel for assumptions not checked by other kernels."""

    name = "guard-assumptions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = {region.label for region in op.walk() if isinstance(region, RegionOp)}
        names = (name for number in range(1 << 30) if (name := f"guard{number}") not in taken)
        for graph in [g for g in op.ops if isinstance(g, GraphOp)]:
            kernels = [_told(r.inputs) for r in graph.body.ops if isinstance(r, RegionOp)]
            left = [r for r in graph_assumptions(graph) if not any(r.symbols <= told for told in kernels)]
            inputs = _inputs_about(graph, left)
            if not inputs:
                continue
            label = next(names)
            _form_guard(graph, inputs, label)
            for requirement in left:
                remark(ctx, self.name, str(requirement.node or ""), "applied", f"@{label} checks that {requirement}")


def _told(values: Sequence[SSAValue]) -> frozenset[str]:
    """Returns the symbols known to a kernel with these operands."""
    return bind_symbols([(known_dims_of(v.type) or (), True) for v in values]).bound


def _inputs_about(graph: GraphOp, requirements: Sequence[Requirement]) -> list[SSAValue]:
    """Returns inputs of a graph whose dims give the symbols of the requirements; requirements beyond the inputs are
    ignored."""
    tensors = [arg for arg in graph.body.args if known_dims_of(arg.type) is not None]
    told = _told(tensors)
    wanted = {s for r in requirements if r.symbols <= told for s in r.symbols}
    chosen: list[SSAValue] = []
    for arg in tensors:
        if wanted & (_told([*chosen, arg]) - _told(chosen)):
            chosen.append(arg)
    return chosen


def _form_guard(graph: GraphOp, inputs: Sequence[SSAValue], label: str) -> None:
    first = graph.body.first_op
    assert first is not None
    shape = make_op("Shape", [inputs[0]], [tensor_of(i64, [0])], {"start": 0, "end": 0})
    graph.body.insert_op_before(shape, first)
    form_region(label, [shape], [], inputs, shape.results, first)
