"""Proofs for all sizes over the examples, every micro-kernel and five networks."""

from __future__ import annotations

import io
import json

import pytest
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.dialects.loop.instructions import BUILT_IN
from igniter.passes import parse_passes, run_passes
from igniter.verification.prove.observer import Prover
from igniter.verification.prove.report import Proof, rows, table
from tests.verification.proofs import MODELS, Subject, examples, models, product_of, prove_all, report, to_json, unique

pytest.importorskip("islpy", reason="proofs need islpy")

LOOPS = (
    "canonicalize-loop,choose-schedule,form-fma,lower-to-loops,fuse-loops,promote-buffers,slide-loops,tile-loops,"
    "sink-loops,prefetch-loops,parallelize-loops,vectorize-loops,unroll-loops,split-rims,transpose-accesses,plan-buffers"
)

RELU = """
  loop.kernel @{name} symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {{
    %y = loop.nest "relu" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {{
      %0 = loop.read %x[i] : f32
      %1 = arith.constant 0.0 : f32
      %2 = arith.maximumf %0, %1 : f32
      loop.yield none %2 at [i]
    }}
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }}"""


def proofs(text: str, pipeline: str) -> list[Proof]:
    """The proofs of every pass and kernel of a run."""
    ctx = IgniterContext()
    module = Parser(ctx, text, "kernel").parse_module()
    prover = Prover(log=io.StringIO(), keep_going=True)
    run_passes(ctx, module, parse_passes(pipeline), observers=(prover,))
    return prover.proofs


def bad(found: list[Proof]) -> list[str]:
    return [str(p) for p in found if p.verdict.status in ("refuted", "not decided")]


def test_the_micro_kernel_of_bytes_is_proven() -> None:
    found = proofs(product_of("u8i8"), "lower-to-loops,parallelize-loops,vectorize-loops,plan-buffers")
    assert not bad(found) and sum(p.verdict.status == "proven" for p in found) == 4


@pytest.mark.full
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_micro_kernel_is_proven(name: str) -> None:
    assert not bad(proofs(product_of(name), LOOPS))


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_nearly_all_passes_of_the_examples_are_proven() -> None:
    found = [p for o in prove_all(unique(list(examples())), seconds=60, whole=120) for p in o.proofs]
    whole = rows(found)[-1]
    assert whole.refuted == 0 and whole.share >= 0.95, table(found)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MODELS)
def test_no_kernel_of_a_network_is_refuted(name: str) -> None:
    found = [p for o in prove_all(unique(list(models([name]))), seconds=60, whole=120) for p in o.proofs]
    whole = rows(found)[-1]
    assert whole.refuted == 0 and whole.proven, table(found)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_nearly_all_passes_of_the_networks_are_proven() -> None:
    found = [p for o in prove_all(unique(list(models(MODELS))), seconds=60, whole=120) for p in o.proofs]
    whole = rows(found)[-1]
    assert whole.share >= 0.95, table(found)


def test_kernels_of_equal_text_are_proven_once_and_the_table_counts_them() -> None:
    kernel = Subject("one", RELU.format(name="one"))
    same = Subject("two", RELU.format(name="two"))
    subjects = unique([kernel, same])
    assert subjects == [kernel]
    (outcome,) = prove_all(subjects, "choose-schedule,lower-to-loops")
    assert [p.verdict.status for p in outcome.proofs] == ["proven", "proven"] and not outcome.refused
    assert "lower-to-loops" in report([outcome]) and json.loads(to_json([outcome]))["passes"][-1]["proven"] == 2


def test_a_kernel_without_time_is_not_decided() -> None:
    (outcome,) = prove_all([Subject("one", RELU.format(name="one"))], "choose-schedule", whole=0.0)
    assert [p.verdict.status for p in outcome.proofs] == ["not decided"]
    assert "1: the kernel takes more than 0 s of processor time (one)" in report([outcome])
