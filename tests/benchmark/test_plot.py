"""The plot of the README is that of its table, and the table's rows are those of the page of performance."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmark.plot import Row, Table, svg, table_of

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = """text
| model | batch | threads | ORT, ms | ours | ORT again |
| --- | --- | --- | --- | --- | --- |
| a<b | 1 | 2 | 3.5 | 0.50 | 1.25 |

| another | table |
"""


def test_a_table_is_read_and_drawn() -> None:
    table = table_of(PAGE)
    assert table == Table(("ours",), (Row("a<b", 1, 2, 3.5, (0.5,), 1.25),))
    drawn = ET.fromstring(svg(table))
    bars = [float(e.attrib["width"]) for e in drawn.iter() if e.tag.endswith("rect")]
    # The legend, the difference between two measurements, and half of ORT's time, at a scale up to 1.25.
    assert bars[-2:] == pytest.approx([430 * 0.25 / 1.25, 430 * 0.5 / 1.25])
    assert "a<b, batch 1, 2 threads" in [e.text for e in drawn.iter()]


def test_a_page_without_a_table_of_times() -> None:
    with pytest.raises(ValueError, match="there is no table with the columns model, batch, threads, ORT, ms"):
        table_of("| model | shape | ms |")


def test_the_plot_of_the_readme_is_that_of_its_table() -> None:
    stored = (ROOT / "docs" / "figures.svg").read_text(encoding="utf-8")
    assert stored == svg(table_of(README)), "python -m benchmark.plot README.md docs/figures.svg draws it anew"


def test_the_rows_of_the_readme_are_those_of_the_page_of_performance() -> None:
    page = (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8")
    of_batch_1 = [{row for row in table.rows if row.batch == 1} for table in _tables(page)]
    assert set(table_of(README).rows) in of_batch_1


def _tables(page: str) -> list[Table]:
    """Returns the table of each kind of CPU that has one."""
    places = re.findall(r"<!-- performance \S+ -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)
    return [table_of(place) for place in places if place]
