"""The documentation as a site: every page is in its navigation, and it builds without a warning."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import igniter

from .transcripts import ROOT

CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAV = re.findall(r"^ +- ([\w/.-]+\.md)$", CONFIG[CONFIG.index("\nnav:") :], flags=re.MULTILINE)


def test_every_page_is_in_the_navigation() -> None:
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    pages.remove("README.md")
    pages |= {f"notebooks/{p.stem}.md" for p in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    made = {
        "index.md",
        "contents.md",
        "changelog.md",
        "contributing.md",
        *(name for name in NAV if name.startswith("api/")),
    }
    assert pages - set(NAV) == set(), "mkdocs.yml lists each page under `nav`"
    assert set(NAV) - pages - made == set()
    assert len(NAV) == len(set(NAV))


def test_what_the_reference_lists_exists() -> None:
    text = (ROOT / "docs" / "site" / "hooks.py").read_text(encoding="utf-8")
    names = re.findall(r'"(igniter\.[\w.]+)"', text)
    assert len(names) > 20
    from igniter.registry import load

    for name in names:
        parent, _, last = name.rpartition(".")
        # A module, or a name of one.
        assert find_spec(parent) is not None
        assert find_spec(name) is not None if last.islower() and _is_module(name) else hasattr(load(parent), last)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@pytest.mark.full
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    missing = [m for m in ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers.python") if not _there(m)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    site = tmp_path / "site"
    assert {Path(name).with_suffix(".html").as_posix() for name in NAV} <= {
        p.relative_to(site).as_posix() for p in site.rglob("*.html")
    }
    _require_reference(site)
    _require_tables(site)
    _require_no_network(site)
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert any("live range" in entry["text"] for entry in found["docs"])


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _require_reference(site: Path) -> None:
    """The docstrings are there, and their code blocks are code."""
    api = (site / "api" / "public.html").read_text(encoding="utf-8")
    assert 'id="igniter.Module.compile"' in api
    described = (igniter.Module.compile.__doc__ or "").partition("`")[0]
    assert len(described) > 10 and described in api
    backends = (site / "api" / "backends.html").read_text(encoding="utf-8")
    assert re.search(r"<pre[^>]*>.*?backend_for", backends, flags=re.DOTALL)


def _require_tables(site: Path) -> None:
    """What a forge shows as a table, the site does: as many tables and rows on each page."""
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name == "README.md":
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        html = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text(encoding="utf-8")
        tables = len(re.findall(r"^\|\s*:?-{3}", text, flags=re.MULTILINE))
        rows = len(re.findall(r"^\|", text, flags=re.MULTILINE)) - tables
        assert (html.count("<table>"), html.count("<tr")) == (tables, rows), page


def _require_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', html), page
        assert not re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//', html), page
