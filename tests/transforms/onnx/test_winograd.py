"""Winograd's convolution: the errors that its transforms leave, and no more, for all sizes, paddings and types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.minimal_filters import FILTERS, TAPS, MinimalFilter
from igniter.dialects.onnx.ops.winograd import tiling_of
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.tools.main import app
from igniter.transforms.onnx import winograd
from igniter.transforms.onnx.winograd import MARGIN

Array = np.ndarray[Any, Any]
PASSES = "cpu-onnx,winograd{{tile={tile} force=true}}"


@dataclass(frozen=True)
class Case:
    """A Conv with windows of 3 x 3, by the sizes of its operands and what it is padded by."""

    channels: int
    outs: int
    pads: tuple[int, int, int, int] | str = (1, 1, 1, 1)
    bias: bool = True
    relu: bool = True
    dtype: Any = np.float32

    def operands(self) -> tuple[Array, Array]:
        rng = np.random.default_rng(self.channels)
        weight = rng.standard_normal((self.outs, self.channels, TAPS, TAPS)) / TAPS
        return weight.astype(self.dtype), rng.standard_normal(self.outs).astype(self.dtype)

    def model(self, dims: tuple[int | str, int | str, int | str]) -> bytes:
        """The model, for a batch, a height and a width that are numbers or names."""
        weight, bias = self.operands()
        padding: dict[str, Any] = {"auto_pad" if isinstance(self.pads, str) else "pads": self.pads}
        inputs = ["x", "w", "b"] if self.bias else ["x", "w"]
        nodes = [helper.make_node("Conv", inputs, ["c" if self.relu else "y"], "conv", **padding)]
        if self.relu:
            nodes.append(helper.make_node("Relu", ["c"], ["y"], "relu"))
        kind = TensorProto.DOUBLE if self.dtype == np.float64 else TensorProto.FLOAT
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", kind, [dims[0], self.channels, *dims[1:]])],
            [helper.make_tensor_value_info("y", kind, None)],
            [numpy_helper.from_array(weight, "w"), *([numpy_helper.from_array(bias, "b")] if self.bias else [])],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return made.SerializeToString()

    def padded(self, x: Array) -> Array:
        given = self.pads if isinstance(self.pads, tuple) else (1, 1, 1, 1) if "SAME" in self.pads else (0, 0, 0, 0)
        top, left, bottom, right = given
        return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))

    def expected(self, x: Array) -> tuple[Array, Array]:
        """The results in more digits, and the sum of the magnitudes of what each is a sum of."""
        weight, bias = self.operands()
        wide = self.padded(x).astype(np.longdouble)
        height, width = wide.shape[2] - 2, wide.shape[3] - 2
        value = np.zeros((x.shape[0], self.outs, height, width), np.longdouble)
        for i in range(TAPS):
            for j in range(TAPS):
                seen = wide[:, :, i : i + height, j : j + width]
                value += np.einsum("nchw,oc->nohw", seen, weight[:, :, i, j].astype(np.longdouble))
        if self.bias:
            value += bias.astype(np.longdouble)[:, None, None]
        return value, np.maximum(value, 0) if self.relu else value

    def bound(self, x: Array, found: MinimalFilter) -> Array:
        """What rounding can make of each result at most: of every value that it is made of, the magnitude, times the
        roundings on the way to it. Weights are rounded once; a transform adds up as many terms as a tile has elements
        at most, along each axis; a product is rounded with its sum over the channels; the bias is added."""
        m, size = found.results, found.size
        b, a = np.abs(found.input_matrix()), np.abs(found.output_matrix())
        weight, bias = self.operands()
        u = np.abs(found.weight_matrix()) @ np.abs(weight.astype(np.float64)) @ np.abs(found.weight_matrix()).T
        wide = np.abs(self.padded(x).astype(np.float64))
        height, width = wide.shape[2] - 2, wide.shape[3] - 2
        rows, columns = -(-height // m), -(-width // m)
        wide = np.pad(wide, ((0, 0), (0, 0), (0, rows * m - height), (0, columns * m - width)))
        result = np.zeros((x.shape[0], self.outs, rows * m, columns * m))
        for i in range(rows):
            for j in range(columns):
                tile = wide[:, :, i * m : i * m + size, j * m : j * m + size]
                sums = np.einsum("ncij,ocij->noij", b @ tile @ b.T, u)
                result[:, :, i * m : i * m + m, j * m : j * m + m] = a @ sums @ a.T
        roundings = 1 + 2 * size + self.channels + 2 * size + 1
        magnitudes = result[:, :, :height, :width] + (np.abs(bias)[:, None, None] if self.bias else 0)
        return roundings * float(np.finfo(self.dtype).eps) / 2 * magnitudes


CASES = {
    "plain": Case(16, 16),
    "one channel": Case(1, 1),
    "odd channels": Case(7, 19),
    "many channels": Case(96, 50),
    "no bias": Case(8, 17, bias=False),
    "no activation": Case(8, 17, relu=False),
    "nothing but the products": Case(5, 33, bias=False, relu=False),
    "no padding": Case(6, 20, pads=(0, 0, 0, 0)),
    "asymmetric padding": Case(6, 20, pads=(0, 2, 3, 1)),
    "same, upper": Case(6, 20, pads="SAME_UPPER"),
    "same, lower": Case(6, 20, pads="SAME_LOWER"),
    "valid": Case(6, 20, pads="VALID"),
    "f64": Case(9, 20, dtype=np.float64),
}

SIZES = [(1, 8, 8), (2, 7, 9), (1, 3, 21), (3, 13, 4), (1, 12, 6), (0, 9, 9), (1, 4, 4)]


def check(case: Case, tile: int, dims: tuple[int | str, int | str, int | str], folder: Path) -> None:
    """Compiles a case for dims that are sizes or names; every result is within the bound."""
    found, source = FILTERS[tile], case.model(dims)
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=tile))
    artifact = igniter.compile(source, folder / "out", options=options, verify=False, strict=True)
    assert artifact.report["regions"] == artifact.report["nodes_after"] == 1
    session = artifact.session()
    # ONNX Runtime has no convolution of f64.
    original = make_session(source) if case.dtype == np.float32 else None
    known = [d for d in dims if isinstance(d, int)]
    for sizes in [tuple(known)] if known else SIZES:
        x = np.random.default_rng(sum(sizes)).standard_normal((sizes[0], case.channels, *sizes[1:])).astype(case.dtype)
        (y,) = session.run(None, {"x": x})
        _, exact = case.expected(x)
        bound = case.bound(x, found)
        assert y.shape == exact.shape
        assert (np.abs(y - exact) <= bound).all(), f"{sizes}: {np.max(np.abs(y - exact) / bound)} of the bound"
        if original is not None:
            # ONNX Runtime's own error is that of a direct sum, whose bound is less.
            (plain,) = original.run(None, {"x": x})
            assert plain.shape == y.shape
            assert (np.abs(y.astype(np.longdouble) - plain) <= 2 * bound).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tile"), [("plain", 4), ("asymmetric padding", 2), ("asymmetric padding", 4), ("same, upper", 4)]
)
def test_any_size(name: str, tile: int, tmp_path: Path) -> None:
    check(CASES[name], tile, ("n", "h", "w"), tmp_path)


@pytest.mark.parametrize("tile", FILTERS)
@pytest.mark.parametrize("name", CASES)
def test_errors_are_within_the_bound(name: str, tile: int, tmp_path: Path) -> None:
    check(CASES[name], tile, (2, 7, 9), tmp_path)


@pytest.mark.parametrize("sizes", [(1, 1, 30), (2, 30, 1), (1, 1, 1), (1, 2, 2), (0, 5, 5), (4, 5, 31)])
@pytest.mark.parametrize("tile", FILTERS)
def test_sizes_that_are_known(sizes: tuple[int, int, int], tile: int, tmp_path: Path) -> None:
    check(Case(17, 33), tile, sizes, tmp_path)


BANDS = ((0, 0), (1, 1), (1, 4), (2, 3), (4, 4), (3, 9))


@pytest.mark.parametrize(
    ("dims", "bands"),
    [
        pytest.param((2, 23, 19), (BANDS[0], BANDS[1], BANDS[5]), id="known"),
        pytest.param(("n", "h", "w"), (BANDS[0], BANDS[2]), id="symbols"),
        pytest.param(("n", 16, 16), (BANDS[0], BANDS[3]), id="a batch"),
        *(pytest.param(dims, BANDS, marks=pytest.mark.full) for dims in ((2, 23, 19), ("n", "h", "w"), ("n", 16, 16))),
    ],
)
def test_bands_change_no_bit(
    dims: tuple[int | str, int | str, int | str], bands: Sequence[tuple[int, int]], tmp_path: Path
) -> None:
    """Whatever tiles are made at a time, and by however many threads, results are the same to the bit."""
    case = Case(17, 33)
    height, width = (d if isinstance(d, int) else 23 - k for k, d in enumerate(dims[1:]))
    x = np.random.default_rng(0).standard_normal((2, 17, height, width)).astype(np.float32)
    found: list[Array] = []
    for rows, columns in bands:
        passes = f"cpu-onnx,winograd{{force=true rows={rows} columns={columns}}}"
        options = igniter.CompileOptions(onnx_passes=passes)
        artifact = igniter.compile(
            case.model(dims), tmp_path / f"{rows}x{columns}", options=options, verify=False, strict=True
        )
        for threads in (1, 2):
            found += artifact.session(intra_op_num_threads=threads).run(None, {"x": x})
    _, exact = case.expected(x)
    assert (np.abs(found[0] - exact) <= case.bound(x, FILTERS[4])).all()
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.slow
def test_images_with_rims_of_several_widths(tmp_path: Path) -> None:
    """An image that convolutions in tiles of two sizes, a direct one and a pool read is stored once, with the widest
    rim; one that its own region computes gets a rim as well."""
    rng = np.random.default_rng(3)
    weights = {
        "w0": rng.standard_normal((16, 8, 3, 3)),
        **{f"w{k}": rng.standard_normal((16, 16, 3, 3)) / 12 for k in (1, 2, 3)},
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["p"], "one", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["r", "w2"], ["q"], "wide", pads=[2, 0, 0, 2]),
        helper.make_node("Conv", ["r", "w3"], ["s"], "direct", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "s", "m")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 15, 17])],
        values,
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=4))
    artifact = igniter.compile(source, tmp_path / "out", options=options, strict=True)
    assert artifact.report["verification"]["ok"]
    module = igniter.load(source)
    module.run_passes(f"{PASSES.format(tile=4)},cpu-fusion,cpu-loop,cpu-schedule")
    assert "conv.padded" not in str(module), "no tile leaves its image, so that no image is copied"


@pytest.mark.slow
@pytest.mark.parametrize("tile", FILTERS)
@pytest.mark.parametrize("channels", [32, 128, 512])
def test_usual_error(tile: int, channels: int, tmp_path: Path) -> None:
    """For random data the error is the one that the remark states, relative to a direct sum in order."""
    case = Case(channels, 16, bias=False, relu=False)
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=tile))
    artifact = igniter.compile(case.model((1, 20, 20)), tmp_path / "out", options=options, verify=False, strict=True)
    x = np.random.default_rng(1).standard_normal((1, channels, 20, 20)).astype(np.float32)
    (y,) = artifact.session().run(None, {"x": x})
    exact, _ = case.expected(x)
    direct = np.zeros_like(y)
    padded, (weight, _) = case.padded(x), case.operands()
    for c in range(channels):
        for i in range(TAPS):
            for j in range(TAPS):
                direct += weight[None, :, c, i, j, None, None] * padded[:, c : c + 1, i : i + 20, j : j + 20]
    ratio = np.sqrt(np.mean(np.square(y - exact)) / np.mean(np.square(direct - exact)))
    assert FILTERS[tile].usual_error / 3 <= ratio <= FILTERS[tile].usual_error
    # What `auto` expects is no less, and by so much is it below what is allowed.
    usual = np.sqrt(np.mean(np.square(y - exact)) / np.mean(np.square(exact)))
    expected = FILTERS[tile].expected_error(channels, float(np.finfo(np.float32).eps) / 2)
    assert usual <= expected <= 1e-4 / 12
    assert np.max(np.abs(y - exact)) <= 1e-4 / MARGIN * np.max(np.abs(exact))


@pytest.mark.parametrize("found", FILTERS.values(), ids=[f"tile {t}" for t in FILTERS])
def test_matrices_are_those_of_the_points(found: MinimalFilter) -> None:
    """The transforms give the convolution, the points are apart, and the coefficients are exact in f32."""
    rng = np.random.default_rng(0)
    d, g = rng.standard_normal((found.size, found.size)), rng.standard_normal((TAPS, TAPS))
    b, a = found.input_matrix(), found.output_matrix()
    y = a @ (found.weight(g) * (b @ d @ b.T)) @ a.T
    direct = [[np.sum(d[i : i + TAPS, j : j + TAPS] * g) for j in range(found.results)] for i in range(found.results)]
    np.testing.assert_allclose(y, direct, rtol=0, atol=1e-12)
    assert len(set(found.points)) == found.size - 1
    for matrix in (a, b):
        np.testing.assert_array_equal(matrix, matrix.astype(np.float32))


def test_amplification_is_less_than_that_of_the_usual_points() -> None:
    usual = MinimalFilter((1.0, 2.0), usual_error=4)
    assert usual.amplification == pytest.approx(256)
    assert FILTERS[4].amplification == pytest.approx(62.65, abs=0.01)
    assert FILTERS[2].amplification == pytest.approx(64 / 9)


@pytest.mark.slow
@pytest.mark.parametrize("dims", [(1, 24, 22), ("n", "h", "w")], ids=["known", "symbols"])
@pytest.mark.parametrize("tile", FILTERS)
@pytest.mark.parametrize("name", ["plain", "odd channels", "asymmetric padding", "nothing but the products"])
def test_what_is_not_finite(name: str, tile: int, dims: tuple[int | str, int | str, int | str], tmp_path: Path) -> None:
    """Infinities and NaN reach the results whose windows see them, and no other; which of them are NaN is what ONNX
    Runtime says, also where a weight is 0. Tiles that do not see them are the same to the bit."""
    case = CASES[name]
    model = onnx.load_from_string(case.model(dims))
    weight = case.operands()[0].copy()
    weight[:, 0, 1] = 0
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    source = model.SerializeToString()
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=tile))
    artifact = igniter.compile(source, tmp_path / "out", options=options, verify=False, strict=True)
    assert artifact.report["regions"] == artifact.report["nodes_after"] == 1
    session, original = artifact.session(), make_session(source)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, case.channels, 24, 22)).astype(np.float32)
    (clean,) = session.run(None, {"x": x})
    for places in ([(12, 12)], [(0, 0), (23, 21)], [(3, 4), (4, 4), (20, 1)]):
        for value in (np.inf, -np.inf, np.nan):
            bad = x.copy()
            for place in places:
                bad[0, (0, rng.integers(case.channels))[len(places) > 1], *place] = value
            (y,), (expected,) = session.run(None, {"x": bad}), original.run(None, {"x": bad})
            np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
            np.testing.assert_array_equal(np.isinf(y), np.isinf(expected))
            known = np.isfinite(expected)
            assert not known.all()
            np.testing.assert_allclose(y[known], expected[known], rtol=0, atol=1e-4)
            assert (y == clean).sum() > y.size * 0.6


@pytest.mark.parametrize("tile", FILTERS)
def test_all_of_an_image_is_not_finite(tile: int, tmp_path: Path) -> None:
    source = Case(16, 33).model((2, 9, 10))
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=tile))
    session = igniter.compile(source, tmp_path / "out", options=options, verify=False, strict=True).session()
    x = np.random.default_rng(0).standard_normal((2, 16, 9, 10)).astype(np.float32)
    x[1] = np.nan
    (y,) = session.run(None, {"x": x})
    assert np.isfinite(y[0]).all() and np.isnan(y[1]).all()


@pytest.mark.parametrize("tile", FILTERS)
def test_large_numbers(tile: int, tmp_path: Path) -> None:
    """Up to the greatest number over the growth of the transforms, and what the sums are, nothing overflows in tiles;
    what is larger still does where a direct sum does, and nowhere else."""
    case, found = Case(1, 16, bias=False, relu=False), FILTERS[tile]
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=tile))
    artifact = igniter.compile(case.model((1, 8, 8)), tmp_path / "out", options=options, verify=False, strict=True)
    session = artifact.session()
    rng = np.random.default_rng(4)
    sizes = rng.uniform(0.5, 1, (1, 1, 8, 8)) * rng.choice([-1.0, 1.0], (1, 1, 8, 8))
    largest = case.bound(np.ones((1, 1, 8, 8)), found).max() / case.bound(np.ones((1, 1, 8, 8)), found).min()
    greatest = np.finfo(np.float32).max
    x = (sizes * greatest / (found.growth * found.amplification * largest)).astype(np.float32)
    (y,) = session.run(None, {"x": x})
    _, exact = case.expected(x)
    assert (np.abs(y - exact) <= case.bound(x, found)).all()
    for factor in (0.1, 0.4, 1.0):
        x = (sizes * greatest * factor).astype(np.float32)
        (y,) = session.run(None, {"x": x})
        with np.errstate(over="ignore"):
            _, exact = case.expected(x)
            within = np.abs(exact) < greatest * 0.99
            assert np.isfinite(y[within]).all() or factor == 1.0
            settled = np.isfinite(y) & within
            assert settled.any() and (np.abs(y - exact)[settled] <= 1e-6 * greatest).all()


def test_a_weight_that_is_not_finite_is_left(tmp_path: Path) -> None:
    model = onnx.load_from_string(Case(64, 64).model((1, 28, 28)))
    weight = Case(64, 64).operands()[0]
    weight[3, 4, 1, 1] = np.inf
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    artifact = igniter.compile(model.SerializeToString(), tmp_path / "out", verify=False)
    said = [r["message"] for r in artifact.report["remarks"] if r["pass"] == "winograd"]
    assert said == ["its weight is not finite, so no tile would be finite", "0 of 1 convolutions are computed in tiles"]


@pytest.mark.parametrize(("at", "stored"), [("load", [(3, 3, 64, 64)]), ("file", [(3, 3, 64, 64), (36, 4, 64, 16)])])
def test_a_weight_is_stored_as_it_is_read(at: str, stored: list[tuple[int, ...]], tmp_path: Path) -> None:
    """As the sums over windows read it, and in tiles on request; the one that the model has is not in what is
    written."""
    artifact = igniter.compile(Case(64, 64).model((1, 28, 28)), tmp_path / "out", strict=True, tile_weights=at)
    model = onnx.load(artifact.model_path, load_external_data=False)
    assert sorted(tuple(t.dims) for t in model.graph.initializer if len(t.dims) > 1) == stored


@pytest.mark.slow
def test_residual_and_activation_are_in_the_region(tmp_path: Path) -> None:
    """What follows runs in the convolution's region: a residual that is added, and the activation behind it."""
    source = onnx.load_from_string(Case(16, 16, relu=False).model((2, 10, 11)))
    source.graph.node[0].output[0] = "c"
    source.graph.node.append(helper.make_node("Add", ["c", "x"], ["s"]))
    source.graph.node.append(helper.make_node("Relu", ["s"], ["y"]))
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=4))
    artifact = igniter.compile(source.SerializeToString(), tmp_path / "out", options=options, strict=True)
    assert artifact.report["regions"] == artifact.report["nodes_after"] == 1
    assert artifact.report["verification"]["ok"]


@pytest.mark.slow
def test_two_in_a_row_share_a_kernel(tmp_path: Path) -> None:
    """Equal shapes have one kernel, and each convolution a table of its own. The last one stores no rim, and the first
    and the last tensor have their channels first: three kernels more."""
    case = Case(16, 16)
    source = onnx.load_from_string(case.model((1, 12, 12)))
    source.graph.node[1].output[0] = "z0"
    for k, after in enumerate(("z1", "z2", "y")):
        source.graph.initializer.append(numpy_helper.from_array(case.operands()[0] * (2 + k), f"w{k}"))
        conv = helper.make_node("Conv", [f"z{k}", f"w{k}", "b"], [f"d{k}"], f"conv{k}", pads=[1, 1, 1, 1])
        source.graph.node.extend([conv, helper.make_node("Relu", [f"d{k}"], [after])])
    options = igniter.CompileOptions(onnx_passes=PASSES.format(tile=2))
    artifact = igniter.compile(source.SerializeToString(), tmp_path / "out", options=options, strict=True)
    assert (artifact.report["kernels"], len(artifact.report["programs"])) == (4, 1)
    assert artifact.report["verification"]["ok"]


@pytest.mark.slow
def test_option_and_its_refusals(tmp_path: Path) -> None:
    source = Case(64, 64).model((1, 28, 28))
    artifact = igniter.compile(source, tmp_path / "out", winograd=4, strict=True)
    assert artifact.report["options"]["winograd"] == 4
    said = [r["message"] for r in artifact.report["remarks"] if r["pass"] == "winograd"]
    assert said == [
        "in tiles of 4 x 4: 36 products for 144; the error is at most 63 times that of a direct sum, "
        "and about 2 times for random data",
        "1 of 1 convolutions are computed in tiles",
    ]
    same = igniter.compile(source, tmp_path / "auto", strict=True)
    assert same.report["options"]["winograd"] == "auto"
    assert [r["message"] for r in same.report["remarks"] if r["pass"] == "winograd"] == said
    assert igniter.compile(source, tmp_path / "off", winograd="off", verify=False).report["options"]["winograd"] == 0
    with pytest.raises(IgniterError, match="'tile' must be 2 or 4, not 3"):
        igniter.compile(source, tmp_path / "three", winograd=3)
    with pytest.raises(IgniterError, match="winograd must be off, auto, on, 2 or 4, not 'much'"):
        igniter.compile(source, tmp_path / "much", winograd="much")
    module = igniter.load(source)
    module.run_passes("cpu-onnx,form-fusion-regions{singletons=all}")
    with pytest.raises(IgniterError, match="winograd has no effect"):
        module.compile(tmp_path / "fused", winograd=4)


def test_weights_take_a_share_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes to the convolution that saves most, or is made of smaller tiles; `on` asks for all."""

    def conv(name: str, source: str, size: int) -> str:
        image, weight = f"tensor<1x256x{size}x{size}xf32>", "tensor<256x256x3x3xf32>"
        return (
            f"%w{name} = onnx.Constant() {{value = #onnx.tensor<256x256x3x3xf32, elided>}} : () -> {weight}\n"
            f'%{name} = onnx.Conv(%{source}, %w{name}) <{{node_name = "{name}"}}> {{pads = array<i64: 1, 1, 1, 1>}} : '
            f"({image}, {weight}) -> {image}\n"
        )

    text = (
        "builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {'' = 17 : i64}}} {\n"
        "onnx.graph @main(%x: tensor<1x256x14x14xf32>, %y: tensor<1x256x56x56xf32>) "
        "attributes {input_names = ['x', 'y'], output_names = ['a', 'b']} {\n"
        + conv("a", "x", 14)
        + conv("b", "y", 56)
        + "onnx.return %a, %b : tensor<1x256x14x14xf32>, tensor<1x256x56x56xf32>\n}\n}"
    ).replace("'", '"')
    weight = 256 * 256 * 4

    def tiles(passes: str) -> list[int | None]:
        module = igniter.parse(text).run_passes(passes).ir
        return [
            found.filter.results if (found := tiling_of(op)) is not None else None
            for op in module.walk()
            if isinstance(op, OnnxOp) and op.op_type == "Conv"
        ]

    assert tiles("winograd") == [4, 4]
    monkeypatch.setattr(winograd, "LITTLE_MEMORY", 36 * weight)
    assert tiles("winograd{memory=0.0}") == [None, 4]
    assert tiles("winograd{memory=0.0 force=true}") == [4, 4]
    assert tiles("winograd") == [None, 4]
    assert tiles("winograd{memory=4.0}") == [4, 4]
    monkeypatch.setattr(winograd, "LITTLE_MEMORY", (36 + 16) * weight)
    assert tiles("winograd{memory=0.0}") == [2, 4]


def test_where_a_kernel_fails_the_plain_convolution_runs(tmp_path: Path) -> None:
    """A region that is taken apart is the Conv that it was, with its plain weight and without a table."""
    module = igniter.load(Case(64, 64).model((1, 28, 28)))
    module.run_passes("cpu-onnx,winograd,cpu-fusion")
    assert "fusion.tables" in str(module)
    module.run_passes("inline-regions")
    assert "fusion" not in str(module) and "[36, " not in str(module)
    x = np.random.default_rng(0).standard_normal((1, 64, 28, 28)).astype(np.float32)
    onnx_file = tmp_path / "model.onnx"
    module.save(onnx_file)
    (y,) = make_session(str(onnx_file)).run(None, {"x": x})
    (plain,) = make_session(Case(64, 64).model((1, 28, 28))).run(None, {"x": x})
    np.testing.assert_array_equal(y, plain)


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    """`--winograd` says how many convolutions are in tiles, `--remarks` why one is not; other sizes are refused."""
    (tmp_path / "model.onnx").write_bytes(Case(64, 64).model((1, 28, 28)))
    command = ["compile", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "out"), "--no-verify"]
    run = CliRunner()
    made = run.invoke(app, [*command, "--winograd", "2"])
    assert made.exit_code == 0, made.output
    assert "1 of 1 convolutions are computed in tiles" in made.output
    assert json.loads((tmp_path / "out" / "report.json").read_text())["options"]["winograd"] == 2
    (tmp_path / "model.onnx").write_bytes(Case(2, 2).model((1, 8, 8)))
    left = run.invoke(app, [*command, "--winograd", "4", "--remarks"])
    assert "0 of 1 convolutions are computed in tiles" in left.output
    assert "force=true overrides this" in " ".join(left.output.split())
    assert "1 of 1 convolutions are computed in tiles" in run.invoke(app, [*command, "--winograd", "on"]).output
    assert run.invoke(app, [*command, "--winograd", "3"]).exit_code == 2
