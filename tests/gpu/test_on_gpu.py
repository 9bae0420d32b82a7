"""Libraries on a GPU by the driver, with torch's tensors: what `python -m benchmark.on_gpu` runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark.on_gpu.build import build, check_names

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")


def test_a_case_is_a_library_with_its_inputs_and_what_is_expected(tmp_path: Path) -> None:
    """Without a GPU: it is what another machine runs."""
    name = next(name for name in check_names(6) if "add" in name)
    build(tmp_path, ["checks"], tmp_path, jobs=1, only=name)
    (case, *_) = (each for each in json.loads((tmp_path / "cases.json").read_text()) if each["name"] == name)
    assert (tmp_path / case["library"]).read_bytes().startswith(b"\x7fELF")
    assert (tmp_path / case["data"]).exists() and case["kind"] == "check"


def test_cases_are_right_on_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: it is the host of cases on a GPU")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    from benchmark.on_gpu.run import run

    build(tmp_path, ["checks"], tmp_path, jobs=2, share=40)
    run(tmp_path, ["checks"], "", None, 0.0)
    said = capsys.readouterr().out
    assert "different" not in said and "failed" not in said
