"""The distribution is `onnx-igniter`: the package `igniter` of the public index is another author's, and nothing that a
user reads may send him there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from igniter.distribution import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[1]
READ = ("*.py", "*.md", "*.toml", "*.ipynb", "*.yml", "*.txt", "*.html", "Makefile", "Containerfile", ".ci/*")
SKIPPED = {".git", ".venv", ".venv-extras", "build", "dist", "__pycache__", "node_modules", "site-packages"}

NAMES = (
    # An extra: igniter[torch], also as a regular expression.
    r"(?<![\w.-])igniter\\?\[[a-z,]+\\?\]",
    # An argument of an installer: pip install igniter, pip install -U 'igniter>=0.1'.
    r"\bpip3? (?:install|download|show)\b[^\n`#;,|)]*?(?<![\w./{-])igniter(?![\w./-])",
    # The metadata of an installed package.
    r"\b(?:metadata|requires|version|distribution|files)\(\s*[\"']igniter[\"']",
    # A dependency of another package.
    r"dependencies *= *\[[^\]]*[\"']igniter\b",
)
OTHERS = re.compile("|".join(f"(?:{name})" for name in NAMES))


def pages() -> list[Path]:
    found = (path for pattern in READ for path in ROOT.rglob(pattern) if path.is_file())
    kept = (p for p in found if not SKIPPED & set(p.relative_to(ROOT).parts) and p != Path(__file__))
    return sorted(set(kept))


@pytest.mark.slow
def test_nothing_names_the_package_of_another_author() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    assert {"README.md", "pyproject.toml", "docs/how-to/torch.md", "igniter/torch/names.py"} <= {
        path.relative_to(ROOT).as_posix() for path in texts
    }
    found = [f"{path.relative_to(ROOT)}: {m.group()}" for path, text in texts.items() for m in OTHERS.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install igniter",
        "python -m pip install --upgrade 'igniter>=0.1'",
        "needs PyTorch: pip install 'igniter[torch]'",
        r"match=r\"pip install 'igniter\[link\]'\"",
        "igniter[torch,tune]",
        'metadata.version("igniter")',
        'dependencies = [\n    "numpy",\n    "igniter>=0.1",\n]',
    ],
)
def test_the_search_finds_each_way_to_name_it(text: str) -> None:
    assert OTHERS.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'onnx-igniter[torch]'",
        "pip install docs/examples/my_package, then igniter compile",
        "pip install -e . in its sources",
        "report.igniter[0]",
        "igniter compile model.onnx",
    ],
)
def test_the_search_lets_other_text_pass(text: str) -> None:
    assert not OTHERS.search(text)


def test_the_name_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    for extra in project["optional-dependencies"]:
        assert install_command(extra) == f"pip install 'onnx-igniter[{extra}]'"
