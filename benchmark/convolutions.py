"""The convolutions of networks one by one: Igniter, ORT, OpenVINO and oneDNN beside the machine's own limits.

    python -m benchmark.convolutions --models resnet50 mobilenet_v2 yolov8n --threads 1 [--rounds 15] [--json | --csv]
    python -m benchmark.convolutions --models resnet50 --only "3x3" --repeat 8 --fusion PASSES

Each different layer of a network, with its bias and the activation behind it, is a model of its own. Each system runs
in a process of its own, all in turns (`peers/race.py`), ORT twice. The outputs are checked against ORT's (largest error
1e-4 of the largest magnitude).

A small layer takes as long as the call around it. So a layer of 16 channels on an image of one pixel is timed first,
which is a call, its nodes, and next to no arithmetic, and the fastest of its turns in a system is subtracted from what
the layers take in that system. `~` marks a figure of which that was more than half: of such a layer little is known. Of
one that takes hardly longer than a call nothing is known, which the table says. `=` marks what Igniter leaves to ORT.

Images are taken and given with their channels first, as ONNX has them. What a system rearranges for a layout of its own
is in its figure, although it would do so once in a network, not around each layer; `torch`, which is oneDNN, gets and
gives channels last, which it rearranges nothing for. With `--repeat N` a layer that can take what it gives stands N
times in a row, each time with weights of its own, and the figure is that of one: calls and rearrangements count less.
Inputs and weights lie where the last run left them, in a cache where they fit.

The limit of a layer is its arithmetic at the rate of multiply-adds in registers, or its bytes (inputs, outputs and
weights once) at the bandwidth of reading a buffer of that size, whichever is longer; of a depthwise layer always the
bytes. Both rates are sampled in every round.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmark.gemm import add_race_options, open_workers
from benchmark.machine import Probes
from benchmark.models.networks import NETWORKS
from benchmark.models.single_layers import Layer, layers_of, model_of
from benchmark.models.subjects import check, subject
from benchmark.peers.protocol import Task
from benchmark.peers.race import Entry, Result, Worker, race
from benchmark.peers.systems import LEFT_TO_ORT, fix_sizes
from benchmark.table import Column, show

PEERS = ("ort", "igniter", "openvino", "torch")
CALL = Layer(16, 16, (1, 1), (3, 3), pads=(1, 1, 1, 1), activation="Relu")
"""A layer of nothing to speak of: what a call costs."""
HARDLY = 0.9
"""The share of a layer's time from which on it is the call's, and the layer's cannot be told."""
TOLERANCE = 1e-4
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet_v2", "yolov8n"], help="as peers takes")
    parser.add_argument("--only", nargs="+", default=[""], help="layers with one of these in their names")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeat", type=int, default=1, help="how often a layer stands in a row, where it can")
    parser.add_argument("--winograd", choices=["off", "auto", "on"], default="off", help="Igniter's tiles")
    add_race_options(parser, PEERS)
    parser.add_argument("--csv", action="store_true")
    chosen = parser.parse_args()
    for name in chosen.models:
        try:
            check(name)
        except ValueError as error:
            parser.error(str(error))
    rows = [row for threads in chosen.threads for row in measure(threads, chosen)]
    if chosen.json:
        print(json.dumps(rows, indent=2))
    if chosen.csv:
        write_csv(rows)


def measure(threads: int, chosen: argparse.Namespace) -> list[Row]:
    """A row for every layer of every model, with that many threads."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="igniter-convolutions-")))
        bench = Bench(open_workers(stack, chosen.peers, threads), threads, folder, chosen)
        return [row for name in chosen.models for row in bench.model(name)]


class Bench:
    """The processes of the systems, and what was found with them; a layer that two models have is timed once."""

    def __init__(self, workers: dict[str, Worker], threads: int, folder: Path, chosen: argparse.Namespace):
        self.workers, self.threads, self.folder, self.chosen = workers, threads, folder, chosen
        self.silent = chosen.json or chosen.csv
        self.columns = [
            Column("layer", 52), Column("n", 3), *(Column(label, 20) for label in workers), Column("limit", 20),
        ]  # fmt: skip
        self.rows: dict[Layer, Row] = {}
        self.said: set[tuple[str, str]] = set()
        found = self._race(CALL, 1, Probes(threads, levels=()))
        # Not the median: of a machine that is disturbed the calls are, and more than a call is not to be subtracted.
        self.calls = {r.label: min(r.turns) for r in found if not r.reason}

    def model(self, name: str) -> Iterator[Row]:
        found = layers(name, self.folder, self.chosen.batch)
        picked = {layer: n for layer, n in found.items() if any(part in str(layer) for part in self.chosen.only)}
        if not picked:
            print(f"{name}: no layer has {' or '.join(self.chosen.only)} in its name", file=sys.stderr)
            return
        show(self.columns, self.silent)
        calls = [f"{1e6 * self.calls[label]:.1f}us" if label in self.calls else "-" for label in self.workers]
        show(self.columns, self.silent, ["a call, which is subtracted", "", *calls, ""])
        rows: list[Row] = []
        for layer, count in picked.items():
            if layer not in self.rows:
                self.rows[layer] = self._row(layer)
            rows.append({"model": name, "count": count, **self.rows[layer]})
            show(self.columns, self.silent, cells(rows[-1]))
        show(self.columns, self.silent, totals(rows, list(self.workers)))
        if not self.silent:
            print(f"{name}, batch {self.chosen.batch}, threads {self.threads}\n")
        yield from rows

    def _row(self, layer: Layer) -> Row:
        repeat = self.chosen.repeat if layer.follows_itself else 1
        size = layer.bytes(self.chosen.batch)
        probes = Probes(self.threads, levels=(), buffers=[size])
        results = self._race(layer, repeat, probes)
        peak, reading = probes.machine().flops["f32"], probes.reading(size)
        return row_of(layer, self.chosen.batch, self.threads, repeat, results, self.calls, peak, reading)

    def _race(self, layer: Layer, repeat: int, probes: Probes) -> list[Result]:
        path = self.folder / "layer.onnx"
        onnx.save_model(model_of(layer, repeat), path)
        image = np.random.default_rng(0).standard_normal((self.chosen.batch, layer.inputs, *layer.image), np.float32)
        task = Task(
            str(path),
            {"x": image},
            self.threads,
            torch=("benchmark.convolutions:torch_layers", str(path), layer.activation),
            options={"fusion_passes": self.chosen.fusion, "winograd": self.chosen.winograd},
        )
        entries = [Entry(label, worker, task) for label, worker in self.workers.items()]
        with probes:
            results = race(
                entries,
                rounds=self.chosen.rounds,
                seconds=self.chosen.seconds,
                tolerance=TOLERANCE,
                between=probes.sample,
            )
        for result in results:
            if result.reason and (result.label, result.reason) not in self.said:
                self.said.add((result.label, result.reason))
                print(f"{result.label}, {layer}: {result.reason}", file=sys.stderr)
        return results


def layers(name: str, folder: Path, batch: int) -> Counter[Layer]:
    """The layers of the model called `name`, of which only the shapes are made where code writes it out."""
    if name in NETWORKS:
        return layers_of(NETWORKS[name](values=False), {"batch": batch})
    found = subject(name, folder)
    return layers_of(onnx.load(fix_sizes(found.file, found.feed(found.cases[0]), folder)), {})


def row_of(
    layer: Layer,
    batch: int,
    threads: int,
    repeat: int,
    results: list[Result],
    calls: Mapping[str, float],
    peak: float,
    reading: float,
) -> Row:
    """What a layer takes in every system without the call, its rate, and its share of the limit."""
    flops, size = 2 * batch * layer.multiply_adds, layer.bytes(batch)
    arithmetic = flops / peak >= size / reading and not layer.depthwise
    work, limit = (flops, flops / peak) if arithmetic else (size, size / reading)
    row: Row = {
        "layer": str(layer),
        **asdict(layer),
        "batch": batch,
        "threads": threads,
        "repeat": repeat,
        "flops": flops,
        "bytes": size,
        "bound_by": "arithmetic" if arithmetic else "bytes",
        "limit_rate": (peak if arithmetic else reading) / 1e9,
        "limit_us": 1e6 * limit,
        "systems": {},
    }
    for result in results:
        found = result.to_dict()
        if not result.reason:
            call = calls.get(result.label, 0.0)
            seconds = (result.median - call) / repeat
            found |= {
                "call_us": 1e6 * call,
                "doubtful": call > result.median / 2,
                "left_to_ort": result.note == LEFT_TO_ORT,
            }
            if call <= HARDLY * result.median:
                found |= {"us": 1e6 * seconds, "rate": work / seconds / 1e9, "share": limit / seconds}
        row["systems"][result.label] = found
    return row


def cells(row: Row) -> list[str]:
    unit = "GFLOP/s" if row["bound_by"] == "arithmetic" else "GB/s"
    systems = [_cell(s) for s in row["systems"].values()]
    return [row["layer"], str(row["count"]), *systems, f"{row['limit_us']:.1f}us {row['limit_rate']:.0f} {unit}"]


def _cell(found: Mapping[str, Any]) -> str:
    if "us" not in found:
        return "-" if "reason" in found else "a call"
    marks = "=" * found["left_to_ort"] + "~" * found["doubtful"]
    return f"{marks}{found['us']:.1f}us {found['rate']:.0f} {found['share']:.0%}"


def totals(rows: list[Row], labels: list[str]) -> list[str]:
    """All layers of the model as often as it has them: milliseconds, and how many times ORT's."""
    sums = {
        label: sum(r["count"] * r["systems"][label]["us"] for r in rows) / 1e3
        for label in labels
        if all("us" in r["systems"][label] for r in rows)
    }
    first = sums.get(labels[0])
    shown = [f"{sums[n]:.2f}ms {sums[n] / first:.2f}x" if n in sums and first else "-" for n in labels]
    count = sum(r["count"] for r in rows)
    return ["all of them", str(count), *shown, f"{sum(r['count'] * r['limit_us'] for r in rows) / 1e3:.2f}ms"]


FIELDS = (
    "model",
    "layer",
    "count",
    "batch",
    "threads",
    "repeat",
    "flops",
    "bytes",
    "bound_by",
    "limit_rate",
    "limit_us",
)
OF_SYSTEMS = ("us", "call_us", "rate", "share", "doubtful", "left_to_ort", "error", "reason")


def write_csv(rows: list[Row]) -> None:
    """A line for every layer and system."""
    writer = csv.writer(sys.stdout)
    writer.writerow([*FIELDS, "system", *OF_SYSTEMS])
    for row in rows:
        for label, found in row["systems"].items():
            writer.writerow([*(row[f] for f in FIELDS), label, *(found.get(f, "") for f in OF_SYSTEMS)])


# -- oneDNN -----------------------------------------------------------------------------------------------------------

UNARY: dict[str, tuple[str, list[float]]] = {
    "": ("none", []),
    "Relu": ("relu", []),
    "Relu6": ("hardtanh", [0.0, 6.0]),
    "Silu": ("swish", []),
    "HardSwish": ("hardswish", []),
    "Sigmoid": ("sigmoid", []),
    "HardSigmoid": ("hardsigmoid", []),
}
"""What torch calls an activation that oneDNN does in the convolution, and its bounds."""


def torch_layers(model: str, activation: str) -> Callable[[Any], Any]:
    """The layers of the file as oneDNN does them, with channels last, and its weights packed once for that input."""
    import torch

    onednn = torch.ops.mkldnn
    unary, bounds = UNARY[activation]
    graph = onnx.load(model).graph
    values = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy()) for w in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "Conv"]
    last = torch.channels_last
    packed: list[tuple[Any, ...]] = []
    images: list[Any] = []

    def pack(x: Any) -> None:
        images.append(x.to(memory_format=last))
        y = images[0]
        for node in nodes:
            said = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            weight, bias = values[node.input[1]], values[node.input[2]]
            geometry = (said["pads"][:2], said["strides"], said["dilations"], said["group"])
            ready = onednn._reorder_convolution_weight(weight.to(memory_format=last), *geometry, list(y.shape))
            packed.append((ready, bias, *geometry, unary, bounds, ""))
            y = onednn._convolution_pointwise(y, *packed[-1])

    def run(x: Any) -> Any:
        if not packed:
            pack(x)
        y = images[0]
        for arguments in packed:
            y = onednn._convolution_pointwise(y, *arguments)
        return y

    return run


if __name__ == "__main__":
    main()
