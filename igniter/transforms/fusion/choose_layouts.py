"""`choose-layouts`: stores the images of convolutions with their channels last, through the whole network.

    %y = fusion.region @r0 (%a = %x : tensor<?x64x56x56xf32>, ..) -> (tensor<?x64x56x56xf32>) {
      %0 = onnx.Conv(%a, %w, %b) {pads = [1, 1, 1, 1], ..}
      %1 = onnx.Relu(%0)
      fusion.yield %1

becomes, if another convolution without padding reads the result,

    %y = fusion.region @r0 (%a = %x : tensor<?x58x58x64xf32>, ..) -> (tensor<?x56x56x64xf32>) {
      %2 = onnx.Transpose(%a) {perm = [0, 3, 1, 2]}
      %0 = onnx.Conv(%2, %w, %b) {pads = [0, 0, 0, 0], ..}
      %1 = onnx.Relu(%0)
      %3 = onnx.Transpose(%1) {perm = [0, 2, 3, 1]}
      fusion.yield %3

The layouts are decided for a whole graph (`igniter.analysis.fusion.layouts`). Nodes known at every level express a
layout: a Transpose, and a Pad for the padding of convolutions (zeros, or the zero point of an image of bytes). The
producer region stores the padding with the image; readers without padding skip it with a Slice. Inside a region these
nodes only change access maps and cost nothing. If a tensor comes from outside all regions or leaves them, a separate
region changes the layout, once for all readers. A convolution whose image is computed in its own region also stores it
with channels last.

With `blocks=true`, for GPUs, padding is not stored: a program masks its reads. A tensor that is read only outside of
regions is written in the model's order, and one of fewer than 16 channels from outside is read in it: neither needs a
region of its own.

The pass runs after `form-fusion-regions`, a pass without knowledge of layouts, and before `pack-weights`, because a
convolution's weight is packed by the layout of its image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.fusion.layouts import (
    CONVOLUTIONS,
    ImageLayout,
    Pads,
    fill_of,
    images_of,
    in_order,
    leaves_out_padding,
    pads_of,
    rim_of,
    summary,
)
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.symbols import SymbolSources
from igniter.dialects.fusion import DimsOp, RegionOp, TablesOp
from igniter.dialects.onnx.attributes import to_attr
from igniter.dialects.onnx.base import OnnxOp, imported_opset, make_constant, make_op
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops.integer_convolution import IMAGE_ZERO
from igniter.dialects.onnx.ops.rules import INFINITE
from igniter.dialects.onnx.ops.winograd import tiling_of
from igniter.dialects.onnx.registry import PADDING_ATTRIBUTE, VALUES_ATTRIBUTE
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.fusion.extract_regions import form_region

PADS_OPSET = 11
"""The first opset with run-time sizes of a Pad."""

OPERANDS_SINCE = {"Pad": PADS_OPSET, "Slice": 10}
"""The first opset of each op with operands instead of attributes."""


@dataclass(frozen=True)
class ChooseLayouts(ModulePass):
    """Stores images with their channels last and with the padding of their convolutions."""

    name = "choose-layouts"
    one_rewrite = "a graph whose tensors are stored with their channels last"

    blocks: bool = False
    """Chooses for programs on blocks of elements, those of a GPU: without stored padding."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = {region.label for region in op.walk() if isinstance(region, RegionOp)}
        names = (name for number in range(1 << 30) if (name := f"l{number}") not in taken)
        for block in list(dict.fromkeys(r.parent for r in op.walk() if isinstance(r, RegionOp))):
            assert block is not None
            images = images_of(block, blocks=self.blocks)
            said = summary(images)
            if (images or (not self.blocks and _computes_images(block))) and budget(ctx, self.name).take("", said):
                _Rewriting(block, images, names, rims=not self.blocks).run()
                remark(ctx, self.name, "", "note", said)


class _Rewriting:
    """Gives the images of one block their layouts."""

    def __init__(self, block: Block, images: dict[SSAValue, ImageLayout], names: Iterator[str], *, rims: bool = True):
        self.block, self.images, self.names = block, images, names
        self.rims = rims
        """True if images are stored with padding."""
        self.kept = in_order(block)
        self.stored: dict[SSAValue, SSAValue] = {}
        """The stored tensor of each image."""

    def run(self) -> None:
        """Rewrites region by region, in the order of the block, to store inputs before they are read."""
        for region in [op for op in self.block.ops if isinstance(op, RegionOp)]:
            for index, operand in enumerate(list(region.inputs)):
                if operand in self.images:
                    self._take(region, index, operand)
            for op in list(region.block.ops) if self.rims else ():
                if op_name(op) in CONVOLUTIONS and op not in self.kept:
                    _store_image(cast("OnnxOp", op))
            for result in list(region.results):
                if result in self.images:
                    self._give(region, result)

    def _take(self, region: RegionOp, index: int, value: SSAValue) -> None:
        """Makes an operand of a region the stored image."""
        layout = self.images[value]
        if value not in self.stored:
            self.stored[value] = self._converted(region, value, layout)
        stored = self.stored[value]
        region.operands[index] = stored
        argument = region.block.args[index]
        plain = argument.type
        # Before the image changes its dims, because `SAME` padding depends on them.
        convolutions = [op for use in argument.uses if self.rims and (op := _convolution_of(use)) is not None]
        taken: dict[OnnxOp, Pads] = {op: pads_of(op) for op in convolutions if layout.holds(rim_of(op), fill_of(op))}
        padded = {op for op in taken if not leaves_out_padding(op)}
        fresh = Rewriter.replace_value_with_new_type(argument, stored.type)
        at = _Nodes(region.block.first_op)
        seen: dict[Pads, SSAValue] = {}
        for use in list(fresh.uses):
            convolution, wanted = _convolution_of(use), tuple((ZERO, ZERO) for _ in layout.pads)
            if convolution is not None and convolution in taken:
                wanted = taken[convolution]
                if convolution in padded:
                    _without_pads(convolution, wanted, layout.pads)
            if wanted not in seen:
                seen[wanted] = at.cut(fresh, layout.pads, wanted)
            use.operation.operands[use.index] = seen[wanted]
        assert all(v.type == plain for pads, v in seen.items() if not ImageLayout(pads).is_padded)

    def _give(self, region: RegionOp, result: OpResult) -> None:
        """Makes a result of a region the stored image; readers outside regions get the plain one."""
        layout, terminator = self.images[result], region.yield_op
        at = _Nodes(terminator)
        made = at.last(at.padded(region.yielded[result.index], layout.pads, layout.fill))
        terminator.operands[result.index] = made
        outside = [use for use in result.uses if not self._reads_images(use.operation)]
        plain = result.type
        stored = Rewriter.replace_value_with_new_type(result, made.type)
        self.images[stored] = layout
        self.stored[stored] = stored
        if outside:
            before = region.next_op
            assert before is not None
            back = _Nodes(before)
            value = back.cut(stored, layout.pads)
            assert value.type == plain
            converted = self._region(value, [stored], before)
            for use in outside:
                use.operation.operands[use.index] = converted

    def _reads_images(self, op: Operation) -> bool:
        return isinstance(op, RegionOp) and op.parent is self.block

    def _converted(self, region: RegionOp, value: SSAValue, layout: ImageLayout) -> SSAValue:
        """Adds a region before the first reader, to store a tensor from outside all regions as an image."""
        at = _Nodes(region)
        return self._region(at.last(at.padded(value, layout.pads, layout.fill)), [value], region)

    def _region(self, value: SSAValue, operands: Sequence[SSAValue], before: Operation) -> SSAValue:
        """Moves the nodes before an op that compute `value` into a region."""
        members: list[Operation] = []
        pending = [value]
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, Operation) and owner not in members and not set(owner.results) & set(operands):
                members.insert(0, owner)
                pending += owner.operands
        clones = [op for op in members if isinstance(op, DimsOp) or op_name(op) == "Constant"]
        nodes = [op for op in members if op not in clones]
        # The neighbouring regions know the symbols too, so some tensor gives them.
        told = SymbolSources(_inputs_around(self.block), self.block).bindings(nodes)
        if isinstance(told, Reason):
            raise IgniterError(f"{ChooseLayouts.name}: {told}")
        for clone in clones:
            clone.detach()
        given = list(dict.fromkeys([*operands, *told]))
        return form_region(next(self.names), nodes, clones, given, [value], before).results[0]


def _computes_images(block: Block) -> bool:
    """True if a region of a block computes the image of one of its own convolutions."""
    regions = (op for op in block.ops if isinstance(op, RegionOp))
    convolutions = (op for region in regions for op in region.block.ops if op_name(op) in CONVOLUTIONS)
    kept = in_order(block)
    return any(op not in kept and not isinstance(op.operands[0], BlockArgument) for op in convolutions)


def _convolution_of(use: Use) -> OnnxOp | None:
    """Returns the convolution if the use is its image; else None."""
    return cast("OnnxOp", use.operation) if use.index == 0 and op_name(use.operation) in CONVOLUTIONS else None


def _inputs_around(block: Block) -> list[SSAValue]:
    """Returns the inputs of a graph and of the graphs around it."""
    found: list[SSAValue] = []
    around: Block | None = block
    while around is not None:
        owner = around.parent_op()
        found = [*([] if isinstance(owner, (ModuleOp, RegionOp)) else around.args), *found]
        around = None if owner is None else owner.parent
    return found


def _store_image(op: OnnxOp) -> None:
    """Makes a region store the image of a convolution with channels last and with all its padding, if the region
    computes the image, or if the image comes without part of the padding."""
    image, pads, rim = op.operands[0], pads_of(op), rim_of(op)
    if isinstance(image, BlockArgument) or (_is_transposed_argument(image) and not ImageLayout(pads).is_padded):
        return
    fill = fill_of(op)
    padded = not leaves_out_padding(op)
    computed = fill is None or any(p.constant is None for pair in pads for p in pair)
    if computed and (imported_opset(op, "") or PADS_OPSET) < PADS_OPSET:
        return
    at = _Nodes(op)
    filling = op.operands[IMAGE_ZERO] if fill is None else fill
    op.operands[0] = at.cut(at.last(at.padded(image, rim, filling)), rim, pads)
    if padded:
        _without_pads(op, pads, rim)


def _is_transposed_argument(value: SSAValue) -> bool:
    while isinstance(value.owner, Operation) and op_name(value.owner) in ("Transpose", "Slice"):
        value = value.owner.operands[0]
    return isinstance(value, BlockArgument)


def _without_pads(op: OnnxOp, pads: Pads, given: Pads) -> None:
    """Removes the padding `pads` from a convolution whose image already has the rim `given`. Tiles extend beyond the
    last window, so a tiled convolution gets an attribute with the remaining rim."""
    op.attributes["pads"] = to_attr([0] * (2 * len(pads)))
    op.attributes.pop("auto_pad", None)
    more = [[have - want for have, want in zip(g, p, strict=True)] for g, p in zip(given, pads, strict=True)]
    if tiling_of(op) is not None and any(e != ZERO for pair in more for e in pair):
        op.attributes[PADDING_ATTRIBUTE] = to_attr([_number(pair[k]) for k in (0, 1) for pair in more])


class _Nodes:
    """Inserts nodes before an op."""

    def __init__(self, before: Operation | None):
        assert before is not None
        # Tables must stay directly before their node.
        self.before = before.prev_op if isinstance(before.prev_op, TablesOp) else before

    def first(self, value: SSAValue) -> SSAValue:
        """Returns an image stored with channels last as one with channels first."""
        rank = len(dims_of(value.type))
        return self._transposed(value, [0, rank - 1, *range(1, rank - 1)])

    def last(self, value: SSAValue) -> SSAValue:
        """Returns an image with its channels last."""
        rank = len(dims_of(value.type))
        return self._transposed(value, [0, *range(2, rank), 1])

    def _transposed(self, value: SSAValue, perm: list[int]) -> SSAValue:
        dims = dims_of(value.type)
        return self._node("Transpose", [value], [dims[k] for k in perm], perm=perm)

    def padded(self, value: SSAValue, pads: Pads, fill: int | SSAValue) -> SSAValue:
        """Returns an image, channels first, with a rim of `fill` around it."""
        if not ImageLayout(pads).is_padded:
            return value
        dims = dims_of(value.type)
        low = [ZERO, ZERO, *(low for low, _ in pads)]
        high = [ZERO, ZERO, *(high for _, high in pads)]
        sizes = [d + a + b for d, a, b in zip(dims, low, high, strict=True)]
        says = {"pads": [*low, *high]}
        if fill == 0:
            return self._node("Pad", [value], sizes, says=says)
        if self._has_operands("Pad"):
            number = self._number(fill, element_of(value.type)) if isinstance(fill, int) else fill
            return self._node("Pad", [value], sizes, says=says, behind=[number])
        assert isinstance(fill, int)
        return self._node("Pad", [value], sizes, says=says, value=float(fill))

    def cut(self, stored: SSAValue, pads: Pads, kept: Pads | None = None) -> SSAValue:
        """Returns a stored image with channels first, without its rim, or with only the part of the rim in `kept`."""
        value = stored
        if kept is not None:
            pads = tuple((a - c, b - d) for (a, b), (c, d) in zip(pads, kept, strict=True))
        if ImageLayout(pads).is_padded:
            sizes = list(dims_of(stored.type))
            says: dict[str, list[Expr]] = {"starts": [], "ends": [], "axes": []}
            for axis, (low, high) in enumerate(pads, start=1):
                if low == high == ZERO:
                    continue
                sizes[axis] = sizes[axis] - low - high
                says["axes"].append(Expr.of(axis))
                says["starts"].append(low)
                # Negative or infinite ends, so that the sign of a run-time size does not matter.
                says["ends"].append(-high if high != ZERO else Expr.of(INFINITE))
            value = self._node("Slice", [value], sizes, says=says)
        return self.first(value)

    def _has_operands(self, name: str) -> bool:
        """True if the operands in question exist in the model's opset; False if they are attributes."""
        return (imported_opset(self.before, "") or OPERANDS_SINCE[name]) >= OPERANDS_SINCE[name]

    def _number(self, number: int, element: Attribute) -> SSAValue:
        """Returns a constant without dims."""
        op = make_constant(np.array(number, BY_ATTR[element].dtype))
        self._insert(op)
        return op.results[0]

    def _dims(self, values: Sequence[Expr]) -> SSAValue:
        op = DimsOp(values, tensor_of(i64, [len(values)]))
        self._insert(op)
        return op.result

    def _node(
        self,
        name: str,
        inputs: Sequence[SSAValue],
        dims: Sequence[Expr],
        says: Mapping[str, Sequence[Expr]] | None = None,
        behind: Sequence[SSAValue] = (),
        **attributes: Any,
    ) -> SSAValue:
        """Inserts a node. `says` are integers, as operands in later opsets; `behind` are operands after those."""
        if says and not self._has_operands(name):
            attributes |= {key: [_number(e) for e in given] for key, given in says.items()}
        elif says:
            inputs = [*inputs, *map(self._dims, says.values()), *behind]
        made = make_op(name, inputs, [tensor_of(element_of(inputs[0].type), dims)], attributes)
        noted = {str(k): v.owner.dims_attr for k, v in enumerate(inputs) if isinstance(v.owner, DimsOp)}
        if noted:
            made.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(noted)
        made.results[0].name_hint = inputs[0].name_hint
        self._insert(made)
        return made.results[0]

    def _insert(self, op: Operation) -> None:
        block = self.before.parent
        assert block is not None
        block.insert_op_before(op, self.before)


def _number(e: Expr) -> int:
    if e.constant is None:
        raise IgniterError(f"{ChooseLayouts.name}: {e} is not a constant; an attribute must be")
    return e.constant
