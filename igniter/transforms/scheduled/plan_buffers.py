"""`plan-buffers`: assigns a place in memory to every buffer of a kernel.

    %e = loop.alloc "exp" : memref<?x128xf32, #sym.dims<n, 128>, "scratch">
becomes
    %e = loop.alloc "exp" offset 64*((512*n + 63) floordiv 64) : memref<..., "scratch">
    loop.func @.. scratch(..)

A buffer of a func is live from its first to its last access, in statements of the body. Two buffers with disjoint live
ranges may share memory. The order in the arena is decided for typical sizes; the offsets hold for all sizes
(`igniter/analysis/scheduled/placement.py`). If such offsets are long formulas or need more memory, a buffer gets the
slot of a dead one: one proven large enough, else the one with the least growth. A buffer may also replace another in
place, element by element, if one statement writes it and is the last reader of the other. Small buffers of known size
inside a loop are on the task's stack. Others get one slot per task in the arena. The hint `memory` overrides this
choice. In a program loop, around calls of kernels, every iteration has its own buffers; these share memory like those
of a func.

A remark (`--remarks`) reports the plan: the total, the total without sharing, and the lower bound. The pass is the last
one before emission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
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
    IfOp,
    LoadOp,
    SliceOp,
    StoreOp,
    ViewOp,
    stored_bytes,
)
from igniter.dialects.sym import DimsAttr, dims_of, space_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv
from igniter.dialects.sym.ranges import is_nonneg
from igniter.errors import IgniterError
from igniter.isolation import attempt
from igniter.observation.statistics import Statistic
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

    def overlaps(self, other: LiveBuffer) -> bool:
        """True if both are live in one statement."""
        return self.first <= other.last and other.first <= self.last

    def replaces(self, other: LiveBuffer) -> bool:
        """True if it may replace another in place, element by element: the statement writing it is the last reader of
        the other."""
        return other.last == self.first and other.first < self.first and replaces_in_place(other.alloc, self.alloc)


@dataclass(frozen=True)
class BufferPlan:
    """Offsets in bytes, in the order of `buffers`; `total` is the size of the arena."""

    buffers: tuple[LiveBuffer, ...]
    offsets: tuple[Expr, ...]
    total: Expr

    @property
    def unshared(self) -> Expr:
        """The sum of all sizes: the memory without sharing."""
        return sum((b.size for b in self.buffers), ZERO)

    @property
    def lower_bound(self) -> Expr:
        """The lower bound of all plans: the most bytes live at once."""
        return _lower_bound(self.buffers)


@dataclass(frozen=True)
class PlanBuffers(ModulePass):
    """Places buffers: liveness, offsets in the arena, slots of tasks."""

    name = "plan-buffers"
    placed = Statistic("buffers placed in the arena")

    stack_bytes: int = 32768
    """The most bytes of buffers on the stack of one task."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # A planned func is skipped: a second run would not recognise the slots of its tasks.
        for func in [f for f in op.walk() if isinstance(f, FuncOp) and f.scratch_bytes is None]:
            name = func.sym_name.data
            plan = attempt(ctx, partial(plan_func, func, self.stack_bytes), partial(mark_failed, op, name))
            if plan is None:
                continue
            self.placed.add(ctx, len(plan.buffers))
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


def plan_func(func: FuncOp, stack_bytes: int = 32768) -> BufferPlan:
    """Plans one func and writes the plan into it."""
    slots = {alloc: ONE for alloc in func.walk() if isinstance(alloc, AllocOp) and alloc.space == "scratch"}
    stack = 0
    # Buffers placed on the stack by a schedule come first.
    wanted = {a: _memory_of(a) for a in func.walk() if isinstance(a, AllocOp) and a.space == "local"}
    for alloc, memory in sorted(wanted.items(), key=lambda each: each[1] != "stack"):
        alloc.storage_attr = None
        size = stored_bytes(alloc.result.type)
        if memory != "arena" and size.constant is not None and stack + size.constant <= stack_bytes:
            stack += size.constant
            continue
        if memory == "stack":
            what = f"of {size} bytes" if size.constant is None else f"of {size} bytes beside {stack} others"
            raise IgniterError(
                f"plan-buffers: func '{func.sym_name.data}': the result of nest '{alloc.label.data}', a buffer "
                f"{what}, cannot be stored on the stack: a task has {stack_bytes} bytes of stack"
            )
        moved = _to_scratch(alloc)
        slots[moved] = _task_count(moved)
    order = _number_statements(func)
    buffers = [
        LiveBuffer(alloc, aligned(stored_bytes(alloc.result.type)) * count, *_live_range(func, alloc, order))
        for alloc, count in slots.items()
    ]
    plan = plan_offsets(buffers)
    capped = [replace(buffer, size=_capped(buffer)) for buffer in buffers]
    if capped != buffers:
        sizes, smaller = typical_of(func), plan_offsets(capped)
        if sizes.value(smaller.total, MEMORY) < sizes.value(plan.total, MEMORY):
            plan = smaller
    for buffer, offset in zip(plan.buffers, plan.offsets, strict=True):
        slot = _task_index(buffer.alloc)
        buffer.alloc.offset_attr = DimsAttr([offset + slot * aligned(stored_bytes(buffer.alloc.result.type))])
    func.scratch_bytes = plan.total
    return plan


def _memory_of(alloc: AllocOp) -> str:
    """Returns the schedule's choice of memory for a buffer; "" if it did not choose."""
    return "" if alloc.storage is None else alloc.storage.memory


def live_buffers(func: FuncOp) -> list[LiveBuffer]:
    """Returns the arena buffers of a planned func, each with its live range in statements. A buffer with one slot per
    task counts as one."""
    order = _number_statements(func)
    allocs = [a for a in func.walk() if isinstance(a, AllocOp) and a.space == "scratch" and a.offset is not None]
    return [LiveBuffer(a, aligned(stored_bytes(a.result.type)), *_live_range(func, a, order)) for a in allocs]


def _capped(buffer: LiveBuffer) -> Expr:
    """Returns the size of a buffer with that of a variant no larger than at the sizes for which the variant runs. So
    other sizes do not pay for, say, the partial sums of few rows."""
    size, op = buffer.size, buffer.alloc.parent_op()
    while op is not None:
        if isinstance(op, IfOp) and is_version(op):
            for guard in op.guards:
                size = size.capped(guard)
        op = op.parent_op()
    return size


def call_statements(func: FuncOp) -> list[int]:
    """Returns the statement number of each kernel call, in order, with the numbering of `live_buffers`."""
    order = _number_statements(func)
    return [order[_numbered(op, order)][0] for op in func.walk() if isinstance(op, CallOp)]


def _numbered(op: Operation, order: Mapping[Operation, tuple[int, int]]) -> Operation:
    while op not in order and (parent := op.parent_op()) is not None:
        op = parent
    return op


def replaces_in_place(old: AllocOp, new: AllocOp) -> bool:
    """True if `new` may use the memory of `old`: one statement writes `new` and is the last reader of `old`.

    Both must have the same type. In that statement every load of `old` and the store of `new` must be in one body,
    loads first, with the same subscripts: an element is then read before it is replaced, and not needed again.
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
    """Returns the statement around `op` in the func, or in one of its variants."""
    while not isinstance(parent := op.parent_op(), FuncOp) and not is_version(parent):
        if parent is None:
            return op
        op = parent
    return op


def plan_offsets(buffers: list[LiveBuffer]) -> BufferPlan:
    """Chooses offsets without overlap of simultaneously live buffers."""
    if not buffers:
        return BufferPlan((), (), ZERO)
    sizes = typical_of(buffers[0].alloc)

    def typical(size: Expr) -> int:
        return sizes.value(size, MEMORY)

    conflicts = _conflicts(buffers)
    spans = [Span(b.size, b.first, b.last) for b in buffers]
    offsets, total = place(spans, conflicts, typical, max(map(typical, _live_bytes(buffers))))
    if any(b.size.constant is None for b in buffers):
        slots, arena = _reuse_slots(buffers, conflicts, typical)
        if not all(e.is_small for e in (*offsets, total)) or typical(arena) <= typical(total):
            offsets, total = slots, arena
    return BufferPlan(tuple(buffers), tuple(offsets), total)


def _conflicts(buffers: Sequence[LiveBuffer]) -> Conflicts:
    apart: list[set[int]] = [set() for _ in buffers]
    instead: list[set[int]] = [set() for _ in buffers]
    for k, buffer in enumerate(buffers):
        for j, other in enumerate(buffers[:k]):
            if buffer.overlaps(other):
                found = instead if buffer.replaces(other) or other.replaces(buffer) else apart
                found[k].add(j)
                found[j].add(k)
    return Conflicts(apart, instead)


@dataclass
class _Slot:
    """A place in the arena for several buffers in turn."""

    size: Expr
    buffers: list[int]


def _reuse_slots(
    buffers: list[LiveBuffer], conflicts: Conflicts, typical: Callable[[Expr], int]
) -> tuple[list[Expr], Expr]:
    """Plans symbolic sizes: a buffer gets the slot of a dead one, proven large enough or grown, else a new slot."""
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
            # The larger of two sizes is never more than their sum.
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
    """Returns the most bytes live at once."""
    bound = ZERO
    for live in _live_bytes(buffers):
        bound = larger(bound, live)
    return bound


def _live_bytes(buffers: Sequence[LiveBuffer]) -> list[Expr]:
    """Returns the different numbers of bytes live at once."""
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
    return list(lives)


def _number_statements(func: FuncOp) -> dict[Operation, tuple[int, int]]:
    """Numbers the statements in the order of execution; each has the first and the last number of its contents.

    A program loop, around calls of kernels, is numbered inside: each of its iterations has its own buffers, live in a
    part of it. So is a variant of a kernel: only one of several runs. Any other statement has one number.
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
    """Returns the first and the last statement with an access to the buffer, in the block of the func or variant; for
    an alloc in a program loop, in the block of the alloc."""
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
    # `parallelize-loops` makes a grain of `max(g, ceil(trips / 64))`, which gives at most 64 tasks.
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
