"""The nests of one GPU launch: nests on the same blocks, element by element.

A *dim* of a launch is a shared axis of its nests. A nest joins a launch if each of its reads of another member's result
accesses exactly the element in the same block:

    max [i, k: reduction]  reads x[i, k]                        dims: i, k
    exp [i, j]             reads x[i, j], max[i, 0]             j is k: its own reads have the same extent
    sum [i, k: reduction]  reads exp[i, k]

Values then stay in registers, and a reduced result is a block with a dim of one. A program covers the whole of a dim
along which a nest reduces, so no nest can divide this dim among programs. The remaining dims index the programs
(`LaunchGroup.grid`).

An attention is the launch of two products, with all nests between them (`igniter.analysis.structured.attention`). The
sums of the first product, of a short depth, are computed where they are used, and its columns are the depth of the
second.

A procedure has a launch of its own.

A later nest with a dependence on a launch cannot be a source of the launch: groups are the nodes of an acyclic graph
(`in_order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import SSAValue

from igniter.analysis.structured.attention import LONGEST_DEPTH, Attention, attentions, short_depth
from igniter.analysis.structured.dot_products import DotProduct, dot_product
from igniter.dialects.loop import KernelOp, NestOp, ProcedureOp, ReadOp, ViewOp
from igniter.dialects.sym.expr import ONE, Expr
from igniter.errors import IgniterError


@dataclass(eq=False)
class LaunchGroup:
    """The nests of one launch, in the order of the kernel, or one procedure."""

    attention: Attention | None = None
    """The attention formed by the first members."""
    products: str = ""
    """The arithmetic of its f32 products, if the schedules give it."""
    blocks_together: int = 1
    """The blocks of the grid's second last dim that consecutive programs cover for one block of its last dim."""
    descriptors: bool = False
    """True if its products and results are accessed by descriptors."""
    specialized: bool = False
    """True if other warps load the blocks of factors."""
    persistent: int = 0
    """The most programs, each of which computes several blocks of the grid; 0: one program for each block."""
    procedure: ProcedureOp | None = None
    members: list[NestOp] = field(default_factory=list[NestOp])
    names: dict[NestOp, dict[str, str]] = field(default_factory=dict[NestOp, dict[str, str]])
    """The dim of each axis, for each member."""
    dims: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The extents of the dims, in the order of blocks."""
    reduced: set[str] = field(default_factory=set[str])
    """The dims along which a member reduces."""
    whole: set[str] = field(default_factory=set[str])
    """The dims covered whole by a program though nothing reduces along them: the features weighed by an attention."""

    @property
    def grid(self) -> list[str]:
        """The dims indexing the programs."""
        return [d for d in self.dims if d not in self.reduced | self.whole]

    @property
    def scores(self) -> NestOp | None:
        """The member whose sums are computed where they are used."""
        return None if self.attention is None else self.attention.scores

    @cached_property
    def _first(self) -> tuple[NestOp, DotProduct] | None:
        first = self.members[0]
        dot = dot_product(first)
        return None if dot is None else (first, dot)

    @property
    def product(self) -> tuple[NestOp, DotProduct] | None:
        """The first member, if it is a product of blocks."""
        return self._first if self.members else None

    def makes(self, value: SSAValue) -> bool:
        """True if a member computes the value."""
        return isinstance(value.owner, NestOp) and value.owner in self.names

    @property
    def label(self) -> str:
        """The label of its first nest, or of its procedure."""
        return self.members[0].label if self.procedure is None else self.procedure.label

    @property
    def sources(self) -> set[SSAValue]:
        """The tensors that it reads."""
        if self.procedure is not None:
            return {root_of(value) for value in self.procedure.inputs}
        return {root_of(op.source) for nest in self.members for op in nest.reads}

    def results_in(self, values: Iterable[SSAValue]) -> bool:
        """True if it computes one of the values, as a nest or as its procedure."""
        return any(self.makes(v) or (self.procedure is not None and v.owner is self.procedure) for v in values)

    def written(self, value: SSAValue) -> tuple[Expr, ...]:
        """Returns the subscripts with which a member writes its result, in dims."""
        owner = value.owner
        assert isinstance(owner, NestOp)
        index = list(owner.outputs).index(value)  # pyright: ignore[reportArgumentType]
        return renamed(owner.yield_op.clauses[index].subscripts, self.names[owner])

    def weighed(self, nest: NestOp) -> str | None:
        """Returns the feature axis, if the nest is the weighted sum of the group's attention; `None` for other
        nests."""
        return self.attention.features if self.attention is not None and self.attention.values is nest else None

    def add(self, nest: NestOp, names: Mapping[str, str]) -> None:
        """Adds a nest, with the dims of its axes; new dims come last."""
        weighed = self.weighed(nest)
        if weighed is not None:
            self.whole.add(names[weighed])
        self.members.append(nest)
        self.names[nest] = dict(names)
        for axis in nest.axes:
            self.dims.setdefault(names[axis.name], axis.extent)
            if axis.kind == "reduction":
                self.reduced.add(names[axis.name])


def renamed(exprs: Iterable[Expr], names: Mapping[str, str]) -> tuple[Expr, ...]:
    """Rewrites expressions over axes as expressions over dims."""
    values = {axis: Expr.of(dim) for axis, dim in names.items()}
    return tuple(e.substitute(values) for e in exprs)


def first_names(nest: NestOp) -> dict[str, str]:
    """Returns the dims of a launch for its first nest."""
    return {axis.name: f"a{k}" for k, axis in enumerate(nest.axes)}


def joined(group: LaunchGroup, nest: NestOp) -> dict[str, str] | str:
    """Returns the dims of a nest's axes in a group, or the reason why it cannot join."""
    found: dict[str, str] = {}
    reads = [op for op in nest.reads if group.makes(root_of(op.source))]
    if any(not group.makes(op.source) for op in reads):
        return "it reads through a view"
    for read in reads:
        reason = _match(group, read, found)
        if reason is not None:
            return reason
    if len(set(found.values())) < len(found):
        return "two of its axes map to one dim of the launch"
    _match_rest(group, nest, found)
    for axis in nest.axes:
        if group.dims.get(found[axis.name], axis.extent) != axis.extent:
            return f"'{axis.name}' and its dim of the launch have different extents"
    for read in reads:
        if renamed(read.subscripts, found) != group.written(read.source):
            return "it reads elements outside its block"
    reason = _reduction_reason(group, nest, found)
    return found if reason is None else reason


def _match(group: LaunchGroup, read: ReadOp, found: dict[str, str]) -> str | None:
    """Adds the dims implied for the axes by a read of a member's result; returns a reason if they contradict
    `found`."""
    if read.indices:
        return "its reads have indirect subscripts"
    for mine, theirs in zip(read.subscripts, group.written(read.source), strict=True):
        axis, dim = mine.symbol, theirs.symbol
        if axis is None or dim is None or dim not in group.dims:
            if axis is not None and theirs == Expr.of(0):
                return "it reads along a dim of size 1"
            continue
        if found.setdefault(axis, dim) != dim:
            return "it reads elements outside its block"
    return None


def _match_rest(group: LaunchGroup, nest: NestOp, found: dict[str, str]) -> None:
    """Maps the axes without a dim yet to dims of the same extent, in order, else to new ones."""
    # Sums computed where they are used, and the values of an attention, have dims of their own.
    scores = group.scores
    summed = [a.name for a in scores.axes if a.kind == "reduction"] if scores is not None else []
    own = {group.names[scores][name] for name in summed} if scores is not None else set[str]()
    weighing = group.weighed(nest) is not None
    free = [d for d in group.dims if d not in found.values() and d not in own and not weighing]
    for axis in nest.axes:
        if axis.name in found:
            continue
        dim = next((d for d in free if group.dims[d] == axis.extent and axis.extent != ONE), None)
        if dim is None:
            dim = f"a{len(group.dims) + sum(d not in group.dims for d in found.values())}"
        else:
            free.remove(dim)
        found[axis.name] = dim


def _reduction_reason(group: LaunchGroup, nest: NestOp, names: Mapping[str, str]) -> str | None:
    """Returns the reason why a program would not cover all of a reduction, or not own its elements."""
    reduces = {names[a.name] for a in nest.axes if a.kind == "reduction"}
    for member in group.members:
        if member is group.scores:
            continue
        kept = {group.names[member][a.name] for a in member.axes if a.kind == "parallel"}
        drops = {group.names[member][a.name] for a in member.axes if a.kind == "reduction"}
        mine = {names[a.name] for a in nest.axes if a.kind == "parallel"}
        if drops and reduces & kept:
            return f"it reduces along a parallel axis of the sums of '{member.label}'"
        if reduces and drops & mine:
            return f"'{member.label}' reduces along one of its parallel axes"
    extents = {**group.dims, **{names[a.name]: a.extent for a in nest.axes}}
    weighed = group.weighed(nest)
    whole = group.whole | {names[axis] for axis in (weighed,) if axis is not None}
    grid = {d for d in extents if d not in group.reduced | reduces | whole and extents[d] != ONE}
    if reduces and group.grid and not grid:
        return "no dim would be left for the grid of programs"
    # A nest without one of the grid's dims would be computed again by each program along it, and not at all if it is
    # empty.
    for member, dims in ((nest, names), *group.names.items()):
        if not grid <= set(dims.values()):
            return f"'{member.label}' lacks a dim of the grid, so several programs would compute the same elements"
    return None


def launch_groups(kernel: KernelOp) -> list[LaunchGroup]:
    """Returns the launches of a kernel, each after those whose results it reads. Every nest joins the last launch with
    one of its operands, if it can."""
    groups: list[LaunchGroup] = []
    homes = {nest: group for group in _attention_groups(kernel) for nest in group.members}
    for nest in kernel.computations:
        if isinstance(nest, ProcedureOp):
            groups.append(LaunchGroup(procedure=nest))
            continue
        assert isinstance(nest, NestOp)
        if nest in homes:
            if homes[nest] not in groups:
                groups.append(homes[nest])
            continue
        sources = [g for g in groups if any(g.makes(op.source) for op in nest.reads)]
        home = next((g for g in reversed(sources) if _can_join(groups, g, nest)), None)
        names = joined(home, nest) if home is not None and _suits(home, nest) else None
        if home is None or names is None or isinstance(names, str):
            home, names = LaunchGroup(), first_names(nest)
            groups.append(home)
        home.add(nest, names)
    return in_order(groups)


def _attention_groups(kernel: KernelOp) -> list[LaunchGroup]:
    """Returns the launches of attentions, without later nests."""
    found: list[LaunchGroup] = []
    for attention in attentions(kernel):
        group = LaunchGroup(attention)
        for nest in attention.members:
            names = joined(group, nest) if group.members else first_names(nest)
            if isinstance(names, str):
                break
            group.add(nest, names)
        else:
            if attention_dims(group) is not None:
                found.append(group)
    return found


@dataclass(frozen=True)
class AttentionDims:
    """The dims of an attention."""

    rows: str
    """"" without rows."""
    keys: str
    features: str
    """The dim of the values' features."""
    depth: str
    """The dim of the scores' depth."""


def attention_dims(group: LaunchGroup) -> AttentionDims | None:
    """Returns the dims of an attention; `None` where its two products have different rows or keys, or a block cannot
    hold all of its features."""
    attention = group.attention
    depth = short_depth(attention.scores) if attention is not None else None
    if attention is None or depth is None:
        return None
    scores, values = group.names[attention.scores], group.names[attention.values]
    rows = values[attention.rows] if attention.rows else ""
    found = AttentionDims(rows, values[attention.keys], values[attention.features], scores[depth])
    features = group.dims[found.features].constant
    if features is None or features > LONGEST_DEPTH:
        return None
    inner = dot_product(attention.scores)
    if not rows:
        return found
    return found if inner is not None and {rows, found.keys} == {scores[inner.row], scores[inner.column]} else None


def _suits(group: LaunchGroup, nest: NestOp) -> bool:
    """True if a launch is no worse for a nest: a product of blocks begins a launch without other reductions."""
    if dot_product(nest) is not None:
        return False
    return group.product is None or all(axis.kind != "reduction" for axis in nest.axes)


def _can_join(groups: Sequence[LaunchGroup], group: LaunchGroup, nest: NestOp) -> bool:
    """True if no source of a nest depends on the group."""
    others = [g for g in groups if g is not group and g.results_in(root_of(op.source) for op in nest.reads)]
    return not any(depends(g, group, groups) for g in others)


def root_of(value: SSAValue) -> SSAValue:
    """Returns the tensor behind views."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def sources_of(group: LaunchGroup, groups: Sequence[LaunchGroup]) -> Iterator[LaunchGroup]:
    """Yields the other groups whose results a group reads."""
    values = group.sources
    for other in groups:
        if other is not group and other.results_in(values):
            yield other


def depends(group: LaunchGroup, on: LaunchGroup, groups: Sequence[LaunchGroup]) -> bool:
    """True if a group reads results of another, directly or through others."""
    pending, seen = [group], set[LaunchGroup]()
    while pending:
        current = pending.pop()
        for source in sources_of(current, groups):
            if source is on:
                return True
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return False


def in_order(groups: Sequence[LaunchGroup]) -> list[LaunchGroup]:
    """Returns the groups, each after its sources. Raises `IgniterError` if there is no such order."""
    done: list[LaunchGroup] = []
    left = list(groups)
    while left:
        waiting = [any(s in left for s in sources_of(g, groups)) for g in left]
        if all(waiting):
            names = ", ".join(f"'{g.label}'" for g in left)
            raise IgniterError(f"launches depend on each other in a cycle: those of the nests {names}")
        done.append(left.pop(waiting.index(False)))
    return done
