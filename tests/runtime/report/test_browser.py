"""A report in a real browser: no console error, no request, and the graph opens, closes and is searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .models import EVIL

SHOWN = "report.cy.nodes().filter(n => !n.isParent()).length"
GROUPS = "report.cy.nodes().filter(n => n.isParent()).map(n => n.data('label'))"


@pytest.fixture
def view(browser: Any, page: Path) -> Iterator[Any]:
    """The page, of which nothing may go wrong while it is open."""
    opened = browser.new_page(viewport={"width": 1440, "height": 1000})
    wrong: list[str] = []
    opened.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    opened.on("pageerror", lambda e: wrong.append(str(e)))
    opened.on("request", lambda r: wrong.append(r.url) if r.url != page.as_uri() else None)
    opened.goto(page.as_uri())
    opened.wait_for_function("window.report && report.cy.nodes().length > 0")
    yield opened
    assert not wrong
    assert opened.evaluate("window.hacked") is None
    opened.close()


def test_the_graph_is_drawn_and_named_in_text(view: Any) -> None:
    assert view.evaluate(SHOWN) >= 5
    assert "@p0" in view.evaluate(GROUPS)
    assert view.inner_text("h1") == "odd<b>.onnx"
    assert view.evaluate("document.querySelectorAll('svg.memory').length") >= 2
    # Something is on the canvas: not all of its points are of one color.
    colors = "new Set([...report.cy.png({output: 'base64'})]).size"
    assert view.evaluate(colors) > 10


def test_groups_close_and_open(view: Any) -> None:
    view.click("#expand-all")
    every = view.evaluate("report.data.nodes.length")
    assert view.evaluate(SHOWN) == every
    assert f"{every} of {every} shown" in view.inner_text("#count")
    view.click("#collapse-all")
    closed = view.evaluate(SHOWN)
    assert closed < every
    # A closed group is selected by a click, and opened by its button.
    group = view.evaluate("report.data.groups.find(g => g.label === '@p0').id")
    view.evaluate(f"void report.cy.getElementById('{group}').emit('tap')")
    assert view.inner_text("#details h3") == "@p0" and view.inner_text("#toggle") == "Open"
    view.click("#toggle")
    assert view.evaluate(f"report.isOpen('{group}')") and view.evaluate(SHOWN) >= closed
    view.click("#toggle")
    assert view.evaluate(SHOWN) == closed
    view.evaluate(f"void report.cy.getElementById('{group}').emit('dbltap')")
    assert view.evaluate(f"report.isOpen('{group}')")


def test_search_opens_the_groups_of_what_it_finds(view: Any) -> None:
    view.click("#collapse-all")
    view.fill("#search", "then_exp")
    assert view.inner_text("#found li").startswith("then_exp")
    view.press("#search", "Enter")
    assert "/block.1/choice/If.then_branch" in view.evaluate(GROUPS)
    assert view.evaluate("report.cy.$(':selected').data('label')").startswith("Exp")
    assert "f32[n, 16]" in view.inner_text("#details") and "@r" in view.inner_text("#details")
    view.fill("#search", "no such node")
    assert view.inner_text("#found") == "nothing is called so"
    view.press("#search", "Escape")
    assert not view.is_visible("#found")


def test_a_node_that_is_left_says_why(view: Any) -> None:
    view.click("#left button[data-node='/text/Normalize']")
    assert "no lowering" in view.inner_text("#details .reason")
    assert "ONNX Runtime" in view.inner_text("#details dl")


def test_a_kernel_of_the_table_is_shown_in_the_graph(view: Any) -> None:
    view.select_option("#mode", "modules")
    button = view.locator("#time button[data-kernel]").first
    kernel = button.inner_text()
    button.click()
    assert view.input_value("#mode") == "regions"
    assert f"kernel\n{kernel}" in view.inner_text("#details") and "GFLOP/s" in view.inner_text("#details")


def test_nodes_are_grouped_by_modules(view: Any) -> None:
    view.select_option("#mode", "modules")
    view.click("#expand-all")
    assert {"block.0", "sum", "block.1"} <= set(view.evaluate(GROUPS))
    view.select_option("#color", "time")
    assert view.evaluate("report.cy.nodes('.node').map(n => n.data('color')).every(c => c.startsWith('rgb'))")


def test_a_value_of_many_readers_is_a_mark(view: Any) -> None:
    """The first edge of a value with many readers is drawn; others are while the value or a reader is selected."""
    readers = view.evaluate(
        """() => {
          const inside = report.data.nodes.filter((n) => n.kind === "node" || n.kind === "left");
          const readers = inside.slice(-5).map((n) => n.id);
          for (const id of readers) report.data.edges.push(["n0", id, "mask"]);
          return readers;
        }"""
    )
    view.click("#expand-all")
    hidden = view.evaluate("report.cy.edges('.shared').map(e => [e.data('source'), e.data('target')])")
    marked = view.evaluate("report.cy.nodes().filter(n => n.data('label').includes('‹ mask')).map(n => n.id())")
    assert {source for source, _ in hidden} == {"n0"} and 3 <= len(hidden) < len(readers)
    assert {target for _, target in hidden} == set(marked) <= set(readers)
    assert view.locator("#shared li").count() == 1 and f"mask has {len(readers)} readers" in view.inner_text(
        "#shared li"
    )
    drawn = "report.cy.edges('.shared').filter(e => e.visible()).length"
    assert view.evaluate(drawn) == 0
    view.evaluate(f"void report.cy.getElementById('{marked[0]}').emit('tap')")
    assert view.evaluate(drawn) == 1
    view.click("#shared button")
    assert view.evaluate(drawn) == len(hidden) and view.evaluate("report.cy.$(':selected').id()") == "n0"


def test_labels_can_be_read_at_first_sight(view: Any) -> None:
    """The graph opens whole, or at its beginning, with letters of 12 px or more; a button fits it to the window."""
    letters = "report.font * report.cy.zoom()"
    assert view.evaluate(letters) >= 12
    view.click("#expand-all")
    assert view.evaluate(letters) >= 12
    # A small window shows the beginning, no less readable.
    view.set_viewport_size({"width": 700, "height": 500})
    view.click("#home")
    assert view.evaluate(letters) >= 12
    order = "(a, b) => a.position('y') - b.position('y') || a.position('x') - b.position('x')"
    place = view.evaluate(f"report.cy.nodes('.node, .left').sort({order})[0].renderedPosition()")
    width, height = view.evaluate("[report.cy.width(), report.cy.height()]")
    assert 0 <= place["x"] <= width and 0 <= place["y"] <= height
    view.click("#fit")
    assert view.evaluate(letters) < 12


def test_names_that_are_markup_are_text(view: Any) -> None:
    view.fill("#search", EVIL[:20])
    assert view.locator("#found li").count() >= 1
    view.press("#search", "Enter")
    assert EVIL[:30] in view.inner_text("#details")
    assert view.evaluate("document.querySelectorAll('img').length") == 0


def test_zoom(view: Any) -> None:
    before = view.evaluate("report.cy.zoom()")
    view.click("#zoom-in")
    assert view.evaluate("report.cy.zoom()") > before
    view.click("#zoom-out")
    view.click("#zoom-out")
    assert view.evaluate("report.cy.zoom()") < before
    view.click("#fit")
    assert view.evaluate("report.cy.zoom()") > 0


def test_keys_walk_through_what_is_found(view: Any) -> None:
    view.fill("#search", "block")
    first = view.inner_text("#found li.on")
    view.press("#search", "ArrowDown")
    assert view.inner_text("#found li.on") != first
    view.press("#search", "ArrowUp")
    assert view.inner_text("#found li.on") == first
