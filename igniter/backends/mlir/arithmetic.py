"""The ops of `arith`, `math` and `vector` on scalars and vectors as text, with the semantics of the CPU backend.

MLIR leaves some results open that Igniter defines (`igniter.backends.cpu.arithmetic`). They are written out, unless the
divisor or the distance of a shift is a constant that needs nothing:

| op | written as |
| --- | --- |
| a float op of 16 bits | the op in f32, between `extf` and `truncf` |
| `divsi`, `remsi` and their kin | a zero divisor is replaced first; the quotient is 0, the remainder the dividend |
| a shift by the width or more | 0, of `shrsi` the sign |
| `fptosi`, `fptoui` out of range | the least integer, all ones |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.backends.mlir.kinds import I1, Kind, broadcast, constant, kind_of, literal
from igniter.backends.mlir.text import Writer
from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.loop.bodies import as_number
from igniter.dialects.loop.combiners import combining_op

DEFINED = frozenset(
    f"arith.{name}"
    for name in (
        *("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"),
        *("shli", "shrui", "shrsi", "fptosi", "fptoui"),
    )
)
"""The ops with results that MLIR leaves open, unless a constant operand excludes them."""

CONVERSIONS = frozenset(("extsi", "extui", "trunci", "bitcast"))
"""The conversions of `arith` that both define alike."""


@dataclass(frozen=True)
class Operand:
    """A value and its type."""

    name: str
    kind: Kind


def write_op(writer: Writer, op: Operation, args: Sequence[Operand], lanes: int = 0) -> Operand:
    """Writes one op with one result. With `lanes`, a scalar op is applied to each lane of vectors."""
    made = kind_of(op.results[0].type)
    made = made.with_lanes(lanes or made.lanes)
    if isinstance(op, arith.ConstantOp):
        return Operand(_constant(writer, op, made), made)
    if lanes:
        args = [Operand(broadcast(writer, a.name, a.kind, lanes), a.kind.with_lanes(lanes)) for a in args]
    dialect, _, name = op.name.partition(".")
    rule = _RULES.get(op.name)
    if rule is not None:
        return Operand(rule(writer, op, args, made), made)
    if dialect == "arith" and name in CONVERSIONS:
        return Operand(_converted(writer, op.name, args[0], made), made)
    if dialect in ("arith", "math") and len(op.results) == 1 and not op.regions:
        return Operand(_plain(writer, op.name, args), made)
    raise writer.refuse(f"'{op.name}'", "it is not an op of arith, math or vector that this level has")


def write_combined(writer: Writer, combiner: Combiner, element: Attribute, a: str, b: str, lanes: int) -> str:
    """Writes the combination of two values of elements of a type, or of vectors of them."""
    kind = kind_of(element).with_lanes(lanes)
    return _plain(writer, combining_op(combiner, element).name, [Operand(a, kind), Operand(b, kind)])


def _let(writer: Writer, op: str, operands: Sequence[str], kind: Kind) -> str:
    return writer.let("v", f"{op} {', '.join(operands)} : {kind}")


def _plain(writer: Writer, op: str, args: Sequence[Operand]) -> str:
    """Writes an op whose operands and result have one type."""
    return _narrow(writer, args, lambda names, kind: _let(writer, op, names, kind))


def _narrow(writer: Writer, args: Sequence[Operand], compute: Callable[[list[str], Kind], str]) -> str:
    """Computes floats of 16 bits in f32, and rounds."""
    kind = args[0].kind
    if not kind.is_narrow:
        return compute([a.name for a in args], kind)
    wide = kind.of("f32")
    result = compute([_widened(writer, a).name for a in args], wide)
    return _converted(writer, "arith.truncf", Operand(result, wide), kind)


def _widened(writer: Writer, value: Operand) -> Operand:
    if not value.kind.is_narrow:
        return value
    wide = value.kind.of("f32")
    return Operand(_converted(writer, "arith.extf", value, wide), wide)


def _converted(writer: Writer, op: str, value: Operand, to: Kind) -> str:
    if value.kind == to:
        return value.name
    return writer.let("v", f"{op} {value.name} : {value.kind} to {to}")


def _constant(writer: Writer, op: arith.ConstantOp, kind: Kind) -> str:
    value: Attribute = op.value
    number = as_number(value)
    if number is not None:
        return constant(writer, kind, number.value.data)
    if isinstance(value, DenseIntOrFPElementsAttr):
        numbers = cast("list[Any]", list(value.get_values()))
        if len(set(map(repr, numbers))) == 1:
            return constant(writer, kind, numbers[0])
        listed = ", ".join(literal(kind, n) for n in numbers)
        return writer.let("c", f"arith.constant dense<[{listed}]> : {kind}")
    raise writer.refuse("'arith.constant'", "its value is not in the IR")


# -- comparisons, selections ------------------------------------------------------------------------------------------


def _compare_int(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    assert isinstance(op, arith.CmpiOp)
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    return _let(writer, f"arith.cmpi {predicate},", [a.name for a in args], args[0].kind)


def _compare_float(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    assert isinstance(op, arith.CmpfOp)
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    wide = [_widened(writer, a) for a in args]
    return _let(writer, f"arith.cmpf {predicate},", [a.name for a in wide], wide[0].kind)


def _test(writer: Writer, predicate: str, a: str, b: str, kind: Kind) -> str:
    return _let(writer, f"arith.{'cmpf' if kind.is_float else 'cmpi'} {predicate},", [a, b], kind)


def _select(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    return select(writer, args[0], args[1].name, args[2].name, made)


def select(writer: Writer, condition: Operand, a: str, b: str, kind: Kind) -> str:
    """Writes a selection; one `i1` selects whole vectors."""
    first = f"{condition.kind}, " if condition.kind.lanes else ""
    return writer.let("v", f"arith.select {condition.name}, {a}, {b} : {first}{kind}")


# -- integers ---------------------------------------------------------------------------------------------------------


def _known(value: SSAValue) -> int | None:
    """Returns the number of an integer constant, or None."""
    constant = as_number(value.owner.value) if isinstance(value.owner, arith.ConstantOp) else None
    return int(constant.value.data) if isinstance(constant, IntegerAttr) else None


def _divide(op: str, quotient: bool) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    def rule(writer: Writer, of: Operation, args: Sequence[Operand], kind: Kind) -> str:
        return _safe_divide(writer, op, args[0].name, args[1].name, kind, quotient, _known(of.operands[1]))

    return rule


def _safe_divide(writer: Writer, op: str, x: str, y: str, kind: Kind, quotient: bool, known: int | None) -> str:
    if known not in (None, 0, -1):
        return _let(writer, op, [x, y], kind)
    signed = op.endswith("si")
    zero, one = constant(writer, kind, 0), constant(writer, kind, 1)
    none = _test(writer, "eq", y, zero, kind)
    bad = none
    if signed:
        least = constant(writer, kind, -(1 << (kind.bits - 1)))
        minus = _test(writer, "eq", y, constant(writer, kind, -1), kind)
        overflow = _let(writer, "arith.andi", [minus, _test(writer, "eq", x, least, kind)], kind.of("i1"))
        bad = _let(writer, "arith.ori", [none, overflow], kind.of("i1"))
    # x / 1 is right for the least integer by -1, and so is x % 1.
    safe = select(writer, Operand(bad, kind.of("i1")), one, y, kind)
    result = _let(writer, op, [x, safe], kind)
    return select(writer, Operand(none, kind.of("i1")), zero if quotient else x, result, kind)


def _round_divide(up: bool, signed: bool) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    """Division rounded towards minus (`up`: plus) infinity."""

    def rule(writer: Writer, of: Operation, args: Sequence[Operand], kind: Kind) -> str:
        x, y = (a.name for a in args)
        suffix = "si" if signed else "ui"
        known = _known(of.operands[1])
        quotient = _safe_divide(writer, f"arith.div{suffix}", x, y, kind, True, known)
        left = _safe_divide(writer, f"arith.rem{suffix}", x, y, kind, False, known)
        zero, bit = constant(writer, kind, 0), kind.of("i1")
        adjust = _let(
            writer, "arith.andi", [_test(writer, "ne", left, zero, kind), _test(writer, "ne", y, zero, kind)], bit
        )
        if signed:
            signs = _test(writer, "sge" if up else "slt", _let(writer, "arith.xori", [x, y], kind), zero, kind)
            adjust = _let(writer, "arith.andi", [adjust, signs], bit)
        change = _converted(writer, "arith.extui" if up else "arith.extsi", Operand(adjust, bit), kind)
        return _let(writer, "arith.addi", [quotient, change], kind)

    return rule


def _shift(op: str) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    def rule(writer: Writer, of: Operation, args: Sequence[Operand], kind: Kind) -> str:
        x, y = (a.name for a in args)
        known = _known(of.operands[1])
        if known is not None and 0 <= known < kind.bits:
            return _let(writer, op, [x, y], kind)
        limit = constant(writer, kind, kind.bits - 1)
        shifted = _let(writer, op, [x, _let(writer, "arith.minui", [y, limit], kind)], kind)
        if op == "arith.shrsi":
            return shifted
        past = Operand(_test(writer, "ugt", y, limit, kind), kind.of("i1"))
        return select(writer, past, constant(writer, kind, 0), shifted, kind)

    return rule


def _dot_bytes(writer: Writer, op: Operation, args: Sequence[Operand], kind: Kind) -> str:
    *factors, total = (a.name for a in args)
    top = constant(writer, kind, 24)
    for unsigned, signed in zip(factors[::2], factors[1::2], strict=True):
        for place in range(4):
            low, high = unsigned, signed
            if place < 3:
                amount = constant(writer, kind, 24 - 8 * place)
                low, high = (_let(writer, "arith.shli", [v, amount], kind) for v in (unsigned, signed))
            a = _let(writer, "arith.shrui", [low, top], kind)
            b = _let(writer, "arith.shrsi", [high, top], kind)
            total = _let(writer, "arith.addi", [total, _let(writer, "arith.muli", [a, b], kind)], kind)
    return total


# -- conversions ------------------------------------------------------------------------------------------------------


def _float_to_int(op: str) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    signed = op == "arith.fptosi"

    def rule(writer: Writer, of: Operation, args: Sequence[Operand], made: Kind) -> str:
        x = _widened(writer, args[0])
        bits, truth = (made.bits - 1 if signed else made.bits), made.of("i1")
        # Values between -2^bits - 1 and -2^bits give the same result as values out of range.
        least = constant(writer, x.kind, -(2.0**bits) if signed else -1.0)
        above = _test(writer, "oge" if signed else "ogt", x.name, least, x.kind)
        below = _test(writer, "olt", x.name, constant(writer, x.kind, 2.0**bits), x.kind)
        fits = Operand(_let(writer, "arith.andi", [above, below], truth), truth)
        failed = constant(writer, made, -(1 << bits) if signed else -1)
        return select(writer, fits, _converted(writer, op, x, made), failed, made)

    return rule


def _int_to_float(op: str) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    def rule(writer: Writer, of: Operation, args: Sequence[Operand], made: Kind) -> str:
        wide = made.of("f32") if made.is_narrow else made
        value = Operand(_converted(writer, op, args[0], wide), wide)
        return _converted(writer, "arith.truncf", value, made)

    return rule


def _through_single(op: str) -> Callable[[Writer, Operation, Sequence[Operand], Kind], str]:
    """A conversion between f64 and a float of 16 bits has two steps: MLIR expands no others of bf16."""

    def rule(writer: Writer, of: Operation, args: Sequence[Operand], made: Kind) -> str:
        value = args[0]
        if {value.kind.bits, made.bits} == {16, 64}:
            wide = made.of("f32")
            value = Operand(_converted(writer, op, value, wide), wide)
        return _converted(writer, op, value, made)

    return rule


def _fma(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    return _plain(writer, "math.fma", args)


def _broadcast(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    return broadcast(writer, args[0].name, args[0].kind, made.lanes)


def _vector_bitcast(writer: Writer, op: Operation, args: Sequence[Operand], made: Kind) -> str:
    return _converted(writer, "vector.bitcast", args[0], made)


def bits(writer: Writer, value: Operand) -> str:
    """Writes a boolean as a byte."""
    return _converted(writer, "arith.extui", value, value.kind.of("i8"))


def truth(writer: Writer, value: Operand) -> str:
    """Writes a byte as a boolean."""
    return _test(writer, "ne", value.name, constant(writer, value.kind, 0), value.kind)


_RULES: dict[str, Callable[[Writer, Operation, Sequence[Operand], Kind], str]] = {
    "arith.cmpi": _compare_int,
    "arith.cmpf": _compare_float,
    "arith.select": _select,
    "arith.divsi": _divide("arith.divsi", True),
    "arith.divui": _divide("arith.divui", True),
    "arith.remsi": _divide("arith.remsi", False),
    "arith.remui": _divide("arith.remui", False),
    "arith.floordivsi": _round_divide(up=False, signed=True),
    "arith.ceildivsi": _round_divide(up=True, signed=True),
    "arith.ceildivui": _round_divide(up=True, signed=False),
    "arith.shli": _shift("arith.shli"),
    "arith.shrui": _shift("arith.shrui"),
    "arith.shrsi": _shift("arith.shrsi"),
    "arith.fptosi": _float_to_int("arith.fptosi"),
    "arith.fptoui": _float_to_int("arith.fptoui"),
    "arith.sitofp": _int_to_float("arith.sitofp"),
    "arith.uitofp": _int_to_float("arith.uitofp"),
    "arith.extf": _through_single("arith.extf"),
    "arith.truncf": _through_single("arith.truncf"),
    "loop.dot_bytes": _dot_bytes,
    "math.fma": _fma,
    "vector.fma": _fma,
    "vector.broadcast": _broadcast,
    "vector.bitcast": _vector_bitcast,
}

__all__ = ["I1", "Operand", "bits", "select", "truth", "write_combined", "write_op"]
