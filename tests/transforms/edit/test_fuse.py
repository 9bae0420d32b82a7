"""Patterns: those that come with Igniter and a user's own, replaced by functions and ops that compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnxruntime
import pytest

import igniter
from igniter.dialects.onnx.base import OnnxOp
from igniter.errors import IgniterError
from igniter.toolbox.fuse.graph_pattern import load_patterns, parse_target, shipped_patterns
from tests.analysis.model.kit import model


def run(proto: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def ops(module: igniter.Module) -> list[str]:
    graph = next(op for op in module.ir.ops if op.name == "onnx.graph")
    return [o.qualified_name for o in graph.walk() if isinstance(o, OnnxOp) and o.op_type != "Constant"]


def fused(
    proto: onnx.ModelProto, pattern: str | Path, feed: dict[str, Any], into: str = "", tolerance: float = 0.0
) -> igniter.Module:
    """The module with the pattern replaced, which computes the same: the same bits where it is by functions."""
    module = igniter.load(proto).fuse(pattern, into)
    made = module.to_onnx()
    onnx.checker.check_model(made)
    for a, b in zip(run(proto, feed), run(made, feed), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a, b) if tolerance == 0 else np.allclose(a, b, rtol=tolerance, atol=tolerance)
    return module


NORM = """mean = ReduceMean<axes = [-1]>({x}) centred = Sub({x}, mean)
  square = {square} var = ReduceMean<axes = [2]>(square)
  shifted = Add(small, var) deviation = Sqrt(shifted) normal = Div(centred, deviation) scaled = Mul(scale, normal)
  y = Add(scaled, bias)"""
SQUARES = ("Pow(centred, two)", "Mul(centred, centred)")
SCALARS = "float two = {2}, float half = {0.5}, float one = {1}, float small = {0.00001}, float root = {1.4142135}"
VECTORS = "float[4] scale = {1,2,3,4}, float[4] bias = {0,1,0,2}"
ATTENTION = """
qs = Reshape(q, split) qh = Transpose<perm = [0, 2, 1, 3]>(qs)
ks = Reshape(k, split) kr = Transpose<perm = [0, 2, 1, 3]>(ks) kh = Transpose<perm = [0, 1, 3, 2]>(kr)
vs = Reshape(v, split) vh = Transpose<perm = [0, 2, 1, 3]>(vs)
scores = MatMul(qh, kh) scaled = {scale} masked = Add(scaled, mask) weights = Softmax<axis = 3>(masked)
context = MatMul(weights, vh) joined = Transpose<perm = [0, 2, 1, 3]>(context) y = Reshape(joined, join)
"""

X = {"x": random(2, 3, 4)}
QKV = {"q": random(2, 3, 8), "k": random(2, 3, 8) + 1, "v": random(2, 3, 8) - 1, "mask": random(2, 1, 3, 3)}
QKV_INPUTS = "float[2, 3, 8] q, float[2, 3, 8] k, float[2, 3, 8] v, float[2, 1, 3, 3] mask"
ATTENTION_INTS = "int64[4] split = {0, 0, 2, 4}, int64[3] join = {0, 0, 8}, float c = {0.5}"
EMBED = """w = Gather<axis = 0>(words, ids) s = Gather<axis = 0>(segments, seg) p = Gather<axis = 0>(places, pos)
  some = Add(w, p) sum = Add(some, s) y = LayerNormalization<axis = -1>(sum, scale, bias)"""


def net(
    nodes: str, inputs: str = "float[b, s, 4] x", initializers: str = f"{SCALARS}, {VECTORS}", out: str = "y"
) -> Any:
    outputs = ", ".join(f"float[?, ?, ?] {name}" for name in out.split())
    return model(f"g ({inputs}) => ({outputs}) <{initializers}> {{ {nodes} }}")


TABLES = ", ".join(f"float[2, 4] {n} = {{0,1,2,3,4,5,6,{k}}}" for k, n in enumerate(("words", "segments", "places")))
IDS = {n: np.array([[0, 1, 1]]) for n in ("ids", "seg", "pos")}
SHIPPED: dict[str, tuple[str, Any, dict[str, Any], str, list[str], float]] = {
    "gelu": (
        "gelu",
        net("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, half)"),
        X,
        "com.microsoft.Gelu",
        ["fused.Gelu"],
        1e-6,
    ),
    "gelu_commuted": (
        "gelu",
        net("d = Div(x, root) e = Erf(d) a = Add(one, e) p = Mul(half, x) y = Mul(a, p)"),
        X,
        "com.microsoft.Gelu",
        ["fused.Gelu"],
        1e-6,
    ),
    "gelu_tanh": (
        "gelu-tanh",
        net(
            "c = Pow(x, three) t = Mul(cubic, c) s = Add(x, t) m = Mul(s, r) h = Tanh(m) a = Add(h, one)"
            " p = Mul(half, x) y = Mul(p, a)",
            initializers=f"{SCALARS}, float three = {{3}}, float cubic = {{0.044715}}, float r = {{0.7978846}}",
        ),
        X,
        "com.microsoft.FastGelu",
        ["fused.GeluTanh"],
        1e-5,
    ),
    **{
        f"layer_norm_{i}": (
            "layer-norm",
            net(NORM.format(x="x", square=square)),
            X,
            "LayerNormalization",
            ["fused.LayerNorm"],
            1e-5,
        )
        for i, square in enumerate(SQUARES)
    },
    "skip_layer_norm": (
        "skip-layer-norm",
        net(
            "sum = Add(x, z)" + NORM.format(x="sum", square=SQUARES[0]),
            inputs="float[b, s, 4] x, float[b, s, 4] z",
        ),
        {**X, "z": random(2, 3, 4) + 1},
        "com.microsoft.SkipLayerNormalization",
        ["fused.SkipLayerNorm"],
        1e-5,
    ),
    "skip_layer_norm_with_sum": (
        "skip-layer-norm",
        net(
            "sum = Add(x, z) y = LayerNormalization<axis = -1, epsilon = 0.001>(sum, scale, bias) o = Relu(sum)",
            inputs="float[b, s, 4] x, float[b, s, 4] z",
            out="y o",
        ),
        {**X, "z": random(2, 3, 4) + 1},
        "com.microsoft.SkipLayerNormalization",
        ["fused.SkipLayerNorm", "Relu"],
        1e-5,
    ),
    "embed_layer_norm": (
        "embed-layer-norm",
        net(EMBED, "int64[b, s] ids, int64[b, s] seg, int64[b, s] pos", f"{TABLES}, {VECTORS}"),
        IDS,
        "",
        ["fused.EmbedLayerNorm"],
        0.0,
    ),
    **{
        f"mha_{name}": (
            "mha",
            net(ATTENTION.format(scale=scale), QKV_INPUTS, ATTENTION_INTS),
            QKV,
            into,
            ["fused.MultiHeadAttention"],
            1e-5,
        )
        for name, scale, into in (
            ("mul", "Mul(scores, c)", "com.microsoft.MultiHeadAttention"),
            ("div", "Div(scores, c)", ""),
        )
    },
    "conv": (
        "conv-bn-add-relu",
        net(
            "c = Conv<pads = [1, 1, 1, 1], kernel_shape = [3, 3]>(x, w) n = BatchNormalization(c, k, k, k, k)"
            " a = Add(z, n) y = Relu(a)",
            "float[1, 1, 4, 5] x, float[1, 2, 4, 5] z",
            f"float[2, 1, 3, 3] w = {{{', '.join(map(str, range(18)))}}}, float[2] k = {{1, 2}}",
        ),
        {"x": random(1, 1, 4, 5), "z": random(1, 2, 4, 5)},
        "",
        ["fused.ConvBnAddRelu"],
        0.0,
    ),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_patterns(name: str) -> None:
    pattern, proto, feed, into, wanted, tolerance = SHIPPED[name]
    if name == "conv":
        proto.graph.output[0].type.tensor_type.shape.dim.add()
    module = fused(proto, pattern, feed)
    assert ops(module) == wanted
    if into:
        by_op = fused(proto, pattern, feed, "default", tolerance)
        assert ops(by_op)[0] == into


def test_every_shipped_pattern_is_tested_and_reads() -> None:
    tested = {case[0] for case in SHIPPED.values()} | {"conv-bn-relu"}
    assert tested == set(shipped_patterns())
    assert all(load_patterns(name) for name in shipped_patterns())


TWICE = """<domain: "mine", opset_import: ["" : 17]>
Twice <axis> (x) => (y) { s = Softmax <axis: int = @axis> (x) y = Add (s, s) }"""


def write(folder: Path, text: str, name: str = "p.pattern") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_pattern_of_ones_own(tmp_path: Path) -> None:
    proto = net("a = Softmax<axis = 1>(x) b = Add(a, a) c = Softmax<axis = 0>(b) d = Add(c, c) y = Neg(d)")
    module = fused(proto, write(tmp_path, TWICE), X)
    assert ops(module) == ["mine.Twice", "mine.Twice_2", "Neg"]
    calls = [o for o in module.ir.walk() if isinstance(o, OnnxOp) and o.domain == "mine"]
    assert [c.attr("axis") for c in calls] == [1, 0]
    other = igniter.load(proto).fuse(write(tmp_path, TWICE), "other.Op<dim = @axis, kind = 'soft', n = [1, 2]>(x)")
    (first, _) = (o for o in other.ir.walk() if isinstance(o, OnnxOp) and o.domain == "other")
    assert (first.attr("dim"), first.attr("kind"), first.attr("n")) == (1, "soft", [1, 2])


def test_equal_instances_share_a_function() -> None:
    gelu = "{o}d = Div({x}, root) {o}e = Erf({o}d) {o}a = Add({o}e, one) {o}p = Mul({x}, {o}a) {o} = Mul({o}p, half) "
    nodes = "".join(gelu.format(x=x, o=o) for x, o in (("x", "u"), ("u", "v"), ("v", "w"))) + "y = Neg(w)"
    module = fused(net(nodes), "gelu", X)
    assert ops(module) == ["fused.Gelu"] * 3 + ["Neg"]
    assert sum(op.name == "onnx.function" for op in module.ir.ops) == 1
    inlined = module.run_passes("inline-functions")
    assert ops(inlined) == ["Div", "Erf", "Add", "Mul", "Mul"] * 3 + ["Neg"]


def test_one_pattern_after_another(tmp_path: Path) -> None:
    """The second asks for dims of what the first made, also in a model that was saved in between."""
    proto = net(
        "d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) g = Mul(p, half)"
        " sum = Add(g, x) y = LayerNormalization<axis = -1>(sum, scale, bias)"
    )
    module = igniter.load(proto).fuse("gelu")
    module.save(tmp_path / "m.onnx")
    for each in (module, igniter.load(tmp_path / "m.onnx")):
        each.fuse("skip-layer-norm")
        assert ops(each) == ["fused.Gelu", "fused.SkipLayerNorm"]
        for a, b in zip(run(proto, X), run(each.to_onnx(), X), strict=True):
            assert np.array_equal(a, b)


def test_a_file_of_onnx_is_a_pattern(tmp_path: Path) -> None:
    pattern = model("Halves (float[?] x) => (float[?] y) <float h = {0.5}> { t = Tanh(x) y = Mul(t, h) }")
    onnx.save(pattern, tmp_path / "p.onnx")
    assert ops(fused(net("t = Tanh(x) y = Mul(half, t)"), tmp_path / "p.onnx", X)) == ["fused.Halves"]


def test_half_precision_and_subgraphs() -> None:
    nodes = "d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, half)"
    proto = model(f"g (float16[b, 4] x) => (float16[b, 4] y) <{SCALARS}> {{ {nodes} }}")
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    assert ops(fused(proto, "gelu", {"x": random(2, 4, dtype=np.float16)})) == ["fused.Gelu"]
    branch = f"then () => (float[b, s, 4] y) {{ {nodes} }}"
    other = "other () => (float[b, s, 4] n) { n = Neg(x) }"
    inputs = "float[b, s, 4] x, bool c"
    proto = net(f"r = If<then_branch = {branch}, else_branch = {other}>(c)", inputs, out="r")
    for flag in (True, False):
        assert ops(fused(proto, "gelu", {**X, "c": np.array(flag)})) == ["If", "fused.Gelu", "Neg"]


HEAD, TAIL = "d = Div(x, root) e = Erf(d) a = Add(e, one)", "y = Mul(p, half)"
MISSES = [
    (f"d = Div(x, one) e = Erf(d) a = Add(e, one) p = Mul(x, a) {TAIL}", "", "1.41421354 is wanted, and found is 1"),
    (f"{HEAD} p = Mul(d, a) {TAIL}", "", "it is input 'x' at one place and Div 'div_0' at another"),
    (f"{HEAD} p = Mul(x, a) {TAIL} o = Neg(p)", " o", "'neg_5' outside uses what Mul 'mul_3' makes"),
    (f"d = Div(x, root) e = Tanh(d) a = Add(e, one) p = Mul(x, a) {TAIL}", "", "Erf is wanted, and found is Tanh"),
    (f"d = Div(x, root) e = Erf(d) a = Add(e, x) p = Mul(x, a) {TAIL}", "", "a constant is wanted"),
]


@pytest.mark.parametrize(("nodes", "more", "reason"), MISSES)
def test_what_does_not_match_says_why(nodes: str, more: str, reason: str) -> None:
    with pytest.raises(IgniterError, match="nothing in the model matches gelu: 'mul_4': ") as error:
        igniter.load(net(nodes, out=f"y{more}")).fuse("gelu")
    assert reason in str(error.value)


def test_nodes_that_hand_on_what_they_read_are_part_of_an_instance() -> None:
    """Exporters leave casts to the type that is there, dropouts and identities between the nodes of a pattern."""
    text = """h = Mul(x, half) d = Div(x, root) c = Cast<to = 1>(d) i = Identity(c) e = Erf(i) p = Dropout(e)
      a = Add(p, one) y = Mul(h, a)"""
    assert ops(fused(net(text), "gelu", X)) == ["fused.Gelu"]
    rounded = text.replace("<to = 1>(d)", "<to = 10>(d) w = Cast<to = 1>(c)").replace("Identity(c)", "Identity(w)")
    with pytest.raises(IgniterError, match="Div is wanted, and found is Identity"):
        igniter.load(net(rounded)).fuse("gelu")
    with pytest.raises(IgniterError, match="outside uses what Identity 'identity_3' makes"):
        igniter.load(net(text + " o = Neg(i)", out="y o")).fuse("gelu")


def test_a_use_by_shape_arithmetic_says_what_drops_it() -> None:
    text = f"{HEAD} p = Mul(x, a) {TAIL} s = Shape(p) o = Cast<to = 1>(s)"
    with pytest.raises(IgniterError, match=r"igniter shapes --compute-graph"):
        igniter.load(net(text, out="y o")).fuse("gelu")


CONDITIONS = [
    ("# rank x 2", "its rank is 3, and not 2"),
    ("# shape x [_, 5, 4]", "its axis 1 is s, and not 5"),
    ("# shape x [n, n, _]", "its axis 1 is s, and not b"),
    ("# type x float16", "its type is float32, and not float16"),
    ("# constant x", "a constant is wanted, and found is input 'x'"),
    ("# rank x 3\n# shape x [b, s, 4]\n# type s float32", None),
]


@pytest.mark.parametrize(("lines", "reason"), CONDITIONS)
def test_conditions(lines: str, reason: str | None, tmp_path: Path) -> None:
    proto, path = net("a = Softmax<axis = 1>(x) y = Add(a, a)"), write(tmp_path, f"{lines}\n{TWICE}")
    if reason is None:
        fused(proto, path, X)
        return
    with pytest.raises(IgniterError) as error:
        igniter.load(proto).fuse(path)
    assert reason in str(error.value)


def test_tolerance_and_any(tmp_path: Path) -> None:
    text = '<domain: "m", opset_import: ["" : 17]> P (x) => (y) { c = Constant <value_float = 1.4> () y = Mul (x, c) }'
    proto = net("y = Mul(x, root)")
    with pytest.raises(IgniterError, match="nothing in the model matches"):
        igniter.load(proto).fuse(write(tmp_path, text))
    assert ops(fused(proto, write(tmp_path, f"# tolerance 0.02\n{text}"), X)) == ["m.P"]
    free = '# any s\n<domain: "m", opset_import: ["" : 17]> P (x) => (y) { s = Softmax (x) y = Neg (s) }'
    assert ops(fused(net("s = Softmax<axis = 0>(x) y = Neg(s)"), write(tmp_path, free), X)) == ["m.P"]


BAD = [
    ("P (x) => (y) { y = Neg (x) ", "pattern 1 is not an ONNX function"),
    ("# ", "has no pattern"),
    ("# whatever x\n" + TWICE, "no condition in .* called 'whatever'; there are any, as, constant"),
    ("# rank q 2\n" + TWICE, "names 'q', and the values of Twice are x"),
    ("# type x float99\n" + TWICE, "names no element type"),
    (TWICE.replace("y = Add (s, s)", "t = Neg (x) y = Add (s, s)"), "does not depend on 't'"),
    (TWICE.replace("(x) =>", "(x, z) =>"), "no node of pattern Twice reads the input 'z'"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_patterns_that_are_wrong(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=message):
        igniter.load(net("y = Neg(x)")).fuse(write(tmp_path, text))


def test_names_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=r"no pattern called 'gelo'; .*did you mean 'gelu'"):
        igniter.load(net("y = Neg(x)")).fuse("gelo")
    with pytest.raises(IgniterError, match=r"no pattern at .*missing.pattern"):
        igniter.load(net("y = Neg(x)")).fuse(tmp_path / "missing.pattern")
    proto = net("a = Softmax<axis = 1>(x) y = Add(a, a)")
    with pytest.raises(IgniterError, match="is to get @size, and the parameters of Twice are axis"):
        igniter.load(proto).fuse(write(tmp_path, TWICE), "my.Op<size = @size>")
    with pytest.raises(IgniterError, match="pattern Twice has no value 'w'"):
        igniter.load(proto).fuse(write(tmp_path, TWICE), "my.Op(w)")
    with pytest.raises(IgniterError, match="is no op to fuse to"):
        parse_target("my.Op(")


def test_operands_and_results_are_counted(tmp_path: Path) -> None:
    """A bias that the pattern does not have, and results of one node of the pattern that are of two of the model."""
    weights = f"float[1, 1, 1, 1] w = {{2}}, float[1] k = {{1}}, {SCALARS}"
    proto = net("c = Conv(x, w, k) n = BatchNormalization(c, k, k, k, k) y = Relu(n)", "float[1, 1, 4, 5] x", weights)
    proto.graph.output[0].type.tensor_type.shape.dim.add()
    module = fused(proto, "conv-bn-relu", {"x": random(1, 1, 4, 5)})
    (call,) = (o for o in module.ir.walk() if isinstance(o, OnnxOp) and o.domain == "fused")
    assert len(call.operands) == 7
    without = '# any c\n<domain: "m", opset_import: ["" : 17]> P (x, w) => (y) { c = Conv (x, w) y = Relu (c) }'
    plain = net("c = Conv(x, w, k) y = Relu(c)", "float[1, 1, 4, 5] x", weights)
    with pytest.raises(IgniterError, match="Conv 'c' does not: 'conv_0' has 3 operands, and the pattern's 2"):
        igniter.load(plain).fuse(write(tmp_path, without))
    halves = """<domain: "m", opset_import: ["" : 17]>
P (x) => (y) { a, b = Split <axis = 2> (x) y = Sub (a, b) }"""
    path = write(tmp_path, halves, "halves.pattern")
    assert ops(fused(net("a, b = Split<axis = 2>(x) y = Sub(a, b)"), path, X)) == ["m.P"]
    two = net("a, b = Split<axis = 2>(x) n = Neg(x) c, d = Split<axis = 2>(n) y = Sub(a, d) o = Sub(c, b)", out="y o")
    with pytest.raises(IgniterError, match=r"its results are of 'split_\d' and 'split_\d'"):
        igniter.load(two).fuse(path)


def test_an_instance_that_is_not_convex_is_left() -> None:
    """What the second output gives goes into an input of the same instance."""
    proto = net(
        "sum = Add(x, z) r = ReduceMean<axes = [0, 1], keepdims = 0>(sum)"
        " y = LayerNormalization<axis = -1>(sum, r, bias) o = Relu(sum)",
        inputs="float[b, s, 4] x, float[b, s, 4] z",
        out="y o",
    )
    with pytest.raises(IgniterError, match="an input depends on an output of the instance"):
        igniter.load(proto).fuse("skip-layer-norm")
