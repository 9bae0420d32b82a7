"""`igniter view` draws regions, loops and buffers, and says what it cannot draw."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from igniter.errors import IgniterError
from igniter.toolbox.view.graph_drawing import Drawing, Node
from igniter.toolbox.view.request import ViewRequest
from igniter.toolbox.view.views import Views, buffer_spans

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PLANNED = """
builtin.module {
  loop.func @two symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1
      scratch(128*((4*n + 63) floordiv 64)) {
    %a = loop.alloc "first <a>" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
    %b = loop.alloc "second" offset 64*((4*n + 63) floordiv 64) : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n { %v = loop.load %x[i] : f32  loop.store %v, %a[i] }
    loop.for j = 0 to n { %v = loop.load %a[j] : f32  loop.store %v, %b[j] }
    loop.for k = 0 to n { %v = loop.load %b[k] : f32  loop.store %v, %y[k] }
  }
}"""


def test_regions_are_clusters_and_edges_go_between_nodes(tmp_path: Path) -> None:
    out = tmp_path / "two.dot"
    ViewRequest(str(EXAMPLES / "two_regions.mlir"), str(out), "", "", "x86-64-v3").run()
    text = out.read_text()
    assert text.count("subgraph cluster_") == 2
    assert 'n1 [label="Bernoulli"]' in text
    assert "n0_1 -> n1;" in text and "n1 -> n2_0;" in text


def test_the_page_has_a_picture_of_the_graph(tmp_path: Path) -> None:
    """Without Graphviz: every node is a box in the colour of its region, and edges go down."""
    out = tmp_path / "two.html"
    ViewRequest(str(EXAMPLES / "two_regions.mlir"), str(out), "", "", "x86-64-v3").run()
    page = out.read_text()
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    space = "{http://www.w3.org/2000/svg}"
    boxes = {g.findtext(f"{space}title"): g.find(f"{space}rect") for g in svg.iter(f"{space}g")}
    assert {"Add, @r0", "Relu, @r0", "Bernoulli, in no region", "Tanh, @r1"} <= boxes.keys()
    first, drawn, last = (boxes[t] for t in ("Add, @r0", "Bernoulli, in no region", "Tanh, @r1"))
    assert first is not None and drawn is not None and last is not None
    assert float(first.attrib["y"]) < float(drawn.attrib["y"]) < float(last.attrib["y"])
    assert len({first.attrib["fill"], drawn.attrib["fill"], last.attrib["fill"]}) == 3
    assert len(list(svg.iter(f"{space}path"))) == 4


def test_a_drawing_of_any_order_has_layers() -> None:
    """Nodes that are alone, skips of layers, and no nodes at all."""
    drawing = Drawing([Node(str(k), "Add" * 9, -1 if k % 2 else 3) for k in range(40)], {3: "@<r>"})
    drawing.edges.update({(str(k), str(2 * k)): None for k in range(1, 20)})
    drawing.edges["1", "39"] = None
    svg = ElementTree.fromstring(drawing.svg())
    places = [(r.attrib["x"], r.attrib["y"]) for r in svg.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(set(places)) == len(places) == 40
    assert ElementTree.fromstring(Drawing().svg()) is not None


def test_buffers_are_boxes_at_their_sizes(tmp_path: Path) -> None:
    file = tmp_path / "planned.mlir"
    file.write_text(PLANNED)
    views = Views.of(file)
    first, second = buffer_spans(views.scheduled[0], {"n": 100})
    assert (first.offset, first.size, second.offset, second.size) == (0, 448, 448, 448)
    assert (first.last, second.last) == (first.first + 1, second.first + 1) and second.first == first.last
    page = views.html({"n": 100})
    assert "first &lt;a&gt;" in page and "896 bytes" in page and "i = 0 to n" in page
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    whole, *titles = [t.text or "" for t in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert "2 buffers" in whole
    assert [t.splitlines()[1] for t in titles] == ["result, 448 bytes at 0", "result, 448 bytes at 448"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("two_regions.mlir", "out.png", "", ""), "out.png is neither .dot nor .html"),
        (("two_regions.mlir", "out.dot", "r0", ""), "--kernel and --sizes are of kernels"),
        (("two_regions.mlir", "out.html", "r7", ""), "has no kernel 'r7'; it has: r0, r1"),
        (("two_regions.mlir", "out.html", "", "rows=3"), "has a symbol 'rows'"),
        (("relu_kernel.mlir", "out.html", "", ""), "has no graph and no scheduled kernel"),
    ],
)
def test_what_cannot_be_drawn_is_said(arguments: tuple[str, str, str, str], reason: str, tmp_path: Path) -> None:
    model, output, kernel, sizes = arguments
    with pytest.raises(IgniterError) as caught:
        ViewRequest(str(EXAMPLES / model), str(tmp_path / output), kernel, sizes, "x86-64-v3").run()
    assert reason in str(caught.value)
    assert not list(tmp_path.iterdir())
