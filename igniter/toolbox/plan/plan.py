"""The memory plan of a model: the places of its activations, and the total.

    plan_memory(module, sizes) -> MemoryPlan

The module has inferred shapes and inlined functions. The counted values, their lifetimes and their shared buffers are
defined in `plan_values.py`, the order of the nodes in `plan_order.py`. Buffers are placed by
`igniter/analysis/scheduled/placement.py`, like those of compiled programs. Three totals measure the quality of a plan:

* `native`: every activation has a buffer of its own.
* `total`: the plan. Buffers without a common step share memory.
* `lower_bound`: the most bytes needed in one step. No plan of this order and these buffers takes less.

Sizes are in bytes, those of buffers in whole units of `align` bytes. They are expressions in the model's symbols, and
so are the offsets, valid for all values of these: typical sizes decide the order of buffers in memory. With a size for
every symbol all of them are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from igniter.analysis.onnx.input_places import shown_dims
from igniter.analysis.scheduled.placement import ALIGNMENT, Conflicts, Span, aligned, place
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, module_symbols, require_known
from igniter.dialects.fusion import GroupOp, ProgramOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.dialects.sym.expr import ZERO, Expr, maximum
from igniter.dialects.sym.ranges import is_nonneg
from igniter.errors import IgniterError
from igniter.toolbox.plan.plan_values import Lifetimes, Rules, lifetimes

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

SEARCH = 100_000
"""The number of buffer placements to search while no plan reaches the bound: a second or two."""


@dataclass(frozen=True)
class Activation:
    """One value: `bytes` of it are kept in the steps `first` to `last`, in buffer number `buffer`."""

    name: str
    kind: str
    """`result`, `output`, `input`, `carried` or `arena` (`plan_values.py`)."""
    dtype: str
    dims: tuple[Expr, ...]
    bytes: Expr
    first: int
    last: int
    buffer: int
    shares: str
    """The rule by which it shares a buffer, and the other value: "in place of x"; "" if it has its own."""

    def to_dict(self) -> dict[str, Any]:
        """Converts the value to JSON values; expressions without symbols are numbers."""
        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "dims": [_json(d) for d in self.dims],
            "bytes": _json(self.bytes),
            "first": self.first,
            "last": self.last,
            "buffer": self.buffer,
            "shares": self.shares,
        }


@dataclass(frozen=True)
class Buffer:
    """`size` bytes from `offset` on, in use from the step `first` to `last`, by these activations in turn."""

    offset: Expr
    size: Expr
    first: int
    last: int
    values: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Converts the buffer to JSON values."""
        return {
            "offset": _json(self.offset),
            "size": _json(self.size),
            "first": self.first,
            "last": self.last,
            "values": list(self.values),
        }


@dataclass(frozen=True)
class PlanStep:
    """One node in the order of execution, and the bytes of all buffers then in use. `graph` is the node and the graph
    around it (`if_1.then_branch`), "" for the main graph."""

    name: str
    op: str
    graph: str
    live: Expr

    def to_dict(self) -> dict[str, Any]:
        """Converts the step to JSON values."""
        return {"name": self.name, "op": self.op, "graph": self.graph, "live": _json(self.live)}


@dataclass(frozen=True)
class MemoryPlan:
    """The steps, activations and buffers of a model, and their totals."""

    order: str
    steps: tuple[PlanStep, ...]
    activations: tuple[Activation, ...]
    buffers: tuple[Buffer, ...]
    total: Expr
    align: int
    """The alignment of buffers in bytes: their offsets and sizes are multiples of it."""
    sizes: dict[str, int]
    """The given sizes of symbols; these occur in no expression."""
    typical: dict[str, int]
    """The assumed sizes of the other symbols, for the choices of the plan."""
    uncounted: tuple[tuple[str, str], ...]
    """Values whose bytes are not known, each with the reason."""
    folded: int
    """Nodes on weights alone: they are computed when the model is loaded and are no steps."""

    def __repr__(self) -> str:
        counts = f"{len(self.activations)} activations in {len(self.buffers)} buffers"
        return f"<MemoryPlan: {len(self.steps)} steps, {counts}, {self.total} bytes>"

    @cached_property
    def native(self) -> Expr:
        """The bytes of all activations, each in a buffer of its own."""
        return sum((a.bytes for a in self.activations), ZERO)

    @cached_property
    def lower_bound(self) -> Expr:
        """The most bytes in use in one step."""
        return largest(step.live for step in self.steps)

    @cached_property
    def peak(self) -> int | None:
        """The number of the first step with the most bytes in use, at typical sizes; `None` without steps."""
        live = [self.value(step.live) for step in self.steps]
        return live.index(max(live)) if live else None

    @property
    def at_bound(self) -> bool:
        """True if the plan takes no more than the lower bound: for all sizes if provable, else at typical sizes."""
        return self.total == self.lower_bound or self.value(self.total) == self.value(self.lower_bound)

    def value(self, e: Expr, sizes: Mapping[str, int] | None = None) -> int:
        """Returns the value of an expression at sizes, by default the typical ones."""
        return TypicalSizes(tuple((self.typical if sizes is None else sizes).items())).value(e, MEMORY)

    def overlaps(self, sizes: Mapping[str, int] | None = None) -> list[tuple[int, int]]:
        """Returns the pairs of buffers with a common step and overlapping places, at sizes; a valid plan has none."""
        places = [(self.value(b.offset, sizes), self.value(b.size, sizes)) for b in self.buffers]
        found: list[tuple[int, int]] = []
        for a, others in enumerate(_conflicts([(b.first, b.last) for b in self.buffers])):
            for b in (b for b in others if b > a and places[a][1] and places[b][1]):
                if places[a][0] < places[b][0] + places[b][1] and places[b][0] < places[a][0] + places[a][1]:
                    found.append((a, b))
        return found

    def at(self, **sizes: int) -> MemoryPlan:
        """Returns the same plan with sizes substituted for symbols: the same places, in numbers."""
        values = {name: Expr.of(size) for name, size in sizes.items()}

        def put(e: Expr) -> Expr:
            return e.substitute(values)

        return replace(
            self,
            steps=tuple(replace(s, live=put(s.live)) for s in self.steps),
            activations=tuple(replace(a, bytes=put(a.bytes), dims=tuple(map(put, a.dims))) for a in self.activations),
            buffers=tuple(replace(b, offset=put(b.offset), size=put(b.size)) for b in self.buffers),
            total=put(self.total),
            sizes={**self.sizes, **sizes},
            typical={name: size for name, size in self.typical.items() if name not in sizes},
        )

    def to_dict(self) -> dict[str, Any]:
        """Converts the plan to JSON values; expressions without symbols are numbers."""
        return {
            "order": self.order,
            "align": self.align,
            "sizes": self.sizes,
            "typical": self.typical,
            "native": _json(self.native),
            "total": _json(self.total),
            "lower_bound": _json(self.lower_bound),
            "at_bound": self.at_bound,
            "peak": self.peak,
            "folded": self.folded,
            "steps": [step.to_dict() for step in self.steps],
            "activations": [a.to_dict() for a in self.activations],
            "buffers": [b.to_dict() for b in self.buffers],
            "uncounted": [{"name": name, "reason": reason} for name, reason in self.uncounted],
        }


def plan_memory(
    module: ModuleOp,
    sizes: Mapping[str, int] | None = None,
    order: str = "ort",
    rules: Rules | None = None,
    align: int = ALIGNMENT,
    arenas: Mapping[Operation, Expr] | None = None,
) -> MemoryPlan:
    """Returns the plan of a module with inferred shapes and inlined functions. `arenas` are the bytes of each running
    compiled program in it.

    `sizes` are of symbols, in elements. Raises `IgniterError` for a size of an unknown symbol, for an unknown order,
    and for an `align` below 1.
    """
    if align < 1:
        raise IgniterError(f"buffers cannot be aligned to {align} bytes: 1 is no alignment, 64 a cache line")
    if not any(isinstance(op, GraphOp) for op in module.ops):
        raise IgniterError("there is no graph to plan: kernels are not a model")
    sizes = dict(sizes or {})
    require_known(sizes, module_symbols(module), partial(shown_dims, module))
    found = lifetimes(main_graph(module), order, rules or Rules(), arenas)
    values = {name: Expr.of(size) for name, size in sizes.items()}
    for value in found.values:
        value.size, value.dims = value.size.substitute(values), tuple(d.substitute(values) for d in value.dims)
    symbols = sorted({s for v in found.values for s in v.size.symbols})
    return _placed(found, order, sizes, dict.fromkeys(symbols, MEMORY), align)


def _placed(found: Lifetimes, order: str, sizes: dict[str, int], typical: dict[str, int], align: int) -> MemoryPlan:
    groups = [[found.values[k] for k in group] for group in found.groups]
    # Views may write the size of a buffer as another expression.
    spans = [Span(aligned(g[0].size, align), min(v.first for v in g), max(v.last for v in g)) for g in groups]
    live = _live(spans, len(found.steps))
    given = TypicalSizes(tuple(typical.items()))

    def value(e: Expr) -> int:
        return given.value(e, MEMORY)

    conflicts = Conflicts(_conflicts([(s.first, s.last) for s in spans]), [set[int]() for _ in spans])
    offsets, total = place(spans, conflicts, value, max(map(value, live), default=0), SEARCH)
    home = {id(v): k for k, group in enumerate(groups) for v in group}
    return MemoryPlan(
        order,
        tuple(PlanStep(s.name, _op_text(s.op), s.graph, e) for s, e in zip(found.steps, live, strict=True)),
        tuple(
            Activation(v.name, v.kind, v.dtype, v.dims, v.size, v.first, v.last, home[id(v)], v.how)
            for v in found.values
        ),
        tuple(
            Buffer(offset, s.size, s.first, s.last, tuple(v.name for v in group))
            for offset, s, group in zip(offsets, spans, groups, strict=True)
        ),
        total,
        align,
        sizes,
        typical,
        tuple(found.uncounted),
        found.folded,
    )


def _op_text(op: Operation) -> str:
    """Returns the op of a step; for groups compiled by Igniter `program`, or `kernel` for one in a graph of a node."""
    if isinstance(op, GroupOp):
        return "program" if isinstance(op, ProgramOp) else "kernel"
    return op_name(op)


def _live(spans: Sequence[Span], steps: int) -> list[Expr]:
    """Returns the bytes in use in each step."""
    change: list[Expr] = [ZERO] * (steps + 1)
    for span in spans if steps else ():
        change[span.first] = change[span.first] + span.size
        change[span.last + 1] = change[span.last + 1] - span.size
    live: list[Expr] = []
    now = ZERO
    for step in range(steps):
        now = now + change[step]
        live.append(now)
    return live


def _conflicts(spans: Sequence[tuple[int, int]]) -> list[set[int]]:
    """Returns, for each span of steps, the overlapping spans."""
    found: list[set[int]] = [set() for _ in spans]
    open_: set[int] = set()
    for k in sorted(range(len(spans)), key=lambda k: spans[k]):
        open_ = {j for j in open_ if spans[j][1] >= spans[k][0]}
        for j in open_:
            found[j].add(k)
        found[k] |= open_
        open_.add(k)
    return found


def largest(sizes: Iterable[Expr]) -> Expr:
    """Returns the largest of sizes, as a maximum of all sizes not provably smaller than another."""
    kept: list[Expr] = []
    for size in dict.fromkeys(sizes):
        if not any(is_nonneg(other - size) for other in kept):
            kept = [*(other for other in kept if not is_nonneg(size - other)), size]
    return ZERO if not kept else kept[0] if len(kept) == 1 else maximum(*kept)


def _json(e: Expr) -> int | str:
    return e.constant if e.constant is not None else str(e)
