"""Expected times of schedules: which bytes come from where, and which of the two bounds counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

import igniter
from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.analysis.typical_sizes import TypicalSizes
from igniter.dialects.loop import KernelOp
from igniter.dialects.sym.expr import Expr
from igniter.schedules.expected_time import Expectation, expected_time, expected_times
from igniter.targets import backend_for

MACHINE = replace(
    TYPICAL,
    l1d_bytes=1 << 10,
    l2_bytes=1 << 14,
    l3_bytes=1 << 20,
    l3_cores=2,
    l2_bytes_cycle=32.0,
    l3_bytes_cycle=8.0,
    memory_bytes_us=6000.0,
    clock_ghz=2.0,
)
"""A first level of 1 KiB, a second of 16 KiB at 32 bytes a cycle, 512 KiB of the third at 8, and memory at 3."""

SOFTMAX = """
builtin.module {
  loop.kernel @k symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %max = loop.nest "max" [i: parallel n, j: reduction m] schedule [i threads fuse "g", j vector 16] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel n, j: parallel m] schedule [i threads fuse "g", j vector 16] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %a = loop.read %x[i, j] : f32
      %b = loop.read %max[i] : f32
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      loop.yield none %d at [i, j]
    }
    %y = loop.nest "scale" [i: parallel n, j: parallel m] schedule [i threads fuse "g", j vector 16] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %max[i] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield none %c at [i, j]
    }
    loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
  }
}
"""  # noqa: E501


def kernel_of(text: str) -> KernelOp:
    module = igniter.parse(text).ir
    module.verify()
    return next(op for op in module.ops if isinstance(op, KernelOp))


def expected(text: str, machine: MachineModel = MACHINE, **sizes: int) -> Expectation:
    (found,) = expected_times(kernel_of(text), machine, TypicalSizes(tuple(sizes.items())))
    return found


def moved(found: Expectation, **sizes: int) -> dict[str, int]:
    return {level: size.evaluate(sizes) for level, size in found.moved}


def relu(more: str = "", subscript: str = "[i]", dims: str = "?xf32, #sym.dims<n>") -> str:
    return f"""
builtin.module {{
  loop.kernel @k symbols [n] (%x: tensor<{dims}>) -> (tensor<?xf32, #sym.dims<n>>) {{
    %y = loop.nest "relu" [i: parallel n] schedule [i vector 16{more}] -> tensor<?xf32, #sym.dims<n>> {{
      %a = loop.read %x{subscript} : f32
      %b = arith.negf %a : f32
      loop.yield none %b at [i]
    }}
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }}
}}
"""


@pytest.mark.parametrize(
    ("n", "level", "cycles"),
    [(64, None, 0), (1024, "l2", 8192 // 32), (1 << 15, "l3", (8 << 15) // 8), (1 << 20, "memory", -(-(8 << 20) // 3))],
)
def test_inputs_and_results_come_from_the_level_that_holds_them(n: int, level: str | None, cycles: int) -> None:
    found = expected(relu(), n=n)
    assert found.moved == (() if level is None else ((level, Expr.of("n") * 8),))
    assert found.memory.evaluate({"n": n}) == cycles
    # 1 for the op and 2 for each access, for vectors of 16.
    assert found.arithmetic == (Expr.of("n") * 5).ceildiv(16)
    assert found.bound == ("memory" if cycles > -(-5 * n // 16) else "arithmetic")
    assert found.cycles == (found.memory if found.bound == "memory" else found.arithmetic)


def test_without_a_third_level_memory_is_behind_the_second() -> None:
    found = expected(relu(), replace(MACHINE, l3_bytes=0), n=1 << 15)
    assert [level for level, _ in found.moved] == ["memory"]


def test_a_nest_reads_no_more_than_it_asks_for() -> None:
    """A part of a large tensor that lies in memory."""
    found = expected(relu(subscript="[3, i]", dims="1000000x?xf32, #sym.dims<1000000, n>"), n=100)
    assert moved(found, n=100) == {"memory": 800}


def test_what_stays_in_a_group_costs_by_what_is_kept_of_it() -> None:
    """Rows of 200 elements stay in the first level; of 2000 in the second, written once and read once."""
    short, long = expected(SOFTMAX, n=4000, m=200), expected(SOFTMAX, n=400, m=2000)
    assert moved(short, n=4000, m=200) == {"memory": 2 * 4000 * 200 * 4}
    assert moved(long, n=400, m=2000) == {"l2": 2 * 400 * 2000 * 4, "memory": 2 * 400 * 2000 * 4}
    assert long.bound == "memory" and long.memory.evaluate({"n": 400, "m": 2000}) > short.memory.evaluate(
        {"n": 4000, "m": 200}
    )


def test_nests_that_share_no_loop_hand_tensors_on_through_memory() -> None:
    apart = SOFTMAX.replace(' fuse "g"', "")
    first, second, third = expected_times(kernel_of(apart), MACHINE, TypicalSizes((("n", 4000), ("m", 200))))
    sizes = {"n": 4000, "m": 200}
    # The maxima are 16,000 bytes, which the second level holds.
    assert moved(first, **sizes) == {"l2": 16000, "memory": 3_200_000}
    assert moved(second, **sizes) == {"l2": 16000, "memory": 6_400_000}
    assert moved(third, **sizes) == {"l2": 16000, "memory": 6_400_000}


def test_a_block_of_rows_is_kept_whole() -> None:
    blocks = SOFTMAX.replace('[i threads fuse "g", j vector 16]', '[i by 8 threads fuse "g", i, j vector 16]')
    assert "l2" not in moved(expected(SOFTMAX, n=400, m=200), n=400, m=200)
    assert moved(expected(blocks, n=400, m=200), n=400, m=200)["l2"] == 2 * 400 * 200 * 4


PRODUCT = """
builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x512xf32, #sym.dims<n, 512>>, %w: tensor<512x1024xf32>) -> (tensor<?x1024xf32, #sym.dims<n, 1024>>) {
    %y = loop.nest "matmul" [i: parallel n, j: parallel 1024, k: reduction 512] -> tensor<?x1024xf32, #sym.dims<n, 1024>> {
      %a = loop.read %x[i, k] : f32
      %b = loop.read %w[k, j] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield add %c at [i, j]
    }
    loop.return %y : tensor<?x1024xf32, #sym.dims<n, 1024>>
  }
}
"""  # noqa: E501


@pytest.mark.parametrize(("n", "bound"), [(1, "memory"), (256, "arithmetic")])
def test_one_row_of_a_product_waits_for_its_weights(n: int, bound: str) -> None:
    machine = backend_for("x86-64-v4").machine_for("x86-64-v4")
    module = igniter.parse(PRODUCT).run_passes("choose-schedule", target="x86-64-v4", sizes={"n": n})
    (remark,) = module.remarks.of("choose-schedule", "applied")
    assert remark.details["bound"] == bound and remark.message.endswith(f" us at n={n}, bound by {bound}")
    (kernel,) = (op for op in module.ir.ops if isinstance(op, KernelOp))
    (found,) = expected_times(kernel, machine)
    assert found.bound == bound and str(found.cycles) == remark.details["cycles"]
    if n > 1:
        # A single row goes by as the matrix lies, rather than in tiles.
        assert found.arithmetic == Expr.of("n") * (512 * 1024 // 16)


def test_a_group_is_what_it_is_asked_about() -> None:
    kernel = kernel_of(SOFTMAX)
    pairs = [(nest, nest.schedule) for nest in kernel.nests if nest.schedule is not None]
    assert expected_times(kernel, MACHINE) == [expected_time(pairs, MACHINE)]


def test_constants_cost_nothing_and_the_larger_read_of_a_tensor_counts() -> None:
    text = (
        relu()
        .replace("arith.negf %a : f32", "arith.maximumf %a, %zero : f32")
        .replace("      %a =", "      %zero = arith.constant 0.0 : f32\n      %a =")
    )
    assert expected(text, n=64).arithmetic == expected(relu(), n=64).arithmetic == (Expr.of("n") * 5).ceildiv(16)
    twice = relu().replace("      %b =", "      %first = loop.read %x[0] : f32\n      %b =")
    assert moved(expected(twice, n=1 << 20), n=1 << 20) == {"memory": 8 << 20}
