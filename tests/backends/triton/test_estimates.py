"""The work that is counted in kernels, and what launches are estimated to take."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.compiler import Resources
from igniter.backends.triton.devices import DEVICES, device_of
from igniter.backends.triton.estimates import Estimate, estimate, launches_of, work_of
from igniter.dialects.loop import LaunchOp
from igniter.errors import IgniterError
from igniter.schedules.product_blocks import H100, Blocks, ProductSize, blocks_for, figures_of
from tests.backends.triton.programs import func_of, kernels_of, lowered, model
from tests.backends.triton.test_products import FLOAT, HALF, MATMUL

RESOURCES = Resources(registers=64, spills=0, stack=0, shared=0)


def parts(given: Any) -> tuple[Any, list[Any]]:
    module = lowered(given)
    return func_of(module), kernels_of(module)


def estimated(given: Any, device: str = "a100", **sizes: int) -> Estimate:
    func, (kernel,) = parts(given)
    (launch,) = [op for op in func.walk() if isinstance(op, LaunchOp)]
    return estimate(launch, kernel, sizes, RESOURCES, 0, device_of(device))


def copy(dims: list[Any]) -> Any:
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, dims)})


def test_the_operations_of_a_product_are_counted_with_the_trips_of_its_loop() -> None:
    func, (kernel,) = parts(model(MATMUL, {"x": (HALF, [256, "k"]), "w": (HALF, ["k", 512])}))
    (launch,) = [op for op in func.walk() if isinstance(op, LaunchOp)]
    programs = launch.grid.evaluate({"k": 1000})
    work = work_of(kernel, [s.evaluate({"k": 1000}) for s in launch.symbols])
    # Whole blocks of the depth: 64 steps of f16.
    assert programs * work.products["f16"] == 2 * 256 * 512 * 1024
    assert not any(work_of(kernel, [0]).products.values())


def test_what_is_copied_comes_from_memory_once() -> None:
    found = estimated(copy([4096, "n"]), n=4096)
    assert found.limit == "memory"
    assert found.memory_bytes == 2 * 4 * 4096 * 4096
    # 134 MB at nine tenths of 2 TB/s.
    assert 70e-6 < found.seconds < 80e-6


def test_nothing_takes_no_time() -> None:
    assert estimated(copy([16, "n"]), n=0).seconds == 0


@pytest.mark.parametrize("device", sorted(DEVICES))
def test_large_products_are_limited_by_what_multiplies(device: str) -> None:
    given, double = (model(MATMUL, {"x": (HALF, [m, 4096]), "w": (HALF, [4096, 4096])}) for m in (4096, 8192))
    found = estimated(given, device)
    ideal = 2 * 4096**3 / device_of(device).products["f16"]
    assert found.limit in ("products", "cache")
    assert ideal < found.seconds < 3 * ideal
    # A last wave that is not full is a smaller part of more of them.
    assert estimated(double, device).seconds > 1.5 * found.seconds


def test_what_a_program_calls_is_launched_with_its_own_sizes() -> None:
    func, _ = parts(copy([16, "n"]))
    ((launch, env),) = launches_of({func.sym_name.data: func}, func.sym_name.data, {"n": 7})
    assert isinstance(launch, LaunchOp)
    assert env == {"n": 7}


def test_blocks_are_small_where_large_ones_would_be_few_programs() -> None:
    large, few = ProductSize(4096, 4096, 4096, 1, 2), ProductSize(1, 4096, 4096, 1, 2)
    assert blocks_for([large]) == Blocks(128, 128, 128, 3, 8)
    assert blocks_for([ProductSize(4096, 4096, 4096, 1, 4)]) == Blocks(128, 64, 64, 3, 8)
    found = blocks_for([ProductSize(128, 768, 768, 1, 2)])
    assert found.rows * found.columns < 128 * 128
    assert blocks_for([few]).rows == 16
    assert blocks_for([ProductSize(7, 3, 5, 1, 4)]) == Blocks(16, 16, 128, 3, 4)
    # Neither is given up for the other.
    assert 16 <= blocks_for([large, few]).rows <= 128


MEASURED = {
    "4096^3": (
        ProductSize(4096, 4096, 4096, 1, 2, gpu=H100),
        [
            (Blocks(128, 256, 128, 3, 8), 0.2072),
            (Blocks(128, 128, 128, 3, 8), 0.2245),
            (Blocks(128, 128, 128, 4, 4), 0.2442),
        ],
    ),
    "with Gelu": (
        ProductSize(4096, 4096, 4096, 1, 2, gpu=H100, later=45),
        [
            (Blocks(128, 128, 128, 3, 4), 0.2525),
            (Blocks(128, 256, 128, 3, 8), 0.2658),
            (Blocks(128, 128, 128, 3, 8), 0.2747),
        ],
    ),
    "128 rows": (
        ProductSize(128, 4096, 4096, 1, 2, gpu=H100),
        [
            (Blocks(64, 64, 256, 4, 4), 0.0137),
            (Blocks(128, 32, 256, 4, 4), 0.0171),
            (Blocks(64, 64, 128, 3, 4), 0.0202),
        ],
    ),
    "f32": (
        ProductSize(4096, 4096, 4096, 1, 4, gpu=H100),
        [(Blocks(128, 64, 64, 3, 8), 3.17), (Blocks(64, 64, 128, 3, 8), 3.71)],
    ),
}
"""Products on an H100 with hand-written kernels of these blocks, in ms."""


@pytest.mark.parametrize("name", MEASURED)
def test_expected_times_of_blocks_are_in_the_measured_order(name: str) -> None:
    size, measured = MEASURED[name]
    expected = [size.seconds(blocks) * 1e3 for blocks, _ in measured]
    assert expected == sorted(expected)
    for mine, (_, theirs) in zip(expected, measured, strict=True):
        assert 0.85 < mine / theirs < 1.15


def test_blocks_of_an_h100() -> None:
    assert blocks_for([MEASURED["4096^3"][0]]) == Blocks(128, 256, 128, 3, 8)
    assert blocks_for([MEASURED["128 rows"][0]]) == Blocks(64, 64, 256, 4, 4)
    # Beside many operations on each sum there are no registers for 128 sums of a thread.
    wide = blocks_for([MEASURED["with Gelu"][0]])
    assert wide.rows * wide.columns // (32 * wide.warps) <= 64


@pytest.mark.parametrize("gpu", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_blocks_fit_the_shared_memory_of_a_program(gpu: str) -> None:
    figures = figures_of(gpu)
    for rows, columns, bytes_ in product((1, 100, 4096), (16, 768, 4096), (1, 2, 4)):
        blocks = blocks_for([ProductSize(rows, columns, 1024, 1, bytes_, "tf32" if bytes_ == 4 else "", figures)])
        assert blocks.shared <= figures.shared


def test_a_device_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(IgniterError, match="there is no data sheet of 'abacus': known are a100, h100, h200, rtx4090"):
        device_of("abacus")


def test_bytes_are_a_kind_of_product_of_their_own() -> None:
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    _, (kernel,) = parts(model(nodes, {"x": (TensorProto.INT8, [64, 128]), "w": (TensorProto.INT8, [128, 64])}))
    assert set(work_of(kernel, []).products) == {"i8"}


@pytest.mark.slow
def test_a_report_says_what_launches_are_expected_to_take() -> None:
    """At the sizes that are given, else at typical ones, by the device of the target."""
    import igniter
    from igniter.compiler.driver import EXPECTED

    given = model(MATMUL, {"x": (HALF, ["n", 256]), "w": (HALF, [256, 512])})
    seconds: list[float] = []
    for sizes in ({"n": 16}, {"n": 65536}):
        options = igniter.CompileOptions(target="cuda:sm_90", sizes=tuple(sizes.items()))
        artifact = igniter.load(given).compile(options=options, cache=False, verify=False)
        (found,) = [r for r in artifact.report["remarks"] if r["pass"] == EXPECTED]
        assert found["details"]["device"] == "h100"
        assert found["details"]["sizes"].endswith(f"={sizes['n']}")
        assert "us are expected on h100" in found["message"]
        seconds.append(found["details"]["microseconds"])
    assert seconds[1] > 3 * seconds[0]


def test_programs_that_share_keys_go_along_their_own() -> None:
    """A step of decoding: what a program loads does not grow with the keys, and how many there are does."""
    from tests.backends.triton.test_attention import heads

    func, kernels = parts(heads(q=1, k="t", head=64, features=64, count=12))
    launches = [op for op in func.walk() if isinstance(op, LaunchOp)]
    assert len(launches) == len(kernels) == 2
    loaded: list[float] = []
    for keys in 512, 8192:
        env = {"b": 1, "t": keys}
        pairs = zip(launches, kernels, strict=True)
        found = [estimate(op, kernel, env, RESOURCES, 0, DEVICES["a100"]) for op, kernel in pairs]
        loaded.append(sum(each.memory_bytes for each in found))
        work = work_of(kernels[0], [s.evaluate(env) for s in launches[0].symbols])
        assert sum(work.moved.values()) < 2 * 512 * 64 * 4 * 1.1
    assert 10 < loaded[1] / loaded[0] < 20
