"""Constants that kernels compute when a session is created: the bits, the folder, and the sessions."""

from __future__ import annotations

import itertools
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.context import IgniterContext
from igniter.dialects.onnx.ops.minimal_filters import FILTERS
from igniter.dialects.onnx.ops.winograd import LAST_CHANNELS, Transformed
from igniter.dialects.onnx.weights import Weight
from igniter.errors import IgniterError
from igniter.runtime.session import SessionError
from igniter.targets import parts_for
from igniter.transforms.conversion.schedule_kernels import schedule_kernel
from tests.backends.cpu.cpu_kit import TARGETS, run_on_guard_pages

Array = np.ndarray[Any, Any]

CHANNELS = ((1, 1), (16, 5), (24, 7), (35, 2))
"""Output and input channels: panels that are full, and not."""


def weight_of(outs: int, channels: int, dtype: Any = np.float32) -> Array:
    """Returns a weight with numbers of all magnitudes, subnormal ones too, and zeros of both signs."""
    weight = np.random.default_rng(outs + channels).standard_normal((outs, channels, 3, 3)).astype(dtype)
    flat = weight.reshape(-1)
    flat[::7] *= np.finfo(dtype).tiny
    flat[1::5] *= dtype(1e-20)
    flat[2::11] *= dtype(1e10)
    flat[3::13], flat[4::17] = 0.0, -0.0
    return weight


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_gives_the_bits_of_the_compiler(target: str, tile: int, dtype: Any) -> None:
    """With fused multiply-adds and without, on every CPU, for every weight."""
    (part,) = parts_for(target)
    ctx = IgniterContext().on(part.machines(())[0])
    funcs: dict[str, Any] = {}
    for outs, channels in CHANNELS:
        weight = weight_of(outs, channels, dtype)
        derived = Transformed(Weight.of(weight), FILTERS[tile])
        recipe = derived.recipe()
        if recipe.name not in funcs:
            funcs[recipe.name] = schedule_kernel(ctx, recipe.build(), "cpu-schedule").func
        made = np.full(derived.shape, np.nan, dtype)
        sizes = {"c": channels, "o": outs, "p": outs // derived.lanes}
        func = funcs[recipe.name]
        symbols = {name: sizes[name] for name in func.symbol_names}
        run_on_guard_pages(func, [np.ascontiguousarray(weight.transpose(LAST_CHANNELS)), made], symbols, target)
        assert made.tobytes() == derived.compute().tobytes(), f"{outs} x {channels}"
    assert len(funcs) == 2, "full panels, and a part of one"


def network(
    channels: tuple[int, ...] = (16, 16), batch: int | str = 1, dtype: Any = np.float32, same: bool = False
) -> onnx.ModelProto:
    """Returns convolutions of 3 x 3 in a row; with `same`, all have one weight."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    rng = np.random.default_rng(len(channels))
    nodes: list[Any] = []
    weights: list[Any] = []
    for k, (before, after) in enumerate(itertools.pairwise(channels)):
        name = "w0" if same else f"w{k}"
        if not same or not k:
            weights.append(
                numpy_helper.from_array((rng.standard_normal((after, before, 3, 3)) / 12).astype(dtype), name)
            )
        nodes.append(helper.make_node("Conv", [f"y{k - 1}" if k else "x", name], [f"c{k}"], f"conv{k}", pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"y{k}"]))
    inputs = [helper.make_tensor_value_info("x", kind, [batch, channels[0], 14, 14])]
    outputs = [helper.make_tensor_value_info(f"y{len(channels) - 2}", kind, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(model: onnx.ModelProto, folder: Path, at: str = "load", **options: Any) -> igniter.Artifact:
    options = {"winograd": "on", "verify": False, **options}
    return igniter.compile(model.SerializeToString(), folder, tile_weights=at, **options)


def image(model: onnx.ModelProto, batch: int = 1) -> dict[str, Array]:
    (x,) = model.graph.input
    dims = [d.dim_value or batch for d in x.type.tensor_type.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type)
    return {"x": np.random.default_rng(7).standard_normal(dims).astype(dtype)}


def data_bytes(artifact: igniter.Artifact) -> int:
    return sum(path.stat().st_size for path in artifact.folder.glob("*.data"))


MODELS = {
    "static": network(),
    "part of a panel": network((16, 24)),
    "symbolic batch": network((16, 16, 16), batch="n"),
    "f64": network(dtype=np.float64),
    "one weight": network((16, 16, 16, 16), same=True),
}


@pytest.mark.parametrize("name", ["static", *(pytest.param(n, marks=pytest.mark.full) for n in list(MODELS)[1:])])
def test_outputs_have_the_same_bits_as_with_stored_weights(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    made, stored = (compiled(model, tmp_path / at, at) for at in ("load", "file"))
    for batch in (1, 3) if name == "symbolic batch" else (1,):
        feed = image(model, batch)
        assert made.session().run(None, feed)[0].tobytes() == stored.session().run(None, feed)[0].tobytes()
    assert made.report["tile_weights"]["at"] == "load" and made.report["tile_weights"]["stored"] == 0
    assert stored.report["tile_weights"]["at"] == "file"
    # 9 numbers in place of 9 and 36; each tensor begins at a multiple of a page.
    assert data_bytes(made) * 4 < data_bytes(stored)
    names = [t.name for t in onnx.load(made.model_path, load_external_data=False).graph.initializer]
    assert not [n for n in names if "winograd" in n]


@pytest.mark.full
def test_verification_and_every_value(tmp_path: Path) -> None:
    artifact = compiled(MODELS["static"], tmp_path / "out", verify=True)
    assert artifact.report["verification"]["ok"]
    assert artifact.verify().ok
    assert artifact.verify_every_value().status == "passed"


@pytest.mark.slow
def test_sessions_of_several_threads(tmp_path: Path) -> None:
    """They create, run and drop sessions of two models with one library: each has the results of its own weights."""
    plain, other = network(), network()
    for tensor in other.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(0.5), tensor.name))
    artifacts = [compiled(model, tmp_path / str(k)) for k, model in enumerate((plain, other))]
    assert artifacts[0].libraries[0].name == artifacts[1].libraries[0].name
    feed = image(plain)
    expected = [a.session().run(None, feed)[0] for a in artifacts]
    assert not np.array_equal(*expected)
    wrong: list[int] = []

    def work(number: int) -> None:
        for k in range(6):
            which = (number + k) % 2
            found = artifacts[which].session().run(None, feed)[0]
            if not np.array_equal(found, expected[which]):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_weight_that_the_session_is_given(tmp_path: Path) -> None:
    """ONNX Runtime's `add_initializer` replaces the constant, and the kernel transforms what replaces it."""
    model = network()
    artifact = compiled(model, tmp_path / "out")
    stored = onnx.load(artifact.model_path)
    (weight,) = [t for t in stored.graph.initializer if tuple(t.dims) == (3, 3, 16, 16)]
    halved = onnxruntime.OrtValue.ortvalue_from_numpy(numpy_helper.to_array(weight) * np.float32(0.5))
    options = onnxruntime.SessionOptions()
    options.add_initializer(weight.name, halved)
    feed = image(model)
    (found,), (plain,) = artifact.session(sess_options=options).run(None, feed), artifact.session().run(None, feed)
    # A power of two changes no rounding.
    assert (found == plain * np.float32(0.5)).all()


def test_a_moved_folder_that_cannot_be_written(tmp_path: Path) -> None:
    model = network()
    feed = image(model)
    artifact = compiled(model, tmp_path / "out")
    expected = artifact.session().run(None, feed)[0]
    moved = tmp_path / "moved"
    shutil.move(artifact.folder, moved)
    for path in (*moved.iterdir(), moved):
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert np.array_equal(igniter.Artifact.load(moved).session().run(None, feed)[0], expected)
    moved.chmod(0o755)


def test_a_weight_that_is_no_constant_is_refused(tmp_path: Path) -> None:
    """An edited model whose weight is an input of the graph too: the message names the input and the way out."""
    artifact = compiled(network(), tmp_path / "out")
    model = onnx.load(artifact.model_path)
    (weight,) = [t for t in model.graph.initializer if tuple(t.dims) == (3, 3, 16, 16)]
    model.graph.input.append(helper.make_tensor_value_info(weight.name, TensorProto.FLOAT, list(weight.dims)))
    onnx.save(model, artifact.model_path)
    with pytest.raises(SessionError, match=r"must be a constant of the model .* compile with --tile-weights=file"):
        artifact.session()


def test_the_body_of_a_branch_has_its_weights_stored(tmp_path: Path) -> None:
    """ONNX Runtime does not show an op there the constants around it."""
    model = network()
    convolution = list(model.graph.node)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y0", "z0")]
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["z0"])], "other", [], values[1:])
    branch = helper.make_node(
        "If", ["c"], ["y"], then_branch=helper.make_graph(convolution, "then", [], values[:1]), else_branch=other
    )
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.append(branch)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    artifact = compiled(model, tmp_path / "out", verify=True)
    assert artifact.report["verification"]["ok"]
    assert artifact.report["tile_weights"]["stored"] == 1 and artifact.report["tile_weights"]["at"] == "file"


@pytest.mark.full
def test_sanitized_kernels(tmp_path: Path) -> None:
    artifact = compiled(network(), tmp_path / "out", sanitize=True, verify=True)
    assert artifact.report["verification"]["ok"] and artifact.report["tile_weights"]["at"] == "load"


@pytest.mark.full
def test_several_variants_of_the_kernels(tmp_path: Path) -> None:
    """The library chooses the kernel that transforms weights as it chooses all others."""
    artifact = compiled(network(), tmp_path / "out", target="x86-64,x86-64-v3", verify=True)
    assert artifact.report["verification"]["ok"] and artifact.report["tile_weights"]["at"] == "load"


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(IgniterError, match="tile_weights must be load or file, not 'memory'"):
        igniter.CompileOptions(tile_weights="memory")
