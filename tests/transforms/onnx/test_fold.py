"""Constant folding: the bits are ORT's, and what must not be folded is not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from igniter.analysis.onnx.stored_weights import Transposed, turned
from igniter.analysis.onnx.subnormal_weights import subnormal_count
from igniter.context import IgniterContext
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.weights import Weight
from igniter.frontend import import_model
from igniter.transforms.onnx import fold_constants
from igniter.transforms.onnx.fold_constants import FoldConstants
from tests.transforms.onnx.onnx_cases import check, counts, floats, parse, run, run_passes

FOLD = ["infer-shapes", "fold-constants"]


def with_weights(model: onnx.ModelProto, **weights: np.ndarray) -> onnx.ModelProto:
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


@pytest.mark.parametrize("op", ["Exp", "Erf", "Tanh", "Sqrt", "Sigmoid", "Softmax", "LayerNormalization"])
def test_bits_are_those_of_ort(op: str) -> None:
    call = "LayerNormalization(w, s)" if op == "LayerNormalization" else f"{op}(w)"
    body = f"c = {call}\n r = ReduceSum(c)\n y = Add(x, r)"
    graph = f"main (float[a, 64] x) => (float[a, 64] y) <float[33, 64] w, float[64] s> {{ {body} }}"
    model = with_weights(parse(graph), w=np.abs(floats(33, 64)), s=floats(64, seed=1))
    module = check(model, [{"x": floats(2, 64)}], FOLD)
    assert counts(module) == {"Add": 1}


def test_a_whole_graph_of_constants() -> None:
    graph = "main () => (float[4, 3] y) <float[3, 4] w> { t = Transpose(w)\n y = Mul(t, t) }"
    model = with_weights(parse(graph), w=floats(3, 4))
    module = check(model, [{}], FOLD)
    assert not counts(module)
    (result,) = main_graph(module).terminator.operands
    folded = constant_value(result)
    assert folded is not None and folded.tobytes() == run(model, {})[0].tobytes()


def test_types_that_numpy_lacks() -> None:
    graph = (
        "main (float[n] x) => (float[n] y) <float[1] w> { b = Cast<to = 16>(w)\n f = Cast<to = 1>(b)\n y = Add(x, f) }"
    )
    module = check(with_weights(parse(graph), w=np.array([1.2345678], np.float32)), [{"x": floats(3)}], FOLD)
    assert counts(module) == {"Add": 1}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_large_transpose_stays_where_it_is(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is computed at each access, so no copy of the weight stays in memory."""
    monkeypatch.setattr(fold_constants, "LARGE", 32)
    name = {"float32": "float", "float16": "float16", "float64": "double"}[dtype]
    turned = "t = Transpose<perm = [2, 0, 1]>(w)"
    graph = f"main ({name}[a, 1, 1] x) => ({name}[a, 3, 4] y, {name}[1, 1, 1] z) <{name}[3, 4, 2] w> {{"
    graph += f"{turned}\n y = Add(x, t)\n u = Transpose(t)\n z = ReduceMax(u) }}"
    model = with_weights(parse(graph), w=(100 * floats(3, 4, 2)).astype(dtype))
    module = check(model, [{"x": np.ones((2, 1, 1), dtype)}], FOLD)
    assert counts(module) == {"Add": 1}
    derived = [op for op in module.walk() if isinstance(op, OnnxOp) and op.op_type == "Constant"]
    weights = [weight for op in derived if (weight := constant_weight(op.results[0])) is not None]
    assert [w.shape for w in weights if isinstance(w.derivation, Transposed)] == [(2, 3, 4)]


def test_subnormal_elements_are_counted_through_a_transpose() -> None:
    array = np.array([[1e-40, 1.0, 0.0], [2e-39, -1e-42, 3.0]], np.float32)
    assert subnormal_count(turned(Weight.of(array), (1, 0))) == subnormal_count(Weight.of(array)) == 3


def test_strings_fold() -> None:
    model = parse('main () => (int64[1] y) { s = Constant<value_strings = ["a"]>()\n y = Shape(s) }')
    assert not counts(check(model, [{}], FOLD))


def test_what_grows_stays() -> None:
    graph = """main (float[a, 512, 512] x) => (float[a, 512, 512] y, float[512, 512] z) <float[1, 512] w> {
        s = Constant<value = int64[2] {512, 512}>()
        e = Expand(w, s)
        y = Add(x, e)
        z = ConstantOfShape(s)
    }"""
    module = run_passes(with_weights(parse(graph), w=floats(1, 512)), FOLD)
    assert counts(module) == {"Expand": 1, "Add": 1, "ConstantOfShape": 1}


def test_random_nodes_stay() -> None:
    graph = "main () => (float[2] y) <float[2] w> { r = RandomNormalLike(w)\n y = Add(r, w) }"
    assert counts(run_passes(with_weights(parse(graph), w=floats(2)), FOLD)) == {"RandomNormalLike": 1, "Add": 1}


def test_max_bytes() -> None:
    graph = "main (float[16, 8] x) => (float[16, 8] y) <float[8, 8] w> { t = Concat<axis = 0>(w, w)\n y = Add(x, t) }"
    module = run_passes(with_weights(parse(graph), w=floats(8, 8)), ["infer-shapes"])
    FoldConstants(max_bytes=511).apply(IgniterContext(), module)
    assert counts(module) == {"Concat": 1, "Add": 1}
    FoldConstants(max_bytes=512).apply(IgniterContext(), module)
    assert counts(module) == {"Add": 1}


def test_one_node_that_does_not_run_keeps_only_itself() -> None:
    # The Reshape has no valid result; the Add beside it folds.
    graph = """main (float[4] x) => (float[a] y, float[4] z) <float[4] w, int64[1] five> {
        y = Reshape(w, five)
        c = Add(w, w)
        z = Mul(x, c)
    }"""
    model = with_weights(parse(graph), w=floats(4), five=np.array([5], np.int64))
    module = import_model(model)
    FoldConstants().apply(IgniterContext(), module)
    assert counts(module)["Mul"] == 1 and counts(module)["Reshape"] == 1


def test_inside_branches() -> None:
    graph = """main (bool c, float[2] x) => (float[2] y) <float[2] w> {
        y = If (c) <
            then_branch = t () => (float[2] a) { e = Exp(w)\n a = Add(x, e) },
            else_branch = f () => (float[2] b) { b = Identity(x) }
        >
    }"""
    model = with_weights(parse(graph), w=floats(2))
    feeds = [{"c": np.array(v), "x": floats(2, seed=3)} for v in (True, False)]
    module = check(model, feeds, FOLD)
    assert not any(op.name == "onnx.Exp" for op in module.walk())


BUCKETS = """
  away = Sub(rows, columns)
  size = Abs(away)
  one = Constant<value = float {1.0}>()
  wide = Cast<to = 1>(size)
  more = Add(wide, one)
  far = Log(more)
  steps = Cast<to = 7>(far)
  least = Min(size, steps)
  p = Add(x, least)
"""
POSITIONS = "<int64[1, 160] rows, int64[160, 1] columns>"


def buckets(body: str, result: str = "p") -> onnx.ModelProto:
    n = np.arange(160, dtype=np.int64)
    graph = f"main (int64[160, 160] x) => (int64[160, 160] {result}) {POSITIONS} {{ {body} }}"
    return with_weights(parse(graph), rows=n[None], columns=n[:, None])


X = np.ones((160, 160), np.int64)


def test_nodes_of_much_growth_are_folded_with_a_costly_reader() -> None:
    """The buckets of T5's positions: a logarithm of the differences of rows and columns."""
    assert counts(check(buckets(BUCKETS), [{"x": X}], FOLD)) == {"Add": 1}


def test_nodes_of_much_growth_stay_without_a_costly_reader() -> None:
    body = "away = Sub(rows, columns)\n size = Abs(away)\n p = Add(x, size)"
    assert counts(check(buckets(body), [{"x": X}], FOLD)) == {"Sub": 1, "Abs": 1, "Add": 1}


def test_a_result_of_more_than_four_megabytes_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_constants, "GROWN", 100_000)
    assert counts(check(buckets(BUCKETS), [{"x": X}], FOLD))["Log"] == 1


def test_a_long_chain_waits_without_recursion() -> None:
    chain = "\n".join(f"v{k + 1} = Neg(v{k})" for k in range(1200))
    end = "w = Cast<to = 1>(v1200)\n e = Exp(w)\n i = Cast<to = 7>(e)\n p = Add(x, i)"
    module = run_passes(buckets(f"v0 = Sub(rows, columns)\n {chain}\n {end}"), FOLD)
    assert counts(module) == {"Add": 1}
