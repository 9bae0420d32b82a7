"""Contractions through the whole compiler: MatMul and its like with what stands before and behind them, and attention.

Every kernel must compile (`strict`), nothing may be left to ONNX Runtime, and what comes out is ORT's within rounding.
Sizes are chosen around those of tiles: fewer rows than a tile, one more, columns that fill no panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import igniter

Array = np.ndarray[Any, Any]

EVERYTHING = "form-fusion-regions{contractions=all singletons=all},pack-weights"
NAMES = {
    "f2": "float16",
    "f4": "float",
    "f8": "double",
    "u1": "uint8",
    "i1": "int8",
    "i4": "int32",
    "i8": "int64",
    "b1": "bool",
}
ROWS = [{"m": m} for m in (0, 1, 2, 7, 8, 9, 33)]


@dataclass(frozen=True)
class Case:
    """A graph as text. `inputs` and `weights` are dims by name, with a type before a colon where it is not f32."""

    body: str
    outputs: str
    inputs: Mapping[str, str]
    weights: Mapping[str, str | Array] = field(default_factory=dict[str, "str | Array"])
    sizes: Sequence[Mapping[str, int]] = ({},)
    special: bool = False
    """True if the inputs have infinities and NaN among them."""
    rtol: float = 2e-5


def typed(text: str) -> tuple[np.dtype[Any], list[str]]:
    kind, colon, dims = text.rpartition(":")
    return np.dtype(kind if colon else "f4"), dims.split()


def values(dtype: np.dtype[Any], shape: Sequence[int], rng: np.random.Generator, special: bool = False) -> Array:
    if dtype.kind == "b":
        return rng.random(shape) < 0.7
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if dtype == np.int8:
            low, high = -64, 64  # On x86-64 without VNNI, ONNX Runtime's sums of u8 times more than that saturate.
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    made = rng.standard_normal(shape).astype(dtype)
    if special and made.size > 8:
        flat = made.reshape(-1)
        flat[rng.integers(0, flat.size, 4)] = [np.inf, -np.inf, np.nan, 0]
    return made


def model_of(case: Case, rng: np.random.Generator) -> onnx.ModelProto:
    inputs: list[str] = []
    for name, text in case.inputs.items():
        dtype, dims = typed(text)
        inputs.append(f"{NAMES[dtype.str[1:]]}[{', '.join(dims)}] {name}")
    opsets = '"" : 17, "com.microsoft" : 1'
    head = f"<ir_version: 8, opset_import: [{opsets}]>\ngraph ({', '.join(inputs)}) => ({case.outputs})"
    model = onnx.parser.parse_model(f"{head} {{\n{case.body}\n}}")
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    for name, given in case.weights.items():
        if isinstance(given, str):
            dtype, dims = typed(given)
            given = values(dtype, [int(d) for d in dims], rng)
        model.graph.initializer.append(onnx.numpy_helper.from_array(given, name))
    return model


def feeds_of(case: Case, rng: np.random.Generator) -> list[dict[str, Array]]:
    feeds: list[dict[str, Array]] = []
    for sizes in case.sizes:
        shapes = {n: typed(t) for n, t in case.inputs.items()}
        feeds.append(
            {
                n: values(dtype, [sizes[d] if d in sizes else int(d) for d in dims], rng, case.special)
                for n, (dtype, dims) in shapes.items()
            }
        )
    return feeds


def reference(model: onnx.ModelProto, feeds: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
    """What ORT gives, node by node."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [session.run(None, dict(feed)) for feed in feeds]


def check(case: Case, target: str = "native", threads: int = 1, passes: str = EVERYTHING) -> None:
    """Compiles the graph and compares it at all its sizes."""
    rng = np.random.default_rng(len(case.body))
    model = model_of(case, rng)
    feeds = feeds_of(case, rng)
    expected = reference(model, feeds)
    options = igniter.CompileOptions(target=target, fusion_passes=passes)
    artifact = igniter.compile(model, target=target, options=options, verify=False, strict=True, cache=False)
    report: dict[str, Any] = artifact.report
    assert report["nodes_after"] == report["regions"], "nodes that are left to ONNX Runtime"
    session = artifact.session(intra_op_num_threads=threads)
    for feed, wanted in zip(feeds, expected, strict=True):
        for got, want in zip(session.run(None, feed), wanted, strict=True):
            shapes = {n: a.shape for n, a in feed.items()}
            assert got.dtype == want.dtype and got.shape == want.shape, f"{got.shape}, not {want.shape}, of {shapes}"
            if want.dtype.kind != "f":
                np.testing.assert_array_equal(got, want, err_msg=str(shapes))
                continue
            rtol = {2: 2e-3, 4: case.rtol, 8: 1e-12}[want.itemsize]
            scale = float(np.abs(want[np.isfinite(want)]).max(initial=0))
            np.testing.assert_allclose(got, want, rtol, rtol * scale, err_msg=str(shapes))


# -- weights, and what stands behind them -----------------------------------------------------------------------------

GELU = """
  g0 = Div(y0, root)
  g1 = Erf(g0)
  g2 = Add(g1, one)
  g3 = Mul(y0, g2)
  {0} = Mul(g3, half)
"""
SCALARS = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}

WEIGHTS = {
    "matmul bias gelu": Case(
        "p = MatMul(x, w)\n y0 = Add(p, b)" + GELU.format("y"),
        "y",
        {"x": "m 130"},
        {"w": "130 100", "b": "100", **{n: np.asarray(a) for n, a in SCALARS.items()}},
        ROWS,
    ),
    "one panel that is not full": Case("y = MatMul(x, w)", "y", {"x": "m 5"}, {"w": "5 4"}, ROWS),
    "three columns": Case("y = MatMul(x, w)", "y", {"x": "m 64"}, {"w": "64 3"}, ROWS),
    "one of depth": Case("p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "m 1", "r": "m 17"}, {"w": "1 17"}, ROWS),
    "no depth": Case("p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "m 0", "r": "m 17"}, {"w": "0 17"}, ROWS),
    "no columns": Case("p = MatMul(x, w)\n y = Relu(p)", "y", {"x": "m 5"}, {"w": "5 0"}, ROWS),
    "gemm": Case(
        "y = Gemm<transA = 1, transB = 1, alpha = 0.5, beta = 2.0>(x, w, b)",
        "y",
        {"x": "64 m"},
        {"w": "49 64", "b": "1 49"},
        ROWS,
    ),
    "a vector": Case("y = MatMul(x, w)", "y", {"x": "130"}, {"w": "130 47"}),
    "a stack of weights": Case(
        "p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "2 1 m 64", "r": "m 1"}, {"w": "3 64 48"}, ROWS
    ),
    "einsum": Case('y = Einsum<equation = "jk,bij->bik">(w, x)', "y", {"x": "m 3 64"}, {"w": "64 20"}, ROWS),
    "both kept": Case(
        "p = MatMul(x, w)\n a = Relu(p)\n b = Mul(p, r)\n t = Transpose<perm = [1, 0]>(p)\n c = Neg(t)",
        "a, p, b, c",
        {"x": "m 64", "r": "m 48"},
        {"w": "64 48"},
        ROWS,
    ),
    "special values": Case(
        "p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "9 64", "r": "48"}, {"w": "64 48"}, special=True
    ),
    "double": Case("p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "f8:m 64", "r": "f8:m 1"}, {"w": "f8:64 17"}, ROWS),
    "rows are normalised": Case(
        "p = MatMul(x, w)\n q = Add(p, r)\n y = LayerNormalization(q, s, b)\n z = Softmax(y)\n"
        "v = ReduceMax<axes = [-1]>(q)",
        "y, z, v",
        {"x": "m 64", "r": "m 100"},
        {"w": "64 100", "s": "100", "b": "100"},
        ROWS[1:],
    ),
    "a weight of two regions": Case(
        "p = MatMul(x, w)\n q = MatMul(z, w)\n a = Relu(p)\n b = Neg(q)\n c = Add(w, w)",
        "a, b, c",
        {"x": "m 48", "z": "n 48"},
        {"w": "48 48"},
        [{"m": 9, "n": 1}],
    ),
    "a weight both ways": Case(
        "p = MatMul(x, w)\n r = Relu(p)\n y = Gemm<transB = 1>(r, w)", "y", {"x": "m 48"}, {"w": "48 48"}, ROWS
    ),
    "gathered, sliced and moved": Case(
        "g = Gather<axis = 0>(x, i)\n t = Transpose<perm = [1, 2, 0]>(g)\n s = Slice(t, c0, c1, c2)\n"
        "p = MatMul(s, w)\n y = Relu(p)",
        "y",
        {"x": "7 m 5"},
        {"i": np.array([3] * 70), "c0": np.array([2]), "c1": np.array([66]), "c2": np.array([2]), "w": "64 20"},
        ROWS,
    ),
}

HALVES = {
    "half": Case("p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "f2:m 130", "r": "f2:m 1"}, {"w": "f2:130 100"}, ROWS),
    "half, transposed": Case(
        "t = Transpose<perm = [1, 0]>(x)\n y = Gemm<transB = 1>(t, w, b)",
        "y",
        {"x": "f2:67 m"},
        {"w": "f2:49 67", "b": "f2:49"},
        ROWS,
    ),
    "half, computed": Case(
        "a = Relu(x)\n p = MatMul(a, z)\n y = Sigmoid(p)",
        "y",
        {"x": "f2:2 m 33", "z": "f2:2 33 n"},
        {},
        [{"m": m, "n": n} for m, n in ((1, 1), (7, 16), (9, 33), (5, 0))],
    ),
    "half, cast": Case(
        "a = Cast<to = 1>(x)\n p = MatMul(a, w)\n q = Cast<to = 10>(p)\n y = Neg(q)",
        "y",
        {"x": "f2:m 64"},
        {"w": "64 48"},
        ROWS,
    ),
    "half, one vector": Case("y = MatMul(x, w)", "y", {"x": "f2:130"}, {"w": "f2:130 47"}),
    "half, attention": Case(
        "t = Transpose<perm = [0, 1, 3, 2]>(k)\n s = MatMul(q, t)\n c = Mul(s, f)\n a = Add(c, mask)\n"
        "w = Softmax(a)\n y = MatMul(w, v)",
        "y",
        {"q": "f2:2 4 n 64", "k": "f2:2 4 m 64", "v": "f2:2 4 m 64", "mask": "f2:2 1 1 m"},
        {"f": np.array(0.125, np.float16)},
        [{"n": n, "m": m} for n, m in ((1, 1), (1, 9), (9, 17), (33, 33), (0, 3))],
    ),
    "half, special": Case(
        "p = MatMul(x, w)\n y = Add(p, r)", "y", {"x": "f2:9 64", "r": "f2:48"}, {"w": "f2:64 48"}, special=True
    ),
}

BYTES = {
    "bytes": Case(
        "p = MatMulInteger(x, w)\n c = Cast<to = 1>(p)\n y = Mul(c, r)",
        "p, y",
        {"x": "u1:m 64", "r": "m 1"},
        {"w": "i1:64 20"},
        ROWS,
    ),
    "signed bytes": Case("y = MatMulInteger(x, w)", "y", {"x": "i1:m 128"}, {"w": "i1:128 48"}, ROWS),
    "a depth of no groups": Case("y = MatMulInteger(x, w)", "y", {"x": "u1:m 130"}, {"w": "i1:130 48"}, ROWS),
    # Four steps of depth are one number in a register: they must be side by side in memory.
    "bytes by columns": Case(
        "t = Transpose<perm = [1, 0]>(x)\n y = MatMulInteger(t, w)", "y", {"x": "u1:64 m"}, {"w": "i1:64 20"}, ROWS
    ),
    "every other byte": Case(
        "s = Slice(x, c0, c1, c2, c3)\n y = MatMulInteger(s, w)",
        "y",
        {"x": "i1:m 128"},
        {"c0": np.array([0]), "c1": np.array([128]), "c2": np.array([1]), "c3": np.array([2]), "w": "i1:64 20"},
        ROWS,
    ),
    "bytes backwards": Case(
        "s = Slice(x, c0, c1, c2, c3)\n y = MatMulInteger(s, w)",
        "y",
        {"x": "i1:m 64"},
        {"c0": np.array([-1]), "c1": np.array([-99]), "c2": np.array([1]), "c3": np.array([-1]), "w": "i1:64 20"},
        ROWS,
    ),
    "zero points": Case(
        "y = MatMulInteger(x, w, a, b)",
        "y",
        {"x": "u1:m 64"},
        {"w": "i1:64 20", "a": np.array(3, np.uint8), "b": "i1:20"},
        ROWS,
    ),
}

# -- two computed operands --------------------------------------------------------------------------------------------

SIZES = [
    {"m": m, "n": n, "k": k} for m, n, k in ((1, 1, 1), (9, 17, 5), (7, 48, 64), (33, 49, 130), (8, 16, 0), (0, 3, 2))
]

PRODUCTS = {
    "all symbolic": Case("p = MatMul(x, y)\n z = Relu(p)", "z", {"x": "m k", "y": "k n"}, sizes=SIZES),
    "columns in memory": Case(
        "t = Transpose<perm = [0, 2, 1]>(y)\n p = MatMul(x, t)\n z = Add(p, r)",
        "z",
        {"x": "2 m k", "y": "2 n k", "r": "n"},
        sizes=SIZES,
    ),
    "batches that broadcast": Case(
        "p = MatMul(x, y)\n z = Mul(p, r)", "z", {"x": "2 1 m k", "y": "3 k n", "r": "2 1 m 1"}, sizes=SIZES[:4]
    ),
    "fused": Case(
        "z = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.125>(x, y)",
        "z",
        {"x": "2 k m", "y": "2 n k"},
        sizes=[s for s in SIZES if s["k"]],
    ),
    "einsum of heads": Case(
        'p = Einsum<equation = "bihd,bjhd->bhij">(x, y)\n z = Softmax(p)',
        "z",
        {"x": "b m 2 k", "y": "b n 2 k"},
        sizes=[{**s, "b": 2} for s in SIZES if s["k"] and s["m"]],
    ),
    "chain": Case(
        "p = MatMul(x, y)\n q = Relu(p)\n z = MatMul(q, w)",
        "z",
        {"x": "m k", "y": "k n", "w": "n 20"},
        sizes=[{**s} for s in SIZES],
    ),
    "its own columns": Case(
        "t = Transpose<perm = [1, 0]>(x)\n p = MatMul(x, t)\n u = Transpose<perm = [1, 0]>(p)\n z = Add(p, u)\n"
        "v = MatMul(p, p)",
        "z, v",
        {"x": "m 5"},
        sizes=[{"m": m} for m in (1, 8, 33)],
    ),
    "columns are normalised": Case(
        "p = MatMul(x, y)\n s = Softmax<axis = 0>(p)\n z = MatMul(s, w)",
        "z",
        {"x": "m 64", "y": "64 n", "w": "n 32"},
        sizes=[{"m": 1, "n": 9}, {"m": 33, "n": 50}],
    ),
    "special values": Case(
        "p = MatMul(x, y)\n z = Add(p, r)", "z", {"x": "9 20", "y": "20 17", "r": "17"}, special=True
    ),
    "sums of both": Case(
        "p = MatMul(x, y)\n a = ReduceSum(p, last)\n b = ReduceSum(p, first)",
        "a, b",
        {"x": "m 64", "y": "64 n"},
        {"last": np.array([-1]), "first": np.array([0])},
        sizes=[{"m": 9, "n": 50}],
    ),
}

# -- attention --------------------------------------------------------------------------------------------------------

HEADS = """
  q0 = Reshape(q, split)
  qh = Transpose<perm = [0, 2, 1, 3]>(q0)
  k0 = Reshape(k, split)
  kt = Transpose<perm = [0, 2, 3, 1]>(k0)
  v0 = Reshape(v, split)
  vh = Transpose<perm = [0, 2, 1, 3]>(v0)
"""
MERGE = """
  o0 = Transpose<perm = [0, 2, 1, 3]>(oh)
  o = Reshape(o0, merge)
"""
LENGTHS = [{"b": b, "s": s, "t": t} for b, s, t in ((1, 1, 1), (2, 7, 50), (1, 17, 16), (1, 50, 2))]


def attention(scores: str, dims: int, inputs: Mapping[str, str], weights: Mapping[str, Any] | None = None) -> Case:
    """Two heads as exporters write them; `scores` goes from `p` to `m`, with its own inputs."""
    width = 2 * dims
    return Case(
        f"{HEADS} p = MatMul(qh, kt)\n{scores}\n w = Softmax(m)\n oh = MatMul(w, vh)\n{MERGE}",
        "o",
        {"q": f"b s {width}", "k": f"b t {width}", "v": f"b t {width}", **inputs},
        {
            "split": np.array([0, 0, 2, dims]),
            "merge": np.array([0, 0, width]),
            "scale": np.float32(dims**-0.5).reshape(()),
            **(weights or {}),
        },
        LENGTHS,
    )


CAUSAL = """
  d = Shape<start = 2>(p)
  ones = Expand(one, d)
  lower = Trilu<upper = 0>(ones)
  keep = Cast<to = 9>(lower)
  m = Where(keep, p, never)
"""

ATTENTION = {
    "scaled and masked": attention("p1 = Mul(p, scale)\n m = Add(p1, mask)", 64, {"mask": "b 1 1 t"}),
    "mask of all heads": attention(
        "p1 = Div(p, root)\n m = Add(p1, mask)", 8, {"mask": "1 1 s t"}, {"root": np.float32(8**0.5).reshape(())}
    ),
    "causal": attention(CAUSAL, 40, {}, {"one": np.float32(1).reshape(()), "never": np.float32(-np.inf).reshape(())}),
    "biased by distance": attention(
        "far = Mul(slopes, where)\n p1 = Add(p, far)\n m = Add(p1, bias)",
        32,
        {"where": "t", "bias": "1 2 s t"},
        {"slopes": "2 1 1"},
    ),
    "rows that see nothing": attention(
        "m = Where(mask, p, never)", 128, {"mask": "b1:b 1 s t"}, {"never": np.float32(-np.inf).reshape(())}
    ),
    "not normalised": Case(
        "t = Transpose<perm = [0, 2, 1]>(k)\n p = MatMul(q, t)\n o = MatMul(p, v)",
        "o",
        {"q": "b s 80", "k": "b t 80", "v": "b t 80"},
        sizes=LENGTHS,
    ),
    "weights returned": Case(
        "p = MatMul(q, k)\n w = Softmax(p)\n o = MatMul(w, v)",
        "w, o",
        {"q": "b 2 s 64", "k": "b 2 64 t", "v": "b 2 t 64"},
        sizes=LENGTHS,
    ),
    "no keys": Case(
        "p = MatMul(q, k)\n w = Softmax(p)\n o = MatMul(w, v)",
        "o",
        {"q": "b 2 s 64", "k": "b 2 64 t", "v": "b 2 t 64"},
        sizes=[{"b": b, "s": s, "t": t} for b, s, t in ((1, 1, 0), (2, 9, 0), (1, 0, 5), (0, 3, 7), (2, 9, 33))],
    ),
    "grouped heads": Case(
        "u = Unsqueeze(k, two)\n e = Expand(u, groups)\n f = Reshape(e, heads)\n"
        "t = Transpose<perm = [0, 1, 3, 2]>(f)\n"
        "u1 = Unsqueeze(v, two)\n e1 = Expand(u1, groups)\n g = Reshape(e1, heads)\n"
        "p = MatMul(q, t)\n w = Softmax(p)\n o = MatMul(w, g)",
        "o",
        {"q": "1 4 s 32", "k": "1 2 17 32", "v": "1 2 17 32"},
        {"two": np.array([2]), "groups": np.array([1, 2, 2, 17, 32]), "heads": np.array([1, 4, 17, 32])},
        [{"s": s} for s in (1, 8, 17)],
    ),
    "decode with a cache": Case(
        "k1 = Concat<axis = 2>(past_k, k)\n v1 = Concat<axis = 2>(past_v, v)\n t = Transpose<perm = [0, 1, 3, 2]>(k1)\n"
        "p = MatMul(q, t)\n w = Softmax(p)\n o = MatMul(w, v1)",
        "o, k1, v1",
        {"q": "b 2 1 64", "k": "b 2 1 64", "v": "b 2 1 64", "past_k": "b 2 c 64", "past_v": "b 2 c 64"},
        sizes=[{"b": 1, "c": c} for c in (0, 1, 16, 49)],
    ),
}

ALL = {**WEIGHTS, **HALVES, **BYTES, **PRODUCTS, **ATTENTION}
QUICK = (
    *("matmul bias gelu", "gemm", "both kept", "rows are normalised", "bytes", "bytes by columns"),
    *("columns in memory", "chain", "scaled and masked", "decode with a cache", "no keys", "half", "half, attention"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_contraction(name: str) -> None:
    check(ALL[name], threads=2)


@pytest.mark.full
@pytest.mark.parametrize("target", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("name", ALL)
def test_contraction_on_every_cpu(name: str, target: str) -> None:
    """Tiles of other sizes."""
    check(ALL[name], target)


@pytest.mark.parametrize(
    ("nodes", "rows", "left"),
    [
        ("y = MatMulInteger(a, b, z)", 128, True),
        ("y = MatMulInteger(a, b)", 128, False),
        ("y = MatMulInteger(a, b, z)", 2, False),
        ('y = Einsum<equation = "ij,jk,lk->il">(f, g, g)', 64, True),
        ('y = Einsum<equation = "ij,jk->ik">(f, g)', 64, False),
    ],
)
def test_products_without_a_micro_kernel_are_left_unless_small(nodes: str, rows: int, left: bool) -> None:
    """ONNX Runtime has kernels for them; here they would be loops over single products."""
    width = 64 if rows > 2 else 8
    kind = "int32" if "Integer" in nodes else "float"
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g (uint8[{rows},{width}] a, int8[{width},{width}] b, uint8 z, float[{rows},{width}] f, float[{width},{width}] g)
        => ({kind}[{rows},{width}] y) {{ {nodes} }}
    """
    module = igniter.load(onnx.parser.parse_model(text)).run_passes("cpu-onnx,cpu-fusion")
    assert ("fusion.region" not in str(module)) is left
