"""Edits of scheduled kernels: drop statements, replace loops by one iteration, simplify loops."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from igniter.dialects.loop import ForOp, FuncOp, LoadOp, StoreOp
from igniter.dialects.sym import DimsAttr
from igniter.toolbox.reduce.edits import CannotEdit, Edit, Reduction
from igniter.transforms.scheduled.loop_rewrites import move_ops, substitute_axes


def statements(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a statement without results: a loop, a store, a call."""
    for func in module.ops:
        if isinstance(func, FuncOp):
            for op in func.walk():
                if op is not func and not op.results:
                    yield Edit(op, "drop", _drop)


def _drop(op: Operation) -> None:
    if op.results:
        raise CannotEdit("it gives a value")
    op.detach()
    op.erase()


def loads(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a load by the value stored before in the same block."""
    for op in module.walk():
        if isinstance(op, LoadOp) and _stored(op) is not None:
            yield Edit(op, "take what was stored", _forward)


def _stored(load: LoadOp) -> SSAValue | None:
    """Returns the value of the last store before a load to the same place."""
    op = load.prev_op
    while op is not None:
        if isinstance(op, StoreOp) and op.buffer is load.buffer:
            same = op.subscripts == load.subscripts and not (op.indices or load.indices or op.guards or load.guards)
            return op.value if same and op.value.type == load.result.type else None
        op = op.prev_op
    return None


def _forward(op: Operation) -> None:
    value = _stored(op) if isinstance(op, LoadOp) else None
    if value is None:
        raise CannotEdit("nothing was stored there")
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


def iterations(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a loop by its first iteration."""
    for op in module.walk():
        if isinstance(op, ForOp):
            yield Edit(op, "its first iteration alone", _first_iteration)


def _first_iteration(op: Operation) -> None:
    assert isinstance(op, ForOp)
    block = op.parent
    if block is None or op.indices or op.going is not None:
        raise CannotEdit("where it begins or ends hangs on data")
    inner = list(op.block.ops)
    substitute_axes(inner, {op.axis: op.first})
    move_ops(inner, block, op)
    op.detach()
    op.erase()


def plain(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to run a parallel loop on one thread."""
    for op in module.walk():
        if isinstance(op, ForOp) and op.grain_attr is not None:
            yield Edit(op, "run it on one thread", _unthread)


def _unthread(op: Operation) -> None:
    op.properties.pop("grain", None)


def ends(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to end a longer loop after two iterations or one."""
    for op in module.walk():
        if isinstance(op, ForOp):
            extent = (op.end - op.first).constant
            for count in (2, 1):
                if extent is None or extent > count * op.step:
                    yield Edit(op, f"{count} iterations", _Ends(count))


class _Ends:
    """An edit to end a loop after `count` iterations."""

    def __init__(self, count: int):
        self._count = count

    def __call__(self, op: Operation) -> None:
        assert isinstance(op, ForOp)
        op.bounds = DimsAttr([op.first, op.first + self._count * op.step])


REDUCTIONS = (
    Reduction("drop statements", statements),
    Reduction("drop loops", iterations),
    Reduction("forward stores", loads),
    Reduction("shorten loops", ends),
    Reduction("drop threads", plain),
)
