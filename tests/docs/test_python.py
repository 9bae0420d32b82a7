"""The claims of docs/reference/python.md about the API are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import igniter
from igniter.compiler.artifact import Artifact
from igniter.frontend import save_model

from .transcripts import PACKAGE, ROOT, environment

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")


def test_every_name_of_the_api_is_described():
    described = set(re.findall(r"`igniter\.(\w+)", PAGE))
    assert {name for name in igniter.__all__ if not name.startswith("__")} <= described


def test_what_is_described_exists():
    methods, members = _names("Module"), _names("Artifact")
    module = igniter.parse("builtin.module {\n}")
    assert methods and not [m for m in methods if not hasattr(module, m)]
    assert members and not [
        m for m in members if not hasattr(Artifact, m) and m not in Artifact.__init__.__annotations__
    ]


def _names(section: str) -> list[str]:
    table = re.search(rf"^## {section}$(.*?)^(## |Without)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert table is not None
    cells = [line.split(" | ")[0] for line in table[1].splitlines() if line.startswith("| `")]
    names = re.findall(r"`([^`]+)`", " ".join(cells))
    return [n.partition("(")[0].rpartition(".")[2] for n in names if n != "str(module)"]


@pytest.mark.slow
def test_the_first_schedule_prints_what_its_page_shows(tmp_path: Path):
    examples, page = ROOT / "docs" / "examples", ROOT / "docs" / "tutorials" / "my-first-schedule.md"
    script = (examples / "first_schedule.py").read_text(encoding="utf-8")
    shown = re.findall(r"```(python|text)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    code, printed = dict(shown)["python"], dict(shown)["text"]
    assert code in script
    done = subprocess.run(
        [sys.executable, str(examples / "first_schedule.py"), str(examples / "linear.mlir")],
        cwd=tmp_path,
        env=environment(page, tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.stdout == printed, done.stderr
    # "makes the schedule above": that of the file by hand, but for the name of the shared loops.
    by_hand = str(igniter.Schedule(examples / "linear_by_hand.mlir"))
    made = printed[: printed.index("right\n")].rstrip()
    assert [re.sub(r'fuse "\w+"', "fuse", text) for text in made.splitlines()] == [
        re.sub(r'fuse "\w+"', "fuse", text) for text in by_hand.splitlines()
    ]


@pytest.mark.slow
def test_a_compile_with_a_pipeline_from_another_package(tmp_path: Path):
    text = (ROOT / "docs" / "examples" / "mask_softmax.mlir").read_text(encoding="utf-8")
    save_model(igniter.parse(text).ir, tmp_path / "model.onnx")
    script = ROOT / "docs" / "examples" / "compile_with_my_schedule.py"
    done = subprocess.run(
        [sys.executable, str(script), "model.onnx", "model.igniter"],
        cwd=tmp_path,
        env=environment(ROOT / "docs" / "how-to" / "add-a-pass.md", tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "my-cpu-schedule 1\n", done.stderr
    assert Artifact.load(tmp_path / "model.igniter").verify()
    assert PACKAGE.is_dir()
