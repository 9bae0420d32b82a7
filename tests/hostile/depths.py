"""Hostile files that are deep: graphs in graphs, functions that call functions, types of types, expressions."""

from __future__ import annotations

from itertools import pairwise

import onnx
from onnx import helper

from tests.hostile.base import BOOL, FLOAT, INT64, info, model_of
from tests.hostile.writing import Made, Write, of_call, of_model, simple, unary


def nested_ifs(depth: int) -> bytes:
    """An If in an If in an If ..., written from the inside out, since protobuf's own classes do not go so deep."""

    def branch(node: onnx.NodeProto | bytes, name: str) -> bytes:
        data = node if isinstance(node, bytes) else node.SerializeToString()
        return field(1, data) + field(2, name.encode()) + field(12, info(name, FLOAT, None).SerializeToString())

    inner = branch(unary("Relu", "x", "y0"), "y0")
    for k in range(1, depth + 1):
        other = branch(unary("Abs", "x", f"e{k}"), f"e{k}")
        attributes = b"".join(
            field(5, field(1, name) + field(6, body) + b"\xa0\x01\x05")
            for name, body in ((b"then_branch", inner), (b"else_branch", other))
        )
        inner = branch(field(1, b"c") + field(2, f"y{k}".encode()) + field(4, b"If") + attributes, f"y{k}")
    values = (info("x", FLOAT, [4]), info("c", BOOL, []))
    graph = inner + b"".join(field(11, v.SerializeToString()) for v in values)
    opset = helper.make_opsetid("", 17).SerializeToString()
    return b"\x08\x08" + field(7, graph) + field(8, opset)


def field(number: int, body: bytes) -> bytes:
    """A field of a message that holds bytes, a text or a message."""
    size, out = len(body), bytearray([number << 3 | 2])
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size]) + body


def depths() -> Made:
    for depth in (3, 20, 90, 1000, 10_000):
        yield f"{depth} Ifs in one another", of_call(nested_ifs, depth)
    for op in ("Loop", "Scan"):
        yield f"20 {op}s in one another", of_model(_nested_bodies(op, 20))
    chain = [unary("Relu", "x" if k == 0 else f"v{k}", "y" if k == 4999 else f"v{k + 1}") for k in range(5000)]
    yield "a chain of 5,000 nodes", simple(chain)
    yield "a chain of 300 poolings", _poolings(300)
    yield from _functions()
    yield from _names()
    for depth in (20, 5000):
        for kind, what in ((4, "sequences"), (9, "optionals")):
            yield f"{depth} {what} in one another", of_call(_nested_types, kind, depth)


def _nested_bodies(op: str, depth: int) -> onnx.ModelProto:
    """A Loop or Scan whose body holds the next one."""
    value = info("v0", FLOAT, ["n", 4])
    node = unary("Relu", "i0", "v0")
    for k in range(depth):
        given = [info(f"i{k}", FLOAT, None)]
        if op == "Loop":
            given = [info(f"n{k}", INT64, []), info(f"c{k}", BOOL, []), *given]
            passed = unary("Identity", f"c{k}", f"d{k}")
            body = helper.make_graph([passed, node], f"body{k}", given, [info(f"d{k}", BOOL, []), value])
            node = helper.make_node("Loop", ["m", "c", f"i{k + 1}"], [f"v{k + 1}"], body=body)
        else:
            body = helper.make_graph([node], f"body{k}", given, [value])
            node = helper.make_node("Scan", [f"i{k + 1}"], [f"v{k + 1}"], body=body, num_scan_inputs=1)
        value = info(f"v{k + 1}", FLOAT, None)
    inputs = [info(f"i{depth}", FLOAT, [2] * depth if op == "Scan" else ["n", 4])]
    if op == "Loop":
        inputs += [info("m", INT64, []), info("c", BOOL, [])]
    return model_of([node], inputs, [value])


def _poolings(count: int) -> Write:
    """A chain in which every dim is a quotient of the one before."""
    nodes = [
        helper.make_node("AveragePool", [f"v{k}"], [f"v{k + 1}"], kernel_shape=[3], strides=[2], pads=[1, 1])
        for k in range(count)
    ]
    return of_model(model_of(nodes, [info("v0", FLOAT, [1, 2, "n"])], [info(f"v{count}", FLOAT, None)]))


def _names() -> Made:
    """Dims whose names are expressions, of thousands of parts in one another or side by side."""
    n = 5000
    names = {
        "parentheses": "(" * n + "k" + ")" * n,
        "signs": "-" * n + "k",
        "sums": "(k + " * n + "1" + ")" * n,
        "maxima": "max(1, " * n + "k" + ")" * n,
        "quotients": "(" * n + "k" + " floordiv 2)" * n,
        "a sum of as many": " + ".join(f"k{i}" for i in range(n)),
        "a product of as many": "*".join(f"k{i}" for i in range(n)),
        "a product of sums": "*".join(f"(a{i} + b{i})" for i in range(200)),
        "a maximum of as many": "max(" + ", ".join(f"k{i}" for i in range(n)) + ")",
        "a power": "*".join("k" * n),
        "quotients side by side": "k" + " floordiv 2" * n,
    }
    for what, name in names.items():
        nodes = [unary("Relu", "x", "a"), helper.make_node("Concat", ["a", "a"], ["y"], axis=0)]
        yield f"a dim of {what}", of_model(model_of(nodes, [info("x", FLOAT, [name, 4])], [info("y", FLOAT, None)]))


def _nested_types(kind: int, depth: int) -> bytes:
    """A model with an input that is a sequence (`kind` 4) or an optional (9) of itself, so many times."""

    typed = info("s", FLOAT, [2]).type.SerializeToString()
    for _ in range(depth):
        typed = field(kind, field(1, typed))
    given = field(1, b"s") + field(2, typed)
    graph = model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [4])], [info("y", FLOAT, None)]).graph
    opset = helper.make_opsetid("", 17).SerializeToString()
    return b"\x08\x08" + field(7, graph.SerializeToString() + field(11, given)) + field(8, opset)


# -- functions --------------------------------------------------------------------------------------------------------

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]


def _functions() -> Made:
    yield "functions that call one another", _recursive_functions()
    yield "a function that calls itself in a branch", _of_functions([("F0", [_in_branches("F0")])])
    for depth in (20, 2000):
        calls = [(f"F{k}", [_call(f"F{k - 1}" if k else "Relu", "x", "y")]) for k in range(depth)]
        yield f"a chain of {depth} functions", _of_functions(calls)
        inside = [("F0", [unary("Relu", "x", "y")]), *((f"F{k}", [_in_branches(f"F{k - 1}")]) for k in range(1, depth))]
        yield f"{depth} functions that call one another in branches", _of_functions(inside)
    for times, levels in ((10, 8), (2, 60), (10, 3)):
        yield f"{times} calls a function over {levels} levels", _of_functions(_levels(times, levels))
    yield (
        "functions of 1,000 nodes that are called 1,000 times",
        _of_functions([("F0", _row("Relu", 1000)), ("F1", _row("F0", 1000))]),
    )
    unused = [*_levels(10, 12), ("G", [unary("Relu", "x", "y")])]
    yield "functions that would grow and are not called", _of_functions(unused)


def _call(name: str, x: str, y: str) -> onnx.NodeProto:
    return helper.make_node(name, [x], [y], domain="f" if name != "Relu" else "")


def _row(name: str, times: int) -> list[onnx.NodeProto]:
    """A chain of calls from x to y."""
    names = ["x", *(f"v{k}" for k in range(times - 1)), "y"]
    return [_call(name, a, b) for a, b in pairwise(names)]


def _levels(times: int, levels: int) -> list[tuple[str, list[onnx.NodeProto]]]:
    return [(f"F{k}", _row(f"F{k - 1}" if k else "Relu", times)) for k in range(levels)]


def _in_branches(name: str) -> onnx.NodeProto:
    """An If on a constant of a call and of something else."""
    branches = {
        f"{key}_branch": helper.make_graph([_call(called, "x", value)], key, [], [info(value, FLOAT, None)])
        for key, called, value in (("then", name, "t"), ("else", "Relu", "e"))
    }
    return helper.make_node("If", ["c"], ["y"], **branches)


def _of_functions(bodies: list[tuple[str, list[onnx.NodeProto]]]) -> Write:
    """A model that calls the last of these functions; one with an If has its condition for a second input."""
    branching = any(n.op_type == "If" for _, nodes in bodies for n in nodes)
    model = model_of([_call(bodies[-1][0], "x", "y")], [info("x", FLOAT, [4])], [info("y", FLOAT, None)])
    for name, nodes in bodies:
        given = [unary("ReduceMax", "x", "m", keepdims=0), unary("Cast", "m", "c", to=BOOL)] if branching else []
        model.functions.append(helper.make_function("f", name, ["x"], ["y"], [*given, *nodes], OPSETS))
    model.opset_import.append(OPSETS[1])
    return of_model(model)


def _recursive_functions() -> Write:
    model = model_of(
        [helper.make_node("A", ["x"], ["y"], domain="f")], [info("x", FLOAT, [4])], [info("y", FLOAT, None)]
    )
    for name, called in (("A", "B"), ("B", "A")):
        body = [helper.make_node(called, ["x"], ["y"], domain="f")]
        model.functions.append(helper.make_function("f", name, ["x"], ["y"], body, OPSETS))
    model.opset_import.append(OPSETS[1])
    return of_model(model)
