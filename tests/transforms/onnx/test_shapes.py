"""Shape inference: what it says of every value is what a run shows."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests
from xdsl.dialects.builtin import TensorType, UnrankedTensorType

from igniter.analysis.onnx.dim_equalities import DimEqualities
from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym.broadcasting import broadcast_pair, must_agree, never_one
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.frontend import export_model, import_model
from igniter.transforms.onnx.infer_shapes import apply_facts
from tests.transforms.onnx.onnx_cases import floats, parse, run, run_passes


def bind(dims: tuple[Expr, ...], shape: tuple[int, ...], env: dict[str, int]) -> None:
    """Checks a shape against symbolic dims; a symbol that is met for the first time is bound."""
    assert len(dims) == len(shape)
    for dim, size in zip(dims, shape, strict=True):
        if dim.symbol is not None:
            assert env.setdefault(dim.symbol, size) == size, (dim, size, env)
        else:
            assert dim.evaluate(env) == size, (dim, size, env)


def assert_holds(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    """Runs the model with every value as an output and compares shapes with the inferred types."""
    module = run_passes(model, ["infer-shapes"])
    graph = main_graph(module)
    env: dict[str, int] = {}
    for argument, name in zip(graph.body.args, graph.input_names, strict=True):
        dims = known_dims_of(argument.type)
        assert dims is not None
        bind(dims, feeds[name].shape, env)
    types = {
        name: result.type
        for op in graph.body.ops
        if isinstance(op, OnnxOp) and op.op_type != "Constant"
        for name, result in zip(op.output_names, op.results, strict=False)
        if name
    }
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    del watched.graph.output[:], watched.graph.value_info[:]
    watched.graph.output.extend(onnx.ValueInfoProto(name=n) for n in types)
    for (name, type_), value in zip(types.items(), run(watched, feeds), strict=True):
        dims = known_dims_of(type_)
        assert dims is not None, f"{name} has no rank"
        bind(dims, value.shape, env)


ATTENTION = """
main (float[batch, seq, 8] x, float[batch, seq] mask) => (float[a, b, c] y) <float[8, 24] w, float[1, 64, 8] table> {
    zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    i0 = Constant<value = int64 {0}>()
    i1 = Constant<value = int64 {1}>()
    minus = Constant<value = int64[1] {-1}>()
    two = Constant<value = int64[1] {2}>()
    four = Constant<value = int64[1] {4}>()
    s = Shape(x)
    seq1 = Gather(s, one)
    place = Slice(table, zero, seq1, one)
    h = Add(x, place)
    qkv = MatMul(h, w)
    b = Gather(s, zero)
    heads = Concat<axis = 0>(b, seq1, two, four)
    q0, k0, v0 = Split<axis = 2, num_outputs = 3>(qkv)
    q1 = Reshape(q0, heads)
    k1 = Reshape(k0, heads)
    v1 = Reshape(v0, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k = Transpose<perm = [0, 2, 3, 1]>(k1)
    v = Transpose<perm = [0, 2, 1, 3]>(v1)
    scores = MatMul(q, k)
    axes = Constant<value = int64[2] {1, 2}>()
    m = Unsqueeze(mask, axes)
    masked = Add(scores, m)
    p = Softmax<axis = -1>(masked)
    o = MatMul(p, v)
    t = Transpose<perm = [0, 2, 1, 3]>(o)
    hidden = Mul(two, four)
    back = Concat<axis = 0>(b, seq1, hidden)
    y = Reshape(t, back)
}
"""


@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (2, 7), (3, 64), (0, 5)])
def test_an_attention_layer(batch: int, seq: int) -> None:
    model = parse(ATTENTION)
    model.graph.initializer.extend(
        [onnx.numpy_helper.from_array(floats(8, 24), "w"), onnx.numpy_helper.from_array(floats(1, 64, 8), "table")]
    )
    assert_holds(model, {"x": floats(batch, seq, 8), "mask": floats(batch, seq)})
    module = run_passes(model, ["infer-shapes"])
    (result,) = main_graph(module).terminator.operands
    assert known_dims_of(result.type) == (Expr.of("batch"), Expr.of("seq"), Expr.of(8))


ARITHMETIC = """
main (float[n, m, 6] x) => (float[a] y, float[b] z, int64[c] r, float[d, e] g) {
    s = Shape(x)
    i0 = Constant<value = int64 {0}>()
    i1 = Constant<value = int64 {1}>()
    two = Constant<value = int64 {2}>()
    minus = Constant<value = int64[1] {-1}>()
    one = Constant<value = int64[1] {1}>()
    zero = Constant<value = int64[1] {0}>()
    n = Gather(s, i0)
    m = Gather(s, i1)
    nm = Mul(n, m)
    half = Div(nm, two)
    rest = Mod(nm, two)
    both = Add(half, rest)
    r = Range(i0, both, i1)
    flat = Reshape(x, minus)
    size = Size(x)
    size1 = Unsqueeze(size, zero)
    y = Slice(flat, zero, size1, zero, one)
    k = Max(n, two)
    k1 = Unsqueeze(k, zero)
    z = ConstantOfShape(k1)
    less = Less(i0, two)
    c = Where(less, n, m)
    c1 = Unsqueeze(c, zero)
    m1 = Unsqueeze(m, zero)
    t = Concat<axis = 0>(c1, m1)
    e = Expand(one, t)
    g = Cast<to = 1>(e)
}
"""


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (5, 4), (3, 0)])
def test_shape_arithmetic(n: int, m: int) -> None:
    assert_holds(parse(ARITHMETIC), {"x": floats(n, m, 6)})


def test_data_dependent_dims_are_fresh_symbols() -> None:
    model = parse("main (float[n] x) => (int64[a, b] y) { i = NonZero(x)\n t = Transpose(i)\n y = Identity(t) }")
    assert_holds(model, {"x": np.array([0, 1, 0, 2], np.float32)})
    (result,) = main_graph(run_passes(model, ["infer-shapes"])).terminator.operands
    dims = known_dims_of(result.type)
    assert dims is not None and dims[0].symbol not in (None, "n") and dims[1] == 1


def test_running_it_again_changes_nothing() -> None:
    model = parse(ARITHMETIC)
    once, twice = run_passes(model, ["infer-shapes"]), run_passes(model, ["infer-shapes", "infer-shapes"])
    assert str(once) == str(twice)


@pytest.mark.slow
def test_every_node_case_of_onnx() -> None:
    """No rule breaks off on a valid model, and the ranks and static dims are those of the expected outputs."""
    for case in load_model_tests(kind="node"):
        assert case.model is not None
        module = import_model(case.model)
        facts = infer_shapes(module)
        assert not facts.failures, (case.name, facts.failures[0][1])
        apply_facts(module, facts)
        module.verify()
        # An output stays a tensor, a sequence or an optional.
        kinds = [[v.type.WhichOneof("value") for v in m.graph.output] for m in (case.model, export_model(module))]
        assert kinds[0] == kinds[1], case.name
        outputs = main_graph(module).terminator.operands
        for output, expected in zip(outputs, case.data_sets[0][1], strict=True):
            if isinstance(output.type, UnrankedTensorType) or not isinstance(expected, np.ndarray):
                continue
            if isinstance(output.type, TensorType):
                dims = known_dims_of(output.type)
                assert dims is not None and len(dims) == expected.ndim, case.name
                for dim, size in zip(dims, expected.shape, strict=True):
                    assert dim.constant in (None, size), (case.name, str(output.type), expected.shape)


def test_broadcasting_of_symbols() -> None:
    s, t, one = Expr.of("s"), Expr.of("t"), Expr.of(1)
    capped = Expr.parse("min(s, 512)")
    assert broadcast_pair(s, t) is None
    assert broadcast_pair(s, one) == s and broadcast_pair(one, t) == t
    assert broadcast_pair(s * 2, t) == s * 2 and never_one(s * 2) and not never_one(s * 2 + 1)
    assert must_agree(s, capped) and not must_agree(s, Expr.parse("min(s, 1)"))
    assert broadcast_pair(s + 2, t) == s + 2


def test_equalities() -> None:
    known = DimEqualities(["batch", "seq"])
    known.equate(Expr.of("u"), Expr.of("seq"))
    known.equate(Expr.of("v") * 64, Expr.of(768))
    known.equate(Expr.parse("max(0, seq - 1) + 1"), Expr.of("seq"))
    assert known.resolve(Expr.of("u")) == Expr.of("seq")
    assert known.resolve(Expr.of("v")) == 12
    assert known.resolve(Expr.parse("max(0, seq - 1)")) == Expr.parse("seq - 1")
    assert [str(r) for r in known.assumptions] == ["max(0, seq - 1) == seq - 1"]
    # In a graph that may not run, nothing outside is bound.
    known.enter()
    known.equate(Expr.of("batch"), Expr.of(3))
    known.leave()
    assert known.resolve(Expr.of("batch")) == Expr.of("batch")
