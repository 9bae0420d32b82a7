"""Estimates of the time of a launch on a GPU that is not present, from the loads, stores, products and ops of its
programs.

The work of a program is counted in its kernel (`work_of`): bytes through each pointer, operations of products, ops of
elements, with the trip counts of its loops at given sizes. The time of a launch is the longest of four (a roofline):
the traffic of memory (each buffer once, up to its accessed part), the traffic of the second-level cache, products by
tensor cores or by threads, and all other ops; of the last two a part of the shorter one is added to the longer one.
Idle multiprocessors and a partial last wave lengthen it. The number of programs on a multiprocessor follows from their
registers, shared memory and warps (occupancy). The shares of the peaks are typical ones; `python -m
benchmark.gpu_ranks` compares the resulting times with measured ones.

The count is separate from that of nests (`nest_counts.py`), because a program has blocks with masks, loops with numeric
bounds and ops outside of them, which only the lowering to programs decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from igniter.backends.triton.compiler import Resources
from igniter.backends.triton.devices import Device
from igniter.dialects import triton as tt
from igniter.dialects.loop import CallOp, FuncOp, IfOp, IfSharedOp, LaunchOp, element_bytes, stored_bytes

LAUNCH_SECONDS = 1.5e-6
"""The time from the end of a kernel to the start of the next one on a stream, in seconds."""

MEMORY_SHARE, CACHE_SHARE, PRODUCT_SHARE, OPS_SHARE = 0.9, 0.7, 0.7, 0.6
"""The shares of the peaks reached by kernels limited by them; of products, with blocks of 128 x 128."""

HIDDEN = 0.5
"""The share of the shorter one of products and other ops that is hidden behind the longer one: the ops of a program
wait for its products, and other programs multiply meanwhile."""

SIDE = 32
"""The sides of a block, in elements, whose products take two thirds longer than those of a large block."""

BESIDE = 4
"""The elements of one load of a thread."""

LATENCY = 0.6e-6
"""The latency of a load, in seconds."""

BUSY_WARPS = 16
"""The number of warps on a multiprocessor that suffices to hide latency."""

_COSTS = {
    "arith.divf": 6, "arith.divsi": 20, "arith.divui": 20, "arith.remsi": 20, "arith.remui": 20, "math.cos": 8,
    "math.erf": 24, "math.exp": 4, "math.exp2": 2, "math.log": 4, "math.sin": 8, "tt.extern_elementwise": 12,
    "tt.precise_divf": 10, "tt.precise_sqrt": 10, "tt.scan": 8,
}  # fmt: skip
"""The costs of ops with more than one instruction, in multiply-adds."""


@dataclass
class Work:
    """The work of one program."""

    moved: dict[int, int] = field(default_factory=dict[int, int])
    """The bytes loaded and stored through each argument."""
    products: dict[str, float] = field(default_factory=dict[str, float])
    """The operations of products of blocks, by the type of their operands."""
    slowed: dict[str, float] = field(default_factory=dict[str, float])
    """The same, each relative to the speed of blocks of 128 x 128."""
    ops: float = 0.0
    """The other ops, counted in elements."""
    loaded_a_trip: int = 0
    """The bytes loaded by one trip of the loop with the largest loads."""


@dataclass(frozen=True)
class Estimate:
    """The expected duration of a launch."""

    seconds: float
    limit: str
    """The resource with the longest time: `memory`, `cache`, `products`, `ops` or `launch`."""
    memory_bytes: float
    operations: float
    occupancy: float
    """The resident warps of a multiprocessor, as a share of its maximum."""


UNKNOWN = 1 << 30
"""An integer that a kernel loads, in estimates."""


def work_of(
    func: tt.FuncOp, symbols: Sequence[int], program: int = 0, loaded: int = UNKNOWN, programs: int = 1
) -> Work:
    """Returns the work of a program of a kernel, given its number of all `programs`, and the values of its symbols and
    of integers that it loads."""
    args = func.body.block.args
    given = [a for a in args if not isinstance(a.type, (tt.PointerType, tt.DescriptorType))]
    numbers: dict[SSAValue, int] = dict(zip(given, symbols, strict=True))
    numbers |= {op.result: program for op in func.body.block.ops if isinstance(op, tt.GetProgramIdOp)}
    numbers |= {op.result: programs for op in func.body.block.ops if isinstance(op, tt.GetNumProgramsOp)}
    numbers |= {op.result: loaded for op in func.walk() if isinstance(op, tt.LoadOp)}
    work = Work()
    _count(func.body.block, 1, numbers, work, {})
    return work


def _count(block: Block, times: int, numbers: Mapping[SSAValue, int], work: Work, trips: dict[SSAValue, int]) -> None:
    """Adds the work of a block. `trips` has the number of evaluations of values that depend on a loop; other values are
    computed once."""
    for op in block.ops:
        if isinstance(op, scf.ForOp):
            first, end, step = (_number(v, numbers) for v in (op.lb, op.ub, op.step))
            inside = times * max(0, ceil((end - first) / step))
            numbers = {**numbers, op.body.block.args[0]: first}
            trips.update(dict.fromkeys(op.body.block.args, inside))
            work.loaded_a_trip = max(work.loaded_a_trip, _loaded(op.body.block))
            _count(op.body.block, inside, numbers, work, trips)
            trips.update(dict.fromkeys(op.results, times))
            continue
        if isinstance(op, scf.IfOp):
            _count(op.true_region.block, times, numbers, work, trips)
            continue
        if isinstance(op, (tt.LoadOp, tt.StoreOp)):
            base = _base(op.ptr)
            size = prod(tt.shape_of(op.ptr.type)) * element_bytes(_pointee(op.ptr.type))
            work.moved[base] = work.moved.get(base, 0) + times * size
        elif isinstance(op, (tt.DescriptorLoadOp, tt.DescriptorStoreOp)):
            base = _base(op.desc)
            work.moved[base] = work.moved.get(base, 0) + times * _described(op)
        elif isinstance(op, tt.DotOp):
            (rows, depth), (_, columns) = tt.shape_of(op.a.type), tt.shape_of(op.b.type)
            kind = str(tt.element_type(op.a.type))
            kind = op.precision if kind == "f32" and op.precision != "ieee" else kind
            count = times * 2.0 * rows * depth * columns
            work.products[kind] = work.products.get(kind, 0.0) + count
            work.slowed[kind] = work.slowed.get(kind, 0.0) + count * _slower(rows, columns)
        # Loop-invariant values are computed before the loop.
        loaded = isinstance(op, (tt.LoadOp, tt.DescriptorLoadOp))
        here = times if loaded else max((trips.get(v, 1) for v in op.operands), default=1)
        trips.update(dict.fromkeys(op.results, here))
        work.ops += min(here, times) * _instructions(op)


def _slower(rows: int, columns: int) -> float:
    """Returns the time of a product of blocks, relative to one of 128 x 128: each row and column is read once for every
    column or row."""
    return (1 + SIDE / rows + SIDE / columns) / (1 + SIDE / 128 + SIDE / 128)


def _loaded(block: Block) -> int:
    """Returns the bytes loaded by a block itself, without nested blocks."""
    loads = [op.ptr.type for op in block.ops if isinstance(op, tt.LoadOp)]
    described = sum(_described(op) for op in block.ops if isinstance(op, tt.DescriptorLoadOp))
    return described + sum(prod(tt.shape_of(kind)) * element_bytes(_pointee(kind)) for kind in loads)


def _described(op: tt.DescriptorLoadOp | tt.DescriptorStoreOp) -> int:
    """Returns the bytes of a block of a descriptor."""
    kind = op.desc.type
    assert isinstance(kind, tt.DescriptorType)
    return prod(kind.shape) * element_bytes(kind.element)


_FREE = (
    tt.SplatOp,
    tt.BroadcastOp,
    tt.ExpandDimsOp,
    tt.ReshapeOp,
    tt.JoinOp,
    tt.SplitOp,
    tt.TransOp,
    tt.MakeRangeOp,
    tt.LoadOp,
    tt.DescriptorLoadOp,
    tt.DotOp,
    arith.ConstantOp,
)
"""Ops without cost, or with a cost counted elsewhere."""


def _instructions(op: Operation) -> int:
    """Returns the cost of an op for a program, in multiply-adds of single elements."""
    if not op.results or not tt.is_block(op.operands[0].type if op.operands else op.results[0].type):
        return 0
    if isinstance(op, _FREE):
        return 0
    result = op.results[0].type
    count = prod(tt.shape_of(op.operands[0].type if isinstance(op, tt.ReduceOp) else result))
    place = isinstance(op, tt.AddPtrOp) or (
        isinstance(tt.element_type(result), IntegerType) and tt.width_of(result) >= 32
    )
    # A thread computes one address for all the elements that it loads at once, in two instructions for its 64 bits.
    return (max(1, count // BESIDE) * 2 if place else count) * _COSTS.get(op.name, 1)


def _pointee(kind: Attribute) -> Attribute:
    element = tt.element_type(kind)
    assert isinstance(element, tt.PointerType)
    return element.pointee


def _base(pointer: SSAValue) -> int:
    """Returns the index of the argument that a pointer is based on."""
    while not isinstance(pointer, BlockArgument):
        assert isinstance(pointer.owner, Operation)
        pointer = pointer.owner.operands[0]
    return pointer.index


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: int(a / b) if b else 0,
    "arith.remsi": lambda a, b: a - b * int(a / b) if b else 0,
    "arith.minsi": min,
    "arith.maxsi": max,
}


_COMPARISONS: dict[int, Callable[[int, int], bool]] = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
}
"""The predicates of `arith.cmpi` for signed numbers."""


def _number(value: SSAValue, numbers: Mapping[SSAValue, int]) -> int:
    """Returns the value of a loop bound: an expression of symbols, of the program's number, and of data."""
    if value in numbers:
        return numbers[value]
    op = value.owner
    assert isinstance(op, Operation), "the bounds of loops depend on symbols, programs and data"
    if isinstance(op, arith.ConstantOp):
        return cast("IntegerAttr[IntegerType]", op.value).value.data
    inside = [_number(v, numbers) for v in op.operands]
    if isinstance(op, arith.CmpiOp):
        return int(_COMPARISONS[op.predicate.value.data](*inside))
    if isinstance(op, arith.SelectOp):
        return inside[1] if inside[0] else inside[2]
    return inside[0] if op.name in ("arith.extsi", "arith.trunci") else _INTEGERS[op.name](*inside)


def estimate(
    launch: LaunchOp,
    func: tt.FuncOp,
    env: Mapping[str, int],
    resources: Resources,
    shared: int,
    device: Device,
    loaded: int = UNKNOWN,
) -> Estimate:
    """Estimates a launch on a device at sizes, from the registers and the shared memory of its kernel. Integers that
    bound its loops and are data are `loaded`: the large default bounds nothing."""
    programs = max(0, launch.grid.evaluate(env))
    if not programs:
        return Estimate(0.0, "launch", 0.0, 0.0, 0.0)
    # Programs may differ, as under a causal mask: the one in the middle is typical.
    work = work_of(func, [s.evaluate(env) for s in launch.symbols], programs // 2, loaded, programs)
    arguments = [*launch.addressed, *launch.symbols, *launch.mapped]
    sizes = [stored_bytes(a.type).evaluate(env) if isinstance(a, SSAValue) else 0 for a in arguments]
    memory = float(sum(min(moved * programs, sizes[k]) for k, moved in work.moved.items()))
    cache = float(sum(work.moved.values()) * programs)
    held = _held(launch.warps, resources, shared, device)
    full = programs / (held * device.multiprocessors)
    # The last wave takes as long as a full one; a single wave with fewer programs than multiprocessors uses only part
    # of them.
    tail = ceil(full) / full if full > 1 else 1.0
    used = min(1.0, programs / device.multiprocessors)
    # The loads in flight are those of the resident warps, and in a loop also those of prefetched trips.
    each = min(held, full * held)
    under_way = each * (launch.stages - 1) * work.loaded_a_trip
    wanted = LATENCY * device.cache_bandwidth / device.multiprocessors
    busy = min(1.0, max(each * launch.warps / BUSY_WARPS, under_way / wanted))
    multiplied = sum(
        count / (device.products.get(kind, device.flops) * PRODUCT_SHARE) for kind, count in work.slowed.items()
    )
    busiest = programs / used * tail
    products, ops = multiplied * busiest, 2 * work.ops / (device.flops * OPS_SHARE) * busiest
    times = {
        "memory": memory / (device.bandwidth * MEMORY_SHARE * busy),
        "cache": cache / (device.cache_bandwidth * CACHE_SHARE * busy),
        "products": products + (1 - HIDDEN) * ops if products > ops else 0.0,
        "ops": ops + (1 - HIDDEN) * products if products <= ops else 0.0,
    }
    limit = max(times, key=lambda name: times[name])
    operations = programs * (sum(work.products.values()) + work.ops)
    occupancy = held * launch.warps / device.warps
    return Estimate(LAUNCH_SECONDS + times[limit], limit, memory, operations, occupancy)


def _held(warps: int, resources: Resources, shared: int, device: Device) -> int:
    """Returns the number of resident programs on a multiprocessor."""
    # Warps get registers in units of 256.
    registers = ceil(max(resources.registers, 1) * 32 / 256) * 256 * warps
    room = [32, device.warps // warps, device.registers // registers]
    if shared:
        room.append(device.shared // shared)
    return max(1, min(room))


def launches_of(
    funcs: Mapping[str, Operation], name: str, env: Mapping[str, int]
) -> Iterator[tuple[LaunchOp, dict[str, int]]]:
    """Returns the launches of a func at given sizes, directly or through callees, each with the values of its
    symbols."""
    func = funcs[name]
    assert isinstance(func, FuncOp)
    yield from _launches(func.block, funcs, env)


def chosen_block(op: IfSharedOp, env: Mapping[str, int]) -> Block:
    """Returns the launches in a choice by addresses: buffers of the same dims are taken to be one, as decoders have
    them."""
    return (op.apart if any(d.evaluate(env) for d in op.differences) else op.shared).block


def _launches(
    block: Block, funcs: Mapping[str, Operation], env: Mapping[str, int]
) -> Iterator[tuple[LaunchOp, dict[str, int]]]:
    for op in block.ops:
        if isinstance(op, LaunchOp):
            yield op, dict(env)
        elif isinstance(op, IfSharedOp):
            yield from _launches(chosen_block(op, env), funcs, env)
        elif isinstance(op, IfOp):
            if all(guard.evaluate(env) >= 0 for guard in op.guards):
                yield from _launches(op.block, funcs, env)
        elif isinstance(op, CallOp):
            callee = funcs[op.callee]
            assert isinstance(callee, FuncOp)
            values = [s.evaluate(env) for s in op.symbols]
            yield from launches_of(funcs, op.callee, dict(zip(callee.symbol_names, values, strict=True)))
