"""Trained models made by strangers: does each compile at the first try, is it right, and is it faster?

    python -m benchmark.corpus                        every model: fetch, compile, compare, time
    python -m benchmark.corpus --only silero --threads 1
    python -m benchmark.corpus --no-timing --json corpus.json
    python -m benchmark.corpus --models FOLDER        every .onnx file below a folder: compile only, no sizes known
    python -m benchmark.corpus --keep FOLDER          keep the compiled models there, and compile no model twice
    python -m benchmark.corpus --markdown docs/reference/corpus.md

Each model is compiled by the command that a user types, `igniter compile MODEL -o FOLDER --json`, with default
options, in a process of its own with a time limit. Then the compiled model and ONNX Runtime run at the realistic sizes
of `benchmark/models/packaged.py`, on the same inputs, in turns in one process, with threads that do not spin; so does
OpenVINO where it is installed.

| column | is |
| --- | --- |
| `exit` | the exit code of the command, or why there is none |
| `nodes` | nodes of the model, of the compiled one, and how many of these are Igniter's |
| `verified` | what the compile itself says: at how many sizes, or why it could not |
| `error` | the largest difference from ORT at the realistic sizes, relative to the largest magnitude of the output |
| `noise` | the same between ORT with all its optimisations and with none: what the model itself does not know |
| `ort ms` | ORT's median time |
| `ratio` | Igniter's time as a multiple of ORT's, below 1 is faster: medians over interleaved rounds |
| `openvino` | OpenVINO's, where it is installed and runs the model |
| `A/A` | ORT against itself, in the same rounds |
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from benchmark.models.packaged import MODELS, Packaged, fetch
from benchmark.performance import Run, cpu_name, in_turns, kind_of, run_of_openvino, run_of_ort
from benchmark.table import Column, show
from igniter._version import __version__
from igniter.backends.cpu.target import target_of

COLUMNS = [
    Column("model", 20),
    Column("exit", 5),
    Column("nodes", 16),
    Column("verified", 12),
    Column("error", 8),
    Column("noise", 8),
    Column("thr", 3),
    Column("ort ms", 9),
    Column("ratio", 6),
    Column("openvino", 8),
    Column("A/A", 5),
]
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="models with one of these in their names")
    parser.add_argument("--models", type=Path, help="a folder of models instead")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--keep", type=Path, help="a folder for the compiled models, and of those not to compile again")
    parser.add_argument("--limit", type=int, default=600, help="seconds that one compile may take")
    parser.add_argument("--timing", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", type=Path, help="where to write every row")
    parser.add_argument("--markdown", type=Path, help="where to write the table as a page")
    chosen = parser.parse_args()
    ort.set_default_logger_severity(4)
    show(COLUMNS, silent=False)
    rows: list[Row] = []
    for entry in _entries(chosen.models, chosen.only):
        with tempfile.TemporaryDirectory(prefix="igniter-corpus-") as folder:
            place = (chosen.keep or Path(folder)) / entry.name.replace(" ", "_").replace("/", "_")
            row = compiled(entry, place, chosen.limit, chosen.cache)
            if row["exit"] == 0 and entry.inputs:
                row |= compared(entry, place)
            if row["exit"] == 0 and entry.inputs and chosen.timing and "fails" not in row:
                row["times"] = timed(entry, place, chosen.threads)
        rows.append(row)
        print_row(row)
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2, default=str) + "\n")
    if chosen.markdown:
        before = chosen.markdown.read_text() if chosen.markdown.exists() else ""
        chosen.markdown.write_text(page(rows, chosen.threads, before))
    return summary(rows)


def _entries(folder: Path | None, only: Sequence[str]) -> list[Packaged]:
    if folder is not None:
        files = sorted(folder.rglob("*.onnx"))
        found = [Packaged(str(f.relative_to(folder)), str(folder), str(f.relative_to(folder)), {}) for f in files]
    else:
        found = list(MODELS)
    return [m for m in found if any(part in m.name for part in only)]


def _file(entry: Packaged) -> Path:
    if entry.inputs:
        fetch(entry.package)
        return entry.file
    return Path(entry.package) / entry.path


def compiled(entry: Packaged, output: Path, limit: int, cache: bool) -> Row:
    """What the command says of the model; the folder is at `output` when the exit code is 0. What it said of a folder
    that is there is in the file beside it."""
    row: Row = {"model": entry.name}
    said = output.with_name(f"{output.name}.json")
    if said.exists() and output.exists():
        return row | {"exit": 0, "stderr": ""} | _reported(json.loads(said.read_text()))
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "igniter.tools.main", "compile", str(_file(entry)), "-o", str(output), "--json"]
    try:
        done = subprocess.run(
            command + ([] if cache else ["--no-cache"]), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return row | {"exit": "time", "stderr": f"over {limit} s"}
    row["exit"] = done.returncode
    row["stderr"] = done.stderr[-2000:]
    if done.returncode:
        return row
    said.write_text(done.stdout)
    return row | _reported(json.loads(done.stdout))


def _reported(report: dict[str, Any]) -> Row:
    return {
        "nodes": [report["nodes_before"], report["nodes_after"], report["regions"]],
        "left": report.get("left_to_onnxruntime", []),
        "verification": report.get("verification") or {},
        "seconds": report["seconds"],
    }


def compared(entry: Packaged, folder: Path) -> Row:
    """The error of the compiled model at the realistic sizes, beside the model's own noise."""
    import igniter
    from igniter.runtime.session import make_session

    plain = make_session(
        _file(entry), graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, intra_op_num_threads=1
    )
    full = make_session(_file(entry), intra_op_num_threads=1)
    feed = entry.feed(full)
    names = [o.name for o in full.get_outputs()]
    want, other = full.run(names, feed), plain.run(names, feed)
    try:
        got = igniter.Artifact.load(folder).session(intra_op_num_threads=1).run(names, feed)
    except Exception as error:  # whatever ORT raises about the compiled model is the finding
        return {"fails": str(error)[-500:]}
    return {
        "error": max(difference(a, b) for a, b in zip(want, got, strict=True)),
        "noise": max(difference(a, b) for a, b in zip(want, other, strict=True)),
    }


def difference(want: Any, got: Any) -> float:
    """The largest difference relative to the largest magnitude; infinite where the shapes or the NaN differ."""
    a, b = np.asarray(want), np.asarray(got)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not a.size:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    return float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30))


def timed(entry: Packaged, folder: Path, threads: Sequence[int]) -> list[Row]:
    """ORT, Igniter, OpenVINO and ORT again in turns, for every number of threads."""
    import igniter
    from igniter.runtime.session import make_session

    artifact = igniter.Artifact.load(folder)
    feed = entry.feed(make_session(_file(entry)))
    rows: list[Row] = []
    for count in threads:
        systems: dict[str, Run] = {
            "ort": run_of_ort(_file(entry), (), count, feed),
            "igniter": run_of_ort(artifact.model_path, artifact.libraries, count, feed),
            "ort again": run_of_ort(_file(entry), (), count, feed),
        }
        if find_spec("openvino") is not None:
            try:
                systems["openvino"] = run_of_openvino(_file(entry), "f32", count, feed)
                systems["openvino"]()
            except RuntimeError:  # a model that OpenVINO does not read has no figure of it
                systems.pop("openvino", None)
        seconds, _ = in_turns(systems)
        ratios = {name: seconds[name] / seconds["ort"] for name in seconds}
        rows.append(
            {
                "threads": count,
                "ort": 1000 * seconds["ort"],
                "ratio": ratios["igniter"],
                "openvino": ratios.get("openvino"),
                "control": ratios["ort again"],
            }
        )
    return rows


def verified(row: Row) -> str:
    """The compile's own verification in a word: `4 sizes`, or that it could not."""
    found = row.get("verification") or {}
    if found.get("way") == "regions":
        return "by region"
    passed = sum(case.get("status") == "passed" for case in found.get("cases", []))
    return f"{passed} sizes" if passed else str(found.get("status", "no"))


def cells_of(row: Row) -> list[list[str]]:
    """The lines of one model: one for each number of threads."""
    nodes = " -> ".join(map(str, row["nodes"][:2])) + f" ({row['nodes'][2]})" if "nodes" in row else ""
    errors = [f"{row[key]:.1e}" if key in row else "fails" if "fails" in row else "" for key in ("error", "noise")]
    first = [row["model"], str(row["exit"]), nodes, verified(row) if "nodes" in row else "", *errors]
    lines: list[list[str]] = []
    for times in row.get("times") or [None]:
        timing = ["", "", "", "", ""]
        if times is not None:
            other = "" if times["openvino"] is None else f"{times['openvino']:.2f}"
            figures = (f"{times['ort']:.3f}", f"{times['ratio']:.2f}", other, f"{times['control']:.2f}")
            timing = [str(times["threads"]), *figures]
        lines.append((first if not lines else [""] * len(first)) + timing)
    return lines


def print_row(row: Row) -> None:
    for cells in cells_of(row):
        show(COLUMNS, silent=False, cells=cells)
    if row["exit"] or "fails" in row:
        print("    " + str(row.get("fails") or row["stderr"]).strip().replace("\n", "\n    ")[-600:])


PAGE = """# Trained models made by strangers

Models that ship inside Python packages, compiled by `igniter compile MODEL` with default options and run at the sizes
of their users, beside ONNX Runtime. `nodes` are those of the model, of the compiled one, and how many of these are
Igniter's; `ratio` is Igniter's time as a multiple of ONNX Runtime's, `openvino` OpenVINO's, `A/A` ONNX Runtime's own in
the same rounds; the other columns are explained at the top of `benchmark/corpus.py`. Each table is written by

    python -m benchmark.corpus --threads 1 2 --markdown docs/reference/corpus.md

on a machine of its kind. A table of a kind of CPU that was not at hand later is of the version and the date above it.

"""


def page(rows: Sequence[Row], threads: Sequence[int], before: str) -> str:
    """Returns the page `before` with the table of this kind of CPU renewed."""
    kind = kind_of(target_of("native"))
    beside = f"ONNX Runtime {ort.__version__}"
    if find_spec("openvino") is not None:
        import openvino

        beside += f" and OpenVINO {openvino.__version__.split('-')[0]}"
    names = [c.name for c in COLUMNS]
    lines = [names, ["---"] * len(names), *(cells for row in rows for cells in cells_of(row))]
    table = "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
    section = (
        f"## {kind}\n\nIgniter {__version__} beside {beside}, {datetime.date.today().isoformat()}, {cpu_name()}, "
        f"threads: {' '.join(map(str, threads))}; {len(rows)} of the {len(MODELS)} models.\n\n"
        f"{table}\n{counted(rows)}.\n"
    )
    _, *sections = before.split("\n## ")
    others = [f"## {s.rstrip()}\n" for s in sections if s.split("\n", 1)[0] != kind]
    return PAGE + "\n".join([section, *others])


def summary(rows: Sequence[Row]) -> int:
    """One line at the end; the exit code says whether every model compiled and ran."""
    print(counted(rows))
    return int(len(_good(rows)) != len(rows))


def _good(rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if r["exit"] == 0 and "fails" not in r]


def counted(rows: Sequence[Row]) -> str:
    """How many models compile and run, and how many rows are slower by more than 3% and than the noise."""
    times = [t for r in _good(rows) for t in r.get("times", ())]
    slower = [t for t in times if t["ratio"] > 1.0 + max(0.03, abs(t["control"] - 1))]
    return (
        f"{len(_good(rows))} of {len(rows)} compile and run; {len(slower)} of {len(times)} rows are slower than ONNX"
        " Runtime by more than the noise"
    )


if __name__ == "__main__":
    sys.exit(main())
