"""Compiled models on disk while others write them: nothing is lost, nothing is mixed, nothing comes from elsewhere."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError

from .models import model

SECONDS = 4.0


def constant_model(value: float) -> onnx.ModelProto:
    """y = (w @ x) and z = w, where every weight is `value`: parts of two models would show."""
    text = "g (float[n, 64] x) => (float[n, 64] y, float[64] z) { y = MatMul (x, w)  a = Relu (v)  z = Add (a, v) }"
    weights = {"w": np.full((64, 64), value, np.float32), "v": np.full(64, value, np.float32)}
    return model(text, **weights)


def _compile_again_and_again(
    folder: str, value: float, cache: str, started: Barrier, failures: multiprocessing.Queue[str]
) -> None:
    os.environ["IGNITER_CACHE_DIR"] = cache
    started.wait(60)
    until = time.time() + SECONDS
    try:
        while time.time() < until:
            igniter.compile(constant_model(value), folder, budget=60.0, shapes=[{"n": 2}])
    except Exception as error:
        failures.put(f"compile: {error}")


@pytest.mark.slow
def test_two_processes_and_sessions_never_see_a_mixed_model(tmp_path: Path) -> None:
    """One process puts the model of 1, another that of 2 into one folder, while sessions are opened here."""
    folder, cache = tmp_path / "out", str(tmp_path / "cache")
    igniter.compile(constant_model(1.0), folder, shapes=[{"n": 2}])
    (folder / "tokenizer.json").write_text("mine")
    # A fork would copy locks that ONNX Runtime's and LLVM's threads hold, and its child could hang or crash.
    context = multiprocessing.get_context("spawn")
    failures: multiprocessing.Queue[str] = context.Queue()
    started = context.Barrier(3)
    writers = [
        context.Process(
            target=_compile_again_and_again, args=(str(folder), value, cache, started, failures), daemon=True
        )
        for value in (1.0, 2.0)
    ]
    for writer in writers:
        writer.start()
    started.wait(60)
    until = time.time() + SECONDS
    seen: set[float] = set()
    x = np.ones((1, 64), np.float32)
    opened = 0
    while time.time() < until:
        y, z = Artifact.load(folder).session(intra_op_num_threads=1, log_severity_level=4).run(None, {"x": x})
        values = {float(v) for v in y.reshape(-1) / 64} | {float(v) for v in z / 2}
        assert len(values) == 1, f"parts of two models: {values}"
        seen |= values
        opened += 1
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0, f"a writer ended with {writer.exitcode}"
    assert failures.empty(), failures.get()
    assert opened > 3 and seen <= {1.0, 2.0}
    assert (folder / "tokenizer.json").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".out")] == []


def test_weights_have_a_name_of_their_own(tmp_path: Path) -> None:
    one, two = (igniter.compile(constant_model(v), tmp_path / f"{v}", verify=False) for v in (1.0, 2.0))
    names = [next(p.name for p in a.folder.glob("model.*.data")) for a in (one, two)]
    assert names[0] != names[1]
    again = igniter.compile(constant_model(1.0), tmp_path / "again", verify=False)
    assert (again.folder / names[0]).exists()


def external(path: Path, location: str, values: np.ndarray) -> None:
    proto = model("g (float[n, 8] x) => (float[n, 8] y) { y = Add (x, w) }")
    tensor = numpy_helper.from_array(values, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    proto.graph.initializer.append(tensor)
    path.write_bytes(proto.SerializeToString())


def test_weights_that_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    values = np.arange(8, dtype=np.float32)
    (tmp_path / "m").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "w").write_bytes(values.tobytes())
    (tmp_path / "m" / "link").symlink_to("../elsewhere/w")
    (tmp_path / "m" / "folder").symlink_to("../elsewhere")
    for location in ("link", "folder/w", "../elsewhere/w", str(tmp_path / "elsewhere" / "w")):
        external(tmp_path / "m" / "a.onnx", location, values)
        with pytest.raises(IgniterError, match=r"external data at .*(outside the model's folder|is not a file in)"):
            igniter.compile(tmp_path / "m" / "a.onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_cache_of_links_is_a_folder(tmp_path: Path) -> None:
    """Model and weights are links into one folder of blobs, as Hugging Face lays out what it downloads."""
    values = np.arange(8, dtype=np.float32)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    external(tmp_path / "blobs" / "0a", "w", values)
    (tmp_path / "blobs" / "0b").write_bytes(values.tobytes())
    (tmp_path / "snapshot" / "model.onnx").symlink_to("../blobs/0a")
    (tmp_path / "snapshot" / "w").symlink_to("../blobs/0b")
    assert igniter.compile(tmp_path / "snapshot" / "model.onnx", tmp_path / "out").report["verification"]["ok"]
