"""`inline-nests`: folds nests into their readers, and so keeps their results out of memory.

Before, in a kernel:

    %t = loop.nest "transpose" [i: parallel 4, j: parallel 8] -> tensor<4x8xf32> {
      %v = loop.read %x[j, i] : f32
      loop.yield none %v at [i, j]
    }
    %y = loop.nest "exp" [p: parallel 4, q: parallel 8] -> tensor<4x8xf32> {
      %a = loop.read %t[p, q] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [p, q]
    }

After:

    %y = loop.nest "exp" [p: parallel 4, q: parallel 8] -> tensor<4x8xf32> {
      %a = loop.read %x[q, p] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [p, q]
    }

A nest whose clauses are all `none` is a function of its subscripts, and a read of it evaluates the function. The axes
of the nest are replaced by the corresponding expressions of the reader's subscripts (through any `loop.view` in
between), and its body is cloned into the reader. Guards of the reader become guards of the reads in the clone; if the
guarded value is not a plain read, a select gives the value after `else`. Indirect operands of the reader become those
of the clone.

A nest is folded into all its readers or into none. A remark gives the reason for a refusal:

* its result leaves the kernel (mere movement is still folded into the other readers);
* it has several readers, or a reader has an axis absent from the nest, and repeating its body costs more than the
  options allow;
* the windows of a reader overlap, and repeating its body in all of them costs more than the options allow;
* a contraction reads it: contractions take plain reads, because packing and tiling rely on them;
* a contraction reads it, and its subscripts reverse at an edge (a reflection): micro-kernels need constant steps;
* the reader's subscripts would keep divisions (`divisions=never|single|always`);
* it ends a contraction and could be computed in its registers, but it would be duplicated or permuted;
* its results are the new rows of a buffer, of which only those are written in place.

A refused nest of mere movement is merged into the writer of its elements, if nothing else reads these: a MatMul with a
transposed result writes it transposed (`sink_moves.py`).

The pass runs before `collapse-axes`, because joined axes would turn subscripts into divisions here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.machine import TYPICAL, MachineModel, machine_of
from igniter.analysis.structured.contractions import is_unpacking, is_widened_read
from igniter.analysis.structured.nest_bodies import axes_behind, backward_slice, is_contraction
from igniter.analysis.structured.nest_counts import BodyCount, count_body
from igniter.analysis.structured.updates import has_new_rows, updates_argument
from igniter.dialects.loop import Clause, IndexOp, KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym.expr import ONE, Call
from igniter.dialects.sym.reindexing import count_divisions
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.nest_cloning import Cloner, Site, locate, substituted
from igniter.transforms.structured.nest_rewriting import (
    TRAPPING,
    constant_int,
    erase_dead_nests,
    erase_dead_ops,
    erase_if_dead,
    merge_equal_ops,
    prune_indices,
    readers_of,
)
from igniter.transforms.structured.sink_moves import sink

DIVISIONS = ("never", "single", "always")


def divisions_of(ops: Sequence[Operation]) -> int:
    """Counts the divisions in the expressions of a body's ops."""
    total = 0
    for op in ops:
        if isinstance(op, ReadOp):
            total += sum(count_divisions(e) for e in (*op.subscripts, *op.guards))
        elif isinstance(op, IndexOp):
            total += count_divisions(op.value)
    return total


def divisions_after(ops: Sequence[Operation], site: Site) -> int:
    """Counts the divisions needed to evaluate `ops` at `site`."""
    ranges = site.reader.axes_attr.ranges
    total = 0
    for op in ops:
        exprs = (*op.subscripts, *op.guards) if isinstance(op, ReadOp) else ()
        if isinstance(op, IndexOp):
            exprs = (op.value,)
        total += sum(count_divisions(substituted(e, site.values, ranges)) for e in exprs)
    return total


def turns(ops: Sequence[Operation], site: Site) -> bool:
    """True if a subscript of `ops` at `site` contains a minimum or a maximum over an axis, as for a reflection or a
    repeated edge."""
    ranges = site.reader.axes_attr.ranges
    names = {a.name for a in site.reader.axes}
    found = [substituted(e, site.values, ranges) for op in ops if isinstance(op, ReadOp) for e in op.subscripts]
    calls = [atom for e in found for monomial, _ in e.terms for atom in monomial if isinstance(atom, Call)]
    return any(call.fn in ("min", "max") and any(a.symbols & names for a in call.args) for call in calls)


def recompute_cost(count: BodyCount, machine: MachineModel) -> int:
    """Returns the cost of running a body instead of reading its result, in additions: all but one plain read."""
    arithmetic = sum(machine.additions_of(name) for name in count.ops)
    reads = count.reads - count.address_reads
    return arithmetic + max(0, reads - 1) + min(1, count.guarded) + 2 * count.indirect


def lacking_axes(site: Site, producer: NestOp) -> list[str]:
    """Returns the axes of the reader with repeated reads of one element of the producer."""
    used = frozenset[str]().union(*(e.symbols for e in site.values.values())) | axes_behind(site.read.indices)
    return [a.name for a in site.reader.axes if a.extent != ONE and a.name not in used]


def window_repeats(site: Site) -> float:
    """Returns the number of overlapping windows of the reader that contain one element of the producer."""
    kinds = {a.name: a for a in site.reader.axes}
    repeats = 1.0
    for place in site.values.values():
        taps = [kinds[n] for n in place.symbols if n in kinds and kinds[n].kind == "reduction"]
        steps = [place.coefficient(n) for n in place.symbols if n in kinds and kinds[n].kind == "parallel"]
        if len(taps) != 1 or len(steps) != 1 or steps[0] is None:
            continue
        between, stride = place.coefficient(taps[0].name), steps[0].constant
        if stride and between is not None and between.constant and taps[0].extent.constant:
            repeats *= max(1.0, taps[0].extent.constant * gcd(stride, between.constant) / abs(stride))
    return repeats


def distinct_sites(found: Sequence[tuple[Clause, Site]]) -> set[tuple[object, ...]]:
    """Returns the distinct places of reads of a nest; reads of one place in one nest count once."""
    return {(s.reader, s.read.source, s.read.subscripts, s.read.guards, tuple(s.read.indices)) for _, s in found}


def contraction_before(nest: NestOp) -> str | None:
    """Returns the label of the contraction whose result a nest reads element by element: the nest can run while the
    result is in registers."""
    for read in nest.reads:
        source = read.source
        while isinstance(source.owner, ViewOp):
            source = source.owner.source
        owner = source.owner
        if isinstance(owner, NestOp) and not read.guards and not read.indices and is_contraction(owner):
            return owner.label
    return None


def permutes(site: Site, clause: Clause) -> bool:
    """True if the reader's axes visit the producer's elements in another order than the producer's axes."""
    places = {a.name: k for k, a in enumerate(site.reader.axes)}
    last = -1
    for subscript in clause.subscripts:
        used = [
            places[x]
            for axis in subscript.symbols & site.values.keys()
            for x in site.values[axis].symbols
            if x in places
        ]
        if used and min(used) < last:
            return True
        last = max([last, *used])
    return False


def producers_of(nest: NestOp) -> list[NestOp]:
    """Returns the nests whose results a nest reads."""
    roots: list[SSAValue] = []
    for read in nest.reads:
        source = read.source
        while isinstance(source.owner, ViewOp):
            source = source.owner.source
        roots.append(source)
    return [r.owner for r in roots if isinstance(r.owner, NestOp)]


def may_trap(ops: Sequence[Operation]) -> bool:
    """True if an op stops the program for some operands, such as a divisor that is not constant."""
    return any(isinstance(op, TRAPPING) and not constant_int(op.operands[1]) for op in ops)


def inline_nest(nest: NestOp) -> str | None:
    """Folds one nest into all its readers at any cost. Returns the reason if it cannot."""
    any_cost = 1 << 30
    this = InlineNests(any_cost, any_cost, any_cost, any_cost, divisions="always")
    own, nest.schedule = nest.schedule, None
    found = this.sites(nest, TYPICAL)
    if isinstance(found, str):
        nest.schedule = own
        return found or "it is unused"
    this.fold_into_all(Context(), nest, found)
    return None


@dataclass(frozen=True)
class InlineNests(ModulePass):
    """Folds nests into their readers by substituting subscripts."""

    name = "inline-nests"
    one_rewrite = "a nest folded into its readers, or a data movement into the nest before it"

    max_duplicate: int = 4
    """The most expensive body to run in several readers. An addition costs 1; by default a division costs 5 and an
    elementary function 20, as the machine defines."""
    max_recompute: int = 1
    """The most expensive body to repeat in a reader along an axis absent from the nest."""
    max_windows: int = 8
    """The most expensive repetitions of a body in windows that overlap. A SiLU in a separated pool of 5 x 5 takes three
    times as long in its windows (one thread of a Zen 3); a Relu takes as long in 7 x 7 windows as on its own."""
    max_body: int = 512
    """The largest size of a reader's body, in ops."""
    tables: bool = False
    """Folds nests that read no tensor at any cost, such as the places and weights of a resize."""
    divisions: str = "never"
    """Allows folding to leave new divisions in subscripts: never, single (reader), always."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.divisions not in DIVISIONS:
            raise VerifyException(
                f"the option 'divisions' must be one of {', '.join(DIVISIONS)}, not '{self.divisions}'"
            )
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            self.run_on(ctx, kernel, machine_of(ctx))

    def run_on(self, ctx: Context, kernel: KernelOp, machine: MachineModel) -> None:
        """Folds the nests of one kernel. Nests without duplicates come first: readers merge with each other then, and
        fewer bodies are duplicated in the end."""
        erase_dead_nests(kernel)
        rewrites = budget(ctx, self.name)
        # A nest that widens the factors of a contraction is folded into the contraction before its producer can absorb
        # it: the contraction then reads the narrow factors from memory.
        for nest in [n for n in kernel.nests if is_widened_read(n)]:
            found = self.sites(nest, machine)
            if not isinstance(found, str) and all(is_contraction(site.reader) for _, site in found):
                if rewrites.is_spent:
                    break
                self.fold_into_all(ctx, nest, found)
        # Nests to examine (again, if their readers changed), and nests to duplicate.
        pending, waiting = set(kernel.nests), set[NestOp]()
        while (pending or waiting) and not rewrites.is_spent:
            duplicate = not pending
            batch: set[NestOp] = waiting if duplicate else pending
            pending = set[NestOp]()
            waiting = set[NestOp]() if duplicate else waiting
            for nest in [n for n in kernel.nests if n in batch]:
                found = self.sites(nest, machine)
                if isinstance(found, str):
                    waiting.discard(nest)
                elif rewrites.is_spent:
                    break
                elif not duplicate and len(distinct_sites(found)) > 1:
                    waiting.add(nest)
                else:
                    waiting.discard(nest)
                    pending |= self.fold_into_all(ctx, nest, found)
        for nest in kernel.nests:
            found = self.sites(nest, machine)
            writer = sink(nest) if isinstance(found, str) and not rewrites.is_spent else None
            if writer is not None:
                rewrites.count(nest.label, f"'{writer}' performs its data movement")
                remark(
                    ctx,
                    self.name,
                    nest.label,
                    "applied",
                    (f"'{writer}' writes its elements directly to their final places"),
                )
            elif isinstance(found, str) and found:
                remark(ctx, self.name, nest.label, "missed", found)
        erase_dead_nests(kernel)

    def fold_into_all(self, ctx: Context, nest: NestOp, found: Sequence[tuple[Clause, Site]]) -> set[NestOp]:
        """Folds a nest into all its readers. Returns the nests to examine again."""
        readers: dict[NestOp, None] = {}
        for clause, site in found:
            readers[site.reader] = None
            self.fold(clause, site)
        for reader in readers:
            for op in list(reader.block.ops):
                if isinstance(op, ReadOp) and op.indices:
                    prune_indices(op)
            merge_equal_ops(reader.block)
            erase_dead_ops(reader.block)
        into = ", ".join(f"'{r.label}'" for r in readers)
        remark(ctx, self.name, nest.label, "applied", f"folded into {into}")
        budget(ctx, self.name).count(nest.label, f"folded into {into}")
        erase_if_dead(nest)
        return {*readers, *(producer for r in readers for producer in producers_of(r))}

    def fold(self, clause: Clause, site: Site) -> None:
        """Replaces one read by the body of the read nest."""
        cloner = Cloner(site)
        value = cloner.guarded(cloner.run(clause.value), clause.value)
        site.read.result.replace_all_uses_with(value)
        site.read.detach()
        site.read.erase()

    def sites(self, nest: NestOp, machine: MachineModel) -> list[tuple[Clause, Site]] | str:
        """Returns every read of a nest, located, if folding is possible and pays; else the reason ("": it has no
        readers)."""
        if nest.schedule is not None:
            return "it already has a schedule"
        clauses = nest.yield_op.clauses
        combined = [c.combiner for c in clauses if c.combiner != "none"]
        if combined:
            return f"it is a reduction with '{combined[0]}'"
        found: list[tuple[Clause, Site]] = []
        escapes = False
        for clause, result in zip(clauses, nest.outputs, strict=True):
            reads, leaves = readers_of(result)
            escapes |= leaves
            for read, views in reads:
                site = locate(clause, nest, read, views)
                if isinstance(site, str):
                    return site
                found.append((clause, site))
        if not found:
            return "its result leaves the kernel" if escapes else ""
        return self.refusal(nest, found, escapes, machine) or found

    def refusal(
        self, nest: NestOp, found: Sequence[tuple[Clause, Site]], escapes: bool, machine: MachineModel
    ) -> str | None:
        """Returns the reason why folding a nest into these sites does not pay or would be wrong."""
        distinct = distinct_sites(found)
        contraction = contraction_before(nest)
        if escapes and updates_argument(nest):
            return "it updates a buffer in place, which readers of the past would forbid"
        for clause, site in found:
            ops = backward_slice(clause.value)
            count = count_body(ops)
            cost = recompute_cost(count, machine)
            name = site.reader.label
            if site.read.guards and may_trap(ops):
                return f"'{name}' reads it under a guard, and its body divides integers"
            if escapes and not count.is_movement:
                return "its result leaves the kernel"
            if contraction is not None and not count.is_movement:
                if len(distinct) > 1:
                    return f"it ends the contraction '{contraction}', and has {len(distinct)} readers"
                if site.read.guards:
                    return f"it ends the contraction '{contraction}', and '{name}' reads it under guards"
                if permutes(site, clause):
                    return f"it ends the contraction '{contraction}', and '{name}' reads it in another order"
            if self.tables and not count.reads:
                cost = 0
            if not count.is_movement and has_new_rows(site.read):
                return f"'{name}' updates a buffer in place, and reads its new rows as they are"
            if len(distinct) > 1 and cost > self.max_duplicate:
                return f"{len(distinct)} readers would each run its body (cost {cost} > {self.max_duplicate})"
            if len(ops) + len(site.reader.block.ops) > self.max_body:
                return f"the body of '{name}' would exceed {self.max_body} ops"
            if is_contraction(site.reader) and not count.is_movement and not is_widened_read(nest):
                return f"'{name}' is a contraction and needs plain reads"
            if is_contraction(site.reader) and count.guarded:
                return f"'{name}' is a contraction and needs reads without guards"
            lacking = lacking_axes(site, nest)
            if lacking and cost > self.max_recompute:
                along = ", ".join(lacking)
                return f"'{name}' would run its body again along {along} (cost {cost} > {self.max_recompute})"
            repeats = window_repeats(site)
            if cost * (repeats - 1) > self.max_windows:
                return f"the windows of '{name}' would run its body {repeats:.3g} times (cost {cost})"
            reason = self.division_refusal(nest, ops, site, len(distinct))
            if reason is not None:
                return reason
        return None

    def division_refusal(self, nest: NestOp, ops: Sequence[Operation], site: Site, readers: int) -> str | None:
        """Returns the reason if folding would leave too many divisions."""
        if is_contraction(site.reader) and is_unpacking(nest):
            return None
        if is_contraction(site.reader) and turns(ops, site):
            return f"'{site.reader.label}' is a contraction and needs a constant stride, but this reverses at an edge"
        before, after = divisions_of([*ops, site.read]), divisions_after(ops, site)
        if after <= before or self.divisions == "always":
            return None
        if self.divisions == "never" or is_contraction(site.reader):
            return f"the subscripts of '{site.reader.label}' would need {after - before} divisions"
        if readers > 1:
            return f"the subscripts of {readers} readers would need divisions"
        return None
