"""Hostile files that are small and stand for something large: values, dims and graphs that double at every node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from tests.hostile.base import FLOAT, info, model_of
from tests.hostile.writing import Made, Write, of_model, unary

LEVELS = 60


def growth() -> Made:
    for op, make in DOUBLING.items():
        if op != "ConstantOfShape":
            # Its sizes are known to ONNX Runtime alone, and a run of it takes memory up to the limit.
            yield f"a constant doubled {LEVELS} times by {op}", _constant(make)
        yield f"a value doubled {LEVELS} times by {op}", _computed(make)
    yield "a constant doubled 24 times by Concat", _constant(_concat, 24)
    yield "a constant squared 6 times by an outer product", _outer(6)
    yield "a dim squared 60 times", _squares(60)
    yield "a dim one more and squared 60 times", _squares(60, 1)
    yield "sizes computed 200 times from two dims", _sizes(200)
    yield "a sum of itself 200 times", _diamonds(200)
    yield "a maximum of quotients, 20 times", _extremes(20)
    yield "a Range of what was doubled 60 times", _range(60)


Doubling = Callable[[str, str], list[onnx.NodeProto]]


def _concat(x: str, y: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Concat", [x, x], [y], axis=0)]


def _tile(x: str, y: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Tile", [x, "two"], [y])]


def _expand(x: str, y: str) -> list[onnx.NodeProto]:
    """Expand by a new dim, then in one row again."""
    return [
        helper.make_node("Expand", [x, "column"], [f"{y}.e"]),
        helper.make_node("Reshape", [f"{y}.e", "flat"], [y]),
    ]


def _pad(x: str, y: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Shape", [x], [f"{y}.s"]),
        helper.make_node("Concat", ["zero", f"{y}.s"], [f"{y}.p"], axis=0),
        helper.make_node("Pad", [x, f"{y}.p"], [y]),
    ]


def _constant_of_shape(x: str, y: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Shape", [x], [f"{y}.s"]),
        helper.make_node("Mul", [f"{y}.s", "two"], [f"{y}.d"]),
        helper.make_node("ConstantOfShape", [f"{y}.d"], [y]),
    ]


def _resize(x: str, y: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Resize", [x, "", "scale"], [y], mode="nearest")]


DOUBLING: dict[str, Doubling] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Pad": _pad,
    "Resize": _resize,
    "Tile": _tile,
}

CONSTANTS = {
    "two": np.array([2], np.int64),
    "column": np.array([2, 1], np.int64),
    "flat": np.array([-1], np.int64),
    "zero": np.array([0], np.int64),
    "scale": np.array([2], np.float32),
    "one": np.array([1], np.int64),
}


def _used(nodes: list[onnx.NodeProto]) -> dict[str, np.ndarray]:
    read = {i for n in nodes for i in n.input}
    return {k: v for k, v in CONSTANTS.items() if k in read}


def _constant(make: Doubling, levels: int = LEVELS) -> Write:
    """A weight that is doubled, and summed into the input."""
    nodes = [n for k in range(levels) for n in make(f"v{k}", f"v{k + 1}")]
    nodes += [unary("ReduceMax", f"v{levels}", "m", keepdims=0), helper.make_node("Add", ["x", "m"], ["y"])]
    weights = {"v0": np.ones(2, np.float32), **_used(nodes)}
    return of_model(model_of(nodes, [info("x", FLOAT, ["n", 4])], [info("y", FLOAT, None)], weights))


def _computed(make: Doubling) -> Write:
    nodes = [n for k in range(LEVELS) for n in make(f"v{k}", f"v{k + 1}")]
    nodes.append(unary("ReduceMax", f"v{LEVELS}", "y", keepdims=0))
    return of_model(model_of(nodes, [info("v0", FLOAT, ["n"])], [info("y", FLOAT, None)], _used(nodes)))


def _outer(times: int) -> Write:
    """A row of numbers times itself as a column, in one row again: 2^(2^times) numbers."""
    nodes: list[onnx.NodeProto] = []
    for k in range(times):
        nodes += [
            helper.make_node("Unsqueeze", [f"v{k}", "one"], [f"c{k}"]),
            helper.make_node("Mul", [f"c{k}", f"v{k}"], [f"p{k}"]),
            helper.make_node("Reshape", [f"p{k}", "flat"], [f"v{k + 1}"]),
        ]
    nodes += [unary("ReduceMax", f"v{times}", "m", keepdims=0), helper.make_node("Add", ["x", "m"], ["y"])]
    weights = {"v0": np.ones(2, np.float32), **_used(nodes)}
    return of_model(model_of(nodes, [info("x", FLOAT, ["n", 4])], [info("y", FLOAT, None)], weights))


def _squares(times: int, more: int = 0) -> Write:
    """Sizes that are computed from a dim by squaring, and one tensor of the last of them."""
    nodes = [helper.make_node("Shape", ["x"], ["v0"])]
    for k in range(times):
        nodes.append(helper.make_node("Mul", [f"v{k}", f"v{k}"], [f"q{k}"]))
        nodes.append(helper.make_node("Add", [f"q{k}", "more"], [f"v{k + 1}"]))
    nodes += [helper.make_node("ConstantOfShape", [f"v{times}"], ["z"]), unary("ReduceSum", "z", "s", keepdims=0)]
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    weights = {"more": np.array([more], np.int64)}
    return of_model(model_of(nodes, [info("x", FLOAT, ["n"])], [info("y", FLOAT, None)], weights))


def _sizes(times: int) -> Write:
    """Fibonacci-like arithmetic on two dims: each size is a product, a quotient and a sum of the two before it."""
    nodes = [helper.make_node("Shape", ["x"], ["v0"]), helper.make_node("Shape", ["w"], ["v1"])]
    for k in range(times):
        op = ("Mul", "Add", "Div")[k % 3]
        nodes.append(helper.make_node(op, [f"v{k}", f"v{k + 1}"], [f"v{k + 2}"]))
    nodes += [helper.make_node("ConstantOfShape", [f"v{times + 1}"], ["z"]), unary("ReduceSum", "z", "s", keepdims=0)]
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    return of_model(model_of(nodes, [info("x", FLOAT, ["n"]), info("w", FLOAT, ["m"])], [info("y", FLOAT, None)]))


def _diamonds(times: int) -> Write:
    """Values that are read twice each: 2^times paths from the input to the output."""
    nodes: list[onnx.NodeProto] = []
    for k in range(times):
        nodes.append(unary("Tanh", f"v{k}", f"t{k}"))
        nodes.append(helper.make_node("Add", [f"t{k}", f"v{k}"], [f"v{k + 1}"]))
    return of_model(model_of(nodes, [info("v0", FLOAT, ["n"])], [info(f"v{times}", FLOAT, None)]))


def _extremes(times: int) -> Write:
    """Dims that are the larger of two computed ones, each read twice."""
    nodes = [helper.make_node("Shape", ["x"], ["v0"]), helper.make_node("Shape", ["w"], ["u0"])]
    for k in range(times):
        nodes.append(helper.make_node("Max", [f"v{k}", f"u{k}"], [f"v{k + 1}"]))
        nodes.append(helper.make_node("Div", [f"v{k + 1}", "two"], [f"h{k}"]))
        nodes.append(helper.make_node("Add", [f"h{k}", f"v{k}"], [f"u{k + 1}"]))
    nodes += [helper.make_node("ConstantOfShape", [f"u{times}"], ["z"]), unary("ReduceSum", "z", "s", keepdims=0)]
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    inputs = [info("x", FLOAT, ["n"]), info("w", FLOAT, ["m"])]
    return of_model(model_of(nodes, inputs, [info("y", FLOAT, None)], {"two": np.array([2], np.int64)}))


def _range(times: int) -> Write:
    nodes = [helper.make_node("Mul", [f"v{k}", "two"], [f"v{k + 1}"]) for k in range(times)]
    nodes.append(helper.make_node("Range", ["start", f"v{times}", "step"], ["r"]))
    nodes += [unary("Cast", "r", "f", to=FLOAT), unary("ReduceMax", "f", "m", keepdims=0)]
    nodes.append(helper.make_node("Add", ["x", "m"], ["y"]))
    weights = {k: np.array(v, np.int64) for k, v in (("v0", 1), ("start", 0), ("step", 1), ("two", 2))}
    return of_model(model_of(nodes, [info("x", FLOAT, ["n"])], [info("y", FLOAT, None)], weights))
