"""Runs a `loop.kernel` on numpy arrays: the semantics of the structured level, and the reference for its passes.

A nest is computed for its whole iteration domain at once: an axis is an index grid along its own dimension, and a body
value broadcasts over the axes that it depends on. Big domains are cut into blocks along their longest axis. Everything
illegal at this level is an error: an access out of bounds without a guard, an element of a `none` clause written twice
or never, symbols contradicted by the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import Axis, Clause, IndexOp, KernelOp, NestOp, ProcedureOp, ReadOp, ViewOp, YieldOp
from igniter.dialects.loop.attrs import SMALL_FLOATS, Combiner
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.variants import guards_of
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.bind_symbols import Bind, Check, bind_symbols
from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.lowering import Lowering
from igniter.dialects.sym.requirements import FINE
from igniter.verification.interp.arithmetic import (
    Array,
    InterpreterError,
    Values,
    constant,
    evaluate,
    fold_of,
    signed,
    stored_dtype,
    unsigned,
)
from igniter.verification.interp.scheduled import UNWRITTEN, run_procedure

BLOCK_POINTS = 1 << 21
"""The limit of points of an iteration domain computed at once."""

Env = Mapping[str, Values]


def run_kernel(kernel: KernelOp, inputs: Sequence[Array], symbols: Mapping[str, int] | None = None) -> list[Array]:
    """Returns the results of `kernel` for `inputs`. Symbols are bound by the inputs' dims; `symbols` gives the
    others."""
    args = kernel.block.args
    if len(inputs) != len(args):
        raise InterpreterError(f"kernel @{kernel.sym_name.data} takes {len(args)} inputs, not {len(inputs)}")
    env = bind(kernel, inputs, symbols or {})
    for requirement in kernel.requires:
        if not requirement.holds(env):
            raise InterpreterError(f"@{kernel.sym_name.data}: {requirement.text}: {requirement} does not hold")
    kernel = next(k for k, guards in guards_of(kernel) if all(g.evaluate(env) >= 0 for g in guards))
    args = kernel.block.args
    tensors: dict[SSAValue, Array] = {}
    for arg, array in zip(args, inputs, strict=True):
        if array.dtype != element_type(element_of(arg.type)).dtype:
            raise InterpreterError(f"an input of {arg.type} has dtype {array.dtype}")
        tensors[arg] = array.view(stored_dtype(element_of(arg.type)))
    for op in kernel.block.ops:
        if isinstance(op, ViewOp):
            tensors[op.result] = tensors[op.source].reshape(_shape(op.result, env))
        elif isinstance(op, NestOp):
            for result, array in zip(op.outputs, _Nest(op, tensors, env).run(), strict=True):
                tensors[result] = array
        elif isinstance(op, ProcedureOp):
            made = [_unwritten(r, env) for r in op.outputs]
            run_procedure(op, [tensors[v] for v in op.inputs], made, env)
            tensors.update(zip(op.outputs, made, strict=True))
    results = [tensors[v].view(element_type(element_of(v.type)).dtype) for v in kernel.returned]
    outputs = len(results) - len(kernel.checks)
    for check, found in zip(kernel.checks, results[outputs:], strict=True):
        if found != FINE:
            raise InterpreterError(f"@{kernel.sym_name.data}: {check.text}: {int(found)}")
    return results[:outputs]


def bind(kernel: KernelOp, inputs: Sequence[Array], known: Mapping[str, int]) -> dict[str, int]:
    """Returns the values of the kernel's symbols; raises if a dim of an input contradicts its type."""
    return bind_dims([dims_of(a.type) for a in kernel.block.args], kernel.symbol_names, inputs, known)


def bind_dims(
    dims: Sequence[Sequence[Expr]], symbols: Sequence[str], inputs: Sequence[Array], known: Mapping[str, int]
) -> dict[str, int]:
    """Returns the values of `symbols` for inputs of these dims; raises if a dim of an input contradicts."""
    env = dict(known)
    for i, (array, expected) in enumerate(zip(inputs, dims, strict=True)):
        if array.ndim != len(expected):
            raise InterpreterError(f"input {i} has rank {array.ndim}, not {len(expected)}")
        for axis, dim in enumerate(expected):
            if dim.constant is not None and array.shape[axis] != dim.constant:
                raise InterpreterError(f"input {i}: dim {axis} is {array.shape[axis]}, not {dim}")
    binding = bind_symbols([(d, True) for d in dims], env)
    for step in binding.steps:
        size = inputs[step.input].shape[step.axis]
        if isinstance(step, Bind):
            expected = env.setdefault(step.symbol, size)
        elif isinstance(step, Check):
            expected = step.expr.evaluate(env)
        else:
            rest = step.rest.evaluate(env)
            env[step.symbol], left = divmod(size - rest, step.coefficient)
            expected = size - left if env[step.symbol] >= 0 else -1
        if expected != size:
            raise InterpreterError(f"input {step.input}: dim {step.axis} is {size}, not {dims[step.input][step.axis]}")
    missing = [s for s in symbols if s not in env]
    if missing:
        raise InterpreterError(f"{', '.join(missing)} is not a dim of any input")
    return env


def evaluate_expr(expr: Expr, env: Env) -> Values:
    """Evaluates an expression with arrays for some of its names: `Expr.evaluate`, elementwise."""
    return _Arrays(env).lower(expr)


class _Arrays(Lowering[Values]):
    """Expressions as integers and arrays of them."""

    def __init__(self, env: Env):
        self._env = env

    def constant(self, value: int) -> Values:
        return value

    def symbol(self, name: str) -> Values:
        return self._env[name]

    def add(self, a: Values, b: Values) -> Values:
        return a + b

    def mul(self, a: Values, b: Values) -> Values:
        return a * b

    def floordiv(self, a: Values, b: Values, call: Call) -> Values:
        with np.errstate(all="ignore"):
            return np.floor_divide(a, b)

    def mod(self, a: Values, b: Values, call: Call) -> Values:
        with np.errstate(all="ignore"):
            return np.remainder(a, b)

    def minimum(self, a: Values, b: Values) -> Values:
        return np.minimum(a, b)

    def maximum(self, a: Values, b: Values) -> Values:
        return np.maximum(a, b)


def _unwritten(result: SSAValue, env: Mapping[str, int]) -> Array:
    """Returns an unwritten tensor: NaN, and a pattern for integers."""
    dtype = stored_dtype(element_of(result.type))
    shape = _shape(result, env)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == np.bool_:
        return np.ones(shape, np.bool_)
    return np.full(count * dtype.itemsize, UNWRITTEN, np.uint8).view(dtype).reshape(shape)


def _shape(value: SSAValue, env: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(d.evaluate(env) for d in dims_of(value.type))


def identity_of(combiner: Combiner, element: Attribute) -> Any:
    """Returns the initial value of a fold of such elements."""
    if isinstance(element, SMALL_FLOATS) and combiner == "none":
        return stored_dtype(element).type(0)
    start = np.asarray(constant(identity(combiner, element)))
    return start.view(stored_dtype(element))[()]


class _Output:
    """One result of a nest during its computation."""

    def __init__(self, clause: Clause, element: Attribute, shape: tuple[int, ...]):
        self.clause = clause
        self.element = element
        self.array = np.full(shape, identity_of(clause.combiner, element), stored_dtype(element))
        self.once = clause.combiner == "none"
        self.written = np.zeros(shape, bool) if self.once or clause.otherwise is not None else None


class _Nest:
    """The run of one nest."""

    def __init__(self, nest: NestOp, tensors: Mapping[SSAValue, Array], symbols: Mapping[str, int]):
        self.nest = nest
        self.tensors = tensors
        self.symbols = symbols
        self.extents = [a.extent.evaluate(symbols) for a in nest.axes]
        self.outputs: list[_Output] = []
        for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True):
            self.outputs.append(_Output(clause, element_of(result.type), _shape(result, symbols)))

    def run(self) -> list[Array]:
        blocks = [(0, e) for e in self.extents]
        if all(self.extents):
            self._run_blocks(blocks)
        for output in self.outputs:
            if output.written is None or output.written.all():
                continue
            if output.clause.otherwise is None:
                raise self._error("does not write every element of its result")
            dtype = output.array.dtype
            number = np.asarray(output.clause.otherwise.value.data).astype(_signless(dtype)).view(dtype)
            output.array[~output.written] = number
        return [o.array for o in self.outputs]

    def _run_blocks(self, blocks: list[tuple[int, int]]) -> None:
        sizes = [end - first for first, end in blocks]
        if int(np.prod(sizes, dtype=np.int64)) > BLOCK_POINTS:
            widest = int(np.argmax(sizes))
            first, end = blocks[widest]
            middle = (first + end) // 2
            self._run_blocks([*blocks[:widest], (first, middle), *blocks[widest + 1 :]])
            self._run_blocks([*blocks[:widest], (middle, end), *blocks[widest + 1 :]])
            return
        self._run_block(blocks)

    def _run_block(self, blocks: list[tuple[int, int]]) -> None:
        env: dict[str, Values] = dict(self.symbols)
        rank = len(blocks)
        for k, (axis, (first, end)) in enumerate(zip(self.nest.axes, blocks, strict=True)):
            env[axis.name] = np.arange(first, end).reshape([-1 if d == k else 1 for d in range(rank)])
        values: dict[SSAValue, Values] = {}
        for op in self.nest.block.ops:
            if isinstance(op, YieldOp):
                break
            values[op.results[0]] = self._value(op, values, env)
        sizes = tuple(end - first for first, end in blocks)
        for output in self.outputs:
            self._write(output, values[output.clause.value], env, sizes)

    def _value(self, op: Operation, values: Mapping[SSAValue, Values], env: Env) -> Values:
        if isinstance(op, ReadOp):
            return self._read(op, values, env)
        if isinstance(op, IndexOp):
            return np.asarray(evaluate_expr(op.value, env), np.int64)
        return evaluate(op, [values[v] for v in op.operands])

    def _read(self, op: ReadOp, values: Mapping[SSAValue, Values], env: Env) -> Values:
        tensor = self.tensors[op.source]
        local = {**env, **{f"_{k}": values[v] for k, v in enumerate(op.indices)}}
        inside = self._guard(op.guards, local)
        where: list[Values] = []
        for size, subscript in zip(tensor.shape, op.subscripts, strict=True):
            at = np.asarray(evaluate_expr(subscript, local))
            outside = ((at < 0) | (at >= size)) if inside is None else ((at < 0) | (at >= size)) & inside
            if outside.any():
                raise self._error(f"reads out of bounds: {subscript} in {op}")
            where.append(at if inside is None else np.clip(at, 0, max(size - 1, 0)))
        dtype = tensor.dtype
        fallback = values[op.otherwise] if op.otherwise is not None else _signless(dtype).type(0)
        if inside is not None and tensor.size == 0:
            return np.broadcast_to(fallback, np.broadcast_shapes(np.shape(inside), np.shape(fallback)))
        found = tensor[tuple(where)]
        found = signed(found) if dtype.kind == "u" else found
        return found if inside is None else np.where(inside, found, fallback)

    def _guard(self, guards: Sequence[Expr], env: Env) -> Array | None:
        inside: Array | None = None
        for guard in guards:
            holds = np.asarray(evaluate_expr(guard, env)) >= 0
            inside = holds if inside is None else inside & holds
        return inside

    def _write(self, output: _Output, value: Values, env: Env, sizes: tuple[int, ...]) -> None:
        clause = output.clause
        axes = self.nest.axes
        reduced = tuple(k for k, a in enumerate(axes) if a.kind == "reduction")
        value = np.broadcast_to(value, sizes)
        if output.array.dtype.kind == "u":
            value = unsigned(np.ascontiguousarray(value)).view(output.array.dtype)
        if reduced:
            fold = fold_of(clause.combiner, output.element)
            value = fold.reduce(value, axis=reduced, keepdims=True, dtype=value.dtype)
        at = tuple(np.asarray(evaluate_expr(s, env)) for s in clause.subscripts)
        for subscript, where, size in zip(clause.subscripts, at, output.array.shape, strict=True):
            if ((where < 0) | (where >= size)).any():
                raise self._error(f"writes out of bounds at {subscript}")
        if all(w.ndim == 0 for w in at):  # One element: every axis is folded, or has one point.
            value = value.reshape(())
        if output.written is not None and output.once:
            self._write_once(output, output.written, at, value)
            return
        if output.written is not None:
            output.written[at] = True
        target = np.broadcast_shapes(value.shape, *(w.shape for w in at))
        if _tells_apart(clause, axes):
            output.array[at] = fold_of(clause.combiner, output.element)(output.array[at], value)
        else:
            fold_of(clause.combiner, output.element).at(
                output.array, tuple(np.broadcast_to(w, target) for w in at), np.broadcast_to(value, target)
            )

    def _write_once(self, output: _Output, written: Array, at: tuple[Values, ...], value: Array) -> None:
        if not _tells_apart(output.clause, self.nest.axes):
            count = np.zeros(output.array.shape, np.int64)
            np.add.at(count, tuple(np.broadcast_to(w, value.shape) for w in at), 1)
            if (count > 1).any():
                raise self._error("writes an element twice")
        if written[at].any():
            raise self._error("writes an element twice")
        written[at] = True
        output.array[at] = value

    def _error(self, message: str) -> InterpreterError:
        return InterpreterError(f"nest '{self.nest.label}' {message}")


def _tells_apart(clause: Clause, axes: Sequence[Axis]) -> bool:
    """True if each parallel axis is a subscript of its own, so that the access map is injective over them."""
    alone = [s.symbol for s in clause.subscripts if s.symbol is not None]
    wanted = [a.name for a in axes if a.kind == "parallel"]
    return all(alone.count(name) >= 1 for name in wanted)


def _signless(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" else dtype
