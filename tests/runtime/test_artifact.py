"""Compiled models on disk: written at once, replaced safely, loaded, run and verified."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from library_kit import TARGET, build, model, node, scale_kernel, scale_op, value
from onnx import helper

import igniter
from igniter.backends.ort import emit_library
from igniter.compiler.artifact import Artifact, write_artifact
from igniter.dialects import library_names
from igniter.dialects.library_names import is_library_domain
from igniter.errors import IgniterError
from igniter.runtime import folders
from igniter.runtime.session import SessionError, make_session


def original(factor: float = 2.0) -> onnx.ModelProto:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    ins, outs = [value("x", 1, ["n", "m"])], [value("y", 1, ["n", "m"])]
    return model(nodes, ins, outs, [], {"w": np.array(factor, np.float32)})


def compiled(folder: Path, source: Path | bytes | None = None, factor: float = 2.0, **report: object) -> Artifact:
    library = build([scale_op()], [scale_kernel(factor=factor)])
    ins, outs = [value("x", 1, ["n", "m"])], [value("y", 1, ["n", "m"])]
    proto = model([node(library, "Scale_k", ["x"], ["y"])], ins, outs, [library.domain])
    return write_artifact(
        folder, save_model=lambda path: onnx.save(proto, path), libraries=[library], report=report, source=source
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "original.onnx"
    onnx.save(original(), path)
    return path


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.slow
def test_written_loaded_run_and_verified(tmp_path: Path, source: Path) -> None:
    written = compiled(tmp_path / "out", source, options={"target": TARGET.name})
    assert leftovers(tmp_path) == []
    loaded = Artifact.load(tmp_path / "out")
    assert loaded.report == written.report
    assert loaded.report["options"] == {"target": "native"}
    assert loaded.source == str(source)
    assert [info["domain"] for info in loaded.library_infos()] == [loaded.libraries[0].stem]
    x = np.ones((2, 3), np.float32)
    session = loaded.session(intra_op_num_threads=1, log_severity_level=3)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x * 2)
    assert loaded.verify() and written.verify(shapes=[{"n": 2, "m": 9}], rtol=0.0)
    assert loaded.verify(inputs={"x": x}, intra_op_num_threads=1)


def test_an_unregistered_library_is_named_by_onnxruntime(tmp_path: Path) -> None:
    written = compiled(tmp_path / "out")
    with pytest.raises(SessionError, match=rf"{written.libraries[0].stem}:Scale_k\(-1\) is not a registered"):
        make_session(written.model_path)


def test_a_folder_of_a_former_domain_loads(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its library has the present name, and its domain is another one: `igniter.HASH`."""
    monkeypatch.setattr(emit_library, "domain_of", lambda digest: f"igniter.{digest[:16]}")
    compiled(tmp_path / "out", source, options={"target": TARGET.name})
    monkeypatch.undo()
    old = Artifact.load(tmp_path / "out")
    (info,) = old.library_infos()
    assert info["domain"] == old.libraries[0].stem.replace("libigniter_", "igniter.")
    assert is_library_domain(info["domain"])
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(old.session(intra_op_num_threads=1).run(None, {"x": x})[0], x * 2)
    assert old.verify()
    # The present compiler reads the model, and keeps its op.
    again = igniter.compile(old.model_path, load=False, verify=False)
    assert [n.domain for n in onnx.load(str(again.model_path)).graph.node] == [info["domain"]]


def test_the_file_is_named_like_the_domain_on_every_system() -> None:
    domain = library_names.domain_of("0123456789abcdef" * 4)
    assert domain == "libigniter_0123456789abcdef" and is_library_domain(domain)
    triples = {
        "x86_64-unknown-linux-gnu": ".so",
        "aarch64-linux-android": ".so",
        "x86_64-pc-windows-msvc": ".dll",
        "x86_64-pc-windows-gnu": ".dll",
        "arm64-apple-macosx13.0.0": ".dylib",
        "arm64-apple-ios15.0": ".dylib",
    }
    for triple, suffix in triples.items():
        assert library_names.file_name(domain, triple) == domain + suffix
    assert library_names.file_name("igniter.0123456789abcdef") == f"{domain}.so"
    assert not any(is_library_domain(d) for d in ("", "ai.onnx", "igniter.bound", "igniter.collective", "libigniter_x"))


def test_a_wrong_library_is_found_out(tmp_path: Path, source: Path) -> None:
    result = compiled(tmp_path / "out", source, factor=2.5).verify()
    assert not result
    assert "output 'y'" in result.failures[0]


@pytest.mark.slow
def test_the_original_must_be_known(tmp_path: Path, source: Path) -> None:
    compiled(tmp_path / "out", source)
    onnx.save(original(3.0), source)
    changed = Artifact.load(tmp_path / "out")
    with pytest.raises(IgniterError, match="is unknown or has changed since"):
        changed.verify()
    assert not changed.verify(reference=source)
    assert changed.verify(reference=original().SerializeToString())
    in_memory = compiled(tmp_path / "other", original().SerializeToString())
    assert in_memory.verify()
    with pytest.raises(IgniterError, match="is unknown or has changed"):
        Artifact.load(tmp_path / "other").verify()


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [True, False])
def test_a_compiled_model_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool) -> None:
    if not exchange:
        monkeypatch.setattr(folders, "exchange", lambda *_: False)
    first = compiled(tmp_path / "out")
    session = first.session()
    (tmp_path / "out" / "extra.txt").write_text("left by hand")
    second = compiled(tmp_path / "out", factor=3.0)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        ["extra.txt", "model.onnx", "report.json", second.libraries[0].name]
    )
    x = np.ones((1, 1), np.float32)
    assert second.session().run(None, {"x": x})[0] == 3
    # What a process has loaded stays what it was.
    assert session.run(None, {"x": x})[0] == 2
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "report.json").write_text("{}")
    with pytest.raises(IgniterError, match="something other than a compiled model; not replaced"):
        compiled(mine)
    assert (mine / "report.json").read_text() == "{}"
    (tmp_path / "file").write_text("x")
    with pytest.raises(IgniterError, match="is a file"):
        compiled(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert compiled(tmp_path / "empty").model_path.exists()


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    compiled(tmp_path / "out")
    before = (tmp_path / "out" / "report.json").read_bytes()

    def fail(path: Path) -> None:
        path.write_bytes(b"half a model")
        raise IgniterError("the disk is on fire")

    with pytest.raises(IgniterError, match="on fire"):
        write_artifact(tmp_path / "out", save_model=fail)
    assert (tmp_path / "out" / "report.json").read_bytes() == before
    assert leftovers(tmp_path) == []


def test_a_temporary_folder_is_removed_with_its_artifact_or_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = write_artifact(None, save_model=lambda path: onnx.save(original(), path))
    assert made.folder.parent.parent == tmp_path and (made.folder / "model.onnx").exists()
    del made
    gc.collect()
    assert list(tmp_path.iterdir()) == []

    def fail(path: Path) -> None:
        raise IgniterError(f"no place for {path.name}")

    with pytest.raises(IgniterError, match=r"no place for model\.onnx") as caught:
        write_artifact(None, save_model=fail)
    assert list(tmp_path.iterdir()) == [], caught


def test_what_is_not_whole_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match="is not a model compiled by Igniter"):
        Artifact.load(tmp_path)
    made = compiled(tmp_path / "out")
    made.libraries[0].unlink()
    with pytest.raises(IgniterError, match=r"is incomplete: libigniter_\w+\.so is missing"):
        Artifact.load(tmp_path / "out")
    report = tmp_path / "out" / "report.json"
    report.write_text(json.dumps({**json.loads(report.read_text()), "igniter_artifact": 99}))
    with pytest.raises(IgniterError, match="another version of Igniter"):
        Artifact.load(tmp_path / "out")


def test_libraries_are_only_looked_for_in_the_folder(tmp_path: Path) -> None:
    compiled(tmp_path / "out")
    report = tmp_path / "out" / "report.json"
    report.write_text(json.dumps({**json.loads(report.read_text()), "libraries": ["../../evil.so"]}))
    with pytest.raises(IgniterError, match=r"incomplete: evil\.so is missing"):
        Artifact.load(tmp_path / "out")


def test_nothing_compiled_is_still_a_model(tmp_path: Path, source: Path) -> None:
    plain = write_artifact(tmp_path / "out", save_model=lambda p: onnx.save(original(), p), source=source)
    assert plain.libraries == [] and plain.verify()


def test_the_folder_is_as_readable_as_any(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        compiled(tmp_path / "deep" / "out")
    finally:
        os.umask(old)
    assert (tmp_path / "deep" / "out").stat().st_mode & 0o777 == 0o755


def test_session_options_are_checked(tmp_path: Path) -> None:
    made = compiled(tmp_path / "out")
    with pytest.raises(IgniterError, match=r"no option 'intra_threads'; known: providers, .*intra_op_num_threads"):
        made.session(intra_threads=1)
    with pytest.raises(IgniterError, match="does not load the model"):
        make_session(b"not a model")
    (tmp_path / "bad.so").write_bytes(b"not a library")
    with pytest.raises(IgniterError, match=r"does not load .*bad\.so"):
        make_session(original().SerializeToString(), [tmp_path / "bad.so"])
    session = made.session(config={"session.intra_op.allow_spinning": "0"}, providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.zeros((0, 1), np.float32)})[0].shape == (0, 1)


def test_weights_go_beside_the_model_and_are_mapped(tmp_path: Path) -> None:
    """The frontend writes the model; what it puts beside it moves with the folder."""
    from igniter.frontend import import_model, save_model

    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    weight = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    proto = model(nodes, [value("x", 1, ["n", 64])], [value("y", 1, [64, 64])], [], {"w": weight})
    imported = import_model(proto.SerializeToString())
    made = write_artifact(
        tmp_path / "out",
        save_model=lambda path: save_model(imported, path, external_data_threshold=1024, hashed=True),
        source=proto.SerializeToString(),
    )
    (tmp_path / "out").rename(tmp_path / "moved")
    moved = Artifact.load(tmp_path / "moved")
    (weights,) = moved.folder.glob("*.data")
    assert sorted(p.name for p in moved.folder.iterdir()) == sorted([weights.name, "model.onnx", "report.json"])
    external = onnx.load(moved.model_path, load_external_data=False).graph.initializer[0].external_data
    assert {e.key: e.value for e in external}["offset"] == "0"
    assert moved.verify(reference=proto.SerializeToString(), shapes=[{"n": 64}, {"n": 1}])
    assert made.report["libraries"] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"libraries": 5}, "'libraries' is of the type int"),
        ({"libraries": [None]}, "'libraries' does not list names"),
        ({"source": ["x"]}, "'source' is of the type list"),
        ({"source": {"path": 7}}, "'source' has an entry that is not a string"),
        ({"options": "f32"}, "'options' is of the type str"),
        ({"programs": [3]}, "an entry of a list is not an object"),
        ({"igniter_artifact": "new"}, "another version"),
        ({"files": {"a": 1}}, "'files' is of the type dict"),
    ],
)
def test_a_damaged_report_is_said_to_be_damaged(
    tmp_path: Path, source: Path, change: dict[str, object], said: str
) -> None:
    import json

    import igniter

    igniter.compile(source, tmp_path / "out", verify=False, cache=False)
    path = tmp_path / "out" / "report.json"
    report = json.loads(path.read_text())
    path.write_text(json.dumps({**report, **change}))
    with pytest.raises(IgniterError, match=said):
        Artifact.load(tmp_path / "out")
    for text in ("", "{", "[" * 100_000, "null", '{"igniter_artifact"', "\0"):
        path.write_text(text)
        with pytest.raises(IgniterError, match="is not a model compiled by Igniter"):
            Artifact.load(tmp_path / "out")


def test_an_optimised_model_is_saved_beside_its_weights(tmp_path: Path) -> None:
    """ORT writes the weights' path as it stands in the model, so that elsewhere it leads nowhere."""
    import igniter

    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal((64, 64)).astype(np.float32), "w")]
    values = [onnx.helper.make_tensor_value_info(name, 1, ["n", 64]) for name in "xy"]
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    proto = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:], weights))
    proto.opset_import[0].version, proto.ir_version = 17, 8
    artifact = igniter.compile(proto, tmp_path / "out", verify=False)
    assert list((tmp_path / "out").glob("*.data"))
    with pytest.raises(IgniterError, match=r"would save its optimised model as .* without its weights"):
        artifact.session(optimized_model_filepath=str(tmp_path / "elsewhere.onnx"))
    saved = tmp_path / "out" / "optimised.onnx"
    x = np.ones((2, 64), np.float32)
    (expected,) = artifact.session(optimized_model_filepath=str(saved)).run(None, {"x": x})
    (found,) = make_session(saved, artifact.libraries).run(None, {"x": x})
    np.testing.assert_array_equal(found, expected)
