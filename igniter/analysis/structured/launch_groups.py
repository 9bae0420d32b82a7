"""Which nests one launch of a GPU computes: those that work on the same blocks, element by element.

A *dim* of a launch is an axis that its nests have in common. A nest joins where each of its reads of what another one
makes is of the very element that the same block holds there:

    max [i, k: reduction]  reads x[i, k]                        dims: i, k
    exp [i, j]             reads x[i, j], max[i, 0]             j is k: what it reads of its own has the same extent
    sum [i, k: reduction]  reads exp[i, k]

Then values stay in registers, and what is reduced is a block with a dim of one. A program has all of a dim along which
a nest reduces, so that no other nest's programs can be told apart by it; what tells programs apart are the dims that
are left (`LaunchGroup.grid`).

An attention is the launch of two products, with all that is between them (`igniter.analysis.structured.attention`): the
sums of the first one, of a short depth, are made where they are wanted, and its columns are the depth of the second.

What follows a launch in the order of the kernel, and depends on it, cannot be something that the launch reads: groups
are the nodes of a graph without cycles (`in_order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from igniter.analysis.structured.attention import LONGEST_DEPTH, Attention, attentions, short_depth
from igniter.analysis.structured.dot_products import DotProduct, dot_product
from igniter.dialects.loop import KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym.expr import ONE, Expr
from igniter.errors import IgniterError


@dataclass(eq=False)
class LaunchGroup:
    """Nests of one launch, in the order of the kernel."""

    attention: Attention | None = None
    """The attention that the first members are."""
    products: str = ""
    """How its products of f32 are computed, where the schedules say it."""
    members: list[NestOp] = field(default_factory=list[NestOp])
    names: dict[NestOp, dict[str, str]] = field(default_factory=dict[NestOp, dict[str, str]])
    """For each member, the dims that its axes are."""
    dims: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The extents of the dims, in the order of blocks."""
    reduced: set[str] = field(default_factory=set[str])
    """The dims along which a member reduces."""
    whole: set[str] = field(default_factory=set[str])
    """Those of which a program has all, though nothing reduces along them: what the weights of an attention weigh."""

    @property
    def grid(self) -> list[str]:
        """The dims that tell programs apart."""
        return [d for d in self.dims if d not in self.reduced | self.whole]

    @property
    def scores(self) -> NestOp | None:
        """The member whose sums are made where they are wanted."""
        return None if self.attention is None else self.attention.scores

    @property
    def product(self) -> tuple[NestOp, DotProduct] | None:
        """The member that is a product of blocks, where the launch began with one."""
        first = self.members[0] if self.members else None
        dot = dot_product(first) if first is not None else None
        return None if first is None or dot is None else (first, dot)

    def makes(self, value: SSAValue) -> bool:
        """Whether a member computes it."""
        return isinstance(value.owner, NestOp) and value.owner in self.names

    def written(self, value: SSAValue) -> tuple[Expr, ...]:
        """Where a member writes what it makes, in dims."""
        owner = value.owner
        assert isinstance(owner, NestOp)
        index = list(owner.outputs).index(value)  # pyright: ignore[reportArgumentType]
        return renamed(owner.yield_op.clauses[index].subscripts, self.names[owner])

    def weighed(self, nest: NestOp) -> str | None:
        """The axis along which an attention weighs, of the nest that does; None for other nests."""
        return self.attention.features if self.attention is not None and self.attention.values is nest else None

    def add(self, nest: NestOp, names: Mapping[str, str]) -> None:
        """Takes a nest in, whose axes are these dims; those that are new come last."""
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
    """Expressions over axes, over dims."""
    values = {axis: Expr.of(dim) for axis, dim in names.items()}
    return tuple(e.substitute(values) for e in exprs)


def first_names(nest: NestOp) -> dict[str, str]:
    """The dims of a launch that begins with a nest."""
    return {axis.name: f"a{k}" for k, axis in enumerate(nest.axes)}


def joined(group: LaunchGroup, nest: NestOp) -> dict[str, str] | str:
    """The dims that the axes of a nest are in a group, or why it cannot join."""
    found: dict[str, str] = {}
    reads = [op for op in nest.reads if group.makes(root_of(op.source))]
    if any(not group.makes(op.source) for op in reads):
        return "it reads through a view"
    for read in reads:
        reason = _match(group, read, found)
        if reason is not None:
            return reason
    if len(set(found.values())) < len(found):
        return "two of its axes are one dim of the launch"
    _match_rest(group, nest, found)
    for axis in nest.axes:
        if group.dims.get(found[axis.name], axis.extent) != axis.extent:
            return f"'{axis.name}' is not as long as the dim of the launch"
    for read in reads:
        if renamed(read.subscripts, found) != group.written(read.source):
            return "it reads other elements than those of its block"
    reason = _reduction_reason(group, nest, found)
    return found if reason is None else reason


def _match(group: LaunchGroup, read: ReadOp, found: dict[str, str]) -> str | None:
    """Takes what a read of a member's result says of the axes; a reason where it goes against what is known."""
    if read.indices:
        return "it reads at places that are data"
    for mine, theirs in zip(read.subscripts, group.written(read.source), strict=True):
        axis, dim = mine.symbol, theirs.symbol
        if axis is None or dim is None or dim not in group.dims:
            if axis is not None and theirs == Expr.of(0):
                return "it reads along a dim of one"
            continue
        if found.setdefault(axis, dim) != dim:
            return "it reads other elements than those of its block"
    return None


def _match_rest(group: LaunchGroup, nest: NestOp, found: dict[str, str]) -> None:
    """Axes that no read speaks of: dims of the same extent, in order, else new ones."""
    # What is summed where it is wanted, and what weights weigh, is along dims of its own.
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
    """A program has all that it reduces, and every one that is wanted has its own."""
    reduces = {names[a.name] for a in nest.axes if a.kind == "reduction"}
    for member in group.members:
        if member is group.scores:
            continue
        kept = {group.names[member][a.name] for a in member.axes if a.kind == "parallel"}
        drops = {group.names[member][a.name] for a in member.axes if a.kind == "reduction"}
        mine = {names[a.name] for a in nest.axes if a.kind == "parallel"}
        if drops and reduces & kept:
            return f"it reduces along what tells the sums of '{member.label}' apart"
        if reduces and drops & mine:
            return f"'{member.label}' reduces along what tells its own sums apart"
    extents = {**group.dims, **{names[a.name]: a.extent for a in nest.axes}}
    weighed = group.weighed(nest)
    whole = group.whole | {names[axis] for axis in (weighed,) if axis is not None}
    grid = {d for d in extents if d not in group.reduced | reduces | whole and extents[d] != ONE}
    if reduces and group.grid and not grid:
        return "no dim would be left to tell programs apart"
    # Programs that differ along what a nest does not have would compute it again, and none at all where that is empty.
    for member, dims in ((nest, names), *group.names.items()):
        if not grid <= set(dims.values()):
            return f"not every program would have elements of '{member.label}' of its own"
    return None


def launch_groups(kernel: KernelOp) -> list[LaunchGroup]:
    """The launches of a kernel without procedures, each after those whose results it reads: every nest joins the last
    launch that makes something it reads, where it can."""
    groups: list[LaunchGroup] = []
    homes = {nest: group for group in _attention_groups(kernel) for nest in group.members}
    for nest in kernel.nests:
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
    """The launches that are attentions, without what follows them."""
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
    """"": there are none."""
    keys: str
    features: str
    """Of what is weighed."""
    depth: str
    """Of the scores."""


def attention_dims(group: LaunchGroup) -> AttentionDims | None:
    """The dims of an attention; None where its two products do not go along the same rows and keys, or a block cannot
    have all of its features."""
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
    """Whether a launch is no worse for a nest: a product of blocks begins one, in which nothing else reduces."""
    if dot_product(nest) is not None:
        return False
    return group.product is None or all(axis.kind != "reduction" for axis in nest.axes)


def _can_join(groups: Sequence[LaunchGroup], group: LaunchGroup, nest: NestOp) -> bool:
    """Whether nothing that a nest reads comes out of something that depends on the group."""
    others = [g for g in groups if g is not group and any(g.makes(root_of(op.source)) for op in nest.reads)]
    return not any(depends(g, group, groups) for g in others)


def root_of(value: SSAValue) -> SSAValue:
    """What a view is of."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def sources_of(group: LaunchGroup, groups: Sequence[LaunchGroup]) -> Iterator[LaunchGroup]:
    """The other groups whose results a group reads."""
    values = {root_of(op.source) for nest in group.members for op in nest.reads}
    for other in groups:
        if other is not group and any(other.makes(v) for v in values):
            yield other


def depends(group: LaunchGroup, on: LaunchGroup, groups: Sequence[LaunchGroup]) -> bool:
    """Whether a group reads something of another, or of what depends on it."""
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
    """Groups, each behind those that it reads of; `IgniterError` where there is no such order."""
    done: list[LaunchGroup] = []
    left = list(groups)
    while left:
        waiting = [any(s in left for s in sources_of(g, groups)) for g in left]
        if all(waiting):
            names = ", ".join(f"'{g.members[0].label}'" for g in left)
            raise IgniterError(f"launches wait for each other's results: those of the nests {names}")
        done.append(left.pop(waiting.index(False)))
    return done
