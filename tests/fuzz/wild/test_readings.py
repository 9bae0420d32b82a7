"""Why some nodes are read otherwise than ONNX Runtime computes them: it has more than one answer to one question."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from igniter.frontend.ort_values import run
from tests.fuzz.wild.pool import Array, make_model, make_session, value_info
from tests.fuzz.wild.readings import reading
from tests.fuzz.wild.run import Wild, run_wild

NAN = np.nan


def model_of(
    op: str, x: Array, *weights: Array, outputs: int = 1, opset: int = 18, absent: int = 0, **attrs: Any
) -> onnx.ModelProto:
    """A node of `x` and weights, with some operands between them left out."""
    domain, _, short = op.rpartition(".")
    names = [f"w{k}" for k in range(len(weights))]
    results = [f"y{k}" for k in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(short, ["x", *[""] * absent, *names], results, name="node", domain=domain, **attrs)],
        "reading",
        [value_info("x", x.dtype, x.shape)],
        [onnx.ValueInfoProto(name=o) for o in results],
        [onnx.numpy_helper.from_array(w, n) for n, w in zip(names, weights, strict=True)],
    )
    return make_model(graph, opset)


def computed(op: str, x: Array, *weights: Array, **options: Any) -> list[Array]:
    return run(make_session(model_of(op, x, *weights, **options)), {"x": x})


def row(*values: float) -> Array:
    return np.array(values, np.float32)


def numbers_before(at: int, size: int = 8) -> Array:
    """0, 1, 2 and so on, with a NaN in one place."""
    return np.insert(np.arange(size - 1, dtype=np.float32), at, NAN)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_an_extreme_depends_on_the_order(op: str) -> None:
    found = {str(computed(op, numbers_before(at), keepdims=0)[0]) for at in range(8)}
    assert len(found) >= 2


def test_places_of_extremes_depend_on_the_place() -> None:
    """A NaN is found where a row begins with it, or a part of one, and passed over elsewhere; here it is found."""
    found = [int(computed("ArgMax", numbers_before(at), keepdims=0)[0]) for at in range(8)]
    assert found[0] == 0 and found[1] == 7
    for at in range(8):
        made = reading(model_of("ArgMax", numbers_before(at), keepdims=0), {"x": numbers_before(at)})
        assert made is not None and int(made[0]) == at


def test_steps_depend_on_the_order() -> None:
    steps = {str(computed("DynamicQuantizeLinear", numbers_before(at), outputs=3)[1]) for at in range(8)}
    assert len(steps) >= 2


def test_pools_depend_on_the_place() -> None:
    """A NaN is passed over, or is the greatest element."""
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    kinds: set[bool] = set()
    for at in range(48):
        x = np.insert(np.arange(47, dtype=np.float32), at, NAN).reshape(1, 1, 6, 8)
        kinds.add(bool(np.isnan(computed("MaxPool", x, **window)[0]).any()))
    assert kinds == {True, False}
    found = {str(computed("GlobalMaxPool", numbers_before(at).reshape(1, 1, 8))[0]) for at in range(8)}
    assert len(found) >= 2


def test_samples_outside_of_an_image() -> None:
    x, w = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), np.float32)
    x[0, 0, 0, 0] = np.inf
    far = np.full((1, 8, 2, 2), 9, np.float32)
    model = model_of("DeformConv", x, w, far, opset=19, kernel_shape=[2, 2])
    assert np.isnan(run(make_session(model), {"x": x})[0]).all()
    made = reading(model, {"x": x})
    assert made is not None
    assert not made[0].any()
    found = run_wild(Wild(0, model, model, ({"x": x},), "every", "native", shipped=False))
    assert (found.status, found.left) == ("ort", 0), found.message


def test_what_is_left_of_a_running_sum() -> None:
    x = np.arange(1, 8, dtype=np.float32).reshape(1, 7, 1, 1)
    x[0, 1] = np.inf
    model = model_of("LRN", x, size=3, alpha=0.01)
    assert np.isnan(run(make_session(model), {"x": x})[0][0, 4:]).all()
    made = reading(model, {"x": x})
    assert made is not None
    assert np.isfinite(made[0][0, 3:]).all()
    found = run_wild(Wild(0, model, model, ({"x": x},), "every", "native", shipped=False))
    assert (found.status, found.left) == ("ort", 0), found.message


def test_neighbours_along_an_axis_that_keeps_its_size() -> None:
    """They count for nothing in four dimensions, and in three for 0 times what they are."""
    x = np.arange(30, dtype=np.float32).reshape(1, 3, 2, 5)
    x[0, 1, 0, 1] = NAN
    linear = {"mode": "linear", "opset": 18}
    image, volume = (x, np.array([1, 3, 4, 5])), (x[0], np.array([3, 4, 5]))
    counts: list[int] = []
    for given, sizes in (image, volume):
        model = model_of("Resize", given, sizes, absent=2, **linear)
        counts.append(int(np.isnan(run(make_session(model), {"x": given})[0]).sum()))
        found = run_wild(Wild(0, model, model, ({"x": given},), "every", "native", shipped=False))
        assert found.status in ("ok", "ort"), found.message
    assert counts[0] < counts[1]


def nearly_constant(dtype: Any, size: int) -> Array:
    """Rows that do not vary, that vary in one element, and in all, by units in the last place."""
    rng, found = np.random.default_rng(0), []
    for value in (0.1, -7.77, 1e-3, 1000.1):
        one = np.full(size, value, dtype)
        one[size // 2] = np.nextafter(one[0], np.asarray(1e4, dtype))
        some = (value * (1 + np.finfo(dtype).eps * rng.integers(-3, 4, size))).astype(dtype)
        found += [np.full(size, value, dtype), one, some]
    return np.array(found, dtype)


def test_functions_have_no_digits_left() -> None:
    """Of a row that does not vary ONNX Runtime makes NaN here: its variance is negative."""
    x = np.full((1, 1, 1000), 1000.1, np.float32)
    parameters = np.ones(1, np.float32), np.zeros(1, np.float32)
    found = computed("GroupNormalization", x, *parameters, num_groups=1, opset=21)[0]
    assert np.isnan(found).all()
    assert abs(computed("MeanVarianceNormalization", x, axes=[2])[0]).max() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("size", [1, 1000])
def test_rows_that_hardly_vary(dtype: Any, size: int) -> None:
    """Kernels are exact where ONNX Runtime is not."""
    x = nearly_constant(dtype, size)
    rows, scale, bias = len(x), np.ones(len(x), dtype), np.zeros(len(x), dtype)
    channels = x.reshape(1, rows, size)
    cases = [
        ("MeanVarianceNormalization", x, (), {"axes": [1], "opset": 17}),
        ("LayerNormalization", x, (np.ones(size, dtype),), {"axis": -1}),
        ("InstanceNormalization", channels, (scale, bias), {}),
        ("GroupNormalization", channels, (scale, bias), {"num_groups": rows, "opset": 21}),
    ]
    for op, given, weights, attrs in cases:
        model = model_of(op, given, *weights, **attrs)
        found = run_wild(Wild(0, model, model, ({"x": given},), "every", "native", shipped=False))
        assert (found.status in ("ok", "ort"), found.left) == (True, 0), f"{op}: {found.message}"


CASES: list[tuple[str, tuple[Array, ...], dict[str, Any]]] = [
    *[(op, (), {"keepdims": k}) for op in ("ReduceMax", "ReduceMin") for k in (0, 1)],
    *[(op, (), {"axis": a, "select_last_index": a % 2}) for op in ("ArgMax", "ArgMin") for a in (0, 1, -1)],
    *[("TopK", (np.array([k]),), {"outputs": 2, "largest": k % 2, "axis": -1}) for k in (2, 5, 6, 7, 8)],
    ("TopK", (np.array([4]),), {"outputs": 2, "axis": 0}),
    ("Hardmax", (), {"axis": 0}),
    ("Hardmax", (), {"axis": 1, "opset": 11}),
    ("DynamicQuantizeLinear", (), {"outputs": 3}),
    ("MaxPool", (), {"kernel_shape": [2, 3], "pads": [0, 1, 0, 0]}),
    ("MaxPool", (), {"kernel_shape": [2, 2], "strides": [2, 1], "outputs": 2, "storage_order": 1}),
    ("GlobalMaxPool", (), {}),
    ("com.microsoft.DynamicQuantizeMatMul", (np.ones((8, 3), np.int8), np.float32(0.5), np.int8(1), row(1, 2, 3)), {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_kernels_mean_the_same(case: tuple[str, tuple[Array, ...], dict[str, Any]]) -> None:
    """Wherever the NaNs are, a compiled node computes what ONNX Runtime does or what is read here."""
    op, weights, options = case
    x = np.random.default_rng(0).permutation(np.arange(40, dtype=np.float32)).reshape(5, 8)
    x = x.reshape(1, 1, 5, 8) if "Pool" in op else x
    feeds = []
    for seed in range(4):
        made = np.where(np.random.default_rng(seed).random(x.shape) < 0.2, np.float32(NAN), x)
        feeds.append({"x": made})
    feeds.append({"x": np.full_like(x, NAN)})
    model = model_of(op, x, *weights, **options)
    for feed in feeds:
        found = run_wild(Wild(0, model, model, (feed,), "every", "native", shipped=False))
        assert (found.status in ("ok", "ort"), found.left) == (True, 0), found.message


def test_what_has_no_nan_is_read_by_onnxruntime() -> None:
    x = np.arange(8, dtype=np.float32)
    model = model_of("ReduceMax", x)
    assert reading(model, {"x": x}) is None
    made = reading(model, {"x": numbers_before(2)})
    assert made is not None
    assert np.isnan(made[0]).all()
