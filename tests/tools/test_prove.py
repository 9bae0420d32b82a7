"""Proofs for all sizes: passes are proven, and planted bugs are refuted with sizes that run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tools_kit import opt
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.verification.prove import integers
from igniter.verification.prove.observer import ProofFailed, Prover
from igniter.verification.prove.prove import Verdict, prove

pytest.importorskip("islpy", reason="proofs need islpy")

ROOT = Path(__file__).parents[2]
SCHEDULED = (
    "choose-schedule,lower-to-loops,fuse-loops,promote-buffers,slide-loops,tile-loops,sink-loops,prefetch-loops,"
    "parallelize-loops,vectorize-loops,unroll-loops,split-rims,transpose-accesses,plan-buffers"
)
UNROLLED = "choose-schedule,lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,vectorize-loops,unroll-loops"


def kernels(path: str, pipeline: str) -> tuple[KernelOp, str]:
    """The structured kernel of a file, and the text of the module after the pipeline."""
    ctx = IgniterContext()
    module = Parser(ctx, (ROOT / path).read_text(), path).parse_module()
    kernel = next(k for k in module.ops if isinstance(k, KernelOp)).clone()
    run_passes(ctx, module, parse_passes(pipeline))
    return kernel, str(module)


def func_of(text: str) -> FuncOp:
    return next(f for f in Parser(IgniterContext(), text, "planted").parse_module().ops if isinstance(f, FuncOp))


def proofs(path: str, pipeline: str) -> dict[str, Verdict]:
    """The verdicts of a run, by pass; a later run of the same pass replaces an earlier one."""
    ctx = IgniterContext()
    module = Parser(ctx, (ROOT / path).read_text(), path).parse_module()
    prover = Prover(log=io.StringIO())
    run_passes(ctx, module, parse_passes(pipeline), observers=(prover,))
    return {p.pass_name: p.verdict for p in prover.proofs}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["lit_tests/examples/softmax.mlir", "lit_tests/examples/split_k.mlir", "lit_tests/examples/stores.mlir"]
)
def test_scheduled_passes_are_proven(path: str) -> None:
    found = proofs(path, SCHEDULED)
    assert {v.status for v in found.values()} <= {"proven", "unchanged"}, found
    assert found["lower-to-loops"].status == found["plan-buffers"].status == "proven"


PLANTED = [
    # (what is wrong, the text, what takes its place)
    ("a tail without its last element", "= m - (m mod 16) to m step", "= m - (m mod 16) to m - 1 step"),
    ("a mask that is one too wide", "[-j6 + m - v1 - 1]", "[-j6 + m - v1]"),
    ("a lost row", "loop.for i = 0 to n ", "loop.for i = 0 to n - 1 "),
    ("a main loop that ends early", "= 0 to m - (m mod 64) step", "= 0 to m - (m mod 64) - 64 step"),
    ("a sum that starts from another value", "loop.store %4, %3[]", "loop.store %2, %3[]"),
]


@pytest.mark.parametrize(("what", "right", "wrong"), PLANTED, ids=[p[0] for p in PLANTED])
def test_planted_bugs_are_refuted_with_sizes_that_run(what: str, right: str, wrong: str) -> None:
    kernel, text = kernels("lit_tests/examples/softmax.mlir", UNROLLED)
    assert right in text, text
    found = prove(kernel, func_of(text.replace(right, wrong)))
    assert found.status == "refuted", f"{what}: {found}"
    assert set(found.sizes) == {"n", "m"} and found.reason


def test_the_cli_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    out = tmp_path / "proofs.json"
    path = str(ROOT / "lit_tests/examples/softmax.mlir")
    found = opt(path, "-p", "choose-schedule,lower-to-loops,fuse-loops", "--check-each=prove", f"--proofs={out}")
    assert found.status == 0, found.err
    assert "prove: fuse-loops: @softmax: proven" in found.err and "proven of changed" in found.err
    data = json.loads(out.read_text())
    assert {p["status"] for p in data["proofs"]} == {"proven"} and data["passes"][-1]["pass"] == "all"


def test_the_cli_refuses_what_it_does_not_know() -> None:
    found = opt("-p", "cse", "--check-each=values,guess", text="")
    assert (found.status, found.out) == (2, "") and "'guess' is no check: values, prove" in found.err
    found = opt("-p", "cse", "--proofs=x.json", text="builtin.module {}")
    assert found.status == 1 and "--proofs are those of --check-each=prove" in found.err


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    integers.isl.cache_clear()
    monkeypatch.setattr(integers.importlib, "import_module", missing)
    with pytest.raises(IgniterError, match=r"onnx-igniter\[prove\]"):
        Prover()
    integers.isl.cache_clear()


def test_a_refuted_pass_ends_the_run() -> None:
    kernel, text = kernels("lit_tests/examples/softmax.mlir", "choose-schedule,lower-to-loops")
    ctx = IgniterContext()
    module = Parser(ctx, str(kernel), "kernel").parse_module()
    prover = Prover(log=io.StringIO())
    this = parse_passes("lower-to-loops")[0]
    prover.before(this, module)
    wrong = Parser(ctx, text.replace("0 to n ", "1 to n "), "wrong").parse_module()
    with pytest.raises(ProofFailed, match="pass 'lower-to-loops' changed @softmax"):
        prover.after(this, wrong)


TWICE = """
  loop.kernel @twice symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %a = loop.nest "square" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %0 = loop.read %x[i] : f32
      %1 = arith.mulf %0, %0 : f32
      loop.yield none %1 at [i]
    }
    %b = loop.nest "sum" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %0 = loop.read %a[i] : f32
      %1 = loop.read %a[n - 1 - i] : f32
      %2 = arith.addf %0, %1 : f32
      loop.yield none %2 at [i]
    }
    loop.return %b : tensor<?xf32, #sym.dims<n>>
  }"""
SQUARE = """loop.for {i} = 0 to {end} {{
      %v = loop.load %x[{i}] : f32
      %w = arith.mulf %v, %v : f32
      loop.store %w, %a[{i}]
    }}"""
SUM = """loop.for {j} = 0 to {end} {threads} {{
      %v = loop.load %a[{j}] : f32
      %w = loop.load %a[n - 1 - {j}] : f32
      %s = arith.addf %v, %w : f32
      loop.store %s, %y[{at}]
    }}"""


def twice(*statements: str) -> FuncOp:
    """A scheduled kernel for `TWICE`, with the given statements."""
    buffers = "%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>"
    alloc = '%a = loop.alloc "square" : memref<?xf32, #sym.dims<n>, "scratch">'
    return func_of(f"loop.func @twice symbols [n] ({buffers}) outputs 1 {{ {alloc}\n{chr(10).join(statements)}\n}}")


def loops(end: str = "n", at: str = "j", threads: str = "", prefix: str = "") -> tuple[str, str]:
    """The two loops of `TWICE`."""
    i, j = f"{prefix}i", f"{prefix}j"
    return SQUARE.format(i=i, end="n"), SUM.format(j=j, end=end, at=at.replace("j", j), threads=threads)


def fused(loop: str) -> str:
    """A loop with values of other names, to stand in another loop."""
    return loop.replace("%v", "%p").replace("%w", "%q")


def case(guard: str, *statements: str) -> str:
    body = "\n".join(statements)
    return f"loop.if [{guard}] {{\n{body}\n}}"


def test_a_right_schedule_is_proven() -> None:
    kernel = Parser(IgniterContext(), TWICE, "twice").parse_op()
    assert isinstance(kernel, KernelOp)
    assert prove(kernel, twice(*loops(threads="threads(8)"))).status == "proven"
    first, second = loops(), loops(prefix="b")
    assert prove(kernel, twice(case("8 - n", *first), case("n - 9", *second))).status == "proven"


@pytest.mark.parametrize(
    ("what", "statements"),
    [
        ("a swapped order", loops()[::-1]),
        ("an end that is off by one", loops(end="n - 1")),
        ("a subscript that is off by one", loops(at="j + 1")),
        ("a race", loops(at="0", threads="threads(1)")),
        ("a gap between variants", (case("7 - n", *loops()), case("n - 9", *loops(prefix="b")))),
        ("one loop for both", (loops()[0].removesuffix("}") + fused(loops(end="i + 1", at="i")[1]) + "\n}",)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_planted_bugs_of_schedules_are_refuted(what: str, statements: tuple[str, ...]) -> None:
    kernel = Parser(IgniterContext(), TWICE, "twice").parse_op()
    assert isinstance(kernel, KernelOp)
    found = prove(kernel, twice(*statements))
    assert found.status == "refuted", f"{what}: {found}"
    assert set(found.sizes) == {"n"} and (found.sizes["n"] == 8 or what != "a gap between variants")


PAIR = """
  loop.kernel @pair symbols [n, m] (%x: tensor<?x?x4xf32, #sym.dims<n, m, 4>>)
      -> (tensor<?x?x4xf32, #sym.dims<n, m, 4>>) {
    %y = loop.nest "square" [i: parallel n, j: parallel m, k: parallel 4] -> tensor<?x?x4xf32, #sym.dims<n, m, 4>> {
      %0 = loop.read %x[i, j, k] : f32
      %1 = arith.mulf %0, %0 : f32
      loop.yield none %1 at [i, j, k]
    }
    loop.return %y : tensor<?x?x4xf32, #sym.dims<n, m, 4>>
  }"""


def test_axes_joined_over_a_product_of_sizes_are_proven_and_wrong_ones_refuted() -> None:
    ctx = IgniterContext()
    module = Parser(ctx, PAIR, "pair").parse_module()
    before = next(k for k in module.ops if isinstance(k, KernelOp)).clone()
    run_passes(ctx, module, parse_passes("collapse-axes"))
    after = next(k for k in module.ops if isinstance(k, KernelOp))
    assert [str(axis.extent) for axis in after.nests[0].axes] == ["4*m*n"], after
    assert prove(before, after).status == "proven"
    wrong = Parser(ctx, str(after).replace("[i_j_k] : f32", "[4*m*n - 1 - i_j_k] : f32"), "wrong").parse_op()
    assert isinstance(wrong, KernelOp) and str(wrong) != str(after)
    assert prove(before, wrong).status == "refuted"


ROWS = """
  loop.kernel @rows symbols [n, m] (%x: tensor<?x?x768xf32, #sym.dims<n, m, 768>>)
      -> (tensor<?x?x768xf32, #sym.dims<n, m, 768>>) {
    %y = loop.nest "square" [i: parallel n, j: parallel m, k: parallel 768]
        -> tensor<?x?x768xf32, #sym.dims<n, m, 768>> {
      %0 = loop.read %x[i, j, k] : f32
      %1 = arith.mulf %0, %0 : f32
      loop.yield none %1 at [i, j, k]
    }
    loop.return %y : tensor<?x?x768xf32, #sym.dims<n, m, 768>>
  }"""


def cut(limit: int) -> tuple[KernelOp, ModuleOp, ModuleOp]:
    """`ROWS`, its module, and its loops with at most `limit` rows."""
    ctx = IgniterContext()
    module = Parser(ctx, ROWS, "rows").parse_module()
    kernel = next(k for k in module.ops if isinstance(k, KernelOp)).clone()
    before = module.clone()
    run_passes(ctx, module, parse_passes("lower-to-loops"))
    text = str(module)
    assert text.count("= 0 to n ") == 1
    return kernel, before, Parser(ctx, text.replace("= 0 to n ", f"= 0 to min({limit}, n) "), "cut").parse_module()


@pytest.mark.parametrize("limit", [1, 16, 300, 4096])
def test_a_limit_of_iterations_is_refuted_by_the_smallest_sizes(limit: int) -> None:
    kernel, _, wrong = cut(limit)
    found = prove(kernel, func_of(str(wrong)))
    assert (found.status, found.sizes) == ("refuted", {"n": limit + 1, "m": 1}), found
    assert "an element of 'result 0' is never written" in found.reason


@pytest.mark.slow
def test_a_counterexample_that_is_too_large_to_run_is_an_error() -> None:
    kernel, before, wrong = cut(1 << 30)
    found = prove(kernel, func_of(str(wrong)))
    assert (found.status, found.unrun, found.sizes) == ("not decided", "certain", {"n": (1 << 30) + 1, "m": 1}), found
    prover = Prover(log=io.StringIO())
    this = parse_passes("lower-to-loops")[0]
    prover.before(this, before)
    with pytest.raises(ProofFailed, match=r"changed @rows at n=1073741825, m=1: .*the counterexample was not run") as e:
        prover.after(this, wrong)
    assert e.value.exit_status == 3


def test_a_possible_counterexample_that_is_too_large_to_run_is_a_warning() -> None:
    text = ROWS.replace("768>>) {\n    %y", '768>>) requires [1073741824 <= n "it is too small"] {\n    %y')
    right, wrong = (
        Parser(IgniterContext(), t, "large").parse_module()
        for t in (text, text.replace("arith.mulf %0, %0", "arith.addf %0, %0"))
    )
    assert "requires" in str(right) and "addf" in str(wrong)
    log = io.StringIO()
    prover = Prover(log=log)
    this = parse_passes("split-axes")[0]
    prover.before(this, right)
    prover.after(this, wrong)
    (proof,) = prover.proofs
    assert (proof.verdict.status, proof.verdict.unrun) == ("not decided", "possible"), proof
    assert "warning: split-axes: @rows may be wrong at n=1073741824, m=1" in log.getvalue()
