"""The benchmark of products with weights of few bits, at a small size."""

from __future__ import annotations

import json

import pytest

from benchmark import few_bits


@pytest.mark.slow
def test_a_row_for_each_level(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--kn 64x32 --pairs 1 --rows 2 --threads 1 --levels 0 4 --zeros --symbol --rounds 1 --json"
    monkeypatch.setattr("sys.argv", ["few_bits", *options.split()])
    assert few_bits.main() == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["rows"], row["level"]) for row in rows] == [(2, 0), (2, 4)]
    # Codes of 64 x 32 and back, scales and zero points: 2 * (1024 + 4 * 64 + 32 or 64).
    assert rows[0]["rate"] * rows[0]["own"] / 1e3 == pytest.approx(2 * 1024 + 2 * 256 + 32 + 64)
