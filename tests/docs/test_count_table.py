"""docs/how-to/profile.md has the rule of every op, and every device."""

from __future__ import annotations

from .count_table import PAGE, page_with_tables


def test_the_tables_of_the_page_are_those_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert page_with_tables(text) == text, "python -m tests.docs.count_table writes the tables anew"
