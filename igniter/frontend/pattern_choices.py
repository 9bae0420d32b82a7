"""The choices of a pattern: one function stands for every combination of them.

    rows  = Transpose <perm = [0, 2, 1, 3]> (k)
    heads = Transpose <perm = [0, 2, 3, 1]> (k)        two nodes that compute the same value:
          | Transpose <perm = [0, 1, 3, 2]> (rows)     `rows` exists only in the second alternative
    sum   = Add (scores, mask) | scores                an optional node: without it, `sum` is `scores`

A line `name = NODE | NODE | VALUE` gives a value in several ways; it may continue on lines that begin with `|`. Nodes,
inputs, parameters and conditions that one alternative does not use are removed from it. An unused input of the target
(`as OP(q, _, mask)`) becomes `_`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, product

import onnx

MOST = 256
"""The largest number of alternatives of one function."""

_ALIAS = "alias_of_pattern"
_VALUE = re.compile(r"[\w.]+")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\||[^"|]+')
_NAMES = re.compile(r"[^\s,()\[\]<>=]+")

Parse = Callable[[str], onnx.FunctionProto]


@dataclass(frozen=True)
class Alternative:
    """One combination: its function and the lines of its conditions."""

    function: onnx.FunctionProto
    conditions: tuple[str, ...]


def alternatives(text: str, conditions: list[str], parse: Parse) -> list[Alternative]:
    """Returns the alternatives of a function in text; the first choice varies slowest. Raises `ValueError` if a choice
    is empty or if there are too many, and what `parse` raises."""
    found = [parse(body) for body in islice(_texts(text), MOST + 1)]
    if len(found) > MOST:
        raise ValueError(f"its choices have more than {MOST} combinations")
    if len(found) == 1:
        return [Alternative(found[0], tuple(conditions))]
    for function in found:
        _resolve(function)
    used = [_used(function) for function in found]
    everywhere = set[str]().union(*used)
    names = set[str]().union(*(_names(function) for function in found))
    for function, here in zip(found, used, strict=True):
        _keep(function, everywhere - here)
    # Choices of a value that an alternative does not use make no further alternatives.
    different = {f.SerializeToString(deterministic=True): f for f in found}.values()
    return [Alternative(f, tuple(_conditions(conditions, names - _names(f)))) for f in different]


# -- text -------------------------------------------------------------------------------------------------------------


def _texts(text: str) -> Iterator[str]:
    """Yields the text of each combination."""
    head, brace, body = text.partition("{")
    lines: list[list[str]] = []
    for line in body.splitlines():
        parts = _split(line)
        if lines and not parts[0].strip() and len(parts) > 1:  # a line that continues the choices of the one above
            lines[-1] += parts[1:]
        else:
            lines.append(parts)
    for chosen in product(*(_choices(parts) for parts in lines)):
        yield head + brace + "\n".join(chosen)


def _split(line: str) -> list[str]:
    """Splits a line at the bars outside of strings."""
    parts = [""]
    for token in _TOKENS.findall(line):
        if token == "|":
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _choices(parts: list[str]) -> list[str]:
    if len(parts) == 1:
        return parts
    name, equals, first = parts[0].partition("=")
    choices = [first, *parts[1:]]
    if not equals or not _VALUE.fullmatch(name.strip()) or not all(c.strip() for c in choices):
        raise ValueError(f"'{'|'.join(parts).strip()}' is no choice: write name = NODE | NODE, or name = NODE | VALUE")
    return [f"{name} = {_node(choice.strip())}" for choice in choices]


def _node(choice: str) -> str:
    return f"Identity <{_ALIAS} = 1> ({choice})" if _VALUE.fullmatch(choice) else choice


# -- functions --------------------------------------------------------------------------------------------------------


def _is_alias(node: onnx.NodeProto) -> bool:
    return node.op_type == "Identity" and any(a.name == _ALIAS for a in node.attribute)


def _resolve(function: onnx.FunctionProto) -> None:
    """Replaces the values of absent nodes by those that stand for them."""
    same: dict[str, str] = {}
    kept: list[onnx.NodeProto] = []
    for node in function.node:
        inputs = [same.get(name, name) for name in node.input]
        if _is_alias(node):
            same[node.output[0]] = inputs[0]
            continue
        del node.input[:]
        node.input.extend(inputs)
        kept.append(node)
    _set(function.node, kept)
    _set(function.output, [same.get(name, name) for name in function.output])


def _used(function: onnx.FunctionProto) -> set[str]:
    """Returns the values that the outputs depend on, and the parameters (after `@`) of their nodes."""
    used = set(function.output)
    for node in reversed(function.node):
        if used.intersection(node.output):
            used.update(node.input, node.output)
            used.update(f"@{a.ref_attr_name}" for a in node.attribute if a.ref_attr_name)
    return used


def _names(function: onnx.FunctionProto) -> set[str]:
    return {*function.input, *(name for node in function.node for name in node.output if name)}


def _keep(function: onnx.FunctionProto, unused: set[str]) -> None:
    """Removes nodes, inputs and parameters that only other alternatives use."""
    _set(function.node, [n for n in function.node if not unused.issuperset(filter(None, n.output))])
    read = {name for node in function.node for name in node.input}.union(function.output)
    _set(function.input, [name for name in function.input if name not in unused or name in read])
    _set(function.attribute, [name for name in function.attribute if f"@{name}" not in unused])


def _set(field: object, values: list[onnx.NodeProto] | list[str]) -> None:
    copies = list(values)
    del field[:]  # pyright: ignore
    field.extend(copies)  # pyright: ignore


# -- conditions -------------------------------------------------------------------------------------------------------


def _conditions(lines: list[str], absent: set[str]) -> Iterator[str]:
    """Yields the conditions on the values that an alternative has."""
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "as":
            yield _target(line, absent)
        elif word in ("any", "constant"):
            left = [name for name in _NAMES.findall(rest) if name not in absent]
            if left:
                yield f"{word} {', '.join(left)}"
        elif word not in ("rank", "shape", "type") or rest.split(" ")[0] not in absent:
            yield line


def _target(line: str, absent: set[str]) -> str:
    """Returns the line `as` with `_` for absent inputs and outputs, and without those at an end."""

    def listed(match: re.Match[str]) -> str:
        names = ["_" if n.strip() in absent else n.strip() for n in match[1].split(",")]
        while names[-1:] == ["_"]:
            names.pop()
        return f"({', '.join(names)})"

    return re.sub(r"\(([^()]*)\)", listed, line)
