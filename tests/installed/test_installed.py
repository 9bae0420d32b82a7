"""What `make test-wheel` chooses to install, and that a verb or a version that it misses is a failure."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import onnx
import pytest
import typer
from typer.testing import CliRunner

import igniter
from igniter.frontend import schemas
from igniter.tools.main import app
from tests.docs.transcripts import ROOT
from tests.installed import pythons
from tests.installed.environments import environments, oldest
from tests.installed.guest import verbs

PROJECT = ROOT / "pyproject.toml"


def test_every_extra_and_every_python_has_an_environment() -> None:
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found = {e.name: e for e in environments(PROJECT, {"3.99": "/usr/bin/python3.99"})}
    assert {"newest", "oldest", "python3.99", *extras} <= set(found)
    assert "onnxruntime==1.22" in found["oldest"].requirements and "onnx==1.18" in found["oldest"].requirements
    assert found["newest"].requirements == ()
    assert found["python3.99"].python == "/usr/bin/python3.99"


def test_a_dependency_without_a_lowest_version_is_an_error() -> None:
    assert oldest(["numpy>=2.0", "xdsl==0.74.0"]) == ("numpy==2.0", "xdsl==0.74.0")
    with pytest.raises(ValueError, match="'rich' has no lowest version"):
        oldest(["rich"])


def test_every_verb_runs_once() -> None:
    assert set(verbs.VERBS) == set(typer.main.get_command(app).commands) == verbs.offered()


def test_a_verb_that_is_not_run_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verbs, "offered", lambda: {*verbs.VERBS, "another"})
    monkeypatch.setattr(verbs, "chosen", lambda asked: [])
    monkeypatch.setenv("PATH", "")
    assert verbs.main([]) == 1
    assert "the verb 'another' is not run here" in capsys.readouterr().out


def test_what_a_command_has_to_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "OTHERS", [])
    assert verbs.failure(verbs.Run("echo it is verified", "verified")) == ""
    assert "does not print 'verified'" in verbs.failure(verbs.Run("echo nothing", "verified"))
    assert verbs.failure(verbs.Run("sh -c 'exit 3'")).startswith("exit status 3, not 0")
    missing = verbs.Run("echo pip install \"'onnx-igniter[tune]'\"; exit 1", "", "tune", "no_such_package")
    assert verbs.failure(missing) == ""
    assert "a traceback" in verbs.failure(verbs.Run("echo 'Traceback (most recent call last):'"))


def test_interpreters_are_found_or_their_absence_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONS", sys.executable)
    found, missing = pythons.pythons()
    here = "{}.{}".format(*sys.version_info[:2])
    assert found == {here: sys.executable}
    assert set(missing) == set(pythons.VERSIONS) - {here}
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PYTHONS", str(broken))
    with pytest.raises(SystemExit, match="does not run or has no venv"):
        pythons.pythons()


def test_environments_are_listed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.installed", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "the lowest version of each dependency" in done.stdout


def test_ops_that_draw_are_known_where_onnx_does_not_mark_them() -> None:
    """Version 1.18 of onnx has no `node_determinism`."""

    class Old:
        def __init__(self, name: str):
            self.name = name

    for schema in onnx.defs.get_all_schemas_with_history():
        assert schemas._is_deterministic(Old(schema.name)) == schemas._is_deterministic(schema), schema.name


def test_a_python_without_its_lock_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(igniter.IgniterError, match="set PYTHON_GIL=1"):
        igniter.load("model.onnx")
    done = CliRunner().invoke(app, ["inspect", "model.onnx"])
    assert done.exit_code == 1 and "PYTHON_GIL=1" in done.stderr.replace("\n", " ")
