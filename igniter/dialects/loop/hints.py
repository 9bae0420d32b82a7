"""The vocabulary of hints: the directives in the `hints` of a scheduled loop or of a buffer.

`lower-to-loops` writes the hints from the schedules of nests; one pass consumes each. The verifier rejects an unknown
or malformed hint, and the emitter rejects a hint left unconsumed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute

Form = Literal["count", "flag", "flag or count", "text", "words"]


@dataclass(frozen=True)
class Word:
    """One directive of a loop: the form of its value, and its consuming pass."""

    form: Form
    consumer: str
    meaning: str
    beside: tuple[str, ...] = ()
    """The directive needs one of these directives beside it."""
    choices: tuple[str, ...] = ()
    """The allowed texts of the value."""
    least: int = 1
    """The least count."""


WORDS: Mapping[str, Word] = {
    "fuse": Word("text", "fuse-loops", "one loop with those of other nests that say the same"),
    "slide": Word(
        "text", "slide-loops", "of those that say the same, the last is over windows of the rows of the others"
    ),
    "tile": Word("count", "tile-loops", "two loops: over tiles of so many iterations, and inside one"),
    "tail": Word(
        "text",
        "tile-loops",
        "what the last tile is, if it is not full",
        beside=("tile",),
        choices=("mask", "peel", "rest"),
    ),
    "inner": Word("words", "tile-loops", "the words of the loop inside a tile", beside=("tile",)),
    "sink": Word("flag", "sink-loops", "below the reductions inside of it, or below all loops", choices=("loops",)),
    "prefetch": Word(
        "flag", "prefetch-loops", "the lines that it goes to are fetched at the start of the body around it"
    ),
    "threads": Word("flag or count", "parallelize-loops", "iterations go to the pool, so many a task"),
    "vector": Word("count", "vectorize-loops", "iterations are the lanes of a vector"),
    "accumulators": Word("count", "vectorize-loops", "vectors that a sum is kept in, in turn", beside=("vector",)),
    "unroll": Word("flag or count", "unroll-loops", "copies of the body: of all iterations, or of so many", least=2),
}
"""The directives by name, in the order of their consuming passes."""

BUFFER_WORDS: Mapping[str, Word] = {
    "depth": Word("count", "promote-buffers", "it lives in the body of so many loops, one for each iteration", least=0),
    "memory": Word("text", "plan-buffers", "where it is", choices=("registers", "stack", "arena")),
}
"""The directives of buffers."""

INSIDE = frozenset(("tile", "tail", "inner", "sink", "vector", "accumulators", "unroll"))
"""The directives allowed in `inner`, for the loop inside a tile."""


def hints_reason(axis: str, hints: DictionaryAttr, reduction: bool) -> str | None:
    """Returns the reason why the hints of a loop are invalid; None if they are valid."""
    return _words_reason(f"loop '{axis}'", hints.data, WORDS, reduction)


def buffer_hints_reason(label: str, hints: DictionaryAttr) -> str | None:
    """Returns the reason why the hints of a buffer are invalid; None if they are valid."""
    return _words_reason(f"buffer '{label}'", hints.data, BUFFER_WORDS, False)


def _words_reason(where: str, words: Mapping[str, Attribute], known: Mapping[str, Word], reduction: bool) -> str | None:
    reason = _unknown(words, sorted(known), where)
    if reason is not None:
        return reason
    for name, value in words.items():
        word = known[name]
        if not _is_said(word, value):
            return f"{where}: '{name}' is {_wanted(word)}, not {_shown(value)}"
        if word.beside and not any(other in words for other in word.beside):
            return f"{where}: '{name}' means nothing without {' or '.join(repr(o) for o in word.beside)}"
    if reduction and ("threads" in words or "sink" in words):
        wrong = "threads" if "threads" in words else "sink"
        return f"{where} is a reduction, whose iterations meet in one element: it cannot have '{wrong}'"
    inner = words.get("inner")
    if isinstance(inner, DictionaryAttr):
        inside = {name: word for name, word in WORDS.items() if name in INSIDE}
        return _words_reason(f"{where}, inside its tile", inner.data, inside, reduction)
    return None


def _is_said(word: Word, value: Attribute) -> bool:
    if word.choices and isinstance(value, StringAttr):
        return value.data in word.choices
    if isinstance(value, UnitAttr):
        return word.form in ("flag", "flag or count")
    if isinstance(value, IntegerAttr):
        return word.form in ("count", "flag or count") and value.value.data >= word.least
    if isinstance(value, StringAttr):
        return word.form == "text"
    return word.form == "words" and isinstance(value, DictionaryAttr)


def _wanted(word: Word) -> str:
    count = {0: "a count", 1: "a positive count"}.get(word.least, f"a count of at least {word.least}")
    if word.choices:
        texts = " or ".join(f'"{c}"' for c in word.choices)
        return f"said alone, or {texts}" if word.form == "flag" else texts
    named = {"count": count, "flag": "said alone", "text": "a text", "words": "a dictionary of words"}
    return named.get(word.form, f"said alone, or {count}")


def _unknown(words: Mapping[str, Attribute], known: Sequence[str], where: str) -> str | None:
    for name in words:
        if name not in known:
            return f"{where}: '{name}' is no word that it has{near(name, known) or ': ' + ', '.join(known)}"
    return None


def near(name: str, known: Sequence[str]) -> str:
    """Returns a suggestion of the closest known name, for an error message; empty if no name is close."""
    found = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{found[0]}'?" if found else ""


def _shown(value: Attribute) -> str:
    if isinstance(value, IntegerAttr):
        return str(value.value.data)
    return (
        f'"{value.data}"'
        if isinstance(value, StringAttr)
        else "said alone"
        if isinstance(value, UnitAttr)
        else str(value)
    )
