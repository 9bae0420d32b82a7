"""`lift-constants`: turns different small constants of equal regions into operands, and one kernel then serves all.

    %y = fusion.region @r0 (%a = %x) {                     %s = onnx.Constant() 0.013
      %s = onnx.Constant() 0.013                   ->      %y = fusion.region @r0 (%a = %x, %b = %s) {
      %0 = onnx.Mul(%a, %s)                                  %0 = onnx.Mul(%a, %b)

Each layer of a quantised model has its own scales and zero points. They are small enough to be in a kernel, so every
layer would be compiled separately. The pass compares regions without the values of such constants. Different constants
within a set of equal regions are lifted, if only arithmetic reads them (other lowerings may need the value at compile
time). The pass runs after `form-fusion-regions`, to find constants in regions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.analysis.fusion.region_signature import region_signature
from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.base import OnnxOp, constant_value, make_constant
from igniter.remarks import remark
from igniter.rewrite_budget import budget

_QUANTISERS = ("QuantizeLinear", "DequantizeLinear")
READERS = frozenset(("Add", "Sub", "Mul", "Div", *_QUANTISERS, *(f"com.microsoft.{n}" for n in _QUANTISERS)))
"""Ops with the same kernel for constant and other operands."""


@dataclass(frozen=True)
class LiftConstants(ModulePass):
    """Turns the different constants of equal regions into operands."""

    name = "lift-constants"
    one_rewrite = "a set of equal regions whose different constants are lifted"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        alike: dict[Hashable, list[RegionOp]] = {}
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            alike.setdefault(region_signature(region, frozenset(liftable(region))), []).append(region)
        for regions in alike.values():
            if len({region_signature(r) for r in regions}) == 1:
                continue
            columns = list(zip(*(liftable(r) for r in regions), strict=True))
            different = [column for column in columns if len({c.attributes["value"] for c in column}) > 1]
            if different and not budget(ctx, self.name).take(f"@{regions[0].label}", "its constants are lifted"):
                return
            for column in different:
                for region, constant in zip(regions, column, strict=True):
                    lift(region, constant)
            if different:
                message = f"{len(different)} constants are operands: {len(regions)} regions are one kernel"
                remark(ctx, self.name, f"@{regions[0].label}", "applied", message)


def liftable(region: RegionOp) -> list[Operation]:
    """Returns the constants of a region read only by arithmetic, in order."""
    return [op for op in region.block.ops if is_liftable(op)]


def is_liftable(op: Operation) -> bool:
    if op.name != "onnx.Constant" or "value" not in op.attributes or constant_value(op.results[0]) is None:
        return False
    return all(isinstance(u.operation, OnnxOp) and u.operation.qualified_name in READERS for u in op.results[0].uses)


def lift(region: RegionOp, constant: Operation) -> None:
    """Moves a constant of a region before the region, and makes it the region's last operand."""
    array, block, inner = constant_value(constant.results[0]), region.parent, region.block
    assert array is not None and block is not None
    outside = make_constant(array, f"{region.label}.constant{len(region.operands)}")
    block.insert_op_before(outside, region)
    argument = inner.insert_arg(constant.results[0].type, len(inner.args))
    argument.name_hint = constant.results[0].name_hint
    constant.results[0].replace_all_uses_with(argument)
    region.operands = [*region.operands, outside.results[0]]
    constant.detach()
    constant.erase()
