"""Findings of the fuzzer in small graphs: at every feed Igniter computes what ONNX Runtime does, or both refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from tests.fuzz.wild.pool import Array
from tests.fuzz.wild.run import Wild, run_wild


def outcome(text: str, *feeds: dict[str, Array], opset: int = 17, fusion: str = "every") -> tuple[str, int, int]:
    """What becomes of a graph: its status, how many feeds both refuse, and how many nodes are left."""
    domains = f'["" : {opset}, "com.microsoft" : 1]'
    model = parser.parse_model(f"<ir_version: 10, opset_import: {domains}> {text}")
    for k, node in enumerate(model.graph.node):
        node.name = f"node{k}"
    found = run_wild(Wild(0, model, model, feeds, fusion, "native", shipped=False))
    return f"{found.status} {found.message}".strip(), found.refusals, found.left


def ones(*shape: int, dtype: Any = np.float32) -> Array:
    return (np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) / 4).astype(dtype)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


LOOP = """
g (float[n, 2] x, int64 steps) => (float[] z) <bool go = {1}> {
    s, y = Loop (steps, go, x)
    <body: graph = b (int64 i, bool c, float[p, q] a) => (bool d, float[p, q] u, float[p, q] v) {
        d = Identity (c)
        u = Tanh (a)
        v = Add (a, x)
    }>
    e = Exp (y)
    m = ReduceSum <keepdims = 0> (e)
    z = Mul (x, m)
}
"""


def test_a_loop_of_no_steps_stacks_dims_of_0() -> None:
    """ONNX Runtime gives [0, 0, 2] where n is 3: what is computed of it takes that."""
    feeds = [{"x": ones(3, 2), "steps": np.array(n, np.int64)} for n in (2, 0, 1)]
    assert outcome(LOOP, *feeds)[:2] == ("ok", 0)
    never = LOOP.replace(", int64 steps)", ")").replace("{1}>", "{1}, int64 steps = {0}>")
    assert outcome(never, {"x": ones(3, 2)})[:2] == ("ok", 0)


@pytest.mark.parametrize("fusion", ["default", "every"])
@pytest.mark.parametrize(
    ("op", "declared", "wanted"),
    [
        ("Reshape (x, s)", "3, 4", [(3, 4), (4, 3), (-1, 1)]),
        ("Expand (x, s)", "3, 4", [(3, 4), (1, 1)]),
        ("Expand (x, s)", "n, 4", [(3, 4), (1, 4)]),
        ("Tile (x, s)", "3, 4", [(1, 1), (2, 3)]),
        ("Slice (x, zero, s)", "3, 4", [(3, 4), (2, 1)]),
    ],
)
def test_declared_dims_are_not_believed(op: str, declared: str, wanted: list[tuple[int, ...]], fusion: str) -> None:
    """What a graph input decides is what the run says, whatever the model says of the result and of what reads it."""
    text = f"""
        g (float[n, 4] x, int64[2] s) => (float[{declared}] z) <float[{declared}] y, float[{declared}] e> {{
            zero = Constant <value_ints = [0, 0]> ()
            y = {op}
            e = Exp (y)
            t = Shape (y)
            z = Reshape (e, t)
        }}
    """
    feeds = [{"x": ones(3, 4), "s": ints(*w)} for w in wanted]
    assert outcome(text, *feeds, fusion=fusion)[:2] == ("ok", 0)


def test_declared_names_are_not_believed() -> None:
    """Two results that the model calls alike are as long as the run says."""
    text = """
        g (float[n] x, int64[1] s, int64[1] t) => (float[m] p, float[m] q) <float[m] a, float[m] b> {
            a = Tile (x, s)
            b = Tile (x, t)
            p = Exp (a)
            q = Relu (b)
        }
    """
    feeds = [{"x": ones(3), "s": ints(1), "t": ints(1)}, {"x": ones(3), "s": ints(1), "t": ints(2)}]
    assert outcome(text, *feeds)[:2] == ("ok", 0)


@pytest.mark.parametrize(
    ("text", "feeds", "refused"),
    [
        # What is asked for is 0 where the run has an empty input: of a Reshape that is the dim of the input.
        (
            "g (float[6, 4, n] x) => (float[] z) "
            "{ e = Exp (x) v = Transpose <perm = [2, 0, 1]> (e) s = Shape (v) z = Reshape (e, s) }",
            [{"x": ones(6, 4, 5)}, {"x": ones(6, 4, 0)}],
            1,
        ),
        # A 0 behind the input's last dim is none of a Reshape's.
        (
            "g (float[n] x) => (float[] z) { e = Exp (x) v = Flatten <axis = 0> (e) s = Shape (v) z = Reshape (e, s) }",
            [{"x": ones(3)}, {"x": ones(0)}],
            1,
        ),
        # 3 does not divide what the second Reshape does not ask about.
        (
            "g (float[n, 2] x) => (float[] z) "
            "<int64[2] s = {3, -1}, int64[1] t = {-1}> { e = Exp (x) v = Reshape (e, s) z = Reshape (v, t) }",
            [{"x": ones(3, 2)}, {"x": ones(2, 2)}, {"x": ones(0, 2)}],
            1,
        ),
        # Expand asks for dims that the operand does not have.
        (
            "g (float[2] x, float[6, n] w) => (float[] z) { e = Exp (x) s = Shape (w) z = Expand (e, s) }",
            [{"x": ones(2), "w": ones(6, n)} for n in (2, 1, 3, 0)],
            2,
        ),
    ],
)
def test_what_a_node_checks_is_checked_without_it(text: str, feeds: list[dict[str, Array]], refused: int) -> None:
    assert outcome(text, *feeds) == ("ok", refused, 0)


@pytest.mark.parametrize(
    ("text", "feeds", "left"),
    [
        # The Concat, of the result of the Reshape and of x, takes an x of 4 columns, or of none.
        (
            "g (float[8, n] x) => (float[] z) "
            "<int64[2] s = {8, 4}> { v = Reshape (x, s) z = Concat <axis = 0> (v, x, x) }",
            [{"x": ones(8, 4)}, {"x": ones(8, 3)}],
            2,
        ),
        (
            "g (float[6, 4, n] x) => (float[] z) "
            "{ v = Transpose <perm = [2, 0, 1]> (x) s = Shape (v) z = Reshape (x, s) }",
            [{"x": ones(6, 4, 5)}, {"x": ones(6, 4, 0)}],
            1,
        ),
    ],
)
def test_what_a_node_checks_is_checked_without_any_kernel(text: str, feeds: list[dict[str, Array]], left: int) -> None:
    assert outcome(text, *feeds, fusion="default") == ("ok", 1, left)


@pytest.mark.parametrize(("dtype", "refused"), [(np.float32, 1), (np.float16, 0), (np.float64, 0)])
def test_fast_gelu_adds_its_bias_as_its_function_does_but_for_f32(dtype: Any, refused: int) -> None:
    text = "g (T[2, n] x, T[1] b) => (T[] y) { y = com.microsoft.FastGelu (x, b) }"
    name = {"float32": "float", "float64": "double"}.get(np.dtype(dtype).name, "float16")
    feeds = [{"x": ones(2, n, dtype=dtype), "b": ones(1, dtype=dtype)} for n in (1, 3)]
    assert outcome(text.replace("T[", f"{name}["), *feeds) == ("ok", refused, 0)


@pytest.mark.parametrize("fusion", ["default", "every"])
def test_a_squeeze_without_axes_has_the_rank_that_a_run_gives(fusion: str) -> None:
    """The model says ranks that hold where k is 1: ONNX Runtime only warns of others."""
    text = """
    g (float[2, 1, k] x) => (float norm, float[2] y, float[p, q] z) {
        s = Squeeze (x)
        norm = ReduceL2 <keepdims = 1> (s)
        e = Exp (s)
        y = Mul (e, norm)
        t = Tanh (y)
        z = Abs (t)
    }
    """
    assert outcome(text, *({"x": ones(2, 1, k)} for k in (1, 3, 0, 20)), fusion=fusion)[:2] == ("ok", 0)


@pytest.mark.parametrize("fusion", ["default", "every"])
def test_a_concat_takes_an_input_without_elements(fusion: str) -> None:
    """Its other dims may differ. What ONNX Runtime then leaves unwritten is not an output here."""
    text = """
    g (float[8, m] x) => (float[] y, int64[] dims) <float[1, 1] one = {0.5}> {
        c = Concat <axis = 0> (x, one, x)
        dims = Shape (c)
        e = Exp (x)
        y = ReduceSum <keepdims = 0> (e)
    }
    """
    assert outcome(text, *({"x": ones(8, m)} for m in (1, 0, 5)), fusion=fusion)[:2] == ("ok", 1)
