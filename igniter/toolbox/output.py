"""The shared parts of the commands: the console, JSON, errors in one paragraph, sizes of dims on the command line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.verification.report import BY_REGION, LOOKED_FOR, MORE, sizes_text

if TYPE_CHECKING:
    from rich.console import Console

    from igniter.verification.report import Verification


def console(*, stderr: bool = False) -> Console:
    """Returns a console on standard output, or for progress and errors on standard error."""
    from rich.console import Console

    # A table cut to 80 columns is useless in a file.
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else 160
    return Console(stderr=stderr, highlight=False, width=width)


def print_json(value: object) -> None:
    """Prints `value` as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


PARAGRAPH = 2000
"""The limit of a printed error, in characters: names in a model have any length."""


def printable(text: str) -> str:
    """Returns an error as one paragraph of limited length, without control characters."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    plain = "\n".join(_printable(line) for line in lines if line)
    if len(plain) <= PARAGRAPH:
        return plain
    return f"{plain[: PARAGRAPH - 300]} ... {plain[-300:]}"


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in line)


def parse_shapes(texts: Sequence[str]) -> list[dict[str, int]] | None:
    """Parses `["batch=1,seq=8", "batch=3,seq=32"]` to dicts; `None` for an empty list. The shape of an input, `x=1x3`,
    becomes the sizes of the places `x:0` and `x:1`."""
    if not texts:
        # Without sizes no dialect is imported: a cached result needs no part of the compiler.
        return None
    from igniter.dialects.sym.dim_words import Place

    cases: list[dict[str, int]] = []
    for text in texts:
        case: dict[str, int] = {}
        for part in text.split(","):
            name, _, value = (side.strip() for side in part.rpartition("="))
            sizes = value.split("x")
            if not name or not all(size.isdecimal() for size in sizes):
                raise IgniterError(
                    f"'{text}' is not a choice of sizes: write dim=number,... as in batch=1,seq=128, or the shape of "
                    "an input, image=1x3x224x224"
                )
            whole = [Place.of(name, axis, len(sizes)) for axis in range(len(sizes))] if len(sizes) > 1 else [name]
            for dim, size in zip(whole, sizes, strict=True):
                if dim in case:
                    raise IgniterError(f"'{text}' gives '{dim}' two sizes: write each symbol once")
                case[dim] = int(size)
        cases.append(case)
    return cases


def parse_sizes(text: str) -> dict[str, int]:
    """Parses `batch=1,seq=128` of an option `--sizes` to a dict; "" to an empty one."""
    return (parse_shapes((text,)) or [{}])[0] if text else {}


@contextmanager
def progress(title: str, quiet: bool, *, lines: bool = False) -> Generator[Callable[[str], None]]:
    """Shows a spinner with the current step on standard error; nothing if `quiet`. Where that is no terminal, it writes
    a line with the seconds of each step after it (`lines`), or nothing."""
    if quiet or not sys.stderr.isatty():
        if lines and not quiet:
            with _step_lines(title) as step:
                yield step
        else:
            yield lambda _: None
        return
    shown = console(stderr=True)
    with shown.status(title) as status:
        yield lambda step: status.update(f"{title}: {step}")


@contextmanager
def _step_lines(title: str) -> Generator[Callable[[str], None]]:
    began: list[tuple[str, float]] = []

    def step(name: str) -> None:
        now = time.perf_counter()
        if began:
            print(f"{title}: {began[-1][0]}, {now - began[-1][1]:.1f} s", file=sys.stderr, flush=True)
        began.append((name, now))

    yield step
    step("")


@contextmanager
def progress_bar(title: str, total: int, quiet: bool) -> Generator[Callable[[int], None]]:
    """Shows a bar for work in `total` steps, on standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


def verification_table(verification: Verification) -> Any:
    """Returns a table of the largest error of every output at every size, beside the original's own noise."""
    from rich.table import Table

    table = Table("sizes", "output", "type", "shape", "largest error", "noise", "relative to", "")
    for case in verification.cases:
        if case.kind == MORE and case.status == "passed":
            continue
        sizes = sizes_text(case.shapes) or ("as given" if case.kind == "given" else "as in the model")
        sizes += f" ({case.kind})" * (case.kind in ("many", "large integers", BY_REGION, MORE, LOOKED_FOR))
        shown = case.outputs
        if case.kind == BY_REGION and case.status == "passed" and case.outputs:
            worst = max(case.outputs, key=lambda o: o.max_error)
            shown = (replace(worst, name=f"{len(case.outputs)} values, the worst {worst.name}"),)
        elif case.kind == BY_REGION:
            shown = tuple(o for o in case.outputs if not o.ok)
        for output in shown:
            verdict = f"[green]ok[/]{': ' * bool(output.note)}{output.note}" if output.ok else f"[red]{output.reason}"
            verdict = f"[yellow]{output.reason}" if output.says_nothing else verdict
            dims = "x".join(map(str, output.shape)) or "scalar"
            noise = "" if output.noise is None else f"{output.noise:.1e}"
            figures = (f"{output.max_error:.2e}", noise, f"{output.magnitude:.4g}")
            table.add_row(sizes, output.name, output.dtype, dims, *figures, verdict)
            sizes = ""
        if not case.outputs:
            table.add_row(sizes, "", "", "", "", "", "", f"[yellow]{case.status}: {case.reason}")
    return table


def verification_lines(found: Mapping[str, Any]) -> list[str]:
    """Describes a verification in a report, in a line or a few."""
    if found["status"] == "not verified":
        return ["[yellow]not verified:[/] " + "; ".join(found["reasons"])]
    errors = found["max_errors"]
    worst = max((float(e) for e in errors.values()), default=0.0)
    cases = sum(case["status"] == "passed" and case["kind"] not in (MORE, LOOKED_FOR) for case in found["cases"])
    listed = ", ".join(f"{name} {float(error):.1e}" for name, error in errors.items())
    against = found.get("against", "ONNX Runtime")
    line = f"verified against {against} at {cases} shapes, largest relative error {worst:.1e} ({listed})"
    if found["way"] == "regions":
        skipped = [case["reason"] for case in found["cases"] if case["status"] == "skipped"]
        silent = "; ".join(found.get("at_rest") or skipped[:1])
        line = f"verified against ONNX Runtime region by region, largest relative error {worst:.1e} ({listed}); "
        line += f"the outputs of the whole model say nothing: {silent}"
    noise = max((float(n) for n in found["max_noise"].values()), default=None)
    line = line if noise is None else f"{line}; the original's own noise {noise:.1e}"
    missing = [f"[yellow]not verified in {name},[/] which is not installed" for name in found.get("without", ())]
    because = [found["because"]] if found.get("because") else []
    return [line, *because, *inexact_lines(found), *missing]


def subnormal_lines(report: Mapping[str, Any]) -> list[str]:
    """Returns a line on the subnormal weights of a compiled model's original, if it has any."""
    found: Mapping[str, Any] = report.get("subnormal_weights") or {}
    colour = "[yellow]" if found.get("kept") else ""
    return [f"{colour}{found['text']}"] if found.get("kept") or found.get("flushed") else []


def inexact_lines(found: Mapping[str, Any]) -> list[str]:
    """Returns a line on the nodes with inexact integers in ONNX Runtime, if the comparison was affected."""
    nodes = found.get("inexact", ())
    if not nodes:
        return []
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return [
        f"compared with exact integers: ONNX Runtime computes {', '.join(nodes[:3])}{more} in f64, which rounds above "
        "2^53 and saturates"
    ]
