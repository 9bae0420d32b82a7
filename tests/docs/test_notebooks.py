"""The notebooks run from the first cell to the last, and are stored as they should be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .notebooks import FOLDER, cells, code_of, plain, run

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
QUICK = "research"


def check(path: Path, folder: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed, which runs the commands of the notebooks")
    done = run(path, folder)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("--- done\n"), done.stdout


@pytest.mark.slow
def test_a_notebook_runs(tmp_path: Path) -> None:
    check(FOLDER / f"{QUICK}.ipynb", tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", [p.stem for p in NOTEBOOKS if p.stem != QUICK])
def test_notebooks_run(name: str, tmp_path: Path) -> None:
    check(FOLDER / f"{name}.ipynb", tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_how_a_notebook_is_stored(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    found = cells(path)
    assert len({cell["id"] for cell in found}) == len(found)
    assert found[0]["cell_type"] == "markdown" and found[0]["source"][0].startswith("# ")
    for cell in found:
        assert cell["cell_type"] in ("markdown", "code")
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "store notebooks without outputs"
    for source in code_of(path):
        compile(source, path.name, "exec")
    assert path.stat().st_size < 50_000


def test_there_is_one_for_each_kind_of_user() -> None:
    assert {p.stem for p in NOTEBOOKS} == {"deploy", "research", "author"}


def test_a_notebook_that_fails_is_noticed(tmp_path: Path) -> None:
    def stored(*sources: str) -> Path:
        code = [{"cell_type": "code", "source": [source]} for source in sources]
        path = tmp_path / "failing.ipynb"
        path.write_text(json.dumps({"cells": code}))
        return path

    failed = run(stored("x = 1", "assert x == 2"), tmp_path)
    assert failed.returncode != 0 and "failing.ipynb, cell 2" in failed.stdout
    failed = run(stored("!echo seen && false", "print('not reached')"), tmp_path)
    assert failed.returncode != 0
    assert "seen\n`echo seen && false` ended with status 1" in failed.stdout
    assert "not reached" not in failed.stdout
    failed = run(stored("!false | cat"), tmp_path)
    assert failed.returncode != 0
    with pytest.raises(ValueError, match="%time x is a magic"):
        plain("x = 1\n%time x")
