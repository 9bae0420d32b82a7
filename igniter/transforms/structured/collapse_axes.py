"""`collapse-axes`: merges adjacent axes if they are one contiguous dim in every access.

Before, `%x: tensor<?x?x768xf32, #sym.dims<b, s, 768>>`:

    %m = loop.nest "sum" [i: parallel b, j: parallel s, k: reduction 768] -> tensor<?x?xf32, #sym.dims<b, s>> {
      %v = loop.read %x[i, j, k] : f32
      loop.yield add %v at [i, j]
    }

After:

    %0 = loop.view %x : tensor<?x?x768xf32, ...> to tensor<?x768xf32, #sym.dims<b*s, 768>>
    %m = loop.nest "sum" [i_j: parallel b*s, k: reduction 768] -> tensor<?xf32, #sym.dims<b*s>> {
      %v = loop.read %0[i_j, k] : f32
      loop.yield add %v at [i_j]
    }
    %1 = loop.view %m : tensor<?xf32, #sym.dims<b*s>> to tensor<?x?xf32, #sym.dims<b, s>>

Fewer axes give simpler loops, longer vectors and one parallel loop with all iterations. But nests fuse over their
shared axes, so the pass decides for all nests connected by tensors: two dims of a tensor are joined in all of these
nests or in none. Above, an elementwise nest on `%x` becomes `[b*s, 768]` and not `[b*s*768]`, because the sum keeps the
rows apart.

The depth of a packed factor is grouped: `[.., r, c floordiv 4, .., c mod 4]`. If whole groups are joined, `r` and `c`
become one axis `k`, `[.., k floordiv 4, .., k mod 4]`.

Two kinds of access do not connect nests. A contraction reads its operands through its own view, because nothing is
fused over their axes. A nest with separate uses of two dims (a transpose, a guard on one of them) cannot be fused over
them either, so its producer may still join them.

With `attention`, the nests of an attention (`igniter.analysis.structured.attention`), including its two contractions,
join the axes joinable in all of them: in a single launch they must share their axes.

The pass runs after `inline-nests`, and leaves views that `canonicalize-loop` merges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.machine import machine_of
from igniter.analysis.structured.attention import attentions
from igniter.analysis.structured.nest_bodies import is_contraction
from igniter.dialects.loop import Axis, Clause, IndexOp, KernelOp, NestOp, ProcedureOp, ViewOp, element_bytes
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.sym import DimsAttr, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, mod, product
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.rows import rows_apart
from igniter.transforms.structured.nest_rewriting import set_clauses

Pair = tuple[str, str]
"""The outer and the inner axis of a pair to join."""


@dataclass(frozen=True)
class Access:
    """A read or a clause: its access to a tensor."""

    tensor: SSAValue
    subscripts: tuple[Expr, ...]
    guards: tuple[Expr, ...]
    is_read: bool
    surrounds: bool = False
    """True if the access is a write that also fills the elements around its own."""

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset[str]().union(*(e.symbols for e in (*self.subscripts, *self.guards)))


@dataclass(frozen=True)
class Boundary:
    """Two neighbouring dims of an access (ignoring dims of size 1) whose subscripts are two axes.

    The inner axis may be grouped, like the depth of a packed factor: `[.., a, b floordiv 4, .., b mod 4]`. Then `rest`
    is the dim of the positions in a group.
    """

    outer: int
    inner: int
    pair: Pair
    group: int = 1
    rest: int | None = None

    @property
    def positions(self) -> set[int | None]:
        """The dims subscripted by the two axes."""
        return {self.outer, self.inner, self.rest}


@dataclass
class Groups:
    """Union-find over dependent decisions, with the reason against joining a group."""

    parents: dict[object, object] = field(default_factory=dict[object, object])
    reasons: dict[object, str] = field(default_factory=dict[object, str])

    def find(self, node: object) -> object:
        root = node
        while (up := self.parents.setdefault(root, root)) is not root:
            root = up
        while self.parents[node] is not root:
            self.parents[node], node = root, self.parents[node]
        return root

    def union(self, a: object, b: object) -> None:
        left, right = self.find(a), self.find(b)
        if left is right:
            return
        self.parents[right] = left
        if right in self.reasons:
            self.reasons.setdefault(left, self.reasons[right])

    def block(self, node: object, reason: str) -> None:
        self.reasons.setdefault(self.find(node), reason)

    def reason(self, node: object) -> str | None:
        return self.reasons.get(self.find(node))


def accesses_of(nest: NestOp) -> list[Access]:
    reads = [Access(r.source, r.subscripts, r.guards, True) for r in nest.reads]
    clauses = zip(nest.outputs, nest.yield_op.clauses, strict=True)
    return [*reads, *(Access(t, c.subscripts, (), False, c.otherwise is not None) for t, c in clauses)]


def wide_positions(access: Access) -> list[int]:
    """Returns the positions of the dims with size other than 1 or subscript other than 0."""
    dims = dims_of(access.tensor.type)
    return [p for p, d in enumerate(dims) if d != ONE or access.subscripts[p] != ZERO]


def boundaries_of(nest: NestOp, access: Access) -> list[Boundary]:
    """Returns the neighbouring subscripts `a + rest` and `b` where `b` covers the whole inner dim, perhaps in groups.

    Of the axes of a window, `i + r`, a contraction takes as `a` the axis of the same kind as `b`."""
    dims = dims_of(access.tensor.type)
    extents, kinds = {a.name: a.extent for a in nest.axes}, {a.name: a.kind for a in nest.axes}
    contraction = is_contraction(nest)
    found: list[Boundary] = []
    for outer, inner in [*pairwise(wide_positions(access)), *(_sides_of_lone_groups(access) if contraction else [])]:
        whole = _whole_axis(access, inner, extents)
        if whole is None or extents[whole.axis] != dims[inner] * whole.group:
            continue
        left = access.subscripts[outer]
        candidates = [a for a in left.symbols if a in extents and left.coefficient(a) == ONE and a != whole.axis]
        if contraction and len(candidates) > 1:
            candidates = [a for a in candidates if kinds[a] == kinds[whole.axis]]
        if len(candidates) == 1 and whole.axis not in left.symbols:
            found.append(Boundary(outer, inner, (candidates[0], whole.axis), whole.group, whole.rest))
    return found


@dataclass(frozen=True)
class _WholeAxis:
    """The axis covering a dim, perhaps in groups; then `rest` is the dim of the positions in a group."""

    axis: str
    group: int = 1
    rest: int | None = None


def _whole_axis(access: Access, position: int, extents: dict[str, Expr]) -> _WholeAxis | None:
    subscript, dims = access.subscripts[position], dims_of(access.tensor.type)
    if subscript.symbol is not None:
        return _WholeAxis(subscript.symbol) if subscript.symbol in extents else None
    if subscript == ZERO:
        # A single group: the positions in it are the last dim.
        axis, last = access.subscripts[-1].symbol, len(dims) - 1
        group = dims[last].constant
        return None if axis not in extents or group is None else _WholeAxis(axis, group, last)
    call = subscript.call
    if call is None or call.fn != "floordiv" or call.args[0].symbol not in extents:
        return None
    axis, size = call.args[0].symbol, call.args[1]
    for rest, other in enumerate(access.subscripts):
        if other.call is not None and other.call.fn == "mod" and other.call.args == call.args and dims[rest] == size:
            return _WholeAxis(axis or "", size.constant or 1, rest)
    return None


def _sides_of_lone_groups(access: Access) -> list[tuple[int, int]]:
    """Returns the dims `[.., a, 0, lane, b]` of a packed factor of bytes with one group of depth: the dim of `a`, and
    the dim of size 1 that counts groups."""
    dims, counter = dims_of(access.tensor.type), len(access.subscripts) - 3
    if counter < 1 or not access.is_read or element_bytes(element_of(access.tensor.type)) != 1:
        return []
    lone = dims[counter] == ONE and access.subscripts[counter] == ZERO
    return [(counter - 1, counter)] if lone and counter - 1 in wide_positions(access) else []


def root_of(tensor: SSAValue) -> SSAValue:
    while isinstance(tensor.owner, ViewOp):
        tensor = tensor.owner.source
    return tensor


@dataclass(frozen=True)
class Refusal:
    """The reason why two axes of a nest cannot be joined. `splits`: the nest takes them apart, but others may join
    them."""

    reason: str
    splits: bool = False


def pair_refusal(
    nest: NestOp, pair: Pair, accesses: Sequence[Access], found: Sequence[list[Boundary]]
) -> Refusal | None:
    """Returns the reason why two axes of a nest cannot be joined, from this nest alone; None if they can."""
    a, b = pair
    kinds = {axis.name: axis.kind for axis in nest.axes}
    if kinds[a] != kinds[b]:
        return Refusal(f"'{nest.label}' reduces over one of {a} and {b}")
    if nest.schedule is not None:
        return Refusal(f"'{nest.label}' has a schedule")
    if is_contraction(nest) and (neighbour := _goes_over_both(pair, accesses)) is not None:
        return Refusal(f"'{neighbour}', whose loops '{nest.label}' may share, has both {a} and {b}")
    for access, boundaries in zip(accesses, found, strict=True):
        used = access.symbols & {a, b}
        if not used:
            continue
        if len(used) == 1:
            return Refusal(f"'{nest.label}' reads a tensor along one of {a} and {b}")
        joined = [x for x in boundaries if x.pair == pair]
        elsewhere = [s for p, s in enumerate(access.subscripts) if joined and p not in joined[0].positions]
        if len(joined) != 1 or any(e.symbols & used for e in (*elsewhere, *access.guards)):
            # A nest with a rim around its result, or at the end of a contraction, has the same axes as its operands.
            along = access.surrounds or (not access.is_read and _ends_contraction(accesses))
            return Refusal(f"'{nest.label}' uses {a} and {b} separately", splits=not along)
    for op in nest.block.ops:
        if isinstance(op, IndexOp) and op.value.symbols & {a, b}:
            return Refusal(f"'{nest.label}' uses the position along {a} or {b}", splits=True)
    return None


def _ends_contraction(accesses: Sequence[Access]) -> bool:
    """True if a nest with these accesses reads a contraction directly, and can be computed on its tiles."""
    owners = [access.tensor.owner for access in accesses if access.is_read]
    return any(isinstance(owner, NestOp) and is_contraction(owner) for owner in owners)


def _goes_over_both(pair: Pair, accesses: Sequence[Access]) -> str | None:
    """Returns the label of a procedure that writes or reads an accessed tensor and has separate axes for both axes of
    `pair`."""
    for access in accesses:
        places = [k for k, s in enumerate(access.subscripts) if s.symbol in pair]
        others = [access.tensor.owner] if access.is_read else [use.operation for use in access.tensor.uses]
        for op in (x for x in others if isinstance(x, ProcedureOp)):
            tensors, buffers = (op.outputs, op.written_buffers) if access.is_read else (op.inputs, op.read_buffers)
            buffer = buffers[tensors.index(access.tensor)]  # pyright: ignore[reportArgumentType]
            if {op.place_of(axis.name, buffer) for axis in op.axes} >= set(places) and len(places) == 2:
                return op.label
    return None


class CollapsePlan:
    """The axes to join in each nest of a kernel."""

    def __init__(
        self,
        kernel: KernelOp,
        apart: Mapping[NestOp, frozenset[str]] | None = None,
        tied: Mapping[NestOp, Collection[NestOp]] | None = None,
    ):
        self.groups = Groups()
        self.pairs: dict[NestOp, list[Pair]] = {}
        self.apart = apart or {}
        """Axes that stay separate loops, so that a contraction can share rows with the nest that it reads."""
        self.tied = tied or {}
        """Per nest, the nests with the same joined axes."""
        for nest in kernel.nests:
            self._add(nest)

    def _add(self, nest: NestOp) -> None:
        accesses = accesses_of(nest)
        found = [boundaries_of(nest, access) for access in accesses]
        pairs = list(dict.fromkeys(b.pair for boundaries in found for b in boundaries))
        self.pairs[nest] = pairs
        contraction = is_contraction(nest)
        for pair in pairs:
            refusal = pair_refusal(nest, pair, accesses, found)
            node = (nest, pair)
            if refusal is None and pair[0] in self.apart.get(nest, ()):
                refusal = Refusal(f"'{nest.label}' may share its loops over {pair[0]} with what it reads")
            if refusal is not None:
                self.groups.block(node, refusal.reason)
            for access, boundaries in zip(accesses, found, strict=True):
                free = access.is_read and (contraction or (refusal is not None and refusal.splits))
                free = free and root_of(access.tensor).owner not in self.tied.get(nest, ())
                for boundary in boundaries:
                    if boundary.pair == pair and not free:
                        dims = dims_of(access.tensor.type)
                        self.groups.union(node, (root_of(access.tensor), product(dims[: boundary.inner])))

    def joined(self, nest: NestOp) -> list[list[str]]:
        """Returns the runs of axes of a nest to join, outermost first."""
        inner = {a: b for a, b in self.pairs[nest] if self.groups.reason((nest, (a, b))) is None}
        runs: list[list[str]] = []
        for axis in nest.axes:
            if axis.name in inner and axis.name not in inner.values():
                run = [axis.name]
                while run[-1] in inner:
                    run.append(inner[run[-1]])
                runs.append(run)
        return runs


class Collapser:
    """Rewrites one nest to its joined axes."""

    def __init__(self, nest: NestOp, runs: Sequence[Sequence[str]], taken: frozenset[str]):
        self.nest = nest
        self.extents = {a.name: a.extent for a in nest.axes}
        self.next = {a: b for run in runs for a, b in pairwise(run)}
        self.names: dict[str, str] = {}
        taken = taken | self.extents.keys()
        for run in runs:
            name = "_".join(run)
            while name in taken:
                name += "_"
            taken = taken | {name}
            self.names |= dict.fromkeys(run, name)

    def axes(self) -> list[Axis]:
        """Returns the new domain: a joined axis takes the position of its outermost one."""
        result: dict[str, Axis] = {}
        for axis in self.nest.axes:
            name = self.names.get(axis.name, axis.name)
            extent = result[name].extent * axis.extent if name in result else axis.extent
            result[name] = Axis(name, extent, axis.kind)
        return list(result.values())

    def access(self, access: Access) -> tuple[list[Expr], list[Expr]]:
        """Returns the new dims of an accessed tensor and the new subscripts."""
        dims = dims_of(access.tensor.type)
        taken = [b for b in boundaries_of(self.nest, access) if self.next.get(b.pair[0]) == b.pair[1]]
        boundaries = {b.inner: b for b in taken}
        rests = {b.rest: mod(Expr.of(self.names[b.pair[1]]), Expr.of(b.group)) for b in taken if b.rest is not None}
        new_dims: list[Expr] = []
        subscripts: list[Expr] = []
        run: list[int] = []
        for position in sorted({*wide_positions(access), *boundaries}):
            boundary = boundaries.get(position)
            if boundary is not None and run:
                run.append(position)
                new_dims[-1] = new_dims[-1] * dims[position]
                joined = Expr.of(self.names[boundary.pair[1]])
                rest = subscripts[-1] - (Expr.of(boundary.pair[0]) if len(run) == 2 else joined)
                subscripts[-1] = floordiv(joined, Expr.of(boundary.group)) + rest * dims[position]
            else:
                run = [position]
                new_dims.append(dims[position])
                subscripts.append(rests.get(position, access.subscripts[position]))
        return new_dims, subscripts

    def run(self) -> None:
        """Rewrites the nest, with views of its operands before it and of its results after it."""
        nest, block = self.nest, self.nest.parent
        assert block is not None
        views: dict[tuple[SSAValue, tuple[Expr, ...]], SSAValue] = {}
        # Before the first change, because an access is analysed with the nest as it was.
        accesses = [(read, Access(read.source, read.subscripts, read.guards, True)) for read in nest.reads]
        touched = [(read, self.access(access)) for read, access in accesses if access.symbols & self.names.keys()]
        written = [
            (clause, Access(nest.outputs[k], clause.subscripts, (), False))
            for k, clause in enumerate(nest.yield_op.clauses)
        ]
        stored = [self.access(access) if access.symbols & self.names.keys() else None for _, access in written]
        for read, (dims, subscripts) in touched:
            key = (read.source, tuple(dims))
            if key not in views:
                view = ViewOp(root_of(read.source), tensor_of(element_of(read.source.type), dims))
                block.insert_op_before(view, nest)
                views[key] = view.result
            read.operands[0] = views[key]
            read.subscripts_attr = DimsAttr(subscripts)
        clauses: list[Clause] = []
        fresh_types = list(nest.result_types)
        for k, ((clause, _), fresh) in enumerate(zip(written, stored, strict=True)):
            if fresh is None:
                clauses.append(clause)
                continue
            dims, subscripts = fresh
            fresh_types[k] = tensor_of(element_of(nest.outputs[k].type), dims)
            clauses.append(clause.at(subscripts))
        set_clauses(nest.yield_op, clauses)
        self._replace(fresh_types)

    def _replace(self, types: Sequence[Attribute]) -> None:
        nest, block = self.nest, self.nest.parent
        assert block is not None
        for k, fresh in enumerate(types):
            declared = nest.outputs[k].type
            if declared != fresh:
                output = Rewriter.replace_value_with_new_type(nest.outputs[k], fresh)
                view = ViewOp(output, declared)
                block.insert_op_after(view, nest)
                output.replace_uses_with_if(view.result, lambda use, view=view: use.operation is not view)
        nest.axes_attr = AxesAttr(self.axes())


@dataclass(frozen=True)
class CollapseAxes(ModulePass):
    """Joins adjacent axes, contiguous in every access, consistently over a kernel."""

    name = "collapse-axes"
    one_rewrite = "the axes of a nest joined"

    attention: bool = False
    """Makes the nests of an attention share their axes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            self.run_on(ctx, kernel)

    def run_on(self, ctx: Context, kernel: KernelOp) -> None:
        """Plans for the whole kernel, then rewrites nest by nest."""
        found = attentions(kernel) if self.attention else []
        tied = {nest: attention.members for attention in found for nest in attention.members}
        plan = CollapsePlan(kernel, rows_apart(kernel, machine_of(ctx)), tied)
        joined = {nest: plan.joined(nest) for nest in kernel.nests}
        for nest, runs in joined.items():
            if runs:
                if not budget(ctx, self.name).take(nest.label, f"axes joined: {'; '.join(', '.join(r) for r in runs)}"):
                    return
                Collapser(nest, runs, frozenset(kernel.symbol_names)).run()
            for run in runs:
                remark(ctx, self.name, nest.label, "applied", f"joined {', '.join(run)}")
            for a, b in plan.pairs[nest]:
                reason = plan.groups.reason((nest, (a, b)))
                if reason is not None:
                    remark(ctx, self.name, nest.label, "missed", f"{a} and {b} stay apart: {reason}")
