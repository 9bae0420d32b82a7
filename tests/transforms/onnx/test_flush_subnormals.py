"""Subnormal weights: written as 0 where the change has a bound, kept and counted elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from typer.testing import CliRunner

import igniter
from igniter.analysis.onnx.subnormal_weights import subnormal_count
from igniter.dialects.onnx.ops.minimal_filters import FILTERS
from igniter.dialects.onnx.weights import Weight
from igniter.errors import IgniterError
from igniter.tools.main import app
from igniter.transforms.onnx.flush_subnormals import Flushed
from tests.transforms.onnx.onnx_cases import parse, run

Array = np.ndarray[Any, Any]
TINY = np.finfo(np.float32).tiny
NONE = {"flushed": 0, "kept": 0, "text": "no weight is subnormal"}


def random_bits(dtype: Any, count: int = 100_000) -> Array:
    """Returns numbers of all exponents, a fourth of them with the exponent of subnormals, and the special ones."""
    kind = np.dtype(f"u{np.dtype(dtype).itemsize}")
    info = ml_dtypes.finfo(dtype)
    bits = np.random.default_rng(7).integers(0, np.iinfo(kind).max, count, dtype=kind, endpoint=True)
    mantissa = kind.type((1 << info.nmant) - 1 | 1 << (8 * kind.itemsize - 1))
    bits[: count // 4] &= mantissa
    edges = [
        0.0,
        -0.0,
        info.tiny,
        -info.tiny,
        info.smallest_subnormal,
        -info.smallest_subnormal,
        np.inf,
        -np.inf,
        np.nan,
    ]
    return np.concatenate([bits.view(dtype), np.array(edges, dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_only_subnormal_numbers_become_zeros_and_keep_their_sign(dtype: Any) -> None:
    values = random_bits(dtype)
    with np.errstate(invalid="ignore"):
        wide = np.abs(values.astype(np.longdouble))
    tiny = np.longdouble(float(ml_dtypes.finfo(dtype).tiny))
    subnormal = (wide > 0) & (wide < tiny)
    weight = Weight.of(values)
    assert subnormal_count(weight) == subnormal.sum() > 1000
    kind = np.dtype(f"u{values.itemsize}")
    before, after = values.view(kind), Flushed(weight).compute().view(kind)
    assert (after[~subnormal] == before[~subnormal]).all()
    sign = kind.type(1 << (8 * values.itemsize - 1))
    assert (after[subnormal] == before[subnormal] & sign).all()


@pytest.mark.parametrize("values", [np.array([6e-8], np.float16), np.array([3]), np.array([], np.float32)])
def test_other_types_have_none(values: Array) -> None:
    assert subnormal_count(Weight.of(values)) == 0


def mixed(*shape: int, seed: int = 0) -> Array:
    """Returns weights a third of which are subnormal; the last row of the first axis is so as a whole."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(np.float32)
    tiny = rng.random(shape) < 0.3
    tiny[-1] = True
    values[tiny] = (rng.uniform(-1, 1, shape) * TINY).astype(np.float32)[tiny]
    return values


def model_of(body: str, inputs: str = "float[n, 32] x", **weights: Array) -> onnx.ModelProto:
    model = parse(f"main ({inputs}) => (float[] y) {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def stored(folder: Path) -> int:
    """Returns the number of subnormal weights in a compiled model's file."""
    model = onnx.load(folder / "model.onnx")
    arrays = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer]
    return sum(subnormal_count(Weight.of(a)) for a in arrays)


GRAPHS = {
    "MatMul": ("y = MatMul(x, w)", (32, 20)),
    "Gemm": ("y = Gemm<transB = 1>(x, w, b)", (20, 32)),
    "Mul": ("y = Mul(x, w)", (5, 32)),
    "transposed": ("t = Transpose(w)\n m = MatMul(x, t)\n r = Relu(m)\n y = Add(r, b)", (20, 32)),
    "folded": ("m = MatMul(x, w)\n y = Mul(m, b)", (32, 20)),
    "LayerNormalization": ("y = LayerNormalization(x, w, b)", (32,)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_outputs_change_by_no_more_than_the_bound(name: str, tmp_path: Path) -> None:
    body, shape = GRAPHS[name]
    biases = 32 if name == "LayerNormalization" else 20
    weights = {"w": mixed(*shape), **({"b": mixed(biases, seed=1)} if "b)" in body else {})}
    model = model_of(body, **weights)
    x = np.random.default_rng(3).standard_normal((5, 32)).astype(np.float32)
    artifact = igniter.compile(model, tmp_path / "a", inputs={"x": x})
    found = artifact.report["subnormal_weights"]
    assert found["flushed"] > 0 == found["kept"] and "written as 0" in found["text"]
    assert stored(tmp_path / "a") == 0

    kept = igniter.compile(model, verify=False, subnormals="keep")
    pair = [a.session().run(None, {"x": x})[0].astype(np.float64) for a in (artifact, kept)]
    # The sum of |x| 2^-126, times the largest factor or scale behind it, and one number for a bias.
    bound = (4 * np.abs(x).sum() + 1.0) * float(TINY)
    assert np.abs(pair[0] - pair[1]).max() <= bound
    assert np.allclose(pair[0], run(model, {"x": x})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_weights_that_folding_makes_are_flushed(tmp_path: Path) -> None:
    body = "s = Mul(w, c)\n y = MatMul(x, s)"
    weights = {"w": np.full((32, 8), 1e-30, np.float32), "c": np.full((32, 1), 1e-10, np.float32)}
    weights["c"][0] = 1e30
    artifact = igniter.compile(model_of(body, **weights), tmp_path / "a", cache=False)
    assert artifact.report["subnormal_weights"]["flushed"] == 31 * 8
    assert stored(tmp_path / "a") == 0


@pytest.mark.slow
def test_keep_leaves_and_counts_them(tmp_path: Path) -> None:
    model = model_of("y = MatMul(x, w)", w=mixed(32, 20))
    count = subnormal_count(Weight.of(mixed(32, 20)))
    artifact = igniter.compile(model, tmp_path / "a", cache=False, subnormals="keep")
    found = artifact.report["subnormal_weights"]
    assert (found["flushed"], found["kept"]) == (0, count)
    assert stored(tmp_path / "a") == count
    assert igniter.compile(model_of("y = MatMul(x, w)", w=np.ones((32, 4), np.float32))).report[
        "subnormal_weights"
    ] == {**NONE, "text": "no weight is subnormal"}


def test_an_infinite_factor_gives_nan(tmp_path: Path) -> None:
    """The one visible change, which docs/explanation/numerics.md states."""
    model = model_of("y = Mul(x, w)", w=np.array([1e-40, 2.0], np.float32).repeat(16))
    x = np.full((1, 32), np.inf, np.float32)
    plain, flushed = (
        igniter.compile(model, cache=False, subnormals=mode).session().run(None, {"x": x})[0]
        for mode in ("keep", "flush")
    )
    assert np.isposinf(plain).all()
    assert np.isnan(flushed[0, :16]).all() and np.isposinf(flushed[0, 16:]).all()


def test_a_number_that_guards_a_logarithm_stays(tmp_path: Path) -> None:
    model = model_of("m = Mul(x, w)\n a = Add(m, b)\n y = Log(a)", w=mixed(1, 32), b=np.full(32, 1e-40, np.float32))
    x = np.zeros((2, 32), np.float32)
    artifact = igniter.compile(model, tmp_path / "a", cache=False, verify=False)
    assert artifact.report["subnormal_weights"]["flushed"] == 0
    got = artifact.session().run(None, {"x": x})[0]
    assert np.allclose(got, np.log(np.float64(np.float32(1e-40))), rtol=1e-5)


def test_a_wrong_value_is_an_error() -> None:
    with pytest.raises(IgniterError, match="subnormals must be one of flush, flush-values, keep, not 'off'"):
        igniter.compile(model_of("y = Relu(x)"), subnormals="off")


@pytest.mark.parametrize("tile", FILTERS)
def test_the_weights_of_tiles_are_never_subnormal(tile: int) -> None:
    plain = (np.random.default_rng(0).uniform(-4, 4, (8, 8, 3, 3)) * TINY).astype(np.float32)
    plain[np.abs(plain) < TINY] = 0
    made = FILTERS[tile].weight(plain)
    assert subnormal_count(Weight.of(made.astype(np.float32))) == 0 < np.count_nonzero(made)


def commands(path: Path) -> Sequence[tuple[list[str], str]]:
    folder = str(path.with_suffix(".igniter"))
    bench = ["bench", folder, "--rounds", "1", "--shape", "n=2"]
    return (
        (["compile", str(path), "-o", folder], "subnormal weights, which slow many CPUs down, are written as 0"),
        (["verify", folder], "subnormal weights, which slow many CPUs down, are written as 0"),
        (bench, "subnormal weights, which slow many CPUs down, are written as 0"),
        (
            ["compile", str(path), "-o", folder, "--subnormals", "keep", "--no-verify"],
            "subnormal weights stay, and slow many CPUs down",
        ),
        (["profile", str(path), "--sparsity"], "weights are subnormal, and slow many CPUs down"),
    )


@pytest.mark.slow
def test_the_commands_count_them(tmp_path: Path) -> None:
    path, count = tmp_path / "model.onnx", subnormal_count(Weight.of(mixed(32, 20)))
    onnx.save(model_of("y = MatMul(x, w)", w=mixed(32, 20)), path)
    for command, text in commands(path):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert f"{count:,} {text}" in " ".join(result.output.split())
    result = CliRunner().invoke(app, ["profile", str(path), "--sparsity", "--json"])
    assert json.loads(result.stdout)["total"]["sparsity"]["subnormal"] == count
