"""Random nodes with a seed: the generator's published vectors, its place among the elements, and what is drawn from it.

`stream` is the generator once more, in numpy's integers; the vectors are those of Random123 (`kat_vectors`), which its
authors publish.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import i64

import igniter
from igniter.dialects.onnx.lowering.builder import KernelBuilder
from igniter.dialects.onnx.ops.random import philox, u32
from igniter.dialects.sym import tensor_of
from igniter.verification.interp.structured import run_kernel
from tests.ops.single_node import model_of, refusal

Array = np.ndarray[Any, Any]
OPTIONS = igniter.CompileOptions(
    onnx_passes="cpu-onnx,compile-draws", fusion_passes="form-fusion-regions{contractions=all singletons=all}"
)
F32 = np.float32
SEED = 2.5
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def python_philox(counter: Array, key: tuple[int, int]) -> Array:
    """The words of counters, one a row."""
    a, b, c, d = (counter[:, k].astype(np.uint64) for k in range(4))
    low = np.uint64(0xFFFFFFFF)
    for number in range(10):
        k0, k1 = (np.uint64((key[j] + number * w) & 0xFFFFFFFF) for j, w in enumerate((0x9E3779B9, 0xBB67AE85)))
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (q >> np.uint64(32)) ^ b ^ k0, q & low, (p >> np.uint64(32)) ^ d ^ k1, p & low
    return np.stack([a, b, c, d], 1)


def stream(count: int, seed: float | int = SEED) -> Array:
    """The first words of the stream of a seed."""
    key = (
        (seed & 0xFFFFFFFF, seed >> 32) if isinstance(seed, int) else (*struct.unpack("<I", struct.pack("<f", seed)), 0)
    )
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    zero = np.zeros_like(blocks)
    return python_philox(np.stack([blocks, zero, zero, zero], 1), key).reshape(-1)[:count]


def uniforms(count: int, dtype: Any = F32, seed: float | int = SEED) -> Array:
    """In [0, 1): 24 bits of a word, or 53 of two."""
    if dtype == F32:
        return (stream(count, seed) >> np.uint64(8)).astype(F32) * F32(2.0**-24)
    high, low = stream(2 * count, seed).reshape(-1, 2).T
    return ((high << np.uint64(21)) | (low >> np.uint64(11))).astype(np.float64) * 2.0**-53


def drawn(
    op: str, inputs: Any, attrs: dict[str, Any], outputs: int = 1, threads: int = 1, **options: Any
) -> list[Array]:
    """The results of a compiled node."""
    model = model_of(op, inputs, {"seed": SEED, **attrs}, outputs=outputs, dynamic=True)
    artifact = igniter.load(model).compile(options=OPTIONS, verify=False, **options)
    assert artifact.report["left_to_onnxruntime"] == []
    session = artifact.session(log_severity_level=4, intra_op_num_threads=threads)
    return session.run(None, {f"x{k}": a for k, a in enumerate(inputs)})


@pytest.mark.parametrize("vector", range(3))
def test_published_vectors(vector: int) -> None:
    counter, key, expected = map(words, VECTORS[vector])
    kernel = KernelBuilder([])
    nest = kernel.nest("philox")
    made = philox([nest.const(c, u32) for c in counter], [nest.const(k, u32) for k in key])
    results = nest.finish(*(("none", w.to(i64), [], tensor_of(i64, [])) for w in made))
    assert [int(w) for w in run_kernel(kernel.finish("k", results), [])] == expected
    assert python_philox(np.array([counter], np.uint64), (key[0], key[1])).tolist() == [expected]


@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_uniform_is_the_stream(dtype: Any) -> None:
    x = np.zeros((3, 7, 5), dtype)
    (got,) = drawn("RandomUniformLike", [x], {})
    np.testing.assert_array_equal(got.reshape(-1), uniforms(x.size, dtype))
    (got,) = drawn(
        "RandomUniform", [], {"shape": [3, 11], "dtype": 1 if dtype == F32 else 11, "low": -3.0, "high": 5.0}
    )
    np.testing.assert_allclose(got.reshape(-1), uniforms(33, dtype) * dtype(8) - dtype(3), atol=1e-6)
    assert ((got >= -3) & (got < 5)).all()


def test_what_rounds_up_is_below_the_upper_bound() -> None:
    (got,) = drawn("RandomUniform", [], {"shape": [1 << 16], "low": 1.0, "high": float(np.nextafter(F32(1), F32(2)))})
    assert (got == 1).all()


@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_normal_is_by_box_and_muller(dtype: Any) -> None:
    (got,) = drawn("RandomNormal", [], {"shape": [37], "dtype": 1 if dtype == F32 else 11, "mean": 2.0, "scale": 3.0})
    if dtype == F32:
        pairs = stream(40).reshape(-1, 2)
        first, turn = (pairs[:, 0] + 0.5) * 2.0**-32, (pairs[:, 1] >> np.uint64(8)) * 2.0**-24
    else:
        both = uniforms(38, dtype).reshape(-1, 2)
        first, turn = both[:, 0] + 2.0**-54, both[:, 1]
    radius = np.sqrt(-2 * np.log(first.astype(np.float64)))
    expected = np.stack([radius * np.cos(2 * np.pi * turn), radius * np.sin(2 * np.pi * turn)], 1).reshape(-1)
    np.testing.assert_allclose(got, expected[:37] * 3 + 2, atol=1e-5 if dtype == F32 else 1e-13)


@pytest.mark.parametrize("dtype", [F32, np.float64])
def test_distributions(dtype: Any) -> None:
    """Moments and Kolmogorov's distance, at seeds that are fixed: far from what one of 1,000 streams exceeds."""
    from math import erf, sqrt

    count = 50_000
    like = [np.zeros(count, dtype)]
    uniform = drawn("RandomUniformLike", like, {})[0].astype(np.float64)
    normal = drawn("RandomNormalLike", like, {})[0].astype(np.float64)
    assert abs(uniform.mean() - 0.5) < 0.005 and abs(uniform.var() - 1 / 12) < 0.002
    assert abs(normal.mean()) < 0.02 and abs(normal.var() - 1) < 0.03
    assert abs((normal**3).mean()) < 0.06 and abs((normal**4).mean() - 3) < 0.2
    assert abs(np.corrcoef(normal[:-1], normal[1:])[0, 1]) < 0.02
    steps = np.arange(count + 1) / count
    for values in (uniform, np.array([(1 + erf(v / sqrt(2))) / 2 for v in normal])):
        values = np.sort(values)
        distance = max(np.abs(values - steps[1:]).max(), np.abs(values - steps[:-1]).max())
        assert distance * np.sqrt(count) < 1.95


def test_neither_threads_nor_vectors_nor_sizes_matter() -> None:
    x = np.zeros((100_003,), F32)
    whole = drawn("RandomNormalLike", [x], {}, threads=1)[0]
    np.testing.assert_array_equal(whole, drawn("RandomNormalLike", [x], {}, threads=4)[0])
    np.testing.assert_array_equal(whole[:13], drawn("RandomNormalLike", [x[:13]], {})[0])
    assert not np.array_equal(whole[:13], drawn("RandomNormalLike", [x[:13]], {"seed": 3.0})[0])
    assert drawn("RandomNormalLike", [x[:0]], {})[0].shape == (0,)


@pytest.mark.parametrize("dtype", [np.float16, F32, np.float64])
def test_bernoulli_is_that_of_onnxruntime(dtype: Any) -> None:
    p = np.random.default_rng(0).random((40, 25)).astype(dtype)
    p[0, :3] = 0, 1, np.nan
    (got,) = drawn("Bernoulli", [p], {"dtype": 6})
    wide = np.float64 if dtype == np.float64 else F32
    np.testing.assert_array_equal(got.reshape(-1), uniforms(p.size, wide) >= p.reshape(-1).astype(wide))
    assert got.dtype == np.int32 and got[0, :3].tolist() == [1, 0, 0]
    import onnxruntime

    # 1 with probability 1 - p: ONNX's own function of the op says so.
    model = model_of("Bernoulli", [np.full(4000, 0.9, F32)], {"seed": SEED})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {"x0": np.full(4000, 0.9, F32)}
    assert session.run(None, feed)[0].mean() < 0.15
    assert drawn("Bernoulli", [feed["x0"]], {})[0].mean() < 0.15


@pytest.mark.parametrize("code", [6, 7])
def test_multinomial(code: int) -> None:
    logits = np.log(np.array([[0.1, 0.2, 0.7, 0.0], [4, 4, 4, 4], [1e-30, 1e30, 1, 0]], F32).clip(1e-45))
    logits[0, 3], logits[2, 0] = -np.inf, np.nan
    (got,) = drawn("Multinomial", [logits], {"sample_size": 1000, "dtype": code})
    finite = np.where(np.isfinite(logits), logits, -np.inf).astype(np.float64)
    sums = np.cumsum(np.exp(finite - finite.max(1, keepdims=True)), 1)
    at = uniforms(3000, np.float64).reshape(3, 1000) * sums[:, -1:]
    np.testing.assert_array_equal(got, (sums[:, None] <= at[..., None]).sum(-1))
    assert got.dtype == (np.int32 if code == 6 else np.int64)
    assert abs((got[0] == 2).mean() - 0.7) < 0.05 and not (got[0] == 3).any()
    # Where no class is possible, ONNX Runtime gives their number.
    assert (drawn("Multinomial", [np.full((2, 3), -np.inf, F32)], {"sample_size": 2})[0] == 3).all()


@pytest.mark.parametrize("dtype", [np.float16, F32, np.float64])
@pytest.mark.parametrize("ratio", [0.0, 0.25])
def test_dropout(dtype: Any, ratio: float) -> None:
    x = np.random.default_rng(1).normal(size=(9, 13)).astype(dtype)
    x[0, :4] = np.inf, np.nan, -np.inf, 0
    given = np.array(ratio, dtype)
    y, mask = drawn("Dropout", [x, given, np.array(True)], {"seed": 7}, outputs=2)
    wide = np.float64 if dtype == np.float64 else F32
    keep = uniforms(x.size, wide, 7).reshape(x.shape) >= wide(ratio)
    np.testing.assert_array_equal(mask, keep)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            y, x * np.where(keep, 1 / (1 - ratio), 0), rtol=1e-3 if dtype == np.float16 else 1e-6
        )
    y, mask = drawn("Dropout", [x, given, np.array(False)], {"seed": 7}, outputs=2)
    np.testing.assert_array_equal(y, x)
    assert mask.all()


@pytest.mark.parametrize("ratio", [1.0, -0.1, np.nan])
def test_dropout_refuses_a_ratio_that_is_none(ratio: float) -> None:
    with pytest.raises(Exception, match="its ratio is not in"):
        drawn("Dropout", [np.ones(5, F32), np.array(ratio, F32), np.array(True)], {"seed": 7})


def test_what_stays_with_onnxruntime() -> None:
    reason = refusal("RandomNormalLike", [np.zeros(3, F32)], {"seed": 1.0})
    assert (
        reason
        == "it draws random values; compile-draws moves it into a kernel, with Igniter's own stream of random numbers"
    )
    assert refusal("RandomNormalLike", [np.zeros(3, F32)]) == "it draws different values in each run"

    def left(op: str, inputs: Any, attrs: dict[str, Any]) -> str:
        artifact = igniter.load(model_of(op, inputs, attrs)).compile(options=OPTIONS, verify=False)
        return artifact.report["left_to_onnxruntime"][0]["reason"]

    seeded = {"seed": 1.0, "shape": [3]}
    assert "its scale is not positive" in left("RandomNormal", [], {**seeded, "scale": 0.0})
    assert "its low is above its high" in left("RandomUniform", [], {**seeded, "low": 2.0})
    assert "it draws different values in each run" in left("RandomUniform", [], {"shape": [3]})


GRAPH = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 8] x, float[8] w) => (float[n, 8] y, float[n, 8] noise2) {
    a = Relu(x)
    noise = RandomNormalLike<seed = 3.0>(a)
    b = Add(a, noise)
    c = Mul(b, w)
    yes = Constant<value = bool {1}>()
    half = Constant<value = float {0.5}>()
    d, mask = Dropout<seed = 4>(c, half, yes)
    noise2 = Identity(noise)
    y = Sigmoid(d)
}
"""


@pytest.mark.slow
def test_verification_feeds_what_the_original_drew() -> None:
    artifact = igniter.load(onnx.parser.parse_model(GRAPH)).compile(options=OPTIONS)
    assert artifact.report["left_to_onnxruntime"] == []
    # Regions: what is drawn crosses from one to the next.
    assert artifact.report["verification"]["status"] == "passed" and artifact.report["regions"] == 5
    values = artifact.verify_every_value()
    assert values.status == "passed" and len(values.regions) == 3


def test_verification_finds_what_is_wrong_behind_a_draw() -> None:
    graph = GRAPH.replace("Sigmoid(d)", "Sigmoid(c)")
    wrong = graph.replace("Add(a, noise)", "Sub(a, noise)")
    artifact = igniter.load(onnx.parser.parse_model(wrong)).compile(options=OPTIONS, verify=False)
    found = artifact.verify(reference=onnx.parser.parse_model(graph).SerializeToString())
    assert found.status == "differs"


LOOP = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 8] x, int64 trips) => (float[n, 8] y) {
    yes = Constant<value = bool {1}>()
    y = Loop(trips, yes, x) <body = b (int64 i, bool c, float[p, 8] v) => (bool d, float[p, 8] w) {
        d = Identity(c)
        r = RandomNormalLike<seed = 1.0>(v)
        w = Add(v, r)
    }>
}
"""


def test_every_iteration_of_a_loop_draws_anew() -> None:
    artifact = igniter.load(onnx.parser.parse_model(LOOP)).compile(options=OPTIONS, verify=False)
    assert "RandomNormalLike" in [n["op"] for n in artifact.report["left_to_onnxruntime"]]
    feed = {"x": np.zeros((2, 8), F32), "trips": np.array(2, np.int64)}
    y = artifact.session(log_severity_level=4).run(None, feed)[0]
    first = artifact.session(log_severity_level=4).run(None, {**feed, "trips": np.array(1, np.int64)})[0]
    assert not np.allclose(y, 2 * first)
