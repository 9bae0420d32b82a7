"""Kernels that treat batch elements independently, along the first dim of their inputs and results.

    loop.kernel @k symbols [n, h] (%x: tensor<?x?xf32, #sym.dims<n, h>>, %w: tensor<8xf32>) -> (tensor<?x8xf32, ..>)

is *batched* along `n` if the results at one place of `n` depend only on the inputs at that place. A call for `n`
elements is then `n` calls for one, each on a contiguous part of the inputs and results. The property follows from the
nests: one axis of a nest is the batch. It is the first subscript, bare, of all tensors with the dim, and occurs nowhere
else.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import IndexOp, KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, symbols_of


def batched_inputs(kernel: KernelOp) -> tuple[int, ...] | None:
    """Returns the inputs whose first dim is a batch, if the kernel is batched along it and all results have it; `None`
    for other kernels."""
    for symbol in dict.fromkeys(s for t in kernel.declared_types for s in [_first(t)] if s is not None):
        if _is_batched(kernel, symbol):
            return tuple(k for k, arg in enumerate(kernel.block.args) if _first(arg.type) == symbol)
    return None


def _first(kind: Attribute) -> str | None:
    """Returns the symbol of a tensor's first dim."""
    dims = dims_of(kind)
    return dims[0].symbol if dims else None


def _is_batched(kernel: KernelOp, symbol: str) -> bool:
    # An assumption about a batch may not hold for its elements.
    if kernel.checks or kernel.variants or any(symbol in r.symbols for r in kernel.requires):
        return False
    values = [*kernel.block.args, *(r for op in kernel.block.ops for r in op.results)]
    if not all(has_batch(v, symbol) or _has_none(v, symbol) for v in values):
        return False
    if not all(has_batch(v, symbol) for v in kernel.returned):
        return False
    return all(_keeps_apart(op, symbol) for op in kernel.block.ops if op is not kernel.block.last_op)


def has_batch(value: SSAValue, symbol: str) -> bool:
    """True if a tensor has the symbol as its first dim, and nowhere else."""
    dims = dims_of(value.type)
    return bool(dims) and dims[0].symbol == symbol and symbol not in symbols_of(dims[1:])


def _has_none(value: SSAValue, symbol: str) -> bool:
    return symbol not in symbols_of(dims_of(value.type))


def _keeps_apart(op: Operation, symbol: str) -> bool:
    """True if an op of a kernel treats batch elements independently."""
    if isinstance(op, ViewOp):
        return has_batch(op.source, symbol) == has_batch(op.result, symbol)
    return isinstance(op, NestOp) and _nest_keeps_apart(op, symbol)


def _nest_keeps_apart(nest: NestOp, symbol: str) -> bool:
    counting = [a for a in nest.axes if symbol in a.extent.symbols]
    if not counting:
        return not any(has_batch(v, symbol) for v in (*(r.source for r in nest.reads), *nest.outputs))
    if len(counting) != 1 or counting[0].kind != "parallel" or counting[0].extent.symbol != symbol:
        return False
    names = {symbol, counting[0].name}

    def fits(value: SSAValue, subscripts: tuple[Expr, ...], others: Iterable[Expr]) -> bool:
        first = subscripts[:1] if has_batch(value, symbol) else ()
        rest = (*subscripts[len(first) :], *others)
        return all(s.symbol == counting[0].name for s in first) and not names & symbols_of(rest)

    for op in nest.block.walk():
        if isinstance(op, ReadOp) and not fits(op.source, op.subscripts, op.guards):
            return False
        if isinstance(op, IndexOp) and names & op.value.symbols:
            return False
    clauses = zip(nest.outputs, nest.yield_op.clauses, strict=True)
    return all(has_batch(v, symbol) and fits(v, c.subscripts, ()) for v, c in clauses)
