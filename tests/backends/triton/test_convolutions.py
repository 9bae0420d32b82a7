"""Networks of convolutions in Triton's interpreter, beside ONNX Runtime: channels last, implicit products over the
places of all images, odd and empty sizes, masks of padding, groups, pools behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import LaunchOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, floordiv, mod
from igniter.transforms.conversion.block_exprs import by_blocks
from igniter.verification.tensor_cores import tf32_tolerance
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values, whole
from tests.backends.triton.recording_driver import knowing, standing_driver
from tests.ops.single_node import reference

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES: dict[int, Any] = {FLOAT: np.float32, HALF: np.float16}


def network(
    how: dict[str, Any], weight: list[int], image: tuple[int, ...], kind: int = FLOAT, last: list[Any] | None = None
) -> onnx.ModelProto:
    """A pointwise convolution of 16 channels and the one in question, each with a bias and a Relu; then `last`."""
    dtype, channels = TYPES[kind], weight[1] * how.get("group", 1)
    nodes = [
        helper.make_node("Conv", ["x", "u", "s"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w", "t"], ["c"], **how),
        helper.make_node("Relu", ["c"], ["d"]),
        *(last or []),
    ]
    nodes[-1].output[0] = "y"
    weights = {
        "u": 0.2 * values(np.float32, channels, 16, *(1 for _ in image)),
        "s": values(np.float32, channels, seed=1),
        "w": 0.1 * values(np.float32, *weight, seed=2),
        "t": values(np.float32, weight[0], seed=3),
    }
    return model(nodes, {"x": (kind, ["n", 16, *image])}, {k: v.astype(dtype) for k, v in weights.items()}, opset=17)


def compare(given: onnx.ModelProto, target: str = "cuda", batches: tuple[int, ...] = (2, 0)) -> list[tuple[int, ...]]:
    """Compares runs of some batches with ONNX Runtime's. Returns the shapes of the tensors between regions."""
    value = given.graph.input[0].type.tensor_type
    image, dtype = [d.dim_value for d in value.shape.dim][1:], TYPES[value.elem_type]
    feeds = [{"x": values(dtype, n, *image, seed=4)} for n in batches]
    found, module = whole(given, target, *feeds)
    rtol = 1e-5 if dtype is np.float32 else 2e-3
    for feed, (mine,) in zip(feeds, found, strict=True):
        theirs = np.asarray(reference(given, feed)[0])
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max(initial=0))
    regions = [op for op in module.walk() if isinstance(op, RegionOp)]
    return [tuple(d.constant or 0 for d in dims_of(v.type)) for r in regions for v in r.results]


KINDS: dict[str, tuple[dict[str, Any], list[int], tuple[int, ...]]] = {
    "3x3": ({"pads": [1, 1, 1, 1]}, [24, 32, 3, 3], (9, 11)),
    "stride, odd channels": ({"pads": [0, 1, 1, 0], "strides": [2, 2]}, [18, 20, 3, 2], (13, 12)),
    "dilation": ({"dilations": [2, 1], "pads": [2, 0, 2, 0]}, [16, 16, 3, 1], (9, 7)),
    "pointwise, stride": ({"strides": [2, 2]}, [24, 32, 1, 1], (9, 11)),
    "groups": ({"group": 2, "pads": [1, 1, 1, 1]}, [32, 16, 3, 3], (7, 5)),
    "groups of three": ({"group": 4, "pads": [1, 1, 1, 1]}, [12, 3, 3, 3], (7, 5)),
    "depthwise, stride": ({"group": 24, "pads": [1, 1, 1, 1], "strides": [2, 2]}, [24, 1, 3, 3], (8, 9)),
    "one axis": ({"pads": [2, 1]}, [20, 16, 4], (21,)),
    "volume": ({"pads": [1, 0, 1, 1, 0, 1]}, [16, 16, 3, 1, 3], (3, 4, 5)),
}
QUICK = ("3x3", "stride, odd channels", "groups")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_networks(name: str) -> None:
    how, weight, image = KINDS[name]
    turned, between, _ = compare(network(how, weight, image))
    assert turned == (0, *image, 16)
    assert between == (0, *image, weight[1] * how.get("group", 1)), "between regions the channels are last"


@pytest.mark.full
@pytest.mark.parametrize("kind", [FLOAT, HALF])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_all_kinds(name: str, kind: int) -> None:
    compare(network(*KINDS[name], kind), batches=(1, 3, 0))


@pytest.mark.full
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "GlobalAveragePool", "Resize", "Concat", "SE"])
def test_readers_of_images(op: str) -> None:
    """Pools, a Resize, a Concat along channels and a squeeze-and-excite block read images with channels last."""
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    last = {
        "MaxPool": [helper.make_node("MaxPool", ["d"], ["e"], **window)],
        "AveragePool": [helper.make_node("AveragePool", ["d"], ["e"], **window)],
        "GlobalAveragePool": [helper.make_node("GlobalAveragePool", ["d"], ["e"])],
        "Resize": [helper.make_node("Resize", ["d", "", "f"], ["e"], mode="nearest")],
        "Concat": [helper.make_node("Concat", ["b", "d"], ["e"], axis=1)],
        "SE": [
            helper.make_node("GlobalAveragePool", ["d"], ["g"]),
            helper.make_node("Sigmoid", ["g"], ["h"]),
            helper.make_node("Mul", ["d", "h"], ["e"]),
        ],
    }[op]
    given = network({"pads": [1, 1, 1, 1]}, [24, 16, 3, 3], (9, 8), last=last)
    if op == "Resize":
        given.graph.initializer.append(helper.make_tensor("f", FLOAT, [4], [1.0, 1.0, 2.0, 2.0]))
    compare(given)


def test_hidden_padding_is_not_multiplied() -> None:
    """Infinities in the weight would be NaN beside the zeros of padding; NaN of the image stays where it is."""
    given = model(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        {"x": (FLOAT, [1, 16, 5, 4]), "w": (FLOAT, [16, 16, 3, 3])},
    )
    x, w = values(np.float32, 1, 16, 5, 4), values(np.float32, 16, 16, 3, 3, seed=1)
    x[0, 3, 2, 2] = np.nan
    check(given, {"x": x, "w": w}, rtol=1e-4)


@pytest.mark.parametrize("channels", [64, 32, 48, 3])
def test_quotients_of_blocks(channels: int) -> None:
    """Of the channels of a place, and of its column in a window: the same for every element of a block of 64."""
    k = Expr.of("k")
    plain = [
        mod(k, Expr.of(channels)),
        mod(floordiv(k, Expr.of(channels)), Expr.of(3)),
        floordiv(k, Expr.of(3 * channels)),
    ]
    blocks = [by_blocks(e, {"k": 64}) for e in plain]
    for first in range(0, 9 * channels, 64):
        for lane in range(64):
            env = {"k": first + lane, "k.first": first, "k.lane": lane}
            assert [e.evaluate(env) for e in blocks] == [e.evaluate(env) for e in plain]
    uniform = all("k" not in e.symbols and "k.lane" not in e.symbols for e in blocks[1:])
    assert uniform == (channels == 64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch, target", [(80, "cuda"), (90, "cuda:sm_90+tf32"), (100, "cuda:sm_100"), (120, "cuda:sm_120")]
)
def test_implicit_products_compile_without_spills(arch: int, target: str) -> None:
    """Loads of the image are under way while blocks are multiplied, though they are masked."""
    kind = FLOAT if "tf32" in target else HALF
    nodes = [
        helper.make_node("Transpose", ["x"], ["p"], perm=[0, 3, 1, 2]),
        helper.make_node("Transpose", ["w"], ["q"], perm=[3, 2, 0, 1] if kind == HALF else [0, 3, 1, 2]),
        helper.make_node("Conv", ["p", "q", "b"], ["h"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1]),
    ]
    weight = [3, 3, 128, 128] if kind == HALF else [128, 3, 3, 128]
    given = model(nodes, {"x": (kind, [8, 28, 28, 128]), "w": (kind, weight), "b": (kind, [128])})
    module = lowered(given, target)
    (kernel,) = kernels_of(module)
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    assert len([op for op in kernel.walk() if isinstance(op, tt.DotOp)]) == 1
    made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
    assert "cp.async" in made.ptx
    found = resources_of(made, arch)
    assert found.spills == 0
    assert not found.serialized


@pytest.mark.slow
def test_a_network_in_tf32_has_its_error_and_says_so() -> None:
    """In stock ONNX Runtime: weights in the order of products are in the folder, and the report has the arithmetic."""
    given = network({"pads": [1, 1, 1, 1]}, [24, 16, 3, 3], (6, 5))
    with knowing(standing_driver()):
        options = igniter.CompileOptions(target="cuda+tf32", provider="CPUExecutionProvider")
        made = igniter.compile(given, options=options, verify=False, cache=False)
        assert made.report["f32_products"]["arithmetic"] == "tf32"
        assert "use_tf32" in made.report["f32_products"]["text"]
        names = {i.name for i in onnx.load(str(made.folder / "model.onnx"), load_external_data=False).graph.initializer}
        assert "w.2.3.1.0" in names, "the weight is stored in the order of the product"
        found = made.verify(shapes=[{"n": 2}], reference=given.SerializeToString(), budget=1.0)
    (error,) = found.max_errors.values()
    assert found.status == "passed"
    assert 1e-5 < error < tf32_tolerance(given)


def test_the_tolerance_of_tf32_is_of_products_in_sequence() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"]),
        helper.make_node("MatMul", ["x", "x"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Attention", ["c", "c", "c"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Conv", ["e", "x"], ["y"]),
    ]
    inputs: dict[str, tuple[int, list[Any]]] = {"x": (FLOAT, [4, 4])}
    assert tf32_tolerance(model(nodes, inputs)) == 2.0**-9 * 2
    assert tf32_tolerance(model(nodes[:3], inputs)) == 2.0**-9
    body = helper.make_graph(nodes[:4], "body", [], [helper.make_empty_tensor_value_info("d")])
    loop = helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)
    assert tf32_tolerance(model([loop], inputs)) == 2.0**-9 * np.sqrt(3)
    chain = [helper.make_node("MatMul", [f"x{k}" if k else "x", "x"], [f"x{k + 1}"]) for k in range(100)]
    assert tf32_tolerance(model(chain, inputs)) == 1e-2


@pytest.mark.slow
def test_few_places_split_the_window() -> None:
    """Parts of a whole number of blocks of the depth, each with places of the window of its own."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["p"], perm=[0, 3, 1, 2]),
        helper.make_node("Transpose", ["w"], ["q"], perm=[3, 2, 0, 1]),
        helper.make_node("Conv", ["p", "q"], ["h"], pads=[1, 1, 1, 1]),
        helper.make_node("Transpose", ["h"], ["y"], perm=[0, 2, 3, 1]),
    ]
    given = model(nodes, {"x": (FLOAT, [1, 3, 5, 192]), "w": (FLOAT, [3, 3, 192, 24])})
    feed = {"x": values(np.float32, 1, 3, 5, 192), "w": values(np.float32, 3, 3, 192, 24, seed=1)}
    dots = [op for op in kernels_of(lowered(given))[0].walk() if isinstance(op, tt.DotOp)]
    assert len(dots) == 1
    check(given, feed, launches=2, rtol=1e-4)
