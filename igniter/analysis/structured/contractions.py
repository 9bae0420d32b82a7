"""Contractions on the structured level: sums of products with a micro-kernel.

A contraction is a nest with the semantics of a micro-kernel (`matching.py`). The default micro-kernels sum the product
of two reads, each possibly widened; a schedule may name another. One reduction axis is the depth. One read, `a`, runs
along the rows and the depth; the other, `b`, along the columns and the depth. The other parallel axes are batch axes:
loops around. The other reductions are loops around the micro-kernel inside a tile; each iteration adds to the tile's
sums. A sum whose window moves with the result, as in a convolution, is no contraction: its rows share their operands
(`igniter/schedules/tiles.py`). The source of `b` must have its columns in panels: contiguous in memory, as many as
fill 64 bytes of sums. This holds for a row-major matrix with a multiple of a panel's columns, and for a packed one
(`pack-weights`, `pack-operands`).

16-bit floats are multiplied as f32: `a` is widened as a whole (`pack-operands`), since each of its elements is used for
many columns, and `b` in registers, panel by panel. Bytes, and bf16 with bf16, come in groups of depth steps that one
instruction multiplies.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.guarded_sums import are_bounds
from igniter.analysis.structured.matching import WIDENINGS, difference, reads_of
from igniter.dialects.loop import NestOp, ReadOp, YieldOp, element_bytes
from igniter.dialects.loop.instructions import micro_kernel
from igniter.dialects.loop.panels import PANEL_BYTES, group_of, kind_of, panel_lanes, widened_kind
from igniter.dialects.loop.schedule import Product
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, linearize, symbols_of
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify

TAKEN_APART = frozenset(("bf16", "u8i8", "i8i8"))
"""Kinds split into two vectors of wider elements if no instruction multiplies them directly."""


@dataclass(frozen=True)
class Contraction:
    """A nest as a contraction. `rows` is `None` where `a` is a vector."""

    kind: str
    """The kind of micro-kernel."""
    a: ReadOp
    b: ReadOp
    rows: str | None
    columns: str
    depth: str
    batch: tuple[str, ...]
    """The other parallel axes, in the order of the nest."""
    sums: tuple[str, ...] = ()
    """The other reductions, in the order of the nest."""

    @property
    def guarded(self) -> frozenset[str]:
        """The axes in guards of `a`: their loops leave out the terms that the guards make 0."""
        return symbols_of(self.a.guards)


BYTE_KINDS = frozenset(("u8i8", "i8i8"))
"""The kinds multiplied as bytes by AMX."""

DIRECT_TILE = (32, 2)
"""Rows and panels of bytes or bf16 in one AMX tile product. No figure of a machine: every AMX has eight registers of 16
rows by 64 bytes. Four of them hold sums, and the micro-kernel is written for that."""

HALF_TILE = (128, 6)
"""Rows and panels of f16 with shared split operands for AMX. No figure of a machine: the micro-kernel is written for
these sizes (`half_tiles.py`). The parts of 128 rows are 64 KiB and fit the second-level cache of every CPU with AMX."""


WIDENED = frozenset(("f32f16", "f32bf16"))
"""The kinds whose panels are converted to f32."""

WIDENED_STRIPE, WIDENED_ROWS = 6, 48
"""With 32 registers of 16 bytes: the rows that the registers hold, and the rows of a tile of these kinds. A panel is
converted once for a tile. By LLVM's models of Arm's cores the conversion of f16 then takes 8% of the
time; for four times as many rows 14%."""


PAIRED = BYTE_KINDS | {"bf16"}
"""The kinds whose groups of depth are paired for Arm's matrix instructions."""

PAIRED_ROWS = 192
"""The rows of a tile of these kinds, six in registers at a time. A panel is interleaved once for a tile, which by
LLVM's models takes 2% of the time; for half as many rows 5%."""


@dataclass(frozen=True)
class TallTile:
    """A tile of more rows than registers hold, whose panel is converted or interleaved once."""

    rows: int
    few: int
    """The most rows that convert or interleave in registers, at every step."""


TALL: Mapping[str, TallTile] = {
    **dict.fromkeys(WIDENED, TallTile(WIDENED_ROWS, WIDENED_STRIPE)),
    **dict.fromkeys(PAIRED, TallTile(PAIRED_ROWS, 2 * WIDENED_STRIPE)),
}
"""The tall tiles by kind. The few rows of `PAIRED`: by LLVM's models a pair of groups takes 8.8 cycles of a body that
interleaves and 6.8 of one that does not, and interleaving it once takes 5.4."""


def tile_in_registers(kind: str, tile: tuple[int, int]) -> tuple[int, int]:
    """Returns the rows and panels of a tile whose sums are in vector registers at a time."""
    rows, panels = tile
    return (WIDENED_STRIPE, panels) if kind in TALL and rows == TALL[kind].rows else tile


def tile_size(
    vector_bytes: int,
    registers: int,
    panels: int | None,
    kind: str,
    byte_tiles: bool = False,
    half_tiles: bool = False,
    pairs: bool = False,
) -> tuple[int, int]:
    """Returns the rows and panels of a register tile of a `kind`, for a number of `panels` (`None`: unknown).
    `byte_tiles`, `half_tiles`: the machine has tiles of bytes, of bf16. `pairs`: it multiplies this kind two rows by
    two columns.

    The register file holds the sums, a row of panels and a broadcast. Three panels at most: more of them share a
    broadcast, but fewer rows then share a panel. Few panels are distributed evenly, so that the last tile is not a
    narrow one.
    """
    if (byte_tiles and kind in BYTE_KINDS) or (half_tiles and kind == "bf16"):
        return DIRECT_TILE[0], min(DIRECT_TILE[1], panels or DIRECT_TILE[1])
    if half_tiles and kind == "f32f16":
        return HALF_TILE[0], HALF_TILE[1] if not panels else -(-panels // -(-panels // HALF_TILE[1]))
    if has_widened_tiles(vector_bytes, registers, kind):
        return WIDENED_ROWS, 1
    if pairs and kind in PAIRED:
        return PAIRED_ROWS, 1
    vectors = PANEL_BYTES // vector_bytes
    widest = 3 if panels is None else -(-panels // -(-max(panels, 1) // 3))
    for width in range(widest, 1, -1):
        rows = (registers - 1 - width * vectors) // (width * vectors)
        if rows >= 4:
            return min(rows, 8 if width > 2 else 12), width
    # Narrow files have no register for every vector of the panel: these are memory operands. In small files, the
    # registers are left free for splitting factors of fewer bits, two vectors for one: without them LLVM's schedules
    # spill sums in every step, and 6 rows run at half the speed of 4.
    spare = 4 if registers < 32 and kind in TAKEN_APART else 0
    rows = (registers - 1 - spare - min(vectors, 4)) // vectors
    return max(2, min(rows, 12)), 1


def has_widened_tiles(vector_bytes: int, registers: int, kind: str) -> bool:
    """True if a tile converts its panel for many rows: on NEON, whose conversions occupy the units of products."""
    return kind in WIDENED and vector_bytes == 16 and registers == 32


def product_reason(nest: NestOp, product: Product, blocks: Mapping[str, int]) -> str | None:
    """Returns the reason why a nest cannot use the micro-kernels of its schedule; `blocks` are the block sizes of its
    axes."""
    contraction = contraction_of(nest, kernel=product.kernel)
    if isinstance(contraction, str):
        return contraction
    wanted = contraction.rows or "", contraction.columns, contraction.depth
    if (product.rows, product.columns, product.depth) != wanted:
        return f"its rows, columns and depth must be {list(wanted)}"
    height, panels = product.tile
    width = panels * panel_lanes(element_of(nest.outputs[0].type))
    for axis, most in ((product.rows, height), (product.columns, width)):
        if axis and axis not in blocks:
            return f"it needs a loop over '{axis}' around it: a tile has at most {most} of them"
    if blocks.get(product.rows, 1) > height or blocks[product.columns] != width:
        return (
            f"a tile of {height} rows and {panels} panels needs blocks of at most {height} rows and of {width} columns"
        )
    return None


def contraction_of(nest: NestOp, moved: bool = False, kernel: str = "") -> Contraction | str:
    """Returns `nest` as a contraction for a micro-kernel, or the reason why it is none. The micro-kernel is the one
    called `kernel`, else the default for its elements. `moved`: assume that its `a`, of elements narrower than the
    sums, has been copied so that its depth is contiguous, and widened if need be."""
    key = (moved, kernel, _content(nest))
    found = _KNOWN.get(key)
    if found is None:
        made = _matched(nest, moved, kernel)
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = made if isinstance(made, str) else _Places.of(made, list(nest.block.ops))
        return made
    return found if isinstance(found, str) else found.inside(list(nest.block.ops))


@dataclass(frozen=True)
class _Places:
    """A contraction with the numbers of its reads among the ops of the nest, in the place of the reads."""

    a: int
    b: int
    rest: tuple[str, str | None, str, str, tuple[str, ...], tuple[str, ...]]

    @staticmethod
    def of(c: Contraction, ops: Sequence[Operation]) -> _Places:
        return _Places(ops.index(c.a), ops.index(c.b), (c.kind, c.rows, c.columns, c.depth, c.batch, c.sums))

    def inside(self, ops: Sequence[Operation]) -> Contraction:
        a, b = ops[self.a], ops[self.b]
        assert isinstance(a, ReadOp) and isinstance(b, ReadOp)
        kind, rows, columns, depth, batch, sums = self.rest
        return Contraction(kind, a, b, rows, columns, depth, batch, sums)


MOST_KNOWN = 1 << 12
_KNOWN: dict[Hashable, _Places | str] = {}
"""The answers of `contraction_of`, by the content of the nest: passes, authors and costs ask again and again."""


def _content(nest: NestOp) -> Hashable:
    """Returns the content of a nest as a key: its axes, its types, and its ops with numbers for values."""
    numbers: dict[SSAValue, int] = {}
    said: list[Hashable] = [nest.axes_attr, *(v.type for v in nest.outputs)]
    for op in nest.block.ops:
        operands: list[Hashable] = []
        for value in op.operands:
            if value not in numbers:
                numbers[value] = len(numbers)
                operands.append(value.type)
            operands.append(numbers[value])
        for value in op.results:
            numbers[value] = len(numbers)
            operands.append(value.type)
        said.append((op.name, *operands, *op.properties.items(), *op.attributes.items()))
    return tuple(said)


def _matched(nest: NestOp, moved: bool, kernel: str) -> Contraction | str:
    """Decides `contraction_of`."""
    factors = reads_of(nest, micro_kernel(kernel)) if kernel else factors_of(nest, guarded=True)
    if isinstance(factors, str):
        return factors
    reasons: list[str] = []
    for a, b in (factors, factors[::-1]):
        elements = [element_of(v.type) for v in (a.source, b.source, nest.outputs[0])]
        narrow = moved and element_bytes(elements[0]) < element_bytes(elements[2])
        kinds = [kind_of(*elements), widened_kind(*elements) if narrow else None]
        found: Contraction | str = (
            f"there is no micro-kernel for products of {elements[0]} and {elements[1]} in {elements[2]}"
        )
        for k, kind in enumerate([kernel] if kernel else kinds):
            if kind is not None and isinstance(found, str):
                found = difference(nest, micro_kernel(kind), a, b, k > 0) or _along_some_depth(nest, a, b, kind, narrow)
        if not isinstance(found, str):
            return found
        reasons.append(found)
    return reasons[0]


def factors_of(nest: NestOp, guarded: bool = False) -> tuple[ReadOp, ReadOp] | str:
    """Returns the two reads whose product is summed, or the reason why a nest is no such sum. `guarded`: guards that
    read 0 elsewhere are allowed."""
    clauses = nest.yield_op.clauses
    if len(clauses) != 1 or clauses[0].combiner != "add":
        return "it is not a single sum"
    if all(a.kind != "reduction" for a in nest.axes):
        return "it has no reduction axis"
    product = clauses[0].value.owner
    if not isinstance(product, Operation) or product.name not in ("arith.mulf", "arith.muli"):
        return "it does not sum products"
    reads = [_read_behind(v) for v in product.operands]
    ops = [op for op in nest.block.ops if not isinstance(op, (ReadOp, YieldOp)) and op is not product]
    if None in reads or any(op.name not in WIDENINGS for op in ops) or reads[0] is reads[1]:
        return "it does not sum products of two reads"
    a, b = reads
    assert a is not None and b is not None
    if any(r.indices or (r.guards and (not guarded or r.otherwise is not None)) for r in (a, b)):
        return GUARDED
    return a, b


GUARDED = "its reads are guarded or indirect"


def _read_behind(value: SSAValue) -> ReadOp | None:
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in WIDENINGS:
        owner = owner.operands[0].owner
    return owner if isinstance(owner, ReadOp) else None


def depths_of(nest: NestOp) -> list[str]:
    """Returns the candidates for the depth, the innermost first."""
    sums = [x.name for x in nest.axes if x.kind == "reduction"]
    return [n for n in sums[::-1] if nest.axis(n).extent != ONE] or sums[:1]


def window_of(nest: NestOp, reads: Sequence[ReadOp]) -> str | None:
    """Returns the reduction, one of several, whose window moves with the result; `None` without one."""
    if len(depths_of(nest)) < 2:
        return None
    kinds = {x.name: x.kind for x in nest.axes if x.extent != ONE}
    for subscript in (s for r in reads for s in r.subscripts):
        named = [n for n in subscript.symbols if n in kinds]
        if len({kinds[n] for n in named}) > 1:
            return next(n for n in named if kinds[n] == "reduction")
    return None


def _along_some_depth(nest: NestOp, a: ReadOp, b: ReadOp, kind: str, moved: bool) -> Contraction | str:
    window = window_of(nest, (b,))
    if window is not None:
        return f"along '{window}' it sums over a sliding window"
    found: Contraction | str = ""
    # Contiguous steps are preferred, of a then of b.
    steps = [{n: offset_of(nest, r, {}, nest.axes_attr.ranges).coefficient(n) for n in depths_of(nest)} for r in (a, b)]
    for depth in sorted(depths_of(nest), key=lambda n: steps[0][n] != ONE):
        attempt = _as_product(nest, a, b, kind, depth, moved)
        if not isinstance(attempt, str):
            return attempt
        found = found or attempt
    return found


def _as_product(nest: NestOp, a: ReadOp, b: ReadOp, kind: str, depth: str, moved: bool) -> Contraction | str:
    in_a, in_b = symbols_of(a.subscripts), symbols_of(b.subscripts)
    names = [x.name for x in nest.axes if x.kind == "parallel" and x.extent != ONE]
    columns = [n for n in names if n in in_b and n not in in_a]
    if depth not in in_a or depth not in in_b:
        return "one factor does not depend on the depth"
    lanes, group = panel_lanes(element_of(nest.outputs[0].type)), group_of(kind)
    column = next((n for n in reversed(columns) if _has_panels(nest, b, n, depth, lanes, group)), None)
    if column is None:
        return "neither factor has contiguous columns in panels"
    rows = [n for n in names if n in in_a and n not in in_b and (moved or _is_affine(nest, a, (n, depth)))]
    if not moved and not _is_affine(nest, a, (depth,)):
        return "a factor has no constant stride along the depth"
    if not _is_multiple(nest.axis(depth).extent, group) or (group > 1 and not moved and not _is_dense(nest, a, depth)):
        return "the depth steps of one instruction are not contiguous"
    row = rows[-1] if rows else None
    batch = tuple(n for n in names if n not in (row, column))
    sums = tuple(x.name for x in nest.axes if x.kind == "reduction" and x.name != depth)
    loops = [n for n in (row, *sums) if n is not None]
    if b.guards or (a.guards and (moved or not are_bounds(a.guards, loops, (column, depth)))):
        return GUARDED
    return Contraction(kind, a, b, row, column, depth, batch, sums)


def offset_of(nest: NestOp, read: ReadOp, values: Mapping[str, Expr], ranges: Ranges) -> Expr:
    """Returns the linear offset of a read in its tensor, with axes replaced."""
    return _offset(tuple(read.subscripts), dims_of(read.source.type), frozenset(values.items()), ranges.key)


@lru_cache(maxsize=1 << 13)
def _offset(
    subscripts: tuple[Expr, ...],
    dims: tuple[Expr, ...],
    values: frozenset[tuple[str, Expr]],
    key: frozenset[tuple[str, tuple[Expr, Expr]]],
) -> Expr:
    """Returns `offset_of`; cached, because every question about a contraction asks for it again."""
    replaced, ranges = dict(values), Ranges(dict(key))
    places = [simplify(s.substitute(replaced), ranges) for s in subscripts]
    return simplify(linearize(places, dims), ranges)


def _is_affine(nest: NestOp, read: ReadOp, names: tuple[str, ...]) -> bool:
    offset = offset_of(nest, read, {}, nest.axes_attr.ranges)
    return all(offset.coefficient(n) is not None for n in names)


def _is_dense(nest: NestOp, a: ReadOp, depth: str) -> bool:
    """True if the depth steps of a factor are contiguous."""
    return offset_of(nest, a, {}, nest.axes_attr.ranges).coefficient(depth) == ONE


def _has_panels(nest: NestOp, b: ReadOp, column: str, depth: str, lanes: int, group: int) -> bool:
    """True if `column` can be split into panels and lanes, and each group of the depth is contiguous."""
    extent = nest.axis(column).extent
    axes = dict(nest.axes_attr.ranges.axes)
    axes.update({"$p": (ZERO, extent.ceildiv(lanes)), "$l": (ZERO, Expr.of(lanes)), "$g": (ZERO, Expr.of(group))})
    inner = Expr.of(depth) * group + Expr.of("$g")
    values = {column: Expr.of("$p") * lanes + Expr.of("$l"), depth: inner if group > 1 else Expr.of(depth)}
    offset = offset_of(nest, b, values, Ranges(axes))
    steps = [offset.coefficient(n) for n in ("$l", "$p", depth)]
    if steps[0] != Expr.of(group) or None in steps:
        return False
    if group > 1 and offset.coefficient("$g") != ONE:
        return False
    # A partial last panel must be padded, as a packed operand is: memory exists for all its lanes.
    padded = any(column in s.symbols and s.coefficient(column) is None for s in b.subscripts)
    if padded or _is_multiple(extent, lanes):
        return True
    places = zip((s.substitute(values) for s in b.subscripts), dims_of(b.source.type), strict=True)
    return all(is_nonneg(simplify(dim - 1 - at, Ranges(axes)), Ranges(axes)) for at, dim in places)


def _is_multiple(extent: Expr, n: int) -> bool:
    return all(c % n == 0 for _, c in extent.terms)


def is_unpacking(nest: NestOp) -> bool:
    """True if a nest only reads a packed tensor as the plain one; a contraction takes the packed tensor directly."""
    reads = nest.reads
    clauses = nest.yield_op.clauses
    if len(reads) != 1 or len(clauses) != 1 or clauses[0].value is not reads[0].result or reads[0].guards:
        return False
    calls = [s.call for s in reads[0].subscripts if s.call is not None]
    return bool(calls) and all(c.fn in ("floordiv", "mod") and c.args[0].symbol is not None for c in calls)


def is_widened_read(nest: NestOp) -> bool:
    """True if a nest only widens elements, as a factor of a contraction may."""
    clauses = nest.yield_op.clauses
    if len(clauses) != 1 or clauses[0].combiner != "none":
        return False
    read = _read_behind(clauses[0].value)
    return read is not None and not read.guards and not read.indices and clauses[0].value is not read.result
