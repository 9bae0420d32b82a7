"""The layers of `igniter/` point one way, as `[tool.importlinter]` in `pyproject.toml` says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_layers_point_one_way() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


MOST = {"toolbox and tools": 75, "the rest": 95}
"""The most imports inside of functions, by wing. They cost a reader more than they save, unless a start of a tool or a
result from the cache does without the module, the package is optional, or the two modules need each other."""


def test_imports_stand_at_the_top() -> None:
    found: Counter[str] = Counter()
    for path in (ROOT / "igniter").rglob("*.py"):
        wing = path.relative_to(ROOT / "igniter").parts[0]
        functions = (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef))
        inside = {n for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)}
        found["toolbox and tools" if wing in ("toolbox", "tools") else "the rest"] += len(inside)
    assert not {wing: (found[wing], most) for wing, most in MOST.items() if found[wing] > most}
