"""The work of a compilation for GPUs, counted instead of timed: every kernel goes through Triton once for each GPU, and
what the cache has does not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.backends.ort.messages import c_literal
from igniter.backends.triton import texts
from igniter.compiler import artifact_checks

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

Runs = list[tuple[str, int]]
"""The kernels compiled by Triton, each with its GPU."""


def layers(*ops: str) -> onnx.ModelProto:
    """A model of ops on inputs of their own: a region for each."""
    names = range(len(ops))
    graph = helper.make_graph(
        [helper.make_node(op, [f"x{k}"], [f"y{k}"]) for k, op in enumerate(ops)],
        "layers",
        [helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, ["n", 64]) for k in names],
        [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, ["n", 64]) for k in names],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """In one process, without results of other tests in its memory."""
    texts._compiled.cache_clear()
    monkeypatch.setenv("IGNITER_JOBS", "1")
    found: Runs = []
    compile_source: Callable[..., Any] = texts.compile_source

    def counted(source: str, signature: tuple[str, ...], warps: int, stages: int, arch: int) -> Any:
        found.append((source, arch))
        return compile_source(source, signature, warps, stages, arch)

    monkeypatch.setattr(texts, "compile_source", counted)
    return found


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., igniter.Artifact]:
    """Compiles a model in a file, with a cache of the test's own."""
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))

    def one(model: onnx.ModelProto, folder: str, target: str = "cuda", **options: Any) -> igniter.Artifact:
        # As in a new process.
        texts._compiled.cache_clear()
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        # Results of a file that might have changed meanwhile are not kept.
        time.sleep(0.25)
        return igniter.compile(path, tmp_path / folder, target=target, **options)

    return one


@pytest.mark.slow
def test_each_kernel_is_compiled_once_for_each_gpu(runs: Runs, compiled: Callable[..., igniter.Artifact]) -> None:
    made = compiled(layers("Softmax", "Softmax"), "a", "cuda,cuda:sm_90", verify=False)
    assert made.report["kernels"] == 1
    assert len(runs) == len(set(runs)) == 2
    assert {arch for _, arch in runs} == {80, 90}


@pytest.mark.slow
def test_what_the_cache_has_is_not_compiled(runs: Runs, compiled: Callable[..., igniter.Artifact]) -> None:
    first = compiled(layers("Softmax", "Softplus"), "a", verify=False)
    assert len(runs) == 2
    for folder in ("a", "b"):
        again = compiled(layers("Softmax", "Softplus"), folder, verify=False)
        assert again.report["from_cache"]
        assert again.libraries[0].read_bytes() == first.libraries[0].read_bytes()
    assert len(runs) == 2
    # A model with one kernel more.
    compiled(layers("Softmax", "Softplus", "LogSoftmax"), "c", verify=False)
    assert len(runs) == 3 == len(set(runs))


@pytest.mark.slow
def test_a_result_needs_nothing_of_the_code_generator(
    compiled: Callable[..., igniter.Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(layers("Softmax"), "a")
    code = (
        "import igniter, sys\n"
        f"made = igniter.compile({str(tmp_path / 'model.onnx')!r}, {str(tmp_path / 'b')!r}, target='cuda')\n"
        "assert made.report['from_cache'] and made.report['verification']['status'] == 'not verified'\n"
        "print(*(m for m in ('triton', 'xdsl', 'llvmlite', 'onnx') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_without_the_provider_the_original_does_not_run(
    compiled: Callable[..., igniter.Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a verification without a result began")

    monkeypatch.setattr(artifact_checks.Checks, "verify", refuse)
    made = compiled(layers("Softmax"), "a")
    assert made.report["verification"]["status"] == "not verified"
    assert "is for ONNX Runtime's CUDAExecutionProvider" in made.report["verification"]["reasons"][0]


def test_every_byte_is_in_a_literal() -> None:
    data = bytes(range(256))
    text = c_literal(data)
    assert text.startswith('c"\\00\\01') and text.endswith('\\FF\\00"')
    assert "ABC" in text and "\\22" in text and "\\5C" in text
    assert text.count("\\") == 256 - 93 + 1
