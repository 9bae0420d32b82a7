"""The list of tests that need what `make test` does without is whole."""

from __future__ import annotations

import re
from pathlib import Path

from tests.extras.__main__ import ROOT, TESTS

NEEDS = re.compile(
    r"importorskip\(\s*[\"'](?:torch|transformers|onnxscript|playwright|tokenizers|jinja2|onnxruntime_genai)\b"
    r"|apt-get install chromium|fish is not installed"
)
ELSEWHERE = {"tests/gpu/test_on_gpu.py"}
"""It needs a GPU as well: `make test-gpu`."""


def test_every_test_that_needs_an_extra_runs_with_it() -> None:
    needing = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and NEEDS.search(path.read_text(encoding="utf-8"))
    }
    assert needing >= {"tests/torch/test_module.py", "tests/runtime/report/conftest.py"}
    left_out = {path for path in needing - ELSEWHERE if not path.startswith(TESTS)}
    assert left_out == set()
    assert all((ROOT / path).exists() for path in TESTS)
