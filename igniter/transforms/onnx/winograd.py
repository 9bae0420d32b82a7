"""`winograd`: convolutions of 3 x 3 with fewer multiplications, unless `igniter compile --winograd off` says otherwise.

    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>}
becomes, in tiles of 4 x 4 results, of which a row of 14 are made at a time,
    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>, igniter.winograd = array<i64: 4, 1, 14>}

A marked convolution is left to no one else: it becomes a region, with what follows it, and its lowering makes the
tiles, the products and the results (`igniter.dialects.onnx.ops.winograd`; the method and its sources are those of
`igniter.dialects.onnx.ops.minimal_filters`). It stays a Conv with its plain weight: ONNX Runtime can run it. A kernel
gets the weight transformed and packed, as a table that is computed when the compiled model is written.

A tile of m x m results takes (m + 2)^2 products for 9 m^2: 16 for 36, or 36 for 144. What this costs:

* Rounding. The bound on the error is that of a direct sum, times 7 for tiles of 2 x 2 and times 63 for 4 x 4; the
  error for random data is about half and about twice that of a direct sum in order. The remark on each node says so.
  Tiles whose usual error is not `MARGIN` times smaller than `tolerance` are not taken.
* A tile is computed as a whole, so what is not finite in it, or is larger than 3 % of the greatest number, reaches
  results whose windows do not see it. Where a result of a tile is not finite, the tile is computed again, window by
  window (docs/numerics.md): one more pass over the results, which costs less than 1 %.
* The elements of tiles are moved. A convolution where that, and reading more weight, takes longer than what is saved,
  is left as it is, unless `force` is set. How long things take is `Effort`, and which tiles are made at a time is what
  takes least by it.
* The transformed weight is 1.8 or 4 times the weight. Where those of all convolutions would take more than `memory`
  times what the weights of the model do, and more than 256 MiB, they go to the convolutions that save most for a byte.

`tile` is the largest that may be used: of 2 and 4 that which saves more, with `force` that which is named. The pass
stands at the end of the ONNX level, where shapes are known and weights are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.typical_sizes import NONE, TypicalSizes, sizes_of
from igniter.dialects.loop import element_bytes
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.minimal_filters import FILTERS, TAPS, MinimalFilter
from igniter.dialects.onnx.ops.sliding import spatial_ints
from igniter.dialects.onnx.ops.winograd import Tiling
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

SHORT_BAND = 7
"""The tiles of a band at least, where an image has as many: with fewer rows, micro-kernels wait for panels rather than
multiply."""

MARGIN = 4
"""How many times smaller than the tolerance the usual error of tiles has to be."""

LITTLE_MEMORY = 1 << 28
"""Bytes that tiles may add to any model: where a model is small, how many times larger it becomes is no matter."""

NEARLY = 0.97
"""Of bands of which one is not faster than another by more than this, the smaller: there are more to share out."""


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Computes convolutions of 3 x 3 in tiles of up to `tile` x `tile` results, with fewer multiplications."""

    name = "winograd"
    one_rewrite = "a convolution that is computed in tiles"

    tile: int = 4
    """2 or 4."""
    force: bool = False
    """Whether a convolution is computed so that takes longer."""
    tolerance: float = 1e-4
    """The error that is allowed, relative to the largest result."""
    rows: int = 0
    """The tiles of a band from top to bottom; 0: those that take least."""
    columns: int = 0
    """The same, from left to right."""
    memory: float = 1.0
    """How much more the weights may take for all tiles together, as a multiple of the weights of the model; where that
    is less than `LITTLE_MEMORY`, so much."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.tile not in FILTERS:
            listed = " or ".join(map(str, FILTERS))
            raise IgniterError(f"winograd: tile is {listed}, not {self.tile}")
        machine, given, count = machine_of(ctx), TypicalSizes(tuple(sizes_of(ctx, op).items())), 0
        found = [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in CONVOLUTIONS]
        candidates = {node: self._candidate(node, machine, given) for node in found}
        within = self._within_memory(op, [c for c in candidates.values() if isinstance(c, Candidate)])
        for node, candidate in candidates.items():
            chosen = candidate if isinstance(candidate, str) else within[candidate]
            # Of those only that are left: the whole weight is read for it.
            if isinstance(chosen, Tiling) and not _is_finite(node):
                chosen = "its weight is not finite, and no tile would be"
            if isinstance(chosen, str):
                remark(ctx, self.name, node.node_name, "missed", chosen)
            elif budget(ctx, self.name).take(node.node_name, "it is computed in tiles"):
                node.attributes[WINOGRAD_ATTRIBUTE] = chosen.to_attr()
                count += 1
                remark(ctx, self.name, node.node_name, "applied", _said_of(chosen.filter), **_details(chosen))
        why = "" if found else ": the model has none"
        remark(ctx, self.name, "", "note", f"{count} of {len(found)} convolutions in tiles{why}", count=count)

    def _candidate(self, node: OnnxOp, machine: MachineModel, given: TypicalSizes) -> Candidate | str:
        """The ways to compute a convolution in tiles, or why it stays as it is."""
        reason = shape_reason(node)
        if reason is not None:
            return reason
        sizes = [self.tile] if self.force else [size for size in FILTERS if size <= self.tile]
        exact = [FILTERS[size] for size in sizes if self.force or self._is_exact(node, FILTERS[size])]
        if not exact:
            return f"the error of its tiles is not {MARGIN} times less than {self.tolerance:g} of its results"
        layer = Layer.of(node, given)
        efforts = [best_effort(self._tilings(layer, found), layer, machine) for found in exact]
        efforts.sort(key=lambda e: e.total)
        direct = Effort.direct(layer, machine)
        if not self.force and efforts[0].total >= direct:
            return f"{efforts[0]}; force=true takes it all the same"
        return Candidate(layer, tuple(e for e in efforts if self.force or e.total < direct), direct)

    def _within_memory(self, module: ModuleOp, candidates: list[Candidate]) -> dict[Candidate, Tiling | str]:
        """What each is computed by, those first that save most for the memory that their weights take."""
        weights = (w for op in module.walk() if op.results and (w := constant_weight(op.results[0])) is not None)
        most = left = max(LITTLE_MEMORY, int(sum(w.nbytes for w in weights) * self.memory))
        found: dict[Candidate, Tiling | str] = {}
        for candidate in sorted(candidates, key=lambda c: c.worth, reverse=True):
            fits = [e for e in candidate.efforts if self.force or candidate.layer.memory(e.tiling) <= left]
            if fits:
                found[candidate] = fits[0].tiling
                left -= candidate.layer.memory(fits[0].tiling)
            else:
                more = candidate.layer.memory(candidate.efforts[0].tiling)
                found[candidate] = (
                    f"its weight takes {more >> 20} MiB in tiles, of {most >> 20} for all convolutions, which go to "
                    "others that save more; memory=.. allows for more, as a multiple of the model's weights"
                )
        return found

    def _is_exact(self, node: OnnxOp, found: MinimalFilter) -> bool:
        channels = dims_of(node.operands[1].type)[1].constant or 1
        unit = 2.0**-53 if isinstance(element_of(node.results[0].type), Float64Type) else 2.0**-24
        return found.expected_error(channels, unit) * MARGIN <= self.tolerance

    def _tilings(self, layer: Layer, found: MinimalFilter) -> list[Tiling]:
        """The bands that may be made: parts of a row of tiles, or some rows. Of an image whose width only a run knows
        a row, which is what its width is: any number of tiles would be too many for most."""
        if not layer.is_known:
            return [Tiling(found, self.rows or 1, self.columns)]
        down, across = (max(1, -(-size // found.results)) for size in (layer.height, layer.width))
        bands = [(1, -(-across // parts)) for parts in range(across, 0, -1)]
        bands += [(-(-down // parts), across) for parts in range(down, 0, -1)]
        least = min(SHORT_BAND, max(rows * columns for rows, columns in bands))
        named = {(self.rows or r, self.columns or c) for r, c in bands if r * c >= least}
        return [Tiling(found, rows, columns) for rows, columns in sorted(named)]


def _said_of(chosen: MinimalFilter) -> str:
    m, products = chosen.results, chosen.size**2
    return (
        f"in tiles of {m} x {m}: {products} products for {(TAPS * m) ** 2}, and at most {chosen.amplification:.0f} "
        f"times the error of a direct sum, for random data about {chosen.usual_error:g} times"
    )


def _details(chosen: Tiling) -> dict[str, float | str]:
    found = chosen.filter
    band = f"{chosen.rows}x{chosen.columns or '?'}"
    return {"tile": found.results, "band": band, "amplification": round(found.amplification, 1)}


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


def _is_finite(node: OnnxOp) -> bool:
    """Whether all of the weight is, as far as its bytes are there."""
    import numpy as np

    weight = constant_weight(node.operands[1])
    return weight is None or weight.elided or bool(np.isfinite(weight.array()).all())


def _times(sizes: list[int | None] | list[int]) -> str:
    return " x ".join("?" if s is None else str(s) for s in sizes)


# -- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The sizes of a convolution: of its result, and its channels."""

    batch: int
    outs: int
    height: int
    width: int
    channels: int
    bytes: int
    """Of an element."""
    is_known: bool
    """Whether the height and the width are numbers."""

    @staticmethod
    def of(node: OnnxOp, given: TypicalSizes = NONE) -> Layer:
        """Those of a node; for symbols those that are given, or else typical ones."""
        result = node.results[0].type
        batch, outs, height, width = _sizes(node, given)
        channels = dims_of(node.operands[1].type)[1].constant or 1
        known = all(d.constant is not None for d in dims_of(result)[2:])
        return Layer(batch, outs, height, width, channels, element_bytes(element_of(result)), known)

    @property
    def pairs(self) -> int:
        """The pairs of channels that meet."""
        return self.channels * self.outs

    def memory(self, tiling: Tiling) -> int:
        """The bytes of the transformed weight."""
        return tiling.filter.size**2 * self.pairs * self.bytes


@dataclass(frozen=True)
class Effort:
    """What a convolution in tiles takes, all in multiplications: those that it makes, and what is moved for them in the
    time of as many. The figures of the machine were fitted to layers of 64 to 512 channels and images of 7 x 7 to
    224 x 224, on one thread of a Genoa (AVX-512): the sum is within a tenth of what was measured for most."""

    tiling: Tiling
    products: int
    tiles: int
    """For what tiles are at each point, and their products: each is written and read again."""
    weight: int
    """For what reading the weight for every band adds to the products, which wait for it."""

    MOVES = 4
    """An element of a tile is written and read as the image's, and again as the result's."""

    @staticmethod
    def of(tiling: Tiling, layer: Layer, machine: MachineModel) -> Effort:
        points, tile = tiling.filter.size**2, tiling.filter.results
        columns = tiling.columns or -(-layer.width // tile)
        size = tiling.rows * columns
        down, across = -(-layer.height // (tiling.rows * tile)), -(-layer.width // (columns * tile))
        bands = layer.batch * down * across
        elements = points * size * (layer.channels + layer.outs)
        weight = points * layer.pairs
        stays = (elements + weight) * layer.bytes <= machine.l2_bytes * 3 // 4
        near = stays or elements * layer.bytes <= machine.l2_bytes * 3 // 4
        move = machine.l2_move_products if near else machine.l3_move_products
        late = 0 if stays else _late(weight * layer.bytes, size, machine)
        products = bands * size * points * layer.pairs
        return Effort(tiling, products, bands * elements * Effort.MOVES * move, int(bands * weight * late))

    @staticmethod
    def direct(layer: Layer, machine: MachineModel) -> int:
        """What a convolution takes that multiplies windows with the weight, which is read once."""
        places, weight = layer.batch * layer.height * layer.width, TAPS**2 * layer.pairs
        return places * weight + int(weight * _late(weight * layer.bytes, places, machine))

    @property
    def total(self) -> int:
        return self.products + self.tiles + self.weight

    def __str__(self) -> str:
        m = self.tiling.filter.results
        return (
            f"tiles of {m} x {m} take {self.products:,} multiplications, and the time of {self.tiles:,} more for their "
            f"elements and of {self.weight:,} for the weight"
        )


def _late(size: int, rows: int, machine: MachineModel) -> float:
    """How much longer the products of an element of a weight of so many bytes with `rows` rows take because it is read:
    what the products do not hide of it, and a part of it anyway."""
    if size <= machine.l2_bytes // 2:
        return 0
    move = machine.l3_move_products if size <= 4 * machine.l2_bytes else machine.memory_move_products
    return max(move - rows, move / 3)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A convolution that tiles make faster: what they take in several ways, the best first, and what it takes as it
    is."""

    layer: Layer
    efforts: tuple[Effort, ...]
    direct: int

    @property
    def worth(self) -> float:
        """The multiplications that are saved for each byte of the transformed weight."""
        best = self.efforts[0]
        return (self.direct - best.total) / max(1, self.layer.memory(best.tiling))


def best_effort(tilings: list[Tiling], layer: Layer, machine: MachineModel) -> Effort:
    """The least effort; of such as are nearly as little that with the smallest bands."""
    efforts = [Effort.of(tiling, layer, machine) for tiling in tilings]
    least = min(e.total for e in efforts)
    near = [e for e in efforts if e.total * NEARLY <= least]
    return min(near, key=lambda e: e.tiling.rows * e.tiling.columns)


def _sizes(node: OnnxOp, given: TypicalSizes) -> Iterator[int]:
    """The dims of the result, with those in the place of symbols that are given or typical."""
    for dim, typical in zip(dims_of(node.results[0].type), (1, 1, TYPICAL_SIZE, TYPICAL_SIZE), strict=True):
        known = given.known(dim)
        yield typical if known is None else known


__all__ = ["Effort", "Layer", "Winograd", "best_effort", "shape_reason"]
