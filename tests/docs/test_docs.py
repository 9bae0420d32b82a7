"""The documentation is true: its commands print what it shows, its links resolve, and every page is listed."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from igniter.pipelines import PIPELINES
from igniter.registry import DIALECTS, PASSES, load_pass

from .transcripts import PACKAGE, ROOT, WITH_PACKAGE, commands, differences, pages
from .warm import Warm

PAGES = [page.relative_to(ROOT).as_posix() for page in pages()]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OWN_PASSES = [name for name, where in PASSES.items() if where.startswith("igniter.")]


@pytest.fixture(scope="module")
def tools() -> Iterator[Warm]:
    with Warm() as server:
        yield server


@pytest.mark.parametrize("name", [p for p in PAGES if any(c.is_run for c in commands(ROOT / p))])
def test_commands_give_what_the_page_shows(name: str, tmp_path: Path, tools: Warm):
    found = list(differences(ROOT / name, tmp_path, tools))
    assert not found, "\n\n".join([*found, f"python -m tests.docs.transcripts {name} rewrites the page"])


def test_excerpts_show_something():
    empty = [f"{p}: {c.text}" for p in PAGES for c in commands(ROOT / p) if " | " in c.text and not c.shown]
    assert not [e for e in empty if " > " not in e]


def test_the_main_pages_have_commands():
    shown = {p for p in PAGES if any(c.is_run for c in commands(ROOT / p))}
    assert {
        "README.md",
        "docs/explanation/architecture.md",
        "docs/tutorials/add-an-op.md",
        "docs/how-to/add-a-pass.md",
    } <= shown


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str):
    page = ROOT / name
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name}: {target} leads nowhere"
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(there), f"{name}: {target}: no such heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_every_page_is_linked_from_the_list_of_pages():
    linked = {
        (ROOT / "docs" / target.partition("#")[0]).resolve()
        for target in LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    }
    assert not [p for p in PAGES if Path(p).name != "README.md" and (ROOT / p).resolve() not in linked]


@pytest.mark.parametrize("name", OWN_PASSES)
def test_every_pass_and_its_options_are_described(name: str):
    text = (ROOT / "docs" / "reference" / "passes.md").read_text(encoding="utf-8")
    section = re.search(rf"^### `{name}`$(.*?)(?=^##|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/reference/passes.md has no section on '{name}'"
    for option in fields(load_pass(name)):
        spelled = option.name.replace("_", "-")
        assert f"`{spelled}" in section[1], f"docs/reference/passes.md: '{name}' has an option '{spelled}'"


def test_passes_are_described_in_the_order_of_the_pipeline():
    text = (ROOT / "docs" / "reference" / "passes.md").read_text(encoding="utf-8")
    described = re.findall(r"^### `([a-z-]+)`$", text, flags=re.MULTILINE)
    order = list(dict.fromkeys(e for p in PIPELINES["cpu"] for e in PIPELINES[p]))
    assert [name for name in described if name in order] == [name for name in order if name in described]
    assert set(described) <= set(PASSES)


def test_every_dialect_of_igniter_has_a_page():
    # Of the dialects of MLIR that complete xDSL's, the page on linalg tells.
    completed = {"arith", "index", "math", "tensor"}
    own = {name for name, where in DIALECTS.items() if where.startswith("igniter.")} - completed
    assert own <= {Path(p).stem for p in PAGES if p.startswith("docs/reference/dialects/")}


def test_every_option_of_the_tools_is_described():
    import typer.main

    from igniter.tools.igniter_opt import build_parser
    from igniter.tools.main import app

    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    options = {o for action in build_parser()._actions for o in action.option_strings if o.startswith("--")}
    tool: Any = typer.main.get_command(app)
    for command in tool.commands.values():
        options |= {o for parameter in command.params for o in parameter.opts if o.startswith("--")}
    assert not [o for o in sorted(options) if o not in text]


@pytest.mark.parametrize("name", sorted(WITH_PACKAGE))
def test_the_code_of_the_worked_examples_is_the_packages(name: str):
    sources = "".join(p.read_text(encoding="utf-8") for p in [PACKAGE / "pyproject.toml", *PACKAGE.rglob("*.py")])
    blocks = re.findall(r"^```(?:python|toml)\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.M | re.DOTALL)
    assert blocks
    assert not [b for b in blocks if b not in sources]


@pytest.mark.parametrize("name", sorted(WITH_PACKAGE))
def test_the_worked_examples_show_their_imports_and_how_to_load_the_package(name: str):
    page = (ROOT / name).read_text(encoding="utf-8")
    assert "export IGNITER_PLUGINS=docs/examples/my_package" in page
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.DOTALL)
    quoted = [p.read_text(encoding="utf-8") for p in (PACKAGE / "my_package").glob("*.py")]
    quoted = [text for text in quoted if any(b in text for b in blocks)]
    assert quoted
    for text in quoted:
        imports = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)][1:]
        assert "\n".join(text.splitlines()[imports[0].lineno - 1 : imports[-1].end_lineno]) + "\n" in page


def test_a_wrong_transcript_is_noticed(tmp_path: Path):
    command = next(c for c in commands(ROOT / "docs" / "explanation" / "architecture.md") if c.is_run and c.shown)
    assert not command.matches("".join(f"{line}x\n" for line in command.shown))
    assert not command.matches(io.StringIO("").getvalue())
