"""Kernels that other processes compile: the same library, whoever compiled it, and the same where none can."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler import assembling as assembling_module
from igniter.compiler import compile_helpers
from igniter.compiler.assembling import assembling, missing
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.compile_helpers import MOST, WORTHWHILE, CompileHelpers, jobs
from igniter.context import IgniterContext
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache
from igniter.runtime.library import object_key

KERNELS = 2 * WORTHWHILE


def network(folder: Path) -> Path:
    """Matrix products of different sizes, each a kernel of its own."""
    rng, nodes, weights, value = np.random.default_rng(0), [], [], "x"
    sizes = [16, *(24 + 8 * k for k in range(KERNELS))]
    for k, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        array = (rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{k}"))
        nodes += [
            helper.make_node("MatMul", [value, f"w{k}"], [f"m{k}"]),
            helper.make_node("Tanh", [f"m{k}"], [f"t{k}"]),
        ]
        value = f"t{k}"
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        weights,
    )
    model = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    return model


def compiled(model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> igniter.Artifact:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("IGNITER_JOBS", str(count))
    return igniter.compile(model, folder / "out")


def library(artifact: igniter.Artifact) -> bytes:
    (path,) = Path(artifact.model_path).parent.glob("*.so")
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("forks", [True, False])
def test_whoever_compiles_the_library_is_the_same(forks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_helpers, "can_fork", lambda: forks)
    model = network(tmp_path)
    alone = compiled(model, tmp_path / "alone", monkeypatch, 1)
    begun: list[int] = []
    start = CompileHelpers.__enter__

    def counted(self: CompileHelpers) -> CompileHelpers:
        begun.append(self._count)
        return start(self)

    monkeypatch.setattr(CompileHelpers, "__enter__", counted)
    together = compiled(model, tmp_path / "together", monkeypatch, 3)
    assert begun == [2 if forks else 1]
    assert library(alone) == library(together)
    assert alone.report["remarks"] == together.report["remarks"]
    assert together.report["verification"]["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("forks", [True, False])
def test_helpers_do_the_last_kernels(forks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody here compiles, helpers do, from the end; and what they have begun is waited for."""
    monkeypatch.setattr(compile_helpers, "can_fork", lambda: forks)
    from igniter.compiler.driver import kernel_key, make_fusion, make_loop, make_onnx

    monkeypatch.setenv("IGNITER_JOBS", "2")
    module = igniter.load(network(tmp_path))
    c = Compilation(module.ir, CompileOptions(), IgniterContext(), Cache(tmp_path / "cache"))
    make_onnx(c)
    make_fusion(c)
    make_loop(c)
    texts = [str(op) for op in c.module.ops if op.name == "loop.kernel"]
    assert len(texts) >= KERNELS
    cache = c.cache
    assert cache is not None
    with CompileHelpers(c, texts) as helpers:
        for _ in range(600):
            if cache.has(kernel_key(c, texts[-1])):
                break
            helpers._threads[0].join(0.1)  # pyright: ignore[reportPrivateUsage]
        helpers.wait_for(texts[-1])
        assert cache.has(kernel_key(c, texts[-1]))
        helpers.wait_for(texts[0])


@pytest.mark.slow
def test_a_fork_makes_objects_for_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from igniter.compiler.driver import lower_to_kernels, make_library, texts_of

    monkeypatch.setenv("IGNITER_JOBS", "1")
    module = igniter.load(network(tmp_path))
    cache = Cache(tmp_path / "cache")
    c = Compilation(module.ir, CompileOptions(), IgniterContext(), cache)
    lower_to_kernels(c)
    texts = texts_of(c)
    work = missing(texts, cache)
    assert len(work) > KERNELS
    with assembling(texts, cache):
        assert len(missing(texts, cache)) == len(work), "with one process there is no fork"
    monkeypatch.setenv("IGNITER_JOBS", "2")
    monkeypatch.setattr(assembling_module, "can_fork", lambda: True)
    target, last = work[-1]
    with assembling(texts, cache):
        for _ in range(600):
            if cache.has(object_key(last, target)):
                break
            time.sleep(0.1)
    assert cache.has(object_key(last, target)), "the fork begins at the end"
    monkeypatch.setattr(assembling_module, "_assemble", lambda *_: os._exit(1))
    library = make_library(c)
    assert library is not None and not missing(texts, cache), "what a fork leaves is made here"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("no program", marks=pytest.mark.full),
        "one that ends",
        pytest.param("one that says something else", marks=pytest.mark.full),
    ],
)
def test_without_helpers_all_is_done_here(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text({"one that ends": "#!/bin/sh\nexit 3\n"}.get(broken, "#!/bin/sh\necho hello\n"))
    program.chmod(0o755)
    monkeypatch.setattr(compile_helpers, "can_fork", lambda: False)
    monkeypatch.setattr(
        compile_helpers.sys, "executable", str(tmp_path / "nothing" if broken == "no program" else program)
    )
    artifact = compiled(network(tmp_path), tmp_path, monkeypatch, 2)
    monkeypatch.setattr(compile_helpers.sys, "executable", sys.executable)
    assert artifact.report["verification"]["ok"]


@pytest.mark.slow
def test_without_forks_there_are_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without room for a fork starts a process, and a fork that ends leaves its kernels to this process."""
    monkeypatch.setattr(compile_helpers, "can_fork", lambda: True)

    def ends(*_: int) -> None:
        compile_helpers.os._exit(1)

    monkeypatch.setattr(compile_helpers, "_serve", ends)
    artifact = compiled(network(tmp_path), tmp_path, monkeypatch, 2)
    assert artifact.report["verification"]["ok"]

    def full() -> int:
        raise OSError

    monkeypatch.setattr(compile_helpers.os, "fork", full)
    again = compiled(network(tmp_path), tmp_path / "again", monkeypatch, 2)
    assert library(again) == library(artifact)


def test_a_process_with_threads_does_not_fork() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not compile_helpers.can_fork()
    finally:
        done.set()
        thread.join()


def test_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IGNITER_JOBS")
    assert 1 <= jobs() <= MOST
    monkeypatch.setenv("IGNITER_JOBS", "12")
    assert jobs() == 12
    monkeypatch.setenv("IGNITER_JOBS", "many")
    with pytest.raises(IgniterError, match="IGNITER_JOBS is 'many'"):
        jobs()
