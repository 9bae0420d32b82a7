"""Hostile files, each by a function that writes it into a folder and returns the model's path."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.base import FLOAT, INT64, info, model_of, whole
from tests.hostile.depths import depths
from tests.hostile.growth import growth
from tests.hostile.writing import HostileFile, Made, Write, of_bytes, of_model, simple, unary


def hostile_files(flips: int = 300, cuts: int = 60) -> Iterator[HostileFile]:
    """Every file; `flips` with bits flipped (half of them several), `cuts` cut off."""
    for kind, make in _KINDS.items():
        for name, write in make():
            yield HostileFile(kind, name, write)
    yield from truncated(cuts)
    yield from flipped(flips)


def truncated(count: int) -> Iterator[HostileFile]:
    """The whole model cut off at `count` places."""
    data = whole().SerializeToString()
    for k in range(count):
        end = len(data) * k // count
        yield HostileFile("truncated", f"after {end} of {len(data)} bytes", of_bytes(data[:end]))


def flipped(count: int) -> Iterator[HostileFile]:
    """The whole model with bits flipped, one in every second file and up to eight in the others."""
    data = whole().SerializeToString()
    for seed in range(count):
        rng = random.Random(seed)
        changed = bytearray(data)
        places = [rng.randrange(len(data) * 8) for _ in range(1 if seed % 2 else rng.randint(2, 8))]
        for place in places:
            changed[place // 8] ^= 1 << place % 8
        name = f"seed {seed}: {len(places)} at byte {', '.join(str(p // 8) for p in sorted(places))}"
        yield HostileFile("flipped bits", name, of_bytes(bytes(changed)))


# -- no model ---------------------------------------------------------------------------------------------------------


def _not_models() -> Made:
    yield "nothing", of_bytes(b"")
    yield "text", of_bytes(b"this is no model\n" * 100)
    yield "zeros", of_bytes(bytes(100_000))
    yield "random bytes", of_bytes(random.Random(0).randbytes(50_000))
    yield "a message without a graph", of_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    yield "a number that does not end", of_bytes(b"\xff" * 1000)
    yield "a length of 2^63", of_bytes(b"\x3a" + b"\xff" * 8 + b"\x7f" + bytes(5000))
    yield "a folder", lambda folder: folder
    yield "a file that is not there", lambda folder: folder / "missing.onnx"


# -- graphs -----------------------------------------------------------------------------------------------------------


def _graphs() -> Made:
    cycle = [helper.make_node("Add", ["x", "b"], ["a"]), unary("Relu", "a", "b"), unary("Relu", "b", "y")]
    yield "a cycle", simple(cycle)
    yield "a node that reads itself", simple([helper.make_node("Add", ["x", "y"], ["y"])])
    yield "nodes out of order", simple([unary("Relu", "a", "y"), unary("Abs", "x", "a")])
    yield "two nodes define one value", simple([unary("Relu", "x", "y"), unary("Abs", "x", "y")])
    yield "a node defines an input", simple([unary("Relu", "x", "x")], "x")
    yield "a node defines a value twice", simple([helper.make_node("Split", ["x"], ["y", "y"], axis=1)])
    yield "two nodes of one name", simple([unary("Relu", "x", "a", "n"), unary("Abs", "a", "y", "n")])
    yield "an empty graph", of_model(model_of([], [], []))
    yield "no nodes", of_model(model_of([], [info("x", FLOAT, [2])], [info("x", FLOAT, [2])]))
    yield "no outputs", of_model(model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [2])], []))
    yield "an output that nothing defines", simple([unary("Relu", "x", "a")])
    yield "an output without a name", simple([unary("Relu", "x", "y")], "")
    yield (
        "an output of a type that is wrong",
        of_model(model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [2])], [info("y", INT64, [2])])),
    )
    yield "an output of a shape that is wrong", simple([unary("Relu", "x", "y")], shape=["n", 5])
    yield (
        "one output twice",
        of_model(
            model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [2])], [info("y", FLOAT, [2]), info("y", FLOAT, [2])])
        ),
    )
    yield (
        "one input twice",
        of_model(
            model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [2]), info("x", FLOAT, [2])], [info("y", FLOAT, [2])])
        ),
    )
    yield (
        "an input without a type",
        of_model(model_of([unary("Relu", "x", "y")], [onnx.ValueInfoProto(name="x")], [info("y", FLOAT, None)])),
    )
    yield "two initializers of one name", _two_initializers()
    untyped = onnx.ValueInfoProto(name="x")
    untyped.type.tensor_type.elem_type = 99
    yield (
        "an element type that is none",
        of_model(model_of([unary("Relu", "x", "y")], [untyped], [info("y", FLOAT, None)])),
    )


def _two_initializers() -> Write:
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [info("x", FLOAT, [2])],
        [info("y", FLOAT, [2])],
        {"w": np.ones(2, np.float32)},
    )
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "w"))
    return of_model(model)


def _nodes() -> Made:
    yield "an op that there is not", simple([unary("Frobnicate", "x", "y")])
    yield "an op of a domain that there is not", simple([helper.make_node("Relu", ["x"], ["y"], domain="nowhere")])
    yield "an op without a name", simple([unary("", "x", "y")])
    yield "too few inputs", simple([helper.make_node("Add", ["x"], ["y"])])
    yield "no inputs", simple([helper.make_node("MatMul", [], ["y"])])
    yield "too many inputs", simple([helper.make_node("Relu", ["x", "x", "x"], ["y"])])
    yield "no outputs", simple([helper.make_node("Relu", ["x"], []), unary("Abs", "x", "y")])
    yield "too many outputs", simple([helper.make_node("Relu", ["x"], ["y", "z"])])
    yield "a required input left out", simple([helper.make_node("Add", ["", "x"], ["y"])])
    yield "a Constant with an input", simple([helper.make_node("Constant", ["x"], ["y"], value_float=1.0)])
    yield "a Constant without a value", simple([helper.make_node("Constant", [], ["y"])])
    yield "a Constant of two values", simple([helper.make_node("Constant", [], ["y"], value_float=1.0, value_int=1)])
    yield "an attribute that is required", simple([unary("Cast", "x", "y")])
    yield "an attribute of a wrong type", simple([unary("Softmax", "x", "y", axis="last")])
    yield "an attribute that there is not", simple([unary("Relu", "x", "y", leak=0.1)])
    yield "an attribute twice", _twice()
    yield "an axis that there is not", simple([unary("Softmax", "x", "y", axis=7)])
    yield "a permutation that is none", simple([unary("Transpose", "x", "y", perm=[0, 0])])
    yield "a permutation of another rank", simple([unary("Transpose", "x", "y", perm=[0, 1, 2])])
    yield "a type that there is not", simple([unary("Cast", "x", "y", to=77)])
    yield (
        "shapes that do not fit",
        of_model(
            model_of(
                [helper.make_node("MatMul", ["x", "w"], ["y"])],
                [info("x", FLOAT, ["n", 4])],
                [info("y", FLOAT, None)],
                {"w": np.ones((5, 3), np.float32)},
            )
        ),
    )
    yield (
        "types that do not fit",
        of_model(
            model_of(
                [helper.make_node("Add", ["x", "w"], ["y"])],
                [info("x", FLOAT, ["n", 4])],
                [info("y", FLOAT, None)],
                {"w": np.ones(4, np.int64)},
            )
        ),
    )
    yield "a reference to an attribute outside a function", _dangling_reference()


def _twice() -> Write:
    node = unary("Softmax", "x", "y", axis=1)
    node.attribute.append(helper.make_attribute("axis", 0))
    return simple([node])


def _dangling_reference() -> Write:
    node = unary("Softmax", "x", "y")
    node.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="a", type=onnx.AttributeProto.INT))
    return simple([node])


# -- numbers ----------------------------------------------------------------------------------------------------------


def _dims() -> Made:
    for text, dim in (("2^62", 1 << 62), ("2^63 - 1", (1 << 63) - 1), ("2^31", 1 << 31), ("-5", -5), ("0", 0)):
        yield (
            f"an input with a dim of {text}",
            of_model(model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [dim, 4])], [info("y", FLOAT, None)])),
        )
    yield (
        "dims whose product overflows",
        of_model(model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [1 << 40, 1 << 40])], [info("y", FLOAT, None)])),
    )
    for rank in (9, 64, 300, 3000):
        yield (
            f"rank {rank}",
            of_model(model_of([unary("Relu", "x", "y")], [info("x", FLOAT, [1] * rank)], [info("y", FLOAT, None)])),
        )
    for dims in ([1 << 40], [1 << 62, 1 << 62], [-1, 2]):
        tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, raw_data=b"abcd")
        yield f"an initializer of {dims}", _with_tensor(tensor)
    yield (
        "an initializer that is too short",
        _with_tensor(TensorProto(name="w", data_type=FLOAT, dims=[4], raw_data=b"123")),
    )
    yield (
        "an initializer that is too long",
        _with_tensor(TensorProto(name="w", data_type=FLOAT, dims=[4], raw_data=bytes(64))),
    )
    yield "an initializer of no type", _with_tensor(TensorProto(name="w", dims=[4], raw_data=bytes(16)))
    yield (
        "an initializer of strings",
        _with_tensor(TensorProto(name="w", data_type=TensorProto.STRING, dims=[4], string_data=[b"\xff"] * 4)),
    )
    yield (
        "an initializer in segments",
        _with_tensor(
            TensorProto(
                name="w", data_type=FLOAT, dims=[4], raw_data=bytes(16), segment=TensorProto.Segment(begin=0, end=4)
            )
        ),
    )
    shape = np.array([1 << 40, 1 << 40], np.int64)
    nodes = [helper.make_node("Expand", ["x", "s"], ["y"])]
    yield (
        "an Expand to 2^80 elements",
        of_model(model_of(nodes, [info("x", FLOAT, [1])], [info("y", FLOAT, None)], {"s": shape})),
    )
    constant = [helper.make_node("ConstantOfShape", ["s"], ["a"]), helper.make_node("Add", ["x", "a"], ["y"])]
    yield (
        "a constant of 2^80 elements",
        of_model(model_of(constant, [info("x", FLOAT, [1])], [info("y", FLOAT, None)], {"s": shape})),
    )
    big = np.array([1 << 17, 1 << 17], np.int64)
    yield (
        "a constant of 64 GB",
        of_model(model_of(constant, [info("x", FLOAT, [1])], [info("y", FLOAT, None)], {"s": big})),
    )
    tile = [helper.make_node("Tile", ["x", "s"], ["y"])]
    yield (
        "a Tile by 2^40",
        of_model(
            model_of(tile, [info("x", FLOAT, [2])], [info("y", FLOAT, None)], {"s": np.array([1 << 40], np.int64)})
        ),
    )
    pad = [helper.make_node("Pad", ["x", "s"], ["y"])]
    yield (
        "a Pad by 2^62",
        of_model(
            model_of(pad, [info("x", FLOAT, [2])], [info("y", FLOAT, None)], {"s": np.array([1 << 62, 0], np.int64)})
        ),
    )
    ranges = [helper.make_node("Range", ["s", "t", "u"], ["a"]), helper.make_node("Cast", ["a"], ["y"], to=FLOAT)]
    ends = {"s": np.array(0, np.int64), "t": np.array(1 << 62, np.int64), "u": np.array(1, np.int64)}
    yield "a Range of 2^62", of_model(model_of(ranges, [info("x", FLOAT, [2])], [info("y", FLOAT, None)], ends))


def _with_tensor(tensor: TensorProto) -> Write:
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])], [info("x", FLOAT, ["n", 4])], [info("y", FLOAT, None)]
    )
    model.graph.initializer.append(tensor)
    return of_model(model)


def _versions() -> Made:
    for opset in (0, 1, 6, 99, 1 << 31, (1 << 63) - 1, -1):
        yield f"opset {opset}", simple([unary("Relu", "x", "y")], opset=opset)
    for version in (0, 1, 2, 99, 1 << 40, -1):
        yield f"IR version {version}", simple([unary("Relu", "x", "y")], ir_version=version)
    model = onnx.ModelProto.FromString(whole().SerializeToString())
    del model.opset_import[:]
    yield "no opsets", of_model(model)
    model.opset_import.extend([helper.make_opsetid("", 17), helper.make_opsetid("", 11)])
    yield "one domain at two opsets", of_model(model)


# -- names ------------------------------------------------------------------------------------------------------------

NAMES = {
    "path separators": "../../etc/passwd",
    "an absolute path": "/etc/passwd",
    "quotes": "a\"b'c`d",
    "backslashes": "a\\n\\x00\\",
    "a newline": "a\nb\r\nc",
    "NUL": "a\0b",
    "control characters": "\x01\x1b[31mred\x7f",
    "Unicode": "Größe_数_🧨_\u202e\u0301",
    "100,000 characters": "n" * 100_000,
    "nothing but spaces": "   ",
    "IR": "%0 = onnx.Add() : () -> ()",
    "LLVM": "@main, i64 0) ret void }",
    "format strings": "%s%n{0}{x}$HOME$(id)`id`",
    "markup": "[bold red]x[/] <b>",
    "an expression": "((((n))))",
    "a sum": "past + 1 * (2",
    "a number": "-1",
    "a keyword": "true",
}


def _names() -> Made:
    for what, name in NAMES.items():
        yield f"values: {what}", _named(name, name + "y", "node", "n")
        yield f"nodes: {what}", _named("x", "y", name, "n")
        yield f"dims: {what}", _named("x", "y", "node", name)
        yield f"the graph and its functions: {what}", _named("x", "y", "node", "n", graph=name)
    data = _named_model("xxxx", "yyyy", "nnnn", "dddd").SerializeToString()
    for part in (b"xxxx", b"yyyy", b"nnnn", b"dddd"):
        yield f"not UTF-8 instead of {part.decode()}", of_bytes(data.replace(part, b"\xff\xfe\x80\xc0"))


def _named(x: str, y: str, node: str, dim: str, graph: str = "g") -> Write:
    return of_model(_named_model(x, y, node, dim, graph))


def _named_model(x: str, y: str, node: str, dim: str, graph: str = "g") -> onnx.ModelProto:
    nodes = [
        helper.make_node("Mul", [x, x + ".w"], [x + ".m"], node),
        helper.make_node("Softmax", [x + ".m"], [y], node + "2"),
    ]
    weights = {x + ".w": np.full(4, 2, np.float32)}
    return model_of(nodes, [info(x, FLOAT, [dim, 4])], [info(y, FLOAT, [dim, 4])], weights, name=graph)


# -- external data ----------------------------------------------------------------------------------------------------


def _external(**entries: str) -> Write:
    def write(folder: Path) -> Path:
        (folder / "weights.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
        outside = folder.parent / f"{folder.name}-outside.bin"
        outside.write_bytes(bytes(64))
        (folder / "inside").mkdir()
        links = (("link.bin", outside), ("away", folder.parent), ("loop.bin", folder / "loop.bin"))
        for name, target in links:
            (folder / name).symlink_to(target)
        tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value.replace("OUTSIDE", outside.name))
        return _with_tensor(tensor)(folder)

    return write


def _external_data() -> Made:
    yield "as it should be", _external(location="weights.bin", offset="16", length="16")
    yield "in the folder above", _external(location="../OUTSIDE")
    yield "by an absolute path", _external(location="/etc/passwd", length="16")
    yield "through a folder and back", _external(location="inside/../../OUTSIDE")
    yield "by a link out of the folder", _external(location="link.bin", length="16")
    yield "through a link to a folder", _external(location="away/OUTSIDE", length="16")
    yield "by a link to itself", _external(location="loop.bin", length="16")
    yield "in a device", _external(location="/dev/zero", length="16")
    yield "a folder", _external(location="inside", length="16")
    yield "nowhere", _external(location="none.bin", length="16")
    yield "no location", _external(length="16")
    yield "a location with NUL", _external(location="weights.bin\0.txt", length="16")
    yield "a location of 100,000 characters", _external(location="w" * 100_000, length="16")
    yield "an offset past the end", _external(location="weights.bin", offset="1000", length="16")
    yield "an offset of 2^63", _external(location="weights.bin", offset=str(1 << 63), length="16")
    yield "an offset below 0", _external(location="weights.bin", offset="-16", length="16")
    yield "an offset that is no number", _external(location="weights.bin", offset="many", length="16")
    yield "an offset of 5,000 digits", _external(location="weights.bin", offset="9" * 5000, length="16")
    yield "a length past the end", _external(location="weights.bin", length="1000")
    yield "a length of 2^63", _external(location="weights.bin", length=str(1 << 63))
    yield "a length below 0", _external(location="weights.bin", length="-16")
    yield "a length that does not fit", _external(location="weights.bin", length="12")
    yield "the mark for the file itself", _external(location="igniter:self", offset="0", length="16")


_KINDS: dict[str, Callable[[], Made]] = {
    "no model": _not_models,
    "graphs": _graphs,
    "nodes": _nodes,
    "dims and tensors": _dims,
    "versions": _versions,
    "names": _names,
    "external data": _external_data,
    "depth": depths,
    "growth": growth,
}
