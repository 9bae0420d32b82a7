"""Factors of a contraction that are widened bf16, stored as the 16 bits (for `pack-operands`)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16
from xdsl.rewriter import Rewriter

from igniter.analysis.structured.contractions import factors_of
from igniter.dialects.loop import Clause, NestOp, ReadOp, ViewOp, YieldOp
from igniter.dialects.sym import dims_of, element_of, tensor_of


def narrow_factors(nest: NestOp) -> None:
    """Makes the producers of widened bf16 store the 16 bits, if both factors of a contraction are such numbers and
    nothing else reads them."""
    factors = factors_of(nest)
    if nest.schedule is not None or isinstance(factors, str):
        return
    found = [_stored_wide(read) for read in factors]
    if None in found or all(not path for path in found):
        return
    for read, path in zip(factors, found, strict=True):
        if path:
            _narrow(nest, read, path)


def _stored_wide(read: ReadOp) -> list[ViewOp | NestOp] | None:
    """Returns the views and the producer of a factor of widened bf16, in the order from the read; an empty list if the
    factor is bf16 already, and None if it is neither."""
    path: list[ViewOp | NestOp] = []
    value = read.source
    if element_of(value.type) == bf16:
        return path
    while isinstance(value.owner, ViewOp) and value.has_one_use():
        path.append(value.owner)
        value = value.owner.source
    producer = value.owner
    if not isinstance(producer, NestOp) or not value.has_one_use() or producer.schedule is not None:
        return None
    clause = producer.yield_op.clauses[producer.outputs.index(value)]  # pyright: ignore[reportArgumentType]
    wide = clause.value.owner
    if clause.combiner != "none" or clause.otherwise is not None or not isinstance(wide, arith.ExtFOp):
        return None
    return [*path, producer] if wide.input.type == bf16 else None


def _narrow(nest: NestOp, read: ReadOp, path: Sequence[ViewOp | NestOp]) -> None:
    """Makes the last op of `path` store bf16, and the read widen them."""
    *views, producer = path
    assert isinstance(producer, NestOp)
    tensor = views[-1].operands[0] if views else read.source
    index = producer.outputs.index(tensor)  # pyright: ignore[reportArgumentType]
    clauses = producer.yield_op.clauses
    wide = clauses[index].value.owner
    assert isinstance(wide, arith.ExtFOp)
    changed = [Clause("none", wide.input, c.subscripts) if k == index else c for k, c in enumerate(clauses)]
    Rewriter.replace_op(producer.yield_op, YieldOp(changed))
    # Yields that earlier passes replaced may still use it.
    if all(use.operation.parent is None for use in wide.result.uses):
        wide.detach()
        wide.erase(safe_erase=False)
    for value in (tensor, *(view.results[0] for view in reversed(views))):
        Rewriter.replace_value_with_new_type(value, tensor_of(bf16, dims_of(value.type)))
    narrow = ReadOp(read.source, read.subscripts)
    widened = arith.ExtFOp(narrow.result, read.result.type)
    nest.block.insert_ops_before([narrow, widened], read)
    read.result.replace_all_uses_with(widened.result)
    read.detach()
    read.erase()
