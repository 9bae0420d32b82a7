"""Schedules by size: at and beside thresholds, in Triton's interpreter beside ONNX Runtime, and in libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from benchmark.models.half import bert, to_half
from igniter.analysis.typical_sizes import TypicalSizes, sizes_with
from igniter.backends.triton.target import machine_of_target, target_of
from igniter.compiler.compilation import CompileOptions
from igniter.dialects.loop import FuncOp, IfOp
from igniter.dialects.sym.expr import Expr
from igniter.schedules.triton_author import TritonAuthor
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values, versions_of
from tests.backends.triton.recording_driver import RecordingDriver, knowing
from tests.backends.triton.test_attention import given, heads
from tests.ops.single_node import kernel_of, module_of, reference

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def product(depth: int, columns: int, softmax: bool = False) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["s"])]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["s"], ["y"], axis=-1))
    return model(nodes, {"x": (HALF, ["n", depth]), "w": (HALF, [depth, columns]), "b": (HALF, [columns])})


def rows(depth: int, columns: int, count: int) -> dict[str, Any]:
    w = values(np.float16, depth, columns, seed=1) / np.float16(16)
    return {"x": values(np.float16, count, depth), "w": w, "b": values(np.float16, columns, seed=2)}


def limits(func: FuncOp) -> list[int]:
    """The thresholds of a func's variants, in rising order: the largest size of each."""
    guards = [op.guards[-1] for op in func.block.ops if isinstance(op, IfOp)][:-1]
    found = [dict(guard.terms)[()] for guard in guards]
    assert found == sorted(set(found))
    return found


def running(func: FuncOp, sizes: Mapping[str, int]) -> list[int]:
    """The versions that run at some sizes."""
    versions = [op for op in func.block.ops if isinstance(op, IfOp)]
    return [k for k, op in enumerate(versions) if all(guard.evaluate(sizes) >= 0 for guard in op.guards)]


@pytest.mark.slow
def test_a_product_has_schedules_for_few_middle_and_many_rows() -> None:
    made = product(256, 512)
    func = func_of(lowered(made, variants=True))
    few, middle = limits(func)
    (symbol,) = func.symbol_names
    sizes = (0, 1, few, few + 1, middle, middle + 1, 100_000)
    assert [running(func, {symbol: n}) for n in sizes] == [[0], [0], [0], [1], [1], [2], [2]]
    check(made, *(rows(256, 512, n) for n in (1, few, few + 1)), rtol=4e-3)


@pytest.mark.full
def test_a_product_around_its_thresholds() -> None:
    made = product(256, 512)
    few, middle = limits(func_of(lowered(made, variants=True)))
    check(made, *(rows(256, 512, n) for n in (0, few - 1, few, middle - 1, middle, middle + 1, 3000)), rtol=4e-3)


def test_versions_share_equal_kernels() -> None:
    module = lowered(product(512, 512, softmax=True), variants=True)
    names = [[launch.kernel for launch in version] for version in versions_of(func_of(module))]
    assert len({version[0] for version in names}) == 3, "products"
    assert len({version[1] for version in names}) == 1, "the softmax"
    assert len(kernels_of(module)) == 4


@pytest.mark.slow
def test_parts_of_the_depth_are_of_the_variants_for_few_rows() -> None:
    made = product(2048, 64)
    func = func_of(lowered(made, variants=True))
    counts = [len(version) for version in versions_of(func)]
    assert counts[0] > counts[-1], "the sum of the parts is a launch"
    (few, _) = limits(func)
    check(made, *(rows(2048, 64, n) for n in (3, few + 1)), rtol=4e-3)


def test_an_arena_for_many_rows_has_no_room_for_the_parts_of_as_many() -> None:
    func = func_of(lowered(product(2048, 64), variants=True))
    (scratch,) = func.scratch_attr.data if func.scratch_attr is not None else (None,)
    assert scratch is not None
    symbol = func.symbol_names[0]
    a_row = scratch.evaluate({symbol: 1 << 20}) / (1 << 20)
    assert a_row < 2 * 64 * 4, "the sums of a row, in f16 and f32"
    assert scratch.evaluate({symbol: 100}) >= 2 * 4 * 64 * 100, "at least two parts"


@pytest.mark.full
def test_attention_has_blocks_of_fewer_rows_for_few_tokens() -> None:
    made = heads(HALF, "added", head=64, features=64, count=12)
    func = func_of(lowered(made, variants=True))
    (most, *_) = limits(func)
    symbols = func.symbol_names

    def feeds(batch: int, tokens: int) -> dict[str, Any]:
        mask = np.zeros((batch, 1, 1, tokens), np.float16)
        mask[:, :, :, -1] = -10000
        found = given(batch, tokens, tokens, kind=HALF, head=64, features=64, count=12)
        return {**found, "m": mask}

    runs = [(1, 20), (most // 16, 16), (most // 16 + 1, 16)]
    assert [running(func, dict(zip(symbols, run, strict=True))) for run in runs[-2:]] == [[0], [1]]
    check(made, *(feeds(*run) for run in runs), rtol=4e-3)


@pytest.mark.parametrize(
    "made",
    [
        model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (HALF, [512, 512]), "w": (HALF, [512, 512])}),
        model([helper.make_node("Softmax", ["x"], ["y"])], {"x": (FLOAT, ["n", 256])}),
        model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["n", "m"])}),
    ],
    ids=["known sizes", "rows", "elements"],
)
def test_there_are_none_where_one_schedule_suits_all(made: onnx.ModelProto) -> None:
    module = lowered(made, variants=True)
    assert not any(isinstance(op, IfOp) for op in func_of(module).walk())
    assert str(module) == str(lowered(made))


@pytest.mark.full
def test_convolutions_of_any_batch() -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    made = model([node], {"x": (HALF, ["n", 32, 14, 14]), "w": (HALF, [64, 32, 3, 3])})
    func = func_of(lowered(made, variants=True))
    (most, *_) = limits(func)
    weight = values(np.float16, 64, 32, 3, 3, seed=1) / np.float16(16)
    check(made, *({"x": values(np.float16, n, 32, 14, 14), "w": weight} for n in (most, most + 1)), rtol=4e-3)


def test_thresholds_are_where_the_estimates_cross() -> None:
    """The size of a variant is at most its threshold, and the schedules on both sides are the best at their sizes."""
    kernel = kernel_of(module_of(product(512, 512)))
    found = TritonAuthor().variants(kernel, machine_of_target(target_of("cuda")))
    assert found is not None and found.rest is not None
    sizes = [each.what.evaluate(each.typical) for each in found.variants]
    assert all(size <= each.most for size, each in zip(sizes, found.variants, strict=True))
    assert sizes[-1] < found.variants[-1].most < found.variants[0].what.evaluate(found.rest)


@pytest.mark.parametrize(
    "total, given, sizes",
    [
        ("n", {}, {"n": 1000}),
        ("b*s", {}, {"b": 8, "s": 128}),
        ("b*s", {"s": 100}, {"b": 10, "s": 100}),
        ("b*s", {"b": 4}, {"b": 4, "s": 250}),
        ("12*n", {}, {"n": 84}),
        ("b*(h floordiv 2)", {}, {"b": 16, "h": 128}),
    ],
)
def test_sizes_with_about_a_thousand_elements(total: str, given: dict[str, int], sizes: dict[str, int]) -> None:
    found = Expr.parse(total)
    made = sizes_with(found, 1000, given, sorted(found.symbols))
    assert made == sizes
    assert TypicalSizes(tuple(made.items())).value(found, 1) >= 1000


def in_ort(made: onnx.ModelProto, sizes: Sequence[Mapping[str, Any]], atol: float) -> list[list[str]]:
    """Runs a library for an H100 in stock ONNX Runtime; returns the launched kernels of each run."""
    driver = RecordingDriver(capability=90)
    with knowing(driver):
        options = CompileOptions(target="cuda:sm_90", provider="CPUExecutionProvider")
        artifact = igniter.load(made).compile(options=options, cache=False, verify=False)
        session: Any = artifact.session()
        assert set(driver.images) == {"cubin"}
        names: list[list[str]] = []
        for feeds in sizes:
            driver.launches.clear()
            (found,) = session.run(None, feeds)
            names.append([launch.kernel for launch in driver.launches])
            (wanted,) = reference(made, feeds)
            np.testing.assert_allclose(found.astype(np.float32), np.asarray(wanted, np.float32), rtol=0, atol=atol)
    return names


@pytest.mark.slow
def test_a_library_launches_by_the_sizes_of_a_run() -> None:
    made = product(256, 512, softmax=True)
    few, _ = limits(func_of(lowered(made, "cuda:sm_90", variants=True)))
    names = in_ort(made, [rows(256, 512, n) for n in (3, few + 1)], 4e-3)
    assert names[0][0] != names[1][0] and names[0][1] == names[1][1], "another product, and the same softmax"


@pytest.mark.full
def test_a_bert_of_any_batch() -> None:
    def feeds(batch: int, tokens: int) -> dict[str, Any]:
        ids = np.random.default_rng(0).integers(0, 50, (batch, tokens)).astype(np.int64)
        return {"ids": ids, "mask": np.ones((batch, tokens), np.int64)}

    names = in_ort(to_half(bert(1, 256, 4, 1024, 50)), [feeds(*at) for at in ((1, 7), (2, 16), (9, 130))], 3e-2)
    assert names[0] == names[1] != names[2]
