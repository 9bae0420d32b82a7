"""`python -m tests.same_code`: its commands are those of RUN lines, and a difference is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.same_code.__main__ import ROOT, Item, _compare, _lit
from tests.same_code.dump import _answer


def test_commands_are_those_of_run_lines() -> None:
    items = _lit(ROOT)
    assert len({item.name for item in items}) == len(items) > 250
    assert not any({"|", "filecheck", "%s"} & set(item.args) for item in items)
    sample = next(item for item in items if item.name.endswith("onnx/infer_shapes.0"))
    assert sample.args == ["infer_shapes.mlir", "--split-input-file", "-p", "infer-shapes"]


def test_a_difference_is_found_and_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    items: list[Item] = []
    for name, passes in (("same", "canonicalize-onnx"), ("other", "infer-shapes")):
        item = Item(f"lit/{name}", ["infer_shapes.mlir", "--split-input-file", "-p", passes], "")
        items.append(item)
        folder = ROOT / "lit_tests" / "transforms" / "onnx"
        for side, given in (("old", item.args), ("new", [*item.args[:-1], "canonicalize-onnx"])):
            path = tmp_path / side / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_answer(given, folder))
    assert _compare(items[:1], tmp_path / "old", tmp_path / "new", 5) == 0
    assert _compare(items, tmp_path / "old", tmp_path / "new", 5) == 1
    assert "+++ new/lit/other" in capsys.readouterr().out
