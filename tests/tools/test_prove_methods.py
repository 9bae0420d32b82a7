"""The methods of proofs: each decides kernels that the others do not, and refutes planted bugs in them."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.dialects.loop import ForOp, FuncOp, IfOp, KernelOp
from igniter.dialects.sym.expr import Expr, maximum, minimum
from igniter.passes import parse_passes, run_passes
from igniter.verification.prove import integers
from igniter.verification.prove import prove as proofs
from igniter.verification.prove.divisors import divisors
from igniter.verification.prove.prove import prove

pytest.importorskip("islpy", reason="proofs need islpy")

LOOPS = "choose-schedule,lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,vectorize-loops,unroll-loops"


def kernel_of(text: str) -> KernelOp:
    return next(k for k in Parser(IgniterContext(), text, "kernel").parse_module().ops if isinstance(k, KernelOp))


def lowered(text: str, pipeline: str = LOOPS) -> tuple[KernelOp, str]:
    """A kernel, and the text of its module after a pipeline."""
    ctx = IgniterContext()
    module = Parser(ctx, text, "kernel").parse_module()
    run_passes(ctx, module, parse_passes(pipeline))
    return kernel_of(text), str(module)


def func_of(text: str) -> FuncOp:
    return next(f for f in Parser(IgniterContext(), text, "planted").parse_module().ops if isinstance(f, FuncOp))


MASK = """
  loop.kernel @masked symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %flat = loop.view %x : tensor<?x?xf32, #sym.dims<n, m>> to tensor<?xf32, #sym.dims<m*n>>
    %mask = loop.nest "mask" [f: parallel m*n] -> tensor<?xf32, #sym.dims<m*n>> {
      %a = loop.read %flat[f] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [f]
    }
    %rows = loop.view %mask : tensor<?xf32, #sym.dims<m*n>> to tensor<?x?xf32, #sym.dims<n, m>>
    %s = loop.nest "sum" [i: parallel n, j: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %rows[i, j] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }"""


def test_a_buffer_written_flat_and_read_by_rows_is_proven_through_vectors() -> None:
    kernel, text = lowered(MASK)
    assert "loop.view" in text and "vector" in text
    assert prove(kernel, func_of(text)).status == "proven"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("arith.mulf", "arith.addf"), ("loop.for i = 0 to n", "loop.for i = 1 to n")],
    ids=["another op", "a lost row"],
)
def test_a_bug_in_a_flat_buffer_is_refuted(right: str, wrong: str) -> None:
    kernel, text = lowered(MASK)
    assert right in text, text
    found = prove(kernel, func_of(text.replace(right, wrong)))
    assert found.status == "refuted" and found.reason, found


DIVIDED = """
  loop.kernel @divided symbols [n] (%x: tensor<?x16xf32, #sym.dims<n, 16>>)
      -> (tensor<64x?xf32, #sym.dims<64, ((16*n) floordiv 64)>>) {requires} {{
    %y = loop.nest "exp" [i: parallel n, j: parallel 16] -> tensor<?x16xf32, #sym.dims<n, 16>> {{
      %a = loop.read %x[i, j] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i, j]
    }}
    %v = loop.view %y : tensor<?x16xf32, #sym.dims<n, 16>> to tensor<64x?xf32, #sym.dims<64, ((16*n) floordiv 64)>>
    %z = loop.nest "mul" [i: parallel 64, j: parallel (16*n) floordiv 64]
        -> tensor<64x?xf32, #sym.dims<64, ((16*n) floordiv 64)>> {{
      %a = loop.read %v[i, j] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [i, j]
    }}
    loop.return %z : tensor<64x?xf32, #sym.dims<64, ((16*n) floordiv 64)>>
  }}"""
REQUIRED = 'requires [64*((16*n) floordiv 64) == 16*n "it does not divide"]'


def test_a_reshape_by_a_required_divisor_is_proven_and_only_with_it() -> None:
    kernel, text = lowered(DIVIDED.format(requires=REQUIRED), "choose-schedule,lower-to-loops,vectorize-loops")
    assert prove(kernel, func_of(text)).status == "proven"
    assert divisors(kernel) == {"n": 4} and not divisors(kernel_of(DIVIDED.format(requires="")))
    wrong = text.replace("arith.mulf", "arith.addf")
    found = prove(kernel, func_of(wrong))
    assert found.status == "refuted" and found.sizes["n"] % 4 == 0, found


DIFFERENCES = """
  loop.kernel @differences symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>, %y: tensor<?x8xf32, #sym.dims<n, 8>>)
      -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "sum" [i: parallel n, k: reduction 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      %b = loop.read %y[i, k] : f32
      %c = arith.subf %a, %b : f32
      loop.yield add %c at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }"""


def test_swapped_operands_in_a_reduction_are_the_reason_of_a_refutation() -> None:
    found = prove(kernel_of(DIFFERENCES), kernel_of(DIFFERENCES.replace("subf %a, %b", "subf %b, %a")))
    assert found.status == "refuted"
    assert "input 1 instead of input 0" in found.reason and "too many" not in found.reason, found
    short = prove(kernel_of(DIFFERENCES), kernel_of(DIFFERENCES.replace("k: reduction 8", "k: reduction 7")))
    assert short.status == "refuted" and "a point of a reduction is missing" in short.reason, short


MASKED = """
  loop.kernel @tail symbols [n, t] (%x: tensor<?x?xf32, #sym.dims<n, t>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %a = loop.nest "scaled" [i: parallel n, b: parallel ((t + 15) floordiv 16), j: parallel 16]
        -> tensor<?x?x16xf32, #sym.dims<n, ((t + 15) floordiv 16), 16>> {
      %0 = loop.read %x[i, 16*b + j] if [-16*b - j + t - 1] : f32
      %1 = arith.addf %0, %0 : f32
      loop.yield none %1 at [i, b, j]
    }
    %s = loop.nest "sum" [i: parallel n, b: reduction ((t + 15) floordiv 16), j: reduction 16]
        -> tensor<?xf32, #sym.dims<n>> {
      %2 = arith.constant 0xff800000 : f32
      %3 = loop.read %a[i, b, j] if [-16*b - j + t - 1] else %2 : f32
      %4 = math.exp %3 : f32
      loop.yield add %4 at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }"""


def test_masked_points_of_a_reduction_have_partners() -> None:
    kernel, text = lowered(MASKED)
    assert prove(kernel, func_of(text)).status == "proven"
    right, wrong = "arith.constant 0xff800000 : f32", "arith.constant 0.0 : f32"
    assert right in text, text
    found = prove(kernel, func_of(text.replace(right, wrong)))
    assert found.status == "refuted" and found.sizes["t"] % 16, found


def test_relations_are_coalesced_without_redundant_constraints() -> None:
    class Recorded:
        calls: list[str]

        def __init__(self) -> None:
            self.calls = []

        def remove_redundancies(self) -> Recorded:
            self.calls.append("remove_redundancies")
            return self

        def coalesce(self) -> Recorded:
            self.calls.append("coalesce")
            return self

    # isl has an internal error in `coalesce` for some relations with redundant constraints.
    assert integers.coalesced(Recorded()).calls == ["remove_redundancies", "coalesce"]
    pieces = integers.isl().Map("{ A[i] -> B[j] : j = i and (0 <= i < 4 or 4 <= i < 9) and i <= 100 }")
    assert integers.coalesced(pieces).is_equal(pieces) and integers.coalesced(pieces).n_basic_map() == 1


BLOCKS = """
  loop.kernel @blocks symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "square" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }"""


def blocks(end: str) -> FuncOp:
    """A loop over blocks of 48 with a loop inside of each, to `end`."""
    return func_of(
        f"""loop.func @blocks symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>)
        outputs 1 {{
      loop.for b = 0 to (n + 47) floordiv 48 {{
        loop.for i = 0 to {end} {{
          %v = loop.load %x[48*b + i] : f32
          %w = arith.mulf %v, %v : f32
          loop.store %w, %y[48*b + i]
        }}
      }}
    }}"""
    )


def test_a_bound_that_is_a_minimum_is_one_convex_set() -> None:
    b, n, k = (Expr.of(name) for name in ("b", "n", "k"))
    end = minimum(Expr.of(48), n - 48 * b)
    assert set(integers.least(end - k - 1)) == {47 - k, n - 48 * b - k - 1}
    assert set(integers.least(end - end % 16)) == {Expr.of(48), n - 48 * b - n % 16}
    assert integers.least(maximum(n, b) - k) == [maximum(n, b) - k]
    kernel = kernel_of(BLOCKS)
    assert prove(kernel, blocks("min(48, n - 48*b)")).status == "proven"
    assert prove(kernel, blocks("min(47, n - 48*b)")).status == "refuted"
    assert prove(kernel, blocks("min(48, n - 48*b - 1)")).status == "refuted"


BIASED = """
  loop.kernel @biased symbols [n] (%x: tensor<?x16xf32, #sym.dims<n, 16>>, %b: tensor<?xf32, #sym.dims<n>>)
      -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "bias" [i: parallel n, j: parallel 16] -> tensor<?x16xf32, #sym.dims<n, 16>> {
      %0 = loop.read %x[i, j] : f32
      %1 = loop.read %b[i] : f32
      %2 = arith.addf %0, %1 : f32
      loop.yield none %2 at [i, j]
    }
    %s = loop.nest "sum" [i: parallel n, j: reduction 16] -> tensor<?xf32, #sym.dims<n>> {
      %0 = loop.read %y[i, j] : f32
      loop.yield add %0 at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }"""


def test_a_value_added_in_every_point_of_a_sum_has_partners() -> None:
    ctx = IgniterContext()
    module = Parser(ctx, BIASED, "biased").parse_module()
    run_passes(ctx, module, parse_passes("inline-nests"))
    after = next(k for k in module.ops if isinstance(k, KernelOp))
    assert len(after.nests) == 1, after
    assert prove(kernel_of(BIASED), after).status == "proven"
    wrong = kernel_of(str(after).replace("arith.addf", "arith.subf"))
    assert prove(kernel_of(BIASED), wrong).status == "refuted"


def test_a_select_by_an_index_is_a_guard() -> None:
    guarded = """
  loop.kernel @triangle symbols [n] (%x: tensor<?x?xf32, #sym.dims<n, n>>) -> (tensor<?x?xf32, #sym.dims<n, n>>) {
    %y = loop.nest "triangle" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %0 = loop.read %x[i, j] if [j - i] : f32
      loop.yield none %0 at [i, j]
    }
    loop.return %y : tensor<?x?xf32, #sym.dims<n, n>>
  }"""
    selected = guarded.replace(
        "%0 = loop.read %x[i, j] if [j - i] : f32",
        """%1 = loop.read %x[i, j] : f32
      %2 = loop.index j - i : i64
      %3 = arith.constant 0 : i64
      %4 = arith.cmpi sge, %2, %3 : i64
      %5 = arith.constant 0.0 : f32
      %0 = arith.select %4, %1, %5 : f32""",
    )
    assert prove(kernel_of(guarded), kernel_of(selected)).status == "proven"
    assert prove(kernel_of(guarded), kernel_of(selected.replace("sge", "sgt"))).status == "refuted"


def test_cuts_shorten_a_proof_and_are_no_part_of_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, text = lowered(MASKED)
    wrong = text.replace("arith.addf %", "arith.mulf %", 1)
    assert prove(kernel, func_of(wrong)).status == "refuted"
    monkeypatch.setattr(proofs, "_cut", lambda *_: 0)
    assert prove(kernel, func_of(text)).status == "proven"
    assert prove(kernel, func_of(wrong)).status == "refuted"


REPAIRED = """
  loop.kernel @repaired symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
    %y = loop.procedure "repair" [i: parallel n] (%a = %x) -> (%b : tensor<?x8xf32, #sym.dims<n, 8>>) {
      loop.for j = 0 to 8 {
        %0 = loop.load %a[i, j] : f32
        %1 = arith.mulf %0, %0 : f32
        loop.store %1, %b[i, j]
      }
      %2 = loop.load %a[i, 0] : f32
      %zero = arith.constant 0.0 : f32
      %3 = arith.cmpf ogt, %2, %zero : f32
      %4 = arith.extui %3 : i1 to i64
      loop.if [_0 - 1] with %4 {
        loop.for k = 0 to 8 {
          %s = loop.alloc "variable" : memref<f32, "register">
          loop.store %zero, %s[]
          loop.for r = 0 to 8 sequential {
            %5 = loop.load %s[] : f32
            %6 = loop.load %a[i, r] : f32
            %7 = arith.addf %5, %6 : f32
            loop.store %7, %s[]
          }
          %8 = loop.load %s[] : f32
          loop.store %8, %b[i, k]
        }
      }
    }
    %z = loop.nest "double" [i: parallel n, j: parallel 8] -> tensor<?x8xf32, #sym.dims<n, 8>> {
      %0 = loop.read %y[i, j] : f32
      %1 = arith.addf %0, %0 : f32
      loop.yield none %1 at [i, j]
    }
    loop.return %z : tensor<?x8xf32, #sym.dims<n, 8>>
  }"""


def test_stores_under_conditions_by_data_and_sums_by_loads_and_stores_are_proven() -> None:
    kernel, text = lowered(REPAIRED)
    assert "loop.if [_0 - 1] with" in text and "sequential" in text
    assert prove(kernel, func_of(text)).status == "proven"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("loop.if [_0 - 1]", "loop.if [-_0]"),
        ("= 0 to 8 sequential", "= 1 to 8 sequential"),
        ("cmpf ogt", "cmpf olt"),
        ("arith.mulf", "arith.addf"),
    ],
    ids=["the other branch", "a lost term", "another condition", "a wrong value before the condition"],
)
def test_bugs_around_conditions_by_data_are_refuted(right: str, wrong: str) -> None:
    kernel, text = lowered(REPAIRED)
    assert right in text, text
    assert prove(kernel, func_of(text.replace(right, wrong, 1))).status == "refuted"


def test_a_store_before_its_condition_is_not_moved_after_it() -> None:
    kernel, text = lowered(REPAIRED, "choose-schedule,lower-to-loops")
    func = func_of(text)
    condition = next(op for op in func.walk() if isinstance(op, IfOp))
    block = condition.parent_block()
    assert block is not None
    first = next(op for op in block.ops if isinstance(op, ForOp))
    first.detach()
    block.insert_op_after(first, condition)
    assert prove(kernel, func).status == "refuted"
