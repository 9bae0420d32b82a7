"""Attention whose masks are comparisons of positions: blocks of keys that no row sees are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects import scf

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.estimates import work_of
from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.loop import LaunchOp
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES = {FLOAT: np.float32, HALF: np.float16}
LOW = float(np.finfo(np.float32).min)


def attention(
    kind: int = FLOAT,
    heads: int = 2,
    shared: int = 2,
    rows: Any = "s",
    keys: Any = "t",
    head: int = 16,
    causal: int = 1,
) -> onnx.ModelProto:
    """The op, of batch 1."""
    sizes = {"q": [1, heads, rows, head], "k": [1, shared, keys, head], "v": [1, shared, keys, head]}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=causal)
    return model([node], {name: (kind, list(dims)) for name, dims in sizes.items()}, opset=23)


def given(rows: int, keys: int, kind: int = FLOAT, heads: int = 2, shared: int = 2, head: int = 16) -> dict[str, Any]:
    shapes = {"q": (1, heads, rows, head), "k": (1, shared, keys, head), "v": (1, shared, keys, head)}
    return {name: values(TYPES[kind], *shape, seed=k) for k, (name, shape) in enumerate(shapes.items())}


def banded(low: float, last: int, first: int | None = None) -> onnx.ModelProto:
    """Attention with a mask of ranges: row i sees the keys j <= i + last, and j >= i + first."""
    node = helper.make_node
    hidden = [node("Greater", ["j", "end"], ["late"])]
    if first is not None:
        hidden += [node("Less", ["j", "begin"], ["early"]), node("Or", ["late", "early"], ["hidden"])]
    masked = [node("Where", ["hidden" if first is not None else "late", "low", "scaled"], ["s"])]
    nodes = [
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["raw"]),
        node("Mul", ["raw", "scale"], ["scaled"]),
        node("Shape", ["q"], ["rows"], start=2, end=3),
        node("Shape", ["k"], ["keys"], start=2, end=3),
        node("Squeeze", ["rows"], ["count"]),
        node("Squeeze", ["keys"], ["length"]),
        node("Range", ["zero", "count", "one"], ["i0"]),
        node("Range", ["zero", "length", "one"], ["j0"]),
        node("Unsqueeze", ["i0", "second"], ["i"]),
        node("Unsqueeze", ["j0", "first"], ["j"]),
        node("Add", ["i", "last_of"], ["end"]),
        node("Add", ["i", "first_of"], ["begin"]),
        *hidden,
        *masked,
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    weights: dict[str, Any] = {
        "scale": np.float32(0.25),
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "first": np.array([0], np.int64),
        "second": np.array([1], np.int64),
        "last_of": np.array(last, np.int64),
        "first_of": np.array(first or 0, np.int64),
        "low": np.float32(low),
    }
    inputs: dict[str, tuple[int, list[Any]]] = {
        "q": (FLOAT, [1, 2, "s", 16]),
        "k": (FLOAT, [1, 2, "t", 16]),
        "v": (FLOAT, [1, 2, "t", 16]),
    }
    return model(nodes, inputs, weights)


def loops_of(found: onnx.ModelProto) -> int:
    """The number of loops over blocks of keys."""
    (kernel,) = kernels_of(lowered(found))
    return sum(isinstance(op, scf.ForOp) for op in kernel.walk())


@pytest.mark.slow
def test_a_causal_mask_of_any_rows_and_keys() -> None:
    check(attention(), *(given(*sizes) for sizes in ((1, 1), (40, 40), (20, 70), (50, 20))), launches=1, rtol=1e-5)
    found = attention(HALF, 2, 1, 70, 70, head=64)
    check(found, given(70, 70, HALF, 2, 1, 64), launches=1, rtol=4e-3)


@pytest.mark.parametrize("low", [-np.inf, LOW])
@pytest.mark.parametrize(
    "last, first",
    [
        (3, None),
        pytest.param(-45, None, marks=pytest.mark.full),
        (5, -20),
        pytest.param(-3, -3, marks=pytest.mark.full),
        pytest.param(-40, -50, marks=pytest.mark.full),
        pytest.param(90, 40, marks=pytest.mark.full),
    ],
)
def test_limits_of_positions_also_where_rows_see_no_key(low: float, last: int, first: int | None) -> None:
    """A row without a key is NaN for scores of -inf, and the mean of all values for finite ones."""
    found = banded(low, last, first)
    assert loops_of(found) == (3 if first is not None else 2)
    check(found, given(33, 40), given(40, 17), launches=1, rtol=1e-5)


@pytest.mark.slow
def test_hidden_keys_of_blocks_left_out_are_not_read() -> None:
    """Their NaN has no effect on the rows whose blocks leave them out."""
    module = lowered(attention(heads=1, shared=1, rows=64, keys=64))
    func = func_of(module)
    feeds = given(64, 64, heads=1, shared=1)
    (plain,) = run_func(module, func, list(feeds.values()), {})
    for name in "kv":
        dirty = {key: value.copy() for key, value in feeds.items()}
        dirty[name][:, :, 63, 3] = np.nan
        (made,) = run_func(module, func, list(dirty.values()), {})
        np.testing.assert_array_equal(made[:, :, :32], plain[:, :, :32])
        assert np.isnan(made[:, :, 63]).any()


def test_a_mask_that_is_data_leaves_no_block_out() -> None:
    """A finite low number may be the maximum of a row, so rows see all blocks."""
    node = helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], is_causal=1)
    inputs = {"q": [1, 2, "s", 16], "k": [1, 2, "t", 16], "v": [1, 2, "t", 16]}
    kinds: dict[str, tuple[int, list[Any]]] = {name: (FLOAT, list(dims)) for name, dims in inputs.items()}
    found = model([node], {**kinds, "m": (TensorProto.BOOL, ["s", "t"])}, opset=23)
    mask = np.random.default_rng(0).random((40, 40)) < 0.5
    mask[3] = False
    check(found, {**given(40, 40), "m": mask}, launches=1, rtol=1e-5)


@pytest.mark.slow
def test_the_programs_with_the_most_keys_begin_first() -> None:
    found = attention(HALF, 4, 2, 256, 256, head=64)
    module = lowered(found, "cuda:sm_90")
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    (kernel,) = kernels_of(module)
    loops = [op for op in kernel.walk() if isinstance(op, scf.ForOp)]
    assert len(loops) == 2
    blocks = launch.grid.evaluate({}) // 4

    counts = [work_of(kernel, [], program).products["f16"] for program in range(4 * blocks)]
    assert counts == sorted(counts, reverse=True)
    assert counts[:4] == [counts[0]] * 4 > [counts[-1]] * 4


@pytest.mark.parametrize(
    "arch",
    [pytest.param(80, marks=pytest.mark.full), 90, *(pytest.param(a, marks=pytest.mark.full) for a in (100, 120))],
)
@pytest.mark.parametrize("head", [64, pytest.param(128, marks=pytest.mark.full)])
def test_no_causal_kernel_spills_or_serialises_its_products(arch: int, head: int) -> None:
    for rows in "s", 4096:
        module = lowered(attention(HALF, 32, 8, rows, rows, head), f"cuda:sm_{arch}")
        (kernel,) = kernels_of(module)
        (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
        compiled = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
        found = resources_of(compiled, arch)
        assert (found.spills, found.serialized) == (0, False)


@pytest.mark.parametrize("keys", [9, pytest.param(300, marks=pytest.mark.full)])
def test_a_step_of_decoding_has_the_heads_that_share_keys_as_rows(keys: int) -> None:
    found = attention(HALF, 6, 2, 1, "t", causal=0)
    kernels = kernels_of(lowered(found))
    assert len(kernels) == 2
    dots = [op for op in kernels[0].walk() if isinstance(op, tt.DotOp)]
    assert {tt.shape_of(op.a.type)[0] for op in dots} == {16}
    check(found, given(1, keys, HALF, 6, 2), launches=2, rtol=4e-3)


def test_heads_as_rows_with_a_mask_of_positions_and_what_follows() -> None:
    found = attention(HALF, 6, 2, 1, 150, causal=1)
    found.graph.node.append(helper.make_node("Add", ["y", "q"], ["r"]))
    found.graph.output[0].name = "r"
    check(found, given(1, 150, HALF, 6, 2), rtol=4e-3)


def test_large_scores_in_single_precision() -> None:
    """The product of a maximum and the scale is rounded by more than the range of exp2."""
    feeds = given(20, 40)
    feeds["q"] *= np.float32(1e6)
    feeds["k"] *= np.float32(1e6)
    check(attention(causal=0), feeds, launches=1, rtol=1e-5)
