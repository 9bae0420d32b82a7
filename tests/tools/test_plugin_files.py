"""Plug-ins that are not installed: Python files and folders, by `--load` and by `$IGNITER_PLUGINS`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools_kit import opt

import igniter
from igniter import registry
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.plugin_files import VARIABLE
from tests.docs.transcripts import PACKAGE, ROOT

MODEL = str(ROOT / "docs" / "examples" / "quantized_attention.mlir")
EDGES = str(ROOT / "docs" / "examples" / "heavy_edges.mlir")
FILE = PACKAGE / "my_package" / "hoist_once.py"


pytestmark = pytest.mark.usefixtures("plugins_apart")


@pytest.mark.parametrize(
    ("option", "path"), [("--load", PACKAGE), ("--load-pass-plugin", FILE), ("-load-pass-plugin", FILE)]
)
def test_a_pass_is_loaded(option: str, path: Path) -> None:
    found = opt(f"{option}={path}", MODEL, "-p", "infer-shapes,hoist-once", "--remarks", "--emit=none")
    assert found.status == 0 and "hoist-zero-points: applied: 3 products" in found.err
    assert VARIABLE not in os.environ
    assert "there is no pass or pipeline called 'hoist-once'" in opt(MODEL, "-p", "hoist-once").err


def test_a_loaded_pass_is_a_flag_and_listed() -> None:
    assert opt("--load", str(FILE), MODEL, "--hoist-once", "--emit=none").status == 0
    listed = opt("--list-passes", f"--load={FILE}").out
    assert "hoist-once" in listed and "one rewrite: a product without its zero points" in listed


def test_authors_are_loaded() -> None:
    found = opt(
        f"--load={PACKAGE / 'my_package' / 'my_fusion.py'}",
        EDGES,
        "-p",
        "cpu-onnx,form-fusion-regions{author=heavy-edges}",
        "--emit=none",
        "--remarks",
    )
    assert found.status == 0 and "'matmul' missed: MatMul is not pointwise" in found.err
    listed = opt(f"--load={PACKAGE / 'my_package' / 'my_author.py'}", "--list-schedule-authors").out
    assert "short-rows" in listed and "most: int = 8" in listed


@pytest.mark.slow
def test_the_environment_names_plugins_of_all_tools() -> None:
    environment = {**os.environ, VARIABLE: str(FILE), "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "igniter.tools.igniter_opt",
        MODEL,
        "-p",
        "infer-shapes,hoist-once",
        "--emit=none",
        "--remarks",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "hoist-zero-points: applied: " in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad.py", "{}['axis']", "bad.py cannot be loaded: KeyError: 'axis' ("),
        ("json.py", "", "has the name of another module, 'json': rename the file"),
        ("notes.txt", "", "notes.txt is no plug-in: give a Python file, or a folder with a pyproject.toml"),
        ("missing", None, "missing is no plug-in: give a Python file"),
        (
            "folder/pyproject.toml",
            "[project]",
            'has no entry points for Igniter, such as [project.entry-points."igniter',
        ),
        ("empty/x.txt", "", "is no plug-in: it has no pyproject.toml"),
    ],
)
def test_what_is_no_plugin_is_an_error(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if text is not None:
        path.write_text(text)
    given = path.parent if path.parent != tmp_path else path
    found = opt(f"--load={given}", "-p", "cse", text="builtin.module {}")
    assert found.status == (4 if name == "bad.py" else 1) and found.out == ""
    assert said in found.err


def test_a_kernel_in_the_cache_is_of_the_same_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed schedule author is a changed compiler: its kernels are compiled anew."""
    path = tmp_path / "edited_author.py"
    source = (PACKAGE / "my_package" / "my_author.py").read_text()
    kernels = igniter.parse((ROOT / "docs" / "examples" / "mask_softmax.mlir").read_text())
    settings: list[str] = []
    for text in (source, source, source.replace("most: int = 8", "most: int = 4"), None):
        monkeypatch.delenv(VARIABLE, raising=False)
        if text is not None:
            path.write_text(text)
            monkeypatch.setenv(VARIABLE, str(path))
        registry.forget_packages()
        settings.append(Compilation(kernels.ir, CompileOptions(), kernels.ctx).kernel_settings)
    assert settings[0] == settings[1]
    assert len(set(settings)) == 3
