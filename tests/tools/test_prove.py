"""Proofs for all sizes: passes are proven, and planted bugs are refuted with sizes that run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tools_kit import opt
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
    ("a copy of an unrolled body twice", "%6[1, v1] lane v1\n        %a_8", "%6[0, v1] lane v1\n        %a_8"),
]


@pytest.mark.parametrize(("what", "right", "wrong"), PLANTED[:5], ids=[p[0] for p in PLANTED[:5]])
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
    with pytest.raises(SystemExit):
        opt("-p", "cse", "--check-each=values,guess", text="")
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
