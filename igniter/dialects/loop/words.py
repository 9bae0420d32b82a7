"""The words of schedules: one table, of which everything else is derived.

A word is a directive of a loop (`vector 16`). Each is one field of `Words`, with its row of the table: the form of its
value, the loops that may have it, the passes that consume it, its sentence in the docs, and the values that the tuner
tries. Parser, printer, verifier, the vocabularies of backends, `split`, the tuner's moves and the table in
`docs/reference/dialects/loop.md` read these rows. A new word is one field here and the pass that consumes it.

The loops of a nest's schedule have words (`schedule.py`), and so have scheduled loops, until a pass consumes them:

    loop.for i = 0 to n schedule [by 8 tail peel inside [vector 16 unroll] threads fuse "g0"] { .. }

`by` on a scheduled loop is the size of blocks that are still to be made, and `inside` has the words of the loop inside
a block; `sink` moves that loop below others.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Form = Literal["count", "flag", "flag or count", "label", "choice", "words", "step"]
"""The form of a value. A flag stands alone; a label is a text in quotes; a choice is one of the row's `choices`."""

Axes = Literal["all", "parallel", "reduction", "parallel or blocks"]
"""The axes whose loops may have a word; "parallel or blocks" excludes single iterations of a reduction."""

Over = Literal["all", "blocks", "iterations"]
"""The loops that may have a word: those over blocks, those over single iterations, or both."""


@dataclass(frozen=True)
class Row:
    """One word of the table."""

    form: Form
    consumers: tuple[str, ...]
    """The passes that consume it."""
    meaning: str
    """Its sentence in the docs."""
    example: str
    """Its spelling with a value, for the docs."""
    axes: Axes = "all"
    over: Over = "all"
    beside: tuple[str, ...] = ()
    """The word needs these words beside it."""
    never_beside: tuple[str, ...] = ()
    """The word excludes these words."""
    because: str = ""
    """The reason for `axes` and `over`, or the way out, for error messages."""
    least: int = 1
    """The least count."""
    choices: tuple[str, ...] = ()
    in_procedure: bool = True
    """True if the loops in the body of a procedure may have it."""
    carried: bool = True
    """True if `lower-to-loops` leaves it on the loop for another pass."""
    outer: bool = False
    """True if it stays with the outer loop when a loop is split in two."""
    trials: tuple[str, ...] = ()
    """The values that the tuner tries: counts, or `half` and `double`."""
    rest: str = ""
    """A keyword that follows the word (`into result`)."""
    name: str = ""
    attribute: str = ""
    """The field of `Words`; set with `name` by the table."""


def _row(*args: Any, **kwargs: Any) -> dict[str, Row]:
    """Returns a row as the metadata of its field."""
    return {"row": Row(*args, **kwargs)}


Tail = Literal["", "mask", "peel", "rest"]
TAILS = tuple(t for t in get_args(Tail) if t)

Below = Literal["", "reductions", "loops"]
"""The loops below which the loop inside a block is sunk: reductions, or all loops that are neither vectors nor
unrolled."""

LAUNCHES = "lower-to-triton"
"""The pass that turns nests into launches of programs; it consumes the words of GPUs."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words of one loop. A default value means that the loop does not have the word."""

    by: int = field(
        default=1,
        metadata=_row(
            "count",
            ("lower-to-loops", LAUNCHES),
            "a loop over blocks of 8 iterations",
            "by 8",
            in_procedure=False,
            carried=False,
        ),
    )
    tail: Tail = field(
        default="",
        metadata=_row(
            "choice",
            ("tile-loops", "sink-loops"),
            "beside `by`: form the blocks after the nests of a group share the loop, for all of them; a partial last "
            "block has bounds on the inner loops (`mask`), a copy of them, split again (`peel`), or a scalar loop "
            "(`rest`)",
            "tail peel",
            beside=("by",),
            choices=TAILS,
            carried=False,
        ),
    )
    into_result: bool = field(
        default=False,
        metadata=_row(
            "flag",
            ("lower-to-loops",),
            "on a reduction over blocks: add its sums to the result",
            "into result",
            axes="reduction",
            over="blocks",
            because="a reduction of no iterations must still write 0",
            rest="result",
            carried=False,
            outer=True,
        ),
    )
    threads: int | None = field(
        default=None,
        metadata=_row(
            "flag or count",
            ("parallelize-loops",),
            "run iterations on the pool; the value is the number of iterations per task",
            "threads 4",
            axes="parallel",
            because="its iterations add to the same element; split it with split_reduction first",
            outer=True,
            trials=("1", "4", "16", "64"),
        ),
    )
    grid: bool = field(
        default=False,
        metadata=_row(
            "flag",
            (LAUNCHES,),
            "on a GPU: each iteration or block is a separate program; for a reduction, only over the keys of an "
            "attention, with a second kernel that joins the parts",
            "grid",
            axes="parallel or blocks",
            never_beside=("vector", "threads"),
            carried=False,
        ),
    )
    fuse: str = field(
        default="",
        metadata=_row(
            "label",
            ("fuse-loops", LAUNCHES),
            "share this loop with the neighbours of the same group",
            'fuse "group"',
            in_procedure=False,
            outer=True,
        ),
    )
    slide: str = field(
        default="",
        metadata=_row(
            "label",
            ("slide-loops",),
            "the last loop with this label iterates over windows, and the ones before it produce their rows: each row "
            "is produced when the first window needs it, and kept until the last window has read it",
            'slide "group"',
            axes="parallel",
            over="iterations",
            never_beside=("vector", "unroll"),
            because="'slide' needs a parallel, untiled, scalar loop",
            in_procedure=False,
        ),
    )
    vector: int = field(
        default=0,
        metadata=_row(
            "count",
            ("vectorize-loops", LAUNCHES),
            "vectors of 16 elements along this loop",
            "vector 16",
            over="iterations",
            because="only the innermost loop of an axis has lanes",
            trials=("half", "double"),
        ),
    )
    accumulators: int = field(
        default=0,
        metadata=_row(
            "count",
            ("vectorize-loops",),
            "the number of vectors of partial sums, used in turn",
            "accumulators 4",
            beside=("vector",),
            trials=("1", "2", "8"),
        ),
    )
    interior: bool = field(
        default=False,
        metadata=_row(
            "flag",
            ("split-rims",),
            "run the vectors for which every guard holds in a loop of their own, without guards",
            "interior",
            axes="parallel",
            over="iterations",
            because="a sum in two loops has another order",
        ),
    )
    unroll: int | None = field(
        default=None,
        metadata=_row(
            "flag or count",
            ("unroll-loops", LAUNCHES),
            "unroll the body, fully or by a factor; on a GPU, fully, for a reduction without lanes",
            "unroll 4",
            least=2,
            trials=("2", "4"),
        ),
    )
    prefetch: bool = field(
        default=False,
        metadata=_row(
            "flag",
            ("prefetch-loops",),
            "prefetch the cache lines of this loop before the preceding statements of the enclosing body, such as the "
            "tile of sums that it updates",
            "prefetch",
        ),
    )
    ahead: int = field(
        default=0,
        metadata=_row(
            "count",
            ("prefetch-loops",),
            "prefetch the cache lines of the kernel's operands that the body reads 8 iterations later",
            "ahead 8",
            over="iterations",
            because="a distance is in single iterations",
        ),
    )

    def __str__(self) -> str:
        return " ".join(said(self))


@dataclass(frozen=True, kw_only=True)
class LoopWords(Words):
    """The words of a scheduled loop that passes have not consumed yet."""

    inside: LoopWords | None = field(
        default=None,
        metadata=_row(
            "words", ("tile-loops",), "the words of the loop inside a block", "inside [vector 16]", beside=("by",)
        ),
    )
    sink: Below = field(
        default="",
        metadata=_row(
            "choice",
            ("sink-loops",),
            "move this loop below the reductions in it, or below all loops that are neither vectors nor unrolled",
            "sink reductions",
            axes="parallel",
            because="only independent iterations can be sunk",
            choices=("reductions", "loops"),
        ),
    )


NO_WORDS = LoopWords()

W = TypeVar("W", bound=Words)


def _table(kind: type[Words]) -> dict[str, Row]:
    rows = [(f.name, f.metadata["row"]) for f in fields(kind) if "row" in f.metadata]
    return {name.partition("_")[0]: replace(row, name=name.partition("_")[0], attribute=name) for name, row in rows}


TABLE: Mapping[str, Row] = _table(Words)
"""The words of the loops of a schedule, by name, in textual order."""

LOOP_TABLE: Mapping[str, Row] = _table(LoopWords)
"""The words of scheduled loops."""

DEFAULTS: Mapping[str, object] = {row.name: getattr(Words(), row.attribute) for row in TABLE.values()} | {
    row.name: getattr(LoopWords(), row.attribute) for row in LOOP_TABLE.values()
}
"""The value of each word that a loop does not have."""


def words_in(words: Words) -> list[Row]:
    """Returns the rows of a loop's words, in textual order."""
    table = LOOP_TABLE if isinstance(words, LoopWords) else TABLE
    return [row for name, row in table.items() if getattr(words, row.attribute) != DEFAULTS[name]]


def value_of(words: Words, row: Row) -> Any:
    """Returns the value of a word."""
    return getattr(words, row.attribute)


def without(words: W, *names: str) -> W:
    """Returns the words but those named."""
    table = LOOP_TABLE if isinstance(words, LoopWords) else TABLE
    return replace(words, **{table[n].attribute: DEFAULTS[n] for n in names})


def merged(first: LoopWords, second: LoopWords) -> LoopWords:
    """Returns the words of both; a word of both has the value of `first`."""
    return replace(second, **{row.attribute: value_of(first, row) for row in words_in(first)})


def carried(words: Words) -> LoopWords:
    """Returns the words of a schedule's loop that `lower-to-loops` leaves on the loop."""
    return LoopWords(**{row.attribute: value_of(words, row) for row in words_in(words) if row.carried})


# -- text -------------------------------------------------------------------------------------------------------------


def said(words: Words) -> list[str]:
    """Returns the words of a loop with their values, as texts."""
    return [_text(row, value_of(words, row)) for row in words_in(words)]


def _text(row: Row, value: object) -> str:
    if row.form == "words":
        return f"{row.name} [{value}]"
    if row.form == "label":
        return f'{row.name} "{value}"'
    if row.form == "flag":
        return f"{row.name} {row.rest}".rstrip()
    return row.name if row.form == "flag or count" and not value else f"{row.name} {value}"


def parse_words(parser: AttrParser, empty: W, where: str) -> W:
    """Parses words up to the first token that is no identifier; errors begin with `where`."""
    table = LOOP_TABLE if isinstance(empty, LoopWords) else TABLE
    words, seen = empty, set[str]()
    while (name := parser.parse_optional_identifier()) is not None:
        if name not in table:
            parser.raise_error(f"{where}: unknown word '{name}'{near(name, tuple(table)) or known(table)}")
        if name in seen:
            parser.raise_error(f"{where}: '{name}' is given twice")
        seen.add(name)
        words = replace(words, **{table[name].attribute: _parse_value(parser, table[name], where)})
    return words


def _parse_value(parser: AttrParser, row: Row, where: str) -> object:
    if row.form == "flag":
        if row.rest:
            parser.parse_keyword(row.rest)
        return True
    if row.form == "label":
        label = parser.parse_optional_str_literal()
        if not label:
            parser.raise_error(f"{where}: '{row.name}' needs the label of a group, in quotes")
        return label
    if row.form == "choice":
        choice = parser.parse_identifier(", ".join(row.choices))
        if choice not in row.choices:
            parser.raise_error(f"{where}: {value_reason(row, choice)}")
        return choice
    if row.form == "words":
        return _parse_inner(parser, where)
    count = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if count is None and row.form == "flag or count":
        return 0
    reason = value_reason(row, count)
    if reason is not None:
        parser.raise_error(f"{where}: {reason}")
    return count


def _parse_inner(parser: AttrParser, where: str) -> LoopWords:
    parser.parse_punctuation("[")
    inner = parse_words(parser, LoopWords(), f"{where} inside its blocks")
    parser.parse_punctuation("]")
    return inner


# -- verification -----------------------------------------------------------------------------------------------------


def value_reason(row: Row, value: object) -> str | None:
    """Returns the reason why a value is not one of the word's; None if it is."""
    if row.form == "choice":
        if value in row.choices:
            return None
        return f"'{row.name}' is {', '.join(row.choices)}, not '{value}'{near(str(value), row.choices)}"
    if row.form not in ("count", "flag or count"):
        return None
    if isinstance(value, int) and value >= row.least:
        return None
    count = "a positive count" if row.least == 1 else f"a count of at least {row.least}"
    alone = "nothing or " if row.form == "flag or count" else ""
    return f"'{row.name}' takes {alone}{count}" + ("" if value is None else f", not {value}")


def word_reasons(
    words: Words, where: str, *, reduction: bool, blocks: bool | None, inside: bool = False
) -> Iterator[str]:
    """Yields the reasons why a loop may not have its words.

    `blocks` is true for a loop over blocks, and None for a scheduled loop, whose words may have been merged with those
    of other loops; `inside` is true for a loop in the body of a procedure.
    """
    names = {row.name for row in words_in(words)}
    for row in words_in(words):
        value = value_of(words, row)
        reason = None if row.form == "flag or count" and value == 0 else value_reason(row, value)
        if reason is not None:
            yield f"{where}: {reason}"
        missing = next((other for other in row.beside if other not in names), None)
        if missing is not None:
            yield f"{where}: '{row.name}' has no effect without '{missing}'"
        if inside and not row.in_procedure:
            yield f"{where} is in the body of a procedure; it cannot have '{row.name}'"
        yield from _axis_reasons(row, where, reduction, blocks is True)
        if blocks is not None:
            yield from _place_reasons(row, where, blocks, names)
        if isinstance(value, LoopWords):
            yield from word_reasons(value, f"{where} inside its blocks", reduction=reduction, blocks=None)


def _axis_reasons(row: Row, where: str, reduction: bool, blocks: bool) -> Iterator[str]:
    if reduction and (row.axes == "parallel" or (row.axes == "parallel or blocks" and not blocks)):
        yield f"{where} is a reduction; it cannot have '{row.name}'{row.because and f' ({row.because})'}"
    if not reduction and row.axes == "reduction":
        yield f"{where} is not a reduction; it cannot have '{row.name}'"


def _place_reasons(row: Row, where: str, blocks: bool, names: Set[str]) -> Iterator[str]:
    because = row.because and f" ({row.because})"
    if row.over == "iterations" and blocks:
        yield f"{where} iterates over blocks; it cannot have '{row.name}'{because}"
    if row.over == "blocks" and not blocks:
        yield f"{where} iterates over single elements; it cannot have '{row.name}'{because}"
    for other in row.never_beside:
        if other in names:
            yield f"{where}: '{row.name}' and '{other}' exclude each other"


def known(names: Sequence[str] | Mapping[str, object]) -> str:
    """Returns the list of known names, for an error message."""
    return f"; known: {', '.join(names)}"


def near(name: str, names: Sequence[str]) -> str:
    """Returns a suggestion of the closest known name, for an error message; empty if no name is close."""
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean '{found[0]}'?" if found else ""


# -- attributes -------------------------------------------------------------------------------------------------------


@irdl_attr_definition
class LoopWordsAttr(Data[LoopWords]):
    """The words of a scheduled loop: `#loop.words<[vector 16 unroll]>`."""

    name = "loop.words"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LoopWords:
        with parser.in_angle_brackets():
            return _parse_inner(parser, "a loop")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"[{self.data}]")


def parse_loop_words(parser: AttrParser, axis: str) -> LoopWords:
    """Parses `[word*]` of the loop over `axis`."""
    parser.parse_punctuation("[")
    words = parse_words(parser, LoopWords(), f"the schedule of loop '{axis}'")
    parser.parse_punctuation("]")
    return words
