"""The layout of the tensors between regions: a decision for a whole graph.

A convolution multiplies the channels of an image at every place of its window with the channels of its weight. If the
channels of a place are contiguous (*channels last*), it is a contraction for micro-kernels, and a row of the window is
one stretch of memory. So every tensor with an image of some convolution has this layout, with the padding of its
reading convolutions (zeros, or zero points where images are bytes). The network changes its layout only at its edges:
elementwise and channelwise ops take images in this layout.

Images are found as components: tensors connected through convolutions, and through ops of any layout. A Transpose or a
Reshape ends a component, and so does a node left to ONNX Runtime. Components without a convolution keep the layout of
the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from igniter.analysis.fusion.cost import op_kind
from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops.convolution import has_panels, is_pointwise, phases_of, slides_of
from igniter.dialects.onnx.ops.integer_convolution import IMAGE_ZERO, zero_point
from igniter.dialects.onnx.ops.sliding import Slide
from igniter.dialects.onnx.ops.winograd import tiling_of
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

CONVOLUTIONS = frozenset(("Conv", "ConvInteger", "com.microsoft.FusedConv"))
"""Ops on images with channels last."""

IN_ANY_LAYOUT = frozenset(
    (
        "AveragePool",
        "BatchNormalization",
        "Concat",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "LpPool",
        "GlobalLpPool",
        "GroupNormalization",
        "InstanceNormalization",
        "LRN",
        "LpNormalization",
        "MaxPool",
        "PRelu",
        "Pad",
        "Resize",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Upsample",
    )
)
"""Ops, besides elementwise ones and reductions, on each channel separately, or along named axes."""

Pads = tuple[tuple[Expr, Expr], ...]
"""The padding before and behind each spatial axis of an image."""


@dataclass(frozen=True)
class ImageLayout:
    """Channels last, with stored padding around the spatial axes."""

    pads: Pads
    fill: int = 0
    """The value of the padding: 0, or the zero point of an image of bytes."""

    @property
    def is_padded(self) -> bool:
        """True if the image has stored padding."""
        return any(p != ZERO for pair in self.pads for p in pair)

    def holds(self, pads: Pads, fill: int | None) -> bool:
        """True if the stored padding is at least `pads` at each end, and holds the value `fill` (`None`: computed)."""
        if fill != self.fill and ImageLayout(pads).is_padded:
            return False
        pairs = zip((p for pair in self.pads for p in pair), (p for pair in pads for p in pair), strict=True)
        left = [(have - want).constant for have, want in pairs]
        return all(number is not None and number >= 0 for number in left)


class _Components:
    """Sets of connected values."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        root = value
        while (above := self._parent.get(root, root)) is not root:
            root = above
        while (above := self._parent.get(value, value)) is not root:
            self._parent[value], value = root, above
        return root

    def join(self, a: SSAValue, b: SSAValue) -> None:
        a, b = self.find(a), self.find(b)
        if a is not b:
            self._parent[a] = b


BLOCK_CHANNELS = 16
"""The fewest channels that a program of a GPU reads side by side: the least lanes of a product of blocks."""


def images_of(block: Block, *, blocks: bool = False) -> dict[SSAValue, ImageLayout]:
    """Returns the tensors between the regions of a block stored with channels last, and their layouts; the others keep
    the order of their dims. `blocks`: the layouts for a GPU, whose programs work on blocks of
    elements: without padding."""
    regions = [op for op in block.ops if isinstance(op, RegionOp)]
    joined, wanted = _joined(regions)
    components = {joined.find(value) for value in wanted}
    if blocks:
        return _images_in_blocks(block, regions, joined, components)
    components -= _in_order(regions, joined).keys()
    found: dict[SSAValue, ImageLayout] = {}
    passed = (v for region in regions for v in (*region.inputs, *region.results))
    for value in dict.fromkeys(passed):
        if not _is_image(value) or _is_constant(value) or joined.find(value) not in components:
            continue
        if isinstance(value.owner, RegionOp) or not _only_quantized(value, regions):
            found[value] = _layout_of(value, regions)
    return found


def _images_in_blocks(
    block: Block, regions: Iterable[RegionOp], joined: _Components, components: set[SSAValue]
) -> dict[SSAValue, ImageLayout]:
    """Returns the layouts for programs on blocks. Their masks cost less than stored padding, and they write any order
    of dims. So a tensor read only outside of regions keeps the model's order, and so does one from outside with too few
    channels for a block."""
    found: dict[SSAValue, ImageLayout] = {}
    for value in dict.fromkeys(v for region in regions for v in (*region.inputs, *region.results)):
        if not _is_image(value) or _is_constant(value) or joined.find(value) not in components:
            continue
        dims = dims_of(value.type)
        inside = any(isinstance(use.operation, RegionOp) and use.operation.parent is block for use in value.uses)
        few = dims[1].constant is not None and dims[1].constant < BLOCK_CHANNELS
        if inside if isinstance(value.owner, RegionOp) else not few:
            found[value] = ImageLayout(tuple((ZERO, ZERO) for _ in dims[2:]))
    return found


FEW_RESULTS, MANY_CHANNELS = 32, 32
"""The most output channels and the least input channels with which a lone pointwise convolution keeps the model's
layout. Time by ONNX Runtime's with the model's layout and with channels last (one thread of a Zen 3,
interleaved): 64 to 1 channels of 128 x 128 0.19 and 0.97, 96 to 24 of 56 x 56 0.94 and 1.26, 512 to 19 of 33 x 33 1.02
and 1.26; but 3 to 16 of 128 x 128 1.45 and 0.82, 128 to 128 of 28 x 28 1.23 and 1.02, 2048 to 512 of 7 x 7 1.28 and
1.03."""


def _joined(regions: Iterable[RegionOp]) -> tuple[_Components, list[SSAValue]]:
    """Returns the components of the values in and between regions, and an image of each convolution."""
    joined = _Components()
    wanted: list[SSAValue] = []
    for region in regions:
        for argument, operand in zip(region.block.args, region.inputs, strict=True):
            joined.join(argument, operand)
        for result, value in zip(region.results, region.yielded, strict=True):
            joined.join(result, value)
        wanted += _join_images(region.block.ops, joined)
    return joined, wanted


def in_order(block: Block) -> set[Operation]:
    """Returns the convolutions of a block's regions that read and write the model's layout."""
    regions = [op for op in block.ops if isinstance(op, RegionOp)]
    return set(_in_order(regions, _joined(regions)[0]).values())


def _in_order(regions: Iterable[RegionOp], joined: _Components) -> dict[SSAValue, Operation]:
    """Returns the components whose only convolution keeps the model's layout, with that convolution. One of many
    channels to few, or along one axis with short windows, multiplies a weight with a matrix of channels and places,
    whose places are contiguous as the model has them, or with its windows: changing the layout of the image or the
    results would take longer."""
    found: dict[SSAValue, list[OnnxOp]] = {}
    for region in regions:
        for op in region.block.ops:
            if op_name(op) in CONVOLUTIONS:
                found.setdefault(joined.find(op.operands[0]), []).append(cast("OnnxOp", op))
    return {root: first for root, (first, *more) in found.items() if not more and _keeps_order(first)}


def _keeps_order(op: OnnxOp) -> bool:
    """True if a lone convolution should read and write the model's layout."""
    if op_name(op) == "ConvInteger":
        return False
    if _has_short_sums(op):
        return True
    if int(op.attr("group", 1)) != 1:
        return _is_plane_by_plane(op)
    return _has_few_results(op) or _has_short_windows(op)


SHORT_SUM, SHORT_IN_LARGE_IMAGE, LARGE_IMAGE, SMALL_IMAGE = 48, 64, 2048, 64
"""A lone pointwise convolution keeps the model's layout if its sums are no longer than `SHORT_SUM`, or than
`SHORT_IN_LARGE_IMAGE` in an image of `LARGE_IMAGE` places; in groups, if the image has `SMALL_IMAGE` places. It has too
few products to pay for a change of layout. Time by
ONNX Runtime's with the model's layout and with channels last (one thread of a Zen 3, interleaved): 24 to 144 channels
of 56 x 56 0.93 and 1.18, 33 to 65 of 20 x 20 0.97 and 1.43, 4 to 64 of 56 x 56 0.61 and 1.09, 64 to 64 of 56 x 56 0.87
and 1.27; but 64 to 512 of 28 x 28 1.79 and 1.25, 96 to 96 of 28 x 28 1.17 and 1.01. In groups: 116 channels in 4 of
28 x 28 0.90 and 1.63, 240 to 480 in 8 of 14 x 14 1.06 and 1.56; but 1,024 to 2,048 in 8 of 7 x 7 1.25 and 1.12."""


def _has_short_sums(op: OnnxOp) -> bool:
    """True if a pointwise convolution sums few channels, or is in groups."""
    if not is_pointwise(op):
        return False
    channels = dims_of(op.operands[1].type)[1].constant
    places = product(slide.size for slide in slides_of(op)).constant
    if channels is None:
        return False
    if int(op.attr("group", 1)) != 1:
        return channels > 1 and places is not None and places >= SMALL_IMAGE
    return channels <= SHORT_SUM or (channels <= SHORT_IN_LARGE_IMAGE and places is not None and places >= LARGE_IMAGE)


WIDE_ROW, NARROW_WINDOW = 14, 3
"""The least places in a row of the image, and the most columns of a window, with which a lone depthwise convolution
keeps the model's layout. Time by ONNX Runtime's with the model's layout and with channels last (one thread of a Zen 3,
interleaved): 3 x 3 of 56 x 56 0.92 and 1.05, of 14 x 14 1.14 and 1.62, of 7 x 7 1.33 and 1.04; 11 x 1 of 32 x 32 0.91
and 1.32, 1 x 11 2.7 and 0.94; transposed, 4 x 4 by stride 2, 0.33 and 1.6; 3 x 3 by stride 2 2.5 and 1.2."""


DILATED_ROW = 32
"""The least places in a row of the image with which a lone dilated depthwise convolution keeps the model's layout. Time
by ONNX Runtime's with the model's layout and with channels last (3 x 3, one thread of a Zen 3, interleaved): dilated by
6 to 18, 33 x 33 and 65 x 65 0.5 to 0.7 and 1.8 to 2.2; by 2, 40 x 40 0.80 and 1.24, 28 x 28 1.35 and 1.19; by 4, 28 x
28 1.11 and 1.23, 14 x 14 1.57 and 1.06."""


def _is_plane_by_plane(op: OnnxOp) -> bool:
    """True if a depthwise convolution moves a narrow window by single steps along rows that fill vectors."""
    weight = dims_of(op.operands[1].type)
    if len(weight) != 4 or weight[1] != ONE or is_pointwise(op):
        return False
    *_, window = slides = slides_of(op)
    if any(s.stride != 1 for s in slides):
        return False
    width, row = window.kernel.constant, window.size.constant
    wide = WIDE_ROW if all(s.dilation == 1 for s in slides) else DILATED_ROW
    return width is not None and width <= NARROW_WINDOW and row is not None and row >= wide


def _has_short_windows(op: OnnxOp) -> bool:
    """True if a convolution along one axis has at most as many elements in a window as results. `pack-operands` copies
    its windows, and its results need not be turned."""
    sizes = [d.constant for d in dims_of(op.operands[1].type)]
    if len(sizes) != 3 or is_pointwise(op) or any(n is None for n in sizes):
        return False
    results, channels, window = (n or 0 for n in sizes)
    return channels * window <= results


def _has_few_results(op: OnnxOp) -> bool:
    """True if a convolution is pointwise, of many channels to few."""
    if not is_pointwise(op):
        return False
    results, channels = (d.constant for d in dims_of(op.operands[1].type)[:2])
    return results is not None and channels is not None and results <= FEW_RESULTS and channels >= MANY_CHANNELS


def beside_convolutions(ops: Iterable[Operation]) -> set[Operation]:
    """Returns the transposed convolutions in a component with a convolution: if such a node is computed as a
    convolution too, nothing around it changes its layout."""
    nodes, joined = list(ops), _Components()
    transposed = [op for op in nodes if op_name(op) == "ConvTranspose"]
    for op in transposed:
        joined.join(op.operands[0], op.results[0])
    components = {joined.find(value) for value in _join_images(nodes, joined)}
    return {op for op in transposed if joined.find(op.operands[0]) in components}


def _join_images(ops: Iterable[Operation], joined: _Components) -> list[SSAValue]:
    """Joins values of a common layout, and returns an image of each convolution."""
    wanted: list[SSAValue] = []
    for op in ops:
        values = list(_images_in(op))
        for a, b in pairwise(values):
            joined.join(a, b)
        if op_name(op) in CONVOLUTIONS:
            wanted += values[:1]
    return wanted


def _images_in(op: Operation) -> Iterator[SSAValue]:
    """Yields the operands and results of a node with a common layout; none if its semantics depend on the layout."""
    name = op_name(op)
    if name in CONVOLUTIONS:
        yield from (v for v in (op.operands[0], *op.operands[3:4], op.results[0]) if _is_image(v))
        return
    if name not in IN_ANY_LAYOUT and op_kind(op) not in ("elementwise", "reduction"):
        return
    shaped = as_tensor(op.results[0].type) if op.results else None
    rank = shaped.get_num_dims() if shaped is not None else 0
    for value in (*op.operands, *op.results):
        tensor = as_tensor(value.type)
        if _is_image(value) and tensor is not None and tensor.get_num_dims() == rank:
            yield value


def _is_image(value: SSAValue) -> bool:
    tensor = as_tensor(value.type)
    return tensor is not None and has_dims(tensor) and tensor.get_num_dims() >= 3 and not _is_constant(value)


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "onnx.Constant"


def _layout_of(value: SSAValue, regions: Iterable[RegionOp]) -> ImageLayout:
    """Returns the layout with the widest padding, at each end, of the convolutions reading `value` at their regions'
    inputs, among those with the same fill as the first."""
    found = [(ZERO, ZERO)] * (len(dims_of(value.type)) - 2)
    kept: int | None = None
    for op in _convolutions_of(value, regions):
        wanted, fill = rim_of(op), fill_of(op)
        # Size-dependent padding is added in the region of the reader: from such an image its readers could not derive
        # its size.
        if not all(p.constant is not None for pair in wanted for p in pair) or not ImageLayout(wanted).is_padded:
            continue
        kept = fill if kept is None else kept
        if fill is not None and fill == kept:
            found = [(_more(a, c), _more(b, d)) for (a, b), (c, d) in zip(found, wanted, strict=True)]
    return ImageLayout(tuple(found), kept or 0)


def _only_quantized(value: SSAValue, regions: Iterable[RegionOp]) -> bool:
    """True if regions only quantise `value`. A value from outside of regions is then read in its own layout: changing
    the layout of its bytes costs a quarter."""
    return all(op_name(use.operation) == "QuantizeLinear" for use in _uses_in(value, regions))


def _uses_in(value: SSAValue, regions: Iterable[RegionOp]) -> Iterator[Use]:
    """Yields the uses of `value` in the regions with it as an input."""
    for region in regions:
        for argument, operand in zip(region.block.args, region.inputs, strict=True):
            if operand is value:
                yield from argument.uses


def _convolutions_of(value: SSAValue, regions: Iterable[RegionOp]) -> Iterator[OnnxOp]:
    """Yields the convolutions on `value` as an input of their regions."""
    for use in _uses_in(value, regions):
        if use.index == 0 and op_name(use.operation) in CONVOLUTIONS:
            yield cast("OnnxOp", use.operation)


def _more(a: Expr, b: Expr) -> Expr:
    return max(a, b, key=lambda e: e.constant or 0)


def pads_of(op: OnnxOp) -> Pads:
    """Returns the padding of a convolution to store with its image."""
    slides = slides_of(op)
    if leaves_out_padding(op):
        return tuple((ZERO, ZERO) for _ in slides)
    return tuple((slide.low, slide.high) for slide in slides)


def leaves_out_padding(op: OnnxOp) -> bool:
    """True if a convolution reads an image without padding: guards bound the loops over its window, so the elements in
    the padding are not multiplied. Only micro-kernels of f32 have such bounds. Only dilated windows see enough padding:
    in others, the elements of a row of the window are one stretch of memory, and one call multiplies them."""
    slides = slides_of(op)
    if op_name(op) == "ConvInteger" or tiling_of(op) is not None or phases_of(op) or not has_panels(op):
        return False
    if not all(isinstance(element_of(v.type), Float32Type) for v in op.operands[:2]) or not _is_stored(op.operands[1]):
        return False
    depth = dims_of(op.operands[1].type)[1].constant
    if depth is None or depth < FEWEST_STEPS or all(s.dilation == 1 or s.kernel == ONE for s in slides):
        return False
    parts = [_part_inside(slide) for slide in slides]
    return None not in parts and prod(p for p in parts if p is not None) <= MOST_SEEN


FEWEST_STEPS, MOST_SEEN, UNKNOWN_SIZE = 32, 0.93, 64
"""The fewest channels of a convolution that leaves out its padding, the largest part of the elements of its windows
that are inside the image, and the size assumed for images of unknown size. Time by ONNX Runtime's with and without the
padding, 3 x 3, 128 to 64 channels of 33 x 33 (one thread of a Zen 3, interleaved): dilated by 24 2.9 and 0.7, by 12 1.4
and 0.8, by 4 (0.84 of the elements are inside) 1.15 and 0.95, by 2 (0.92) 1.07 and 1.03."""


def _part_inside(slide: Slide) -> float | None:
    """Returns the part of the elements of all windows along an axis that are inside the image; None for unknown or
    negative padding."""
    low, high, kernel = (e.constant for e in (slide.low, slide.high, slide.kernel))
    if low is None or high is None or kernel is None or min(low, high) < 0:
        return None
    size = slide.size.constant
    size = UNKNOWN_SIZE if size is None else size
    count = (size + low + high - (kernel - 1) * slide.dilation - 1) // slide.stride + 1
    if count < 1 or kernel < 1:
        return None
    places = (w * slide.stride + k * slide.dilation - low for w in range(count) for k in range(kernel))
    return sum(0 <= at < size for at in places) / (count * kernel)


def rim_of(op: OnnxOp) -> Pads:
    """Returns the stored padding for a convolution: its own padding, and for a convolution in tiles enough for the last
    tiles."""
    tiling = tiling_of(op)
    if tiling is None:
        return pads_of(op)
    return tuple((slide.low, tiling.behind(axis, slide)) for axis, slide in enumerate(slides_of(op)))


def _is_stored(value: SSAValue) -> bool:
    """True if an operand in a region is a weight of the model."""
    if isinstance(value, BlockArgument):
        region = value.block.parent_op()
        return isinstance(region, RegionOp) and _is_constant(region.inputs[value.index])
    return _is_constant(value)


def fill_of(op: OnnxOp) -> int | None:
    """Returns the value of a convolution's padding: 0, or the zero point of an image of bytes; `None` if computed."""
    if op_name(op) != "ConvInteger":
        return 0
    found = zero_point(op, IMAGE_ZERO)
    return None if found is None else int(found[0])


def summary(images: Mapping[SSAValue, ImageLayout]) -> str:
    """Describes the layouts in words."""
    padded = sum(layout.is_padded for layout in images.values())
    return f"{len(images)} tensors have their channels last, {padded} of them with padding"
