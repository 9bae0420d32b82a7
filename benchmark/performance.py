"""Whole models on this machine, as the table of docs/explanation/performance.md for its kind of CPU, and as the
README's table and plot.

    python -m benchmark.performance                                 measure, and print the table
    python -m benchmark.performance --write                         put it into the pages
    python -m benchmark.performance --models resnet50 --threads 1   some of it
    python -m benchmark.performance --out rows.jsonl                keep the rows; those that are there are not repeated
    python -m benchmark.performance --report rows.jsonl --write     the table of rows measured elsewhere

Each model runs in ONNX Runtime, in Igniter with default options, in OpenVINO where it is installed, and in ONNX Runtime
once more (A/A), in turns, in one process, with threads that do not spin. Every turn has a run that is not timed before
the one that is. On a CPU with AMX, `bf16` has Igniter's `--precision bf16` beside OpenVINO's. A cell is the median time
by ONNX Runtime's in f32; the README has the rows of batch 1. The error is the largest, relative to the largest value of
the output.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import igniter
from benchmark import plot
from benchmark.models import half
from benchmark.models.networks import NETWORKS
from benchmark.plot import CONTROL, FIRST
from igniter._version import __version__
from igniter.backends.cpu.target import Target, target_of
from igniter.runtime.session import make_session

ROOT = Path(__file__).resolve().parents[1]
PAGE, README, PLOT = ROOT / "docs/explanation/performance.md", ROOT / "README.md", ROOT / "docs/figures.svg"

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert_base": half.bert,
    **{
        name: NETWORKS[name]
        for name in ("resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit_base", "swin_tiny", "yolov8n")
    },
}

NAMES = {"igniter": "Igniter", "openvino": "OpenVINO"}
SEQUENCE = 128
ROUNDS = 9
LONGEST = 6.0
"""Seconds of all turns of a system, about: slow models have fewer rounds, at least three."""

Arrays = Mapping[str, np.ndarray]
Run = Callable[[], Sequence[np.ndarray]]


def kind_of(target: Target) -> str:
    """Returns the section of the page for a CPU."""
    if target.half_tiles:
        return "AMX"
    if target.arch == "aarch64":
        return "aarch64"
    return "AVX-512" if target.vector_bytes == 64 else "AVX2"


def cpu_name() -> str:
    """Returns the name that the CPU gives itself, and what it can do."""
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    named = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return re.sub(r"\((R|TM)\)|\s+Processor|\s+CPU|\s@.*|\d+-Core", "", named).strip()


def feeds_of(model: onnx.ModelProto, batch: int) -> Arrays:
    """Returns inputs: random floats, small indices, and ones for a mask."""
    rng = np.random.default_rng(0)
    feeds: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [d.dim_value or (batch if k == 0 else SEQUENCE) for k, d in enumerate(dims)]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            feeds[value.name] = np.ones(shape, np.int64) if "mask" in value.name else rng.integers(0, 90, shape)
    return feeds


def run_of_ort(model: Path, libraries: Sequence[Path], threads: int, feeds: Arrays) -> Run:
    quiet = {"session.intra_op.allow_spinning": "0"}
    session = make_session(model, libraries, intra_op_num_threads=threads, config=quiet)
    return lambda: session.run(None, dict(feeds))


def run_of_openvino(model: Path, precision: str, threads: int, feeds: Arrays) -> Run:
    import openvino

    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": "1",
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = openvino.Core().compile_model(str(model), "CPU", settings).create_infer_request()
    return lambda: [np.array(value) for value in request.infer(dict(feeds)).values()]


def in_turns(systems: Mapping[str, Run]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Returns the median seconds of every system, and its first result."""
    results = {name: np.asarray(run()[0], np.float32) for name, run in systems.items()}
    times: dict[str, list[float]] = {name: [] for name in systems}
    while True:
        for name, run in systems.items():
            run()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
        count = len(times["ort"])
        if count >= ROUNDS or (count >= 3 and 2 * sum(times["ort"]) > LONGEST):
            return {name: statistics.median(found) for name, found in times.items()}, results


def rows_of(
    name: str, batches: Sequence[int], threads: Sequence[int], precisions: Sequence[str], done: set[str]
) -> Iterator[dict[str, Any]]:
    """Yields the rows of a model that are not done."""
    wanted = [(b, t) for b in batches for t in threads if _key(name, b, t) not in done]
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as place:
        folder, model = Path(place), MODELS[name]()
        path = folder / "model.onnx"
        onnx.save(model, path)
        made = {p: igniter.compile(model, folder / p, precision=p, verify=False) for p in precisions}
        for batch, count in wanted:
            feeds = feeds_of(model, batch)
            systems: dict[str, Run] = {"ort": run_of_ort(path, (), count, feeds)}
            for precision, artifact in made.items():
                systems[f"igniter {precision}"] = run_of_ort(artifact.model_path, artifact.libraries, count, feeds)
                if find_spec("openvino") is not None:
                    systems[f"openvino {precision}"] = run_of_openvino(path, precision, count, feeds)
            systems["ort again"] = run_of_ort(path, (), count, feeds)
            seconds, results = in_turns(systems)
            scale = float(np.abs(results["ort"]).max())
            errors = {k: float(np.abs(v - results["ort"]).max()) / scale for k, v in results.items()}
            yield {"model": name, "batch": batch, "threads": count, "seconds": seconds, "errors": errors}


def _key(model: str, batch: int, threads: int) -> str:
    return f"{model} {batch} {threads}"


def header_of(rows: Sequence[Mapping[str, Any]], threads: Sequence[int]) -> dict[str, Any]:
    """Returns what the figures are of."""
    libraries = [f"ONNX Runtime {onnxruntime.__version__}"]
    if any("openvino f32" in row["seconds"] for row in rows):
        import openvino

        libraries.append(f"OpenVINO {openvino.__version__.split('-')[0]}")
    return {
        "kind": kind_of(target_of("native")),
        "cpu": cpu_name(),
        "date": datetime.date.today().isoformat(),
        "version": __version__,
        "beside": libraries,
    }


def table_of(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table as Markdown, below a sentence on the machine, the versions and the date."""
    columns = [k for k in ("igniter f32", "openvino f32", "igniter bf16", "openvino bf16") if k in rows[0]["seconds"]]
    titles = [f"{NAMES[k.split()[0]]}{' bf16' if k.endswith('bf16') else ''}" for k in columns]
    moved = [abs(row["seconds"]["ort again"] / row["seconds"]["ort"] - 1) for row in rows]
    lines = [
        f"Igniter {header['version']} beside {' and '.join(header['beside'])}, {header['date']}, {header['cpu']} "
        f"({header['kind']}), by `python -m benchmark.performance`. Times are multiples of the time of ONNX Runtime "
        f"(ORT) in f32: lower is faster. Two sessions of ORT differ by {statistics.median(moved):.0%} (median; at most "
        f"{max(moved):.0%}).",
        "",
        f"| {' | '.join((*FIRST, *titles, CONTROL))} |",
        "| --- | ---: | ---: | ---: |" + " ---: |" * (len(columns) + 1),
    ]
    for row in rows:
        seconds = row["seconds"]
        cells = [f"{seconds[k] / seconds['ort']:.2f}" for k in (*columns, "ort again")]
        name = f"{row['model']}, {SEQUENCE} tokens" if row["model"].startswith("bert") else row["model"]
        lines.append(
            f"| {name} | {row['batch']} | {row['threads']} | {1e3 * seconds['ort']:.1f} | {' | '.join(cells)} |"
        )
    return "\n".join(lines) + "\n"


def written(page: str, place: str, table: str) -> str:
    """Returns a page with the table in its place, such as `performance AVX2`."""
    begin, end = f"<!-- {place} -->\n", "<!-- end -->\n"
    first = page.find(begin)
    if first < 0:
        raise SystemExit(
            f"the page has no place for the table: a line '{begin.strip()}', and one '{end.strip()}' after"
        )
    last = page.index(end, first)
    return page[: first + len(begin)] + "\n" + "\n".join(_wrapped(table)) + "\n\n" + page[last:]


def write(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the page, and the README with its plot: the rows of batch 1, or all rows without such."""
    PAGE.write_text(written(PAGE.read_text(), f"performance {header['kind']}", table_of(header, rows)))
    table = table_of(header, [row for row in rows if row["batch"] == 1] or rows)
    README.write_text(written(README.read_text(), "performance", table))
    PLOT.write_text(plot.svg(plot.table_of(table)))


def _wrapped(table: str) -> list[str]:
    import textwrap

    first, *rest = table.rstrip("\n").split("\n")
    return [*textwrap.wrap(first, 120, break_on_hyphens=False, break_long_words=False), *rest]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=Path, help="JSON lines; rows that are there are not measured again")
    parser.add_argument("--report", type=Path, help="rows measured before: nothing is run")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}, README.md and the plot")
    args = parser.parse_args()
    source = args.report or args.out
    kept = [json.loads(line) for line in source.read_text().splitlines()] if source and source.exists() else []
    header, rows = next((r for r in kept if "kind" in r), None), [r for r in kept if "model" in r]
    if args.report is None:
        done = {_key(r["model"], r["batch"], r["threads"]) for r in rows}
        precisions = ["f32", "bf16"] if target_of("native").half_tiles else ["f32"]
        for name in args.models:
            for row in rows_of(name, args.batch, args.threads, precisions, done):
                rows.append(row)
                print(
                    name,
                    row["batch"],
                    row["threads"],
                    {k: f"{v * 1e3:.2f}" for k, v in row["seconds"].items()},
                    flush=True,
                )
                if args.out is not None:
                    with args.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
        header = header_of(rows, args.threads)
        if args.out is not None:
            with args.out.open("a") as file:
                file.write(json.dumps(header) + "\n")
    if header is None or not rows:
        sys.exit(f"{source} has no finished run")
    table = table_of(header, rows)
    print(table)
    if args.write:
        write(header, rows)


if __name__ == "__main__":
    main()
