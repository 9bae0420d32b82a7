"""A sample of the hostile files; `python -m tests.hostile` runs all of them and prints the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.files import HostileFile, hostile_files
from tests.hostile.run import compile_hostile

SAMPLED = 12
"""Of each kind every so many files are run here, and those that the tests below name."""


def _sample() -> list[HostileFile]:
    kinds: dict[str, int] = {}
    chosen: list[HostileFile] = []
    for file in hostile_files(flips=60, cuts=24):
        number = kinds.get(file.kind, 0)
        kinds[file.kind] = number + 1
        if number % SAMPLED == 0:
            chosen.append(file)
    return chosen


@pytest.mark.parametrize(
    "file", _sample(), ids=lambda f: f"{f.kind}: {f.name}"[:60].encode("ascii", "replace").decode()
)
def test_an_error_of_one_paragraph_or_a_right_result(file: HostileFile, tmp_path: Path) -> None:
    outcome = compile_hostile(file, tmp_path)
    assert not outcome.failed, outcome


SAID = {
    "no outputs": "the model has no outputs, so there is nothing to compute",
    "opset 2147483648": "the model imports version 2147483648 of the domain ''",
    "10000 Ifs in one another": "its graphs are nested more deeply than protobuf supports",
    "not UTF-8 instead of xxxx": "node 'nnnn' (Mul) of the main graph: the field 'input' is not UTF-8",
    "too few inputs": "the node Add of the main graph that computes 'y' is not valid: Node with schema(::Add:14) has",
    "shapes that do not fit": "(op_type:MatMul, node name: of y): Incompatible dimensions",
    "a reference to an attribute outside a function": "attribute 'axis' refers to 'a' of a function, but is not in one",
    "a location of 100,000 characters": "...",
    "10 calls a function over 8 levels": "until it has 100,000,000 nodes, more than 500,000",
    "2 calls a function over 60 levels": "f.F59",
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_said_of_the_node(name: str, tmp_path: Path) -> None:
    file = next(f for f in hostile_files(0, 0) if f.name == name)
    outcome = compile_hostile(file, tmp_path)
    assert outcome.status == "error"
    assert SAID[name] in outcome.message


DEEP = ("a dim of parentheses", "a dim of a product of sums", "a dim squared 60 times")


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEP)
def test_deep_expressions_are_names_or_sizes(name: str, tmp_path: Path) -> None:
    file = next(f for f in hostile_files(0, 0) if f.name == name)
    assert not compile_hostile(file, tmp_path).failed


@pytest.mark.full
def test_every_file(tmp_path: Path) -> None:
    failed = [(f, o) for f in hostile_files() if (o := compile_hostile(f, tmp_path)).failed]
    assert not failed
