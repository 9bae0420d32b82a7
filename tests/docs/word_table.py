"""The table of schedule words in docs/reference/dialects/loop.md: `python -m tests.docs.word_table` writes it anew."""

from __future__ import annotations

import re

from igniter.dialects.loop.schedule import VOCABULARY

from .transcripts import ROOT

PAGE = ROOT / "docs" / "reference" / "dialects" / "loop.md"


def rows() -> list[str]:
    """Returns the rows: a word with its meaning, and the passes that consume it."""
    words = [
        f"| `{row.example}` | {row.meaning} | {', '.join(f'`{name}`' for name in row.consumers)} |"
        for row in VOCABULARY.values()
    ]
    return ["| word | meaning | passes |", "| --- | --- | --- |", *words]


def page_with_table(text: str) -> str:
    """Returns the page with the table of the code."""
    body = "\n".join(["", *rows(), ""])
    text, count = re.subn(
        r"(<!-- words -->\n).*?(<!-- end of words -->)", lambda m: m[1] + body + "\n" + m[2], text, flags=re.DOTALL
    )
    assert count == 1, "docs/reference/dialects/loop.md has no place for the table of words"
    return text


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
