"""The words of schedules: what the `schedule` of a nest and the hints of a loop may say.

    schedule {
      order = ["j", "i", "i", "j"],                               the loops, outermost first
      loops = {i = {block = 8}, j = {block = 48, threads, inner = {vector = 16}}},
      product = {rows = "i", columns = "j", depth = "k", tile = [8, 3]}}

`order` names each axis once: twice where it has blocks, three times where those come in groups. `loops` has, by axis,
the words of the table below, which become hints on the loops that `lower-to-loops` makes; each is consumed by one pass.
`product` makes the nest a micro-kernel for each tile. What is not a word, or not said as it must be, is refused where
the IR is verified, and a hint that no pass has consumed where code is emitted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute

Form = Literal["count", "flag", "flag or count", "text", "words"]


@dataclass(frozen=True)
class Word:
    """One directive of a loop: what is said with it, and which pass does it."""

    form: Form
    consumer: str
    meaning: str
    beside: tuple[str, ...] = ()
    """One of these words is there too."""
    choices: tuple[str, ...] = ()
    """The texts that it may be."""
    least: int = 1
    """The least count."""


WORDS: Mapping[str, Word] = {
    "block": Word("count", "lower-to-loops", "two loops: over blocks of so many iterations, and inside one"),
    "group": Word("count", "lower-to-loops", "a third loop, over groups of so many blocks", beside=("block",)),
    "fuse": Word("text", "fuse-loops", "one loop with those of other nests that say the same"),
    "tile": Word("count", "tile-loops", "two loops: over tiles of so many iterations, and inside one"),
    "tail": Word(
        "text",
        "tile-loops",
        "what the last tile is, if it is not full",
        beside=("tile",),
        choices=("mask", "peel", "rest"),
    ),
    "inner": Word("words", "tile-loops", "the words of the loop inside a tile or a block", beside=("tile", "block")),
    "sink": Word("flag", "sink-loops", "below the reductions inside of it, or below all loops", choices=("loops",)),
    "threads": Word("flag or count", "parallelize-loops", "iterations go to the pool, so many a task"),
    "vector": Word("count", "vectorize-loops", "iterations are the lanes of a vector"),
    "accumulators": Word("count", "vectorize-loops", "vectors that a sum is kept in, in turn", beside=("vector",)),
    "unroll": Word("flag or count", "unroll-loops", "copies of the body: of all iterations, or of so many", least=2),
}
"""By name, in the order in which passes consume them."""

OF_NESTS = frozenset(("block", "group"))
"""Words that only the schedule of a nest has: loops that are there already have `tile`."""

INSIDE = frozenset(("tile", "tail", "inner", "sink", "vector", "accumulators", "unroll"))
"""Words of the loop inside a tile or a block."""

NEST_KEYS = ("order", "loops", "product")
PRODUCT_KEYS = ("rows", "columns", "depth", "tile")


def schedule_reason(
    schedule: DictionaryAttr, axes: Mapping[str, str], loops: Sequence[str] = (), product: bool = True
) -> str | None:
    """What is wrong with a schedule of a nest with `axes` (their kinds, by name); `loops` are those in the body of a
    procedure, which has no `product`. None if every word of it is one and stands where it may."""
    reason = _unknown(schedule.data, NEST_KEYS if product else NEST_KEYS[:2], "it")
    if reason is not None:
        return reason
    hints = schedule.data.get("loops", DictionaryAttr({}))
    if not isinstance(hints, DictionaryAttr):
        return f"'loops' is {hints}, not words by axis"
    for name, words in hints.data.items():
        if name not in axes and name not in loops:
            return f"'loops' names '{name}', which is no axis{_near(name, (*axes, *loops))}"
        if not isinstance(words, DictionaryAttr):
            return f"the words of loop '{name}' are {words}, not a dictionary"
        allowed = WORDS.keys() if name in axes else WORDS.keys() - OF_NESTS
        reason = _words_reason(f"loop '{name}'", words.data, allowed, axes.get(name) == "reduction")
        if reason is not None:
            return reason
    given = schedule.data.get("product")
    reason = None if given is None else _product_reason(given, axes)
    return reason if reason is not None else _order_reason(schedule, axes)


def hints_reason(axis: str, hints: DictionaryAttr, reduction: bool) -> str | None:
    """What is wrong with the hints of a loop."""
    return _words_reason(f"loop '{axis}'", hints.data, WORDS.keys() - OF_NESTS, reduction)


def _words_reason(where: str, words: Mapping[str, Attribute], allowed: Iterable[str], reduction: bool) -> str | None:
    reason = _unknown(words, sorted(allowed), where)
    if reason is not None:
        return reason
    for name, value in words.items():
        word = WORDS[name]
        if not _is_said(word, value):
            return f"{where}: '{name}' is {_wanted(word)}, not {_shown(value)}"
        if word.beside and not any(other in words for other in word.beside):
            return f"{where}: '{name}' means nothing without {' or '.join(repr(o) for o in word.beside)}"
    if "block" in words and "tile" in words:
        return f"{where}: 'block' and 'tile' both split it; a block is tiled by what is said in 'inner'"
    if reduction and ("threads" in words or "sink" in words):
        wrong = "threads" if "threads" in words else "sink"
        return f"{where} is a reduction, whose iterations meet in one element: it cannot have '{wrong}'"
    inner = words.get("inner")
    if isinstance(inner, DictionaryAttr):
        return _words_reason(
            f"{where}, inside its {'tile' if 'tile' in words else 'block'}", inner.data, INSIDE, reduction
        )
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
    count = "a positive count" if word.least == 1 else f"a count of at least {word.least}"
    if word.choices:
        texts = " or ".join(f'"{c}"' for c in word.choices)
        return f"said alone, or {texts}" if word.form == "flag" else texts
    named = {"count": count, "flag": "said alone", "text": "a text", "words": "a dictionary of words"}
    return named.get(word.form, f"said alone, or {count}")


def _product_reason(product: Attribute, axes: Mapping[str, str]) -> str | None:
    if not isinstance(product, DictionaryAttr):
        return f"'product' is {product}, not a dictionary"
    reason = _unknown(product.data, PRODUCT_KEYS, "'product'")
    if reason is not None:
        return reason
    for key in ("rows", "columns", "depth"):
        value = product.data.get(key)
        if value is None and key == "rows":
            continue
        if not isinstance(value, StringAttr) or value.data not in axes:
            return f"the {key} of a product are an axis, not {'missing' if value is None else _shown(value)}"
    tile = product.data.get("tile")
    sizes = list(cast("ArrayAttr[Attribute]", tile)) if isinstance(tile, ArrayAttr) else []
    if len(sizes) != 2 or any(not isinstance(n, IntegerAttr) or n.value.data < 1 for n in sizes):
        return "the tile of a product is [rows, panels], two positive counts"
    return None


def _order_reason(schedule: DictionaryAttr, axes: Mapping[str, str]) -> str | None:
    """Every loop is in the order, and those of parallel axes are around the reductions."""
    order, hints, product = (schedule.data.get(key) for key in NEST_KEYS)
    if order is None:
        said: Mapping[str, Attribute] = hints.data if isinstance(hints, DictionaryAttr) else {}
        blocks = next((axis for axis in axes if _count(said.get(axis), "block") > 1), None)
        if product is None and blocks is None:
            return None
        what = "a product" if blocks is None else f"loop '{blocks}' with its blocks"
        return f"it has no 'order', which {what} needs"
    entries = list(cast("ArrayAttr[Attribute]", order)) if isinstance(order, ArrayAttr) else [order]
    names = [n.data for n in entries if isinstance(n, StringAttr)]
    if len(names) < len(entries) or not isinstance(order, ArrayAttr):
        return f"'order' is {order}, not names of axes"
    depth = product.data.get("depth") if isinstance(product, DictionaryAttr) else None
    wanted: list[str] = []
    for axis in axes:
        words = hints.data.get(axis) if isinstance(hints, DictionaryAttr) else None
        if depth != StringAttr(axis):
            wanted += [axis] * (1 + sum(_count(words, word) > 1 for word in ("block", "group")))
    if sorted(names) != sorted(wanted):
        return (
            f"order {names} is no permutation of its axes {wanted} (those with blocks twice, with groups of blocks "
            "three times)"
        )
    kinds = [axes[n] for n in names]
    if kinds != sorted(kinds):
        return (
            f"order {names} puts a parallel axis inside a reduction; use the hint 'sink' on that axis, which sinks its "
            "loop after tiling"
        )
    return None


def _count(words: Attribute | None, key: str) -> int:
    size = words.data.get(key) if isinstance(words, DictionaryAttr) else None
    return size.value.data if isinstance(size, IntegerAttr) else 1


def _unknown(words: Mapping[str, Attribute], known: Sequence[str], where: str) -> str | None:
    for name in words:
        if name not in known:
            return f"{where}: '{name}' is no word that it has{_near(name, known) or ': ' + ', '.join(known)}"
    return None


def _near(name: str, known: Sequence[str]) -> str:
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
