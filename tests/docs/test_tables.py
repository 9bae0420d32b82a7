"""The tables of pages that code knows: rules of ops, devices, words of schedules."""

from __future__ import annotations

from . import word_table
from .count_table import PAGE, page_with_tables


def test_the_tables_of_the_page_are_those_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert page_with_tables(text) == text, "python -m tests.docs.count_table writes the tables anew"


def test_the_table_of_words_is_that_of_the_code():
    text = word_table.PAGE.read_text(encoding="utf-8")
    assert word_table.page_with_table(text) == text, "python -m tests.docs.word_table writes the table anew"
