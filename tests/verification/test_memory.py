"""A verification's use of memory: outputs are compared in blocks, and sessions share the weights of a large model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from igniter.runtime.session import SessionError, make_session
from igniter.verification import judgement, mapped
from igniter.verification import original as original_module
from igniter.verification.judgement import Noise, compare_output
from igniter.verification.original import Original

SHAPES = [(), (1,), (0,), (3, 0, 2), (1, 1, 50), (7, 5), (2, 3, 4, 5), (1, 40, 3), (64, 64), (1, 1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocks_cover_each_element_once(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 4, 7, 1 << 18):
        monkeypatch.setattr(judgement, "BLOCK", block)
        seen = np.zeros(shape, int)
        for place in judgement._blocks(shape):
            seen[place] += 1
            assert seen[place].size <= block
        assert np.all(seen == 1)


def cases() -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Noise]]:
    rng = np.random.default_rng(0)
    made: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Noise]] = []
    for shape in SHAPES:
        for dtype in (np.float32, np.float64, np.float16, np.complex64):
            for off in (0.0, 1e-6, 1e-3, 3.0):
                e = (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3)).astype(dtype)
                a = (e + off * rng.standard_normal(shape)).astype(dtype)
                if a.size > 4 and off == 1e-3:
                    a.reshape(-1)[[0, 2]] = np.nan, np.inf
                    e.reshape(-1)[[0, 2]] = np.nan, rng.choice([np.inf, 1.0])
                others = [(e + 1e-5 * rng.standard_normal(shape)).astype(dtype) for _ in range(int(rng.integers(3)))]
                made.append((e, a, Noise(others=others)))
    return made


@pytest.mark.slow
def test_a_comparison_in_blocks_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for e, a, noise in cases():
        monkeypatch.setattr(judgement, "BLOCK", 1 << 18)
        whole = compare_output("y", e, a, noise=noise)
        for block in (1, 6, 33):
            monkeypatch.setattr(judgement, "BLOCK", block)
            np.testing.assert_equal(vars(compare_output("y", e, a, noise=noise)), vars(whole))


def large(depth: int, quantised: bool = False) -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array((rng.standard_normal((depth, depth)) / np.sqrt(depth)).astype(np.float32), "w")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if quantised:
        nodes = [*nodes, helper.make_node("DynamicQuantizeLinear", ["y"], ["q", "s", "z"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", depth])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", depth])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sessions_share_the_weights_of_a_large_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    model = large(512)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    x = np.random.default_rng(2).standard_normal((3, 512)).astype(np.float32)
    expected, _ = Original(str(path)).run({"x": x})
    for source in (str(path), model.SerializeToString()):
        original = Original(source, is_shared=True)
        assert original.model != source
        folder = Path(str(original.model)).parent
        assert (folder / "weights").stat().st_size == 512 * 512 * 4
        found, _ = original.run({"x": x})
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)
        # The sessions made of its message find the weights, too.
        again = original.others({"x": x}, {}, 0, thorough=True, seconds=None)
        assert len(again) > 2
        del original
        assert not folder.exists()


def test_other_models_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = large(512)
    assert mapped.mapped(model.SerializeToString()) is None
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    assert mapped.mapped(b"no model" * (1 << 16)) is None
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data")
    monkeypatch.setattr(mapped, "LARGE", 1)
    assert mapped.mapped(str(path)) is None


def test_quantised_and_small_models_pack_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mapped.needs_packing(large(512))
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    for quantised in (False, True):
        assert mapped.needs_packing(large(512, quantised)) == quantised


def settings_of(original: Original, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def make(model: Any, **options: Any) -> Any:
        given.update(options)
        return make_session(model, **options)

    monkeypatch.setattr(original_module, "make_session", make)
    assert original.session is not None
    return given


@pytest.mark.parametrize("external", [False, True])
def test_shared_sessions_do_not_pack_weights_and_keep_no_memory(
    external: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    path = tmp_path / "m.onnx"
    onnx.save(large(512), path, save_as_external_data=external, location="m.data")
    for shared in (False, True):
        given = settings_of(Original(str(path), is_shared=shared), monkeypatch)
        assert given["config"].get("session.disable_prepacking") == ("1" if shared else None)
        assert given.get("enable_cpu_mem_arena", True) == (not shared)


def test_a_copy_has_all_values_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that stay in the message: integers, constants of nodes, and small tensors."""
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    model = large(512)
    rng = np.random.default_rng(3)
    constant = numpy_helper.from_array(rng.standard_normal((4, 512)).astype(np.float32), "c")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=constant))
    model.graph.node.append(helper.make_node("Gather", ["c", "i"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    model.graph.initializer.append(numpy_helper.from_array(rng.integers(0, 4, (3, 800)), "i"))
    model.graph.initializer.append(helper.make_tensor("f", TensorProto.FLOAT, [2], [1.0, 2.0]))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    for source in (str(path), model.SerializeToString()):
        made = mapped.mapped(source)
        assert made is not None
        raw = onnx.load(made.path, load_external_data=False)
        assert [t.name for t in raw.graph.initializer if t.data_location == TensorProto.EXTERNAL] == ["w"]
        assert onnx.load(made.path).graph.node == model.graph.node
        for one, two in zip(onnx.load(made.path).graph.initializer, model.graph.initializer, strict=True):
            assert np.array_equal(numpy_helper.to_array(one), numpy_helper.to_array(two))


@pytest.mark.slow
def test_a_copy_is_made_a_weight_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    count, depth = 24, 1024
    weights = [numpy_helper.from_array(np.full((depth, depth), k, np.float32), f"w{k}") for k in range(count)]
    graph = helper.make_graph([], "g", [], [], weights)
    onnx.save(helper.make_model(graph), path)
    code = (
        "import sys; from igniter.verification.mapped import mapped\n"
        "def anonymous():\n"
        "    return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('RssAnon'))\n"
        "before = anonymous(); peak = []\n"
        "sys.setprofile(lambda *_: peak.append(anonymous()))\n"
        "made = mapped(sys.argv[1]); sys.setprofile(None)\n"
        "print(made is not None, (max(peak) - before) >> 10)"
    )
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    made, grown = found.split()
    assert made == "True" and int(grown) < 24, found


def test_without_room_for_a_copy_the_model_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    monkeypatch.setattr(mapped.tempfile, "tempdir", str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped, "_refer", full)
    data = large(512).SerializeToString()
    original = Original(data, is_shared=True)
    assert original.model == data
    assert not list(tmp_path.iterdir())


def test_an_error_names_the_model_and_not_its_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mapped, "LARGE", 1 << 18)
    model = large(512)
    model.graph.node[0].op_type = "NoSuchOp"
    path = tmp_path / "odd.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(SessionError, match=r"does not load .*odd\.onnx") as caught:
        Original(str(path), is_shared=True).session
    assert "igniter-original" not in caught.value.message
