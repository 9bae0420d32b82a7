"""The time and the memory of compiles: `python -m benchmark.compile_time`.

    python -m benchmark.compile_time [--models resnet50 gpt2 model.onnx] [--again 3] [--stages] [--markdown]
    python -m benchmark.compile_time --growth [--families chain nodes] [--sizes 1000 2000 4000] [--markdown]

Each model is compiled by `igniter compile`, with a cache of its own that is empty at first (*cold*), then again with
everything in it (*again*, the fastest of `--again`). A row has the seconds of the clock and of all CPUs together, and
two figures of memory, verification included: the most that all processes had together without the pages of files, and
the largest process with them. The system can take the pages of files back, so a container's limit has to hold the first
(`benchmark/watched_process.py`). The seconds of the clock are those of this machine and of its other work: compare them
only on a quiet one. `--stages` adds the seconds of each stage.

`--growth` compiles models of one family at growing sizes (`benchmark.growing_models`), without verification and in one
process, and prints the seconds of the CPU at each size. The *exponent* is the slope between the two largest sizes on
a doubly logarithmic scale: 1 is linear, n log n is at most 1.15 here, 2 is quadratic. The time of the smallest possible
model of the family is subtracted first.

BERT and GPT-2 come from `benchmark.export`, which needs torch once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmark.export import ensure
from benchmark.growing_models import FAMILIES
from benchmark.models.networks import NETWORKS
from benchmark.models.zoo import find
from benchmark.table import Column, show

MODELS = ("resnet50", "convnext_tiny", "efficientnet_b0", "vit_base", "bert-base-uncased", "mobilenet_v2", "gpt2")

COLUMNS = [
    Column("model", 18),
    Column("weights MB", 10),
    Column("kernels", 7),
    Column("cold s", 7),
    Column("cold CPU s", 10),
    Column("cold MB", 7),
    Column("cold RSS MB", 11),
    Column("again s", 7),
    Column("again CPU s", 11),
    Column("again MB", 8),
    Column("again RSS MB", 12),
]


@dataclass(frozen=True)
class Cost:
    """The cost of one command: seconds of the clock and of all CPUs, the bytes that all processes had together without
    the pages of files, and those of the largest process with them."""

    seconds: float
    cpu: float
    anonymous: int
    resident: int

    @property
    def cells(self) -> list[str]:
        return [f"{self.seconds:.2f}", f"{self.cpu:.2f}", f"{self.anonymous / 1e6:.0f}", f"{self.resident / 1e6:.0f}"]


LAUNCH = Path(__file__).with_name("watched_process.py")


def run(command: list[str], environment: dict[str, str]) -> Cost:
    """Runs a command to its end; raises `RuntimeError` with its messages if it fails."""
    launched = [sys.executable, "-S", str(LAUNCH), *command]
    done = subprocess.run(launched, env=environment, capture_output=True, text=True)
    said = done.stdout.splitlines()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} cannot be started:\n{done.stderr}")
    code, seconds, cpu, kilobytes, anonymous = json.loads(said[-1])
    if code:
        raise RuntimeError("\n".join([f"{' '.join(command)} failed:", *said[:-1], done.stderr]))
    return Cost(seconds, cpu, anonymous, kilobytes * 1024)


def path_of(name: str, folder: Path) -> Path:
    """Returns the file of a model, made if it is not there. Raises `ValueError` for an unknown name."""
    if Path(name).is_file():
        return Path(name).resolve()
    if name in NETWORKS:
        path = folder / f"{name}.onnx"
        onnx.save(NETWORKS[name](), path)
        return path
    return ensure(find(name), "dynamo")


def weights_of(model: Path) -> int:
    """Returns the bytes of a model and of the external data beside it."""
    beside = {model, *model.parent.glob(f"{model.name}.data")}
    return sum(path.stat().st_size for path in beside)


def measure(name: str, again: int) -> tuple[list[str], dict[str, float]]:
    """Returns the row of a model, and the seconds of its stages."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = path_of(name, folder)
        environment = {**os.environ, "IGNITER_CACHE_DIR": str(folder / "cache"), "IGNITER_CACHE_SIZE": "4G"}
        command = [sys.executable, "-m", "igniter.tools.main", "compile", str(model), "-o", str(folder / "out")]
        cold = run(command, environment)
        report = json.loads((folder / "out" / "report.json").read_text())
        repeated = [run(command, environment) for _ in range(again)]
        if not json.loads((folder / "out" / "report.json").read_text()).get("from_cache"):
            raise RuntimeError(f"{name}: the second compile did not find the result of the first in the cache")
        best = min(repeated, key=lambda cost: cost.seconds)
        row = [name, f"{weights_of(model) / 1e6:.0f}", str(report["kernels"]), *cold.cells, *best.cells]
        return row, report["seconds"]


def growth(name: str, sizes: Sequence[int]) -> list[str]:
    """Returns the row of a family: the seconds of the CPU at each size, and the exponent of the last step."""
    made = FAMILIES[name].make
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.onnx")

        def cost(n: int) -> float:
            onnx.save(made(n), model)
            environment = {**os.environ, "IGNITER_CACHE_DIR": str(Path(folder, str(n))), "IGNITER_JOBS": "1"}
            command = [sys.executable, "-m", "igniter.tools.main", "compile", str(model), "--no-verify"]
            return run([*command, "-o", str(Path(folder, "out"))], environment).cpu

        least = cost(1)
        costs = [cost(n) for n in sizes]
    cells = [f"{n}: {seconds:.1f}" for n, seconds in zip(sizes, costs, strict=True)]
    return [name, FAMILIES[name].about, f"{least:.1f}", *cells, f"{exponent(sizes[-2:], costs[-2:], least):.2f}"]


def exponent(sizes: Sequence[int], costs: Sequence[float], least: float) -> float:
    """Returns the exponent of the growth from the first to the last size, above the cost `least` of any model."""
    first, last = (max(cost - least, 1e-3) for cost in (costs[0], costs[-1]))
    return math.log(last / first) / math.log(sizes[-1] / sizes[0])


def show_growth(families: Sequence[str], sizes: Sequence[int], markdown: bool) -> None:
    """Prints a row for each family."""
    columns = [Column("family", 13), Column("n counts", 30), Column("n = 1, s", 8)]
    columns += [*(Column(f"size {k + 1}, s", 12) for k in range(3)), Column("exponent", 8)]
    if markdown:
        print("| " + " | ".join(c.name for c in columns) + " |")
        print("| --- | --- |" + " ---: |" * (len(columns) - 2))
    show(columns, markdown)
    for name in families:
        row = growth(name, sizes or FAMILIES[name].sizes)
        show(columns, markdown, row)
        if markdown:
            print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="files, or names of models", metavar="NAME")
    parser.add_argument("--again", type=int, default=3, help="compiles with everything cached")
    parser.add_argument("--stages", action="store_true", help="the seconds of each stage of the cold compile")
    parser.add_argument("--markdown", action="store_true", help="rows of a table for the docs")
    parser.add_argument("--growth", action="store_true", help="growing models instead")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="for --growth")
    parser.add_argument("--sizes", nargs=3, type=int, default=(), help="three sizes for --growth", metavar="N")
    chosen = parser.parse_args()
    if chosen.again < 1:
        parser.error("--again must be at least 1")
    if list(chosen.sizes) != sorted(set(chosen.sizes)) or min(chosen.sizes, default=2) < 2:
        parser.error("--sizes must be three growing numbers from 2 on")
    if chosen.growth:
        show_growth(chosen.families, chosen.sizes, chosen.markdown)
        return
    if chosen.markdown:
        print("| " + " | ".join(c.name for c in COLUMNS) + " |")
        print("| --- |" + " ---: |" * (len(COLUMNS) - 1))
    show(COLUMNS, chosen.markdown)
    for name in chosen.models:
        try:
            row, stages = measure(name, chosen.again)
        except ValueError as error:
            parser.error(str(error))
        show(COLUMNS, chosen.markdown, row)
        if chosen.markdown:
            print("| " + " | ".join(row) + " |", flush=True)
        if chosen.stages:
            print("    " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in stages.items()), flush=True)


if __name__ == "__main__":
    main()
