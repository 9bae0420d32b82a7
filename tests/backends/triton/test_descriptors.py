"""Products whose blocks are loaded and stored by descriptors: in the interpreter beside ONNX Runtime, compiled for GPUs
that have them, and as libraries with a driver that encodes tensor maps."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Generator
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.printer import Printer

import igniter
from igniter.backends.triton.compiler import TensorMap, compile_source, compile_ttir, resources_of, signature_of
from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.target import machine_of_target, target_of
from igniter.backends.triton.texts import emit_func
from igniter.backends.triton.texts import kernels_of as kernels_of_text
from igniter.compiler.compilation import CompileOptions
from igniter.context import IgniterContext
from igniter.dialects import triton as tt
from igniter.dialects.loop import IfOp, KernelOp, LaunchOp
from igniter.errors import IgniterError
from igniter.schedules import product_blocks
from igniter.transforms.conversion.lower_to_triton import LowerToTriton
from igniter.transforms.conversion.schedule_kernels import schedule_kernel
from tests.backends.triton import tensor_maps
from tests.backends.triton.programs import func_of, kernels_of, lowered, model, sizes_of, values
from tests.backends.triton.recording_driver import RecordingDriver, knowing
from tests.ops.single_node import reference

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
TARGET = "cuda:sm_90"


@pytest.fixture
def always() -> Generator[None]:
    """The author takes descriptors for all products of 16-bit factors: blocks that gain by them are large to run."""
    with mock.patch.object(product_blocks, "MAPPED_SUMS", 0):
        yield


def launches_of(module: ModuleOp) -> list[LaunchOp]:
    return [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]


def launch_of(module: ModuleOp) -> LaunchOp:
    (launch,) = launches_of(module)
    return launch


def linear(rows: Any, depth: int, columns: int, transposed: bool = False, then: str = "Relu") -> onnx.ModelProto:
    """A product with a bias and a function; with `transposed`, the depth is the last dim of the weights."""
    return model(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=int(transposed)),
            helper.make_node(then, ["h"], ["y"]),
        ],
        {
            "x": (HALF, [rows, depth]),
            "w": (HALF, [columns, depth] if transposed else [depth, columns]),
            "b": (HALF, [columns]),
        },
    )


def compare(given: onnx.ModelProto, module: ModuleOp, feeds: dict[str, Any], rtol: float = 4e-3) -> None:
    arrays = list(feeds.values())
    (found,) = run_func(module, func_of(module), arrays, sizes_of(func_of(module), arrays))
    (wanted,) = reference(given, feeds)
    np.testing.assert_allclose(found.astype(np.float32), np.asarray(wanted, np.float32), rtol=rtol, atol=0.03)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("transposed", [False, True])
def test_blocks_end_with_their_tensor(transposed: bool) -> None:
    """Sizes that no block divides; NaN and infinities stay in their rows, and rows of none are no launch."""
    given = linear("n", 72, 88, transposed)
    module = lowered(given, TARGET)
    assert len(launch_of(module).maps) == 3
    (kernel,) = kernels_of(module)
    assert len([op for op in kernel.walk() if isinstance(op, tt.DescriptorLoadOp)]) == 2
    for n in (33, 1, 0):
        x = values(np.float16, n, 72)
        if n > 1:
            x[2, 71], x[5, 0], x[32, 3] = np.inf, np.nan, -np.inf
        w = values(np.float16, *((88, 72) if transposed else (72, 88)), seed=1) / np.float16(8)
        compare(given, module, {"x": x, "w": w, "b": values(np.float16, 88)})


@pytest.mark.usefixtures("always")
def test_batches_have_a_dim_of_their_own() -> None:
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (HALF, ["b", 40, 24]), "w": (HALF, ["b", 24, 32])}
    )
    module = lowered(given, TARGET)
    assert [len(sizes) for sizes in launch_of(module).maps] == [3, 3, 3]
    for batch in (3, 0):
        compare(given, module, {"x": values(np.float16, batch, 40, 24), "w": values(np.float16, batch, 24, 32, seed=1)})


@pytest.mark.usefixtures("always")
def test_bf16_is_loaded_and_stored_by_descriptors() -> None:
    """Beside NumPy, as ONNX Runtime has no kernel on CPUs. Triton's interpreter truncates results to bf16: 2^-7."""
    kind, dtype = TensorProto.BFLOAT16, ml_dtypes.bfloat16
    given = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (kind, ["n", 72]), "w": (kind, [72, 88])})
    module = lowered(given, TARGET)
    assert len(launch_of(module).maps) == 3
    w = (values(np.float32, 72, 88, seed=1) / 8).astype(dtype)
    for n in (37, 1, 0):
        x = values(np.float32, n, 72).astype(dtype)
        (found,) = run_func(module, func_of(module), [x, w], {"n": n})
        wanted = x.astype(np.float32) @ w.astype(np.float32)
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2.0**-7, atol=1e-4)


@pytest.mark.usefixtures("always")
def test_other_products_have_addresses() -> None:
    """Rows of 66 bytes; factors of f32; strides that depend on sizes."""
    for given in (
        linear("n", 32, 33),
        model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (FLOAT, ["n", 32]), "w": (FLOAT, [32, 32])}),
        model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (HALF, ["n", "k"]), "w": (HALF, ["k", 32])}),
    ):
        assert not any(launch.maps for launch in launches_of(lowered(given, TARGET)))


EITHER = """
loop.kernel @either symbols [d] (%x: tensor<40x?xf32, #sym.dims<40, d>>, %w: tensor<?x36xf32, #sym.dims<d, 36>>)
    -> (tensor<40x36xf32>) {
  %h = loop.nest "matmul" [i: parallel 40, j: parallel 36, k: reduction d]
      schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16,
                launch warps 1 stages 2 descriptors] -> tensor<40x36xf32> {
    %u = loop.read %x[i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [i, j]
  }
  loop.return %h : tensor<40x36xf32>
}
"""


def test_sizes_select_descriptors_or_addresses() -> None:
    """Rows of whole 16 bytes, others, and a depth of 0, which no map can have."""
    ctx = IgniterContext()
    module = Parser(ctx, EITHER).parse_module()
    LowerToTriton().apply(ctx, module)
    module.verify()
    first, second = (op for op in func_of(module).block.ops if isinstance(op, IfOp))
    for depth, described in ((20, True), (37, False), (0, False)):
        assert (first.guards[0].evaluate({"d": depth}) >= 0) == described
        assert (second.guards[0].evaluate({"d": depth}) >= 0) != described
        x, w = values(np.float32, 40, depth), values(np.float32, depth, 36, seed=1)
        (found,) = run_func(module, func_of(module), [x, w], {"d": depth})
        np.testing.assert_allclose(found, x @ w, rtol=1e-4, atol=1e-4)


def test_gpus_before_sm_90_have_no_descriptors() -> None:
    assert launch_of(lowered(linear(4096, 4096, 4096), "cuda")).maps == ()


@pytest.mark.slow
def test_large_blocks_of_halves_have_descriptors_on_an_h100() -> None:
    """They have fewer registers than with addresses, and a Gelu of 128 x 256 sums does not spill."""
    module = lowered(linear(4096, 4096, 4096, then="Gelu"), TARGET)
    launch, (kernel,) = launch_of(module), kernels_of(module)
    assert len(launch.maps) == 3
    assert launch.grid.constant == 32 * 16
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, 90)
    resources = resources_of(made, 90)
    assert (resources.spills, resources.serialized) == (0, False)
    assert resources.registers < 170
    assert "cp.async.bulk.tensor" in made.ptx
    assert [(m.parameter, m.swizzle) for m in made.maps] == [(1, 3), (6, 3), (11, 3)]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("arch", [100, 120])
def test_later_gpus_have_descriptors_too(arch: int) -> None:
    module = lowered(linear(128, 64, 128), TARGET)
    launch, (kernel,) = launch_of(module), kernels_of(module)
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
    assert resources_of(made, arch).spills == 0
    with pytest.raises(IgniterError, match="cannot run on sm_80: they exist since sm_90"):
        compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, 80)


@pytest.mark.usefixtures("always")
def test_both_ways_to_ptx_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """Triton adds the sizes and strides of a descriptor to the arguments of a Python function alone."""
    module = lowered(linear(64, 64, 64), TARGET)
    launch, (kernel,) = launch_of(module), kernels_of(module)
    alone = kernel.clone()
    alone.sym_name = StringAttr("kernel")
    Printer(print_generic_format=True).print_op(ModuleOp([alone]))
    text, count = capsys.readouterr().out, len(kernel.body.block.args)
    other = compile_ttir(text, count, launch.warps, launch.stages, 90, descriptors=True)
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, 90)
    assert made.ptx.count("cp.async.bulk.tensor") == other.ptx.count("cp.async.bulk.tensor") > 0


ROWS, SUMS = "tensor<?x96xf16, #sym.dims<m, 96>>", "tensor<?x64xf32, #sym.dims<m, 64>>"
SPECIAL = f"""
loop.kernel @special symbols [m] (%x: {ROWS}, %w: tensor<96x64xf16>) -> ({SUMS}) {{
  %h = loop.nest "matmul" [i: parallel m, j: parallel 64, k: reduction 96]
      schedule [i by 128 grid fuse "l0", j by 64 grid fuse "l0", k by 64, i vector 128, j vector 64, k vector 64,
                launch warps 4 stages 3 descriptors specialized] -> {SUMS} {{
    %u = loop.read %x[i, k] : f16
    %v = loop.read %w[k, j] : f16
    %s = arith.extf %u : f16 to f32
    %t = arith.extf %v : f16 to f32
    %p = arith.mulf %s, %t : f32
    loop.yield add %p at [i, j]
  }}
  loop.return %h : {SUMS}
}}
"""


def special() -> ModuleOp:
    """Launches of a product whose blocks other warps load, by a schedule of hand."""
    ctx = IgniterContext().on(machine_of_target(target_of("cuda:sm_100")), None, {})
    module = Parser(ctx, SPECIAL).parse_module()
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    func = schedule_kernel(ctx, kernel, "lower-to-triton,plan-buffers", "", verify_each=True).func
    made = func.parent_op()
    assert isinstance(made, ModuleOp)
    return made


@pytest.mark.slow
def test_other_warps_load_the_blocks_of_later_gpus() -> None:
    """The program has twice its warps then. Triton fails to compile such loops for sm_90."""
    module = special()
    x, w = values(np.float16, 37, 96), values(np.float16, 96, 64, seed=1)
    (found,) = run_func(module, func_of(module), [x, w], {"m": 37})
    np.testing.assert_allclose(found, x.astype(np.float32) @ w.astype(np.float32), rtol=1e-5, atol=1e-4)
    (text,) = kernels_of_text(emit_func(func_of(module)))
    assert text.specialized
    for arch in (100, 120):
        made = text.compiled(arch)
        assert made.threads == 2 * 128
        assert "setmaxnreg" in made.ptx
        assert resources_of(made, arch).spills == 0
    with pytest.raises(IgniterError, match=r"kernel special\.0: warps for loads exist since sm_100, not on sm_90"):
        text.compiled(90)


# -- libraries ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def driver() -> RecordingDriver:
    return RecordingDriver(capability=90)


def compiled(driver: RecordingDriver) -> tuple[onnx.ModelProto, igniter.Artifact]:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", HALF, ["n", 40])],
        [helper.make_tensor_value_info("y", HALF, ["n", 48])],
        [numpy_helper.from_array(values(np.float16, 40, 48, seed=1), "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = CompileOptions(target=TARGET, provider="CPUExecutionProvider", sizes=(("n", 64),))
    with knowing(driver):
        return made, igniter.load(made).compile(options=options, cache=False, verify=False)


@pytest.mark.slow
@pytest.mark.usefixtures("always")
def test_the_host_encodes_maps_at_each_launch(driver: RecordingDriver) -> None:
    given, artifact = compiled(driver)
    driver.reset()
    session: Any = artifact.session()
    for n in (37, 1, 0):
        driver.calls.clear()
        x = values(np.float16, n, 40)
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, reference(given, {"x": x})[0], rtol=4e-3, atol=0.03)
        assert driver.calls.count("cuTensorMapEncodeTiled") == (3 if n else 0)
        assert driver.calls.count("cuLaunchKernel") == (1 if n else 0)
    driver.fails["cuTensorMapEncodeTiled"] = 1
    with pytest.raises(Exception, match="cuTensorMapEncodeTiled gives CUDA_ERROR_INVALID_VALUE"):
        session.run(None, {"x": values(np.float16, 2, 40)})
    driver.fails.clear()
    del session
    gc.collect()


def test_the_driver_refuses_maps_that_a_gpu_cannot_read() -> None:
    """As the real one does; and a launch checks that its map is the one that the kernel reads."""
    memory = (ctypes.c_char * 256)()
    out = (ctypes.addressof(memory) + 63) & ~63
    array64, array32 = ctypes.c_uint64 * 2, ctypes.c_uint32 * 2

    def encoded(
        address: int = 4096,
        sizes: tuple[int, int] = (64, 8),
        stride: int = 128,
        box: tuple[int, int] = (64, 8),
        swizzle: int = 3,
        place: int = out,
    ) -> str | None:
        given = array64(*sizes), array64(stride), array32(*box), array32(1, 1)
        return tensor_maps.encode(place, 6, 2, address, *map(ctypes.addressof, given), 0, swizzle, 2, 0)

    assert encoded() is None
    wanted = TensorMap(0, 2, 6, 3, 2, (8, 64))
    rest = [(ctypes.c_int64 * 1)(n) for n in (8, 64, 64, 1)]
    places = [out, *map(ctypes.addressof, rest)]
    assert tensor_maps.decode(wanted, places) == (4096, [8, 64])
    assert encoded(box=(32, 8)) is None
    with pytest.raises(AssertionError):
        tensor_maps.decode(wanted, places)
    for refused in (
        encoded(address=4104),
        encoded(address=0),
        encoded(sizes=(64, 0)),
        encoded(stride=136),
        encoded(box=(64, 257)),
        encoded(box=(128, 8)),
        encoded(box=(4, 8)),
        encoded(place=out + 32),
    ):
        assert refused is not None
