"""The bodies of named `linalg` ops, as blocks of `arith` and `math`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, Signedness
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.arith import SelectOp

Types: TypeAlias = Sequence[Attribute]


def _bits(kind: Attribute) -> int:
    """Returns the width of an integer type; 0 for any other type."""
    return cast("IntegerType[int, Signedness]", kind).width.data if isinstance(kind, IntegerType) else 0


class Body:
    """A block under construction. Its methods append an op and return its result."""

    def __init__(self, types: Types, unsigned: bool = False):
        self.block = Block(arg_types=types)
        self.unsigned = unsigned

    @property
    def args(self) -> Sequence[SSAValue]:
        return self.block.args

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def end(self, *values: SSAValue) -> Block:
        """Ends the block with the yielded values, converted to the types of the outputs."""
        outputs = [a.type for a in self.args[len(self.args) - len(values) :]]
        yielded = [self.cast(v, t) for v, t in zip(values, outputs, strict=True)]
        self.block.add_op(YieldOp(*yielded))
        return self.block

    def cast(self, value: SSAValue, to: Attribute) -> SSAValue:
        """Converts a value as `linalg` does (`cast_signed`, or `cast_unsigned`)."""
        have = value.type
        if have == to:
            return value
        bits, kind = (_bits(have), _bits(to)), cast("IntegerType[int, Signedness]", to)
        if isinstance(have, AnyFloat) and isinstance(to, AnyFloat):
            return self.add((arith.ExtFOp if to.bitwidth > have.bitwidth else arith.TruncFOp)(value, to))
        if bits[0] and isinstance(to, AnyFloat):
            return self.add((arith.UIToFPOp if self.unsigned else arith.SIToFPOp)(value, to))
        if isinstance(have, AnyFloat) and bits[1]:
            return self.add((arith.FPToUIOp if self.unsigned else arith.FPToSIOp)(value, kind))
        if all(bits):
            if bits[1] < bits[0]:
                return self.add(arith.TruncIOp(value, kind))
            return self.add((arith.ExtUIOp if self.unsigned else arith.ExtSIOp)(value, kind))
        raise VerifyException(f"there is no conversion of {have} to {to}")

    def constant(self, value: float, kind: Attribute) -> SSAValue:
        """Returns a constant of a type."""
        if isinstance(kind, AnyFloat):
            return self.add(arith.ConstantOp(FloatAttr(value, kind)))
        if _bits(kind):
            return self.add(arith.ConstantOp(IntegerAttr(int(value), cast("IntegerType[int, Signedness]", kind))))
        raise VerifyException(f"there is no constant of type {kind}")

    def binary(self, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Returns `add`, `sub`, `mul`, `div`, `max` or `min` of two values of one type; unsigned where the op is."""
        kind = a.type
        if _bits(kind) == 1:
            op = (_UNSIGNED if self.unsigned or name.endswith("_unsigned") else _SIGNED).get(name)
            op = {"add": arith.OrIOp, "mul": arith.AndIOp}.get(name, op)
        elif _bits(kind):
            op = _UNSIGNED.get(name) if self.unsigned or name.endswith("_unsigned") else _SIGNED.get(name)
        else:
            op = _FLOAT.get(name)
        if op is None:
            raise VerifyException(f"'{name}' is not defined for elements of type {kind}")
        return self.add(op(a, b))

    def unary(self, name: str, x: SSAValue) -> SSAValue:
        """Returns a function of one value."""
        kind = x.type
        if name == "abs" and _bits(kind):
            return self.add(math.AbsIOp(x))
        if name == "square":
            return self.binary("mul", x, x)
        if not isinstance(kind, AnyFloat):
            raise VerifyException(f"'{name}' is not defined for elements of type {kind}")
        if name == "reciprocal":
            return self.binary("div", self.constant(1.0, kind), x)
        if name not in _UNARY:
            raise VerifyException(f"unknown function '{name}'; known: {', '.join(sorted(_UNARY))}")
        return self.add(_UNARY[name](x))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(SelectOp(condition, a, b))


Op: TypeAlias = Callable[[SSAValue, SSAValue], Operation]
_FLOAT: dict[str, Op] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
    "powf": math.PowFOp,
}
_SIGNED: dict[str, Op] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "div": arith.DivSIOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
}
_UNSIGNED: dict[str, Op] = {
    **_SIGNED,
    "div": arith.DivUIOp,
    "max": arith.MaxUIOp,
    "min": arith.MinUIOp,
    "div_unsigned": arith.DivUIOp,
    "max_unsigned": arith.MaxUIOp,
    "min_unsigned": arith.MinUIOp,
}
_UNARY: dict[str, Callable[[SSAValue], Operation]] = {
    "exp": math.ExpOp,
    "log": math.LogOp,
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "floor": math.FloorOp,
    "negf": arith.NegfOp,
    "round": math.RoundOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "tanh": math.TanhOp,
    "erf": math.ErfOp,
}


def product_sum(types: Types, unsigned: bool) -> Block:
    """Returns `out + a * b`, in the type of the output."""
    body = Body(types, unsigned)
    a, b, out = body.args
    factors = [body.cast(v, out.type) for v in (a, b)]
    return body.end(body.binary("add", out, body.binary("mul", *factors)))


def quantized_sum(types: Types, unsigned: bool) -> Block:
    """Returns `out + (a - zero of a) * (b - zero of b)`; the zero points are scalars."""
    body = Body(types, unsigned)
    a, b, zero_a, zero_b, out = (*body.args,)
    left, right = (
        body.binary("sub", body.cast(v, out.type), body.cast(z, out.type)) for v, z in ((a, zero_a), (b, zero_b))
    )
    return body.end(body.binary("add", out, body.binary("mul", left, right)))


def fold_of(name: str) -> Callable[[Types, bool], Block]:
    """Returns the body of a pooling: `out` combined with the element; the window is only a shape."""

    def rule(types: Types, unsigned: bool) -> Block:
        body = Body(types, unsigned or name.endswith("_unsigned"))
        x, _, out = body.args
        return body.end(body.binary(name, out, body.cast(x, out.type)))

    return rule


def copied(types: Types, unsigned: bool) -> Block:
    """Returns the input, converted."""
    body = Body(types, unsigned)
    return body.end(body.args[0])


def unary_of(name: str) -> Callable[[Types, bool], Block]:
    """Returns the body of an elementwise function."""

    def rule(types: Types, unsigned: bool) -> Block:
        body = Body(types, unsigned)
        return body.end(body.unary(name, body.cast(body.args[0], body.args[-1].type)))

    return rule


def binary_of(name: str) -> Callable[[Types, bool], Block]:
    """Returns the body of an elementwise function of two values."""

    def rule(types: Types, unsigned: bool) -> Block:
        body = Body(types, unsigned)
        a, b, out = body.args
        return body.end(body.binary(name, body.cast(a, out.type), body.cast(b, out.type)))

    return rule


def selected(types: Types, unsigned: bool) -> Block:
    """Returns the second or the third input, by the first."""
    body = Body(types, unsigned)
    condition, a, b, _ = body.args
    return body.end(body.select(condition, a, b))
