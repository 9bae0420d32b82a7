"""The time and the memory of compiles: `python -m benchmark.compile_time`.

    python -m benchmark.compile_time [--models resnet50 gpt2 model.onnx] [--again 3] [--stages] [--markdown]

Each model is compiled by `igniter compile`, with a cache of its own that is empty at first (*cold*), then again with
everything in it (*again*, the fastest of `--again`). A row has the seconds of the clock and of all CPUs together, and
two figures of memory, verification included: the most that all processes had together without the pages of files, and
the largest process with them. The system can take the pages of files back, so a container's limit has to hold the first
(`benchmark/watched_process.py`). The seconds of the clock are those of this machine and of its other work: compare them
only on a quiet one. `--stages` adds the seconds of each stage.

BERT and GPT-2 come from `benchmark.export`, which needs torch once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmark.export import ensure
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="files, or names of models", metavar="NAME")
    parser.add_argument("--again", type=int, default=3, help="compiles with everything cached")
    parser.add_argument("--stages", action="store_true", help="the seconds of each stage of the cold compile")
    parser.add_argument("--markdown", action="store_true", help="rows of a table for the docs")
    chosen = parser.parse_args()
    if chosen.again < 1:
        parser.error("--again must be at least 1")
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
