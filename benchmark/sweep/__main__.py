"""Small graphs as exporters write them, beside ONNX Runtime: where is Igniter behind, and is it ever wrong?

    python -m benchmark.sweep --out sweep.jsonl                    every graph, static and symbolic
    python -m benchmark.sweep --out sweep.jsonl --every 10         a tenth of them
    python -m benchmark.sweep --groups conv pools --filter 3x3     some of them
    python -m benchmark.sweep --list                               their names
    python -m benchmark.sweep --report sweep.jsonl                 the table of a finished run
    python -m benchmark.sweep --kernels --out kernels.jsonl        every region compiled, for the next line
    python -m benchmark.sweep --calibrate kernels.jsonl            the measured points of this machine's instruction set

Each graph is compiled by `igniter.compile` with default options, without the compile's own verification (`--verify`
adds it) and without the cache (`--cache` uses it). Its outputs are compared with ONNX Runtime's; the symbolic form is
compared at other sizes too. Then the compiled graph, ONNX Runtime, and ONNX Runtime once more (the A/A control) run in
turns, in one process, with inputs and outputs in place and threads that do not spin.

`--out` writes a JSON line for each graph, form and number of threads, and skips the ones already in the file. A graph
that ends the process is reported as FAILED by the next run with the same file. The exit status is 1 if a graph FAILED:
a wrong value, or an error while it is compiled, loaded or run.

Seed 0 has the sizes in the names of the graphs; another seed draws sizes near them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import onnxruntime as ort

from benchmark.sweep.calibrate import ABOUT, calibrate
from benchmark.sweep.graph import FORMS, STATIC, SYMBOLIC, Graph
from benchmark.sweep.groups import GROUPS, all_graphs
from benchmark.sweep.measure import CLOCKS, FAILED, OK, Row, Setting, measure
from benchmark.sweep.report import FIGURES, key, read, report


def main(arguments: list[str] | None = None) -> int:
    """Runs the sweep; returns the exit status."""
    chosen = parsed(arguments)
    if chosen.calibrate:
        rows = {key(row): row for file in chosen.calibrate for row in read(file)}
        print(calibrate(list(rows.values()), chosen.target, said(arguments), chosen.about, chosen.without), end="")
        return 0
    if chosen.report:
        rows = read(chosen.report)
        print(report(rows, chosen.figure), end="")
        return int(any(row["status"] == FAILED for row in rows))
    picked = pick(chosen)
    if chosen.list:
        print("\n".join(graph.name for graph in picked))
        return 0
    ort.set_default_logger_severity(4)
    rows = list(run(picked, chosen))
    print("\n" + report(rows, chosen.figure), end="")
    return int(any(row["status"] == FAILED for row in rows))


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--filter", nargs="+", default=[""], help="graphs with one of these in their names")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth of these graphs")
    parser.add_argument("--offset", type=int, default=0, help="the first of them (default 0)")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--static", dest="forms", action="store_const", const=[STATIC], help="fixed sizes only")
    forms.add_argument("--symbolic", dest="forms", action="store_const", const=[SYMBOLIC], help="symbolic sizes only")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other sizes, weights and inputs")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--target", default="native", help="Igniter's target; this machine must run it")
    parser.add_argument("--seconds", type=float, default=Setting.seconds, help="of timed runs for each graph")
    parser.add_argument(
        "--clock", choices=sorted(CLOCKS), default="wall", help="cpu: the time of the calling thread, for one thread"
    )
    parser.add_argument("--cache", action="store_true", help="use the compiler's cache: the seconds mean less")
    parser.add_argument("--verify", action="store_true", help="with the compile's own verification")
    parser.add_argument("--measure", action="store_true", help="compiles that measure, as igniter compile --measure")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON lines; the ones that are there are skipped")
    parser.add_argument("--report", type=Path, metavar="FILE", help="print the table of a file, and run nothing")
    parser.add_argument(
        "--figure", choices=FIGURES, default=FIGURES[0], help="compare medians, or minima on a machine with other work"
    )
    parser.add_argument(
        "--kernels", action="store_true", help="compile regions also where measured points leave them to ONNX Runtime"
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="write the measured points of --target; later files win",
    )
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="PART",
        help="no points of graphs with one of these in the name",
    )
    parser.add_argument(
        "--about", type=entry, nargs="+", default=[], metavar="NAME=TEXT", help=f"for points: {', '.join(ABOUT)}"
    )
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    chosen = parser.parse_args(arguments)
    if chosen.clock == "cpu" and chosen.threads != [1]:
        parser.error("--clock cpu counts one thread; it needs --threads 1")
    if chosen.every < 1 or not 0 <= chosen.offset < chosen.every:
        parser.error("--every is 1 or more, and --offset from 0 to less than that")
    if chosen.report and not chosen.report.is_file():
        parser.error(f"--report: there is no file {chosen.report}")
    for file in chosen.calibrate or ():
        if not file.is_file():
            parser.error(f"--calibrate: there is no file {file}")
    if not chosen.calibrate and (chosen.about or chosen.without):
        parser.error("--about and --without are for --calibrate")
    chosen.about = dict(chosen.about)
    chosen.forms = chosen.forms or list(FORMS)
    return chosen


def entry(text: str) -> tuple[str, str]:
    """Parses `NAME=TEXT`."""
    name, equals, value = text.partition("=")
    if name not in ABOUT or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=TEXT with one of {', '.join(ABOUT)}")
    return name, value


def said(arguments: list[str] | None) -> list[str]:
    """The arguments for a record, with the files by their names alone."""
    given = sys.argv[1:] if arguments is None else arguments
    return [Path(a).name if Path(a).is_file() else a for a in given]


def pick(chosen: argparse.Namespace) -> list[Graph]:
    """The graphs that the options ask for."""
    found = [g for g in all_graphs() if g.group in chosen.groups and any(part in g.name for part in chosen.filter)]
    if not found:
        sys.exit(f"no graph of {', '.join(chosen.groups)} has {' or '.join(chosen.filter)} in its name (see --list)")
    return found[chosen.offset :: chosen.every]


def run(picked: list[Graph], chosen: argparse.Namespace) -> Iterator[Row]:
    """Measures the graphs that are not in the file yet; yields the rows of all."""
    rows = read(chosen.out) if chosen.out and chosen.out.is_file() else []
    stored = {key(row): row for row in rows}
    total, done = len(picked) * len(chosen.forms) * len(chosen.threads), 0
    for graph in picked:
        for form in chosen.forms:
            for threads in chosen.threads:
                done += 1
                setting = Setting(
                    threads, chosen.target, chosen.seed, chosen.seconds, chosen.clock, chosen.cache, chosen.verify,
                    chosen.kernels, chosen.measure,
                )  # fmt: skip
                begun: Row = {
                    "name": graph.name, "group": graph.group, "form": form, "seed": setting.seed,
                    "target": setting.target, "threads": threads, "kernels": setting.kernels,
                    "measured": setting.measured, "status": "begun", "process": os.getpid(),
                }  # fmt: skip
                row = stored.get(key(begun))
                if row is None:
                    append(chosen.out, begun)
                    row = measure(graph, form, setting)
                    append(chosen.out, row)
                    print(f"{done}/{total} {shown(row)}", flush=True)
                yield row


def append(path: Path | None, row: Row) -> None:
    """Adds a line to the file."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def shown(row: Row) -> str:
    """A row as a line of the terminal."""
    named = f"{row['name']}, {row['form']}"
    if row["status"] != OK:
        return f"{named}: {row['status']}: {row.get('reason', '')[:300]}"
    return (
        f"{named}: {row['igniter_us']:.1f} us, {row['ratio']:.2f} of ONNX Runtime's time (A/A {row['control']:.2f}), "
        f"minima {row['least_ratio']:.2f}, {row['regions']} regions, {row['left']} nodes left"
    )


if __name__ == "__main__":
    sys.exit(main())
