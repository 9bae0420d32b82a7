"""ONNX nodes for exact sums, products and powers of integers in ONNX Runtime.

ONNX Runtime reduces i32 and i64 in f64: it rounds above 2**53 and saturates. Its Add, Mul, Div and Cast of integers are
exact and wrap. So an element is cut into digits of 16 bits, `x = d0 + 2**16 d1 + ...`, each with the sign of `x`; ORT
adds the digits of fewer than 2**37 elements exactly in f64; and wrapping products join the sums. Products and powers
are loops of multiplications.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import onnx

I32, I64, BOOL = onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
U32, U64 = onnx.TensorProto.UINT32, onnx.TensorProto.UINT64
DIGIT = 1 << 16
HALF = 1 << 32
PREFIX = "igniter.exact"
"""The prefix of the names of nodes made here; nodes with it are not replaced again."""


class Builder:
    """A list of nodes under construction; each method returns the name of the result."""

    def __init__(self, fresh: Callable[[str], str], opset: int):
        self.nodes: list[onnx.NodeProto] = []
        self.fresh = fresh
        self.opset = opset

    def op(self, kind: str, inputs: Sequence[str], result: str | None = None, **attributes: Any) -> str:
        """Appends a node of the default domain."""
        made = self.fresh(kind.lower()) if result is None else result
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), [made], f"{PREFIX}.{made}", **attributes))
        return made

    def const(self, values: int | Sequence[int], code: int = I64) -> str:
        """Appends a constant: a scalar, or a list."""
        one = isinstance(values, int)
        tensor = onnx.helper.make_tensor("", code, [] if one else [len(values)], [values] if one else list(values))
        return self.op("Constant", [], value=tensor)

    def cast(self, x: str, code: int, result: str | None = None) -> str:
        return self.op("Cast", [x], result, to=code)

    def times(self, x: str, number: int, code: int = I64) -> str:
        return self.op("Mul", [x, self.const(number, code)])

    def divided(self, x: str, number: int, code: int = I64) -> tuple[str, str]:
        """Returns the quotient, rounded towards zero, and the remainder, which has the sign of `x`."""
        quotient = self.op("Div", [x, self.const(number, code)])
        return quotient, self.op("Sub", [x, self.times(quotient, number, code)])

    def floored(self, x: str, divisor: str) -> tuple[str, str]:
        """Returns the quotient rounded down, and the remainder in 0 .. divisor - 1."""
        quotient = self.op("Div", [x, divisor])
        rest = self.op("Sub", [x, self.op("Mul", [quotient, divisor])])
        below = self.cast(self.op("Less", [rest, self.const(0)]), I64)
        return self.op("Sub", [quotient, below]), self.op("Add", [rest, self.op("Mul", [below, divisor])])

    def digits(self, x: str, code: int) -> list[str]:
        """Returns the digits of an integer as i64, least first; the last one holds the rest."""
        wide = code in (I64, U64)
        if not wide:
            x, code = self.cast(x, I64), I64
        found: list[str] = []
        for _ in range(3 if wide else 1):
            x, digit = self.divided(x, DIGIT, code)
            found.append(digit)
        found.append(x)
        return found if code == I64 else [self.cast(d, I64) for d in found]

    def joined(self, terms: Sequence[tuple[int, str]]) -> str:
        """Returns the wrapping sum of terms, each times a power of 2**16."""
        whole = [x if power == 0 else self.times(x, DIGIT**power) for power, x in terms]
        total = whole[0]
        for x in whole[1:]:
            total = self.op("Add", [total, x])
        return total


def copied(node: onnx.NodeProto, kind: str, data: Sequence[str], result: str) -> onnx.NodeProto:
    """Returns `node` as an op of another kind with the same axes, on other data."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.op_type, made.name = kind, f"{PREFIX}.{result}"
    made.input[: len(data)] = data
    del made.output[:]
    made.output.append(result)
    return made


def _sum(b: Builder, node: onnx.NodeProto, x: str) -> str:
    made = b.fresh("sum")
    b.nodes.append(copied(node, "ReduceSum", [x], made))
    return made


def _finish(b: Builder, x: str, code: int, result: str) -> None:
    """Converts `x`, an i64, to the result: its low bits, in the result's type."""
    if code == I64:
        b.op("Identity", [x], result)
    else:
        b.cast(x, code, result)


def add_sum(b: Builder, node: onnx.NodeProto, code: int) -> None:
    """Appends ReduceSum, ReduceL1 or ReduceSumSquare."""
    x = node.input[0]
    if node.op_type == "ReduceL1":
        x = b.op("Abs", [x])
    elif node.op_type == "ReduceSumSquare":
        x = b.op("Mul", [x, x])
    sums = [(k, _sum(b, node, d)) for k, d in enumerate(b.digits(x, code))]
    _finish(b, b.joined(sums), code, node.output[0])


def add_mean(b: Builder, node: onnx.NodeProto, code: int) -> None:
    """Appends ReduceMean: the exact sum over the count, rounded towards zero; 0 for no elements."""
    digits = b.digits(node.input[0], code)
    count = _sum(b, node, b.op("Add", [b.times(digits[0], 0), b.const(1)]))
    count = b.op("Add", [count, b.cast(b.op("Equal", [count, b.const(0)]), I64)])
    sums = [_sum(b, node, d) for d in digits]
    if code not in (I64, U64):
        _finish(b, b.op("Div", [b.joined(list(enumerate(sums))), count]), code, node.output[0])
        return
    low, high = b.joined(list(enumerate(sums[:2]))), b.joined(list(enumerate(sums[2:])))
    half = b.const(HALF)
    carry, low = b.floored(low, half)
    top = b.op("Add", [high, carry])
    first, rest = b.floored(top, count)
    second, left = b.floored(b.op("Add", [b.times(rest, HALF), low]), count)
    floor = b.op("Add", [b.times(first, HALF), second])
    negative = b.cast(b.op("Less", [top, b.const(0)]), I64)
    exact = b.cast(b.op("Equal", [left, b.const(0)]), I64)
    up = b.op("Mul", [negative, b.op("Sub", [b.const(1), exact])])
    _finish(b, b.op("Add", [floor, up]), code, node.output[0])


def add_product(b: Builder, node: onnx.NodeProto, code: int, axes: Sequence[int] | None, keepdims: bool) -> None:
    """Appends ReduceProd over known axes, or over all (`None`), as a loop of multiplications for each."""
    x, result = node.input[0], node.output[0]
    if axes is None:
        dims = b.op("Shape", [_sum(b, node, x)])
        b.op("Reshape", [_multiplied(b, b.op("Reshape", [x, b.const([-1])]), 0, code), dims], result)
        return
    for axis in axes:
        x = _multiplied(b, x, axis, code)
    if keepdims:
        b.op("Identity", [x], result)
        return
    given, kept = _axes(b, axes)
    b.op("Squeeze", [x, *given], result, **kept)


def _multiplied(b: Builder, x: str, axis: int, code: int) -> str:
    """Returns the products along an axis, kept with size 1."""
    given, kept = _axes(b, [axis])
    dims = b.op("Shape", [b.op("ReduceSum", [x, *given], keepdims=1, **kept)])
    one = b.op("ConstantOfShape", [dims], value=onnx.helper.make_tensor("", code, [1], [1]))
    length = b.op("Gather", [b.op("Shape", [x]), b.const(axis)])

    def step(inner: Builder, index: str, states: Sequence[str]) -> list[str]:
        at = inner.op("Reshape", [index, inner.const([1])])
        return [inner.op("Mul", [states[0], inner.op("Gather", [x, at], axis=axis)])]

    return _loop(b, length, [one], step, code)[0]


def _axes(b: Builder, axes: Sequence[int]) -> tuple[list[str], dict[str, Any]]:
    """Returns axes as an input, or as an attribute in old opsets."""
    return ([b.const(axes)], {}) if b.opset >= 13 else ([], {"axes": list(axes)})


def _loop(
    b: Builder,
    trips: str,
    first: Sequence[str],
    step: Callable[[Builder, str, Sequence[str]], Sequence[str]],
    code: int,
) -> list[str]:
    """Appends a Loop that computes the next states from the index and the last ones. A Scan over no elements would
    crash."""

    def info(name: str, element: int, dims: Sequence[int] | None = None) -> onnx.ValueInfoProto:
        return onnx.ValueInfoProto(name=name, type=onnx.helper.make_tensor_type_proto(element, dims))

    inner = Builder(b.fresh, b.opset)
    index, going, states = b.fresh("index"), b.fresh("going"), [b.fresh("state") for _ in first]
    after = step(inner, index, states)
    goes = inner.op("Identity", [going])
    begins = [info(index, I64, []), info(going, BOOL, []), *(info(n, code) for n in states)]
    ends = [info(goes, BOOL, []), *(info(n, code) for n in after)]
    body = onnx.helper.make_graph(inner.nodes, b.fresh("body"), begins, ends)
    made = [b.fresh("last") for _ in first]
    b.nodes.append(onnx.helper.make_node("Loop", [trips, "", *first], made, f"{PREFIX}.{made[0]}", body=body))
    return made


def add_power(b: Builder, node: onnx.NodeProto, code: int, exponent: int) -> None:
    """Appends Pow of integers by squaring, one bit of the exponent a step; `exponent` is the exponent's type.

    A negative exponent gives the quotient 1 / x**n, rounded towards zero, and 0 for x = 0.
    """
    base = node.input[0] if code == I64 else b.cast(node.input[0], I64)
    power = node.input[1] if exponent == I64 else b.cast(node.input[1], I64)
    base = b.op("Add", [base, b.times(power, 0)])
    power = b.op("Add", [power, b.times(base, 0)])
    start = b.op("Add", [b.times(power, 0), b.const(1)])

    def step(inner: Builder, index: str, states: Sequence[str]) -> list[str]:
        r, x, e = states
        half, bit = inner.divided(e, 2)
        one = inner.const(1)
        factor = inner.op("Add", [one, inner.op("Mul", [bit, inner.op("Sub", [x, one])])])
        return [inner.op("Mul", [r, factor]), inner.op("Mul", [x, x]), half]

    made = _loop(b, b.const(64), [start, base, power], step, I64)[0]
    _, odd = b.divided(power, 2)
    is_one, is_minus = (b.cast(b.op("Equal", [base, b.const(n)]), I64) for n in (1, -1))
    sign = b.op("Add", [b.const(1), b.times(odd, 2)])
    inverse = b.op("Add", [is_one, b.op("Mul", [is_minus, sign])])
    _finish(b, b.op("Where", [b.op("Less", [power, b.const(0)]), inverse, made]), code, node.output[0])


def add_einsum(b: Builder, node: onnx.NodeProto, code: int) -> None:
    """Appends Einsum of up to two operands: of every pair of digits with a contribution."""
    parts: list[list[str]] = []
    for given in node.input:
        parts.append(b.digits(given, code))
    terms: list[tuple[int, str]] = []
    for places in itertools.product(*(range(len(p)) for p in parts)):
        if sum(places) < len(parts[0]):
            made = b.fresh("einsum")
            b.nodes.append(copied(node, "Einsum", [p[k] for p, k in zip(parts, places, strict=True)], made))
            terms.append((sum(places), made))
    _finish(b, b.joined(terms), code, node.output[0])
