"""Proofs for all sizes over the examples, every micro-kernel and whole models: `full`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.loop.instructions import BUILT_IN, micro_kernel
from igniter.passes import parse_passes, run_passes
from igniter.verification.prove.observer import Prover
from igniter.verification.prove.report import Proof, rows, table

pytest.importorskip("islpy", reason="proofs need islpy")

ROOT = Path(__file__).parents[2]
LOOPS = (
    "canonicalize-loop,choose-schedule,form-fma,lower-to-loops,fuse-loops,promote-buffers,slide-loops,tile-loops,"
    "sink-loops,prefetch-loops,parallelize-loops,vectorize-loops,unroll-loops,split-rims,transpose-accesses,plan-buffers"
)
WRONG = ("misspelt_schedule", "wrong_", "linear_racing", "linear_uneven", "unbound_symbol", "distances_by")
"""Examples that a parser, a verifier or a pass refuses."""
EXAMPLES = [
    path
    for folder in ("docs/examples", "lit_tests/examples")
    for path in sorted((ROOT / folder).glob("*.mlir"))
    if not path.name.startswith(WRONG) and "loop.kernel" in path.read_text()
]
MODELS = ("squeezenet1_1", "shufflenet_v2", "mobilenet_v2", "vit_base", "resnet50")


def product_of(name: str, tile: tuple[int, int] = (4, 2)) -> str:
    """A kernel with a product by the micro-kernel `name`: its own meaning, over columns instead of panels."""
    facts = micro_kernel(name).facts
    a, b, c = facts.elements
    lanes, group = facts.lanes, facts.group
    at, inside, dims = ("k", "", "") if group == 1 else (f"k floordiv {group}", f", k mod {group}", f", {group}")
    dense, depth = ("", "d") if group == 1 else (f"{group}x", f"{group}*d")
    lines = [line.strip() for line in micro_kernel(name).text.splitlines()]
    body = "\n".join(f"      {line}" for line in lines if "= arith." in line or "= math." in line)
    columns = 6 * lanes
    schedule = f"i by {tile[0]} threads, j by {tile[1] * lanes}, product(i, j, k) tile [{tile[0]}, {tile[1]}]"
    return f"""
  loop.kernel @product symbols [n, d] (%a: tensor<?x?x{a}, #sym.dims<n, {depth}>>,
      %b: tensor<6x?x{lanes}x{dense}{b}, #sym.dims<6, d, {lanes}{dims}>>)
      -> (tensor<?x{columns}x{c}, #sym.dims<n, {columns}>>) {{
    %s = loop.nest "product" [i: parallel n, j: parallel {columns}, k: reduction {depth}]
        schedule [{schedule} by "{name}", i, j vector {lanes}] -> tensor<?x{columns}x{c}, #sym.dims<n, {columns}>> {{
      %x = loop.read %a[i, k] : {scalar_type(a)}
      %y = loop.read %b[j floordiv {lanes}, {at}, j mod {lanes}{inside}] : {scalar_type(b)}
{body}
      loop.yield {facts.combiner} %v at [i, j]
    }}
    loop.return %s : tensor<?x{columns}x{c}, #sym.dims<n, {columns}>>
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
    found = proofs(product_of("u8i8"), "lower-to-loops,vectorize-loops,unroll-loops")
    assert not bad(found) and sum(p.verdict.status == "proven" for p in found) == 3


@pytest.mark.full
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_micro_kernel_is_proven(name: str) -> None:
    assert not bad(proofs(product_of(name), LOOPS))


@pytest.mark.full
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_no_example_is_refuted(path: Path) -> None:
    for part in path.read_text().split("// -----"):
        found = proofs(part, LOOPS)
        assert not [p for p in found if p.verdict.status == "refuted"], table(found)


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", MODELS)
def test_models_are_proven(name: str, tmp_path: Path) -> None:
    from benchmark.models.subjects import subject
    from igniter.frontend import import_model

    ctx = IgniterContext()
    module = import_model(str(subject(name, tmp_path).file))
    prover = Prover(log=io.StringIO(), keep_going=True)
    run_passes(ctx, module, parse_passes("cpu-onnx,cpu-fusion,cpu-loop,cpu-schedule"), observers=(prover,))
    whole = rows(prover.proofs)[-1]
    assert whole.refuted == 0 and whole.share >= 0.95, table(prover.proofs)
