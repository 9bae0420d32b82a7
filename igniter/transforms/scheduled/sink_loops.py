"""`sink-loops`: moves a loop inside a tile below the reduction loops that it surrounds.

    loop.for i_in = 0 to 8 hints {sink} {
      %acc = loop.alloc "c" : memref<f32, "register">
      loop.store %zero, %acc[]
      loop.for k = 0 to 768 reduction { .. loop.accumulate add %p, %acc[] }
      %v = loop.load %acc[] : f32      loop.store %v, %c[i + i_in]
    }
becomes
    %acc = loop.alloc "c" : memref<8xf32, "register">
    loop.for i_in = 0 to 8 { loop.store %zero, %acc[i_in] }
    loop.for k = 0 to 768 reduction { loop.for i_in1 = 0 to 8 { .. loop.accumulate add %p, %acc[i_in1] } }
    loop.for i_in2 = 0 to 8 { %v = loop.load %acc[i_in2] : f32      loop.store %v, %c[i + i_in2] }

The loop is distributed over the statements of its body and interchanged with the loops that contain a reduction. This
is legal because its iterations are independent. A buffer of one iteration gets a place for each iteration, and so does
a value computed before a reduction and used in or after it. The result is a register tile of a tiled contraction: an
outer product instead of dot products. The pass runs after `tile-loops` and before `vectorize-loops`.

`sink = "loops"` moves a loop below every loop inside it, reduction or not, except vector and unrolled loops. Two tiled
loops become tiles of both, as a transposition needs, and a column of vectors runs through the loops of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.dialects.loop import AllocOp, ForOp, FuncOp, LoadOp, MemoryOp, StoreOp, ViewOp
from igniter.dialects.sym import DimsAttr, dims_of, memref_of
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import AxisNames, consume, substitute_axes


@dataclass(frozen=True)
class SinkLoops(ModulePass):
    """Moves loops with the word `sink` (or the loop named by `axis`) inside the reductions they surround."""

    name = "sink-loops"
    one_rewrite = "a loop sunk"

    axis: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            while True:
                # The last loop sunk ends up outermost. The vector loop is sunk first: all rows of the tile then share
                # its loads, and only one broadcast of the other operand is live at a time.
                loops = [x for x in func.walk() if isinstance(x, ForOp) and self._wants(x)]
                if not loops:
                    break
                loop = next((x for x in loops if x.words.vector), loops[-1])
                if budget(ctx, self.name).take(f"{func.sym_name.data}.{loop.axis}", "it is sunk"):
                    sink(loop, names)
                elif not consume(loop, "sink").sink:  # The option requested it and would request it again.
                    break

    def _wants(self, loop: ForOp) -> bool:
        if self.axis is not None:
            return loop.axis == self.axis and any(_holds_reduction(op) for op in loop.block.ops)
        return bool(loop.words.sink)


def sink(loop: ForOp, names: AxisNames) -> None:
    """Distributes `loop` over its body and moves it below every reduction in it."""
    is_barrier = _is_plain_loop if consume(loop, "sink").sink == "loops" else _holds_reduction
    if loop.is_reduction or loop.is_sequential:
        raise IgniterError(f"sink-loops: loop '{loop.axis}' is a reduction; only independent iterations can be sunk")
    if not any(is_barrier(op) for op in loop.block.ops):
        return
    home = loop.parent_block()
    assert home is not None
    _pass_through_buffers(loop.block, is_barrier)
    for op in _distribute(loop, list(loop.block.ops), names, is_barrier):
        home.insert_op_before(op, loop)
    loop.detach()
    loop.erase()


def _holds_reduction(op: Operation) -> bool:
    """True if a loop should move below a reduction in `op`. A vectorised reduction, along one row, is no reason."""
    return any(isinstance(inner, ForOp) and inner.is_reduction and not inner.words.vector for inner in op.walk())


def _extent_bound(loop: ForOp) -> Expr:
    """Returns the largest possible extent of the loop, as a constant."""
    extent = loop.end - loop.first
    if extent.constant is not None:
        return extent
    bounds = extent.call.args if extent.call is not None and extent.call.fn == "min" else ()
    constant = next((a for a in bounds if a.constant is not None), None)
    if constant is not None:
        return constant
    raise IgniterError(
        f"sink-loops: loop '{loop.axis}' has no constant bound on its {extent} iterations; tile it first"
    )


def _expand_buffer(alloc: AllocOp, loop: ForOp) -> AllocOp:
    """Returns the buffer of an iteration with an additional dim for all iterations; the last dim if they become
    lanes."""
    users = [use.operation for use in alloc.result.uses]
    if any(isinstance(u, ViewOp) for u in users):
        raise IgniterError(f"sink-loops: buffer '{alloc.label.data}' of loop '{loop.axis}' has views")
    dims, place = dims_of(alloc.result.type), Expr.of(loop.axis) - loop.first
    lanes_last = loop.words.vector > 0
    dims = (*dims, _extent_bound(loop)) if lanes_last else (_extent_bound(loop), *dims)
    # Registers cannot be indexed: if the loop is not unrolled, they become memory of the task.
    space = "local" if alloc.space == "register" and loop.words.unroll is None else alloc.space
    fresh = alloc.like(dims, space)
    for user in users:
        assert isinstance(user, MemoryOp)
        user.subscripts_attr = DimsAttr((*user.subscripts, place) if lanes_last else (place, *user.subscripts))
    alloc.result.replace_all_uses_with(fresh.result)
    if alloc.parent is not None:
        alloc.detach()
    alloc.erase()
    return fresh


def _is_plain_loop(op: Operation) -> bool:
    """True for a loop that stays outside: neither a vector loop nor unrolled, as the loops inside a tile are."""
    return isinstance(op, ForOp) and not op.words.vector and op.words.unroll is None


def _distribute(
    loop: ForOp, ops: list[Operation], names: AxisNames, is_barrier: Callable[[Operation], bool]
) -> list[Operation]:
    """Returns the statements `ops` of a body, each run for all iterations of `loop` before the next statement."""
    result: list[Operation] = []
    group: list[Operation] = []

    def close() -> None:
        if group:
            result.append(_wrap(loop, group, names))
            group.clear()

    for op in ops:
        if isinstance(op, AllocOp):
            result.append(_expand_buffer(op, loop))
            continue
        if op.name == "arith.constant":
            if op.parent is not None:
                op.detach()
            result.append(op)
            continue
        if not is_barrier(op):
            group.append(op)
            continue
        close()
        assert isinstance(op, ForOp)
        op.detach()
        _pass_through_buffers(op.block, is_barrier)
        inner = list(op.block.ops)
        deeper = any(is_barrier(child) for child in inner)
        new = _distribute(loop, inner, names, is_barrier) if deeper else [_wrap(loop, inner, names)]
        for child in new:
            op.block.add_op(child)
        result.append(op)
    close()
    return result


def _pass_through_buffers(block: Block, is_barrier: Callable[[Operation], bool]) -> None:
    """Passes values between the parts of a body, across a loop that stays outside, through buffers."""
    part: dict[Operation, int] = {}
    count = 0
    for op in block.ops:
        count += is_barrier(op)
        part[op] = count
        count += is_barrier(op)
    for op in list(block.ops):
        if isinstance(op, AllocOp) or op.name == "arith.constant":
            continue
        for value in op.results:
            users = dict.fromkeys(use.operation for use in value.uses)
            crossing = [u for u in users if part[_ancestor_in(block, u)] != part[op]]
            if not crossing:
                continue
            buffer = AllocOp(value.name_hint or "value", memref_of(value.type, [], "register"))
            block.insert_op_before(buffer, block.first_op or op)
            block.insert_op_after(StoreOp(value, buffer.result, []), op)
            for user in crossing:
                load = LoadOp(buffer.result, [], value.type)
                home = user.parent_block()
                assert home is not None
                home.insert_op_before(load, user)
                user.operands = [load.result if v is value else v for v in user.operands]


def _ancestor_in(block: Block, op: Operation) -> Operation:
    """Returns the op of `block` that contains `op`."""
    while op.parent is not block:
        above = op.parent_op()
        assert above is not None
        op = above
    return op


def _wrap(loop: ForOp, ops: list[Operation], names: AxisNames) -> ForOp:
    """Returns a copy of `loop` around `ops`."""
    axis = names.fresh(loop.axis)
    body = Block()
    for op in ops:
        if op.parent is not None:
            op.detach()
        body.add_op(op)
    substitute_axes(ops, {loop.axis: Expr.of(axis)})
    return ForOp(axis, loop.first, loop.end, body, words=loop.words)
