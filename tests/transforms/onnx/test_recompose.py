"""Recomposition: what exporters write is found in its spellings, refused where it is something else, and computes the
same up to a few roundings."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from igniter.context import IgniterContext
from igniter.dialects.onnx.base import OnnxOp, imported_opset
from igniter.dialects.onnx.structure import main_graph
from igniter.frontend import export_model
from igniter.frontend.opsets import means_the_same, raise_opset
from igniter.transforms.onnx.recompose import Recompose
from tests.transforms.onnx.onnx_cases import check, counts, floats, parse, run_passes

WIDE = np.concatenate([np.linspace(-30, 30, 997), [0.0, -0.0, 1e-30, -1e-30, 100.0, -100.0, np.inf]]).astype(np.float32)

CONSTANTS = """
    half = Constant<value = float {0.5}>()
    one = Constant<value = float {1.0}>()
    two = Constant<value = float {2.0}>()
    three = Constant<value = float {3.0}>()
    six = Constant<value = float {6.0}>()
    zero = Constant<value = float {0.0}>()
    root = Constant<value = float {1.4142135381698608}>()
    inverse = Constant<value = float {0.70710676908493}>()
    c = Constant<value = float {0.7978845834732056}>()
    k = Constant<value = float {0.044714998453855515}>()
    ck = Constant<value = float {0.03567740693688393}>()
"""

ERF_GELU = [
    "a = Div(x, root) e = Erf(a) s = Add(e, one) h = Mul(x, half) y = Mul(h, s)",
    "a = Mul(x, inverse) e = Erf(a) s = Add(one, e) p = Mul(s, x) y = Mul(half, p)",
    "a = Div(x, root) e = Erf(a) s = Add(e, one) h = Mul(s, half) y = Mul(x, h)",
    "a = Div(x, root) e = Erf(a) s = Add(e, one) p = Mul(x, s) y = Div(p, two)",
    "a = Div(x, root) e = Erf(a) h = Mul(x, half) he = Mul(h, e) y = Add(h, he)",
]
TANH_GELU = [
    (
        "x3 = Pow(x, three) kx = Mul(k, x3) i = Add(x, kx) a = Mul(i, c) t = Tanh(a) "
        "s = Add(t, one) h = Mul(x, half) y = Mul(h, s)"
    ),
    (
        "xx = Mul(x, x) x3 = Mul(xx, x) kx = Mul(x3, k) i = Add(kx, x) a = Mul(c, i) t = Tanh(a) "
        "s = Add(one, t) h = Mul(half, s) y = Mul(h, x)"
    ),
    (
        "xx = Mul(x, x) kx = Mul(xx, k) i = Add(one, kx) cx = Mul(c, x) a = Mul(cx, i) t = Tanh(a) "
        "s = Add(t, one) p = Mul(x, s) y = Mul(p, half)"
    ),
    (
        "xx = Mul(x, x) kx = Mul(xx, ck) i = Add(kx, c) a = Mul(x, i) t = Tanh(a) s = Add(t, one) "
        "p = Mul(x, s) y = Mul(p, half)"
    ),
]
OTHERS = [
    ("s = Sigmoid(x) y = Mul(x, s)", "QuickGelu", "Swish"),
    ("b = Mul(x, two) s = Sigmoid(b) y = Mul(s, x)", "QuickGelu", "Swish"),
    ("p = Add(x, three) q = Clip(p, zero, six) m = Mul(x, q) y = Div(m, six)", "HardSwish", "HardSwish"),
    ("p = Add(x, three) q = Clip(p, zero, six) d = Div(q, six) y = Mul(d, x)", "HardSwish", "HardSwish"),
    ("h = HardSigmoid<alpha = 0.1666666716337204>(x) y = Mul(h, x)", "HardSwish", "HardSwish"),
    ("p = Softplus(x) t = Tanh(p) y = Mul(x, t)", "Mish", "Mish"),
]
REFUSED = [
    # a constant that is another, an x that is another, a value that is used elsewhere, a clip that ends elsewhere
    "a = Div(x, two) e = Erf(a) s = Add(e, one) h = Mul(x, half) y = Mul(h, s)",
    "w = Add(x, one) a = Div(w, root) e = Erf(a) s = Add(e, one) h = Mul(x, half) y = Mul(h, s)",
    "a = Div(x, root) e = Erf(a) s = Sub(e, one) h = Mul(x, half) y = Mul(h, s)",
    (
        "x3 = Pow(x, two) kx = Mul(k, x3) i = Add(x, kx) a = Mul(i, c) t = Tanh(a) s = Add(t, one) "
        "h = Mul(x, half) y = Mul(h, s)"
    ),
    "b = Add(x, one) s = Sigmoid(b) y = Mul(x, s)",
    "p = Add(x, three) q = Clip(p, zero, three) m = Mul(x, q) y = Div(m, six)",
    "s = Sigmoid(x) t = Mul(x, s) y = Add(t, s)",
]


def graph(body: str, kind: str = "float") -> str:
    # Each statement begins with a name and ends before the next one.
    lines = body.replace(") ", ")\n")
    return f"main ({kind}[n] x) => ({kind}[n] y) {{ {CONSTANTS}\n{lines} }}"


@pytest.mark.parametrize("body", ERF_GELU)
def test_gelu(body: str) -> None:
    assert counts(check(parse(graph(body), 20), [{"x": WIDE[:-1]}], exact=False)) == {"Gelu": 1}
    module = check(parse(graph(body), 17), [{"x": WIDE[:-1]}], exact=False)
    (op,) = (o for o in main_graph(module).body.ops if isinstance(o, OnnxOp) and o.op_type != "Constant")
    assert op.qualified_name == "com.microsoft.Gelu" and imported_opset(op, "com.microsoft") == 1


@pytest.mark.parametrize("body", TANH_GELU)
@pytest.mark.parametrize(("opset", "name"), [(17, "FastGelu"), (20, "Gelu")])
def test_gelu_by_tanh(body: str, opset: int, name: str) -> None:
    module = check(parse(graph(body), opset), [{"x": WIDE[:-1]}], exact=False)
    assert counts(module) == {name: 1}


def test_exact_coefficients_of_f64_are_not_rounded() -> None:
    """Gelu by tanh, HardSwish and the alpha of Swish have numbers of f32; f64 that is written out has better ones."""
    gelu = """k = Constant<value = double {0.044715}>() c = Constant<value = double {0.7978845608028654}>()
        h = Constant<value = double {0.5}>() one = Constant<value = double {1.0}>() p = Constant<value = double {3.0}>()
        q = Pow(x, p) r = Mul(q, k) s = Add(x, r) i = Mul(s, c) t = Tanh(i) u = Add(t, one) v = Mul(u, h)
        y = Mul(x, v)"""
    swish = "a = Constant<value = double {1.702}>() s = Mul(x, a) t = Sigmoid(s) y = Mul(x, t)"
    clip = """three = Constant<value = double {3.0}>() z = Constant<value = double {0.0}>()
        six = Constant<value = double {6.0}>() s = Add(x, three) t = Clip(s, z, six) v = Mul(x, t) y = Div(v, six)"""
    for body in (gelu, swish, clip):
        lines = body.replace(") ", ")\n")
        module = run_passes(parse(f"main (double[n] x) => (double[n] y) {{ {lines} }}", 24))
        assert not counts(module).keys() & {"Gelu", "Swish", "HardSwish"}, body


@pytest.mark.parametrize(("body", "before", "after"), OTHERS)
def test_other_activations(body: str, before: str, after: str) -> None:
    finite = WIDE[:-1]
    assert counts(check(parse(graph(body), 18), [{"x": finite}], exact=False)) == {before: 1}
    assert counts(run_passes(parse(graph(body), 24))) == {after: 1}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_activation(body: str) -> None:
    module = check(parse(graph(body), 20), [{"x": WIDE[:-1]}], exact=False)
    assert not counts(module).keys() & {"Gelu", "FastGelu", "QuickGelu", "Swish", "HardSwish", "Mish"}


def norm(body: str, dims: str = "n, 6, 8", weights: str = "float[8] w, float[8] b") -> str:
    lines = body.replace(") ", ")\n")
    constants = """
    eps = Constant<value = float {0.00001}>()
    one = Constant<value = float {1.0}>()
    two = Constant<value = float {2.0}>()
    half = Constant<value = float {0.5}>()
    minus = Constant<value = float {-0.5}>()
    last = Constant<value = int64[1] {-1}>()
    both = Constant<value = int64[2] {1, -1}>()
    """
    return f"main (float[{dims}] x) => (float[{dims}] y) <{weights}> {{ {constants}\n{lines} }}"


def weighted(text: str, opset: int, *shape: int) -> onnx.ModelProto:
    model = parse(text, opset)
    for name, seed in (("w", 1), ("b", 2)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(floats(*shape, seed=seed), name))
    return model


CENTRE = "m = ReduceMean(x, last) d = Sub(x, m) "
LAYER_NORM = [
    CENTRE
    + "q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) n = Div(d, r) s = Mul(n, w) y = Add(s, b)",
    CENTRE
    + (
        "q = Mul(d, d) v = ReduceMean(q, last) e = Add(eps, v) r = Sqrt(e) i = Reciprocal(r) "
        "n = Mul(i, d) s = Mul(w, n) y = Add(b, s)"
    ),
    CENTRE
    + (
        "q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Div(one, r) "
        "n = Mul(d, i) s = Mul(n, w) y = Add(s, b)"
    ),
    CENTRE
    + (
        "q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) r = Pow(e, half) n = Div(d, r) "
        "s = Mul(n, w) y = Add(s, b)"
    ),
    CENTRE
    + (
        "q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) r = Pow(e, minus) n = Mul(d, r) "
        "s = Mul(n, w) y = Add(s, b)"
    ),
]


@pytest.mark.parametrize("body", LAYER_NORM)
def test_layer_norm(body: str) -> None:
    runs = [{"x": floats(n, 6, 8, seed=n) * 3} for n in (1, 4)]
    module = check(weighted(norm(body), 18, 8), runs, exact=False)
    assert counts(module) == {"LayerNormalization": 1}


def test_layer_norm_over_two_axes_without_bias() -> None:
    body = (
        "m = ReduceMean(x, both) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, both) "
        "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, w)"
    )
    model = weighted(norm(body, weights="float[6, 8] w, float[6, 8] b"), 18, 6, 8)
    module = check(model, [{"x": floats(3, 6, 8)}], exact=False)
    assert counts(module) == {"LayerNormalization": 1}


@pytest.mark.parametrize(
    "body",
    [
        # mean(x*x) - mean(x)^2 cancels
        (
            "m = ReduceMean(x, last) d = Sub(x, m) q = Mul(x, x) a = ReduceMean(q, last) "
            "mm = Mul(m, m) v = Sub(a, mm) e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, w)"
        ),
        # the mean is over other axes than the variance
        (
            "m = ReduceMean(x, both) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) "
            "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) y = Mul(n, w)"
        ),
    ],
)
def test_what_is_no_layer_norm(body: str) -> None:
    module = check(weighted(norm(body), 18, 8), [{"x": floats(3, 6, 8)}], exact=False)
    assert "LayerNormalization" not in counts(module)


def test_rms_norm_raises_the_opset() -> None:
    body = (
        "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) "
        "n = Mul(x, i) y = Mul(n, w)"
    )
    model = weighted(norm(body), 18, 8)
    module = check(model, [{"x": floats(3, 6, 8)}], exact=False)
    assert counts(module) == {"RMSNormalization": 1} and imported_opset(main_graph(module), "") == 23
    assert export_model(module).ir_version >= 11
    kept = run_passes(model, ["infer-shapes", "canonicalize-onnx"])
    Recompose(raise_opset=False).apply(IgniterContext(), kept)
    assert "RMSNormalization" not in counts(kept) and imported_opset(main_graph(kept), "") == 18


def test_an_opset_is_raised_only_where_every_node_means_the_same() -> None:
    softmax = run_passes(parse("main (float[2, 3] x) => (float[2, 3] y) { y = Softmax(x) }", 11), [])
    reason = raise_opset(softmax, 17)
    assert reason is not None and "Softmax" in reason
    add = run_passes(parse("main (float[2, 3] x) => (float[2, 3] y) { y = Add(x, x) }", 13), [])
    assert raise_opset(add, 23) is None and imported_opset(main_graph(add), "") == 23
    assert means_the_same("Reshape", 13, 23) and means_the_same("Cast", 17, 23)
    # Axes became an operand; the scale of a group norm got another shape.
    assert not means_the_same("ReduceMean", 17, 18) and not means_the_same("GroupNormalization", 18, 21)
    assert not means_the_same("LogSoftmax", 12, 13) and not means_the_same("Upsample", 9, 10)


def test_softmax() -> None:
    text = """main (float[n, 5] x) => (float[n, 5] y) {
        last = Constant<value = int64[1] {-1}>()
        m = ReduceMax(x, last)
        d = Sub(x, m)
        e = Exp(d)
        s = ReduceSum(e, last)
        y = Div(e, s)
    }"""
    x = np.concatenate([floats(3, 5), np.full((1, 5), 200, np.float32), np.full((1, 5), -np.inf, np.float32)])
    assert counts(check(parse(text), [{"x": x}], exact=False)) == {"Softmax": 1}
    unshifted = text.replace("d = Sub(x, m)", "d = Identity(x)")
    assert "Softmax" not in counts(check(parse(unshifted), [{"x": floats(3, 5)}], exact=False))


def test_linear() -> None:
    text = """main (float[n, m, 4] x) => (float[n, m, 3] y) <float[%s] w, float[3] b> {
        flat = Constant<value = int64[2] {-1, 4}>()
        three = Constant<value = int64[1] {3}>()
        a = Reshape(x, flat)
        g = Gemm<transB = %d>(a, w, b)
        s = Shape<end = 2>(x)
        t = Concat<axis = 0>(s, three)
        y = Reshape(g, t)
    }"""
    for transposed, shape in ((0, (4, 3)), (1, (3, 4))):
        model = parse(text % (f"{shape[0]}, {shape[1]}", transposed))
        model.graph.initializer.extend(
            [onnx.numpy_helper.from_array(floats(*shape), "w"), onnx.numpy_helper.from_array(floats(3), "b")]
        )
        runs = [{"x": floats(n, m, 4)} for n, m in ((1, 1), (2, 5), (0, 3))]
        passes = ["infer-shapes", "canonicalize-onnx", "recompose", "fold-constants", "eliminate-dead-nodes"]
        assert counts(check(model, runs, passes, exact=False)) == {"MatMul": 1, "Add": 1}


def test_half_precision_constants() -> None:
    """In float16 the constants of Gelu are what float16 has nearest, and only there."""
    text = graph(ERF_GELU[0], "float16")
    model = parse(text, 20)
    for node in model.graph.node:
        if node.op_type == "Constant":
            value = onnx.numpy_helper.to_array(node.attribute[0].t).astype(np.float16)
            node.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(value))
    assert counts(run_passes(model)) == {"Gelu": 1}
