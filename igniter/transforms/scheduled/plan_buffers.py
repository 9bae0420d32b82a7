"""`plan-buffers`: every buffer of a kernel gets its place.

    %e = loop.alloc "exp" : memref<?x128xf32, #sym.dims<n, 128>, "scratch">
becomes
    %e = loop.alloc "exp" offset 64*((512*n + 63) floordiv 64) : memref<..., "scratch">
    loop.func @.. scratch(..)

Buffers of a func live from the first statement of its body that touches them to the last. Two that are never live
together may share memory: which lies above which is decided for typical sizes, and offsets hold for all
(`igniter/analysis/scheduled/placement.py`). Where such offsets get long formulas, or take more, a buffer gets the slot
of a dead one: one that is known to be large enough, else the one that grows least. A buffer may also take the place of
one that is read for the last time, element by element, where it is written. Buffers inside a loop stay on the task's
stack while they are small and of known size; others get one slot a task in the arena; the hint `memory` says which it
has to be. In a loop of a program, which calls kernels, every iteration has buffers of its own, and they share memory as
those of a func do.

The plan can be read as a remark (`--remarks`): the total, what it would take without sharing, and the lower bound.
It is the last pass before code is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import enclosing_loops, trip_count
from igniter.analysis.scheduled.placement import Conflicts, Span, aligned, larger, place
from igniter.analysis.typical_sizes import MEMORY, typical_of
from igniter.dialects.loop import (
    AllocOp,
    CallOp,
    ForOp,
    FuncOp,
    LoadOp,
    SliceOp,
    StoreOp,
    ViewOp,
    element_bytes,
)
from igniter.dialects.sym import DimsAttr, dims_of, element_of, space_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product
from igniter.dialects.sym.ranges import is_nonneg
from igniter.errors import IgniterError
from igniter.isolation import attempt
from igniter.remarks import remark
from igniter.transforms.fusion.inline_failed_regions import mark_failed
from igniter.transforms.scheduled.loop_rewrites import is_version, replace_alloc


@dataclass(frozen=True)
class LiveBuffer:
    """One buffer of the arena: `size` in bytes, live in statements `first` to `last`, by their numbers."""

    alloc: AllocOp
    size: Expr
    first: int
    last: int

    def meets(self, other: LiveBuffer) -> bool:
        """Whether both hold something in one statement."""
        return self.first <= other.last and other.first <= self.last

    def replaces(self, other: LiveBuffer) -> bool:
        """Whether it may take the exact place of another, element by element: it is written where the other is read
        for the last time."""
        return other.last == self.first and other.first < self.first and replaces_in_place(other.alloc, self.alloc)


@dataclass(frozen=True)
class Plan:
    """Offsets in bytes, in the order of `buffers`; `total` is the arena."""

    buffers: tuple[LiveBuffer, ...]
    offsets: tuple[Expr, ...]
    total: Expr

    @property
    def unshared(self) -> Expr:
        """The sum of all sizes: what it would take without sharing."""
        return sum((b.size for b in self.buffers), ZERO)

    @property
    def lower_bound(self) -> Expr:
        """What no plan can go below: the most bytes live at once."""
        return _lower_bound(self.buffers)


@dataclass(frozen=True)
class PlanBuffers(ModulePass):
    """Places buffers: liveness, offsets in the arena, slots of tasks."""

    name = "plan-buffers"

    stack_bytes: int = 32768
    """The most that the buffers of one task may take of its stack."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # One that is planned stays so: the buffers of its tasks have slots that a second look would not find.
        for func in [f for f in op.walk() if isinstance(f, FuncOp) and f.scratch_bytes is None]:
            name = func.sym_name.data
            plan = attempt(ctx, partial(plan_func, func, self.stack_bytes), partial(mark_failed, op, name))
            if plan is None:
                continue
            remark(
                ctx,
                self.name,
                name,
                "note",
                f"scratch {plan.total} bytes for {len(plan.buffers)} buffers",
                total=str(plan.total),
                unshared=str(plan.unshared),
                lower_bound=str(plan.lower_bound),
            )


def plan_func(func: FuncOp, stack_bytes: int = 32768) -> Plan:
    """Plans one func and writes the plan into it."""
    slots = {alloc: ONE for alloc in func.walk() if isinstance(alloc, AllocOp) and alloc.space == "scratch"}
    stack = 0
    # Those that a schedule puts on the stack have it first.
    wanted = {a: _memory_of(a) for a in func.walk() if isinstance(a, AllocOp) and a.space == "local"}
    for alloc, memory in sorted(wanted.items(), key=lambda each: each[1] != "stack"):
        alloc.hints = None
        size = buffer_bytes(alloc)
        if memory != "arena" and size.constant is not None and stack + size.constant <= stack_bytes:
            stack += size.constant
            continue
        if memory == "stack":
            what = f"of {size} bytes" if size.constant is None else f"of {size} bytes beside {stack} others"
            raise IgniterError(
                f"plan-buffers: func '{func.sym_name.data}': the result of nest '{alloc.label.data}', a buffer {what}, "
                f"cannot be stored on the stack, of which a task has {stack_bytes} bytes"
            )
        moved = _to_scratch(alloc)
        slots[moved] = _task_count(moved)
    order = _number_statements(func)
    buffers = [
        LiveBuffer(alloc, aligned(buffer_bytes(alloc)) * count, *_live_range(func, alloc, order))
        for alloc, count in slots.items()
    ]
    plan = plan_offsets(buffers)
    for buffer, offset in zip(plan.buffers, plan.offsets, strict=True):
        slot = _task_index(buffer.alloc)
        buffer.alloc.offset_attr = DimsAttr([offset + slot * aligned(buffer_bytes(buffer.alloc))])
    func.scratch_bytes = plan.total
    return plan


def _memory_of(alloc: AllocOp) -> str:
    """Where the schedule wants a buffer; "" where it does not say."""
    memory = alloc.hint("memory")
    return memory.data if isinstance(memory, StringAttr) else ""


def live_buffers(func: FuncOp) -> list[LiveBuffer]:
    """The buffers that a planned func keeps in its arena, each with the statements in which it is live; of those that
    every task has one of, one."""
    order = _number_statements(func)
    allocs = [a for a in func.walk() if isinstance(a, AllocOp) and a.space == "scratch" and a.offset is not None]
    return [LiveBuffer(a, aligned(buffer_bytes(a)), *_live_range(func, a, order)) for a in allocs]


def call_statements(func: FuncOp) -> list[int]:
    """The number of the statement of each call of a kernel, in order, as `live_buffers` numbers them."""
    order = _number_statements(func)
    return [order[_numbered(op, order)][0] for op in func.walk() if isinstance(op, CallOp)]


def _numbered(op: Operation, order: Mapping[Operation, tuple[int, int]]) -> Operation:
    while op not in order and (parent := op.parent_op()) is not None:
        op = parent
    return op


def replaces_in_place(old: AllocOp, new: AllocOp) -> bool:
    """Whether `new` may be in the memory of `old`, which is read for the last time in the statement that writes it.

    So it is when both have the same type, and in that statement every load of `old` and every store of `new` stand in
    one body, loads first, at the same place: an element is read before it is replaced, and never wanted again.
    """
    if old.result.type != new.result.type:
        return False
    stores = [u.operation for u in new.result.uses if isinstance(u.operation, StoreOp)]
    if len(stores) != 1 or any(not isinstance(u.operation, (LoadOp, StoreOp)) for u in new.result.uses):
        return False
    (store,) = stores
    block = store.parent_block()
    statement = _outermost(store)
    inside = [u.operation for u in old.result.uses if _outermost(u.operation) is statement]
    if not inside or any(_outermost(u.operation) is statement for u in new.result.uses if u.operation is not store):
        return False
    for load in inside:
        if not isinstance(load, LoadOp) or load.parent_block() is not block or not _same_place(load, store):
            return False
        after = load.next_op
        while after is not None and after is not store:
            after = after.next_op
        if after is None:
            return False
    return True


def _same_place(load: LoadOp, store: StoreOp) -> bool:
    if load.indices or store.indices or (load.lane is None) != (store.lane is None):
        return False
    there = [e.substitute({load.lane: Expr.of(store.lane)}) if load.lane and store.lane else e for e in load.subscripts]
    return tuple(there) == store.subscripts


def _outermost(op: Operation) -> Operation:
    """The statement of the func, or of one of its variants, that `op` stands in."""
    while not isinstance(parent := op.parent_op(), FuncOp) and not is_version(parent):
        if parent is None:
            return op
        op = parent
    return op


def buffer_bytes(alloc: AllocOp) -> Expr:
    """The size of a buffer in bytes."""
    return product(dims_of(alloc.result.type)) * element_bytes(element_of(alloc.result.type))


def plan_offsets(buffers: list[LiveBuffer]) -> Plan:
    """Offsets such that buffers live together do not overlap."""
    if not buffers:
        return Plan((), (), ZERO)
    sizes = typical_of(buffers[0].alloc)

    def typical(size: Expr) -> int:
        return sizes.value(size, MEMORY)

    conflicts = _conflicts(buffers)
    spans = [Span(b.size, b.first, b.last) for b in buffers]
    offsets, total = place(spans, conflicts, typical, typical(_lower_bound(buffers)))
    if any(b.size.constant is None for b in buffers):
        slots, arena = _reuse_slots(buffers, conflicts, typical)
        if not all(e.is_small for e in (*offsets, total)) or typical(arena) <= typical(total):
            offsets, total = slots, arena
    return Plan(tuple(buffers), tuple(offsets), total)


def _conflicts(buffers: Sequence[LiveBuffer]) -> Conflicts:
    apart: list[set[int]] = [set() for _ in buffers]
    instead: list[set[int]] = [set() for _ in buffers]
    for k, buffer in enumerate(buffers):
        for j, other in enumerate(buffers[:k]):
            if buffer.meets(other):
                found = instead if buffer.replaces(other) or other.replaces(buffer) else apart
                found[k].add(j)
                found[j].add(k)
    return Conflicts(apart, instead)


@dataclass
class _Slot:
    """A place in the arena that buffers take in turn."""

    size: Expr
    buffers: list[int]


def _reuse_slots(
    buffers: list[LiveBuffer], conflicts: Conflicts, typical: Callable[[Expr], int]
) -> tuple[list[Expr], Expr]:
    """Symbolic sizes: a dead buffer's slot that is known to be large enough, or grows to be so, else a new one."""
    slots: list[_Slot] = []
    chosen: dict[int, _Slot] = {}

    @cache
    def large_enough(size: Expr, needed: Expr) -> bool:
        return is_nonneg(size - needed)

    for k in sorted(range(len(buffers)), key=lambda k: (buffers[k].first, k)):
        buffer = buffers[k]
        free = [s for s in slots if conflicts.apart[k].isdisjoint(s.buffers)]
        fits = [s for s in free if large_enough(s.size, buffer.size)]
        if fits:
            slot = next((s for s in fits if all(large_enough(o.size, s.size) for o in fits)), fits[0])
        elif free:
            # The larger of two sizes is never more than both.
            slot = min(free, key=lambda s: typical(larger(s.size, buffer.size)) - typical(s.size))
            slot.size = larger(slot.size, buffer.size)
        else:
            slot = _Slot(buffer.size, [])
            slots.append(slot)
        slot.buffers.append(k)
        chosen[k] = slot
    offsets: dict[int, Expr] = {}
    end = ZERO
    for slot in slots:
        offsets[id(slot)] = end
        end = end + slot.size
    return [offsets[id(chosen[k])] for k in range(len(buffers))], end


def _lower_bound(buffers: Sequence[LiveBuffer]) -> Expr:
    """The most bytes live at once."""
    lives: dict[Expr, None] = {}
    for moment in sorted({b.first for b in buffers}):
        here = [b for b in buffers if b.first <= moment <= b.last]
        replaced = {
            old.alloc
            for new in here
            for old in here
            if new.first == old.last == moment and old.first < moment and replaces_in_place(old.alloc, new.alloc)
        }
        lives[sum((b.size for b in here if b.alloc not in replaced), ZERO)] = None
    bound = ZERO
    for live in lives:
        bound = larger(bound, live)
    return bound


def _number_statements(func: FuncOp) -> dict[Operation, tuple[int, int]]:
    """The statements in the order in which they run, each with the first and the last number of what is in it.

    A loop that calls kernels, which a program has, is gone into: each of its iterations has buffers of its own, which
    live in a part of it. So is a variant of a kernel: of several only one runs. Any other statement is one number.
    """
    order: dict[Operation, tuple[int, int]] = {}
    count = 0

    def number(block: Block) -> None:
        nonlocal count
        for op in block.ops:
            first = count
            if _is_program_loop(op) or is_version(op):
                number(op.regions[0].block)
            count += 1
            order[op] = (first, count - 1)

    number(func.block)
    return order


def _is_program_loop(op: Operation) -> bool:
    return isinstance(op, ForOp) and op.is_sequential and any(isinstance(inner, CallOp) for inner in op.walk())


def _live_range(func: FuncOp, alloc: AllocOp, order: Mapping[Operation, tuple[int, int]]) -> tuple[int, int]:
    """From the first to the last statement of the alloc's own block that touches it; of the func's block or of the
    variant's, unless the alloc is in a loop of a program."""
    here = alloc.parent_block()
    outer = here.parent_op() if here is not None else None
    block = _outermost(alloc).parent_block() or func.block
    if here is not None and outer is not None and _is_program_loop(outer):
        block = here
    touched = [order[_statement(block, user)] for user in _users(alloc.result)]
    return (min(t[0] for t in touched), max(t[1] for t in touched)) if touched else (0, 0)


def _users(value: SSAValue) -> list[Operation]:
    found: list[Operation] = []
    for use in value.uses:
        found.append(use.operation)
        if isinstance(use.operation, (ViewOp, SliceOp)):
            found.extend(_users(use.operation.result))
    return found


def _statement(block: Block, op: Operation) -> Operation:
    while op.parent_block() is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _to_scratch(alloc: AllocOp) -> AllocOp:
    fresh = alloc.like(dims_of(alloc.result.type), "scratch")
    replace_alloc(alloc, fresh)
    return fresh


def _pool_loop(alloc: AllocOp) -> ForOp | None:
    return next((loop for loop in enclosing_loops(alloc) if loop.grain is not None), None)


def _task_count(alloc: AllocOp) -> Expr:
    loop = _pool_loop(alloc)
    if loop is None or loop.grain is None:
        return ONE
    trips = trip_count(loop)
    # A grain of `max(g, ceil(trips / 64))`, as parallelize-loops makes it, leaves at most 64 tasks.
    bounds = loop.grain.call.args if loop.grain.call is not None and loop.grain.call.fn == "max" else ()
    if trips.constant is None:
        for tasks in (16, 32, 64, 128, 256):
            if trips.ceildiv(tasks) in bounds:
                return Expr.of(tasks)
    return trips.ceildiv(loop.grain)


def _task_index(alloc: AllocOp) -> Expr:
    loop = _pool_loop(alloc)
    if loop is None or loop.grain is None or space_of(alloc.result.type) != "scratch":
        return ZERO
    return floordiv(Expr.of(loop.axis) - loop.first, loop.grain * loop.step)
