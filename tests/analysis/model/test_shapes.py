"""The shapes of all values, in symbols and at sizes, beside what ONNX Runtime makes of them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import igniter
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import at_most
from igniter.errors import IgniterError
from igniter.toolbox.shapes.shape_code import compile_shapes

from .kit import BRANCHES, FOUND, HEADS, TABLE, WINDOWS, model


def run_all(proto: onnx.ModelProto, feed: dict[str, Any]) -> dict[str, Any]:
    """Every value of the main graph, by name."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    known = {o.name for o in copy.graph.output}
    for node in proto.graph.node:
        copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n and n not in known)
    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return {**feed, **dict(zip(names, session.run(names, feed), strict=True))}


@pytest.mark.parametrize("sizes", [(1, 1), (2, 5), (4, 3), (0, 2)])
def test_shapes_are_those_of_a_run(sizes: tuple[int, int]) -> None:
    proto = model(HEADS)
    engine = igniter.shape_engine(proto)
    assert engine.symbols == ("batch", "seq")
    found = engine.at(batch=sizes[0], seq=sizes[1])
    for name, value in run_all(proto, {"x": np.zeros((*sizes, 8), np.float32)}).items():
        assert found[name] == value.shape, name
    assert str(engine.shapes.values[-1].dims) == "(Expr(batch), Expr(seq))"


@pytest.mark.parametrize(("h", "w"), [(3, 3), (8, 9), (224, 17)])
def test_floors_of_several_variables(h: int, w: int) -> None:
    proto = model(WINDOWS)
    found = igniter.shape_engine(proto).at({"n": 2, "h": h, "w": w})
    feed = {"x": np.zeros((2, 3, h, w), np.float32), "k": np.zeros((8, 3, 3, 3), np.float32)}
    assert found["c"] == found["y"] == run_all(proto, feed)["c"].shape


def test_the_same_from_input_shapes() -> None:
    engine = igniter.shape_engine(model(HEADS))
    assert dict(engine.at(input_shapes={"x": (2, 5, 8)})) == dict(engine.at(batch=2, seq=5))
    assert engine.at({"batch": 2}, input_shapes={"x": np.zeros((2, 5, 8)).shape}).sizes == (("batch", 2), ("seq", 5))


def test_a_symbol_inside_an_expression_is_solved_for() -> None:
    text = "g (float[past + 1, 2] x) => (float[m, 2] y) { y = Relu(x) }"
    proto = onnx.ModelProto()
    proto.CopyFrom(model(text.replace("past + 1", "m")))
    proto.graph.input.append(onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, ["past"]))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "past + 1"
    engine = igniter.shape_engine(proto)
    assert engine.at(past=7)["y"] == (8, 2)
    assert engine.at(input_shapes={"x": (8, 2)})["p"] == (7,)
    with pytest.raises(IgniterError, match="axis 0 of input 'x' is past \\+ 1, which is 4, and not 9"):
        engine.at(input_shapes={"x": (9, 2), "p": (3,)})


ERRORS = [
    ({"batch": 2}, "there is no size for 'seq': the inputs are x \\[batch, seq, 8\\]"),
    ({"batch": 2, "sequ": 3}, "called 'sequ'; there are batch, seq; did you mean 'seq'"),
    ({"batch": 2, "seq": -1}, "size of 'seq' is -1: sizes are not negative"),
    ({"batch": 2, "seq": 1.5}, "size of 'seq' is 1.5, which is no integer"),
    ({"batch": 2, "seq": 1, "n": 3}, "called 'n'"),
]


@pytest.mark.parametrize(("sizes", "message"), ERRORS)
def test_sizes_that_do_not_do(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(IgniterError, match=message):
        igniter.shape_engine(model(HEADS)).at(sizes)


SHAPE_ERRORS = [
    ({"z": (1,)}, "no input called 'z'; there are x"),
    ({"x": (2, 5)}, "input 'x' is \\[batch, seq, 8\\]: the shape \\[2, 5\\] has another rank"),
    ({"x": (2, 5, 9)}, "axis 2 of input 'x' is 8, and not 9"),
    ({"x": (2, "a", 8)}, "axis 1 of input 'x'.*no integer"),
]


@pytest.mark.parametrize(("shapes", "message"), SHAPE_ERRORS)
def test_input_shapes_that_do_not_do(shapes: dict[str, Any], message: str) -> None:
    with pytest.raises(IgniterError, match=message):
        igniter.shape_engine(model(HEADS)).at(input_shapes=shapes)


def test_what_the_model_takes_for_granted() -> None:
    """More rows than the table has; ONNX Runtime refuses it as well."""
    proto = model(TABLE)
    engine = igniter.shape_engine(proto)
    assert engine.at(batch=1, seq=6)["picked"] == (6, 4)
    with pytest.raises(IgniterError, match=r"does not run at batch=1, seq=7: min\(6, seq\) is 6 .* seq, which is 7"):
        engine.at(batch=1, seq=7)
    with pytest.raises(Exception, match="BroadcastIterator"):
        run_all(proto, {"x": np.zeros((1, 7, 4), np.float32)})


def test_a_negative_dim_is_refused() -> None:
    engine = igniter.shape_engine(model(WINDOWS))
    with pytest.raises(IgniterError, match=r"no shapes at n=1, h=0, w=9: .* would be -1, and it is a dim of 'c'"):
        engine.at(n=1, h=0, w=9)


def test_data_dependent_shapes_are_said_to_be_so() -> None:
    engine = igniter.shape_engine(model(FOUND))
    value = next(v for v in engine.shapes.values if v.name == "where")
    assert engine.shapes.unknown_of(value) == ["the data of NonZero 'nonzero_0'"]
    assert engine.at(n=5)["where"] == (1, None) and engine.at(n=5)["x"] == (5,)


def test_an_op_that_nothing_is_known_of() -> None:
    proto = model("g (float[n, 4] x) => (float[k] y) { t = local.Mystery(x) y = Relu(t) }")
    engine = igniter.shape_engine(proto)
    assert engine.at(n=3)["t"] is None
    value = next(v for v in engine.shapes.values if v.name == "t")
    assert engine.shapes.unknown_of(value) == ["its rank is not known"]


def test_nested_graphs_and_functions() -> None:
    engine = igniter.shape_engine(model(BRANCHES))
    assert engine.at(n=3)["if_0/else_branch/t"] == (3, 4)
    scope = {v.name: v.scope for v in engine.shapes.values}
    assert scope["if_0/else_branch/t"] == "if_0/else_branch" and scope["y"] == ""
    function = '<domain: "local", opset_import: ["" : 17]> Twice (a) => (b) { t = Add(a, a) b = Exp(t) }'
    proto = model("g (float[n, 4] x) => (float[n, 4] y) { y = local.Twice(x) }", functions=function)
    assert igniter.shape_engine(proto).at(n=3)["twice_0/t"] == (3, 4)


def test_a_branch_that_does_not_run_may_have_no_shape() -> None:
    nodes = "i = Add(one, one) e = Slice(x, i, end, zero) a = Conv<kernel_shape = [5]>(x, k)"
    text = f"""g (float[1, 1, n] x, bool c) => (float[?, ?, ?] y)
    <float[1, 1, 5] k = {{1, 1, 1, 1, 1}}, int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] end = {{9}}> {{
      y = If<then_branch = t () => (float[?, ?, ?] a) {{ {nodes} }},
             else_branch = f () => (float[?, ?, ?] b) {{ b = Relu(x) }}>(c) }}"""
    engine = igniter.shape_engine(model(text))
    assert engine.at(n=9)["if_0/then_branch/a"] == (1, 1, 5)
    assert engine.at(n=3)["if_0/then_branch/a"] == (1, 1, None)
    assert engine.at(n=3)["if_0/else_branch/b"] == (1, 1, 3)


LOOP = """g (int64 trips, bool go, float[n, 2] x) => (float[n, 2] last, float[k, n, 2] all) {
  last, all = Loop<body = step (int64 i, bool c, float[n, 2] s) => (bool d, float[n, 2] t, float[n, 2] u)
    { d = Identity(c) t = Add(s, s) u = Neg(t) }>(trips, go, x) }"""
SCAN = """g (float[n, 2] s, float[m, n, 2] x) => (float[n, 2] last, float[m, n, 2] all) {
  last, all = Scan<num_scan_inputs = 1, body = step (float[n, 2] p, float[n, 2] q) => (float[n, 2] t, float[n, 2] u)
    { t = Add(p, q) u = Neg(t) }>(s, x) }"""


def test_loops_and_scans() -> None:
    engine = igniter.shape_engine(model(LOOP))
    found = engine.at(n=3)
    assert found["last"] == (3, 2) and found["loop_0/body/u"] == (3, 2)
    # Of no trips at all ONNX does not say how long the rows are.
    assert found["all"] == (None, None, 2)
    value = next(v for v in engine.shapes.values if v.name == "all")
    assert set(engine.shapes.unknown_of(value)) == {"the data of Loop 'loop_0'"}
    found = igniter.shape_engine(model(SCAN)).at(n=3, m=5)
    assert found["all"] == (5, 3, 2) and found["scan_0/body/u"] == (3, 2)


def test_names_that_the_model_found_to_be_one() -> None:
    proto = model(
        "g (float[a, 4] x, float[b, 4] z) => (float[c, 4] y) { y = Concat<axis = 1>(x, z) }".replace("c, 4", "c, 8")
    )
    engine = igniter.shape_engine(proto)
    assert engine.symbols == ("a",)
    assert engine.at(b=3)["y"] == engine.at(a=3, b=3)["y"] == (3, 8)
    with pytest.raises(IgniterError, match="'b' is 'a' in this model, which is 3 here and not 4"):
        engine.at(a=3, b=4)


def test_unnamed_dims_have_names_of_their_own() -> None:
    proto = model("g (float[?, 4] x) => (float[?, 4] y) { y = Relu(x) }")
    engine = igniter.shape_engine(proto)
    (symbol,) = engine.symbols
    assert engine.at({symbol: 3})["y"] == engine.at(input_shapes={"x": (3, 4)})["y"] == (3, 4)


def test_a_model_of_fixed_sizes_and_values_asked_for() -> None:
    proto = model("g (float[2, 4] x) => (float[2, 4] y) { t = Exp(x) y = Relu(t) }")
    engine = igniter.shape_engine(proto, ["t"])
    assert dict(engine.at()) == {"t": (2, 4)}
    with pytest.raises(IgniterError, match="no value called 'tt'; did you mean 't'"):
        igniter.shape_engine(proto, ["tt"])
    with pytest.raises(IgniterError, match="no value called 'y'"):
        engine.at()["y"]


def test_it_takes_microseconds() -> None:
    """Of 400 values. A run of the interpreter takes some 3 of them; a loaded machine is allowed 30."""
    lines = [f"v{i + 1} = {'Exp' if i % 2 else 'Neg'}(v{i})" for i in range(399)]
    text = "g (float[n, m] v0) => (float[n, m] v400) {" + "\n".join([*lines, "v400 = Concat<axis = 0>(v399)"]) + "}"
    engine = igniter.shape_engine(model(text))
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for k in range(200):
            engine.at({"n": k, "m": 7})
        best = min(best, (time.perf_counter() - start) / 200)
    assert len(engine.at(n=1, m=1)) == 401 and best < 30e-6


EXPRESSIONS = [
    "n*m + 3",
    "(n + 1) floordiv 2",
    "min(n, m, 4)",
    "max(0, n - m)",
    "(n*m) mod 5",
    "2*n*n - m",
    "7",
    "n floordiv (m + 1)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_code_is_what_the_expression_says(text: str) -> None:
    e = Expr.parse(text)
    code = compile_shapes(("n", "m"), [(e, Expr.of("n"))])
    for n in range(6):
        for m in range(6):
            want, found = e.evaluate({"n": n, "m": m}), code.evaluate(n, m)
            assert found == (((want, n),) if want >= 0 else 0)


def test_divisors_are_tested_before_they_divide() -> None:
    code = compile_shapes(("n",), [(Expr.parse("8 floordiv n"),)], [at_most("n", 4, "too many")])
    assert code.evaluate(2) == ((4,),)
    assert code.checks[code.evaluate(0)].about == "something is divided by it"  # pyright: ignore
    assert code.checks[code.evaluate(5)].about == "too many"  # pyright: ignore
