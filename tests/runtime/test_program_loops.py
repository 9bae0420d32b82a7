"""Loop and Scan nodes inside programs, which call the kernels of the bodies in loops, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact

ORT: Any = ort
F, D, B, I = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT64  # noqa: E741
node = helper.make_node
Value = tuple[str, int, Sequence[int | str]]


def infos(values: Sequence[Value]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in values]


def graph(nodes: list[Any], inputs: Sequence[Value], outputs: Sequence[Value], **weights: Any) -> onnx.GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    return helper.make_graph(nodes, "g", infos(inputs), infos(outputs), tensors)


def model(main: onnx.GraphProto, opset: int = 18) -> onnx.ModelProto:
    return helper.make_model(main, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def open_outputs(main: onnx.GraphProto) -> onnx.GraphProto:
    """The graph with nothing said of the dims of its outputs."""
    for output in main.output:
        kind = output.type.tensor_type.elem_type
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, None))
    return main


def compiled(made: onnx.ModelProto, **options: Any) -> Artifact:
    artifact = igniter.compile(made, options=igniter.CompileOptions(**options), verify=False)
    assert not [entry for entry in artifact.report["left_to_onnxruntime"] if entry["kind"] == "failed"]
    return artifact


def op_types(artifact: Artifact) -> list[str]:
    return [n.op_type for n in onnx.load(str(artifact.model_path)).graph.node]


def is_whole(artifact: Artifact) -> bool:
    """True if the compiled model is one op of the library."""
    return [t.startswith("igniter_") for t in op_types(artifact)] == [True]


def reason(artifact: Artifact, op: str) -> str:
    return next(entry["reason"] for entry in artifact.report["left_to_onnxruntime"] if entry["op"] == op)


def agree(made: onnx.ModelProto, artifact: Artifact, feeds: Sequence[dict[str, Any]], **options: Any) -> None:
    """The same results as ONNX Runtime's, or an error where it has one."""
    reference = ORT.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    session = artifact.session(**options)
    for feed in feeds:
        want, got = (reference.run(None, feed), session.run(None, feed))
        for a, b in zip(want, got, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)


def rng(*shape: int, kind: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape) + 1).standard_normal(shape).astype(kind)


# -- Scan -------------------------------------------------------------------------------------------------------------


def rnn(inside: bool = False, hidden: int = 24) -> onnx.ModelProto:
    """h = tanh(x W + h R + b), with the weights outside of the body, or inside."""
    weights = {"w": rng(16, hidden) * 0.2, "r": rng(hidden, hidden) * 0.2, "b": rng(hidden)}
    body = graph(
        [
            node("MatMul", ["x", "w"], ["xw"]),
            node("MatMul", ["h", "r"], ["hr"]),
            node("Add", ["xw", "hr"], ["s"]),
            node("Add", ["s", "b"], ["sb"]),
            node("Tanh", ["sb"], ["h_next"]),
            node("Identity", ["h_next"], ["y"]),
        ],
        [("h", F, ["n", hidden]), ("x", F, ["n", 16])],
        [("h_next", F, ["n", hidden]), ("y", F, ["n", hidden])],
        **(weights if inside else {}),
    )
    main = graph(
        [node("Scan", ["h0", "xs"], ["h", "ys"], body=body, num_scan_inputs=1)],
        [("h0", F, ["n", hidden]), ("xs", F, ["t", "n", 16])],
        [("h", F, ["n", hidden]), ("ys", F, ["t", "n", hidden])],
        **({} if inside else weights),
    )
    return model(main)


@pytest.mark.parametrize("inside", [False, True])
def test_an_rnn_written_as_a_scan(inside: bool) -> None:
    made = rnn(inside)
    artifact = compiled(made)
    assert is_whole(artifact)
    sizes = ((1, 1), (7, 3), (8, 5), (3, 0), (100, 2))
    feeds = [{"h0": rng(n, 24), "xs": rng(t, n, 16)} for t, n in sizes]
    agree(made, artifact, feeds)
    agree(made, artifact, feeds[1:3], intra_op_num_threads=2)
    agree(made, compiled(made, sanitize=True), feeds)


@pytest.mark.parametrize("reverse", [0, 1])
def test_a_cumulative_sum_written_as_a_scan(reverse: int) -> None:
    body = graph(
        [node("Add", ["s", "x"], ["s_next"]), node("Identity", ["s_next"], ["y"])],
        [("s", D, ["m"]), ("x", D, ["m"])],
        [("s_next", D, ["m"]), ("y", D, ["m"])],
    )
    ways = {"scan_input_directions": [reverse], "scan_output_directions": [reverse]}
    main = graph(
        [node("Scan", ["s0", "xs"], ["s", "ys"], body=body, num_scan_inputs=1, **ways)],
        [("s0", D, ["m"]), ("xs", D, ["t", "m"])],
        [("s", D, ["m"]), ("ys", D, ["t", "m"])],
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    agree(made, artifact, [{"s0": np.zeros(m), "xs": rng(t, m, kind=float)} for t, m in ((6, 3), (1, 1), (2, 0))])


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "ways"), [([1, 0], [1, 0], [0, 1]), ([-1, 2], [-1, 2], [1, 0]), ([2, 1], [0, 1], [1, 1])]
)
def test_axes_and_directions(in_axes: list[int], out_axes: list[int], ways: list[int]) -> None:
    """Two states that change places, two inputs and two outputs along any axes."""
    body = graph(
        [
            node("Mul", ["x", "a"], ["p"]),
            node("Add", ["p", "z"], ["b_next"]),
            node("Sub", ["x", "z"], ["q"]),
            node("Identity", ["b"], ["a_next"]),
            node("Identity", ["b"], ["kept"]),
        ],
        [("a", F, [3, 4]), ("b", F, [3, 4]), ("x", F, [3, 4]), ("z", F, [3, 4])],
        [("a_next", F, [3, 4]), ("b_next", F, [3, 4]), ("q", F, [3, 4]), ("kept", F, [3, 4])],
    )
    scan = node(
        "Scan",
        ["a0", "b0", "xs", "zs"],
        ["a", "b", "qs", "ks"],
        body=body,
        num_scan_inputs=2,
        scan_input_axes=in_axes,
        scan_output_axes=out_axes,
        scan_input_directions=ways,
        scan_output_directions=ways[::-1],
    )

    def dims(axis: int) -> list[int | str]:
        found: list[int | str] = [3, 4]
        found.insert(axis % 3, "t")
        return found

    main = graph(
        [scan],
        [("a0", F, [3, 4]), ("b0", F, [3, 4]), ("xs", F, dims(in_axes[0])), ("zs", F, dims(in_axes[1]))],
        [("a", F, [3, 4]), ("b", F, [3, 4]), ("qs", F, dims(out_axes[0])), ("ks", F, dims(out_axes[1]))],
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)

    def feed(t: int) -> dict[str, Any]:
        xs, zs = (rng(*(t if d == "t" else int(d) for d in dims(axis))) for axis in in_axes)
        return {"a0": rng(3, 4), "b0": rng(3, 4) * 2, "xs": xs, "zs": zs}

    agree(made, artifact, [feed(t) for t in (5, 1, 2)])


def test_scans_in_a_scan() -> None:
    """A matrix, row by row and in a row element by element; the inner loop reads a state of the outer one."""
    inner = graph(
        [node("Mul", ["e", "k"], ["f"]), node("Add", ["f", "u"], ["v"]), node("Tanh", ["v"], ["w"])],
        [("u", F, []), ("e", F, [])],
        [("v", F, []), ("w", F, [])],
    )
    outer = graph(
        [
            node("Scan", ["zero", "row"], ["total", "ws"], body=inner, num_scan_inputs=1),
            node("Add", ["k", "total"], ["more"]),
            node("Sigmoid", ["more"], ["k_next"]),
        ],
        [("k", F, []), ("row", F, ["m"])],
        [("k_next", F, []), ("ws", F, ["m"])],
        zero=np.float32(0),
    )
    main = graph(
        [node("Scan", ["k0", "x"], ["k1", "y"], body=outer, num_scan_inputs=1)],
        [("k0", F, []), ("x", F, ["t", "m"])],
        [("k1", F, []), ("y", F, ["t", "m"])],
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    feeds = [{"k0": np.array(0.5, np.float32), "x": rng(t, m)} for t, m in ((4, 6), (1, 1), (3, 5))]
    agree(made, artifact, feeds)


def test_what_is_around_a_scan_is_in_its_program() -> None:
    """Regions before and behind, a view between, and a tensor of the program that the body reads."""
    body = graph(
        [node("Add", ["h", "x"], ["s"]), node("Mul", ["s", "scale"], ["h_next"]), node("Exp", ["h_next"], ["y"])],
        [("h", F, ["n", 8]), ("x", F, ["n", 8])],
        [("h_next", F, ["n", 8]), ("y", F, ["n", 8])],
    )
    main = graph(
        [
            node("Tanh", ["g"], ["gt"]),
            node("Softmax", ["gt"], ["scale"]),
            node("Sigmoid", ["x"], ["xt"]),
            node("Erf", ["xt"], ["xe"]),
            node("Reshape", ["xe", "shape"], ["xs"]),
            node("Scan", ["h0", "xs"], ["h", "ys"], body=body, num_scan_inputs=1),
            node("Softmax", ["ys"], ["p"]),
            node("ReduceSum", ["h"], ["total"], keepdims=0),
        ],
        [("h0", F, ["n", 8]), ("x", F, ["t", "n", 4, 2]), ("g", F, ["n", 8])],
        [("p", F, ["t", "n", 8]), ("total", F, []), ("h", F, ["n", 8])],
        shape=np.array([0, 0, 8]),
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    feeds = [{"h0": rng(n, 8), "x": rng(t, n, 4, 2), "g": rng(n, 8)} for t, n in ((5, 3), (1, 1), (2, 7))]
    agree(made, artifact, feeds)


def test_a_scan_of_nothing_is_refused_as_onnx_runtime_does() -> None:
    made = rnn()
    artifact = compiled(made)
    feed = {"h0": rng(2, 24), "xs": rng(0, 2, 16)}
    with pytest.raises(Exception, match="Dimension 0 is 0"):
        ORT.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    with pytest.raises(Exception, match="its scanned input is empty"):
        artifact.session().run(None, feed)


# -- Loop -------------------------------------------------------------------------------------------------------------


def decoder(
    outputs: Sequence[Value] = (), go_on: Sequence[Any] = (), stacked: bool = False, **weights: Any
) -> onnx.GraphProto:
    """A body: h = softmax(h w) + i / 8; it goes on as before, unless `go_on` computes `more` of `h_next`."""
    nodes = [
        node("MatMul", ["h", "w"], ["s"]),
        node("Softmax", ["s"], ["p"]),
        node("Cast", ["i"], ["f"], to=F),
        node("Div", ["f", "eight"], ["part"]),
        node("Add", ["p", "part"], ["h_next"]),
        *(go_on or [node("Identity", ["going"], ["more"])]),
        *([node("Identity", ["h_next"], ["row"])] if stacked else []),
    ]
    return graph(
        nodes,
        [("i", I, []), ("going", B, []), ("h", F, ["n", 8])],
        [("more", B, []), ("h_next", F, ["n", 8]), *([("row", F, ["n", 8])] if stacked else []), *outputs],
        eight=np.float32(8),
        **weights,
    )


W = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 4, 5, -2])
def test_a_loop_with_a_constant_trip_count(count: int) -> None:
    main = graph(
        [node("Loop", ["trips", "", "h0"], ["h", "hs"], body=decoder(stacked=True))],
        [("h0", F, ["n", 8])],
        [("h", F, ["n", 8]), ("hs", F, ["t", "n", 8])],
        trips=np.array(count),
        w=W,
    )
    made = model(open_outputs(main))
    artifact = compiled(made)
    # Where its trip count is 0, ONNX Runtime gives dims of its own to what is stacked.
    assert is_whole(artifact) == (count > 0)
    agree(made, artifact, [{"h0": rng(n, 8)} for n in ((1, 5, 0) if count > 0 else ())])


def test_a_loop_over_a_dim() -> None:
    """The trip count is a dim of an input, and the body gathers a row of it."""
    body = graph(
        [
            node("Gather", ["xs", "i"], ["x"], axis=0),
            node("Add", ["h", "x"], ["s"]),
            node("Tanh", ["s"], ["h_next"]),
            node("Identity", ["going"], ["more"]),
            node("Mul", ["h_next", "x"], ["y"]),
        ],
        [("i", I, []), ("going", B, []), ("h", F, [8])],
        [("more", B, []), ("h_next", F, [8]), ("y", F, [8])],
    )
    main = graph(
        [
            node("Shape", ["xs"], ["dims"], start=0, end=1),
            node("Squeeze", ["dims"], ["trips"]),
            node("Loop", ["trips", "yes", "h0"], ["h", "ys"], body=body),
        ],
        [("xs", F, ["t", 8]), ("h0", F, [8])],
        [("h", F, [8]), ("ys", F, ["t", 8])],
        yes=np.array(True),
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    agree(made, artifact, [{"xs": rng(t, 8), "h0": rng(8)} for t in (6, 1, 0)])


def test_a_trip_count_from_an_input() -> None:
    """Nothing is stacked, so how often it runs need not be known when it is called."""
    main = graph(
        [node("Loop", ["trips", "run", "h0"], ["h"], body=decoder())],
        [("trips", I, []), ("run", B, []), ("h0", F, ["n", 8])],
        [("h", F, ["n", 8])],
        w=W,
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    cases = ((0, True), (1, True), (2, True), (9, True), (4, False), (-3, True))
    agree(made, artifact, [{"trips": np.array(t), "run": np.array(r), "h0": rng(3, 8)} for t, r in cases])
    agree(made, compiled(made, sanitize=True), [{"trips": np.array(5), "run": np.array(True), "h0": rng(3, 8)}])


@pytest.mark.parametrize("limited", [True, False])
def test_a_condition_ends_a_loop(limited: bool) -> None:
    """While the greatest element is below a limit; with an upper bound, or without."""
    go_on = [
        node("ReduceMax", ["h_next"], ["most"], keepdims=0),
        node("Less", ["most", "enough"], ["more"]),
    ]
    main = graph(
        [node("Loop", ["trips" if limited else "", "yes", "h0"], ["h"], body=decoder(go_on=go_on))],
        [*([("trips", I, [1])] if limited else []), ("enough", F, []), ("h0", F, [2, 8])],
        [("h", F, [2, 8])],
        w=W,
        yes=np.array(True),
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    given = {"h0": rng(2, 8)}
    for trips in (100, 3, 0) if limited else (None,):
        count = {} if trips is None else {"trips": np.array([trips])}
        agree(made, artifact, [{**given, **count, "enough": np.array(e, np.float32)} for e in (-1.0, 0.9, 1.2, 2.5)])


def test_states_that_do_not_change_and_rows_that_are_counted() -> None:
    """Fibonacci, with a state that is handed on as it is."""
    body = graph(
        [
            node("Add", ["a", "b"], ["b_next"]),
            node("Identity", ["b"], ["a_next"]),
            node("Identity", ["c"], ["c_next"]),
            node("Identity", ["going"], ["more"]),
            node("Mul", ["i", "c"], ["row"]),
        ],
        [("i", I, []), ("going", B, []), ("a", I, [2]), ("b", I, [2]), ("c", I, [2])],
        [("more", B, []), ("a_next", I, [2]), ("b_next", I, [2]), ("c_next", I, [2]), ("row", I, [2])],
    )
    main = graph(
        [node("Loop", ["trips", "", "a0", "b0", "c0"], ["a", "b", "c", "rows"], body=body)],
        [("a0", I, [2]), ("b0", I, [2]), ("c0", I, [2])],
        [("a", I, [2]), ("b", I, [2]), ("c", I, [2]), ("rows", I, [11, 2])],
        trips=np.array(11),
    )
    made = model(main)
    artifact = compiled(made)
    # The state that does not change is the input, which an output of the model copies.
    assert sorted(op_types(artifact)) == ["Identity", "igniter_p0"]
    agree(made, artifact, [{"a0": np.array([0, 1]), "b0": np.array([1, 3]), "c0": np.array([7, -7])}])


def test_an_index_that_an_iteration_finds_wrong_is_an_error() -> None:
    body = graph(
        [node("Gather", ["table", "k"], ["row"], axis=0), node("Add", ["s", "row"], ["s_next"])],
        [("s", F, [4]), ("k", I, [])],
        [("s_next", F, [4])],
    )
    main = graph(
        [node("Scan", ["s0", "ks"], ["s"], body=body, num_scan_inputs=1)],
        [("s0", F, [4]), ("ks", I, ["t"]), ("table", F, ["r", 4])],
        [("s", F, [4])],
    )
    made = model(main)
    artifact = compiled(made)
    assert is_whole(artifact)
    table = rng(5, 4)
    agree(made, artifact, [{"s0": rng(4), "ks": np.array(k, np.int64), "table": table} for k in ([0, 4, -5], [2])])
    session = artifact.session()
    for wrong in ([1, 5, 2], [-6, 0], [0, 0, 99]):
        with pytest.raises(Exception, match="indices element out of data bounds"):
            session.run(None, {"s0": rng(4), "ks": np.array(wrong, np.int64), "table": table})


def test_the_time_of_a_loop_is_one_step_of_a_profile() -> None:
    made = rnn()
    artifact = compiled(made, profile=True)
    (program,) = artifact.report["programs"]
    (step,) = program["steps"]
    assert step["ops"] == ["Scan", "MatMul", "MatMul", "Add", "Add", "Tanh"]
    assert step["flops"].startswith("t*") or "*t" in step["flops"]
    results = artifact.session().run(None, {"h0": rng(2, 24), "xs": rng(3, 2, 16)})
    (stamps,) = (r for r in results if r.dtype == np.int64)
    assert stamps.shape == (2,) and stamps[0] < stamps[1]


# -- what stays -------------------------------------------------------------------------------------------------------


def test_a_loop_that_grows_stays() -> None:
    body = graph(
        [node("Concat", ["h", "x"], ["h_next"], axis=0), node("Identity", ["going"], ["more"])],
        [("i", I, []), ("going", B, []), ("h", F, ["k"])],
        [("more", B, []), ("h_next", F, ["j"])],
    )
    main = graph(
        [node("Loop", ["trips", "", "x"], ["h"], body=body)], [("x", F, ["n"])], [("h", F, ["m"])], trips=np.array(3)
    )
    made = model(main)
    artifact = compiled(made)
    assert "Loop" in op_types(artifact)
    assert "may change" in reason(artifact, "Loop")
    agree(made, artifact, [{"x": rng(n)} for n in (2, 1)])


def test_rows_that_the_data_counts() -> None:
    """The trip count is a dim of a carrier, from which a program learns it like any other
    (docs/explanation/values.md)."""
    body = graph(
        [
            node("MatMul", ["h", "w"], ["s"]),
            node("Tanh", ["s"], ["h_next"]),
            node("ArgMax", ["h_next"], ["token"], axis=0, keepdims=0),
            node("Identity", ["going"], ["more"]),
        ],
        [("i", I, []), ("going", B, []), ("h", F, [8])],
        [("more", B, []), ("h_next", F, [8]), ("token", I, [])],
        w=W,
    )
    main = graph(
        [node("Loop", ["trips", "", "h0"], ["h", "tokens"], body=body), node("Exp", ["h"], ["e"])],
        [("trips", I, []), ("h0", F, [8])],
        [("e", F, [8]), ("tokens", I, ["t"])],
    )
    made = model(main)
    artifact = compiled(made)
    assert not artifact.report["left_to_onnxruntime"]
    assert "Loop" not in op_types(artifact)
    feeds = [{"trips": np.array(t), "h0": rng(8)} for t in (5, 1, 0, -3, 40)]
    agree(made, artifact, feeds)
    agree(made, compiled(made, sanitize=True), feeds)
    assert artifact.verify()


def test_rows_of_symbolic_dims_that_the_data_counts_stay() -> None:
    main = graph(
        [node("Loop", ["trips", "", "h0"], ["h", "hs"], body=decoder(stacked=True))],
        [("trips", I, []), ("h0", F, ["n", 8])],
        [("h", F, ["n", 8]), ("hs", F, ["t", "n", 8])],
        w=W,
    )
    made = model(main)
    artifact = compiled(made)
    assert "Loop" in op_types(artifact)
    assert "the number of iterations that it stacks depends on the data" in reason(artifact, "Loop")
    agree(made, artifact, [{"trips": np.array(t), "h0": rng(3, 8)} for t in (3, 0)])


def test_a_body_with_an_if_stays() -> None:
    then = graph([node("Tanh", ["x"], ["t"])], [], [("t", F, [4])])
    other = graph([node("Neg", ["x"], ["e"])], [], [("e", F, [4])])
    body = graph(
        [
            node("ReduceSum", ["x"], ["total"], keepdims=0),
            node("Less", ["total", "zero"], ["low"]),
            node("If", ["low"], ["y"], then_branch=then, else_branch=other),
            node("Add", ["s", "y"], ["s_next"]),
        ],
        [("s", F, [4]), ("x", F, [4])],
        [("s_next", F, [4])],
        zero=np.float32(0),
    )
    main = graph(
        [node("Scan", ["s0", "xs"], ["s"], body=body, num_scan_inputs=1)],
        [("s0", F, [4]), ("xs", F, ["t", 4])],
        [("s", F, [4])],
    )
    made = model(main)
    artifact = compiled(made)
    assert "Scan" in op_types(artifact)
    assert "its body stays with ONNX Runtime: If" in reason(artifact, "Scan")
    agree(made, artifact, [{"s0": rng(4), "xs": rng(5, 4)}])


def test_a_loop_without_programs_runs_its_kernels_in_onnx_runtime() -> None:
    made = rnn()
    artifact = igniter.compile(made, options=igniter.CompileOptions(program_passes=""), verify=False)
    assert op_types(artifact) == ["Scan"]
    assert reason(artifact, "Scan") == "it is not in a program"
    agree(made, artifact, [{"h0": rng(2, 24), "xs": rng(3, 2, 16)}])
