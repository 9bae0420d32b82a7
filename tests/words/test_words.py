"""The project's English keeps its measures: see `python -m tests.words`."""

from __future__ import annotations

import pytest

from tests.words.__main__ import ROOT, Count, measure

MOST_RELATIVES = 15
"""Of *what*, *which* and *that* in 1,000 words; other projects of the field have 5 to 11."""
MOST_OPENINGS = 0.03
"""The share of docstrings that begin with What, Whether, Which or How."""
GENERATED = ("coverage.md", "corpus.md", "types.md")


@pytest.mark.slow
def test_words_keep_their_measures() -> None:
    code = list((ROOT / "igniter").rglob("*.py"))
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in GENERATED and "site" not in path.parts]
    counts = measure([*code, *pages, ROOT / "README.md"])
    assert {"igniter/dialects", "igniter/toolbox", "docs", "README.md"} <= counts.keys()
    rates = {part: 1000 * count.relatives / count.words for part, count in counts.items()}
    assert max(rates.values()) <= MOST_RELATIVES, f"what, which and that in 1,000 words: {rates}"
    many = {p: c.openings for p, c in counts.items() if len(c.openings) > MOST_OPENINGS * max(c.docstrings, 1)}
    assert not many, many


def test_docstrings_and_idioms_are_found() -> None:
    count = Count()
    count.add_docstring("f.py:1", "Whether it hangs on what `that` says.")
    assert (count.words, count.relatives, len(count.openings), len(count.idioms)) == (6, 1, 1, 1)
