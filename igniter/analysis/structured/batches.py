"""Which kernels do the same for every element of a batch: along the first dim of what they read and write.

    loop.kernel @k symbols [n, h] (%x: tensor<?x?xf32, #sym.dims<n, h>>, %w: tensor<8xf32>) -> (tensor<?x8xf32, ..>)

is *batched* along `n` where the results at one place of it depend on the inputs at that place alone. Then a call for
`n` elements is `n` calls for one, each on a part of the inputs and results that is contiguous. It is read off the
nests: one axis of a nest is the batch, and it is the first subscript, bare, of all that has the dim, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import IndexOp, KernelOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, symbols_of


def batched_inputs(kernel: KernelOp) -> tuple[int, ...] | None:
    """The inputs that have a batch as their first dim, of a kernel that is batched along it and all of whose results
    have it; `None` for others."""
    for symbol in dict.fromkeys(s for t in kernel.declared_types for s in [_first(t)] if s is not None):
        if _is_batched(kernel, symbol):
            return tuple(k for k, arg in enumerate(kernel.block.args) if _first(arg.type) == symbol)
    return None


def _first(kind: Attribute) -> str | None:
    """The symbol that the first dim of a tensor is."""
    dims = dims_of(kind)
    return dims[0].symbol if dims else None


def _is_batched(kernel: KernelOp, symbol: str) -> bool:
    # What has to hold of a batch may not hold of its elements.
    if kernel.checks or kernel.variants or any(symbol in r.symbols for r in kernel.requires):
        return False
    values = [*kernel.block.args, *(r for op in kernel.block.ops for r in op.results)]
    if not all(has_batch(v, symbol) or _has_none(v, symbol) for v in values):
        return False
    if not all(has_batch(v, symbol) for v in kernel.returned):
        return False
    return all(_keeps_apart(op, symbol) for op in kernel.block.ops if op is not kernel.block.last_op)


def has_batch(value: SSAValue, symbol: str) -> bool:
    """Whether a tensor has the symbol as its first dim, and nowhere else."""
    dims = dims_of(value.type)
    return bool(dims) and dims[0].symbol == symbol and symbol not in symbols_of(dims[1:])


def _has_none(value: SSAValue, symbol: str) -> bool:
    return symbol not in symbols_of(dims_of(value.type))


def _keeps_apart(op: Operation, symbol: str) -> bool:
    """Whether an op of a kernel does the same for every element of a batch."""
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
