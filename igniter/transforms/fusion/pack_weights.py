"""`pack-weights`: packs constant operands of contractions into the layout of micro-kernels.

    %y = fusion.region @r0 (%a = %x : tensor<?x768xf32, ..>, %b = %w : tensor<768x3072xf32>) -> (..) {
      %0 = onnx.MatMul(%a, %b) : ..
becomes
    %p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x3072xf32> to tensor<192x768x16xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x768xf32, ..>, %b = %p : tensor<192x768x16xf32>) -> (..) {
      %1 = fusion.unpack %b [1 floordiv 16, 0, 1 mod 16] : tensor<192x768x16xf32> to tensor<768x3072xf32>
      %0 = onnx.MatMul(%a, %1) : ..

Panels fill 64 bytes of sums for every target, so one file of weights serves every CPU of a library. `fold_packs` turns
the packed weights into constants when the kernels exist; until then a region left to ONNX Runtime finds the plain
weights. The pass runs after `form-fusion-regions`. Every contraction with a constant operand gets a remark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.cost import is_widening
from igniter.analysis.fusion.graph import node_label
from igniter.dialects.fusion import PackOp, RegionOp, TablesOp, UnpackOp
from igniter.dialects.layouts import WORD, Layout, Part
from igniter.dialects.loop.panels import (
    SMALLEST_COLUMNS,
    are_dot_products,
    group_of,
    kind_of,
    panel_lanes,
    widened_kind,
)
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.convolution import phases_of
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, product
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class PackWeights(ModulePass):
    """Packs constant operands of contractions into panels of columns."""

    name = "pack-weights"
    one_rewrite = "an operand packed into panels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        for region in [r for r in op.walk() if isinstance(r, RegionOp)]:
            for node in list(region.block.ops):
                spec = spec_of(node) if isinstance(node, OnnxOp) else None
                if not isinstance(node, OnnxOp) or spec is None:
                    continue
                rules = (spec.packs, _pack), (spec.panels, _pack_plain), (spec.words, _pack_words)
                for rule, pack in (*rules, (spec.orders, _reorder)):
                    for index, dims in rule(node).items() if rule is not None else ():
                        if rewrites.is_spent:
                            return
                        reason = pack(region, node, index, dims)
                        if reason is None:
                            rewrites.count(node_label(node), f"operand {index} is packed")
                        _remark(ctx, node, index, reason)


def _remark(ctx: Context, node: OnnxOp, index: int, reason: str | None) -> None:
    if reason is None:
        remark(ctx, PackWeights.name, node_label(node), "applied", f"operand {index} is packed into panels")
    elif reason:
        remark(ctx, PackWeights.name, node_label(node), "missed", reason)


def _pack(region: RegionOp, node: OnnxOp, index: int, of: Sequence[int]) -> str | None:
    """Packs operand `index` of a node of `region` into panels. Returns the reason if it did not, or "" if it is no
    weight."""
    columns, *depths = of
    # A weight with fewer bits is widened before the product; the micro-kernel reads the narrow weight.
    user, place = _behind_widening(node, index)
    argument = user.operands[place]
    if not isinstance(argument, BlockArgument):
        return ""
    weight = region.inputs[argument.index]
    if constant_weight(weight) is None:
        return ""
    factors = (_behind_widening(node, k) for k in range(2))
    elements = [element_of(op.operands[k].type) for op, k in factors]
    sums = compute_type(element_of(node.results[0].type))
    dims = dims_of(argument.type)
    lanes = panel_lanes(sums)
    extents = dims[columns].constant, dims[depths[-1]].constant
    assert extents[0] is not None and extents[1] is not None, "a packed constant must have constant dims"
    other, own = elements[1 - index], elements[index]
    kind = kind_of(other, own, sums)
    if kind is None or extents[1] % group_of(kind):
        kind = widened_kind(other, own, sums) or kind
    if kind is None:
        return f"there is no micro-kernel for products of {elements[0]} and {elements[1]} in {sums}"
    group = group_of(kind)
    # The row of a window and its channels are summed together.
    depth, rounds = (product(dims[k] for k in ks).constant for ks in (depths[-2:], depths[:-2]))
    dots = are_dot_products(extents[0], depth, kind, rounds or 1)
    if dots:
        order = [*(k for k in range(len(dims)) if k not in of), *of]
        moved = [k for k in order if dims[k] != ONE]
        if moved != sorted(moved):
            read_packed(region, user, place, Layout(tuple(map(Part, order))))
    if dots or extents[0] < SMALLEST_COLUMNS:
        return f"{extents[0]} columns fill too small a part of a panel"
    if extents[1] % group:
        return f"a depth of {extents[1]} is not a multiple of the {group} steps of one instruction"
    # Phases are separate loops, like groups.
    columns_of_group = (extents[0] or 0) // (int(node.attr("group", 1)) * prod(phases_of(node)))
    blocks = columns_of_group if columns_of_group != extents[0] and columns_of_group % lanes else 0
    read_packed(region, user, place, Layout.panels(len(dims), columns, depths, lanes, group, blocks))
    return None


def _pack_plain(region: RegionOp, node: OnnxOp, index: int, of: Sequence[int], words: bool = False) -> str | None:
    """Packs an operand that no micro-kernel reads into panels. Returns "" if it is no weight."""
    argument = node.operands[index]
    if not isinstance(argument, BlockArgument) or constant_weight(region.inputs[argument.index]) is None:
        return ""
    lanes = panel_lanes(compute_type(element_of(node.results[0].type)))
    columns, *depths = of
    group = WORD if words else 1
    layout = Layout.panels(len(dims_of(argument.type)), columns, depths, lanes, group, words=words)
    read_packed(region, node, index, layout)
    return None


def _pack_words(region: RegionOp, node: OnnxOp, index: int, of: Sequence[int]) -> str | None:
    """Packs an operand of bytes into panels of words. Returns "" if it is no weight."""
    return _pack_plain(region, node, index, of, words=True)


def _reorder(region: RegionOp, node: OnnxOp, index: int, of: Sequence[int]) -> str | None:
    """Stores an operand in another order of its dims. Returns "" if it is no weight."""
    argument = node.operands[index]
    if not isinstance(argument, BlockArgument) or constant_weight(region.inputs[argument.index]) is None:
        return ""
    read_packed(region, node, index, Layout(tuple(map(Part, of))))
    return None


def read_packed(region: RegionOp, user: Operation, place: int, layout: Layout) -> None:
    """Replaces an operand of `user`, a weight from outside the region, by its packed form, unpacked."""
    argument = user.operands[place]
    assert isinstance(argument, BlockArgument)
    packed = _packed(region, region.inputs[argument.index], layout)
    inner = _argument(region, argument, packed)
    unpack = UnpackOp(inner, layout, argument.type)
    unpack.result.name_hint = argument.name_hint
    # Tables must stay directly before their node.
    region.block.insert_op_before(unpack, user.prev_op if isinstance(user.prev_op, TablesOp) else user)
    user.operands[place] = unpack.result
    if argument is not inner and argument.first_use is None:
        region.operands = [v for k, v in enumerate(region.operands) if k != argument.index]
        region.block.erase_arg(argument)


def _behind_widening(node: OnnxOp, index: int) -> tuple[Operation, int]:
    """Returns the op and operand index that read a node's operand before it is widened."""
    owner = node.operands[index].owner
    if isinstance(owner, OnnxOp) and is_widening(owner) and owner.results[0].has_one_use():
        return owner, 0
    return node, index


def _packed(region: RegionOp, weight: SSAValue, layout: Layout) -> SSAValue:
    """Returns the packed weight; regions with the same layout share it."""
    for use in weight.uses:
        if isinstance(use.operation, PackOp) and use.operation.layout == layout:
            return use.operation.result
    dims = layout.stored_dims(dims_of(weight.type))
    pack = PackOp(weight, layout, tensor_of(layout.stored_element(element_of(weight.type)), dims))
    pack.result.name_hint = weight.name_hint
    # Next to the weight: a region in a subgraph may take it from an outer graph.
    constant = weight.owner
    assert isinstance(constant, Operation) and constant.parent is not None
    constant.parent.insert_op_after(pack, constant)
    return pack.result


def _argument(region: RegionOp, beside: BlockArgument, value: SSAValue) -> BlockArgument:
    """Returns the argument of a region for `value`: an existing one, or a new one after that of the plain weight."""
    for given, argument in zip(region.inputs, region.block.args, strict=True):
        if given is value:
            return argument
    argument = region.block.insert_arg(value.type, beside.index + 1)
    argument.name_hint = beside.name_hint
    region.operands = [*region.operands[: argument.index], value, *region.operands[argument.index :]]
    return argument


@dataclass(frozen=True)
class Packed:
    """The values of a packed weight."""

    source: Weight
    layout: Layout

    def compute(self) -> np.ndarray[Any, Any]:
        """Returns the stored tensor; the last block of a dim is padded with zeros."""
        layout, plain = self.layout, self.source.array()
        if layout.divided is not None:
            dim, blocks = layout.divided
            plain = plain.reshape(*plain.shape[:dim], -1, blocks, *plain.shape[dim + 1 :])
            layout = layout.of_blocks()
        size = {part.dim: part.size or 1 for part in layout.parts}
        missing = [(0, -dim % size[k]) for k, dim in enumerate(plain.shape)]
        whole = np.pad(plain, missing) if any(after for _, after in missing) else plain
        order = layout.order(plain.ndim)
        split = [layout.parts[k] for k in order]
        dims = [p.size if p.inside else whole.shape[p.dim] // size[p.dim] for p in split]
        made = np.ascontiguousarray(whole.reshape(dims).transpose([order.index(k) for k in range(len(order))]))
        return made.view("<u4")[..., 0] if layout.words else made


def fold_packs(module: ModuleOp) -> int:
    """Replaces every packed weight by a constant that is computed when it is written. Returns their number."""
    found = [op for op in module.walk() if isinstance(op, PackOp)]
    taken: set[str] = set()
    for pack in found:
        weight = constant_weight(pack.source)
        assert weight is not None
        shape = [d.constant or 0 for d in dims_of(pack.result.type)]
        derived = Weight(shape, element_of(pack.result.type), derivation=Packed(weight, pack.layout))
        constant = make_constant(derived, _fresh_name(pack, taken))
        block = pack.parent
        assert block is not None
        block.insert_op_before(constant, pack)
        pack.result.replace_all_uses_with(constant.results[0])
        plain = pack.source.owner
        for op in (pack, plain):
            assert isinstance(op, Operation)
            if not any(r.uses for r in op.results):
                op.detach()
                op.erase()
    return len(found)


def _fresh_name(pack: PackOp, taken: set[str]) -> str:
    """Returns a name for the initializer: that of the plain weight followed by the layout."""
    constant = pack.source.owner
    assert isinstance(constant, Operation)
    own = text_of(constant.properties.get("initializer_name"), "weight")
    stem = name = f"{own}.{'.'.join(map(str, pack.layout.parts)).replace(' floordiv ', 'div').replace(' mod ', 'mod')}"
    while name in taken:
        name = f"{stem}.{len(taken)}"
    taken.add(name)
    return name
