"""An accessibility checker (axe-core) finds nothing in a report, in the light and the dark scheme, and keys suffice."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from igniter.tools.main import app
from tests.analysis.model.models import diamond

READY = "window.report && report.cy.nodes().length > 0"
UNDECIDED = {"color-contrast"}
"""Rules that axe-core leaves to a person for single letters, as on the axes of charts."""


def axe_script() -> str:
    """The script of axe-core, from the package that carries it; without it the test skips."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(page: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A report with markup in names and nodes left to ONNX Runtime, and one whose nodes are all in kernels."""
    folder = tmp_path_factory.mktemp("accessible")
    model, out = folder / "d.onnx", folder / "d.html"
    model.write_bytes(diamond())
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(out), "--no-verify"])
    assert done.exit_code == 0, done.output
    return [page, out]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_checker_finds_nothing(browser: Any, pages: list[Path], scheme: str) -> None:
    script, wrong = axe_script(), list[str]()
    for page in pages:
        opened = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme=scheme)
        opened.goto(page.as_uri())
        opened.wait_for_function(READY)
        opened.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        opened.fill("#search", "a")
        opened.evaluate(script)
        found = opened.evaluate("axe.run(document, { resultTypes: ['violations', 'incomplete'] })")
        rows = found["violations"] + [row for row in found["incomplete"] if row["id"] not in UNDECIDED]
        wrong += [
            f"{page.name}: {row['id']}: {row['help']}: {json.dumps(n['target'])}" for row in rows for n in row["nodes"]
        ]
        opened.close()
    assert not wrong, "\n".join(wrong)


def test_the_canvas_has_contrast(browser: Any, page: Path) -> None:
    """Labels have 4.5:1 with their boxes, borders and edges 3:1 with the canvas, which a checker cannot see."""
    opened = browser.new_page()
    opened.goto(page.as_uri())
    opened.wait_for_function(READY)
    themes = opened.evaluate("report.themes")
    opened.close()
    assert set(themes) == {"light", "dark"}
    for t in themes.values():
        boxes = [*t["palette"], t["left"], t["port"], _hex(t["cold"]), _hex(t["hot"])]
        assert all(_contrast(t["ink"], box) >= 4.5 for box in boxes)
        assert _contrast(t["title"], t["open"]) >= 4.5
        assert all(
            _contrast(t[n], t["canvas"]) >= 3
            for n in ("border", "edge", "closed", "leftBorder", "portBorder", "chosen")
        )


def _hex(rgb: list[int]) -> str:
    return "#" + "".join(f"{c:02x}" for c in rgb)


def _contrast(a: str, b: str) -> float:
    """The ratio of WCAG 2."""

    def light(color: str) -> float:
        parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


def test_keys_walk_through_the_graph(browser: Any, page: Path) -> None:
    """Tab reaches the graph and leaves it; arrows walk, Enter opens and closes, Backspace goes to the group around."""
    opened = browser.new_page(viewport={"width": 1440, "height": 1000})
    opened.goto(page.as_uri())
    opened.wait_for_function(READY)
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "skip"
    opened.click("#collapse-all")
    opened.focus("#search")
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.id") == "cy"
    chosen = "report.cy.$(':selected').id()"
    opened.keyboard.press("Home")
    first = opened.evaluate(chosen)
    assert first and opened.inner_text("#said")
    if not opened.evaluate(f"report.data.groups.some((g) => g.id === '{first}')"):
        opened.keyboard.press("ArrowDown")
    group = opened.evaluate("report.data.groups.find((g) => g.label === '@p0').id")
    opened.evaluate(f"void report.cy.getElementById('{group}').emit('tap')")
    opened.keyboard.press("Enter")
    assert opened.evaluate(f"report.isOpen('{group}')") and "open" in opened.inner_text("#said")
    opened.keyboard.press("ArrowDown")
    assert opened.evaluate(f"report.cy.$(':selected').parent().id() === '{group}'")
    opened.keyboard.press("Backspace")
    opened.keyboard.press("Enter")
    assert not opened.evaluate(f"report.isOpen('{group}')")
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.id") == "details"
    opened.close()
