"""The ops of bodies as text: `arith` and `math` on scalars, `loop.index`, `loop.dot_bytes`, and the combiners.

Results that MLIR leaves open are written out as on the scheduled level (`arithmetic.py`)."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.backends.mlir.arithmetic import DEFINED, Operand, write_op
from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.kinds import kind_of
from igniter.backends.mlir.text import Writer, number_text, type_text
from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.loop.bodies import DotBytesOp, IndexOp
from igniter.dialects.loop.combiners import combining_op

Values = MutableMapping[SSAValue, str]
"""The names of values."""

CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
"""The predicates of comparisons, by their numbers."""

KNOWN_ATTRIBUTES = frozenset(("fastmath", "overflowFlags", "predicate", "value", "roundingmode"))


def write_scalar(writer: Writer, op: Operation, values: Values, names: Mapping[str, str]) -> None:
    """Writes one op of a body; `names` are the axes and symbols of `loop.index`."""
    if isinstance(op, IndexOp):
        at = Expressions(writer, names).value(op.value)
        values[op.result] = writer.let("i", f"arith.index_cast {at} : index to i64")
    elif isinstance(op, DotBytesOp):
        values[op.result] = _dot_bytes(writer, [values[v] for v in op.operands])
    elif op.name in DEFINED:
        operands = [Operand(values[v], kind_of(v.type)) for v in op.operands]
        values[op.results[0]] = write_op(writer, op, operands).name
    else:
        values[op.results[0]] = writer.let("v", _plain(writer, op, values))


def _plain(writer: Writer, op: Operation, values: Mapping[SSAValue, str]) -> str:
    """Returns an op of `arith` or `math` with one result."""
    if isinstance(op, arith.ConstantOp):
        return f"arith.constant {number_text(op.value)}"
    dialect = op.name.partition(".")[0]
    if dialect not in ("arith", "math") or len(op.results) != 1 or op.regions:
        raise writer.refuse(f"'{op.name}'", "it is not an op of arith or math on scalars")
    unknown = sorted(op.properties.keys() - KNOWN_ATTRIBUTES)
    if unknown:
        raise writer.refuse(f"'{op.name}'", f"its attribute '{unknown[0]}' is unknown here")
    operands = ", ".join(values[v] for v in op.operands)
    have, made = type_text(op.operands[0].type), type_text(op.results[0].type)
    flags = _flags(op)
    if op.name in ("arith.cmpi", "arith.cmpf"):
        return f"{op.name} {_predicate(op)}, {operands}{flags} : {have}"
    if op.name == "arith.select":
        return f"{op.name} {operands} : {made}"
    if have != made:
        return f"{op.name} {operands}{flags} : {have} to {made}"
    types = list(dict.fromkeys(type_text(v.type) for v in op.operands))
    return f"{op.name} {operands}{flags} : {', '.join(types)}"


def _predicate(op: Operation) -> str:
    number = op.properties["predicate"]
    assert isinstance(number, IntegerAttr)
    return (CMPI if op.name == "arith.cmpi" else CMPF)[number.value.data]


def _flags(op: Operation) -> str:
    """Returns the flags of an op: ` fastmath<contract>`."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, arith.FastMathFlagsAttr) or not flags.data:
        return ""
    return f" fastmath<{','.join(sorted(f.value for f in flags.data))}>"


def write_combined(writer: Writer, combiner: Combiner, element: Attribute, total: str, value: str) -> str:
    """Writes the combination of two values of elements of a type; returns its name."""
    return writer.let("sum", f"{combining_op(combiner, element).name} {total}, {value} : {type_text(element)}")


def _dot_bytes(writer: Writer, operands: Sequence[str]) -> str:
    """Writes the sum of products of bytes, each shifted to the top of an i32 and back with its sign."""
    *factors, total = operands
    top = writer.let("c", "arith.constant 24 : i32")
    for unsigned, signed in zip(factors[::2], factors[1::2], strict=True):
        for place in range(4):
            left, right = (_at_top(writer, v, 24 - 8 * place) for v in (unsigned, signed))
            a = writer.let("a", f"arith.shrui {left}, {top} : i32")
            b = writer.let("b", f"arith.shrsi {right}, {top} : i32")
            product = writer.let("p", f"arith.muli {a}, {b} : i32")
            total = writer.let("sum", f"arith.addi {total}, {product} : i32")
    return total


def _at_top(writer: Writer, value: str, shift: int) -> str:
    if not shift:
        return value
    amount = writer.let("c", f"arith.constant {shift} : i32")
    return writer.let("byte", f"arith.shli {value}, {amount} : i32")
