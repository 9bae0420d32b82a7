"""An unchanged model is not compiled again: its finished result comes from the cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from test_lazy_imports import CLI, loaded
from tools_kit import tiny_model

import igniter
from igniter.compiler import in_place
from igniter.runtime import digests
from igniter.runtime.cache import Cache, cache_key, default_cache, default_folder
from igniter.runtime.files import write_whole

OLD = 1_600_000_000


@pytest.fixture
def settled(model: Path) -> Path:
    """A model whose file has not changed for years: the times of a fresh one could hide a change."""
    return settle(model)


def settle(path: Path) -> Path:
    # The time of the last change of the inode cannot be set; it is what makes a fresh file wait.
    os.utime(path, (OLD, OLD))
    import time

    time.sleep(0.25)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "report.json"}


@pytest.mark.slow
def test_a_second_compile_copies(settled: Path, tmp_path: Path) -> None:
    first = igniter.compile(settled, tmp_path / "one")
    second = igniter.compile(settled, tmp_path / "two")
    assert "from_cache" not in first.report and second.report["from_cache"]
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    same = first.report.keys() - {"seconds", "peak_memory", "source"}
    assert json.loads(json.dumps({k: first.report[k] for k in same})) == {k: second.report[k] for k in same}
    assert second.report["source"] == first.report["source"]
    assert second.verify(shapes=[{"batch": 3}])
    assert igniter.Artifact.load(tmp_path / "two").report == second.report
    assert igniter.compile(settled).report["from_cache"], "a folder of its own is no part of the key"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"winograd": 4}, {"target": "x86-64-v3"}, {"strict": True}])
def test_other_options_are_another_result(settled: Path, options: dict[str, Any]) -> None:
    igniter.compile(settled, verify=False)
    assert "from_cache" not in igniter.compile(settled, verify=False, **options).report
    assert "from_cache" not in igniter.compile(settled, verify=False, cache=False).report


@pytest.mark.slow
def test_another_model_of_that_name_is_compiled(settled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    igniter.compile(settled, verify=False)
    proto = onnx.load(settled)
    proto.graph.node[1].op_type = "Div"
    onnx.save(proto, settled)
    with monkeypatch.context() as patched:
        # Fresh however long the compile takes: its result is not kept.
        patched.setattr(digests, "SETTLED", 1 << 62)
        assert "from_cache" not in igniter.compile(settled, verify=False).report
    assert "from_cache" not in igniter.compile(settle(settled), verify=False).report
    assert igniter.compile(settled, verify=False).report["from_cache"]


@pytest.mark.slow
def test_external_data_is_part_of_the_model(tmp_path: Path) -> None:
    proto = tiny_model()
    path = tmp_path / "external.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="external.bin", size_threshold=0)
    settle(path), settle(tmp_path / "external.bin")
    igniter.compile(path, verify=False)
    assert igniter.compile(path, verify=False).report["from_cache"]
    data = bytearray((tmp_path / "external.bin").read_bytes())
    weight = next(t for t in onnx.load(path, load_external_data=False).graph.initializer if t.data_type == 1)
    offset = next((int(e.value) for e in weight.external_data if e.key == "offset"), 0)
    data[offset] ^= 1
    (tmp_path / "external.bin").write_bytes(data)
    settle(tmp_path / "external.bin")
    assert "from_cache" not in igniter.compile(path, verify=False).report
    assert igniter.compile(path, verify=False).report["from_cache"]
    (tmp_path / "external.bin").unlink()
    with pytest.raises(igniter.IgniterError, match=r"external data .* cannot be read"):
        igniter.compile(path, verify=False)


@pytest.mark.slow
def test_what_was_not_verified_is_verified(settled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    igniter.compile(settled, verify=False)
    found = igniter.compile(settled)
    assert found.report["from_cache"] and found.report["verification"]["ok"]
    assert "verify" not in igniter.compile(settled, verify=False).report["seconds"]
    monkeypatch.setattr(igniter.Artifact, "verify", lambda *_, **__: pytest.fail("that outcome is known"))
    assert igniter.compile(settled).report["verification"] == found.report["verification"]
    with pytest.raises(pytest.fail.Exception):
        igniter.compile(settled, shapes=[{"batch": 7}])


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_result_that_is_not_whole_is_made_anew(settled: Path, tmp_path: Path, damage: str) -> None:
    first = igniter.compile(settled, tmp_path / "one", verify=False)
    library = first.libraries[0].read_bytes()
    for path in (default_folder() / "objects-2").glob("*/*"):
        data = path.read_bytes()
        if data[32:] in (library, first.model_path.read_bytes()):
            if damage == "gone":
                path.unlink()
            else:
                path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    second = igniter.compile(settled, tmp_path / "two", verify=False)
    assert "from_cache" not in second.report
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.slow
def test_a_result_does_not_fill_the_cache(settled: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "30K")
    for k in range(3):
        artifact = igniter.compile(settled, tmp_path / str(k), verify=False)
        assert "from_cache" not in artifact.report, "it takes more than half of that"
        assert default_cache().size() <= 30 << 10


def test_a_model_is_read_once_to_be_hashed(settled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    digest = hashlib.file_digest

    def count(file: Any, name: str) -> Any:
        hashed.append(file.name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", count)
    artifact = igniter.compile(settled, verify=False)
    igniter.compile(settled, verify=False)
    igniter.Artifact.load(artifact.folder)
    # The libraries of folders are hashed as well, before each load.
    assert [name for name in hashed if not name.endswith(".so")] == [str(settled)]


@pytest.mark.slow
def test_it_takes_no_part_of_the_compiler(settled: Path, tmp_path: Path) -> None:
    igniter.compile(settled, tmp_path / "one")
    found = loaded(CLI, "compile", str(settled), "-o", str(tmp_path / "two"))
    assert (tmp_path / "two" / "model.onnx").exists()
    assert not found & {"numpy", "onnx", "onnxruntime", "xdsl"}


def test_files_are_stored_in_pieces(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path / "cache"), "ab" * 32
    data = np.random.default_rng(0).bytes(3_000_001)
    (tmp_path / "in").write_bytes(data)
    assert cache.put_file(key, tmp_path / "in")
    assert cache.get(key) == data
    assert cache.get_file(key, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    assert not cache.put_file(key, tmp_path / "missing")
    assert not cache.get_file("cd" * 32, tmp_path / "none") and not (tmp_path / "none").exists()


# -- a folder that holds the result already --------------------------------------------------------------------------


def compiled_into(folder: Path, model: Path) -> igniter.Artifact:
    return igniter.compile(model, folder, verify=False)


def test_the_same_folder_again_is_not_copied(settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "one"
    before, own = contents(compiled_into(folder, settled).folder), os.stat(folder).st_ino
    (folder / "notes.txt").write_text("the user's own")
    os.utime(folder / "model.onnx", (OLD, OLD))
    with monkeypatch.context() as patched:
        patched.setattr(Cache, "get_file", lambda *_: pytest.fail("the file is there"))
        again = compiled_into(folder, settled)
    assert again.report["from_cache"] and again.source == str(settled)
    assert igniter.Artifact.load(folder).report == again.report
    assert contents(folder) == {**before, "notes.txt": b"the user's own"}
    assert os.stat(folder).st_ino == own
    assert (folder / "model.onnx").stat().st_mtime > OLD, "make would compile again"


def test_a_folder_with_other_content_is_written_anew(settled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    first = compiled_into(folder, settled)
    before, path, elsewhere = contents(folder), first.libraries[0], tmp_path / "elsewhere"
    data, times = path.read_bytes(), path.stat()
    report = json.loads((folder / "report.json").read_text())
    elsewhere.write_bytes(data)

    def change() -> None:
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def link() -> None:
        path.unlink()
        path.symlink_to(elsewhere)

    def another() -> None:
        (folder / "old.data").write_bytes(b"of another result")
        (folder / "report.json").write_text(json.dumps({**report, "files": [*report["files"], "old.data"]}))

    damages: list[Callable[[], object]] = [change, link, another, path.unlink]
    damages.append(lambda: path.write_bytes(data[:-1]))
    damages.append(lambda: (folder / "report.json").write_text('{"igniter_artifact": 1}'))
    for damage in damages:
        damage()
        assert compiled_into(folder, settled).report["from_cache"]
        assert contents(folder) == before and not path.is_symlink()


def test_a_large_file_is_compared_once(settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "SMALL", 0)
    read: list[str] = []
    digest = digests.entry_digest
    monkeypatch.setattr(
        digests, "entry_digest", lambda key, file: read.append(Path(file.name).name) or digest(key, file)
    )
    library = compiled_into(tmp_path / "one", settled).libraries[0]
    assert "from_cache" in compiled_into(tmp_path / "two", settled).report
    settle(library), settle(tmp_path / "two" / library.name)
    for folder in ("one", "two"):
        compiled_into(tmp_path / folder, settled)
        read.clear()
        compiled_into(tmp_path / folder, settled)
        assert library.name not in read, "it has not changed since"
    data = library.read_bytes()
    library.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    settle(library)
    compiled_into(tmp_path / "one", settled)
    assert library.read_bytes() == data, "its times show that it was changed"


@pytest.mark.slow
def test_a_folder_that_is_replaced_meanwhile_stays_whole(
    settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "one", tmp_path / "other"
    before = contents(compiled_into(folder, settled).folder)
    igniter.compile(settled, other, verify=False, precision="bf16")
    replaced = contents(other)
    assert before != replaced

    def write(path: Path, text: str) -> None:
        os.rename(folder, tmp_path / "aside")
        os.rename(other, folder)
        write_whole(path, text)

    parts = {name: cache_key("result file", name) for name in before}
    cache = default_cache()
    for name, key in parts.items():
        assert cache.put_file(key, folder / name)
    report = json.loads((folder / "report.json").read_text())
    monkeypatch.setattr(in_place, "write_whole", write)
    assert in_place.in_place(report, parts, folder, cache, lambda _: None) is None
    assert contents(folder) == replaced
    assert igniter.Artifact.load(folder).report["options"]["precision"] == "bf16"
