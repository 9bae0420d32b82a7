"""Runs a `loop.func` on numpy arrays, statement by statement: the semantics of the scheduled level.

Slow and strict. Every access is checked against every dim; unwritten memory holds NaN (integers: a pattern), to expose
dependent results; buffers planned into the arena share its bytes; and it is an error if two iterations of a `threads`
loop access the same element and one of them writes (in the arena: two tasks).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    CallOp,
    ClockOp,
    ForOp,
    FuncOp,
    IfOp,
    IfSharedOp,
    IndexOp,
    LoadOp,
    MemoryOp,
    PrefetchOp,
    ProcedureOp,
    ReduceLanesOp,
    SliceOp,
    StoreOp,
    TileProductOp,
    TransposeOp,
    ViewOp,
    YieldOp,
)
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.instructions import Facts
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, product
from igniter.verification.interp.arithmetic import (
    Array,
    InterpreterError,
    Values,
    constant,
    evaluate,
    fold_of,
    scalar_dtype,
    signed,
    stored_dtype,
    unsigned,
)

MAX_ARENA_BYTES = 1 << 30
ARENA = 0
"""The root of buffers in the arena; the caller's buffers have their address, others a negative number."""
UNWRITTEN = 0xFF
"""The value of every byte of fresh memory: NaN as a float, -1 as an integer."""


@dataclass(frozen=True)
class Buffer:
    """Elements in row-major order; `root` and `start` identify their bytes in memory."""

    data: Array
    shape: tuple[int, ...]
    root: int
    start: int


@dataclass
class Races:
    """The accesses to each byte since the `threads` loop began."""

    iteration: int = -1
    task: int = -1
    written: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    read: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def touch(self, place: tuple[int, int], writes: bool) -> bool:
        """True if no other iteration has a conflicting access; in the arena, no other task, because a task's iterations
        share its slot."""
        me = self.task if place[0] == ARENA else self.iteration
        if self.written.get(place, me) != me:
            return False
        if not writes:
            # -2: several iterations read it.
            self.read[place] = me if self.read.get(place, me) == me else -2
            return True
        self.written[place] = me
        return self.read.get(place, me) == me


def run_procedure(op: ProcedureOp, inputs: Sequence[Array], outputs: Sequence[Array], env: Mapping[str, int]) -> None:
    """Runs `op` for every point of its axes. Unwritten elements of `outputs` stay unchanged."""
    body = Block(arg_types=[a.type for a in op.block.args])
    inner, axes = body, [a.name for a in op.axes]
    for axis in op.axes:
        loop = ForOp(axis.name, 0, axis.extent, Block())
        inner.add_op(loop)
        inner = loop.block
    mapping: dict[SSAValue, SSAValue] = dict(zip(op.block.args, body.args, strict=True))
    for statement in op.block.ops:
        inner.add_op(statement.clone(mapping))
    func = FuncOp(op.label, [n for n in env if n not in axes], len(outputs), Region(body))
    run_func(func, [*(np.asarray(a, order="C") for a in inputs), *outputs], env)


def run_func(func: FuncOp, buffers: Sequence[Array], symbols: Mapping[str, int]) -> None:
    """Runs `func` on its buffers, inputs then outputs (C-contiguous; outputs are written in place)."""
    _Machine(func, buffers, symbols).run()


class _Machine:
    def __init__(self, func: FuncOp, buffers: Sequence[Array], symbols: Mapping[str, int]):
        self.func = func
        self.env: dict[str, int] = dict(symbols)
        self.values: dict[SSAValue, Values] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.races: Races | None = None
        self.private: set[int] = set()
        self.kept: list[Array] = []
        missing = set(func.symbol_names) - self.env.keys()
        if missing:
            raise self._error(func, f"no value for the symbols {sorted(missing)}")
        args = func.block.args
        if len(buffers) != len(args):
            raise self._error(func, f"takes {len(args)} buffers, not {len(buffers)}")
        for arg, array in zip(args, buffers, strict=True):
            self.buffers[arg] = self._argument(arg, array)
        self.inputs = {self.buffers[a].root for a in args[: len(args) - func.output_count]}
        size = 0 if func.scratch_bytes is None else func.scratch_bytes.evaluate(self.env)
        if size > MAX_ARENA_BYTES:
            raise self._error(func, f"an arena of {size} bytes is too large to interpret")
        self.arena = np.full(size, UNWRITTEN, np.uint8)
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            AllocOp: self._alloc,
            ForOp: self._for,
            IfOp: self._if,
            IfSharedOp: self._if_shared,
            ViewOp: self._view,
            SliceOp: self._slice,
            LoadOp: self._load,
            StoreOp: self._store,
            AccumulateOp: self._accumulate,
            PrefetchOp: self._prefetch,
            ReduceLanesOp: self._reduce_lanes,
            TransposeOp: self._transpose,
            TileProductOp: self._tile_product,
            IndexOp: self._index,
            CallOp: self._call,
            ClockOp: self._clock,
        }

    def run(self) -> None:
        self._block(self.func.block)

    def _error(self, op: Operation, message: str) -> InterpreterError:
        text = str(op).strip().splitlines()[0]
        return InterpreterError(f"@{self.func.sym_name.data}: {message}\n  in: {text}")

    def _argument(self, arg: SSAValue, array: Array) -> Buffer:
        shape = self._shape(arg)
        dtype = element_type(element_of(arg.type)).dtype
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise self._error(self.func, f"a buffer of {arg.type} is {array.dtype}{list(array.shape)}")
        return Buffer(array.reshape(-1).view(stored_dtype(element_of(arg.type))), shape, array.ctypes.data, 0)

    def _shape(self, value: SSAValue) -> tuple[int, ...]:
        return tuple(d.evaluate(self.env) for d in dims_of(value.type))

    # -- statements ---------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for op in block.ops:
            handler = self.handlers.get(type(op))
            if handler is not None:
                handler(op)
            else:
                self.values[op.results[0]] = self._value(op)

    def _value(self, op: Operation) -> Values:
        operands = [self.values[v] for v in op.operands]
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            kind = cast("VectorType[Any]", op.result.type)
            values = np.array(list(op.value.get_values()))
            return np.broadcast_to(values.astype(scalar_dtype(kind)), kind.get_shape())
        if isinstance(op, vector.BroadcastOp):
            return np.broadcast_to(operands[0], cast("VectorType[Any]", op.vector.type).get_shape())
        if op.name == "vector.fma":
            return operands[0] * operands[1] + operands[2]
        return evaluate(op, operands)

    def _alloc(self, op: AllocOp) -> None:
        shape = self._shape(op.result)
        dtype = stored_dtype(element_of(op.result.type))
        count = product(dims_of(op.result.type)).evaluate(self.env)
        if op.space == "scratch" and op.offset is not None:
            start = op.offset.evaluate(self.env)
            end = start + count * dtype.itemsize
            if start < 0 or end > self.arena.size:
                raise self._error(op, f"bytes {start} to {end} of an arena of {self.arena.size}")
            data = self.arena[start:end].view(dtype)
            self.buffers[op.result] = Buffer(data, shape, ARENA, start)
            return
        memory = np.full(count * dtype.itemsize, UNWRITTEN, np.uint8)
        # Kept alive, so that two buffers never have the same address.
        self.kept.append(memory)
        root = -len(self.kept)
        if self.races is not None:
            self.private.add(root)
        self.buffers[op.result] = Buffer(memory.view(dtype), shape, root, 0)

    def _view(self, op: ViewOp) -> None:
        source = self.buffers[op.source]
        shape = self._shape(op.result)
        if np.prod(shape, dtype=np.int64) != source.data.size:
            raise self._error(op, f"a view of {source.data.size} elements as {list(shape)}")
        self.buffers[op.result] = Buffer(source.data, shape, source.root, source.start)

    def _slice(self, op: SliceOp) -> None:
        source = self.buffers[op.source]
        for subscript, size in zip(op.subscripts, source.shape, strict=False):
            at = subscript.evaluate(self.env)
            if not 0 <= at < size:
                raise self._error(op, f"subscript {subscript} is {at}, in a dim of {size}")
        shape = self._shape(op.result)
        first = op.offset.evaluate(self.env)
        data = source.data[first : first + int(np.prod(shape, dtype=np.int64))]
        start = source.start + first * source.data.itemsize
        self.buffers[op.result] = Buffer(data, shape, source.root, start)

    def _for(self, op: ForOp) -> None:
        env = self._with_indices(op)
        first, end = op.first.evaluate(env), op.end.evaluate(env)
        threaded = op.grain is not None and self.races is None
        if threaded:
            self.races = Races()
        grain = max(1, op.grain.evaluate(self.env)) if op.grain is not None else 1
        for count, value in enumerate(range(first, end, op.step)):
            if op.going is not None and not self.buffers[op.going].data[0]:
                break
            self.env[op.axis] = value
            if threaded and self.races is not None:
                self.races.iteration, self.races.task = value, count // grain
            self._block(op.block)
        self.env.pop(op.axis, None)
        if threaded:
            self.races = None
            self.private.clear()

    def _if(self, op: IfOp) -> None:
        env = self._with_indices(op)
        if all(g.evaluate(env) >= 0 for g in op.guards):
            self._block(op.block)

    def _if_shared(self, op: IfSharedOp) -> None:
        first, second = self.buffers[op.first], self.buffers[op.second]
        place = [each.data.__array_interface__["data"][0] for each in (first, second)]
        one = place[0] == place[1] and first.shape == second.shape
        self._block((op.shared if one else op.apart).block)

    def _with_indices(self, op: ForOp | IfOp) -> Mapping[str, int]:
        """Returns the environment with the names `_0`, `_1`, ... used in the bounds or guards of `op`."""
        if not op.indices:
            return self.env
        return {**self.env, **{f"_{k}": int(self.values[v]) for k, v in enumerate(op.indices)}}

    def _index(self, op: IndexOp) -> None:
        if op.lane is None:
            self.values[op.result] = np.int64(op.value.evaluate(self.env))
            return
        lanes = cast("VectorType[Any]", op.result.type).get_shape()[0]
        numbers = [op.value.evaluate({**self.env, op.lane: k}) for k in range(lanes)]
        self.values[op.result] = np.array(numbers, np.int64)

    def _call(self, op: CallOp) -> None:
        callee = op.find_callee()
        if not isinstance(callee, FuncOp):
            raise self._error(op, f"there is no kernel @{op.callee} in the module to run")
        symbols = {s: e.evaluate(self.env) for s, e in zip(callee.symbol_names, op.symbols, strict=True)}
        arrays: list[Array] = []
        for value in op.buffers:
            buffer = self.buffers[value]
            if value in op.outputs and buffer.root in self.inputs:
                raise self._error(op, "writes an input")
            # Memory is identified by its address; an empty buffer may share it with another one.
            arrays.append(
                buffer.data.reshape(buffer.shape) if buffer.data.size else np.empty(buffer.shape, buffer.data.dtype)
            )
        self._check_apart(op)
        # Its arena is separate, fresh memory: data left by the call in the caller's scratch are void.
        if op.scratch is not None:
            self.buffers[op.scratch].data.view(np.uint8).fill(UNWRITTEN)
        for value in op.outputs:
            self.buffers[value].data.view(np.uint8).fill(UNWRITTEN)
        run_func(callee, arrays, symbols)

    def _check_apart(self, op: CallOp) -> None:
        """Raises if a byte written by the call belongs to another of its buffers."""
        written = [*op.outputs, *([] if op.scratch is None else [op.scratch])]
        for value in written:
            for other in (*op.buffers, *([] if op.scratch is None else [op.scratch])):
                if other is not value and _overlap(self.buffers[value], self.buffers[other]):
                    raise self._error(op, "a buffer that it writes overlaps another buffer")

    def _clock(self, op: ClockOp) -> None:
        self.values[op.result] = np.int64(time.perf_counter_ns())

    # -- accesses -----------------------------------------------------------------------------------------------------

    def _lanes(self, value: SSAValue) -> int:
        return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0

    def _places(self, op: MemoryOp, lanes: int, writes: bool) -> list[int | None]:
        """Returns the flat index of every lane; None for a lane whose guard fails."""
        places: list[int | None] = []
        for lane in range(max(lanes, 1)):
            env = self.env if op.lane is None else {**self.env, op.lane: lane}
            if op.indices:
                env = {**env, **{f"_{k}": int(self._lane_of(v, lane)) for k, v in enumerate(op.indices)}}
            active = all(g.evaluate(env) >= 0 for g in op.guards)
            places.append(self._place(op, env, writes) if active else None)
        return places

    def _lane_of(self, value: SSAValue, lane: int) -> Values:
        found = self.values[value]
        return found[lane] if isinstance(value.type, VectorType) else found

    def _place(self, op: MemoryOp, env: Mapping[str, int], writes: bool) -> int:
        buffer = self.buffers[op.accessed]
        flat = 0
        for subscript, size in zip(op.subscripts, buffer.shape, strict=True):
            at = subscript.evaluate(env)
            if not 0 <= at < size:
                raise self._error(op, f"subscript {subscript} is {at}, in a dim of {size}, at {_where(op, env)}")
            flat = flat * size + at
        if writes and buffer.root in self.inputs:
            raise self._error(op, "writes an input")
        if self.races is not None and buffer.root not in self.private:
            byte = buffer.start + flat * buffer.data.itemsize
            if not self.races.touch((buffer.root, byte), writes):
                raise self._error(
                    op, (f"two iterations of a loop with threads access element {flat}, at {_where(op, env)}")
                )
        return flat

    def _load(self, op: LoadOp) -> None:
        lanes = self._lanes(op.result)
        data = self.buffers[op.buffer].data
        dtype = scalar_dtype(op.result.type)
        otherwise = np.zeros(max(lanes, 1), dtype)
        if op.otherwise is not None:
            otherwise[:] = self.values[op.otherwise]
        for lane, place in enumerate(self._places(op, lanes, writes=False)):
            if place is not None:
                otherwise[lane] = signed(data[place])
        self.values[op.result] = otherwise if lanes else otherwise[0]

    def _store(self, op: StoreOp) -> None:
        lanes = self._lanes(op.value)
        data = self.buffers[op.buffer].data
        places = [p for p in self._places(op, lanes, writes=True) if p is not None]
        if len(set(places)) != len(places):
            raise self._error(op, "two lanes write the same element")
        self._each_lane(op, lanes, lambda place, value: data.__setitem__(place, value.view(data.dtype)))

    def _accumulate(self, op: AccumulateOp) -> None:
        data = self.buffers[op.buffer].data
        fold = fold_of(op.combiner, element_of(op.buffer.type))

        def add(place: int, value: Array) -> None:
            with np.errstate(all="ignore"):
                data[place] = fold(data[place], value.view(data.dtype))

        self._each_lane(op, self._lanes(op.value), add)

    def _each_lane(self, op: StoreOp | AccumulateOp, lanes: int, do: Callable[[int, Any], None]) -> None:
        places = self._places(op, lanes, writes=True)
        values = np.broadcast_to(np.asarray(self.values[op.value]), (max(lanes, 1),))
        for lane, place in enumerate(places):
            if place is not None:
                do(place, values[lane])

    def _tile_product(self, op: TileProductOp) -> None:
        extents = {name: extent.evaluate(self.env) for name, extent in op.extents.items()}
        row, panel, lane, *sums = op.names
        for what, name, most in (("rows", row, op.tile[0]), ("panels", panel, op.tile[1])):
            if extents[name] > most:
                raise self._error(op, f"{extents[name]} {what} in a tile of {most}")
        c = self._tile_places(op, 0, (row, panel, lane), extents)
        # All axes of the sum are merged into one.
        a = self._tile_places(op, 1, (row, *sums[::-1]), extents)
        b = self._tile_places(op, 2, (panel, lane, *sums[::-1]), extents)
        steps = math.prod(extents[n] for n in sums)
        a, b = a.reshape(*a.shape[:1], steps), b.reshape(*b.shape[:2], steps)
        into = self.buffers[op.c].data
        kernel = op.kernel
        if kernel is None:
            raise self._error(op, "there is no micro-kernel for these element types")
        left, right = (signed(self.buffers[v].data[at]) for v, at in ((op.a, a), (op.b, b)))
        # Sums of floats are kept in f64; its rounding is negligible beside that of any order of additions.
        keep = np.float64 if into.dtype.kind == "f" and kernel.facts.combiner == "add" else into.dtype
        total = into[c] if op.adds else np.full(c.shape, _identity(kernel.facts), into.dtype)
        total = total.astype(keep)
        value = np.ascontiguousarray(_meaning(kernel.facts, left[:, None, None, :], right[None]))
        value = value.view(into.dtype) if into.dtype.kind == "u" else value
        fold = fold_of(kernel.facts.combiner, kernel.facts.elements[2])
        for step in range(value.shape[-1]):
            with np.errstate(all="ignore"):
                total = fold(total, value[..., step])
        with np.errstate(all="ignore"):
            into[c] = total.astype(into.dtype)

    def _tile_places(self, op: TileProductOp, which: int, names: Sequence[str], extents: Mapping[str, int]) -> Array:
        """Returns the flat index of every element that a micro-kernel accesses in one of its buffers."""
        value, _, subscripts = op.accesses[which]
        shape = [extents[n] for n in names]
        buffer = self.buffers[value]
        places = np.empty(shape, np.int64)
        for at in np.ndindex(*shape):
            env = {**self.env, **dict(zip(names, at, strict=True))}
            flat = 0
            for subscript, size in zip(subscripts, buffer.shape, strict=True):
                index = subscript.evaluate(env)
                if not 0 <= index < size:
                    raise self._error(op, f"subscript {subscript} is {index}, in a dim of {size}")
                flat = flat * size + index
            if self.races is not None and buffer.root not in self.private:
                byte = buffer.start + flat * buffer.data.itemsize
                if not self.races.touch((buffer.root, byte), which == 0):
                    raise self._error(op, f"two iterations of a loop with threads access element {flat}")
            places[at] = flat
        if which == 0 and buffer.root in self.inputs:
            raise self._error(op, "writes an input")
        return places

    def _prefetch(self, op: PrefetchOp) -> None:
        """Does nothing: a prefetch has no effect on results."""

    def _reduce_lanes(self, op: ReduceLanesOp) -> None:
        values = np.asarray(self.values[op.vector])
        lanes = unsigned(values) if op.unsigned else values
        fold = fold_of(op.combiner, op.element)
        total = lanes[0]
        for value in lanes[1:]:
            with np.errstate(all="ignore"):
                total = fold(total, value)
        self.values[op.result] = signed(total)[()] if op.unsigned else total

    def _transpose(self, op: TransposeOp) -> None:
        elements = np.concatenate([self.values[v] for v in op.vectors])
        columns = elements.reshape(op.rows, -1).T.reshape(len(op.columns), -1)
        for result, column in zip(op.columns, columns, strict=True):
            self.values[result] = column


def _meaning(facts: Facts, left: Array, right: Array) -> Array:
    """Returns the micro-kernel's body for elements of `a` and of `b`, which broadcast against each other."""
    values: dict[SSAValue, Values] = {facts.a.result: left, facts.b.result: right}
    for op in facts.nest.block.ops:
        if isinstance(op, YieldOp):
            break
        if op.results[0] not in values:
            values[op.results[0]] = evaluate(op, [values[v] for v in op.operands])
    shape = np.broadcast_shapes(left.shape, right.shape)
    return np.broadcast_to(values[facts.nest.yield_op.clauses[0].value], shape)


def _identity(facts: Facts) -> Values:
    """Returns the initial value of a micro-kernel's fold."""
    return constant(identity(facts.combiner, facts.elements[2]))


def _overlap(a: Buffer, b: Buffer) -> bool:
    return a.root == b.root and a.start < b.start + b.data.nbytes and b.start < a.start + a.data.nbytes


def _where(op: MemoryOp, env: Mapping[str, int]) -> str:
    names: set[str] = set()
    exprs: tuple[Expr, ...] = (*op.subscripts, *op.guards)
    for e in exprs:
        names |= e.symbols
    return ", ".join(f"{n} = {env[n]}" for n in sorted(names))
