"""`Structure`: the iteration space, the access maps and the body of a `linalg` op.

`linalg.matmul` of m x k and k x n has the structure

    axes      d0 parallel, d1 parallel, d2 reduction
    maps      (d0, d2), (d2, d1) for the inputs, (d0, d1) for the output
    body      ^bb0(%a, %b, %out): %p = mulf %a, %b; %s = addf %out, %p; yield %s
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, traits_def, var_operand_def, var_result_def
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.sym.expr import Expr, floordiv, mod

Map = tuple[Expr, ...]
"""The subscripts of an operand, as expressions over the axes `d0`, `d1`, ..."""


@dataclass(frozen=True)
class Structure:
    """The meaning of one op: `body` runs for every point of the axes; operand k is accessed at `maps[k]`."""

    kinds: tuple[str, ...]
    """For each axis, `parallel` or `reduction`."""
    maps: tuple[Map, ...]
    """For each operand, inputs first, its subscripts."""
    body: Block
    """Takes one element of every operand, and yields one for every output."""


def axis_name(number: int) -> str:
    """Returns the name of an axis in maps."""
    return f"d{number}"


class StructuredOp(IRDLOperation, ABC):
    """The base of `linalg` ops: inputs, outputs whose initial values are operands, and a structure."""

    inputs = var_operand_def()
    outputs = var_operand_def()
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoMemoryEffect())

    @abstractmethod
    def structure(self) -> Structure:
        """Returns the structure; raises `VerifyException` for an op without one."""

    def verify_(self) -> None:
        for kind, value in [("input", v) for v in self.inputs] + [("output", v) for v in self.outputs]:
            if value.type.name.startswith("memref"):
                raise VerifyException(
                    f"'{self.name}' has {kind} of type {value.type}; linalg is read on tensors, before bufferization"
                )
        results, outputs = [r.type for r in self.res], [v.type for v in self.outputs]
        if results != outputs:
            raise VerifyException(
                f"'{self.name}' has results of types {_listed(results)}, and outputs of types {_listed(outputs)}"
            )
        self.verify_structure(self.structure())

    def verify_structure(self, found: Structure) -> None:
        """Checks the maps and the body against the operands."""
        operands = [*self.inputs, *self.outputs]
        if len(found.maps) != len(operands):
            raise VerifyException(f"'{self.name}' has {len(operands)} operands, and {len(found.maps)} indexing maps")
        for number, (value, subscripts) in enumerate(zip(operands, found.maps, strict=True)):
            if rank_of(value) != len(subscripts):
                raise VerifyException(
                    f"'{self.name}': operand {number} is {value.type}, but its map has {len(subscripts)} results"
                )
        wanted = [element_type_of(v) for v in operands]
        given = [a.type for a in found.body.args]
        if given != wanted:
            raise VerifyException(f"'{self.name}': the body takes {_listed(given)}, not {_listed(wanted)}")
        last = found.body.last_op
        made = [] if last is None else [v.type for v in last.operands]
        if made != wanted[len(self.inputs) :]:
            raise VerifyException(
                f"'{self.name}': the body yields {_listed(made)}, not {_listed(wanted[len(self.inputs) :])}"
            )


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def rank_of(value: SSAValue) -> int:
    """Returns the rank of a tensor; 0 for a scalar."""
    return len(value.type.get_shape()) if isinstance(value.type, TensorType) else 0


def element_type_of(value: SSAValue) -> Attribute:
    """Returns the element type of a tensor; of a scalar, its type."""
    kind = value.type
    return cast("TensorType[Attribute]", kind).element_type if isinstance(kind, TensorType) else kind


def maps_in(attr: Attribute | None) -> list[AffineMapAttr] | None:
    """Returns a list of affine maps; None if the attribute is something else."""
    if not isinstance(attr, ArrayAttr):
        return None
    items = cast("ArrayAttr[Attribute]", attr)
    found = [m for m in items if isinstance(m, AffineMapAttr)]
    return found if found and len(found) == len(items) else None


def map_of(attr: AffineMapAttr) -> Map:
    """Returns the results of an affine map as expressions over `d0`, `d1`, ..."""
    return tuple(expr_of(e) for e in attr.data.results)


def expr_of(e: AffineExpr, symbols: Sequence[Expr] = (), dims: Sequence[Expr] | None = None) -> Expr:
    """Returns an affine expression over `dims` (by default the axes) and `symbols`."""
    if isinstance(e, AffineConstantExpr):
        return Expr.of(e.value)
    if isinstance(e, AffineDimExpr):
        return Expr.of(axis_name(e.position)) if dims is None else dims[e.position]
    if not isinstance(e, AffineBinaryOpExpr):
        return symbols[e.position]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    left, right = expr_of(e.lhs, symbols, dims), expr_of(e.rhs, symbols, dims)
    if e.kind == AffineBinaryOpKind.Add:
        return left + right
    if e.kind == AffineBinaryOpKind.Mul:
        return left * right
    if e.kind == AffineBinaryOpKind.Mod:
        return mod(left, right)
    if e.kind == AffineBinaryOpKind.FloorDiv:
        return floordiv(left, right)
    return left.ceildiv(right)
