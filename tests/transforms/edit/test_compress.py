"""Weights in fewer bits: the models run in ONNX Runtime and compute what the codes, written out by hand here, say."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.runtime.session import make_session

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
K, N = 70, 48
FLOAT = TensorProto.FLOAT


def weight(*dims: int) -> Array:
    return (RNG.standard_normal(dims) + 0.2).astype(np.float32)


def info(name: str, dims: list[Any], kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def model(
    nodes: list[onnx.NodeProto],
    weights: dict[str, Array],
    inputs: list[onnx.ValueInfoProto],
    opset: int = 17,
    functions: list[onnx.FunctionProto] | None = None,
    out: Any = None,
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(w, name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", out)], tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions or [])


def matmul() -> tuple[onnx.ModelProto, dict[str, Array]]:
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], {"w": weight(K, N)}, [info("x", ["n", 2, K])])
    return made, {"x": weight(3, 2, K)}


def gemm() -> tuple[onnx.ModelProto, dict[str, Array]]:
    weights = {"w": weight(N, K), "c": weight(N)}
    made = model([helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1)], weights, [info("x", ["n", K])])
    return made, {"x": weight(3, K)}


def wide_bias() -> tuple[onnx.ModelProto, dict[str, Array]]:
    inputs = [info("x", ["n", K]), info("c", ["n", N])]
    made = model([helper.make_node("Gemm", ["x", "w", "c"], ["y"])], {"w": weight(K, N)}, inputs)
    return made, {"x": weight(3, K), "c": weight(3, N)}


def turned() -> tuple[onnx.ModelProto, dict[str, Array]]:
    nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    return model(nodes, {"w": weight(N, K)}, [info("x", ["n", K])]), {"x": weight(3, K)}


def conv() -> tuple[onnx.ModelProto, dict[str, Array]]:
    made = model([helper.make_node("Conv", ["x", "w"], ["y"])], {"w": weight(6, 33, 3, 3)}, [info("x", [1, 33, 5, 5])])
    return made, {"x": weight(1, 33, 5, 5)}


def table() -> tuple[onnx.ModelProto, dict[str, Array]]:
    made = model([helper.make_node("Gather", ["w", "i"], ["y"])], {"w": weight(N, K)}, [info("i", ["a", "b"], 7)])
    return made, {"i": np.array([[0, 5], [-1, 47]], np.int64)}


def tied(words: int = N) -> tuple[onnx.ModelProto, dict[str, Array]]:
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["e"]),
        helper.make_node("Tanh", ["e"], ["h"]),
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "t"], ["y"]),
    ]
    made = model(nodes, {"w": weight(words, 64)}, [info("i", ["a", "b"], 7)])
    return made, {"i": np.array([[0, 5], [-1, 47]], np.int64)}


def inside_if() -> tuple[onnx.ModelProto, dict[str, Array]]:
    product = helper.make_node("MatMul", ["x", "w"], ["p"])
    then = helper.make_graph([product], "then", [], [info("p", ["n", N])])
    own = numpy_helper.from_array(weight(K, N), "v")
    other = helper.make_graph([helper.make_node("MatMul", ["x", "v"], ["q"])], "else", [], [info("q", ["n", N])], [own])
    nodes = [helper.make_node("If", ["b"], ["y"], then_branch=then, else_branch=other)]
    made = model(nodes, {"w": weight(K, N)}, [info("x", ["n", K]), info("b", [], TensorProto.BOOL)])
    return made, {"x": weight(3, K), "b": np.array(False)}


def inside_function() -> tuple[onnx.ModelProto, dict[str, Array]]:
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight(K, N), "w"))
    body = [constant, helper.make_node("MatMul", ["a", "w"], ["b"])]
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Product", ["a"], ["b"], body, imports)
    made = model(
        [helper.make_node("Product", ["x"], ["y"], domain="own")], {}, [info("x", ["n", K])], 17, [function], ["n", N]
    )
    return made, {"x": weight(3, K)}


def lstm() -> tuple[onnx.ModelProto, dict[str, Array]]:
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=16)]
    made = model(nodes, {"w": weight(1, 64, 40), "r": weight(1, 64, 16) / 4}, [info("x", ["t", 2, 40])])
    return made, {"x": weight(3, 2, 40)}


MODELS = [matmul, gemm, wide_bias, turned, conv, table, tied, inside_if, inside_function, lstm]


def by_hand(w: Array, bits: int, axis: int | None, block: int, symmetric: bool) -> Array:
    """What a weight's codes stand for, scale by scale."""
    out = np.empty_like(w)
    size = w.shape[axis] if axis is not None else 1
    ranges = [range(n) for n in w.shape]
    if axis is None:
        groups: list[Any] = [tuple(slice(None) for _ in w.shape)]
    elif not block:
        groups = [tuple(k if a == axis else slice(None) for a in range(w.ndim)) for k in range(size)]
    else:
        starts = [slice(s, s + block) for s in range(0, size, block)]
        groups = list(itertools.product(*(starts if a == axis else ranges[a] for a in range(w.ndim))))
    for at in groups:
        part = w[at]
        low, high = min(float(part.min()), 0.0), max(float(part.max()), 0.0)
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if symmetric else (0, 2**bits - 1)
        scale = np.float32(max(high / most, low / least) if symmetric else (high - low) / most)
        zero = 0.0 if symmetric else np.clip(np.rint(-low / scale), 0, most)
        out[at] = (np.clip(np.rint(part / scale) + zero, least, most) - zero).astype(np.float32) * scale
    return out


def run(proto: onnx.ModelProto | bytes, feed: dict[str, Array]) -> list[Array]:
    """Without ONNX Runtime's own choice of rounding the other factor of dequantised weights."""
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    session: Any = make_session(data, config={"session.disable_quant_qdq": "0"}, graph_optimization_level=unoptimised())
    return session.run(None, feed)


def unoptimised() -> Any:
    import onnxruntime

    return onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def replaced(proto: onnx.ModelProto, change: Any) -> onnx.ModelProto:
    """A copy whose weights of two dims or more are `change` of them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    graphs = [copy.graph, *(a.g for n in copy.graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)]
    tensors = [t for g in graphs for t in g.initializer]
    tensors += [a.t for f in copy.functions for n in f.node for a in n.attribute if n.op_type == "Constant"]
    for tensor in tensors:
        array = numpy_helper.to_array(tensor)
        if array.ndim > 1:
            tensor.CopyFrom(numpy_helper.from_array(change(array), tensor.name))
    return copy


AXES = {
    "matmul": (1, 0),
    "gemm": (0, 1),
    "wide_bias": (1, 0),
    "turned": (0, 1),
    "conv": (0, 1),
    "table": (0, 1),
    "tied": (0, 1),
    "inside_if": (1, 0),
    "inside_function": (1, 0),
    "lstm": (1, 2),
}


@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("granularity", ["tensor", "channel", "block:16", "block:24"])
@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("standard", [False, True])
def test_integers(build: Any, weights: str, granularity: str, symmetric: bool, standard: bool):
    proto, feed = build()
    channel, depth = AXES[build.__name__]
    block = int(granularity.partition(":")[2] or 0)
    options = {"symmetric": symmetric, "standard": standard, "min_elements": 8}
    module = igniter.load(proto).compress(weights, granularity, **options)
    made = module.to_onnx()
    onnx.checker.check_model(made)

    def coded(w: Array) -> Array:
        by_blocks = block and w.shape[depth] >= block
        axis = None if granularity == "tensor" else depth if by_blocks else channel
        return by_hand(w, int(weights[3:]), axis, block if by_blocks else 0, symmetric)

    for got, wanted in zip(run(made, feed), run(replaced(proto, coded), feed), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
    if standard:
        assert not any(n.domain == "com.microsoft" for n in made.graph.node)


@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("weights", ["f16", "bf16"])
def test_floats(build: Any, weights: str):
    proto, feed = build()
    kind: Any = np.float16 if weights == "f16" else ml_dtypes.bfloat16
    made = igniter.load(proto).compress(weights, min_elements=8).to_onnx()
    onnx.checker.check_model(made)
    wanted = run(replaced(proto, lambda w: w.astype(kind).astype(np.float32)), feed)
    for got, expected in zip(run(made, feed), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_every_code_is_used_and_zero_is_exact(bits: int):
    proto, _ = matmul()
    values = np.linspace(-0.3, 1.7, K * N).astype(np.float32).reshape(K, N)
    values[0, 0] = 0.0
    proto = replaced(proto, lambda _: values)
    made = igniter.load(proto).compress(f"int{bits}", "tensor", standard=True, min_elements=8).to_onnx()
    found = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    codes = np.unique(found["w.codes"].astype(np.int32))
    assert list(codes) == list(range(2**bits))
    assert found["w.codes"][0, 0].astype(int) == found["w.zeros"].astype(int)


def test_a_tied_weight_is_stored_once():
    proto, _ = tied()
    for weights, most in (("int8", 64 * N * 1.1), ("int4", 64 * N * 0.7), ("f16", 64 * N * 2)):
        module = igniter.load(proto).compress(weights, "block:32", min_elements=8) if weights != "f16" else None
        module = module or igniter.load(proto).compress("f16", min_elements=8)
        stored = [t for t in module.to_onnx().graph.initializer if len(t.dims) > 1]
        codes = [t for t in stored if not t.name.endswith((".scales", ".zeros"))]
        assert len(codes) == 1
        assert len(codes[0].raw_data) <= most


def test_f16_weights():
    w = weight(64, 32).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    proto = model(nodes, {"w": w}, [info("x", ["n", 64], TensorProto.FLOAT16)])
    x = weight(3, 64).astype(np.float16)
    made = igniter.load(proto).compress("int8", min_elements=8).to_onnx()
    (got,) = run(made, {"x": x})
    np.testing.assert_allclose(got.astype(np.float32), (x @ w).astype(np.float32), atol=0.02 * np.abs(x @ w).max())
    left = igniter.load(proto)
    with pytest.raises(IgniterError, match="it is stored as f16"):
        left.compress("bf16", min_elements=8)


def test_names_choose():
    proto, _ = lstm()
    module = igniter.load(proto).compress("int8", only=["w"], min_elements=8)
    done = [r.details["weight"] for r in module.remarks.of("compress-weights", "applied")]
    assert done == ["w"]
    module = igniter.load(proto).compress("int8", leave=["r"], min_elements=8)
    assert [r.node for r in module.remarks.of("compress-weights", "missed")] == ["r"]
    with pytest.raises(IgniterError, match=r"'LSMT' names no weight.*like it are LSTM"):
        igniter.load(proto).compress("int8", only=["LSMT"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": "int3"}, "weights are stored as f16, bf16, int8, int4, not as 'int3'"),
        ({"weights": "int8", "granularity": "row"}, "the granularity is tensor, channel or block:N"),
        ({"weights": "int8", "granularity": "block:1"}, "a block has two numbers or more"),
        ({"weights": "f16", "symmetric": True}, "f16 has no zero points"),
        ({"weights": "int8", "min_elements": 10**9}, "no weight was stored as int8: 1 .*fewer than 1000000000"),
        ({"weights": "int8", "accuracy_level": 7}, "the accuracy level is 0 to 4"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], said: str):
    with pytest.raises(IgniterError, match=said):
        igniter.load(matmul()[0]).compress(**options)


def test_what_cannot_be_stored_stays():
    proto, _ = matmul()
    infinite = replaced(proto, lambda w: np.where(w > 2, np.inf, w).astype(np.float32))
    with pytest.raises(IgniterError, match="not finite"):
        igniter.load(infinite).compress("int8", min_elements=8)
    large = replaced(proto, lambda w: w * 1e5)
    with pytest.raises(IgniterError, match="numbers that f16 has not: bf16 has them"):
        igniter.load(large).compress("f16", min_elements=8)


def test_an_opset_that_cannot_be_raised_is_said():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=1)]
    proto = model(nodes, {"w": weight(K, N)}, [info("x", [2, 3, K])], 11)
    with pytest.raises(IgniterError, match=r"needs opset 13, and Softmax .* differs between opset 13"):
        igniter.load(proto).compress("int8", min_elements=8)
    # What com.microsoft has needs no opset of ONNX.
    made = igniter.load(proto).compress("int4", "block:32", min_elements=8).to_onnx()
    assert [n.op_type for n in made.graph.node] == ["MatMulNBits", "Softmax"]


@pytest.mark.parametrize(
    ("weights", "share"), [("f16", 0.5), ("bf16", 0.5), ("int8", 0.30), ("int4", 0.18)], ids=lambda x: str(x)
)
@pytest.mark.parametrize("rows", [1, 40])
def test_compiling_keeps_the_size(tmp_path: Path, weights: str, share: float, rows: int):
    """Products of any number of rows read what is stored; the compiled folder has that and nothing besides."""
    depth, columns = 300, 520 if rows > 8 or weights.endswith("f16") else 512
    w = weight(depth, columns)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    v = weight(columns, 48 if weights.startswith("int") else 21)
    proto = model(nodes, {"w": w, "v": v}, [info("x", ["n", depth])])
    options = {"symmetric": rows > 1} if weights.startswith("int") else {}
    small = igniter.load(proto).compress(weights, "channel" if weights == "int8" else "block:32", **options)
    exact = small.to_onnx()
    artifact = small.compile(tmp_path / "m", sizes={"n": rows}, shapes=[{"n": 1}, {"n": 3}], strict=True)
    stored = sum(p.stat().st_size for p in artifact.folder.glob("*.data"))
    assert stored < share * (w.nbytes + v.nbytes) + 24576
    for count in (rows, 2, 0):
        x = weight(count, depth)
        (got,) = artifact.session().run(None, {"x": x})
        (wanted,) = run(exact, {"x": x})
        np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max(initial=0.0))


def test_a_tied_weight_is_compiled_as_it_is_stored(tmp_path: Path):
    """Rows of an embedding and the product with it transposed: twice what is stored, in the two orders."""
    proto, feed = tied(480)
    whole = igniter.load(proto)
    artifact = whole.compress("f16").compile(tmp_path / "m", verify=False)
    assert sum(p.stat().st_size for p in artifact.folder.glob("*.data")) < 2 * 64 * 480 * 2 + 8192
    (got,), (wanted,) = artifact.session().run(None, feed), run(whole.to_onnx(), feed)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
