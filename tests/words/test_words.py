"""The project's English keeps its measures: see `python -m tests.words`."""

from __future__ import annotations

import pytest

from tests.words.__main__ import ROOT, Count, measure

MOST_RELATIVES = 15
"""Of *what*, *which* and *that* in 1,000 words; other projects of the field have 5 to 11."""
MOST_OPENINGS = 0.03
"""The share of docstrings that begin with What, Whether, Which or How."""
GENERATED = ("coverage.md", "corpus.md", "types.md")


def _counts() -> dict[str, Count]:
    code = list((ROOT / "igniter").rglob("*.py"))
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in GENERATED and "site" not in path.parts]
    return measure([*code, *pages, ROOT / "README.md"])


COUNTS = _counts()


@pytest.mark.parametrize("part", COUNTS)
def test_words_keep_their_measures(part: str) -> None:
    count = COUNTS[part]
    rate = 1000 * count.relatives / count.words
    assert rate <= MOST_RELATIVES, f"{rate:.1f} of what, which and that in 1,000 words; see `python -m tests.words`"
    openings = count.openings
    assert len(openings) <= MOST_OPENINGS * max(count.docstrings, 1), "\n".join(openings)


def test_docstrings_and_idioms_are_found() -> None:
    count = Count()
    count.add_docstring("f.py:1", "Whether it hangs on what `that` says.")
    assert (count.words, count.relatives, len(count.openings), len(count.idioms)) == (6, 1, 1, 1)
