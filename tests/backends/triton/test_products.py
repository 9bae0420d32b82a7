"""Products of blocks in Triton's interpreter, beside ONNX Runtime: types, odd and empty sizes, prologues and epilogues,
NaN behind the end of the depth, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.parser import Parser

from igniter.backends.triton.compiler import Resources, compile_source, read_resources, resources_of, signature_of
from igniter.backends.triton.interpreter import run_func, truncated
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.target import machine_of_target, target_of
from igniter.context import IgniterContext
from igniter.dialects import triton as tt
from igniter.dialects.loop import LaunchOp
from igniter.errors import IgniterError
from igniter.transforms.conversion.lower_to_triton import LowerToTriton
from igniter.verification.tensor_cores import STEP
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF, I8, I32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT32


def products_of(given: onnx.ModelProto) -> list[tt.DotOp]:
    return [op for kernel in kernels_of(lowered(given)) for op in kernel.walk() if isinstance(op, tt.DotOp)]


MATMUL = [helper.make_node("MatMul", ["x", "w"], ["y"])]


@pytest.mark.parametrize(
    "x, w, runs",
    [
        (["n", 64], [64, 48], [(33, 64, 48), (1, 64, 48), (0, 64, 48)]),
        (["n", 37], [37, "m"], [(18, 37, 21), (17, 37, 0), (65, 37, 70)]),
        (["n", "k"], ["k", 16], [(20, 100, 16), (3, 1, 16), (5, 0, 16)]),
    ],
    ids=["known", "odd depth", "depth of a run"],
)
def test_products_of_any_size(x: list[Any], w: list[Any], runs: list[tuple[int, int, int]]) -> None:
    given = model(MATMUL, {"x": (FLOAT, x), "w": (FLOAT, w)})
    assert len(products_of(given)) == 1
    feeds = [{"x": values(np.float32, n, k), "w": values(np.float32, k, m, seed=1)} for n, k, m in runs]
    check(given, *feeds, launches=1, rtol=1e-4)


def test_what_is_behind_the_depth_is_not_multiplied() -> None:
    """Infinities in the last rows and columns: a lane behind the end, of 0, by one of these would be NaN."""
    given = model(MATMUL, {"x": (FLOAT, ["n", 19]), "w": (FLOAT, [19, 18])})
    x, w = values(np.float32, 17, 19), values(np.float32, 19, 18, seed=1)
    x[3, 18] = w[18, 5] = np.inf
    x[5, 0] = np.nan
    check(given, {"x": x, "w": w}, launches=1, rtol=1e-4)


def test_halves_are_multiplied_as_they_are_and_summed_in_f32() -> None:
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])],
        {"x": (HALF, ["n", 64]), "w": (HALF, [64, 48]), "b": (HALF, [48])},
    )
    (product,) = products_of(given)
    assert [tt.element_type(v.type).name for v in product.operands] == ["f16", "f16", "f32"]
    feed = {"x": values(np.float16, 21, 64), "w": values(np.float16, 64, 48, seed=1), "b": values(np.float16, 48)}
    check(given, feed, launches=1, rtol=4e-3)


def test_brain_floats_are_multiplied_as_they_are() -> None:
    """Halves of the range of f32: the interpreter keeps their bits as integers."""
    import ml_dtypes

    bf16 = TensorProto.BFLOAT16
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Cast", ["h"], ["y"], to=FLOAT)],
        {"x": (bf16, ["n", 40]), "w": (bf16, [40, 24])},
    )
    (product,) = products_of(given)
    assert str(tt.element_type(product.a.type)) == "bf16"
    x, w = values(np.float32, 18, 40), values(np.float32, 40, 24, seed=1)
    x, w = x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    module = lowered(given)
    (got,) = run_func(module, func_of(module), [x, w], {"n": 18})
    expected = (x.astype(np.float32) @ w.astype(np.float32)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_allclose(got, expected, rtol=1e-2, atol=1e-3)


def test_bytes_are_multiplied_as_they_are() -> None:
    given = model([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], {"x": (I8, ["n", 40]), "w": (I8, [40, 24])})
    (product,) = products_of(given)
    assert [tt.width_of(v.type) for v in product.operands] == [8, 8, 32]
    rng = np.random.default_rng(0)
    check(given, {k: rng.integers(-128, 127, s).astype(np.int8) for k, s in (("x", (19, 40)), ("w", (40, 24)))})


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_linear_layer_is_one_launch(transposed: tuple[int, int]) -> None:
    """The bias and what is behind it are computed of the sums of a block."""
    a, b = transposed
    given = model(
        [
            helper.make_node("Gemm", ["x", "w", "c"], ["h"], transA=a, transB=b, alpha=0.5),
            helper.make_node("Gelu", ["h"], ["g"]),
            helper.make_node("Add", ["g", "r"], ["y"]),
        ],
        {
            "x": (FLOAT, [32, "n"] if a else ["n", 32]),
            "w": (FLOAT, [40, 32] if b else [32, 40]),
            "c": (FLOAT, [40]),
            "r": (FLOAT, ["n", 40]),
        },
    )
    assert len(products_of(given)) == 1
    feeds = [
        {
            "x": values(np.float32, *((32, n) if a else (n, 32))),
            "w": values(np.float32, *((40, 32) if b else (32, 40)), seed=1),
            "c": values(np.float32, 40, seed=2),
            "r": values(np.float32, n, 40, seed=3),
        }
        for n in (23, 1)
    ]
    check(given, *feeds, launches=1, rtol=1e-4)


def test_what_is_computed_of_factors_is_part_of_the_product() -> None:
    """A weight of bytes with a scale of each column, and rows that are rectified: both in front of the product."""
    given = model(
        [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1),
            helper.make_node("Relu", ["x"], ["p"]),
            helper.make_node("MatMul", ["p", "d"], ["y"]),
        ],
        {"x": (FLOAT, ["n", 48]), "w": (I8, [48, 24]), "s": (FLOAT, [24])},
    )
    feed = {
        "x": values(np.float32, 18, 48),
        "w": np.random.default_rng(2).integers(-128, 127, (48, 24)).astype(np.int8),
        "s": np.abs(values(np.float32, 24, seed=3)),
    }
    check(given, feed, rtol=1e-4)


def test_batches_are_programs() -> None:
    given = model(MATMUL, {"x": (FLOAT, ["b", 3, "n", 32]), "w": (FLOAT, ["b", 3, 32, 20])})
    assert len(products_of(given)) == 1
    runs = [{"x": values(np.float32, b, 3, n, 32), "w": values(np.float32, b, 3, 32, 20)} for b, n in ((2, 17), (0, 5))]
    check(given, *runs, launches=1, rtol=1e-4)


def test_rows_of_a_product_that_are_normalised_are_a_launch_behind_it() -> None:
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"], axis=-1)],
        {"x": (FLOAT, ["n", 32]), "w": (FLOAT, [32, 24])},
    )
    check(given, {"x": values(np.float32, 19, 32), "w": values(np.float32, 32, 24)}, launches=2, rtol=1e-4)


@pytest.mark.parametrize(
    "how, image, weight",
    [
        ({"pads": [1, 1, 1, 1]}, ["n", 16, 18, 18], [24, 16, 3, 3]),
        ({"strides": [2, 2], "pads": [0, 1, 1, 0]}, ["n", 5, 35, 33], [20, 5, 3, 2]),
        ({"dilations": [2, 1]}, ["n", 16, 20, "w"], [16, 16, 3, 1]),
        ({}, ["n", 32, 16, 16], [16, 32, 1, 1]),
        ({"group": 2, "pads": [1, 1, 1, 1]}, ["n", 32, 17, 17], [32, 16, 3, 3]),
    ],
    ids=["3x3", "stride, few channels", "dilation, width of a run", "1x1", "groups"],
)
def test_convolutions(how: dict[str, Any], image: list[Any], weight: list[int]) -> None:
    given = model(
        [helper.make_node("Conv", ["x", "w", "b"], ["h"], **how), helper.make_node("Relu", ["h"], ["y"])],
        {"x": (FLOAT, image), "w": (FLOAT, weight), "b": (FLOAT, [weight[0]])},
    )
    assert len(products_of(given)) == 1
    shape = [{"n": 2, "w": 19}.get(d, d) if isinstance(d, str) else d for d in image]
    feed = {
        "x": values(np.float32, *shape),
        "w": values(np.float32, *weight, seed=1),
        "b": values(np.float32, weight[0], seed=2),
    }
    check(given, feed, launches=1, rtol=1e-4)


@pytest.mark.parametrize("kind", [FLOAT, HALF, I8])
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
def test_products_compile_without_spills(kind: int, arch: int) -> None:
    """Blocks of the largest size, with an epilogue; halves and bytes by tensor cores."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    if kind == I8:
        nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    module = lowered(model(nodes, {"x": (kind, ["n", 768]), "w": (kind, [768, 3072])}))
    (kernel,) = kernels_of(module)
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages)
    assert ("mma.sync" in made.ptx) == (kind != FLOAT)
    assert "cp.async" in made.ptx, "loads are under way while blocks are multiplied"
    assert resources_of(made, arch).spills == 0


@pytest.mark.slow
@pytest.mark.parametrize("op", ["Gelu", "Relu"])
@pytest.mark.parametrize("arch", [90, 100])
def test_products_of_tensor_cores_do_not_wait_for_each_other(arch: int, op: str) -> None:
    """ptxas's message C7514: a load between the last product and its use brings it. With few operations on the sums the
    blocks are the widest."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["s"]),
        helper.make_node(op, ["s"], ["y"]),
    ]
    given = model(nodes, {"x": (HALF, [4096, 4096]), "w": (HALF, [4096, 4096]), "b": (HALF, [4096])})
    module = lowered(given, f"cuda:sm_{arch}")
    (kernel,) = kernels_of(module)
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
    assert ("wgmma.mma_async" if arch == 90 else "tcgen05.mma") in made.ptx
    found = resources_of(made, arch)
    assert not found.serialized
    assert found.spills == 0
    (dot,) = [each for each in kernel.walk() if isinstance(each, tt.DotOp)]
    assert (tt.shape_of(dot.b.type)[1] == 256) == (op == "Relu")


def test_a_product_that_waits_is_read_from_the_report() -> None:
    text = (
        "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non "
        "wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline stage in "
        "the function 'kernel' in line 0\nptxas info    : Used 157 registers, used 1 barriers\n"
    )
    assert read_resources(text) == Resources(157, 0, 0, 0, serialized=True)
    assert not read_resources("ptxas info    : Used 157 registers\n").serialized


GROUPED = """
loop.kernel @product symbols [b, n] (%x: tensor<?x?x64xf32, #sym.dims<b, n, 64>>, %w: tensor<64x48xf32>)
    -> (tensor<?x?x48xf32, #sym.dims<b, n, 48>>) {
  %h = loop.nest "matmul" [b_: parallel b, i: parallel n, j: parallel 48, k: reduction 64] schedule [
      b_ grid fuse "l0", i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16,
      k vector 16, launch warps 1 stages 1 group 2] -> tensor<?x?x48xf32, #sym.dims<b, n, 48>> {
    %u = loop.read %x[b_, i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [b_, i, j]
  }
  loop.return %h : tensor<?x?x48xf32, #sym.dims<b, n, 48>>
}
"""


@pytest.mark.parametrize("persistent", ["", " persistent 4"])
@pytest.mark.parametrize("sizes", [(1, 80), (2, 33), (3, 5), (2, 0), (0, 40)])
def test_programs_in_groups_cover_every_block_once(sizes: tuple[int, int], persistent: str) -> None:
    """Groups of 2 blocks of rows: whole ones, a smaller last one, fewer blocks than a group. Persistent programs have
    several blocks each, one more or less than others, or one."""
    text = GROUPED.replace("group 2]", f"group 2{persistent}]")
    module = Parser(IgniterContext().on(machine_of_target(target_of("cuda")), None, {}), text).parse_module()
    LowerToTriton().apply(IgniterContext(), module)
    b, n = sizes
    x, w = values(np.float32, b, n, 64), values(np.float32, 64, 48, seed=1)
    (mine,) = run_func(module, func_of(module), [x, w], {"b": b, "n": n})
    np.testing.assert_allclose(mine, x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["tf32", "tf32x3"])
def test_f32_is_multiplied_by_tensor_cores_on_request(how: str) -> None:
    """The interpreter truncates factors to TF32, and multiplies three products for `tf32x3` as one of f32."""
    given = model(MATMUL, {"x": (FLOAT, ["n", 256]), "w": (FLOAT, [256, 512])})
    module = lowered(given, f"cuda+{how}")
    (kernel,) = kernels_of(module)
    assert [op.precision for op in kernel.walk() if isinstance(op, tt.DotOp)] == [how]
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    for arch in 80, 90, 100, 120:
        made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages)
        found = made.ptx.count("mma.sync")
        assert found and ".tf32" in made.ptx
        assert resources_of(made, arch).spills == 0
    x, w = values(np.float32, 33, 256), values(np.float32, 256, 512, seed=1)
    (mine,) = run_func(module, func_of(module), [x, w], {"n": 33})
    factors = (truncated(x), truncated(w)) if how == "tf32" else (x, w)
    np.testing.assert_allclose(mine, factors[0] @ factors[1], rtol=1e-4, atol=1e-4)
    error = np.abs(mine.astype(np.float64) - x.astype(np.float64) @ w)
    assert (error <= STEP * (np.abs(x) @ np.abs(w))).all()
    assert error.max() < STEP * np.abs(mine).max()
    assert (error.max() > 1e-4 * np.abs(mine).max()) == (how == "tf32")


def test_halves_are_as_they_were_where_tf32_is_asked_for() -> None:
    given = model(MATMUL, {"x": (HALF, ["n", 256]), "w": (HALF, [256, 512])})
    assert str(kernels_of(lowered(given, "cuda+tf32"))[0]) == str(kernels_of(lowered(given))[0])


def test_what_cannot_be_asked_of_a_target_is_said() -> None:
    from igniter.backends.triton.target import target_of

    assert target_of("cuda:sm_90+tf32").name == "cuda:sm_90+tf32"
    with pytest.raises(IgniterError, match=r"no target 'cuda\+tf33': what can be asked of it is \+tf32 or \+tf32x3"):
        target_of("cuda+tf33")
