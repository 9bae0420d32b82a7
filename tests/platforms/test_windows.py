"""Models compiled for Windows, run by stock ONNX Runtime for Windows under Wine; without it these tests skip.

`python -m tests.platforms.windows` fetches what they need.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import igniter
from benchmark.models.packaged import MODELS, fetch
from tests.conformance.node_cases import CaseResult
from tests.platforms import windows
from tests.platforms.aarch64_cases import compile_case
from tests.platforms.aarch64_models import LIMIT, max_error

pytestmark = pytest.mark.skipif(windows.missing() is not None, reason=windows.missing() or "")

CASES = (
    "test_softmax_axis_1",
    "test_matmulinteger",
    "test_conv_with_strides_padding",
    "test_layer_normalization_2d_axis1",
    "test_gelu_default_1",
)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("wine") / "prefix"


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_node_cases(name: str, prefix: Path, tmp_path: Path) -> None:
    compiled = compile_case(name, "x86-64-v3-windows", tmp_path / "out")
    assert not isinstance(compiled, CaseResult) and compiled.status == "native"
    found, said = windows.run(tmp_path / "out", compiled.feed, prefix)
    assert said == f"onnxruntime {onnxruntime.__version__}"
    result = compiled.judged(list(found))
    assert result.status == "native", result.reason


@pytest.mark.full
@pytest.mark.parametrize("name", ["silero-vad sequence", "captcha CRNN", "MiniLM int8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_models(name: str, threads: int, prefix: Path, tmp_path: Path) -> None:
    (entry,) = (m for m in MODELS if m.name == name)
    fetch(entry.package)
    feed = entry.feed(onnxruntime.InferenceSession(str(entry.file)))
    here = igniter.load(entry.file).compile(tmp_path / "here", target="x86-64-v3", verify=False)
    igniter.load(entry.file).compile(tmp_path / "there", target="x86-64-v3-windows", verify=False, load=False)
    found, _ = windows.run(tmp_path / "there", feed, prefix, threads, runs=2)
    assert max_error(here.session(intra_op_num_threads=1).run(None, feed), found) <= LIMIT


@pytest.mark.full
def test_without_the_library_the_domain_is_named(prefix: Path, tmp_path: Path) -> None:
    compiled = compile_case("test_softmax_axis_1", "x86-64-windows", tmp_path / "out")
    assert not isinstance(compiled, CaseResult)
    (library,) = (tmp_path / "out").glob("*.dll")
    with pytest.raises(RuntimeError, match=library.stem):
        windows.run(tmp_path / "out", {"x": np.zeros((3, 4, 5), np.float32)}, prefix, library=False)
