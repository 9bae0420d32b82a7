"""The corpus: its page has a table for each kind of CPU, and a run renews its own."""

from __future__ import annotations

from typing import Any

from benchmark.corpus import counted, page
from benchmark.performance import kind_of
from igniter.backends.cpu.target import target_of

ROW: dict[str, Any] = {
    "model": "a reader",
    "exit": 0,
    "nodes": [9, 1, 1],
    "verification": {"cases": [{"status": "passed"}]},
    "error": 1e-6,
    "noise": 2e-6,
    "times": [{"threads": 1, "ort": 5.0, "ratio": 0.8, "openvino": None, "control": 1.0}],
}


def test_a_run_renews_the_table_of_its_cpu() -> None:
    kind = kind_of(target_of("native"))
    before = f"# Title\n\n## {kind}\n\nold rows\n\n## Another kind\n\nits rows\n"
    first = page([ROW], [1], before)
    assert "| a reader | 0 | 9 -> 1 (1) | 1 sizes | 1.0e-06 | 2.0e-06 | 1 | 5.000 | 0.80 |  | 1.00 |" in first
    assert "old rows" not in first
    assert first.endswith("## Another kind\n\nits rows\n")
    assert page([ROW], [1], first) == first


def test_slower_rows_are_counted_beyond_the_noise() -> None:
    slow = [{**ROW["times"][0], "ratio": ratio, "control": control} for ratio, control in ((1.2, 1.0), (1.2, 0.75))]
    assert "1 of 2 rows are slower" in counted([{**ROW, "times": slow}])
