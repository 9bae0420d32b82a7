"""Models on Igniter and its peers, in one interleaved run on the same inputs.

    python -m benchmark.peers --models bert-base-uncased mobilebert-uncased --sequence 32 128 --threads 1 2
    python -m benchmark.peers --models bert-base-uncased --peers igniter openvino --precision f32 bf16 --rounds 9
    python -m benchmark.peers --models resnet50 mobilenet_v2 nudenet-320n --peers igniter openvino --batch 1 8

Models are transformers, networks of images, and those in Python packages (`benchmark/models/subjects.py`).
Every system runs in a process of its own, all in turns and ORT twice (`race.py`); how each is built is in `systems.py`.
Outputs are checked against ORT's before anything is timed. A peer that is not installed, does not take a model or
computes something else is listed with the reason. The table, the plot and every turn's time go to `benchmark/results`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmark.machine import Arithmetic, Machine, Probes, cpu, describe
from benchmark.models.subjects import Dims, Sizes, Subject, check, names, subject
from benchmark.models.zoo import ARCHITECTURES
from benchmark.peers.protocol import Precision, Task
from benchmark.peers.race import Entry, Worker, labelled, race
from benchmark.peers.report import Race, markdown, save
from benchmark.peers.systems import reason_of
from benchmark.roofline import Graph, graph_of, roofline

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
    add("--models", nargs="+", required=True, help=f"of {', '.join(names())}; or all, the transformers")
    add("--batch", type=int, nargs="+", help="1 by default")
    add("--sequence", type=int, nargs="+", help="lengths, 32 and 128 by default; of a decode step, of its past")
    add("--size", type=int, help="the sides of images, the published ones by default")
    add("--channels", type=int, help="of the networks of diffusion, a multiple of 32")
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
    models = list(ARCHITECTURES) if chosen.models == ["all"] else chosen.models
    for model in models:
        try:
            check(model)
        except ValueError as error:
            parser.error(str(error))
    sizes = Sizes(chosen.batch, chosen.sequence, chosen.size, chosen.channels)
    races: list[Race] = []
    name = chosen.name or time.strftime("peers-%Y%m%d-%H%M%S")
    for model in models:
        with tempfile.TemporaryDirectory(prefix="igniter-peers-") as folder:
            found = subject(model, Path(folder), sizes, chosen.exporter)
            for option in sorted(found.without_effect):
                _say(f"{found.name}: --{option} changes nothing of it")
            graph = _graph(found, Path(folder))
            for threads in chosen.threads:
                races += _races(found, graph, threads, chosen)
        # After every model: a run of all takes hours.
        paths = save(races, RESULTS, name, {"machine": cpu(), "arguments": vars(chosen)})
    print(markdown(races))
    print(*paths, sep="\n", file=sys.stderr)


def _graph(model: Subject, folder: Path) -> Graph | None:
    """What the rooflines of the model come from; nothing where it cannot be had, which is said."""
    try:
        return graph_of(model, folder)
    except Exception as error:  # whatever the models of strangers meet with is the reason
        _say(f"no roofline: {reason_of(error)}")
        return None


def _races(model: Subject, graph: Graph | None, threads: int, chosen: argparse.Namespace) -> list[Race]:
    """Every size and precision of one model; the processes are kept from one to the next."""
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
        for dims in model.cases:
            task = make_task(model, dims, threads, chosen)
            for precision in chosen.precision:
                probes.restart()
                races.append(_race(model, graph, task, dims, precision, workers, probes, chosen))
    return races


def _race(
    model: Subject,
    graph: Graph | None,
    task: Task,
    dims: Dims,
    precision: Precision,
    workers: dict[str, Worker],
    probes: Probes,
    chosen: argparse.Namespace,
) -> Race:
    _say(f"{model.name} {dims}, {task.threads} threads, {precision}")
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
        # Two results that are right may be as far apart as ORT's own two.
        tolerance=max(TOLERANCE[precision], 2 * model.noise),
        between=probes.sample,
        say=_say,
    )
    made = Race(model.name, dims, task.threads, precision, results)
    if probes.sampled:
        machine = probes.machine()
        _say(describe(machine))
        made.rates = {**asdict(machine), "spread": probes.spread}
        if graph is not None and ARITHMETIC[precision] in machine.flops:
            made.roofline = _bound(graph, task, ARITHMETIC[precision], machine)
    return made


def _bound(graph: Graph, task: Task, arithmetic: Arithmetic, machine: Machine) -> dict[str, Any]:
    """The model's roofline, or nothing where it has parts that are not counted."""
    try:
        dims = graph.sizes({name: value.shape for name, value in task.inputs.items()})
        return asdict(roofline(graph.steps(dims, arithmetic), machine))
    except ValueError as error:
        _say(f"no roofline: {error}")
        return {}


def make_task(model: Subject, dims: Dims, threads: int, chosen: argparse.Namespace) -> Task:
    """The model at that size with its inputs, the same for every system."""
    return Task(
        str(model.file),
        model.feed(dims),
        threads,
        spinning=chosen.spinning,
        family=model.family,
        torch=model.torch,
        options={"fusion_passes": chosen.fusion} if chosen.fusion else {},
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
