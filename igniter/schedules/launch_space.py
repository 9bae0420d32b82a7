"""The space of schedules of one kernel on a GPU: the alternatives to the launches of the author `triton`.

    space = LaunchSpace(kernel, "", figures_of("sm_90"))
    space.parameters                                 # (Parameter("l0.rows", ("author", "16", "32", ...)), ...)
    space.schedules({"l0.rows": "64", "l0.warps": "8"})

The nests of a launch are a group, and have its parameters in common:

    product     `rows`, `columns` and `depth` of a block (in elements), `group` (blocks of rows in sequence),
                `descriptors` (1: factors by descriptors, where they are blocks of tensors), `persistent` (the most
                programs, each with several blocks; 0: one program for each block)
    attention   `rows` and `keys` of a block, `share` (the keys of a program, where several programs share a head's),
                `group`
    any other   `block0`, `block1`, .. (the elements of a program along each dim of the grid, or of each step along a
                dim that does not fit)
    all         `warps`; with a loop over blocks `stages`

The value "author" keeps the author's choice. The checks of the language, Triton and the GPU's limits may still refuse a
point. The parts of a sum (`choose-splits`) are no part of a schedule: they are nests of the kernel.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from igniter.analysis.structured.dot_products import LEAST
from igniter.dialects.loop import KernelOp, element_bytes
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.dialects.sym.expr import ONE
from igniter.schedules.descriptor_use import has_descriptors
from igniter.schedules.launch_groups import LaunchGroup, attention_dims, launch_groups
from igniter.schedules.product_blocks import GROUP, Figures
from igniter.schedules.space import AUTHOR, Parameter
from igniter.schedules.triton_author import (
    LONGEST_ROW,
    Ways,
    expected_seconds_of,
    schedules_of,
    ways_of,
    wide_dims,
)

SIDES = (16, 32, 64, 128, 256)
"""The sides of a block of a product or an attention."""

WARPS = (1, 2, 4, 8)
STAGES = (2, 3, 4, 5)
TOGETHER = (1, 4, GROUP, 16, 32)
"""The blocks of rows of a group of programs."""
FACTORS = (4, 2)
"""How much smaller and larger than the author's a block of other nests may be."""
MOST_RANDOM = 4096


@dataclass
class _Group:
    label: str
    group: LaunchGroup
    ways: Ways
    dims: dict[str, str] = field(default_factory=dict[str, str])
    """The dim of each parameter that changes lanes."""
    parameters: list[Parameter] = field(default_factory=list[Parameter])

    def add(self, name: str, values: Sequence[int], dim: str = "") -> None:
        """Adds a parameter, if it has more than the author's value."""
        told = tuple(dict.fromkeys((AUTHOR, *map(str, values))))
        if len(told) > 1:
            self.parameters.append(Parameter(f"{self.label}.{name}", told))
            if dim:
                self.dims[name] = dim


class LaunchSpace:
    """The space of a kernel's launches (see the module's text). Procedures keep their schedules."""

    def __init__(self, kernel: KernelOp, products: str, gpu: Figures):
        self._kernel, self._products, self._gpu = kernel, products, gpu
        self._groups = [
            _Group(f"l{k}", group, ways_of(group, products, gpu))
            for k, group in enumerate(launch_groups(kernel))
            if group.procedure is None
        ]
        for each in self._groups:
            _parametrize(each, gpu)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters, launch by launch."""
        return tuple(p for each in self._groups for p in each.parameters)

    def first(self) -> dict[str, str]:
        """Returns point 0: the author's schedules."""
        return {p.name: AUTHOR for p in self.parameters}

    def points(self, seed: int = 0) -> Iterator[dict[str, str]]:
        """Yields points in order of distance: point 0, each value of each parameter alone, then random points."""
        near = [self.first()]
        near += [{**self.first(), p.name: value} for p in self.parameters for value in p.values[1:]]
        yield from near
        rng = random.Random(seed)
        seen = {tuple(point.values()) for point in near}
        for _ in range(MOST_RANDOM):
            point = {p.name: rng.choice(p.values) for p in self.parameters}
            if tuple(point.values()) not in seen:
                seen.add(tuple(point.values()))
                yield point

    def schedules(self, point: Mapping[str, str]) -> dict[str, ScheduleAttr]:
        """Returns the schedule of every nest at a point, by label. Raises `ValueError` for an unknown name or value."""
        known = {p.name: p.values for p in self.parameters}
        for name, value in point.items():
            if value not in known.get(name, ()):
                raise ValueError(f"the space of launches has no value '{value}' for '{name}'")
        found = {n.label: n.schedule for n in self._kernel.nests if n.schedule is not None}
        for each in self._groups:
            found |= schedules_of(each.group, _ways(each, point), each.label)
        return found

    def seconds(self, point: Mapping[str, str]) -> float | None:
        """Returns the expected seconds of the launches with products at a point, by the times that choose the author's
        blocks; None for a kernel without products."""
        found = [expected_seconds_of(g.group, _ways(g, point), self._products, self._gpu) for g in self._groups]
        known = [seconds for seconds in found if seconds is not None]
        return sum(known) if known else None


def _parametrize(each: _Group, gpu: Figures) -> None:
    group, ways = each.group, each.ways
    if group.attention is not None:
        dims = attention_dims(group)
        assert dims is not None
        if dims.rows:
            each.add("rows", _sides(group, dims.rows), dims.rows)
        each.add("keys", _sides(group, dims.keys), dims.keys)
        share = ways.shares.get(dims.keys, 0)
        each.add("share", [share // 4, share // 2, 2 * share, 4 * share] if share else [])
    elif group.product is not None:
        nest, dot = group.product
        for name, dim in zip(("rows", "columns"), wide_dims(group), strict=True):
            each.add(name, _sides(group, dim), dim)
        depth = group.names[nest][dot.depth]
        lanes = ways.lanes[depth]
        each.add("depth", [max(LEAST, lanes // 2), lanes, 2 * lanes], depth)
        if gpu.descriptors and element_bytes(dot.element) == 2:
            each.add("descriptors", (0, 1))
        each.add("persistent", (0, gpu.multiprocessors))
    else:
        wide = [d for d in group.dims if group.dims[d] != ONE and (d in group.grid or d in ways.looped)]
        for k, dim in enumerate(wide):
            each.add(f"block{k}", _around(group, ways.lanes[dim], dim), dim)
    each.add("warps", WARPS)
    if ways.looped:
        each.add("stages", STAGES)
    several = [d for d in group.grid if group.dims[d] != ONE]
    if len(several) > 1 and (group.attention is not None or group.product is not None):
        each.add("group", TOGETHER)


def _sides(group: LaunchGroup, dim: str) -> list[int]:
    """Returns the sides that do not exceed an extent by more than a power of two."""
    extent = group.dims[dim].constant
    return [s for s in SIDES if extent is None or s == LEAST or s < 2 * extent]


def _around(group: LaunchGroup, lanes: int, dim: str) -> list[int]:
    """Returns numbers of elements smaller and larger than the author's."""
    extent = group.dims[dim].constant
    most = LONGEST_ROW if extent is None else min(LONGEST_ROW, 2 * extent - 1)
    values = [*(lanes // f for f in FACTORS), *(lanes * f for f in reversed(FACTORS))]
    return [v for v in values if 1 <= v <= most]


def _ways(each: _Group, point: Mapping[str, str]) -> Ways:
    """Returns the author's choice of a launch with the values of a point."""
    ways, group, own = each.ways, each.group, f"{each.label}."
    chosen = {n.removeprefix(own): int(v) for n, v in point.items() if n.startswith(own) and v != AUTHOR}
    shares = {d: chosen.get("share", share) for d, share in ways.shares.items()}
    lanes = {**ways.lanes, **{each.dims[n]: v for n, v in chosen.items() if n in each.dims}}
    looped = set(ways.looped)
    inside = group.reduced | group.whole
    for dim in (d for d in each.dims.values() if d in inside):
        extent = group.dims[dim].constant
        if extent is None or extent > lanes[dim]:
            looped.add(dim)
        else:
            looped.discard(dim)
    launch = ways.launch
    described = (
        bool(chosen.get("descriptors", launch.descriptors)) and group.product is not None and has_descriptors(group)
    )
    launch = replace(
        launch,
        descriptors=described,
        warps=chosen.get("warps", launch.warps),
        stages=chosen.get("stages", launch.stages),
        group=chosen.get("group", launch.group),
        persistent=chosen.get("persistent", launch.persistent),
    )
    return Ways(lanes, looped, shares, launch)
