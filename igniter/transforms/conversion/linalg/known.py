"""`Known`: a scalar whose value is an expression over sizes and axes, and the folding of ops on them.

    %d = tensor.dim %x, %c0          expr x_d0
    %p = arith.muli %d, %c8          expr 8*x_d0
    %n = arith.cmpi slt, %d, %c0     truth -x_d0 - 1, proven negative: false
    %s = arith.select %n, %a, %p     expr 8*x_d0

An i1 is known by an expression that is >= 0 where the i1 is true. Expressions are integers without a width, so only
`index` and i64 are known this way, and constants of every width: no size comes near 2^63.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation

from igniter.dialects.onnx.lowering.scalar import int_bits
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum, mod
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges, simplify
from igniter.dialects.sym.requirements import Requirement, at_most


@dataclass(frozen=True)
class Known:
    """A scalar of known value: exactly one of `expr`, `truth` and `number` is given."""

    expr: Expr | None = None
    truth: Expr | None = None
    """Of an i1: at least 0 where it is true."""
    number: Attribute | None = None
    """A constant float."""
    equal: tuple[tuple[Expr, Expr], ...] = ()
    """The equalities that `truth` is the conjunction of, if it is one."""
    choice: tuple[Known, Known, Known] | None = None
    """The operands of the select that gave the value, if its condition is undecided."""
    needs: tuple[Requirement, ...] = ()
    """The requirements under which the value is defined."""


def constant(value: int) -> Known:
    return Known(expr=Expr.of(value))


def truth_of(value: bool) -> Known:
    return Known(truth=ZERO if value else Expr.of(-1))


def decided(known: Known, ranges: Ranges) -> bool | None:
    """Returns the value of a condition, if it is the same for all sizes and all points of the ranges."""
    assert known.truth is not None
    if proven(known.truth, ranges):
        return True
    return False if proven(-known.truth - 1, ranges) else None


def is_wide(kind: Attribute) -> bool:
    """True for the types whose values may be expressions."""
    return isinstance(kind, IndexType) or int_bits(kind) == 64


def of_constant(value: Attribute) -> Known | None:
    """Returns a constant scalar; None for another attribute."""
    if isinstance(value, FloatAttr):
        return Known(number=cast("Attribute", value))
    if not isinstance(value, IntegerAttr):
        return None
    if int_bits(cast("Attribute", value.type)) == 1:
        return truth_of(value.value.data != 0)
    return constant(value.value.data)


Fold = Callable[[Operation, Sequence[Known], Ranges], Known | None]


def fold(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    """Returns the result of an op on known scalars; None if it has no expression."""
    rule = _RULES.get(op.name)
    if rule is None:
        return None
    found = rule(op, args, ranges)
    if found is None:
        return None
    needs = found.needs or tuple(dict.fromkeys(n for a in args for n in a.needs))
    if found.expr is not None and not found.expr.is_small:
        return None
    if found.truth is not None and not found.truth.is_small:
        return None
    return replace(found, needs=needs)


def _integers(args: Sequence[Known]) -> list[Expr] | None:
    found = [a.expr for a in args if a.expr is not None]
    return found if len(found) == len(args) else None


def _fits(kind: Attribute, e: Expr) -> bool:
    """True if an integer type holds the value: any value of a wide type, a constant of another."""
    if is_wide(kind):
        return True
    if not int_bits(kind) or e.constant is None:
        return False
    half = 1 << (int_bits(kind) - 1)
    return -half <= e.constant < half


def _arithmetic(rule: Callable[[Expr, Expr, Ranges], Expr | None]) -> Fold:
    def folded(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
        exprs = _integers(args)
        if exprs is None or len(exprs) != 2:
            return _logic(op, args, ranges)
        a, b = exprs
        made = rule(a, b, ranges)
        if made is None or not _fits(op.results[0].type, made):
            return None
        return Known(expr=simplify(made, ranges))

    return folded


def _logic(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    """Folds `andi`, `ori` and `xori` of conditions."""
    truths = [a.truth for a in args if a.truth is not None]
    if len(truths) != 2:
        return None
    values = [decided(a, ranges) for a in args]
    name = op.name.partition(".")[2]
    if name in ("andi", "and"):
        for value, other in zip(values, args[::-1], strict=True):
            if value is not None:
                return other if value else truth_of(False)
        both = all(a.equal for a in args)
        return Known(truth=minimum(*truths), equal=args[0].equal + args[1].equal if both else ())
    if name in ("ori", "or"):
        for value, other in zip(values, args[::-1], strict=True):
            if value is not None:
                return truth_of(True) if value else other
        return Known(truth=maximum(*truths))
    if name in ("xori", "xor"):
        for value, other in zip(values, args[::-1], strict=True):
            if value is not None:
                return Known(truth=-(other.truth or ZERO) - 1) if value else other
    return None


def _quotient(signed: bool, rounding: str) -> Fold:
    """Returns the fold of a division; a negative or unknown sign of a truncated dividend has no expression."""

    def folded(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
        exprs = _integers(args)
        if exprs is None or not _fits(op.results[0].type, exprs[0] + exprs[1]):
            return None
        a, b = exprs
        if b.constant is not None and b.constant <= 0:
            return None
        if (rounding in ("trunc", "rem") or not signed) and not proven(a, ranges):
            return None
        if rounding == "rem":
            made = mod(a, b)
        else:
            made = -floordiv(-a, b) if rounding == "ceil" else floordiv(a, b)
        needs = () if proven(b - 1, ranges) else (at_most(1, b, "a division by zero"),)
        if made.depth <= max(a.depth, b.depth) and b.constant is None and made.symbols.isdisjoint(b.symbols):
            # The divisor cancelled out.
            needs = ()
        own = tuple(dict.fromkeys([*(n for x in args for n in x.needs), *needs]))
        return Known(expr=simplify(made, ranges), needs=own)

    return folded


_ORDER: dict[str, Callable[[Expr, Expr], Expr]] = {
    "slt": lambda a, b: b - a - 1,
    "sle": lambda a, b: b - a,
    "sgt": lambda a, b: a - b - 1,
    "sge": lambda a, b: a - b,
}


def compared(predicate: str, a: Expr, b: Expr, ranges: Ranges) -> Known | None:
    """Returns `a predicate b`."""
    if predicate == "eq":
        return Known(truth=minimum(a - b, b - a) if a != b else ZERO, equal=((a, b),))
    if predicate == "ne":
        return Known(truth=maximum(a - b - 1, b - a - 1))
    if predicate.startswith("u"):
        if not (proven(a, ranges) and proven(b, ranges)):
            return None
        predicate = f"s{predicate[1:]}"
    return Known(truth=_ORDER[predicate](a, b))


def _compare(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    exprs = _integers(args)
    if exprs is None:
        return None
    if isinstance(op, CmpiOp):
        predicate = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")[op.predicate.value.data]
    else:
        predicate = str(getattr(op.properties["pred"], "data", ""))
    a, b = exprs
    return compared(predicate, a, b, ranges)


def _select(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    condition, a, b = args
    if condition.truth is None:
        return None
    value = decided(condition, ranges)
    if value is not None:
        chosen = a if value else b
        own = tuple(dict.fromkeys((*condition.needs, *chosen.needs)))
        return replace(chosen, needs=own)
    if a.expr is None or b.expr is None:
        return None
    # 1 where the condition holds, and 0 elsewhere.
    holds = minimum(maximum(condition.truth + 1, ZERO), ONE)
    return Known(expr=b.expr + holds * (a.expr - b.expr), choice=(condition, a, b))


def _same(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    (value,) = args
    if value.expr is None or not _fits(op.results[0].type, value.expr):
        return None
    if not is_wide(op.operands[0].type) and op.name not in ("arith.extsi", "arith.index_cast", "index.casts"):
        return value if proven(value.expr, ranges) else None
    return value


def _widened(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    """Folds the extension of a condition to an integer."""
    (value,) = args
    if value.truth is None:
        return _same(op, args, ranges)
    one = -1 if op.name == "arith.extsi" else 1
    known = decided(value, ranges)
    if known is not None:
        return constant(one if known else 0)
    if not is_wide(op.results[0].type):
        return None
    return Known(expr=minimum(maximum(value.truth + 1, ZERO), ONE) * one, choice=(value, constant(one), constant(0)))


def _bits(op: Operation, args: Sequence[Known], ranges: Ranges) -> Known | None:
    """Folds `andi`, `ori`, `xori` and shifts of constants, and of conditions."""
    exprs = _integers(args)
    if exprs is None:
        return _logic(op, args, ranges)
    a, b = exprs
    name = op.name.partition(".")[2]
    if a.constant is None or b.constant is None:
        shifts = name in ("shli", "shl") and b.constant is not None and 0 <= b.constant < 32
        return Known(expr=a * (1 << (b.constant or 0))) if shifts and is_wide(op.results[0].type) else None
    rule = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}.get(name.rstrip("i"))
    made = None if rule is None else Expr.of(rule(a.constant, b.constant))
    return Known(expr=made) if made is not None and _fits(op.results[0].type, made) else None


def _unsigned(rule: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr, Ranges], Expr | None]:
    return lambda a, b, ranges: rule(a, b) if proven(a, ranges) and proven(b, ranges) else None


_RULES: dict[str, Fold] = {
    **{name: _arithmetic(lambda a, b, _: a + b) for name in ("arith.addi", "index.add")},
    **{name: _arithmetic(lambda a, b, _: a - b) for name in ("arith.subi", "index.sub")},
    **{name: _arithmetic(lambda a, b, _: a * b) for name in ("arith.muli", "index.mul")},
    **{name: _arithmetic(lambda a, b, _: minimum(a, b)) for name in ("arith.minsi", "index.mins")},
    **{name: _arithmetic(lambda a, b, _: maximum(a, b)) for name in ("arith.maxsi", "index.maxs")},
    **{name: _arithmetic(_unsigned(minimum)) for name in ("arith.minui", "index.minu")},
    **{name: _arithmetic(_unsigned(maximum)) for name in ("arith.maxui", "index.maxu")},
    **{name: _quotient(True, "trunc") for name in ("arith.divsi", "index.divs")},
    **{name: _quotient(False, "floor") for name in ("arith.divui", "index.divu")},
    **{name: _quotient(True, "floor") for name in ("arith.floordivsi", "index.floordivs")},
    **{name: _quotient(True, "ceil") for name in ("arith.ceildivsi", "index.ceildivs")},
    **{name: _quotient(False, "ceil") for name in ("arith.ceildivui", "index.ceildivu")},
    **{name: _quotient(True, "rem") for name in ("arith.remsi", "index.rems")},
    **{name: _quotient(False, "rem") for name in ("arith.remui", "index.remu")},
    **dict.fromkeys(("arith.cmpi", "index.cmp"), _compare),
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori", "arith.shli"), _bits),
    **dict.fromkeys(("index.and", "index.or", "index.xor", "index.shl"), _bits),
    **dict.fromkeys(("arith.index_cast", "arith.index_castui", "index.casts", "index.castu", "arith.trunci"), _same),
    **dict.fromkeys(("arith.extsi", "arith.extui"), _widened),
    "arith.select": _select,
}
