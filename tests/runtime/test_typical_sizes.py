"""Typical sizes: from the command line and from Python to the kernels, what they change, and what they must not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from typer.testing import CliRunner
from xdsl.context import Context

import igniter
from igniter.analysis.typical_sizes import NONE, WORK, TypicalSizes, module_dims, sizes_of, typical_of
from igniter.api import parse
from igniter.compiler.compilation import Compilation, CompiledKernel, CompileOptions
from igniter.compiler.compile_report import kernel_digest
from igniter.compiler.driver import make_fusion, make_llvm, make_loop, make_onnx
from igniter.dialects.loop import KernelOp
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.schedules.citation import structure_hash
from igniter.tools.main import app


def product_model() -> onnx.ModelProto:
    """Two products of what is computed, in the symbols `rows` and `inner`."""
    float32 = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("MatMul", ["e", "y"], ["p"]),
        helper.make_node("ReduceSum", ["p", "axes"], ["z"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [
            helper.make_tensor_value_info("x", float32, ["rows", "inner"]),
            helper.make_tensor_value_info("y", float32, ["inner", 40]),
        ],
        [helper.make_tensor_value_info("z", float32, ["rows"])],
        [numpy_helper.from_array(np.array([1], np.int64), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def compiled(**sizes: int) -> list[CompiledKernel]:
    module = igniter.load(product_model())
    c = Compilation(module.ir, CompileOptions(target="x86-64-v3", sizes=tuple(sizes.items())), module.ctx)
    make_onnx(c)
    make_fusion(c)
    make_loop(c)
    return make_llvm(c)


def kernels(**sizes: int) -> list[KernelOp]:
    module = igniter.load(product_model()).run_passes("cpu-onnx,cpu-fusion,cpu-loop", sizes=sizes)
    return [op for op in module.ir.ops if isinstance(op, KernelOp)]


def test_a_size_that_nobody_gave_is_the_figure_of_the_purpose() -> None:
    n, m = Expr.of("n"), Expr.of("m")
    sizes = TypicalSizes((("n", 3),))
    assert sizes.known(2 * n) == 6 and sizes.known(n * m) is None and sizes.known(Expr.of(5)) == 5
    assert sizes.value(n * m, WORK) == 3 * WORK and sizes.value(n * m, WORK, zero=("n",)) == 0
    assert NONE.value(n, WORK) == WORK and str(sizes) == "n=3"


def framed_model() -> onnx.ModelProto:
    """Frames of a signal: 64 or 128 of its `samples` are less than one of them."""
    rng = np.random.default_rng(0)
    float32 = onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Conv", ["x", "w"], ["f"], strides=[128]), helper.make_node("Relu", ["f"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", float32, ["batch", 1, "samples"])],
        [helper.make_tensor_value_info("y", float32, None)],
        [numpy_helper.from_array(rng.standard_normal((32, 1, 256)).astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize(("given", "expected"), [({}, {"samples": 1024}), ({"samples": 300}, {"samples": 300})])
def test_symbols_are_large_enough_for_every_tensor(given: dict[str, int], expected: dict[str, int]) -> None:
    module = igniter.load(framed_model()).run_passes("cpu-onnx", sizes=given)
    context = Context()
    context.sizes = given  # pyright: ignore[reportAttributeAccessIssue]
    assert sizes_of(context, module.ir) == expected


def test_a_symbol_that_leaves_nothing_empty_is_not_raised() -> None:
    """Of `batch * frames` only the frames are none: a dim of the frames alone says so."""
    model = framed_model()
    model.graph.node.append(helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1]))
    model.graph.node.append(helper.make_node("Reshape", ["t", "rows"], ["r"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 32], np.int64), "rows"))
    model.graph.output.append(helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None))
    module = igniter.load(model).run_passes("cpu-onnx")
    assert any(len(dim.symbols) == 2 for dim in module_dims(module.ir))
    assert sizes_of(Context(), module.ir) == {"samples": 1024}


def test_the_sizes_of_frames_are_written_on_kernels() -> None:
    module = igniter.load(framed_model()).run_passes("cpu-onnx,cpu-fusion,lower-onnx-to-loop")
    assert {typical_of(op).given for op in module.ir.ops if isinstance(op, KernelOp)} == {(("samples", 1024),)}


def test_kernels_have_the_sizes_of_their_own_symbols_by_their_own_names() -> None:
    assert all(k.typical is None for k in kernels())
    found = [k for k in kernels(rows=7) if "MatMul" in str(k) or k.typical is not None]
    assert found and all(typical_of(k.nests[0]).given == (("d0", 7),) for k in found)
    # A database of schedules is of kernels whatever was said of their sizes.
    assert {structure_hash(k) for k in kernels(rows=7, inner=9)} == {structure_hash(k) for k in kernels()}


def test_sizes_are_part_of_what_code_is_filed_under_and_none_are_not() -> None:
    plain = CompileOptions()
    some = CompileOptions(sizes=(("rows", 7), ("inner", 9)))
    assert some.key() != plain.key() and some.key() != CompileOptions(sizes=(("rows", 7),)).key()
    assert some.key() == CompileOptions(sizes=(("inner", 9), ("rows", 7))).key()
    assert some == CompileOptions(sizes={"inner": 9, "rows": 7})  # pyright: ignore[reportArgumentType]
    assert some.to_dict()["sizes"] == {"inner": 9, "rows": 7}
    # A kernel says its sizes in its text, so one of which none are known is the same for both.
    assert some.kernel_key() == plain.kernel_key()


def test_other_sizes_are_other_code_and_equal_ones_equal_code() -> None:
    plain, one, many = compiled(), compiled(rows=1), compiled(inner=4096)
    assert kernel_digest(compiled(rows=1)) == kernel_digest(one)
    assert len({kernel_digest(k) for k in (plain, one, many)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{}, {"rows": 1, "inner": 16}, {"rows": 4096}])
def test_sizes_are_no_promise(sizes: dict[str, int]) -> None:
    artifact = igniter.compile(product_model(), sizes=sizes, cache=False, shapes=[{"rows": 1, "inner": 1}])
    session = artifact.session(intra_op_num_threads=2)
    rng = np.random.default_rng(0)
    for rows, inner in ((1, 1), (1, 33), (3, 16), (33, 7), (0, 5), (5, 0)):
        x = rng.standard_normal((rows, inner), np.float32)
        y = rng.standard_normal((inner, 40), np.float32)
        (z,) = session.run(None, {"x": x, "y": y})
        np.testing.assert_allclose(z, (np.exp(x) @ y).sum(1), rtol=1e-4, atol=1e-4)


def test_what_is_wrong_is_said_with_the_symbols_there_are(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match="the model has no dim row; its dims are inner, rows"):
        igniter.compile(product_model(), sizes={"row": 3}, cache=False)
    with pytest.raises(IgniterError, match="the typical size of 'rows' is -1; it must be positive"):
        igniter.compile(product_model(), sizes={"rows": -1})
    with pytest.raises(IgniterError, match="sizes is given twice"):
        igniter.compile(product_model(), sizes={"rows": 1}, options=CompileOptions(sizes=(("rows", 2),)))
    with pytest.raises(IgniterError, match="the model has no dim row"):
        igniter.load(product_model()).run_passes("infer-shapes", sizes={"row": 3})
    model = tmp_path / "product.onnx"
    onnx.save(product_model(), model)
    for arguments, said in (
        (["--sizes", "row=3"], "the model has no dim row; its dims are inner, rows"),
        (["--sizes", "rows=0"], "the typical size of 'rows' is 0; it must be positive"),
        (["--sizes", "rows"], "'rows' is not a choice of sizes"),
        (["--sizes", "rows=1,rows=2"], "gives 'rows' two sizes"),
        (["--sizes", "rows=1", "--emit", "onnx"], "--sizes decides about a level behind --emit=onnx"),
    ):
        done = CliRunner().invoke(app, ["compile", str(model), "-o", str(tmp_path / "out"), *arguments])
        assert done.exit_code == 1 and said in done.stderr, done.output


def test_kernels_that_are_there_already_get_them_too() -> None:
    text = str(igniter.load(product_model()).run_passes("cpu-onnx,cpu-fusion,cpu-loop").ir)
    module = parse(text).run_passes("canonicalize-loop", sizes={"d0": 5})
    assert {typical_of(op).given for op in module.ir.ops if isinstance(op, KernelOp)} == {(("d0", 5),)}


def test_sizes_that_make_a_divisor_nothing() -> None:
    """A loop that does not run at the sizes that are guessed has no iterations to divide by."""
    steps = Expr.parse("x mod ((n floordiv 128) - 0)")
    assert TypicalSizes().value(steps, 64) == 0
    assert TypicalSizes((("n", 256),)).value(steps, 64) == 0
    assert TypicalSizes((("n", 640),)).value(steps, 64) == 4
