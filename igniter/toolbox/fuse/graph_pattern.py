"""A pattern of `fuse-pattern`: a small graph with conditions.

The graph is a function of ONNX. Its inputs match any values. A Constant matches a constant of the same value, and an
attribute an equal attribute. An attribute with a reference to a parameter of the function (`axis: int = @axis`) matches
any value, and the fused node gets it under the same name; so does a Constant whose value is a reference. Conditions are
lines:

    tolerance 1e-3               how far constants may be off, relative (a few units in the last place by default)
    any NODE ...                 the nodes that make these values may have any attributes
    constant VALUE ...           an input is a constant
    rank VALUE N
    shape VALUE [_, 3, seq]      dims: anything, an integer, or the same wherever the name stands
    type VALUE float16
    as OP<a = @p, b = 1>(x, y) => (z, _, s)      the op to replace it by, where that is asked for;
                                                 @p is a parameter, or a dim that a line `shape` names
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from xdsl.ir import Operation, SSAValue

from igniter.dialects.onnx.attributes import texts_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import FunctionOp
from igniter.dialects.onnx.types import ELEMENT_TYPES
from igniter.errors import IgniterError
from igniter.frontend.pattern_files import read_pattern_file
from igniter.registry import UnknownName

FOLDER = Path(__file__).parent / "patterns"
"""The folder of the shipped patterns."""


@dataclass(frozen=True)
class Target:
    """The op to replace the matched nodes. Attributes are values, or names of parameters after `@`."""

    op: str
    attributes: tuple[tuple[str, Any], ...] = ()
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None


@dataclass
class Pattern:
    """One alternative of a pattern."""

    function: FunctionOp
    tolerance: float | None = None
    free: set[str] = field(default_factory=set[str])
    constants: set[str] = field(default_factory=set[str])
    ranks: dict[str, int] = field(default_factory=dict[str, int])
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    types: dict[str, str] = field(default_factory=dict[str, str])
    target: Target | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.key[1]

    @property
    def domain(self) -> str:
        """The domain of the calls."""
        return self.function.key[0] or "fused"

    @cached_property
    def names(self) -> dict[str, SSAValue]:
        """The values of the graph by name."""
        found: dict[str, SSAValue] = dict(zip(self.function.input_names, self.function.body.args, strict=True))
        for op in self.nodes:
            found.update((n, r) for n, r in zip(op.output_names, op.results, strict=False) if n)
        for op in self.function.body.ops:
            if op.name == "onnx.Constant":
                found.update(
                    (n, r) for n, r in zip(texts_of(op.properties.get("output_names")), op.results, strict=False)
                )
        return found

    @cached_property
    def nodes(self) -> list[OnnxOp]:
        """The nodes except constants, in order."""
        return [op for op in self.function.body.ops if isinstance(op, OnnxOp) and op.name != "onnx.Constant"]

    @property
    def root(self) -> OnnxOp:
        """The node of the first output; matching starts there."""
        owner = self.function.terminator.operands[0].owner
        assert isinstance(owner, OnnxOp)
        return owner


def load_patterns(name: str) -> list[Pattern]:
    """Loads the patterns of a file, or the shipped ones of a name."""
    shipped = shipped_patterns()
    path = shipped.get(name, Path(name))
    if not path.exists():
        if path.suffix or "/" in name:
            raise IgniterError(f"there is no pattern at {name}")
        raise UnknownName("pattern", name, shipped, listed=True)
    module, conditions = read_pattern_file(path)
    functions = [op for op in module.ops if isinstance(op, FunctionOp)]
    return [_pattern(f, said, name) for f, said in zip(functions, conditions, strict=True)]


def shipped_patterns() -> dict[str, Path]:
    """Returns the shipped patterns, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.pattern"))}


def _pattern(function: FunctionOp, said: str, where: str) -> Pattern:
    made = Pattern(function)
    _check(made, where)
    for line in filter(None, (line.strip() for line in said.splitlines())):
        word, _, rest = line.partition(" ")
        reader = _CONDITIONS.get(word)
        if reader is None:
            if word.endswith(":") or not re.fullmatch(r"[a-z]+", word):
                continue
            raise UnknownName(f"condition in {where}", word, _CONDITIONS, listed=True)
        try:
            reader(made, rest.strip())
        except ValueError as error:
            raise IgniterError(f"{where}: the condition '{line}' {error}") from error
    return made


def _check(pattern: Pattern, where: str) -> None:
    end = pattern.function.terminator
    roots = [v.owner for v in end.operands]
    if not roots or any(not isinstance(r, OnnxOp) or r.name == "onnx.Constant" for r in roots):
        raise IgniterError(f"{where}: every output of pattern {pattern.name} has to be what a node computes")
    reached: set[Operation] = set()
    pending: list[Any] = [roots[0]]
    while pending:
        op = pending.pop()
        if isinstance(op, OnnxOp) and op not in reached:
            reached.add(op)
            pending += [v.owner for v in op.operands]
    for op in pattern.nodes:
        if op not in reached:
            name = next(iter(op.output_names), op.op_type)
            raise IgniterError(f"{where}: the first output of pattern {pattern.name} does not depend on '{name}'")
    for name, arg in zip(pattern.function.input_names, pattern.function.body.args, strict=True):
        if arg.first_use is None:
            raise IgniterError(f"{where}: no node of pattern {pattern.name} reads the input '{name}'")


# -- conditions -------------------------------------------------------------------------------------------------------


def _known(pattern: Pattern, text: str, least: int = 1) -> list[str]:
    names = [n for n in re.split(r"[\s,]+", text) if n]
    if len(names) < least:
        raise ValueError("names no value")
    for name in names:
        if name not in pattern.names:
            raise ValueError(f"names '{name}', and the values of {pattern.name} are {', '.join(pattern.names)}")
    return names


def _tolerance(pattern: Pattern, text: str) -> None:
    pattern.tolerance = float(text)


def _any(pattern: Pattern, text: str) -> None:
    pattern.free.update(_known(pattern, text))


def _constant(pattern: Pattern, text: str) -> None:
    pattern.constants.update(_known(pattern, text))


def _rank(pattern: Pattern, text: str) -> None:
    name, _, rank = text.partition(" ")
    pattern.ranks[_known(pattern, name)[0]] = int(rank)


def _shape(pattern: Pattern, text: str) -> None:
    found = re.fullmatch(r"(\S+)\s*\[(.*)\]", text)
    if found is None:
        raise ValueError("is not of the form shape VALUE [dim, ...]")
    dims = [d.strip() for d in found[2].split(",")] if found[2].strip() else []
    pattern.shapes[_known(pattern, found[1])[0]] = tuple(dims)


def _type(pattern: Pattern, text: str) -> None:
    name, _, type_ = text.partition(" ")
    known = {t.numpy_name for t in ELEMENT_TYPES}
    if type_.strip() not in known:
        raise ValueError(f"names no element type: there are {', '.join(sorted(known))}")
    pattern.types[_known(pattern, name)[0]] = type_.strip()


def _as(pattern: Pattern, text: str) -> None:
    pattern.target = parse_target(text)


_CONDITIONS = {
    "any": _any,
    "as": _as,
    "constant": _constant,
    "rank": _rank,
    "shape": _shape,
    "tolerance": _tolerance,
    "type": _type,
}

_TARGET = re.compile(
    r"\s*(?P<op>[\w.]+)\s*(<(?P<attributes>.*?)>)?\s*(\((?P<inputs>.*?)\))?\s*(=>\s*\((?P<outputs>.*?)\))?\s*"
)


def parse_target(text: str) -> Target:
    """Parses `com.microsoft.Gelu`, or `OP<axis = -1, epsilon = @epsilon>(x, scale) => (y, _, sum)`."""
    found = _TARGET.fullmatch(text)
    if found is None:
        raise IgniterError(f"'{text}' is no op to fuse to: write OP, or OP<name = value>(inputs) => (outputs)")
    attributes: list[tuple[str, Any]] = []
    for part in _split(found["attributes"]):
        name, equals, value = part.partition("=")
        if not equals:
            raise IgniterError(f"'{part}' in '{text}' is no attribute: write name = value")
        attributes.append((name.strip(), _value(value.strip())))
    inputs = None if found["inputs"] is None else tuple(_split(found["inputs"]))
    outputs = None if found["outputs"] is None else tuple(_split(found["outputs"]))
    return Target(found["op"], tuple(attributes), inputs, outputs)


def _split(text: str | None) -> list[str]:
    return [p.strip() for p in re.split(r",(?![^\[]*\])", text)] if text and text.strip() else []


def _value(text: str) -> Any:
    if text.startswith("@"):
        return text
    if text.startswith("[") and text.endswith("]"):
        return [_value(p) for p in _split(text[1:-1])]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")
