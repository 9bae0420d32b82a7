"""Canonicalisation: exact, to the bit, on inputs that tell -0.0 from 0.0, with NaN, infinities and empty dims."""

from __future__ import annotations

import numpy as np
import pytest

import igniter
from igniter.context import IgniterContext
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.types import ELEMENT_TYPES, element_type
from igniter.dialects.sym.expr import Expr
from igniter.frontend import import_model
from igniter.transforms.onnx.canonicalization.conversions import is_lossless
from igniter.transforms.onnx.canonicalization.views import constant_target
from igniter.transforms.onnx.canonicalize_onnx import CanonicalizeOnnx
from igniter.transforms.onnx.onnx_rewriting import run_rules
from tests.transforms.onnx.onnx_cases import check, counts, floats, parse, run_passes
from tests.work import calls_of

CANONICAL = ["infer-shapes", "canonicalize-onnx", "fold-constants", "eliminate-common-nodes", "canonicalize-onnx"]
SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-42], np.float32)

SLICE = (
    "z = Constant<value = int64[1] {0}>() o = Constant<value = int64[1] {1}>() "
    "m = Constant<value = int64[1] {-1}>() e = Constant<value = int64[1] {-9999}>()"
)

# (the graph's body, what is left of it)
IDENTITIES = [
    ("o = Constant<value = float {1.0}>() y = Mul(x, o)", {}),
    ("o = Constant<value = float {1.0}>() y = Div(x, o)", {}),
    ("o = Constant<value = float {1.0}>() y = Pow(x, o)", {}),
    ("o = Constant<value = float {2.0}>() y = Pow(x, o)", {"Mul": 1}),
    ("o = Constant<value = float {3.0}>() y = Pow(x, o)", {"Pow": 1}),
    ("o = Constant<value = float {0.0}>() y = Sub(x, o)", {}),
    ("o = Constant<value = float {0.0}>() y = Add(x, o)", {"Add": 1}),
    ("o = Constant<value = float {-0.0}>() y = Add(o, x)", {}),
    ("o = Constant<value = float {-0.0}>() y = Sub(x, o)", {"Sub": 1}),
    ("o = Constant<value = float {0.0}>() y = Mul(x, o)", {"Mul": 1}),
    ("a = Neg(x) y = Neg(a)", {}),
    ("a = Relu(x) y = Relu(a)", {"Relu": 1}),
    ("a = Abs(x) y = Abs(a)", {"Abs": 1}),
    ("y = Max(x)", {}),
    ("y = Identity(x)", {}),
    ("y = Cast<to = 1>(x)", {}),
    ("a = Cast<to = 11>(x) y = Cast<to = 1>(a)", {}),
    ("a = Cast<to = 10>(x) y = Cast<to = 1>(a)", {"Cast": 2}),
    ("a = Dropout(x) y = Identity(a)", {}),
    ("a = Constant<value = int64[1] {0}>() u = Unsqueeze(x, a) y = Squeeze(u, a)", {}),
    ("y = Transpose<perm = [0]>(x)", {}),
    ("y = Clip(x)", {"Clip": 1}),
    ("a = Constant<value = int64[1] {1}>() y = Tile(x, a)", {}),
    ("a = Constant<value = int64[2] {0, 0}>() y = Pad(x, a)", {}),
    ("y = Concat<axis = 0>(x)", {}),
    ("a = Shape(x) y = Expand(x, a)", {}),
    ("a = Shape(x) y = Reshape(x, a)", {}),
    (f"{SLICE} a = Shape(x) y = Slice(x, z, a, z, o)", {}),
    (f"{SLICE} y = Slice(x, m, e, z, m)", {"Slice": 1}),
]


@pytest.mark.parametrize(("body", "left"), IDENTITIES, ids=[b for b, _ in IDENTITIES])
def test_identities(body: str, left: dict[str, int]) -> None:
    lines = body.replace(") ", ")\n")
    module = check(
        parse(f"main (float[n] x) => (float[n] y) {{ {lines} }}"), [{"x": SPECIAL}, {"x": SPECIAL[:0]}], CANONICAL
    )
    assert counts(module) == left


def test_what_broadcasts_is_no_identity() -> None:
    graph = "main (float[n] x) => (float[3, n] y) <float[3, 1] o = {1.0, 1.0, 1.0}> { y = Mul(x, o) }"
    assert counts(check(parse(graph), [{"x": SPECIAL}], CANONICAL)) == {"Mul": 1}


def test_a_symbol_that_may_be_one_is_no_identity() -> None:
    graph = """main (float[n, 1] x, float[n, m] z) => (float[n, k] y) {
        s = Shape(z)
        y = Expand(x, s)
    }"""
    module = check(
        parse(graph), [{"x": floats(3, 1), "z": floats(3, 1)}, {"x": floats(3, 1), "z": floats(3, 4)}], CANONICAL
    )
    assert counts(module)["Expand"] == 1


def test_expand_before_a_broadcast() -> None:
    graph = """main (float[n, 1] x, float[n, m] z) => (float[n, m] y) {
        s = Shape(z)
        e = Expand(x, s)
        y = Add(e, z)
    }"""
    runs = [{"x": floats(n, 1), "z": floats(n, m, seed=1)} for n, m in ((3, 4), (1, 1), (2, 0))]
    assert counts(check(parse(graph), runs, CANONICAL)) == {"Add": 1}


def test_what_was_known_of_an_operand_goes_with_it() -> None:
    """Inference noted the three values of the Expand; what takes its place has one."""
    module = igniter.parse("""
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1xi64>, %z: tensor<3xi64>) {
    %t = onnx.Constant() {value = #onnx.tensor<1xi64, [3]>} : () -> tensor<1xi64>
    %e = onnx.Expand(%x, %t) : (tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
    %y = onnx.Mod(%e, %z) {igniter.values = {"0" = #sym.dims<15, 15, 15>}}
      : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    onnx.return %y : tensor<3xi64>
  }
}""")
    assert "15" not in str(module.run_passes("canonicalize-onnx,fold-constants"))


def test_where_and_constant_conditions() -> None:
    graph = """main (bool[n] c, float[n] x, float[n] z) => (float[n] a, float[n] b, float[n] d) {
        t = Constant<value = bool {1}>()
        a = Where(t, x, z)
        b = Where(c, x, x)
        d = Where(c, x, z)
    }"""
    feeds = {"c": np.array([True, False]), "x": floats(2), "z": floats(2, seed=1)}
    assert counts(check(parse(graph), [feeds], CANONICAL)) == {"Where": 1}


def test_outputs_keep_their_names() -> None:
    graph = """main (float[n] x) => (float[n] a, float[n] b, float[n] c) {
        r = Relu(x)
        a = Identity(r)
        b = Identity(r)
        c = Identity(x)
    }"""
    module = check(parse(graph), [{"x": SPECIAL}], CANONICAL)
    assert main_graph(module).output_names == ["a", "b", "c"] and counts(module) == {"Relu": 1}


def test_constant_if_and_its_captures() -> None:
    graph = """main (float[n] x) => (float[n] y) {
        t = Constant<value = bool {0}>()
        r = Relu(x)
        u = If (t) <
            then_branch = a () => (float[n] p) { p = Neg(r) },
            else_branch = b () => (float[n] q) { e = Exp(x)\n q = Add(e, r) }
        >
        y = Identity(u)
    }"""
    assert counts(check(parse(graph), [{"x": SPECIAL}], CANONICAL)) == {"Relu": 1, "Exp": 1, "Add": 1}


POSITIONS = """main (bool[b, s] mask, float[b, 2, s, s] x) => (float[b, 2, s, s] y) {
    i0 = Constant<value = int64 {0}>()
    i1 = Constant<value = int64 {1}>()
    zero = Constant<value = float {0.0}>()
    low = Constant<value = float {-1000.0}>()
    minus = Constant<value = int64[1] {-1}>()
    s = Shape(mask)
    n = Gather(s, i0)
    m = Gather(s, i1)
    rb = Range(i0, n, i1)
    rs = Range(i0, m, i1)
    ab = Constant<value = int64[3] {1, 2, 3}>()
    as = Constant<value = int64[3] {0, 1, 2}>()
    aq = Constant<value = int64[3] {0, 1, 3}>()
    pb = Unsqueeze(rb, ab)
    ps = Unsqueeze(rs, as)
    pq = Unsqueeze(rs, aq)
    all = GreaterOrEqual(pq, i0)
    %s
    both = And(all, picked)
    w = Where(both, zero, low)
    y = Add(x, w)
}"""
GATHER = "flat = Reshape(mask, minus)\n bm = Mul(pb, m)\n at = Add(bm, ps)\n picked = Gather(flat, at)"
GATHER_ND = """big = Max(pb, ps)
    bs = Shape(big)
    eb = Expand(pb, bs)
    es = Expand(ps, bs)
    ub = Unsqueeze(eb, minus)
    us = Unsqueeze(es, minus)
    at = Concat<axis = -1>(ub, us)
    picked = GatherND(mask, at)"""
WRONG = "flat = Reshape(mask, minus)\n bm = Mul(ps, n)\n at = Add(bm, pb)\n picked = Gather(flat, at)"


@pytest.mark.parametrize("how", [GATHER, GATHER_ND])
def test_masks_by_computed_positions(how: str) -> None:
    rng = np.random.default_rng(0)
    runs = [{"mask": rng.random((b, s)) > 0.5, "x": floats(b, 2, s, s)} for b, s in ((1, 1), (2, 5), (3, 4))]
    module = check(
        parse(POSITIONS % how),
        runs,
        [
            "infer-shapes",
            "canonicalize-onnx",
            "fold-constants",
            "eliminate-common-nodes",
            "infer-shapes",
            "canonicalize-onnx",
        ],
    )
    assert counts(module) == {"Unsqueeze": 1, "Where": 1, "Add": 1}


def test_other_positions_stay_a_gather() -> None:
    rng = np.random.default_rng(0)
    runs = [{"mask": rng.random((b, s)) > 0.5, "x": floats(b, 2, s, s)} for b, s in ((1, 1), (3, 3), (3, 4))]
    assert counts(check(parse(POSITIONS % WRONG), runs))["Gather"] > 0


def test_constant_targets() -> None:
    b, s = Expr.of("b"), Expr.of("s")

    def dims(*given: Expr | int) -> tuple[Expr, ...]:
        return tuple(Expr.of(d) for d in given)

    assert constant_target(dims(b, s, 768), dims(b, s, 12, 64)) == [0, 0, 12, 64]
    assert constant_target(dims(b, s, 768), dims(b * s, 768)) == [-1, 768]
    # With b = 0 nothing tells what -1 is; unless the model wrote it itself.
    assert constant_target(dims(b, 4, s), dims(b, s * 4)) is None
    assert constant_target(dims(b, 4, s), dims(b, s * 4), [False, True]) == [0, -1]
    assert constant_target(dims(b * s, 4), dims(b, s, 4)) is None
    assert constant_target(dims(0, 4), dims(4, 0)) is None


def test_lossless_casts_are_lossless() -> None:
    rows = [
        t
        for t in ELEMENT_TYPES
        if t.bits >= 8
        and t.onnx_name
        in (
            "bool",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float16",
            "bfloat16",
            "float",
            "double",
        )
    ]
    for source in rows:
        values = _extremes(source.numpy_name, source.dtype)
        for target in rows:
            if is_lossless(source.attr, target.attr):
                back = values.astype(target.dtype).astype(source.dtype)
                assert back.tobytes() == values.tobytes(), (source.onnx_name, target.onnx_name)
    assert not is_lossless(element_type(rows[0].attr).attr, ELEMENT_TYPES[7].attr)


def _extremes(name: str, dtype: np.dtype) -> np.ndarray:
    if name == "bool":
        return np.array([False, True])
    if name.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)
    return np.array(
        [info.min, info.max, info.tiny, info.smallest_subnormal, 1.0, 1 + float(info.eps), -0.0, np.inf], dtype
    )


def test_work_is_linear() -> None:
    """Four times the chain, four times the work: a quadratic driver would do sixteen times as much."""

    def work(length: int) -> int:
        body = ["a0 = Relu(x)"]
        body += [
            f"b{i} = Identity(a{i})\n c{i} = Neg(b{i})\n d{i} = Neg(c{i})\n a{i + 1} = Exp(d{i})" for i in range(length)
        ]
        module = import_model(
            parse(f"main (float[n] x) => (float[n] y) {{ {chr(10).join(body)}\n y = Relu(a{length}) }}")
        )
        run_passes_on(module, "infer-shapes")
        done = calls_of(lambda: CanonicalizeOnnx().apply(IgniterContext(), module))
        assert counts(module) == {"Relu": 2, "Exp": length}
        return done

    assert work(400) < 5 * work(100)


def run_passes_on(module: object, name: str) -> None:
    from igniter.registry import load_pass

    load_pass(name)().apply(IgniterContext(), module)  # type: ignore[arg-type]


def test_rules_that_make_nothing_leave_nothing() -> None:
    module = run_passes(parse("main (float[n] x) => (float[n] y) { y = Exp(x) }"), ["infer-shapes"])
    before = str(module)
    run_rules(module, {"Exp": [lambda op, rw: (rw.op("Neg", [op.operands[0]], [op.results[0].type]), None)[1]]})
    assert str(module) == before
