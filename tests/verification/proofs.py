"""Proofs for all sizes of every pass of the CPU pipeline, as a table by pass.

    python -m tests.verification.proofs [examples] [micro-kernels] [models] [--json FILE]

`examples` are the kernels of `docs/examples`, `docs/gallery` and `lit_tests/examples`; `micro-kernels` are one product
for each built-in micro-kernel; `models` are the kernels of five of the shipped networks, with one layer each. Kernels
of equal text are proven once. Every kernel has a process of its own, so one that exceeds its limit ends alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.loop.instructions import BUILT_IN, micro_kernel
from igniter.dialects.onnx import GraphOp
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.pipelines import PIPELINES
from igniter.toolbox.experiment import networks
from igniter.verification.prove.observer import Prover
from igniter.verification.prove.prove import Verdict
from igniter.verification.prove.report import Proof, markdown, rows, table

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs/examples", "docs/gallery", "lit_tests/examples")
WRONG = ("misspelt_schedule", "wrong_", "linear_racing", "linear_uneven", "unbound_symbol", "distances_by")
"""Examples that a parser, a verifier or a pass refuses."""
MODELS: dict[str, Callable[[], Any]] = {
    "encoder": lambda: networks.encoder(layers=1),
    "decoder": lambda: networks.decoder(layers=1),
    "mixer": lambda: networks.mixer(layers=1),
    "mobilenet": lambda: networks.mobilenet(blocks=2),
    "unet": networks.unet,
}
"""The networks. Further layers have kernels of the same text, up to the numbers of channels."""
TO_KERNELS = "cpu-onnx,cpu-subnormals,cpu-tiles,cpu-fusion,cpu-loop"
SCHEDULE = ",".join(p for p in PIPELINES["cpu-schedule"] if p not in ("apply-tuned-schedules", "form-ort-library"))
SECONDS = 60.0
KERNEL_SECONDS = 300.0


@dataclass(frozen=True)
class Subject:
    """A kernel, as the text of a module with it alone."""

    name: str
    text: str


@dataclass
class Outcome:
    """The proofs of one kernel."""

    subject: Subject
    proofs: list[Proof] = field(default_factory=list[Proof])
    refused: str = ""
    """The error of a pass that refuses the kernel."""
    seconds: float = 0.0
    """Processor time."""


# -- kernels ----------------------------------------------------------------------------------------------------------


def examples() -> Iterator[Subject]:
    """Yields the kernels of the examples; graphs of ONNX are lowered to kernels."""
    for path in (p for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.mlir"))):
        text = path.read_text()
        if path.name.startswith(WRONG) or ("loop.kernel" not in text and "onnx.graph" not in text):
            continue
        for part in text.split("// -----"):
            ctx = IgniterContext()
            module = Parser(ctx, part, str(path)).parse_module()
            if any(isinstance(op, GraphOp) for op in module.ops):
                run_passes(ctx, module, parse_passes(TO_KERNELS))
            yield from _kernels(path.stem, module)


def micro_kernels() -> Iterator[Subject]:
    """Yields one product for each built-in micro-kernel."""
    for name in BUILT_IN:
        yield Subject(name, product_of(name))


def models(names: Sequence[str] = ()) -> Iterator[Subject]:
    """Yields the kernels of networks (default: all of `MODELS`)."""
    from igniter.frontend import import_model

    for name in names or MODELS:
        module = import_model(MODELS[name]())
        run_passes(IgniterContext(), module, parse_passes(TO_KERNELS))
        yield from _kernels(name, module)


SOURCES: dict[str, Callable[[], Iterator[Subject]]] = {
    "examples": examples,
    "micro-kernels": micro_kernels,
    "models": models,
}


def _kernels(source: str, module: ModuleOp) -> Iterator[Subject]:
    for kernel in (op for op in module.walk() if isinstance(op, KernelOp)):
        yield Subject(f"{source}/{kernel.sym_name.data}", str(ModuleOp([kernel.clone()])))


def unique(subjects: Sequence[Subject]) -> list[Subject]:
    """Returns the first of each group of kernels with equal text up to the kernel's name."""
    found: dict[str, Subject] = {}
    for subject in subjects:
        module = Parser(IgniterContext(), subject.text, subject.name).parse_module()
        for kernel in module.ops:
            assert isinstance(kernel, KernelOp)
            kernel.sym_name = StringAttr("kernel")
        found.setdefault(str(module), subject)
    return list(found.values())


def product_of(name: str, tile: tuple[int, int] = (4, 2)) -> str:
    """Returns a kernel with a product by the micro-kernel `name`: its own meaning, over columns instead of panels."""
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


# -- runs -------------------------------------------------------------------------------------------------------------


class _Sender(Prover):
    """Sends every proof to the parent process, with the name of the next pass before it."""

    to: Connection

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self.to.send(this.name)
        super().before(this, module)

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        known = len(self.proofs)
        super().after(this, module)
        self.to.send(self.proofs[known:])


def _run(subject: Subject, pipeline: str, seconds: float, whole: float, to: Connection) -> None:
    """Proves one kernel, in a process of its own."""
    most = int(2 * whole + 60)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    ctx = IgniterContext()
    with open("/dev/null", "w") as nowhere:
        prover = _Sender(log=nowhere, seconds=seconds, kernel_seconds=whole, keep_going=True)
        prover.to = to
        module = Parser(ctx, subject.text, subject.name).parse_module()
        try:
            run_passes(ctx, module, parse_passes(pipeline), observers=(prover,))
        except IgniterError as error:
            to.send(error)
    to.send(time.process_time())


def prove_all(
    subjects: Sequence[Subject], pipeline: str = SCHEDULE, seconds: float = SECONDS, whole: float = KERNEL_SECONDS,
    jobs: int = 1,
) -> Iterator[Outcome]:  # fmt: skip
    """Yields the proofs of every kernel, in the order in which they end.

    `seconds` is the limit of processor time for one pass, `whole` for all passes of a kernel. A process that needs
    twice the latter is ended; a signal ends it alone, and the pass under proof is not decided.
    """
    fork = multiprocessing.get_context("fork")
    waiting = list(subjects)
    running: dict[Connection, tuple[Outcome, list[object], Any]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mine, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=_run, args=(waiting[0], pipeline, seconds, whole, theirs))
            process.start()
            theirs.close()
            running[mine] = Outcome(waiting.pop(0)), [], process
        for each in wait(list(running)):
            assert isinstance(each, Connection)
            outcome, messages, process = running[each]
            try:
                messages.append(each.recv())
                continue
            except EOFError:
                process.join()
            del running[each]
            if process.exitcode > 0:
                raise RuntimeError(f"the process of {outcome.subject.name} ended with {process.exitcode}")
            _collect(outcome, messages, -process.exitcode)
            yield outcome


def _collect(outcome: Outcome, messages: Sequence[object], number: int) -> None:
    """Adds the proofs of a process; a signal ends a process at its limit, or at a crash inside of isl."""
    name = outcome.subject.name
    started = ""
    for message in messages:
        if isinstance(message, str):
            started = message
        elif isinstance(message, list):
            outcome.proofs += [Proof(p.pass_name, name, p.verdict) for p in message]
            started = ""
        elif isinstance(message, float):
            outcome.seconds = message
            return
        else:
            outcome.refused = f"{started}: {str(message).splitlines()[0]}"
    outcome.proofs.append(
        Proof(started, name, Verdict("not decided", f"the process ended with {signal.Signals(number).name}"))
    )


# -- the report -------------------------------------------------------------------------------------------------------


def report(outcomes: Sequence[Outcome], *, as_markdown: bool = False) -> str:
    """Returns the table by pass, the reasons by frequency, and the kernels that a pass refused."""
    proofs = [p for o in outcomes for p in o.proofs]
    lines = [markdown(_changed(proofs)) if as_markdown else table(_changed(proofs)), ""]
    total = sum(o.seconds for o in outcomes)
    lines.append(f"{len(outcomes)} kernels, {total:.0f} s of processor time")
    lines += [f"refuted: {p}" for p in proofs if p.verdict.status == "refuted"]
    reasons = Counter(p.verdict.reason for p in proofs if p.verdict.status == "not decided")
    kernels = {r: sorted({p.kernel for p in proofs if p.verdict.reason == r}) for r in reasons}
    lines += [f"not decided, {n}: {reason} ({', '.join(kernels[reason])})" for reason, n in reasons.most_common()]
    lines += [f"refused: {o.subject.name}: {o.refused}" for o in outcomes if o.refused]
    return "\n".join(lines)


def _changed(proofs: Sequence[Proof]) -> list[Proof]:
    """Returns the proofs of passes that changed some kernel, in the order of the pipeline."""
    order = {name: k for k, name in enumerate(dict.fromkeys(p.partition("{")[0] for p in SCHEDULE.split(",")))}
    changed = {p.pass_name for p in proofs if p.verdict.status != "unchanged"}
    return sorted((p for p in proofs if p.pass_name in changed), key=lambda p: order.get(p.pass_name, len(order)))


def to_json(outcomes: Sequence[Outcome]) -> str:
    """Returns the table and every proof, by kernel."""
    whole = [p for o in outcomes for p in o.proofs]
    kernels = [
        {
            "kernel": o.subject.name,
            "refused": o.refused,
            "seconds": o.seconds,
            "proofs": [p.to_json() for p in o.proofs],
        }
        for o in outcomes
    ]
    names = ("pass", "proven", "refuted", "not_decided", "unchanged")
    passes = [
        dict(zip(names, (r.pass_name, r.proven, r.refuted, r.open, r.unchanged), strict=True)) for r in rows(whole)
    ]
    return json.dumps({"passes": passes, "kernels": kernels}, indent=1)


def _show(outcome: Outcome) -> None:
    counts = Counter(p.verdict.status for p in outcome.proofs)
    shown = ", ".join(f"{n} {status}" for status, n in counts.items())
    print(f"{outcome.subject.name}: {shown} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)
    for proof in (p for p in outcome.proofs if p.verdict.status in ("refuted", "not decided")):
        print(f"  {proof.pass_name}: {proof.verdict.reason} ({proof.verdict.seconds:.0f} s)", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verification.proofs", description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=f"{', '.join(SOURCES)} (default: all)")
    parser.add_argument(
        "--only", default="", help="kernels with one of these texts, separated by commas, in their name"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="processor time of one pass (default: 60)")
    parser.add_argument("--kernel-seconds", type=float, default=KERNEL_SECONDS, help="of a kernel (default: 300)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--json", type=Path, help="write every proof to this file")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    args = parser.parse_args()
    unknown = [s for s in args.sources if s not in SOURCES]
    if unknown:
        parser.error(f"there is no source '{unknown[0]}': the sources are {', '.join(SOURCES)}")
    subjects = unique([s for name in args.sources or SOURCES for s in SOURCES[name]()])
    subjects = [s for s in subjects if any(name in s.name for name in args.only.split(","))]
    outcomes: list[Outcome] = []
    try:
        for outcome in prove_all(subjects, SCHEDULE, args.seconds, args.kernel_seconds, args.jobs):
            outcomes.append(outcome)
            _show(outcome)
    except KeyboardInterrupt:
        print(f"interrupted: {len(subjects) - len(outcomes)} kernels are not in the table")
    print(report(outcomes, as_markdown=args.markdown))
    if args.json is not None:
        args.json.write_text(to_json(outcomes))
    return 1 if any(p.verdict.status == "refuted" for o in outcomes for p in o.proofs) else 0


if __name__ == "__main__":
    sys.exit(main())
