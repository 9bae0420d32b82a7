"""The choices of patterns: their combinations, and what each of them has."""

from __future__ import annotations

import pytest

from igniter.errors import IgniterError
from igniter.frontend.pattern_files import parse_patterns
from igniter.toolbox.fuse.graph_pattern import load_patterns

TEXT = """# as my.Op<n = 1>(x, _, mask)
# rank masked 2
# any rows, heads
<domain: "fused", opset_import: ["" : 17]>
F <scale> (x, mask) => (y)
{
    rows = Relu (x)
    heads = Abs (x) | Neg (rows)
    factor = Constant <value_float: float = @scale> ()
    masked = Add (heads, mask)
           | Mul (heads, factor)
           | heads
    y = Tanh (masked)
}
"""


def ops(function) -> str:
    return " ".join(node.op_type for node in function.node)


def test_each_alternative_has_only_what_it_uses() -> None:
    found = parse_patterns(TEXT, "t")
    assert [(ops(f), list(f.input), list(f.attribute)) for f, _ in found] == [
        ("Abs Add Tanh", ["x", "mask"], []),
        ("Abs Constant Mul Tanh", ["x"], ["scale"]),
        ("Abs Tanh", ["x"], []),
        ("Relu Neg Add Tanh", ["x", "mask"], []),
        ("Relu Neg Constant Mul Tanh", ["x"], ["scale"]),
        ("Relu Neg Tanh", ["x"], []),
    ]
    assert found[2][0].node[-1].input == ["heads"], "the value that stands for the absent node"
    assert found[0][1].split("\n")[:3] == ["as my.Op<n = 1>(x, _, mask)", "rank masked 2", "any heads"]
    assert found[5][1].split("\n")[:2] == ["as my.Op<n = 1>(x)", "any rows, heads"]


def test_a_choice_of_an_unused_value_makes_no_alternative() -> None:
    text = TEXT.replace("y = Tanh (masked)", "y = Tanh (masked) | Tanh (x)")
    found = [ops(f) for f, _ in parse_patterns(text, "t")]
    assert found.count("Tanh") == 1 and len(found) == 7


def test_an_output_may_be_optional() -> None:
    text = TEXT.replace("y = Tanh (masked)", "y = Tanh (masked) | masked")
    assert [list(f.output) for f, _ in parse_patterns(text, "t")][:4] == [["y"], ["masked"], ["y"], ["masked"]]


def test_nodes_in_no_alternative_are_an_error(tmp_path) -> None:
    path = tmp_path / "p.pattern"
    path.write_text(TEXT.replace("y = ", "lost = Sin (x)\n    y = "))
    with pytest.raises(IgniterError, match="does not depend on 'lost'"):
        load_patterns(str(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("| Neg (rows)", "|", "pattern 1: 'heads = Abs .x. |' is no choice: write name = NODE"),
        ("heads = Abs", "heads, more = Abs", "is no choice"),
        ("y = Tanh", "\n".join(f"v{k} = Abs (x) | Neg (x)" for k in range(9)) + "\ny = Tanh", "more than 256 comb"),
        ("| Neg (rows)", "| Neg (rows", "pattern 1 is not an ONNX function"),
        ("| Neg (rows)", "| nowhere", "'nowhere', which Add reads, is not defined"),
    ],
)
def test_choices_that_are_wrong(old: str, new: str, message: str, tmp_path) -> None:
    path = tmp_path / "p.pattern"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(IgniterError, match=message):
        load_patterns(str(path))


@pytest.mark.parametrize(
    ("name", "count"),
    [("mha", 32), ("gelu", 6), ("gelu-tanh", 6), ("layer-norm", 2), ("skip-layer-norm", 6), ("embed-layer-norm", 6)],
)
def test_shipped_patterns_have_all_their_forms(name: str, count: int) -> None:
    assert len(load_patterns(name)) == count
