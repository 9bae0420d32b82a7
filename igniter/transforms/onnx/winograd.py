"""`winograd`: computes 3 x 3 convolutions with fewer multiplications; `igniter compile --winograd off` disables it.

    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>}
becomes, in tiles of 4 x 4 results, in bands of one row of 14 tiles,
    %y = onnx.Conv(%x, %w, %b) {pads = array<i64: 1, 1, 1, 1>, igniter.winograd = array<i64: 4, 1, 14>}

A marked convolution is always compiled: it becomes a region, with its epilogue, and its lowering makes the tiles, the
products and the results (`igniter.dialects.onnx.ops.winograd`; `igniter.dialects.onnx.ops.minimal_filters` gives the
method and its sources). It stays a Conv with its plain weight, so ONNX Runtime can run it. A kernel gets the
transformed and packed weight, as a table, computed when the compiled model is written.

A tile of m x m results takes (m + 2)^2 products instead of 9 m^2: 16 for 36, or 36 for 144. The costs:

* Rounding. The error bound is that of a direct sum, times 7 for tiles of 2 x 2 and times 63 for 4 x 4; the error for
  random data is about half and about twice that of a direct sum in order. The remark on each node gives these figures.
  Tiles are not used unless their usual error is `MARGIN` times smaller than `tolerance`.
* A tile is computed as a whole, so an element that is not finite, or larger than 3 % of the greatest number, affects
  results whose windows do not contain it. If a result of a tile is not finite, the tile is computed again, window by
  window (docs/explanation/numerics.md): this is one more pass over the results, which costs less than 1 %.
* The elements of tiles are moved. A convolution stays direct if that, and reading more weight, takes longer than the
  saved products, unless `force` is set. `Effort` estimates the times; the band with the least estimate is chosen.
* The transformed weight is 1.8 or 4 times the weight. If those of all convolutions would exceed `memory` times the
  weights of the model, and 256 MiB, the convolutions with the largest saving per byte get them.

`tile` is the largest allowed size: of 2 and 4, the pass takes the one that saves more; with `force`, exactly `tile`.
The pass runs at the end of the ONNX level, where shapes are known and weights are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
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
from igniter.rewrite_budget import budget
from igniter.schedules.best_tile import best_tile
from igniter.transforms.onnx.onnx_rewriting import known_dims, operand

CONVOLUTIONS = frozenset(("Conv", "com.microsoft.FusedConv"))

TYPICAL_SIZE = 56
"""The assumed height or width if it is symbolic and no size is given; a symbolic batch counts as one image. It is a
guess: the first images of most models with successive 3 x 3 convolutions have this size."""

SHORT_BAND = 7
"""The least number of tiles of a band, if the image has as many: with fewer rows, micro-kernels wait for panels."""

MARGIN = 4
"""The required ratio of the tolerance to the usual error of tiles."""

LITTLE_MEMORY = 1 << 28
"""The bytes that tiles may always add to a model: the relative growth of a small model does not matter."""

NEARLY = 0.97
"""A smaller band is preferred if a larger one is not faster by more than this: more bands can be distributed."""


@dataclass(frozen=True)
class Winograd(ModulePass):
    """Computes 3 x 3 convolutions in tiles of up to `tile` x `tile` results, with fewer multiplications."""

    name = "winograd"
    one_rewrite = "a convolution computed in Winograd tiles"

    tile: int = 4
    """2 or 4."""
    force: bool = False
    """Uses tiles even if they take longer."""
    tolerance: float = 1e-4
    """The allowed error, relative to the largest result."""
    rows: int = 0
    """The tiles of a band from top to bottom; 0: the fastest."""
    columns: int = 0
    """The same, from left to right."""
    memory: float = 1.0
    """The memory that all tiles together may add, as a multiple of the weights of the model; at least
    `LITTLE_MEMORY`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.tile not in FILTERS:
            listed = " or ".join(map(str, FILTERS))
            raise IgniterError(f"winograd: the option 'tile' must be {listed}, not {self.tile}")
        machine, given, count = machine_of(ctx), TypicalSizes(tuple(sizes_of(ctx, op).items())), 0
        found = [n for n in op.walk() if isinstance(n, OnnxOp) and n.qualified_name in CONVOLUTIONS]
        candidates = {node: self._candidate(node, machine, given) for node in found}
        within = self._within_memory(op, [c for c in candidates.values() if isinstance(c, Candidate)])
        for node, candidate in candidates.items():
            chosen = candidate if isinstance(candidate, str) else within[candidate]
            # Only for chosen convolutions, because the check reads the whole weight.
            if isinstance(chosen, Tiling) and not _is_finite(node):
                chosen = "its weight is not finite, so no tile would be finite"
            if isinstance(chosen, str):
                remark(ctx, self.name, node.node_name, "missed", chosen)
            elif budget(ctx, self.name).take(node.node_name, "it is computed in tiles"):
                node.attributes[WINOGRAD_ATTRIBUTE] = chosen.to_attr()
                count += 1
                remark(ctx, self.name, node.node_name, "applied", _said_of(chosen.filter), **_details(chosen))
        why = "" if found else ": the model has no convolutions"
        remark(
            ctx,
            self.name,
            "",
            "note",
            (f"{count} of {len(found)} convolutions are computed in tiles{why}"),
            count=count,
        )

    def _candidate(self, node: OnnxOp, machine: MachineModel, given: TypicalSizes) -> Candidate | str:
        """Returns the ways to compute a convolution in tiles, or the reason why it stays direct."""
        reason = shape_reason(node)
        if reason is not None:
            return reason
        sizes = [self.tile] if self.force else [size for size in FILTERS if size <= self.tile]
        exact = [FILTERS[size] for size in sizes if self.force or self._is_exact(node, FILTERS[size])]
        if not exact:
            return f"the error of its tiles is not {MARGIN} times smaller than {self.tolerance:g} of its results"
        layer = Layer.of(node, given)
        efforts = [best_effort(self._tilings(layer, found), layer, machine) for found in exact]
        efforts.sort(key=lambda e: e.total)
        direct = Effort.direct(layer, machine)
        if not self.force and efforts[0].total >= direct:
            return f"{efforts[0]}; force=true overrides this"
        return Candidate(layer, tuple(e for e in efforts if self.force or e.total < direct), direct)

    def _within_memory(self, module: ModuleOp, candidates: list[Candidate]) -> dict[Candidate, Tiling | str]:
        """Chooses the tiling of each convolution; those with the largest saving per byte of weight come first."""
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
                    f"its weight takes {more >> 20} MiB in tiles; the limit of {most >> 20} MiB for all convolutions "
                    "is used for others that save more; raise it with memory=.., as a multiple of the model's weights"
                )
        return found

    def _is_exact(self, node: OnnxOp, found: MinimalFilter) -> bool:
        channels = dims_of(node.operands[1].type)[1].constant or 1
        unit = 2.0**-53 if isinstance(element_of(node.results[0].type), Float64Type) else 2.0**-24
        return found.expected_error(channels, unit) * MARGIN <= self.tolerance

    def _tilings(self, layer: Layer, found: MinimalFilter) -> list[Tiling]:
        """Returns the possible bands: parts of a row of tiles, or several rows. For a symbolic width, the band is one
        whole row: any fixed number of tiles would be too large for most widths."""
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
        f"in tiles of {m} x {m}: {products} products for {(TAPS * m) ** 2}; the error is at most "
        f"{chosen.amplification:.0f} times that of a direct sum, and about {chosen.usual_error:g} times for random "
        "data"
    )


def _details(chosen: Tiling) -> dict[str, float | str]:
    found = chosen.filter
    band = f"{chosen.rows}x{chosen.columns or '?'}"
    return {"tile": found.results, "band": band, "amplification": round(found.amplification, 1)}


# -- legality ---------------------------------------------------------------------------------------------------------


def shape_reason(node: OnnxOp) -> str | None:
    """Returns the reason why a convolution cannot be computed in tiles; None if it can."""
    data, weight = operand(node, 0), operand(node, 1)
    if data is None or weight is None or not known_dims(data) or not known_dims(weight):
        return "its shapes are unknown"
    rank, window = len(dims_of(data.type)) - 2, [d.constant for d in dims_of(weight.type)[2:]]
    if rank != 2 or window != [TAPS, TAPS]:
        return f"its windows are {_times(window)}, not 3 x 3"
    for name, says in (("strides", "its windows have a stride of {}"), ("dilations", "its windows are dilated by {}")):
        given = spatial_ints(node, name, rank, 1)
        if given != [1, 1]:
            return says.format(_times(given))
    if int(node.attr("group", 1)) != 1:
        return f"it has {node.attr('group')} groups, which do not share channels"
    if not isinstance(element_of(data.type), (Float32Type, Float64Type)):
        return f"its elements are {element_of(data.type)}, which have too few bits for the sums of tiles"
    if constant_weight(weight) is None:
        return "its weight is not a constant, so it cannot be transformed at compile time"
    spec = spec_of(node)
    return spec.legal(node) if spec is not None and spec.legal is not None else None


def _is_finite(node: OnnxOp) -> bool:
    """True if the whole weight is finite, or if its bytes are not available."""
    weight = constant_weight(node.operands[1])
    return weight is None or weight.elided or bool(np.isfinite(weight.array()).all())


def _times(sizes: list[int | None] | list[int]) -> str:
    return " x ".join("?" if s is None else str(s) for s in sizes)


# -- costs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The sizes of a convolution: those of its result, and its channels."""

    batch: int
    outs: int
    height: int
    width: int
    channels: int
    bytes: int
    """The size of an element."""
    is_known: bool
    """True if the height and the width are constant."""

    @staticmethod
    def of(node: OnnxOp, given: TypicalSizes = NONE) -> Layer:
        """Returns the sizes of a node; symbols have their given or typical sizes."""
        result = node.results[0].type
        batch, outs, height, width = _sizes(node, given)
        channels = dims_of(node.operands[1].type)[1].constant or 1
        known = all(d.constant is not None for d in dims_of(result)[2:])
        return Layer(batch, outs, height, width, channels, element_bytes(element_of(result)), known)

    @property
    def pairs(self) -> int:
        """The number of pairs of an input and an output channel."""
        return self.channels * self.outs

    def memory(self, tiling: Tiling) -> int:
        """Returns the bytes of the transformed weight."""
        return tiling.filter.size**2 * self.pairs * self.bytes


@dataclass(frozen=True)
class Effort:
    """The cost of a convolution in tiles, in multiplications: its own, and the equivalent of its data movement. The
    figures of the machine were fitted to layers of 64 to 512 channels and images of 7 x 7 to 224 x 224, on one thread
    of a Genoa (AVX-512): for most, the sum is within a tenth of the measured time."""

    tiling: Tiling
    products: int
    tiles: int
    """The cost of the transformed tiles and their products: each is written and read again."""
    weight: int
    """The stall of the products while the weight is read for every band."""

    MOVES = 4
    """An element of a tile is written and read in the image's form, and again in the result's form."""

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
        """Returns the cost of a direct convolution, which reads the weight once."""
        places, weight = layer.batch * layer.height * layer.width, TAPS**2 * layer.pairs
        return places * weight + int(weight * _late(weight * layer.bytes, places, machine))

    @property
    def total(self) -> int:
        return self.products + self.tiles + self.weight

    def __str__(self) -> str:
        m = self.tiling.filter.results
        return (
            f"tiles of {m} x {m} take {self.products:,} multiplications, plus the time of {self.tiles:,} for "
            f"transforming their elements and of {self.weight:,} for the weight"
        )


def _late(size: int, rows: int, machine: MachineModel) -> float:
    """Returns the stall per weight element, with `rows` rows and a weight of `size` bytes: the part of the read that
    the products do not hide, and at least a third of it."""
    if size <= machine.l2_bytes // 2:
        return 0
    move = machine.l3_move_products if size <= 4 * machine.l2_bytes else machine.memory_move_products
    return max(move - rows, move / 3)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A convolution that is faster in tiles: its costs in several tilings, best first, and its direct cost."""

    layer: Layer
    efforts: tuple[Effort, ...]
    direct: int

    @property
    def worth(self) -> float:
        """The saved multiplications per byte of the transformed weight."""
        best = self.efforts[0]
        return (self.direct - best.total) / max(1, self.layer.memory(best.tiling))


def best_effort(tilings: list[Tiling], layer: Layer, machine: MachineModel) -> Effort:
    """Returns the least effort; among nearly equal ones, the one with the smallest bands."""
    efforts = [Effort.of(tiling, layer, machine) for tiling in tilings]
    return best_tile(efforts, lambda e: e.total, prefer=lambda e: e.tiling.rows * e.tiling.columns, near=1 / NEARLY)


def _sizes(node: OnnxOp, given: TypicalSizes) -> Iterator[int]:
    """Yields the dims of the result; symbols have their given or typical sizes."""
    for dim, typical in zip(dims_of(node.results[0].type), (1, 1, TYPICAL_SIZE, TYPICAL_SIZE), strict=True):
        known = given.known(dim)
        yield typical if known is None else known


__all__ = ["Effort", "Layer", "Winograd", "best_effort", "shape_reason"]
