"""Compile benchmark models, check every output against ONNX Runtime, and time both.

    python benchmark/run_benchmark.py --model_name=bert-base-uncased --backend=x86_64
    python benchmark/run_benchmark.py --model_name=all --exporter=both --no-timing --json
    python benchmark/run_benchmark.py --model_name=bert-base-uncased --backend=arm64 --adb --runner=FOLDER

Verified at batch 1 and 3, sequence 1, 8, 32, 128 and 200. Timed in turns, each system in its own process, ONNX
Runtime's threads not spinning, with the same system twice as a control (the column `noise`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmark import on_device
from benchmark.export import EXPORTERS, ensure
from benchmark.models.zoo import ARCHITECTURES, Architecture, find

BACKENDS = {"x86_64": "native", "native": "native", "arm64": on_device.TARGET}
RESULTS = Path(__file__).resolve().parent / "results"
VERIFIED = [{"batch": b, "sequence": s} for b in (1, 3) for s in (1, 8, 32, 128, 200)]
TIMED = [{"batch": 1, "sequence": s} for s in (32, 128)]
LIMIT = 1e-4
"""The largest error allowed, relative to the output's largest magnitude."""


@dataclass
class Row:
    """What the run of one model from one exporter found."""

    model: str
    exporter: str
    nodes_before: int = 0
    nodes_after: int = 0
    fused: int = 0
    kernels: int = 0
    left_to_onnxruntime: int = 0
    compile_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict[str, float])
    model_mb: float = 0.0
    peak_memory_mb: dict[str, float] = field(default_factory=dict[str, float])
    verified_shapes: int = 0
    max_error: float = 0.0
    failures: list[str] = field(default_factory=list[str])
    timings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def dims_of(model: Path) -> list[str]:
    """The names of the model's symbolic dims, batch first."""
    from igniter.runtime.session import make_session
    from igniter.verification.specs import specs_of

    specs = specs_of(make_session(model, graph_optimization_level=_unoptimised()))
    return list(dict.fromkeys(symbol for spec in specs for symbol in spec.symbols()))


def _unoptimised() -> Any:
    import onnxruntime

    return onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def named(cases: list[dict[str, int]], dims: list[str]) -> list[dict[str, int]]:
    """The cases with the model's own names for batch and sequence."""
    return [dict(zip(dims, case.values(), strict=True)) for case in cases]


def run_model(architecture: Architecture, exporter: str, args: argparse.Namespace) -> Row:
    """Compile, verify and time one model."""
    import igniter
    from igniter.runtime.timing import speedup_line
    from igniter.toolbox.bench.show import IGNITER, ORT, time_artifact

    row = Row(architecture.name, exporter)
    path = ensure(architecture, exporter)
    dims = dims_of(path)
    folder = RESULTS / f"{architecture.slug}-{exporter}.igniter" if args.keep else None
    start = time.perf_counter()
    artifact = igniter.load(path).compile(folder, target=BACKENDS[args.backend], verify=False, cache=args.cache)
    row.compile_seconds = round(time.perf_counter() - start, 3)
    row.model_mb = round(sum(f.stat().st_size for f in path.parent.iterdir()) / 1e6)
    report = artifact.report
    row.nodes_before, row.nodes_after = report["nodes_before"], report["nodes_after"]
    row.fused, row.kernels = report["regions"], report["kernels"]
    row.left_to_onnxruntime = sum(node["kind"] == "failed" for node in report["left_to_onnxruntime"])
    row.stages = report["seconds"]
    row.peak_memory_mb = {stage: round(size / 1e6) for stage, size in report["peak_memory"].items()}
    say = print if not args.json else lambda *_: None
    say(f"{architecture.name} ({exporter}): {row.nodes_before} nodes before, {row.nodes_after} after")
    say(f"  {row.fused} regions in {row.kernels} kernels, compiled in {row.compile_seconds} s: {row.stages}")
    if args.verify:
        verification = artifact.verify(shapes=named(VERIFIED, dims), rtol=LIMIT)
        row.verified_shapes = sum(case.status == "passed" for case in verification.cases)
        row.max_error = max(verification.max_errors.values(), default=float("nan"))
        row.failures = list(verification.failures)
        say(
            f"  verified at {row.verified_shapes} of {len(VERIFIED)} shapes, largest relative error {row.max_error:.1e}"
        )
        for failure in row.failures:
            say(f"  DIFFERS: {failure}")
    for case in named(TIMED if args.sequence is None else [{"batch": args.batch, "sequence": args.sequence}], dims):
        if not args.timing:
            break
        sizes, timing = time_artifact(artifact, case, threads=args.threads, rounds=args.rounds)
        before, after = timing.median(ORT), timing.median(IGNITER)
        entry = {**sizes, "threads": args.threads, "ort_ms": 1000 * before, "aot_ms": 1000 * after}
        row.timings.append({**entry, "speedup": 1 / timing.ratio(IGNITER), "noise": timing.noise})
        say(f"  {sizes}, {args.threads} threads")
        say(speedup_line(architecture.name, before, after))
    return row


def run_on_device(architecture: Architecture, exporter: str, args: argparse.Namespace) -> None:
    """Compile one model for Android and time it on a device, or print how."""
    import igniter

    path = ensure(architecture, exporter)
    folder = RESULTS / f"{architecture.slug}-{exporter}.android.igniter"
    igniter.load(path).compile(folder, target=BACKENDS["arm64"], verify=False, load=False, cache=args.cache)
    sizes = named([{"batch": args.batch, "sequence": args.sequence or 128}], dims_of(path))[0]
    runner = args.runner or Path("RUNNER")
    steps = on_device.plan(path, folder, runner, RESULTS, sizes, args.threads, args.rounds)
    found = on_device.run(steps, on_device.missing(args.runner))
    if found is not None:
        times = ", ".join(f"{name} {1000 * seconds:.2f} ms" for name, seconds in found.items())
        print(f"{architecture.name} ({exporter}) {sizes}, {args.threads} threads: {times}")


STAGES = ("import", "onnx", "fusion", "loop", "llvm", "library", "write")


def compile_table(rows: list[Row]) -> str:
    """What compiling took: nodes, regions, different kernels, the largest error; seconds, and peak memory in MB."""
    name, counts = f"{'compile':<51}", f"{'nodes':>11} {'regions':>7} {'kernels':>7} {'error':>7}"
    lines = [f"{name} {counts} {'total':>6} " + " ".join(f"{s:>7}" for s in STAGES) + f" {'model MB':>8}"]
    for row in rows:
        name = f"{row.model} ({row.exporter})"
        nodes = f"{row.nodes_before}->{row.nodes_after}"
        counts = f"{nodes:>11} {row.fused:>7} {row.kernels:>7} {row.max_error:>7.1e} {row.compile_seconds:>6.2f} "
        lines.append(f"{name:<51} {counts}" + " ".join(f"{row.stages.get(s, 0.0):>7.2f}" for s in STAGES))
        memory = " ".join(f"{row.peak_memory_mb.get(s, ''):>7}" for s in STAGES)
        lines.append(f"{'':<51} {'':>11} {'':>7} {'':>7} {'':>7} {'MB':>6} {memory} {row.model_mb:>8}")
    return "\n".join(lines)


def table(rows: list[Row]) -> str:
    """`model_type, fused_nodes, ort_time, aot_time, speedup` and what makes them readable."""
    columns = (("fused_nodes", 11), ("ort_time", 10), ("aot_time", 10), ("speedup", 8), ("noise", 6))
    lines = [f"{'model_type':<44} {'shape':>8} " + " ".join(f"{name:>{width}}" for name, width in columns)]
    for row in rows:
        name = f"{row.model} ({row.exporter})"
        for t in row.timings:
            batch, sequence = list(t.values())[:2]
            shape = f"{batch}x{sequence}"
            times = f"{t['ort_ms']:>8.3f}ms {t['aot_ms']:>8.3f}ms"
            lines.append(f"{name:<44} {shape:>8} {row.fused:>11} {times} {t['speedup']:>7.2f}x {t['noise']:>6.1%}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model_name", required=True, help=f"one of {', '.join(ARCHITECTURES)}; or all")
    add("--backend", choices=list(BACKENDS), default="x86_64")
    add("--adb", action="store_true", help="with --backend=arm64: on a device with Android, or a dry run without one")
    add("--runner", type=Path, help="with --adb: the folder of onnxruntime_perf_test and libonnxruntime.so for Android")
    add("--exporter", choices=[*EXPORTERS, "both"], default="dynamo", help="how torch exported the model")
    add("--batch", type=int, default=1, help="with --sequence: the one shape that is timed")
    add("--sequence", type=int, default=None)
    add("--threads", type=int, default=1)
    add("--rounds", type=int, default=7)
    add("--verify", action=argparse.BooleanOptionalAction, default=True)
    add("--timing", action=argparse.BooleanOptionalAction, default=True)
    add("--cache", action=argparse.BooleanOptionalAction, default=False, help="reuse kernels compiled before")
    add("--keep", action="store_true", help="keep the compiled model in benchmark/results")
    add("--json", action="store_true", help="print JSON instead of text")
    args = parser.parse_args()
    if args.adb != (args.backend == "arm64"):
        parser.error("--backend=arm64 and --adb go together: other machines than this one are timed over adb")
    architectures = list(ARCHITECTURES.values()) if args.model_name == "all" else [find(args.model_name)]
    exporters = list(EXPORTERS) if args.exporter == "both" else [args.exporter]
    RESULTS.mkdir(exist_ok=True)
    # Decode steps are exported in one way.
    pairs = [(a, e) for a in architectures for e in exporters if a.cache is None or e == "dynamo"]
    if args.adb:
        for pair in pairs:
            run_on_device(*pair, args)
        return
    rows = [run_model(*pairs[0], args)] if len(pairs) == 1 else [r for p in pairs if (r := run_apart(*p, args))]
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print(compile_table(rows), end="\n\n")
        if args.timing:
            print(table(rows))
    if len(rows) < len(pairs) or any(row.failures for row in rows):
        sys.exit(1)


def run_apart(architecture: Architecture, exporter: str, args: argparse.Namespace) -> Row | None:
    """`run_model` in a process of its own, so that its peak memory is its own; `None` where it broke."""
    command = [sys.executable, __file__, *_without(sys.argv[1:], "--model_name", "--exporter", "--json")]
    command += [f"--model_name={architecture.name}", f"--exporter={exporter}", "--json"]
    print(f"{architecture.name} ({exporter})", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    try:
        (found,) = json.loads(done.stdout)
    except ValueError:
        print(f"BROKEN: {architecture.name} ({exporter})", file=sys.stderr, flush=True)
        return None
    row = Row(**found)
    left = f"{row.left_to_onnxruntime} left to onnxruntime"
    print(f"  {row.fused} regions, {left}, max error {row.max_error:.1e} {row.failures}", file=sys.stderr, flush=True)
    return row


def _without(arguments: list[str], *options: str) -> list[str]:
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument.partition("=")[0] in options:
            skip = "=" not in argument and argument != "--json"
        else:
            kept.append(argument)
    return kept


if __name__ == "__main__":
    main()
