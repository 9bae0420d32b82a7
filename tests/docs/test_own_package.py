"""The package of the tutorials, copied out of the repository: its lit tests run there, and fail where they should."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .transcripts import PACKAGE, ROOT, install_metadata

TEST = "exact_divisions.mlir"


def lit(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs lit in a copy of the package, as its developer does."""
    paths = [str(folder), str(install_metadata(folder / "site")), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "IGNITER_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "tests"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_packages_lit_tests_run_without_an_installation(copied: Path) -> None:
    """As the tutorials have it: a plug-in by a relative path, seen from the folder in which lit starts."""
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "tests"]
    plain = {"PYTHONPATH": str(ROOT), "IGNITER_PLUGINS": ".", "IGNITER_CACHE_DIR": str(copied / "cache")}
    done = subprocess.run(command, cwd=copied, env={**os.environ, **plain}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"PASS: my-package :: {TEST} (1 of 1)" in done.stdout


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package in a folder of its own."""
    folder = tmp_path / "my_package"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "output"))
    return folder


@pytest.mark.slow
def test_the_packages_lit_tests_pass_and_can_fail(copied: Path) -> None:
    done = lit(copied)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"PASS: my-package :: {TEST} (1 of 1)" in done.stdout
    source = copied / "my_package" / "exact_divisions.py"
    text = source.read_text(encoding="utf-8")
    assert "np.asarray(1 / divisor" in text
    source.write_text(text.replace("np.asarray(1 / divisor", "np.asarray(2 / divisor"), encoding="utf-8")
    broken = lit(copied)
    assert broken.returncode == 1
    assert f"FAIL: my-package :: {TEST}" in broken.stdout
