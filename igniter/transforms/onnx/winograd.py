"""`winograd`: convolutions of 3 x 3 with fewer multiplications, on request (`igniter compile --winograd`).

    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>}
becomes, with `tile=4`
    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>, igniter.winograd = 4 : i64}

A marked convolution is left to no one else: it becomes a region, with what follows it, and its lowering makes the
tiles, the products and the results (`igniter.dialects.onnx.ops.winograd`; the method and its sources are those of
`igniter.dialects.onnx.ops.minimal_filters`). It stays a Conv with its plain weight: ONNX Runtime can run it. A kernel
gets the weight transformed and packed, as a table that is computed when the compiled model is written.

A tile of m x m results takes (m + 2)^2 products for 9 m^2: 16 for 36, or 36 for 144. What this costs:

* Rounding. The bound on the error is that of a direct sum, times 7 for tiles of 2 x 2 and times 63 for 4 x 4; the
  error for random data is about half and about twice that of a direct sum in order. The remark on each node says so.
* A tile is computed as a whole, so what is not finite in it makes NaN of all its results, also of those whose windows
  do not see it, and what is larger than 3 % of the greatest number may overflow (docs/numerics.md).
* The elements of tiles go through memory. A convolution where that, and reading more weight, takes longer than what is
  saved, is left as it is, unless `force` is set. How long things take is `Effort`.

`tile` is the largest that may be used: of 2 and 4 that which saves more, with `force` that which is named. The pass
stands at the end of the ONNX level, where shapes are known and weights are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.typical_sizes import NONE, TypicalSizes, sizes_of
from igniter.dialects.loop import element_bytes
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.minimal_filters import FILTERS, TAPS, MinimalFilter
from igniter.dialects.onnx.ops.sliding import spatial_ints
from igniter.dialects.onnx.registry import WINOGRAD_ATTRIBUTE
from igniter.dialects.sym import dims_of, element_of
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrites import budget
from igniter.transforms.onnx.onnx_rewriting import known_dims, operand

CONVOLUTIONS = frozenset(("Conv", "com.microsoft.FusedConv"))

TYPICAL_SIZE = 56
"""What a height or a width that only a run knows is taken for, where no size is given; a batch for one image. It is a
guess at models: that is the size of the first images of most that have convolutions of 3 x 3 one after the other."""


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Computes convolutions of 3 x 3 in tiles of up to `tile` x `tile` results, with fewer multiplications."""

    name = "winograd"
    one_rewrite = "a convolution that is computed in tiles"

    tile: int = 4
    """2 or 4."""
    force: bool = False
    """Whether a convolution is computed so that takes longer."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.tile not in FILTERS:
            listed = " or ".join(map(str, FILTERS))
            raise IgniterError(f"winograd: tile is {listed}, not {self.tile}")
        machine, given, count = machine_of(ctx), TypicalSizes(tuple(sizes_of(ctx).items())), 0
        found = [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in CONVOLUTIONS]
        for node in found:
            chosen = self._choose(node, machine, given)
            if isinstance(chosen, str):
                remark(ctx, self.name, node.node_name, "missed", chosen)
            elif budget(ctx, self.name).take(node.node_name, "it is computed in tiles"):
                node.attributes[WINOGRAD_ATTRIBUTE] = IntegerAttr(chosen.results, i64)
                count += 1
                remark(ctx, self.name, node.node_name, "applied", _said_of(chosen), **_details(chosen))
        why = "" if found else ": the model has none"
        remark(ctx, self.name, "", "note", f"{count} of {len(found)} convolutions in tiles{why}", count=count)

    def _choose(self, node: OnnxOp, machine: MachineModel, given: TypicalSizes) -> MinimalFilter | str:
        """What a convolution is computed by, or why it stays as it is."""
        reason = shape_reason(node)
        if reason is not None:
            return reason
        if self.force:
            return FILTERS[self.tile]
        efforts = [Effort.of(node, f, machine, given) for size, f in FILTERS.items() if size <= self.tile]
        best = max(efforts, key=lambda e: e.gain)
        return best.filter if best.gain > 0 else f"{best}; force=true takes it all the same"


def _said_of(chosen: MinimalFilter) -> str:
    m, products = chosen.results, chosen.size**2
    return (
        f"in tiles of {m} x {m}: {products} products for {(TAPS * m) ** 2}, and at most {chosen.amplification:.0f} "
        f"times the error of a direct sum, for random data about {chosen.usual_error:g} times"
    )


def _details(chosen: MinimalFilter) -> dict[str, float]:
    return {"tile": chosen.results, "amplification": round(chosen.amplification, 1)}


# -- what can be ------------------------------------------------------------------------------------------------------


def shape_reason(node: OnnxOp) -> str | None:
    """Why a convolution cannot be computed in tiles; None when it can."""
    data, weight = operand(node, 0), operand(node, 1)
    if data is None or weight is None or not known_dims(data) or not known_dims(weight):
        return "its shapes are not known"
    rank, window = len(dims_of(data.type)) - 2, [d.constant for d in dims_of(weight.type)[2:]]
    if rank != 2 or window != [TAPS, TAPS]:
        return f"its windows are {_times(window)}, not 3 x 3"
    for name, says in (("strides", "its windows are {} apart"), ("dilations", "its windows are dilated by {}")):
        given = spatial_ints(node, name, rank, 1)
        if given != [1, 1]:
            return says.format(_times(given))
    if int(node.attr("group", 1)) != 1:
        return f"it has {node.attr('group')} groups, whose channels do not meet"
    if not isinstance(element_of(data.type), (Float32Type, Float64Type)):
        return f"its elements are {element_of(data.type)}, which have too few bits for what tiles add up"
    if constant_weight(weight) is None:
        return "its weight is no constant, which could be transformed at compile time"
    spec = spec_of(node)
    return spec.legal(node) if spec is not None and spec.legal is not None else None


def _times(sizes: list[int | None] | list[int]) -> str:
    return " x ".join("?" if s is None else str(s) for s in sizes)


# -- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """What a convolution in tiles saves, in multiplications, and what it moves more than a direct one, in elements."""

    filter: MinimalFilter
    saved: int
    moved: int
    move: int
    """How many multiplications take as long as to move an element: the machine's `move_products`, whose defaults were
    measured on a Sapphire Rapids, with one thread, where both ways took as long."""

    @staticmethod
    def of(node: OnnxOp, found: MinimalFilter, machine: MachineModel, given: TypicalSizes = NONE) -> Effort:
        """The effort for the sizes of a node; for symbols those that are given, or else typical ones."""
        result = node.results[0].type
        batch, outs, height, width = _sizes(node, given)
        channels = dims_of(node.operands[1].type)[1].constant or 1
        m, products = found.results, found.size**2
        tiles = batch * -(-height // m) * -(-width // m)
        pairs = channels * outs
        saved = (batch * height * width * TAPS**2 - tiles * products) * pairs
        # Tiles and products, the padded image and the results in tiles: each is written and read again.
        images = tiles * m * m * (channels + outs)
        points = tiles * products * (channels + outs)
        weights = products * pairs
        moved = 2 * (images + points) + weights - TAPS**2 * pairs
        size = (points + weights) * element_bytes(element_of(result))
        return Effort(found, saved, moved, machine.move_products(size))

    @property
    def gain(self) -> int:
        """What is left of what is saved, in multiplications."""
        return self.saved - self.moved * self.move

    def __str__(self) -> str:
        m = self.filter.results
        return (
            f"tiles of {m} x {m} save {self.saved:,} multiplications and move {self.moved:,} elements more, each as "
            f"long as {self.move}"
        )


def _sizes(node: OnnxOp, given: TypicalSizes) -> Iterator[int]:
    """The dims of the result, with those in the place of symbols that are given or typical."""
    for dim, typical in zip(dims_of(node.results[0].type), (1, 1, TYPICAL_SIZE, TYPICAL_SIZE), strict=True):
        known = given.known(dim)
        yield typical if known is None else known


__all__ = ["Effort", "Winograd", "shape_reason"]
