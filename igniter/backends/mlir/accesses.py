"""Reads of single elements, with indirect subscripts and guards: `tensor.extract`, inside of `scf.if` if guarded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.scalars import Values
from igniter.backends.mlir.text import Writer, tensor_text, type_text, zero_text
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.loop.bodies import AccessOp


def with_indirect(
    writer: Writer, indices: Sequence[SSAValue], values: Mapping[SSAValue, str], names: Mapping[str, str]
) -> dict[str, str]:
    """Returns `names` with the indirect operands of an access: `_0`, `_1`, ..."""
    found = dict(names)
    for k, index in enumerate(indices):
        found[f"{INDIRECT_PREFIX}{k}"] = writer.let("at", f"arith.index_cast {values[index]} : i64 to index")
    return found


def write_extract(
    writer: Writer,
    op: AccessOp,
    source: str,
    otherwise: SSAValue | None,
    values: Values,
    names: Mapping[str, str],
) -> str:
    """Writes a read of one element of the tensor `source`; returns the name of the value."""
    local = Expressions(writer, with_indirect(writer, op.indices, values, names))
    if not op.guards:
        return _extract(writer, op, source, local)
    scalar = op.results[0].type
    kind = type_text(scalar)
    inside = local.holds(op.guards)
    name = writer.let("v", f"scf.if {inside} -> ({kind}) {{")
    with writer.deeper():
        writer.line(f"scf.yield {_extract(writer, op, source, local)} : {kind}")
    writer.line("} else {")
    with writer.deeper():
        other = (
            values[otherwise] if otherwise is not None else writer.let("zero", f"arith.constant {zero_text(scalar)}")
        )
        writer.line(f"scf.yield {other} : {kind}")
    writer.line("}")
    return name


def _extract(writer: Writer, op: AccessOp, source: str, local: Expressions) -> str:
    kind = tensor_text(op.accessed.type)
    return writer.let("v", f"tensor.extract {source}[{local.values(op.subscripts)}] : {kind}")
