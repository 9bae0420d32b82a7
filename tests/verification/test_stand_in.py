"""Originals that ONNX Runtime does not load: compared with what computes them, or not verified in words."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.api import VerificationFailed
from igniter.dialects.onnx import ops
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.errors import IgniterError
from igniter.toolbox.output import verification_lines


def model_of(
    nodes: list[onnx.NodeProto],
    type_: int = TensorProto.FLOAT,
    weights: tuple[onnx.TensorProto, ...] = (),
    more: tuple[onnx.ValueInfoProto, ...] = (),
) -> onnx.ModelProto:
    """x, of n rows of 8, to y, of n rows."""
    x = helper.make_tensor_value_info("x", type_, ["n", 8])
    y = helper.make_tensor_value_info("y", type_, ["n", None])
    graph = helper.make_graph(nodes, "g", [x, *more], [y], list(weights))
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def compiled(model: onnx.ModelProto, **options: Any) -> dict[str, Any]:
    artifact = igniter.load(model).compile(cache=False, budget=5, **options)
    artifact.session()
    return artifact.report["verification"]


AXES = numpy_helper.from_array(np.array([1]), "axes")


@pytest.mark.parametrize("type_", [TensorProto.UINT32, TensorProto.UINT64, TensorProto.BFLOAT16])
def test_a_type_without_a_kernel_is_compared_with_the_reference_evaluator(type_: int) -> None:
    found = compiled(model_of([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], type_, (AXES,)))
    assert found["status"] == "passed"
    assert found["against"] == "ONNX's reference evaluator"
    line, because = verification_lines(found)
    assert line.startswith("verified against ONNX's reference evaluator at ")
    assert because.startswith("ONNX Runtime does not load the original: Could not find an implementation for ReduceSum")


def test_a_wrong_result_is_found_without_onnxruntime_too() -> None:
    right = model_of([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], TensorProto.UINT32, (AXES,))
    wrong = model_of([helper.make_node("ReduceMax", ["x", "axes"], ["y"])], TensorProto.UINT32, (AXES,))
    artifact = igniter.load(wrong).compile(verify=False)
    found = artifact.verify(reference=right.SerializeToString(), budget=5)
    assert found.status == "differs"
    assert found.against == "ONNX's reference evaluator"


def test_inputs_of_a_user_are_for_a_stand_in_too() -> None:
    x = np.arange(16, dtype=np.uint32).reshape(2, 8)
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"])
    found = compiled(model_of([node], TensorProto.UINT32, (AXES,)), inputs={"x": x})
    assert found["status"] == "passed"
    assert [case["kind"] for case in found["cases"]] == ["given"]


@pytest.mark.slow
def test_an_attention_of_bf16_compiles_whole() -> None:
    """Add, Softmax and products of bf16 have no kernel in ONNX Runtime."""
    rng = np.random.default_rng(0)
    weights = {f"w{c}": rng.normal(0, 0.3, (8, 8)).astype(ml_dtypes.bfloat16) for c in "qkv"}
    nodes = [helper.make_node("MatMul", ["x", f"w{c}"], [c]) for c in "qkv"]
    nodes += [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["c"]),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]
    tensors = tuple(numpy_helper.from_array(v, k) for k, v in weights.items())
    artifact = igniter.load(model_of(nodes, TensorProto.BFLOAT16, tensors)).compile(cache=False, budget=5)
    assert not artifact.report["left_to_onnxruntime"]
    assert artifact.report["verification"]["status"] == "passed"


# -- a user's own ops -------------------------------------------------------------------------------------------------


def like_the_operand(ctx: InferContext) -> list[TensorInfo]:
    x = ctx.input(0)
    assert x is not None
    return [TensorInfo(x.element, x.dims)]


@pytest.fixture
def cube() -> Iterator[dict[str, Any]]:
    """`mine.Cube`, registered; the fold that a test puts into the mapping is its own."""
    said: dict[str, Any] = {}

    def spec(**more: Any) -> None:
        ops.register(
            OpSpec(
                "mine.Cube",
                infer=like_the_operand,
                lower=lambda ctx: [ctx.map(lambda v: v * v * v)],
                kind="elementwise",
                **more,
            )
        )

    said["register"] = spec
    yield said
    ops._registered.pop("mine.Cube", None)


CUBE = helper.make_node("Cube", ["x"], ["y"], name="cube", domain="mine")


def test_a_users_op_is_compared_with_the_interpreter(cube: dict[str, Any]) -> None:
    cube["register"]()
    found = compiled(model_of([CUBE]))
    assert (found["status"], found["against"]) == ("passed", "Igniter's interpreter")
    assert "mine:Cube" in found["because"]


@pytest.mark.slow
def test_the_fold_of_a_users_op_is_what_its_kernel_is_compared_with(cube: dict[str, Any]) -> None:
    cube["register"](fold=lambda op, arrays: [arrays[0] ** 3])
    after = helper.make_node("Abs", ["z"], ["y"])
    whole = model_of([helper.make_node("Cube", ["x"], ["z"], domain="mine"), after])
    assert compiled(whole)["status"] == "passed"
    cube["register"](fold=lambda op, arrays: [arrays[0] ** 3 + 1])
    with pytest.raises(VerificationFailed):
        compiled(whole)


def test_an_op_that_nothing_computes_is_not_verified_and_says_so(cube: dict[str, Any]) -> None:
    cube["register"]()
    value = helper.make_tensor_value_info("y1", TensorProto.FLOAT, ["n", 8])
    other = helper.make_tensor_value_info("y2", TensorProto.FLOAT, ["n", 8])
    branches = {
        "then_branch": helper.make_graph([helper.make_node("Cube", ["x"], ["y1"], domain="mine")], "t", [], [value]),
        "else_branch": helper.make_graph([helper.make_node("Neg", ["x"], ["y2"])], "e", [], [other]),
    }
    choose = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    found = compiled(model_of([helper.make_node("If", ["c"], ["y"], name="choose", **branches)], more=(choose,)))
    assert found["status"] == "not verified"
    (line,) = verification_lines(found)
    assert line.startswith("[yellow]not verified:[/] ONNX Runtime does not load the original")
    assert "ONNX's reference evaluator does not run it" in line
    assert "Igniter's interpreter" in line
    assert "verified against" not in line


def test_an_invalid_model_stays_an_error() -> None:
    bad = model_of([helper.make_node("Concat", ["x", "x"], ["y"], name="join")])
    with pytest.raises(IgniterError, match="join"):
        compiled(bad)


@pytest.mark.parametrize("op", ["Erf", "Gelu", "HardSwish"])
def test_functions_of_f64_are_exact_in_the_evaluator(op: str) -> None:
    """The evaluator's own Erf rounds to f32, and with it the body of Gelu; right kernels of f64 were refused for it."""
    found = compiled(model_of([helper.make_node(op, ["x"], ["y"])], TensorProto.DOUBLE))
    assert found["status"] == "passed", found
    assert max(found["max_errors"].values()) < 1e-14


@pytest.mark.slow
def test_functions_of_f64_have_the_constants_of_their_bodies() -> None:
    """ONNX Runtime has no kernel and runs the function body: constants of f32, statistics of f32 (stash_type)."""
    tanh = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")
    found = compiled(model_of([tanh], TensorProto.DOUBLE))
    assert found["status"] == "passed" and max(found["max_errors"].values()) < 1e-14
    ones = [numpy_helper.from_array(np.ones(8), name) for name in ("scale", "bias")]
    group = helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=2)
    assert compiled(model_of([group], TensorProto.DOUBLE, tuple(ones)))["status"] == "passed"
