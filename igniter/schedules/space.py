"""The space of schedules of one kernel: the alternatives to its current schedules.

    space = ScheduleSpace(kernel, vector_bytes=64, registers=32)
    space.parameters                    # (Parameter("g0.tile", ("author", "8x3", ...)), ...)
    space.schedules(space.first())      # the current schedules of the kernel's nests: point 0
    space.schedules({"g0.tile": "6x4"}) # other parameters are as in point 0

A kernel comes with schedules, by the default author or another. The nests that share loops in them (`Loop.fuse`) are
the groups of the space. The kind of a group decides its parameters:

    product   a contraction by micro-kernels and its epilogue: `tile` (rows x panels), `columns` and `rows` (tiles in
              one cache block, each way), `order` of the loops over tiles, `depth` (blocks of the reduction, each added
              to the result)
    rows      contractions that run in sequence over a block of rows: `height`, and `panels` of each
    sums      a reduction and the nests that read it: `tile` (rows x vectors held in registers), `lanes` and `down`
              (their axes), `order`, `tail`, `sums` (the order of the reductions)
    all       `fused` (or each nest by itself), `vector`, `accumulators`, `unroll`, `order`, `threads` (tasks)

The value "author" keeps the current choice. A point is a choice of values, and so a schedule. The checks of the
schedule language and the passes behind them may still refuse it: the space only promises points worth a trial.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from igniter.dialects.loop import KernelOp, NestOp, element_bytes
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr, Step
from igniter.dialects.loop.words import TABLE, Tail, words_in
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE
from igniter.schedules.primitives import loops_of, on_threads
from igniter.schedules.templates import Block, ProductTemplate

Point: TypeAlias = "Mapping[str, str]"

AUTHOR = "author"
"""The value of a parameter that keeps the current choice."""

HEIGHTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
"""Rows of a register tile; other heights differ too little from these."""

MOST_VECTORS = 4
"""Vectors in a row of a tile: tiles with more rows than vectors load the least."""

TOGETHER = 8
"""Tiles in one cache block, each way, for each block of a depth: the default author's choice for common caches."""

MOST_ORDERS = 6
"""Orders of loops to try: all orders of three loops."""


@dataclass(frozen=True)
class Parameter:
    """One choice; the first value keeps the current one."""

    name: str
    values: tuple[str, ...]


@dataclass
class _Group:
    """Nests that share their first `shared` loops."""

    name: str
    members: list[NestOp]
    shared: int
    parameters: list[Parameter] = field(default_factory=list[Parameter])

    @property
    def first(self) -> NestOp:
        return self.members[0]

    def steps(self, nest: NestOp) -> tuple[Step, ...]:
        schedule = nest.schedule
        assert schedule is not None
        return schedule.data

    def add(self, name: str, values: Sequence[object]) -> None:
        """Adds a parameter, if it has more than one value."""
        told = tuple(dict.fromkeys((AUTHOR, *map(str, values))))
        if len(told) > 1:
            self.parameters.append(Parameter(f"{self.name}.{name}", told))


class ScheduleSpace:
    """The space of a kernel's schedules (see the module's text). Every nest of `kernel` has a schedule; procedures keep
    theirs."""

    def __init__(self, kernel: KernelOp, vector_bytes: int, registers: int, threads: int = 1):
        self.kernel = kernel
        self.vector_bytes = vector_bytes
        self.registers = registers
        self._groups = _groups(kernel)
        for group in self._groups:
            self._parametrize(group, threads)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters, group by group."""
        return tuple(p for group in self._groups for p in group.parameters)

    @property
    def size(self) -> int:
        """The number of points; many of them give the same schedule."""
        size = 1
        for parameter in self.parameters:
            size *= len(parameter.values)
        return size

    def first(self) -> dict[str, str]:
        """Returns point 0: the current schedules of the kernel."""
        return {p.name: AUTHOR for p in self.parameters}

    def points(self, seed: int = 0) -> Iterator[dict[str, str]]:
        """Yields points in order of distance: point 0, then each value of each parameter alone, then random points."""
        near = [self.first()]
        near += [{**self.first(), p.name: value} for p in self.parameters for value in p.values[1:]]
        yield from near
        rng = random.Random(seed)
        seen = {tuple(point.values()) for point in near}
        for _ in range(4 * min(self.size, 4096)):
            # Half of the parameters keep the current choice: points far from point 0 are seldom good.
            point = {p.name: rng.choice(p.values) if rng.random() < 0.5 else AUTHOR for p in self.parameters}
            if tuple(point.values()) not in seen:
                seen.add(tuple(point.values()))
                yield point

    def seconds(self, point: Point) -> float | None:
        """Returns None: the cost model counts the cycles of the scheduled kernel."""
        del point
        return None

    def schedules(self, point: Point) -> dict[str, ScheduleAttr]:
        """Returns the schedule of every nest at a point, by label. Raises `ValueError` for an unknown name or value."""
        known = {p.name: p.values for p in self.parameters}
        for name, value in point.items():
            if value not in known.get(name, ()):
                raise ValueError(f"the schedule space has no value '{value}' for '{name}'")
        found: dict[str, ScheduleAttr] = {}
        for group in self._groups:
            said = {n.removeprefix(f"{group.name}."): v for n, v in point.items() if n.startswith(f"{group.name}.")}
            chosen = {n: v for n, v in said.items() if v != AUTHOR}
            steps = {nest.label: list(group.steps(nest)) for nest in group.members}
            if chosen:
                steps = self._edited(group, steps, chosen)
            found.update({label: ScheduleAttr(s) for label, s in steps.items()})
        return found

    # -- parameters ---------------------------------------------------------------------------------------------------

    def _parametrize(self, group: _Group, threads: int) -> None:
        kind = _kind(group)
        if kind == "product":
            self._product_parameters(group)
        elif kind == "rows":
            self._row_parameters(group)
        else:
            if kind == "sums":
                self._sum_parameters(group)
            loops = [s for nest in group.members for s in group.steps(nest) if isinstance(s, Loop)]
            if any(s.vector for s in loops):
                group.add("vector", TABLE["vector"].trials)
                group.add("unroll", TABLE["unroll"].trials)
            if any(s.accumulators for s in loops):
                group.add("accumulators", TABLE["accumulators"].trials)
            if len(group.members) == 1:
                group.add(
                    "order", ["-".join(o) for o in _orders([s.axis for s in _free(group.steps(group.first))])[1:]]
                )
        if len(group.members) > 1:
            group.add("fused", ("no",))
        if threads > 1 and any(isinstance(s, Loop) and s.threads is not None for s in group.steps(group.first)):
            group.add("threads", TABLE["threads"].trials)

    def _tiles(self, columns: int | None) -> list[str]:
        """Returns the tiles (rows x vectors) whose sums, one row of a factor and a broadcast fit the registers, largest
        first."""
        most = MOST_VECTORS if columns is None else max(1, min(MOST_VECTORS, columns))
        pairs = [(h, v) for v in range(1, most + 1) for h in HEIGHTS if (h + 1) * v + 1 <= self.registers]
        return [f"{h}x{v}" for h, v in sorted(pairs, key=lambda p: -p[0] * p[1])]

    def _product_parameters(self, group: _Group) -> None:
        product = _product(group.steps(group.first))
        assert product is not None
        columns = group.first.axis(product.columns).extent.constant
        depth = group.first.axis(product.depth).extent.constant
        tiles = self._tiles(None if columns is None else -(-columns // self._panel(group.first)))
        # Without a row axis a tile has one row; with one it has several, and its loop over rows is behind the product.
        group.add("tile", [t for t in tiles if t.startswith("1x") == (not product.rows)])
        group.add("columns", (1, 2, 4, 8, 16))
        if product.rows:
            group.add("rows", (1, 4, 16))
            group.add("order", ("columns", "rows"))
        block = _depth_block(group.steps(group.first), product)
        sizes = [d for d in (64, 128, 256, 512) if d != block and (depth is None or d < depth)]
        group.add("depth", [*sizes, *(["whole"] if block else [])])

    def _row_parameters(self, group: _Group) -> None:
        group.add("height", (2, 4, 6, 8, 12, 14))
        for nest in group.members:
            if _product(group.steps(nest)) is not None:
                group.add(f"panels.{nest.label}", range(1, MOST_VECTORS + 1))

    def _sum_parameters(self, group: _Group) -> None:
        nest = group.first
        levels = _levels(group, nest)
        wide = [n for n in levels if (nest.axis(n).extent.constant or self._lanes(nest)) >= self._lanes(nest)]
        if not wide:
            return
        group.add("tile", self._tiles(None))
        # Sums are contiguous along the last axis of the result, if at all.
        written = [s.symbol for s in nest.yield_op.clauses[0].subscripts]
        wide.sort(key=lambda n: -written.index(n) if n in written else 1)
        group.add("lanes", wide)
        if len(levels) > 1:
            group.add("down", levels)
            group.add("inside", ("rows", "lanes"))
        group.add("tail", ("rest",))
        sums = [a.name for a in nest.axes if a.kind == "reduction" and a.extent != ONE]
        group.add("sums", ["-".join(o) for o in _orders(sums)[1:]])

    def _panel(self, nest: NestOp) -> int:
        return panel_lanes(element_of(nest.outputs[0].type))

    def _lanes(self, nest: NestOp) -> int:
        return max(2, self.vector_bytes // element_bytes(element_of(nest.outputs[0].type)))

    # -- schedules ----------------------------------------------------------------------------------------------------

    def _edited(self, group: _Group, steps: dict[str, list[Step]], chosen: Mapping[str, str]) -> dict[str, list[Step]]:
        kind = _kind(group)
        apart = chosen.get("fused") == "no"
        if kind == "product":
            steps = self._product_steps(group, steps, chosen)
        elif kind == "rows":
            steps = self._row_steps(group, steps, chosen)
        elif kind == "sums" and "tile" in chosen:
            steps = self._sum_steps(group, chosen, apart)
        if "order" in chosen and kind not in ("product", "rows") and "tile" not in chosen:
            label = group.first.label
            steps = {label: _reordered(steps[label], chosen["order"].split("-"))}
        return {label: self._worded(each, chosen, apart) for label, each in steps.items()}

    def _worded(self, steps: Sequence[Step], chosen: Mapping[str, str], apart: bool) -> list[Step]:
        """Applies the group's other parameters, which are words, to the loops."""
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Loop):
                step = replace(step, fuse="") if apart else step
                for name in ("vector", "accumulators", "unroll", "threads"):
                    # Unrolling is tried where it has not been chosen yet, for vectors; other words where they are.
                    has = step.vector and step.unroll is None if name == "unroll" else _has(step, name)
                    if name in chosen and has:
                        step = replace(step, **{name: _trial(step, name, chosen[name])})
            found.append(step)
        return found

    def _product_steps(
        self, group: _Group, steps: Mapping[str, list[Step]], chosen: Mapping[str, str]
    ) -> dict[str, list[Step]]:
        """Rebuilds the loops over tiles of a contraction and of its epilogue."""
        anchor = group.first
        product = _product(steps[anchor.label])
        assert product is not None
        template = self._chosen_template(group, steps[anchor.label], product, chosen)
        shared = loops_of(steps[anchor.label][: group.shared])
        found: dict[str, list[Step]] = {}
        for nest in group.members:
            had = steps[nest.label]
            names = {a.axis: b.axis for a, b in zip(shared, loops_of(had[: group.shared]), strict=True)}
            known = replace(template, shared=tuple(b for b in template.shared if b[0] in names))
            around = template.around_tile() if nest is anchor else []
            rest = _behind_tiles(had[group.shared :], product)
            moves = self._moves(nest, rest, names.get(product.columns, product.columns), template.width)
            tile = [replace(s, tile=template.tile) if isinstance(s, Product) else s for s in moves]
            found[nest.label] = [*known.outer(names), *around, *tile]
        return found

    def _chosen_template(
        self, group: _Group, steps: Sequence[Step], product: Product, chosen: Mapping[str, str]
    ) -> ProductTemplate:
        """Returns the template of a contraction with the chosen fields, and those of its current schedule."""
        lanes, shared = self._panel(group.first), loops_of(steps[: group.shared])
        tile = product.tile
        if "tile" in chosen:
            height, width = map(int, chosen["tile"].split("x"))
            tile = height, width
        tiles = [(product.columns, tile[1] * lanes), *([(product.rows, tile[0])] if product.rows else [])]
        axes = [axis for axis, _ in tiles]
        template = ProductTemplate(
            product.rows,
            product.columns,
            product.depth,
            tile,
            lanes,
            tuple((s.axis, s.by) for s in shared if s.axis not in axes),
            fuse=next((s.fuse for s in loops_of(steps) if s.fuse), ""),
        )
        depth = chosen.get("depth", str(_depth_block(steps, product)))
        if depth.isdigit() and int(depth):
            return self._in_depth_blocks(template, shared, tiles, chosen, int(depth))
        own = [s for s in shared if s.axis == product.columns]
        current = own[0].by // own[-1].by if len(own) > 1 and own[-1].by else 1
        at_once = int(chosen.get("columns", str(current))), int(chosen.get("rows", "1"))
        groups = [(axis, size * count) for (axis, size), count in zip(tiles, at_once, strict=False) if count > 1]
        last = next((s.axis for s in reversed(shared) if s.axis in axes), product.columns)
        order = chosen.get("order", "columns" if last != product.columns else "rows")
        tiles = tiles if order == "columns" else tiles[::-1]
        return replace(template, shared=(*template.shared, *groups, *tiles))

    def _in_depth_blocks(
        self,
        template: ProductTemplate,
        shared: Sequence[Loop],
        tiles: Sequence[Block],
        chosen: Mapping[str, str],
        depth: int,
    ) -> ProductTemplate:
        """Returns the template with a blocked depth. Its loops are inside those over groups of columns and of rows; the
        epilogue shares only these."""
        axes = {loop.axis for loop in shared}
        words = {template.columns: "columns", template.rows: "rows"}
        at_once = {axis: int(chosen.get(words[axis], self._together(shared, axis, size))) for axis, size in tiles}
        groups = [(axis, size * at_once[axis]) for axis, size in tiles if axis in axes]
        if chosen.get("order") == "rows":
            groups.reverse()
        inner = tuple((axis, size) for axis, size in tiles if at_once[axis] > 1 or axis not in axes)
        return replace(template, shared=(*template.shared, *groups), inner=inner, depth_block=depth)

    def _together(self, shared: Sequence[Loop], axis: str, size: int) -> int:
        """Returns the number of an axis's tiles in one cache block: that of the current schedule, or one that fits the
        caches of most CPUs where the schedule blocks single tiles."""
        had = max((s.by for s in shared if s.axis == axis), default=1) // size
        return had if had > 1 else TOGETHER

    def _moves(self, nest: NestOp, steps: Sequence[Step], columns: str, size: int) -> list[Step]:
        """Returns the steps behind the loops over tiles. The copy of a tile's columns is fully unrolled where every
        tile is full."""
        extent = nest.axis(columns).extent.constant
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Loop) and step.axis == columns and step.by == 1 and step.vector:
                whole = extent is not None and extent % size == 0 and size % step.vector == 0
                step = replace(step, unroll=0 if whole else None)
            found.append(step)
        return found

    def _row_steps(
        self, group: _Group, steps: Mapping[str, list[Step]], chosen: Mapping[str, str]
    ) -> dict[str, list[Step]]:
        """Sets another height for the row block of all members, and other panels for the contractions."""
        found: dict[str, list[Step]] = {}
        for nest in group.members:
            had = list(steps[nest.label])
            row = had[group.shared - 1]
            assert isinstance(row, Loop)
            if "height" in chosen:
                had[group.shared - 1] = replace(row, by=int(chosen["height"]))
            product = _product(had)
            if product is not None:
                rows = int(chosen.get("height", str(product.tile[0])))
                panels = int(chosen.get(f"panels.{nest.label}", str(product.tile[1])))
                size = panels * self._panel(nest)
                had = [replace(s, tile=(rows, panels)) if isinstance(s, Product) else s for s in had]
                had = [
                    replace(s, by=size) if isinstance(s, Loop) and s.axis == product.columns and s.by > 1 else s
                    for s in had
                ]
                had = self._moves(nest, had, product.columns, size)
            found[nest.label] = had
        return found

    def _sum_steps(self, group: _Group, chosen: Mapping[str, str], apart: bool) -> dict[str, list[Step]]:
        """Returns the steps of a register tile of sums around the reductions, and of its readers at the same tile."""
        nest = group.first
        height, vectors = map(int, chosen["tile"].split("x"))
        levels = _levels(group, nest)
        written = [s.symbol for s in nest.yield_op.clauses[0].subscripts]
        last = max(levels, key=lambda n: written.index(n) if n in written else -1)
        lanes = chosen.get("lanes", last)
        others = [n for n in levels if n != lanes]
        down = chosen.get("down", others[-1] if others else "")
        if down == lanes:
            down = ""
        width = self._lanes(nest)
        tiled = [(lanes, width * vectors), *([(down, height)] if down and height > 1 else [])]
        if chosen.get("inside") == "lanes":
            tiled.reverse()
        outer = [n for n in others if n not in [t for t, _ in tiled]]
        sums = chosen["sums"].split("-") if "sums" in chosen else []
        reductions = [a.name for a in nest.axes if a.kind == "reduction"]
        reductions = [*(n for n in reductions if n not in sums), *sums]
        alone = [a.name for a in nest.axes if a.kind == "parallel" and a.name not in levels]
        found: dict[str, list[Step]] = {}
        for member in group.members:
            names = dict(zip(levels, _levels(group, member), strict=True))
            fuse = "" if apart or len(group.members) == 1 else group.name
            order = [*outer, *(t for t, _ in tiled)]
            steps: list[Step] = [Loop(names[n], fuse=fuse) for n in order]
            if member is nest:
                sizes = dict(tiled)
                steps = [
                    replace(s, by=sizes[s.axis], tail=_tail(nest, s.axis, sizes[s.axis], chosen.get("tail")))
                    if isinstance(s, Loop) and sizes.get(s.axis, 1) > 1
                    else s
                    for s in steps
                ]
                steps = [*(Loop(n) for n in alone), *steps, *(Loop(n) for n in reductions)]
                steps += [Loop(down, unroll=0)] if len(tiled) > 1 else []
                steps += [Loop(lanes, vector=width, unroll=0)]
            else:
                rest = [a.name for a in member.axes if a.name not in names.values()]
                steps += [Loop(n) for n in rest]
                if apart:
                    # A nest that is not fused has no tile to get its vectors from.
                    steps.sort(key=lambda s: isinstance(s, Loop) and s.axis == names[lanes])
                    steps[-1] = Loop(names[lanes], vector=width)
            found[member.label] = on_threads(steps, _parallel(member))
        return found


# -- groups -----------------------------------------------------------------------------------------------------------


def _groups(kernel: KernelOp) -> list[_Group]:
    """Groups the nests whose first loops have the same `fuse` label, in order; a nest without a label is its own
    group."""
    by_name: dict[str, list[NestOp]] = {}
    for nest in kernel.nests:
        if nest.schedule is None:
            raise ValueError(f"nest '{nest.label}' has no schedule")
        name = next((s.fuse for s in nest.schedule.loops if s.fuse), f"nest-{nest.label}")
        by_name.setdefault(name, []).append(nest)
    return [_Group(name, members, min(map(_shared, members))) for name, members in by_name.items()]


def _shared(nest: NestOp) -> int:
    """Counts the leading loops of a nest that are shared."""
    assert nest.schedule is not None
    return sum(1 for _ in itertools.takewhile(lambda s: isinstance(s, Loop) and s.fuse, nest.schedule.data))


def _kind(group: _Group) -> str:
    products = [nest for nest in group.members if _product(group.steps(nest)) is not None]
    if products:
        found = _product(group.steps(group.first))
        shared = {s.axis for s in group.steps(group.first)[: group.shared] if isinstance(s, Loop)}
        if found is not None and len(products) == 1 and found.columns in shared:
            return "product"
        return "rows" if group.shared else "plain"
    adding = [nest for nest in group.members if any(a.kind == "reduction" and a.extent != ONE for a in nest.axes)]
    if adding == [group.first] and _levels(group, group.first):
        return "sums"
    return "plain"


def _product(steps: Sequence[Step]) -> Product | None:
    return next((s for s in steps if isinstance(s, Product)), None)


def _tail(nest: NestOp, axis: str, size: int, chosen: str | None) -> Tail:
    """Returns the treatment of an axis's last block. Unrolled loops need a full block, or a copy for the partial
    one."""
    extent = nest.axis(axis).extent.constant
    if extent is not None and extent % size == 0:
        return "mask"
    return "rest" if chosen == "rest" else "peel"


def _levels(group: _Group, nest: NestOp) -> list[str]:
    """Returns the nest's axes that the group shares, in loop order; for a group of one nest, all its parallel axes."""
    kinds = {a.name: a.kind for a in nest.axes}
    if len(group.members) > 1:
        loops = [s.axis for s in group.steps(nest)[: group.shared] if isinstance(s, Loop)]
        return list(dict.fromkeys(n for n in loops if kinds[n] == "parallel"))
    loops = [s.axis for s in group.steps(nest) if isinstance(s, Loop)]
    return [n for n in dict.fromkeys(loops) if kinds[n] == "parallel" and nest.axis(n).extent != ONE]


def _free(steps: Sequence[Step]) -> list[Loop]:
    """Returns the interchangeable loops of an unfused nest: the plain ones at the beginning."""
    return [
        s
        for s in itertools.takewhile(lambda s: isinstance(s, Loop) and s.by == 1 and not s.vector, steps)
        if isinstance(s, Loop)
    ]


def _orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns orders of the loops, the given one first; at most `MOST_ORDERS`."""
    return list(itertools.islice(itertools.permutations(names), MOST_ORDERS)) if len(names) > 1 else [tuple(names)]


def _reordered(steps: Sequence[Step], order: Sequence[str]) -> list[Step]:
    first = {s.axis: s for s in _free(steps)}
    threads = next((s.threads for s in first.values() if s.threads is not None), None)
    loops = [replace(first[n], threads=threads if k == 0 else None) for k, n in enumerate(order)]
    return [*loops, *steps[len(loops) :]]


def _depth_block(steps: Sequence[Step], product: Product) -> int:
    """Returns the block size of a contraction's depth; 0 where the depth is not blocked."""
    return next((s.by for s in steps if isinstance(s, Loop) and s.axis == product.depth and s.by > 1), 0)


def _behind_tiles(steps: Sequence[Step], product: Product) -> list[Step]:
    """Returns a nest's own steps, without the loops over tiles and over blocks of the depth."""
    place = next((k for k, s in enumerate(steps) if isinstance(s, Product)), 0)
    return [s for k, s in enumerate(steps) if k >= place or not isinstance(s, Loop) or s.axis not in product.axes]


def _has(loop: Loop, name: str) -> bool:
    return any(row.name == name for row in words_in(loop))


def _trial(loop: Loop, name: str, value: str) -> int:
    """Returns a word's value: the given count, or half or double of the current one."""
    if value in ("half", "double"):
        current = getattr(loop, name)
        return max(2, current // 2) if value == "half" else 2 * current
    return int(value)


def _parallel(nest: NestOp) -> set[str]:
    return {a.name for a in nest.axes if a.kind == "parallel"}
