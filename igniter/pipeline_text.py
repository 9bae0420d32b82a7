"""The grammar of pipelines: passes, named pipelines, nested pipelines and edits.

    pipeline ::= element (`,` element)* edit*
    element  ::= PASS options? | PIPELINE | ANCHOR `(` pipeline `)`
    edit     ::= `,`? `with` element (`before` | `after`) place
               | `,`? `without` place
    place    ::= NAME (`#` (NUMBER | `all`))?

The name of a pipeline expands to its passes. `builtin.module(...)` around a pipeline changes nothing. Another anchor is
the name of an op: its pipeline runs on each such op alone (`igniter.passes.NestedPasses`).

An edit changes the elements before it, in the order of writing. NAME is a pass, or a pipeline: a pass is then inserted
before its first or after its last pass. Without a number, `with` means the first of several places, `without` all.

    cpu with my-pass after canonicalize-onnx
    cpu-onnx with my-pass{width=8} before recompose, without form-half-products
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from xdsl.utils.arg_spec import ArgSpec, parse_spec
from xdsl.utils.exceptions import ArgSpecParseError

from igniter.errors import IgniterError
from igniter.pipelines import PIPELINES, find_pipeline
from igniter.registry import UnknownName, all_passes, where_pass

ROOT = "builtin.module"
"""The anchor of a whole module."""

_ANCHORED = re.compile(r"(?P<anchor>any|[A-Za-z_][\w$]*(?:\.[\w$]+)+)\s*\((?P<inner>.*)\)", re.DOTALL)
_KEYWORD = re.compile(r"\b(?:with|without)\s")
_EDIT = re.compile(r"with\s+(?P<new>.+?)\s+(?P<side>before|after)\s+(?P<place>\S+)", re.DOTALL)
_WITHOUT = re.compile(r"without\s+(?P<place>\S+)")
_PLACE = re.compile(r"(?P<name>[\w.-]+)(?:#(?P<number>\d+|all))?")


class PipelineError(IgniterError):
    """Raised for a pipeline with a wrong form, an unknown name or place, or an unknown option of a pass."""

    code = "IGN0101"


@dataclass
class Element:
    """One pass of a pipeline, or a nested pipeline."""

    spec: ArgSpec
    """The pass and its options; for a nested pipeline, its anchor."""
    inner: list[Element] | None = None
    """The elements of a nested pipeline; `None` for a pass."""
    groups: tuple[tuple[str, int], ...] = ()
    """The named pipelines around the pass, outermost first, each with a number of its expansion."""

    def __str__(self) -> str:
        return str(self.spec) if self.inner is None else f"{self.spec.name}({','.join(map(str, self.inner))})"


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with all names expanded and all edits made."""

    elements: Sequence[Element]
    notes: tuple[str, ...] = ()
    """The choices made for edits with several possible places."""

    def __str__(self) -> str:
        return ",".join(map(str, self.elements))


def expand(text: str) -> Pipeline:
    """Expands a pipeline; raises `PipelineError`."""
    reader = _Reader()
    elements = reader.elements(text, ())
    return Pipeline(elements, tuple(reader.notes))


def is_edited(text: str) -> bool:
    """True if a pipeline has edits."""
    return bool(split_edits(text)[1])


def split_edits(text: str) -> tuple[str, list[str]]:
    """Splits a pipeline into its elements and its edits, as text."""
    starts = [at for at in _outside(text) if _KEYWORD.match(text, at) and (at == 0 or text[at - 1] in " \t\n,")]
    ends = [*starts[1:], len(text)]
    edits = [text[start:end].strip().removesuffix(",").strip() for start, end in zip(starts, ends, strict=False)]
    base = text[: starts[0]] if starts else text
    return base.strip().removesuffix(",").strip(), edits


def edit_levels(levels: Mapping[str, str], text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Makes edits on pipelines that run one after another.

    `text` is edits, or the name of the whole pipeline and edits. Returns the changed levels and the notes of the edits.
    Raises `PipelineError` if the elements of `text` are not those of all the levels, or if it has no edits.
    """
    base, edits = split_edits(text)
    if not edits:
        raise PipelineError(f"'{text}' has no edit: write 'with PASS after NAME', 'with PASS before NAME' or such")
    reader = _Reader()
    whole = [Element(ArgSpec(level, {}), reader.elements(written, ())) for level, written in levels.items()]
    before = [str(each) for each in whole]
    if base:
        passes = [str(each) for level in whole for each in level.inner or ()]
        given = [str(each) for each in reader.elements(base, ())]
        # Later levels are those of programs and weights, which the name of a whole pipeline leaves out.
        if not given or given != passes[: len(given)]:
            raise PipelineError(f"'{base}' is not the pipeline of this target: leave it out, and give the edits alone")
    for edit in edits:
        reader.edit(whole, edit)
    changed = {
        each.spec.name: ",".join(map(str, each.inner or ()))
        for each, written in zip(whole, before, strict=True)
        if str(each) != written
    }
    return changed, tuple(reader.notes)


@dataclass
class _Reader:
    """Expands one pipeline; `_count` numbers the expansions of named pipelines."""

    notes: list[str] = field(default_factory=list[str])
    _count: int = 0

    def elements(self, text: str, seen: tuple[tuple[str, int], ...]) -> list[Element]:
        base, edits = split_edits(text)
        found = [each for part in _split(base) for each in self._element(part, seen)]
        for edit in edits:
            self.edit(found, edit)
        return found

    def _element(self, text: str, seen: tuple[tuple[str, int], ...]) -> list[Element]:
        nested = _ANCHORED.fullmatch(text)
        if nested is not None:
            inner = self.elements(nested["inner"], seen)
            if nested["anchor"] == ROOT:
                return inner
            return [Element(ArgSpec(nested["anchor"], {}), inner, seen)]
        spec = _parsed(text)
        if where_pass(spec.name) is not None:
            return [Element(spec, None, seen)]
        listed = find_pipeline(spec.name)
        if listed is None:
            raise PipelineError(str(UnknownName("pass or pipeline", spec.name, {**all_passes(), **PIPELINES})))
        if any(spec.name == name for name, _ in seen):
            raise PipelineError(f"the pipeline '{spec.name}' contains itself")
        if spec.parameters:
            raise PipelineError(f"'{spec.name}' is a pipeline and takes no options; give them to one of its passes")
        self._count += 1
        around = (*seen, (spec.name, self._count))
        return [each for part in listed for each in self.elements(part, around)]

    def edit(self, elements: list[Element], text: str) -> None:
        """Makes one edit on the elements."""
        found = _EDIT.fullmatch(text)
        removed = _WITHOUT.fullmatch(text)
        if found is None and removed is None:
            raise PipelineError(
                f"cannot read the edit '{text}' of a pipeline: the forms are 'with PASS before NAME', "
                "'with PASS after NAME' and 'without NAME'. Edits stand behind all passes"
            )
        if removed is not None:
            for place in reversed(self._places(elements, removed["place"], text, every=True)):
                del place.among[place.start : place.end]
            return
        assert found is not None
        for place in reversed(self._places(elements, found["place"], text, every=False)):
            at = place.start if found["side"] == "before" else place.end
            place.among[at:at] = self._element(found["new"], ())

    def _places(self, elements: list[Element], text: str, edit: str, *, every: bool) -> list[_Place]:
        """Returns the places of an edit; `every` selects all of them if the text has no number."""
        written = _PLACE.fullmatch(text)
        if written is None:
            raise PipelineError(
                f"'{text}' in '{edit}' is no place of a pipeline: write NAME, NAME#2 or NAME#all; "
                "edits stand behind all passes"
            )
        name, number = written["name"], written["number"]
        places = list(_occurrences(elements, name))
        if not places:
            raise PipelineError(_unknown_place(elements, name, edit))
        if number == "all" or (number is None and every):
            return places
        if number is None:
            if len(places) > 1:
                self.notes.append(
                    f"'{edit}': the pipeline has {name} {len(places)} times; the first is taken. {name}#2 is the "
                    f"second, {name}#all each"
                )
            return places[:1]
        if not 1 <= int(number) <= len(places):
            raise PipelineError(
                f"'{edit}': the pipeline has {name} {len(places)} times, so there is no {name}#{number}"
            )
        return [places[int(number) - 1]]


@dataclass(frozen=True)
class _Place:
    """A range of elements."""

    among: list[Element]
    start: int
    end: int


def _occurrences(elements: list[Element], name: str) -> Iterator[_Place]:
    """Yields the places of a pass, or of the passes of a named pipeline, in order; nested pipelines included."""
    last: tuple[str, int] | None = None
    for at, each in enumerate(elements):
        group = next((g for g in each.groups if g[0] == name), None)
        if group is not None:
            if group != last:
                ends = [i for i, e in enumerate(elements) if group in e.groups]
                yield _Place(elements, ends[0], ends[-1] + 1)
            last = group
        elif each.spec.name == name:
            yield _Place(elements, at, at + 1)
        if each.inner is not None:
            yield from _occurrences(each.inner, name)


def _unknown_place(elements: Sequence[Element], name: str, edit: str) -> str:
    names = dict.fromkeys(_names(elements))
    close = difflib.get_close_matches(name, list(names), n=3)
    hint = f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    if not close and "schedule-kernels" in names and where_pass(name) is not None:
        hint = (
            '; a pass that runs on each kernel is edited within schedule-kernels{passes="..."}, '
            'as in schedule-kernels{passes="cpu-schedule with PASS after NAME"}'
        )
    return f"the pipeline has no '{name}' for '{edit}'{hint}"


def _names(elements: Sequence[Element]) -> Iterator[str]:
    for each in elements:
        yield each.spec.name
        yield from (name for name, _ in each.groups)
        yield from _names(each.inner or ())


@lru_cache(maxsize=512)
def _parsed(text: str) -> ArgSpec:
    """Parses one pass with its options; cached, because every kernel has the same ones."""
    try:
        found = parse_spec(text)
    except ArgSpecParseError as error:
        raise PipelineError(f"cannot read the pipeline '{text}': {error}") from error
    if rest := text[_end_of(text) :].strip():
        raise PipelineError(f"cannot read the pipeline '{text}': '{rest}' is left; passes are separated by commas")
    return found


def _end_of(text: str) -> int:
    """Returns the end of a pass's name and options in a text: the first space or closing brace on its own level."""
    return next((at + (text[at] == "}") for at in _outside(text) if text[at] in " \t\n}"), len(text))


def _outside(text: str) -> Iterator[int]:
    """Yields the positions outside of braces, parentheses and quotes."""
    depth, quoted, escaped = 0, False, False
    for at, character in enumerate(text):
        if quoted:
            quoted, escaped = character != '"' or escaped, character == "\\" and not escaped
            continue
        if character == '"':
            quoted = True
            continue
        depth -= character in ")}]"
        if depth <= 0:
            yield at
        depth += character in "({["


def _split(text: str) -> list[str]:
    """Splits a text at the commas outside of braces, parentheses and quotes; empty parts are dropped."""
    commas = [at for at in _outside(text) if text[at] == ","]
    bounds = zip([0, *(at + 1 for at in commas)], [*commas, len(text)], strict=True)
    return [part for start, end in bounds if (part := text[start:end].strip())]
