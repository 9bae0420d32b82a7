"""Models on Igniter and its peers, in one interleaved run on the same inputs.

    python -m benchmark.peers --models bert-base-uncased mobilebert-uncased --sequence 32 128 --threads 1 2
    python -m benchmark.peers --models bert-base-uncased --peers igniter openvino --precision f32 bf16 --rounds 9

Every system runs in a process of its own, all in turns and ORT twice (`race.py`); how each is built is in `systems.py`.
Outputs are checked against ORT's before anything is timed. A peer that is not installed, does not take a model or
computes something else is listed with the reason. The table, the plot and every turn's time go to `benchmark/results`.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from benchmark.export import ensure
from benchmark.machine import Arithmetic, Machine, Probes, cpu, describe
from benchmark.models.zoo import ARCHITECTURES, Architecture, find
from benchmark.peers.protocol import Precision, Task
from benchmark.peers.race import Entry, Worker, labelled, race
from benchmark.peers.report import Race, markdown, save
from benchmark.roofline import Graph, roofline

PEERS = ("igniter", "ort", "ort-transformers", "openvino", "iree", "tvm", "inductor")
INT8: Precision = "int8-dynamic"
ORT_INT8 = "ort-int8"
RESULTS = Path(__file__).resolve().parent.parent / "results"
TOLERANCE: dict[Precision, float] = {"f32": 1e-4, "bf16": 5e-2, "int8-dynamic": 0.5}
"""The largest error relative to ORT's f32 outputs that counts as the same model."""
ARITHMETIC: dict[Precision, Arithmetic] = {"f32": "f32", "bf16": "bf16", "int8-dynamic": "int8"}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--models", nargs="+", required=True, help=f"of {', '.join(ARCHITECTURES)}; or all")
    add("--batch", type=int, nargs="+", default=[1])
    add("--sequence", type=int, nargs="+", default=[32, 128], help="lengths; of a decode step, of its past")
    add("--threads", type=int, nargs="+", default=[1])
    add("--precision", nargs="+", choices=list(TOLERANCE), default=["f32"])
    add("--peers", nargs="+", choices=[*PEERS, "torch"], default=list(PEERS), help="ORT takes part anyway")
    add("--exporter", choices=["dynamo", "torchscript"], default="dynamo")
    add("--rounds", type=int, default=11)
    add("--seconds", type=float, default=0.3, help="of a turn, at least one run")
    add("--spinning", action="store_true", help="let threads spin between ops; the gaps get longer")
    add("--limit", type=float, default=900.0, help="seconds that a peer may take to build a model")
    add("--fusion", default="", help="the passes with which Igniter forms regions")
    add("--name", default="", help="of the files in benchmark/results")
    chosen = parser.parse_args()
    architectures = list(ARCHITECTURES.values()) if chosen.models == ["all"] else [find(n) for n in chosen.models]
    races: list[Race] = []
    name = chosen.name or time.strftime("peers-%Y%m%d-%H%M%S")
    for architecture in architectures:
        found = [run for threads in chosen.threads for run in _races(architecture, threads, chosen)]
        races += found
        # After every model: a run of all takes hours.
        paths = save(races, RESULTS, name, {"machine": cpu(), "arguments": vars(chosen)})
    print(markdown(races))
    print(*paths, sep="\n", file=sys.stderr)


def _races(architecture: Architecture, threads: int, chosen: argparse.Namespace) -> list[Race]:
    """Every size and precision of one model; the processes are kept from one to the next."""
    path = ensure(architecture, chosen.exporter)
    graph = Graph(path)
    races: list[Race] = []
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for label, peer in labelled(chosen.peers).items():
            workers[label] = Worker(peer, threads, chosen.spinning)
            stack.callback(workers[label].close)
        if INT8 in chosen.precision:
            # The reference stays f32.
            workers[ORT_INT8] = Worker("ort", threads, chosen.spinning)
            stack.callback(workers[ORT_INT8].close)
        probes = stack.enter_context(Probes(threads))
        for batch in chosen.batch:
            for length in chosen.sequence:
                dims = architecture.sizes(batch, length)
                task = make_task(architecture, path, dims, threads, chosen)
                for precision in chosen.precision:
                    probes.restart()
                    races.append(_race(architecture, graph, task, dims, precision, workers, probes, chosen))
    return races


def _race(
    architecture: Architecture,
    graph: Graph,
    task: Task,
    dims: dict[str, int],
    precision: Precision,
    workers: dict[str, Worker],
    probes: Probes,
    chosen: argparse.Namespace,
) -> Race:
    _say(f"{architecture.slug} {dims}, {task.threads} threads, {precision}")
    entries = [
        Entry(
            label, worker, task if worker.peer == "ort" and precision == "bf16" else replace(task, precision=precision)
        )
        for label, worker in workers.items()
    ]
    results = race(
        entries,
        rounds=chosen.rounds,
        seconds=chosen.seconds,
        # Intel's OpenMP lets its threads spin for 0.2 s.
        gap=0.3 if chosen.spinning else 0.05,
        limit=chosen.limit,
        tolerance=TOLERANCE[precision],
        between=probes.sample,
        say=_say,
    )
    made = Race(architecture.slug, dims, task.threads, precision, results)
    machine: Machine | None = probes.machine() if probes.sampled else None
    if machine is not None and ARITHMETIC[precision] in machine.flops:
        _say(describe(machine))
        made.rates = {**asdict(machine), "spread": probes.spread}
        made.roofline = asdict(roofline(graph.steps(dims, ARITHMETIC[precision]), machine))
    return made


def make_task(
    architecture: Architecture, path: Path, dims: dict[str, int], threads: int, chosen: argparse.Namespace
) -> Task:
    """The model at that size with random inputs, the same for every system."""
    from igniter.frontend import import_model
    from igniter.runtime.session import make_session
    from igniter.runtime.verification.graph_facts import index_limits
    from igniter.runtime.verification.inputs import random_inputs
    from igniter.runtime.verification.specs import specs_of

    specs = specs_of(make_session(path))
    made = random_inputs(specs, dims, index_limits(import_model(path)))
    return Task(
        str(path),
        {name: made[name] for name in architecture.all_inputs},
        threads,
        spinning=chosen.spinning,
        family=architecture.family,
        torch=("benchmark.export:torch_module", architecture.name),
        options={"fusion_passes": chosen.fusion} if chosen.fusion else {},
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
