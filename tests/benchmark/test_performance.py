"""The table of whole models: its rows are measured once, and it goes to the section of its kind of CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark import performance
from benchmark.plot import svg, table_of
from igniter.backends.cpu.target import target_of

SECONDS = {"ort": 0.010, "igniter f32": 0.008, "ort again": 0.0102}


def row(model: str, **more: float) -> dict[str, object]:
    return {"model": model, "batch": 1, "threads": 2, "seconds": {**SECONDS, **more}, "errors": {}}


HEADER = {"kind": "AMX", "cpu": "Xeon", "date": "2026-01-02", "version": "1.2.3", "beside": ["ONNX Runtime 1"]}


def test_a_table_has_ratios_and_what_they_are_of() -> None:
    rows = [row("resnet50", **{"igniter bf16": 0.002}), row("bert_base", **{"igniter bf16": 0.004})]
    lines = performance.table_of(HEADER, rows).splitlines()
    assert lines[0].startswith("Igniter 1.2.3 beside ONNX Runtime 1, 2026-01-02, Xeon") and "differ by 2%" in lines[0]
    assert lines[2] == "| model | batch | threads | ORT, ms | Igniter | Igniter bf16 | ORT again |"
    assert lines[4:] == [
        "| resnet50 | 1 | 2 | 10.0 | 0.80 | 0.20 | 1.02 |",
        "| bert_base, 128 tokens | 1 | 2 | 10.0 | 0.80 | 0.40 | 1.02 |",
    ]


def test_a_table_replaces_the_one_of_its_kind_alone() -> None:
    page = "a\n<!-- performance AVX2 -->\nold\n<!-- end -->\nb\n<!-- performance AMX -->\n<!-- end -->\nc\n"
    once = performance.written(page, "performance AVX2", "said\n\n| x |\n")
    assert once == page.replace("old\n", "\nsaid\n\n| x |\n\n")
    assert performance.written(once, "performance AVX2", "said\n\n| x |\n") == once
    with pytest.raises(SystemExit, match="<!-- performance aarch64 -->"):
        performance.written(page, "performance aarch64", "t")


@pytest.mark.parametrize(
    ("target", "kind"),
    [("x86-64-v3", "AVX2"), ("x86-64-v4", "AVX-512"), ("sapphirerapids", "AMX"), ("aarch64", "aarch64")],
)
def test_every_cpu_has_its_section(target: str, kind: str) -> None:
    assert performance.kind_of(target_of(target)) == kind


def test_the_page_has_a_place_for_each_kind_of_x86() -> None:
    page = performance.PAGE.read_text()
    for kind in ("AVX2", "AVX-512", "AMX"):
        assert performance.written(page, f"performance {kind}", "t\n") != ""


def test_the_readme_has_the_rows_of_batch_1_and_their_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE", "README", "PLOT"):
        monkeypatch.setattr(performance, name, tmp_path / name)
    performance.PAGE.write_text("<!-- performance AMX -->\n<!-- end -->\n")
    performance.README.write_text("a\n<!-- performance -->\n<!-- end -->\nb\n")
    performance.write(HEADER, [row("resnet50"), {**row("vit_base"), "batch": 8}])
    assert [each.model for each in table_of(performance.PAGE.read_text()).rows] == ["resnet50", "vit_base"]
    table = table_of(performance.README.read_text())
    assert [each.model for each in table.rows] == ["resnet50"]
    assert performance.PLOT.read_text() == svg(table)


def test_rows_that_are_there_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(performance.MODELS, "resnet50", lambda: pytest.fail("it was made"))
    done = {performance._key("resnet50", 1, 2)}
    assert list(performance.rows_of("resnet50", [1], [2], ["f32"], done)) == []
