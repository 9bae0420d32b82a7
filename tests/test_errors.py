"""Error codes, and a library that prints nothing."""

from __future__ import annotations

import ast
import logging
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import igniter
from igniter.errors import INTERNAL, SYSTEM, IgniterError, code_of
from igniter.passes import PassError
from tests.docs.error_table import PAGE, TABLE, classes, table

ROOT = Path(__file__).parents[1] / "igniter"
PRINTERS = ("tools", "toolbox")
"""The wings that talk to a user."""
DEVELOPMENT = {"backends/c_runtime/build.py"}
"""Programs for the development of Igniter."""


@pytest.mark.slow
def test_every_error_has_a_code_of_its_own() -> None:
    found = {each.name: each.code for each in classes()}
    assert {"IgniterError", "PassError", "VerificationFailed", "RuleError"} <= found.keys()
    assert [name for name, code in found.items() if not re.fullmatch(r"IGN\d{4}", code)] == []
    assert [code for code, n in Counter([*found.values(), INTERNAL, SYSTEM]).items() if n > 1] == []


@pytest.mark.slow
def test_the_page_has_the_codes_of_the_classes() -> None:
    shown = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert shown is not None
    assert shown.group(0) == table(), "python -m tests.docs.error_table writes it"


def test_codes_of_errors() -> None:
    assert code_of(IgniterError("no")) == "IGN0001"
    assert code_of(PassError("cse", "no")) == PassError.code == "IGN0102"
    assert code_of(FileNotFoundError("no")) == SYSTEM
    assert code_of(KeyError("no")) == INTERNAL
    assert (igniter.VerificationFailed.code, igniter.VerificationFailed.exit_status) == ("IGN0603", 3)


def test_a_failed_pass_is_named_once() -> None:
    assert str(PassError("cse", "cse: no")) == str(PassError("cse", "no")) == "pass 'cse': no"


@pytest.mark.slow
def test_the_library_does_not_print() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in PRINTERS and str(path.relative_to(ROOT)) not in DEVELOPMENT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        # A stream that the caller gives is the caller's.
        and not any(k.arg == "file" and ast.unparse(k.value) not in ("sys.stdout", "sys.stderr") for k in node.keywords)
    ]
    assert found == []


def test_loggers_are_called_like_modules(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="igniter")
    igniter.parse("builtin.module {}").run_passes("cse")
    assert {name.partition(".")[0] for name, _, _ in caplog.record_tuples} <= {"igniter", "xdsl"}
    # In a process of its own: passes that other tests install have loggers, too.
    code = (
        "import logging, igniter; igniter.parse('builtin.module {}').run_passes('cse'); "
        "print(*logging.root.manager.loggerDict, sep='\\n')"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loggers = [name for name in shown.splitlines() if name.startswith("igniter.")]
    assert loggers
    modules = {".".join(("igniter", *p.relative_to(ROOT).with_suffix("").parts)) for p in ROOT.rglob("*.py")}
    packages = {name.removesuffix(".__init__") for name in modules}
    parents = {".".join(name.split(".")[:n]) for name in modules for n in range(1, 9)}
    # The remarks of the driver are logged under its name, which is no module's.
    assert [name for name in loggers if name not in packages | parents | {"igniter.driver"}] == []


def test_every_broad_except_has_a_reason() -> None:
    """A comment on the line of `except Exception` or on the next one, and nothing dropped without a word."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"except( Exception| BaseException|:)", text):
            continue
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            assert node.type is not None, f"{where}: a bare except"
            if ast.unparse(node.type) not in ("Exception", "BaseException"):
                continue
            near = lines[node.lineno - 1 : node.lineno + 1]
            assert any("# " in line for line in near), f"{where}: say why, or catch less"
            assert not all(isinstance(each, ast.Pass) for each in node.body), f"{where}: dropped"
