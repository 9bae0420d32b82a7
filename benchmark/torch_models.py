"""Eager, Inductor and Igniter beside each other on the models of `benchmark.torch_architectures`.

    python -m benchmark.torch_models [--only BERT Swin] [--json FILE] [--threads 1] [--rounds 15] [--without inductor]

`igniter` is `igniter.torch.compile(model)`, `backend` is `torch.compile(model, backend="igniter", dynamic=True)`,
`inductor` is `torch.compile(model, dynamic=True)`; of models in `SIZES_LATER` both are without `dynamic=True`. For each
model there is a process that imports PyTorch and makes the model, and from it is forked

* for each system a process with empty caches of its own: how long it takes to import the compiler, compile and make the
  first call, whether outputs at all sizes agree with eager's, the peak of the process's memory, graph breaks;
* one process for all systems with the caches that those have filled: first calls again, and the times of further calls,
  which take turns in an order drawn for each round.

Each has a limit of time and of memory; what fails is said in the table, and the rest goes on. `--json FILE` keeps all
figures after every model, and what is in it is not measured again.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmark.torch_architectures import NAMES, SIZES_LATER, call, model_and_inputs

SYSTEMS = ("igniter", "backend", "inductor")
RTOL = 1e-3
POLL = 0.1
TOLD = 200
"""Characters of the reasons in the table; the file has all."""


class Failed(Exception):
    """A measurement that did not come to an end, and why."""


# -- in a process of its own ------------------------------------------------------------------------------------------


def make(system: str, model: Any, dynamic: bool | None = True) -> Any:
    """`model` as the system runs it, and what it has to import for that."""
    if system == "eager":
        return model
    import torch

    if system == "inductor":
        return torch.compile(model, dynamic=dynamic)
    import igniter.torch

    if system == "igniter":
        return igniter.torch.compile(model)
    return torch.compile(model, backend="igniter", dynamic=dynamic)


def use_cache(folder: str, system: str) -> None:
    """Make the system's caches on disk those below `folder`."""
    os.environ["IGNITER_CACHE_DIR"] = f"{folder}/{system}"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/{system}/inductor"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def alone(
    system: str, model: Any, sizes: list[Any], expected: list[Any], folder: str, dynamic: bool | None
) -> dict[str, Any]:
    """First call, error, memory, and what was left to eager, of one system with empty caches."""
    import torch

    use_cache(folder, system)
    with torch.inference_mode():
        start, cpu = time.perf_counter(), _cpu_seconds()
        fast = make(system, model, dynamic)
        got = [call(fast, sizes[0])]
        found: dict[str, Any] = {"first": time.perf_counter() - start, "cpu": _cpu_seconds() - cpu}
        got += [call(fast, given) for given in sizes[1:]]
    found["memory"] = _peak_memory()
    if system == "eager":
        return found
    from igniter.torch.compare import differences

    compared = [differences(one, other, RTOL) for one, other in zip(got, expected, strict=True)]
    found["error"] = max(error for error, _ in compared)
    found["wrong"] = next((why for _, why in compared if why), "")
    if system != "igniter" or "torch._dynamo" in sys.modules:
        found["breaks"] = dict(torch._dynamo.utils.counters["graph_break"])
    if system != "inductor":
        import igniter.torch

        told = igniter.torch.explain()
        pieces = [piece for graph in told.graphs for piece in graph.pieces]
        found["compiled"] = sum(piece.nodes for piece in pieces if piece.compiled)
        found["ops"] = found["compiled"] + sum(piece.nodes for piece in pieces if not piece.compiled)
        found["copied"] = sum(piece.copied_inputs + piece.copied_outputs for piece in pieces)
        found["reasons"] = told.reasons
    return found


def together(
    systems: list[str], model: Any, sizes: list[Any], rounds: int, folder: str, dynamic: bool | None
) -> dict[str, Any]:
    """First calls with the caches that are there, and the times of further calls in turns, in ms."""
    import torch

    ready: dict[str, Any] = {}
    found: dict[str, Any] = {"warm": {}, "ms": {}, "ms small": {}}
    with torch.inference_mode():
        for system in systems:
            use_cache(folder, system)
            start = time.perf_counter()
            ready[system] = make(system, model, dynamic)
            call(ready[system], sizes[0])
            found["warm"][system] = time.perf_counter() - start
            call(ready[system], sizes[-1])
            if system != "eager":
                torch._dynamo.config.recompile_limit = 64
        for name, given in (("ms small", sizes[0]), ("ms", sizes[-1])):
            times: dict[str, list[float]] = {system: [] for system in ready}
            order, chance = list(ready), random.Random(0)
            for _ in range(rounds):
                # What comes behind eager pays for what that leaves in the caches and gives back to the system.
                chance.shuffle(order)
                for system in order:
                    start = time.perf_counter()
                    call(ready[system], given)
                    times[system].append((time.perf_counter() - start) * 1e3)
            found[name] = {system: [statistics.median(each), min(each)] for system, each in times.items()}
    return found


def _cpu_seconds() -> float:
    """Of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak_memory() -> int:
    """The most bytes that this process has had in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


# -- the process of one model -----------------------------------------------------------------------------------------


def in_fork(work: Callable[[], Any], seconds: float, limit: int) -> Any:
    """What `work` returns in a fork of this process; `Failed` where it raises, takes longer or takes more bytes."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)

    def body() -> None:
        os.setsid()
        try:
            theirs.send((work(), ""))
        except Exception as error:
            text = str(error).strip().splitlines()
            theirs.send((None, f"{type(error).__name__}: {text[0] if text else ''}"))

    process = context.Process(target=body)
    process.start()
    theirs.close()
    end = time.monotonic() + seconds
    try:
        while not mine.poll(POLL):
            if not process.is_alive() and not mine.poll(0):
                raise Failed(f"the process died ({process.exitcode})")
            if time.monotonic() > end:
                raise Failed(f"took more than {seconds:.0f} s")
            if _resident(process.pid) > limit:
                raise Failed(f"took more than {limit / 2**30:.1f} GB")
        result, why = mine.recv()
    except EOFError:
        raise Failed("the process died") from None
    finally:
        _end(process)
    if why:
        raise Failed(why)
    return result


def _end(process: Any) -> None:
    import contextlib
    import signal

    process.join(1)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # Its helpers too: the group is its own.
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def _resident(pid: int) -> int:
    """Bytes of memory that a process and its helpers have."""
    import psutil

    total = 0
    try:
        one = psutil.Process(pid)
        for process in (one, *one.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.Error:
        # One has just ended.
        return total
    return total


def measure(name: str, settings: Any) -> dict[str, Any]:
    """All figures of one model."""
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    import torch

    # More threads than one would be lost in a fork: those that use more begin them there.
    torch.set_num_threads(1)
    model, sizes = model_and_inputs(name)
    with torch.inference_mode():
        expected = [[leaf.clone() for leaf in call(model, given)] for given in sizes]
    limit = int(settings.memory * 2**30)
    dynamic = None if name in SIZES_LATER else True
    row: dict[str, Any] = {"name": name, "threads": settings.threads, "alone": {}, "failed": {}}

    def threaded(work: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            torch.set_num_threads(settings.threads)
            return work()

        return run

    with tempfile.TemporaryDirectory(prefix="torch-models-") as folder:
        systems = ["eager", *(system for system in SYSTEMS if system not in settings.without)]
        for system in systems:
            try:
                work = threaded(lambda system=system: alone(system, model, sizes, expected, folder, dynamic))
                row["alone"][system] = in_fork(work, settings.limit, limit)
            except Failed as error:
                row["failed"][system] = str(error)
        ready = [system for system in systems if system in row["alone"]]
        try:
            work = threaded(lambda: together(ready, model, sizes, settings.rounds, folder, dynamic))
            row |= in_fork(work, settings.limit, limit)
        except Failed as error:
            row["failed"]["together"] = str(error)
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
    return row


# -- the table --------------------------------------------------------------------------------------------------------

HEADER = (
    "model",
    "error",
    "eager ms",
    "Inductor ms",
    "igniter ms",
    "backend ms",
    "first call s",
    "with caches s",
    "memory MB",
    "graph breaks",
    "compiled",
    "left to eager",
)
LEGEND = (
    "error, first call, with caches: igniter / backend / Inductor; memory: eager / igniter / backend / Inductor; "
    "in parentheses how many times as fast as eager"
)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = [" | ".join(HEADER), " | ".join("---" for _ in HEADER), *(" | ".join(cells(row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def cells(row: Mapping[str, Any]) -> list[str]:
    each: Mapping[str, Any] = row.get("alone", {})
    failed: Mapping[str, str] = row.get("failed", {})

    def of(what: str, form: str, systems: tuple[str, ...] = SYSTEMS) -> str:
        return " / ".join(_number(each.get(system, {}).get(what), form) for system in systems)

    breaks = [len(each[s]["breaks"]) for s in ("backend", "inductor") if "breaks" in each.get(s, {})]
    counts = [f"{each[s]['compiled']} of {each[s]['ops']}" for s in ("igniter", "backend") if s in each]
    reasons = [why for s in ("igniter", "backend") for why in each.get(s, {}).get("reasons", ())]
    reasons += [f"{s} differs: {each[s]['wrong']}" for s in SYSTEMS if each.get(s, {}).get("wrong")]
    reasons += [f"{what} failed: {why}" for what, why in failed.items()]
    return [
        row["name"],
        of("error", "{:.0e}"),
        *(_time(row, system) for system in ("eager", "inductor", "igniter", "backend")),
        of("first", "{:.1f}"),
        " / ".join(_number(row.get("warm", {}).get(system), "{:.1f}") for system in SYSTEMS),
        " / ".join(_number(each.get(s, {}).get("memory"), "{:.0f}", 2**-20) for s in ("eager", *SYSTEMS)),
        str(max(breaks, default="-")),
        " / ".join(counts),
        "; ".join(dict.fromkeys(reasons))[:TOLD].replace("|", "/") or "none",
    ]


def _time(row: Mapping[str, Any], system: str) -> str:
    times = row.get("ms", {})
    if system not in times:
        return "-"
    median = times[system][0]
    return f"{median:.2f}" if system == "eager" else f"{median:.2f} ({times['eager'][0] / median:.2f})"


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)


# -- the command ------------------------------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="models; all where none is named")
    parser.add_argument("--json", default="", help="a file for all figures; what is in it is not measured again")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15, help="calls of each system at each of two sizes")
    parser.add_argument("--without", action="append", default=[], choices=SYSTEMS)
    parser.add_argument("--limit", type=float, default=120, help="seconds for one process")
    parser.add_argument("--memory", type=float, default=6, help="GB for one process and its helpers")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = [name for name in given.only if name not in NAMES]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return given


def in_process(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of a model, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmark.torch_models", "--one", name]
    for option in ("threads", "rounds", "limit", "memory"):
        command.append(f"--{option}={getattr(given, option)}")
    command += [f"--without={system}" for system in given.without]
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(given.threads))}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    try:
        return json.loads(ran.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return {"name": name, "failed": {"model": (ran.stderr.strip().splitlines() or ["no output"])[-1]}}


def main() -> None:
    given = parsed()
    if given.one:
        print("\n" + json.dumps(measure(given.one, given)))
        return
    file = Path(given.json) if given.json else None
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file is not None and file.exists() else []
    start = time.monotonic()
    for name in given.only or NAMES:
        if any(row["name"] == name and "model" not in row["failed"] for row in rows):
            continue
        rows = [row for row in rows if row["name"] != name] + [in_process(name, given)]
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        if file is not None:
            file.write_text(json.dumps(rows, indent=1))
    order = {name: place for place, name in enumerate(NAMES)}
    print(f"\n{table(sorted(rows, key=lambda row: order.get(row['name'], len(order))))}\n\n{LEGEND}")
    print(f"{len(rows)} models, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
