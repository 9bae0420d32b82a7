"""The registry: everything in it is there, under its own name, and packages outside can add to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from igniter import registry
from igniter.errors import IgniterError
from igniter.passes import parse_passes
from igniter.pipelines import PIPELINES
from igniter.registry import DIALECTS, PASSES, load_dialect, load_pass
from igniter.tools.describing import summary_of


@pytest.mark.parametrize("name", sorted(PASSES))
def test_a_pass_is_there_under_its_name(name: str) -> None:
    found = load_pass(name)
    assert found.name == name


@pytest.mark.parametrize("name", sorted(n for n, w in PASSES.items() if w.startswith("igniter.")))
def test_a_pass_says_in_a_line_what_it_does(name: str) -> None:
    assert 10 < len(summary_of(load_pass(name))) < 200


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_is_there_under_its_name(name: str) -> None:
    assert load_dialect(name).name == name


@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_a_pipeline_names_passes_that_exist(name: str) -> None:
    assert parse_passes(name)


def test_names_are_in_order() -> None:
    assert list(PASSES) == sorted(PASSES)
    assert list(DIALECTS) == sorted(DIALECTS)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(IgniterError, match="did you mean 'tile-loops'"):
        load_pass("tile-loop")
    with pytest.raises(IgniterError, match="no dialect called 'nothing'"):
        load_dialect("nothing")
    assert registry.where_pass("nothing") is None


PACKAGE = '''
from dataclasses import dataclass
from xdsl.dialects.test import Test
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass

@irdl_op_definition
class Hello(IRDLOperation):
    name = "outside.hello"

Outside = Dialect("outside", [Hello], [])
PIPELINE = ("cse", "erase-hello{loud=true}")

@dataclass(frozen=True)
class EraseHello(ModulePass):
    """Erase every outside.hello."""
    name = "erase-hello"
    loud: bool = False
    def apply(self, ctx, op):
        for found in [o for o in op.walk() if isinstance(o, Hello)]:
            found.detach()
'''
ENTRY_POINTS = """
[igniter.dialects]
outside = outside_package:Outside
[igniter.passes]
erase-hello = outside_package:EraseHello
[igniter.pipelines]
goodbye = outside_package:PIPELINE
"""


@pytest.mark.parametrize("args", [["--erase-hello"], ["-p", "goodbye"], ["-p", "erase-hello{loud=true}"]])
def test_a_package_outside_adds_dialects_passes_and_pipelines(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "outside_package.py").write_text(PACKAGE)
    info = tmp_path / "outside_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    text = '"outside.hello"() : () -> ()\n"test.op"() : () -> ()\n'
    done = subprocess.run(
        [sys.executable, "-m", "igniter.tools.igniter_opt", *args],
        input=text,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert done.stderr == ""
    assert "outside.hello" not in done.stdout
    assert "test.op" in done.stdout


def test_what_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PASSES, "broken", "no.such.module:Broken")
    with pytest.raises(IgniterError, match=r"the pass 'broken' cannot be loaded from no\.such\.module:Broken"):
        load_pass("broken")
