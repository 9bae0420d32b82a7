"""Rewrites a weight to nodes that compute it from fewer bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.onnx.weight_codes import Codes, Layout, Narrowed, Scales, Zeros
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, make_constant, make_op
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, unranked
from igniter.toolbox.compress.weight_plan import WeightPlan, contrib_block
from igniter.toolbox.compress.weight_uses import WeightUse

UI8 = IntegerType(8, Signedness.UNSIGNED)


def rewrite_weight(plan: WeightPlan, accuracy_level: int = 0) -> tuple[int, str]:
    """Replaces a constant by the stored weight. Returns the stored bytes, and the ops that read them."""
    made = _Made(plan, accuracy_level)
    if plan.half is not None:
        made.cast()
    else:
        for use in plan.uses:
            if plan.contrib and use.kind == "table":
                made.gather_blocks(use)
            elif plan.contrib:
                made.product(use)
            elif use.kind == "table" and use.through is None and made.fits_rows(use):
                made.gather_rows(use)
        if not plan.contrib:
            made.dequantize()
    made.erase()
    return made.bytes, " and ".join(dict.fromkeys(made.forms))


@dataclass
class _Made:
    plan: WeightPlan
    accuracy_level: int = 0
    bytes: int = 0
    forms: list[str] = field(default_factory=list[str])
    constants: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    # -- 16 bits ------------------------------------------------------------------------------------------------------

    def cast(self) -> None:
        weight, half = self.plan.weight, self.plan.half
        assert half is not None
        rounded = self._constant(Weight(weight.shape, half, derivation=Narrowed(weight, half)), f"{half}")
        code = BY_ATTR[weight.element_type].code
        for use in self.plan.uses:
            if use.kind == "table" and use.through is None:
                # Rows are gathered in their stored form.
                kind, axis = _retyped(use.op.results[0].type, half), int(use.op.attr("axis", 0) or 0)
                rows = make_op("Gather", [rounded, use.op.operands[1]], [kind], {"axis": axis})
                self._instead(
                    use.op, make_op("Cast", [self._before(use.op, rows)], [use.op.results[0].type], {"to": code})
                )
        if self.plan.constant.results[0].first_use is None:
            return
        self._whole(make_op("Cast", [rounded], [tensor_of(weight.element_type, weight.shape)], {"to": code}))

    # -- ops of ONNX --------------------------------------------------------------------------------------------------

    def dequantize(self) -> None:
        """Inserts one DequantizeLinear for all remaining readers of the weight."""
        plan, coding = self.plan, self.plan.coding
        assert coding is not None
        if plan.constant.results[0].first_use is None:
            return
        attrs: dict[str, Any] = {} if coding.axis is None else {"axis": coding.axis}
        if coding.block:
            attrs["block_size"] = coding.block
        kind = tensor_of(plan.weight.element_type, plan.weight.shape)
        self._whole(make_op("DequantizeLinear", self._plain(), [kind], attrs))

    def fits_rows(self, use: WeightUse) -> bool:
        """True if codes can be gathered before they are dequantised: Gather does not support 4-bit numbers."""
        coding, shape = self.plan.coding, self.plan.weight.shape
        assert coding is not None
        if coding.bits < 8:
            return False
        return coding.axis is None or (
            bool(coding.block) and coding.axis == len(shape) - 1 and use.channel != coding.axis
        )

    def gather_rows(self, use: WeightUse) -> None:
        """Gathers codes, scales and zero points, and dequantises the rows."""
        coding, op = self.plan.coding, use.op
        assert coding is not None
        index, axis = op.operands[1], int(op.attr("axis", 0) or 0)
        parts: list[SSAValue] = []
        for k, part in enumerate(self._plain()):
            if k and coding.axis is None:
                parts.append(part)
                continue
            element = self.plan.weight.element_type if k == 1 else coding.element
            kind = _retyped(op.results[0].type, element) if not k else unranked(element)
            parts.append(self._before(op, make_op("Gather", [part, index], [kind], {"axis": axis})))
        attrs = {} if coding.axis is None else {"axis": -1, "block_size": coding.block}
        self._instead(op, make_op("DequantizeLinear", parts, [op.results[0].type], attrs))

    def _plain(self) -> list[SSAValue]:
        plan, coding = self.plan, self.plan.coding
        assert coding is not None
        weight, shape = plan.weight, coding.parameter_shape(plan.weight.shape)
        found = [
            self._constant(Weight(weight.shape, coding.element, derivation=Codes(weight, coding)), "codes"),
            self._constant(Weight(shape, weight.element_type, derivation=Scales(weight, coding)), "scales"),
        ]
        if not coding.symmetric:
            found.append(self._constant(Weight(shape, coding.element, derivation=Zeros(weight, coding)), "zeros"))
        return found

    # -- ops of com.microsoft -----------------------------------------------------------------------------------------

    def product(self, use: WeightUse) -> None:
        op, coding = use.op, self.plan.coding
        assert coding is not None
        columns, depth = self.plan.weight.shape[use.channel], self.plan.weight.shape[use.depth]
        block = contrib_block(self.plan, use)
        attrs = {"K": depth, "N": columns, "bits": coding.bits, "block_size": block}
        if self.accuracy_level:
            attrs["accuracy_level"] = self.accuracy_level
        codes, scales, zeros = self._matrices("blocks", use, block)
        inputs: list[SSAValue | None] = [op.operands[0], codes, scales, zeros]
        bias = op.operands[2] if len(op.operands) > 2 and not isinstance(op.operands[2].owner, NoValueOp) else None
        if bias is None or known_dims_of(bias.type) == (Expr.of(columns),):
            found = make_op(NBITS, [*inputs, None, bias], [op.results[0].type], attrs)
            self._instead(op, found)
            return
        product = self._before(op, make_op(NBITS, inputs, [op.results[0].type], attrs))
        self._instead(op, make_op("Add", [product, bias], [op.results[0].type]))
        self.forms[-1] = "MatMulNBits"

    def gather_blocks(self, use: WeightUse) -> None:
        op, coding = use.op, self.plan.coding
        assert coding is not None
        block = contrib_block(self.plan, use)
        codes, scales, zeros = self._matrices("table", use, block)
        attrs = {"gather_axis": 0, "quantize_axis": 1, "block_size": block, "bits": coding.bits}
        self._instead(op, make_op(GATHER, [codes, op.operands[1], scales, zeros], [op.results[0].type], attrs))

    def _matrices(self, layout: Layout, use: WeightUse, block: int) -> tuple[SSAValue, SSAValue, SSAValue | None]:
        """Returns codes, scales and zero points in the layout of the ops. A table shares the codes of products, if
        there are any, with other dims."""
        plan, coding = self.plan, self.plan.coding
        assert coding is not None
        weight, swapped = plan.weight, use.depth == 0
        columns, depth = weight.shape[use.channel], weight.shape[use.depth]
        count, blob = -(-depth // block), block * coding.bits // 8
        table = (columns, depth * coding.bits // 8)

        def derived(kind: type[Codes] | type[Scales] | type[Zeros], which: Layout) -> Any:
            return kind(weight, coding, which, swapped, block)

        products = any(u.kind == "product" for u in plan.uses)
        shared = layout == "table" and products and depth % block == 0
        if layout == "blocks" or shared:
            made = Weight((columns, count, blob), UI8, derivation=derived(Codes, "blocks"))
            codes = self._constant(made, "codes")
        else:
            codes = self._constant(Weight(table, UI8, derivation=derived(Codes, "table")), "rows")
        if shared:
            dims = make_constant(np.array(table, np.int64))
            flat = make_op("Reshape", [codes, self._before(use.op, dims)], [tensor_of(UI8, table)])
            codes = self._before(use.op, flat)
        kind = weight.element_type
        scales = self._constant(Weight((columns, count), kind, derivation=derived(Scales, "blocks")), "scales")
        if coding.symmetric:
            return codes, scales, None
        packed = (columns, -(-count * coding.bits // 8))
        return codes, scales, self._constant(Weight(packed, UI8, derivation=derived(Zeros, "blocks")), "zeros")

    # -- placing ------------------------------------------------------------------------------------------------------

    def _constant(self, weight: Weight, part: str) -> SSAValue:
        """Returns a constant beside the weight, made once."""
        found = self.constants.get(part)
        if found is None:
            made = make_constant(weight, f"{self.plan.name}.{part}")
            self._beside(made)
            self.bytes += weight.nbytes
            found = self.constants[part] = made.results[0]
        return found

    def _beside(self, op: Operation) -> None:
        block = self.plan.constant.parent
        assert block is not None
        block.insert_op_before(op, self.plan.constant)

    def _whole(self, op: OnnxOp) -> None:
        """Replaces the weight by the result of an op."""
        self._beside(op)
        self.forms.append(op.op_type)
        self.plan.constant.results[0].replace_all_uses_with(op.results[0])

    def _before(self, place: OnnxOp, op: OnnxOp) -> SSAValue:
        assert place.parent is not None
        place.parent.insert_op_before(op, place)
        return op.results[0]

    def _instead(self, old: OnnxOp, op: OnnxOp) -> None:
        """Replaces a node by `op`, under the node's name."""
        for key in ("node_name", "output_names", "output_info", "doc_string", "metadata"):
            if key in old.properties:
                op.properties[key] = old.properties[key]
        op.results[0].name_hint = old.results[0].name_hint
        self._before(old, op)
        self.forms.append(op.op_type)
        old.results[0].replace_all_uses_with(op.results[0])
        assert old.parent is not None
        old.parent.erase_op(old)

    def erase(self) -> None:
        """Erases the constant, and the nodes between it and its readers."""
        for use in self.plan.uses:
            through = use.through
            if through is not None and through.parent is not None and through.results[0].first_use is None:
                through.parent.erase_op(through)
        constant = self.plan.constant
        if constant.results[0].first_use is None and constant.parent is not None:
            constant.parent.erase_op(constant)


NBITS, GATHER = "com.microsoft.MatMulNBits", "com.microsoft.GatherBlockQuantized"


def _retyped(kind: Attribute, element: Attribute) -> Attribute:
    dims = known_dims_of(kind)
    return unranked(element) if dims is None else tensor_of(element, dims)


__all__ = ["rewrite_weight"]
