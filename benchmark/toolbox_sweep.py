"""Every verb of the toolbox on every model below folders: what works, what is refused and why, what is wrong.

    python -m benchmark.toolbox_sweep FOLDER ... --verbs shapes profile split --limit 60
    python -m benchmark.toolbox_sweep MODEL.onnx --all

Each verb runs on each model in a process of its own, forked behind the imports, with a limit of seconds and of memory.
What can be checked without trusting the verb is: inferred shapes against those that ONNX Runtime makes, a symbolic
profile at sizes against one at these sizes, a plan against its lower bound, and what changed models, parts and stages
compute against the original. One line a model and verb is printed where it is not `ok` (`--all`: always), and counts
at the end. `skip` is a verb that has nothing to do; `seconds` are of CPU time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import typer.main

import igniter
from benchmark.corpus import difference
from benchmark.table import Column, show
from igniter.errors import IgniterError
from igniter.tools.main import app

COLUMNS = [Column("model", 40), Column("verb", 14), Column("", 8), Column("seconds", 7)]
MEMORY = 12 << 30
EXACT = 1e-3
"""Up to this error what is no number is equal too."""
COMMAND = typer.main.get_command(app)


class Wrong(Exception):
    """A verb that says or makes what is not so."""


class Skip(Exception):
    """A verb that a model gives nothing to do."""


@dataclass(frozen=True)
class Subject:
    """A model, a folder to write to, and sizes and inputs at which ONNX Runtime runs it, where there are such."""

    path: Path
    folder: Path
    feed: dict[str, Any] | None

    def symbols(self) -> dict[str, int]:
        """The sizes of the symbols of its inputs' dims."""
        found: dict[str, int] = {}
        for given in igniter.load(self.path).shapes().inputs:
            shape = getattr((self.feed or {}).get(given.name), "shape", ())
            found.update({d.symbol: int(n) for d, n in zip(given.dims or (), shape, strict=False) if d.symbol})
        return found


def command(*arguments: Any) -> str:
    """What a command prints; `IgniterError` with what it says where it fails, `RuntimeError` for an internal one."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = COMMAND.main([str(a) for a in arguments], standalone_mode=False)
        except typer.Exit as error:
            code = error.exit_code
    if code == 2:
        raise RuntimeError(err.getvalue().strip())
    if code:
        raise IgniterError((err.getvalue() or out.getvalue()[-600:]).strip())
    return out.getvalue()


def session(path: Path | bytes) -> Any:
    """Without graph optimisations, which round at other places in a model and in a part of it."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return ort.InferenceSession(path if isinstance(path, bytes) else str(path), options)


def values_of(subject: Subject) -> dict[str, Any]:
    """Every value of the main graph, and the inputs."""
    proto = onnx.load(subject.path)
    there = {o.name for o in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for x in proto.graph.node for n in x.output if n not in there)
    run = session(proto.SerializeToString())
    names = [o.name for o in run.get_outputs()]
    return {**(subject.feed or {}), **dict(zip(names, run.run(names, subject.feed), strict=True))}


def compare(subject: Subject, made: Path, most: float = EXACT) -> str:
    """Whether another model has the outputs of the original."""
    other = session(made)
    if subject.feed is None:
        return "loads"
    feed = {i.name: subject.feed[i.name] for i in other.get_inputs()}
    return same(session(subject.path).run(None, subject.feed), other.run(None, feed), most)


def same(expected: list[Any], actual: list[Any], most: float = EXACT) -> str:
    worst = 0.0
    for one, two in zip(expected, actual, strict=True):
        if getattr(getattr(one, "dtype", None), "kind", "O") in "fiub":
            worst = max(worst, difference(one, two))
        elif most <= EXACT and not np.array_equal(np.asarray(one, object), np.asarray(two, object)):
            raise Wrong("what is no number differs")
    if worst > most:
        raise Wrong(f"the error is {worst:.1e}")
    return f"error {worst:.1e}"


# -- verbs ------------------------------------------------------------------------------------------------------------


def inspect(s: Subject) -> str:
    json.loads(command("inspect", s.path, "--json"))
    return command("inspect", s.path).splitlines()[0]


def shapes(s: Subject) -> str:
    command("shapes", s.path)
    if s.feed is None:
        return "no inputs are known"
    real, sizes, checked = values_of(s), s.symbols(), 0
    for value in igniter.load(s.path).shapes().values:
        shape = getattr(real.get(value.name), "shape", None)
        if value.scope or value.dims is None or shape is None:
            continue
        told = [d.evaluate(sizes) if d.symbols <= sizes.keys() else n for d, n in zip(value.dims, shape, strict=True)]
        checked += len(told)
        if tuple(told) != shape:
            raise Wrong(f"'{value.name}' is {list(shape)}, and not {told}")
    return f"{checked} dims are those of ONNX Runtime"


def profile(s: Subject) -> str:
    command("profile", s.path)
    module = igniter.load(s.path)
    found = module.profile()
    symbols = {x for p in found.inputs for d in p.tensor.dims or () for x in d.symbols} | set(found.symbols)
    sizes = {name: 3 + i for i, name in enumerate(sorted(symbols))}
    one, two = found.at(sizes).total.to_dict(), module.profile(sizes).total.to_dict()
    if one != two:
        raise Wrong(f"{one} with sizes put in, and {two} at them")
    command("profile", s.path, "--by", "total", "--device", "a100", *sizes_of(sizes))
    return f"{two['flops']:,} FLOPs"


def sizes_of(sizes: dict[str, int]) -> list[str]:
    return ["--sizes", ",".join(f"{k}={v}" for k, v in sizes.items())] if sizes else []


def plan(s: Subject) -> str:
    command("plan", s.path, "--all")
    sizes = s.symbols()
    found = igniter.load(s.path).plan(sizes)
    if found.overlaps() or found.value(found.total) < found.value(found.lower_bound):
        raise Wrong("buffers overlap")
    command("plan", s.path, *sizes_of(sizes), "--chart", s.folder / "plan.svg")
    return f"{found.value(found.total):,} bytes, and no less than {found.value(found.lower_bound):,}"


def diff(s: Subject) -> str:
    command("diff", s.path, s.path)
    node = middle(s, 0.5)
    command("edit", s.path, "-o", s.folder / "other.onnx", "--no-verify", "--expose", node)
    with contextlib.suppress(IgniterError):
        command("diff", s.path, s.folder / "other.onnx")
        raise Wrong("another output is no difference")
    return "nothing with itself, something with another"


def compute_graph(s: Subject) -> str:
    command("shapes", s.path, "--compute-graph", s.folder / "graph.onnx", *sizes_of(s.symbols()))
    return compare(s, s.folder / "graph.onnx")


def edit(s: Subject) -> str:
    outputs = [o.name for o in onnx.load(s.path, load_external_data=False).graph.output]
    command("edit", s.path, "-o", s.folder / "edited.onnx", "--rename", f"{outputs[0]}=another_name")
    return compare(s, s.folder / "edited.onnx")


def middle(s: Subject, place: float) -> str:
    """The first result of a node in the middle of the graph."""
    graph = onnx.load(s.path, load_external_data=False).graph
    outputs = {o.name for o in graph.output}
    inner = [n.output[0] for n in graph.node if n.op_type != "Constant" and n.output[0] not in outputs]
    if not inner:
        raise Skip("no value is inside")
    return inner[int(place * (len(inner) - 1))]


def extract(s: Subject) -> str:
    made = s.folder / "part.onnx"
    command("extract", s.path, "-o", made, "--to", json.dumps(middle(s, 0.5)))
    if s.feed is None:
        return "written"
    part, known = session(made), values_of(s)
    names = [o.name for o in part.get_outputs()]
    return same([known[n] for n in names], part.run(names, {i.name: known[i.name] for i in part.get_inputs()}))


def split(s: Subject) -> str:
    command("split", s.path, "-o", s.folder / "stages", "--stages", 2)
    return command("run-stages", s.folder / "stages", "--here", "--items", 1, "--reference", s.path).splitlines()[-1]


def split_tensor(s: Subject) -> str:
    command("split", s.path, "-o", s.folder / "ranks", "--tensor", 2)
    return command("run-stages", s.folder / "ranks", "--here", "--items", 1, "--reference", s.path).splitlines()[-1]


def compress(s: Subject) -> str:
    made = s.folder / "compressed.onnx"
    command("compress", s.path, "-o", made, "--weights", "int8", "--min-elements", 64)
    return compare(s, made, 0.5)


def quantize(s: Subject) -> str:
    np.savez(s.folder / "samples.npz", **(s.feed or {}))
    command("quantize", s.path, "-o", s.folder / "quantized.onnx", "--data", s.folder / "samples.npz")
    return compare(s, s.folder / "quantized.onnx", 1.0)


def compile(s: Subject) -> str:
    report = json.loads(command("compile", s.path, "-o", s.folder / "compiled", "--json"))
    return str((report.get("verification") or {}).get("status"))


VERBS: dict[str, Callable[[Subject], str]] = {
    f.__name__.replace("_", "-"): f
    for f in (inspect, shapes, profile, plan, diff, compute_graph, edit, extract, split, split_tensor, compress)
} | {"quantize": quantize, "compile": compile}


# -- processes --------------------------------------------------------------------------------------------------------


def inputs_of(path: Path) -> dict[str, Any]:
    """Inputs of the first sizes that the model runs at."""
    from igniter.compiler.artifact import model_facts
    from igniter.verification.original import Original
    from igniter.verification.verify import typical_inputs

    return typical_inputs(Original(str(path)), model_facts(str(path)), {}, 0, 10.0, small=True)[1]


def forked(call: Callable[[], Any], seconds: float) -> tuple[str, Any, float]:
    """The kind of outcome, what came back or was said, and the CPU time."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(outcome(call), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if data:
        return pickle.loads(data)
    return ("time" if status == -signal.SIGALRM else "died"), f"exit status {status}", seconds


def outcome(call: Callable[[], Any]) -> tuple[str, Any, float]:
    try:
        return "ok", call(), time.process_time()
    except Wrong as error:
        return "wrong", str(error), time.process_time()
    except Skip as error:
        return "skip", str(error), time.process_time()
    except IgniterError as error:
        return "refused", error.message, time.process_time()
    except Exception as error:  # whatever is raised is the finding
        return "crash", f"{type(error).__name__}: {error}", time.process_time()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="models, or folders of them")
    parser.add_argument("--verbs", nargs="+", choices=list(VERBS), default=list(VERBS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that one verb may take")
    parser.add_argument("--all", action="store_true", help="print what is ok too")
    chosen = parser.parse_args()
    ort.set_default_logger_severity(4)
    counts: Counter[tuple[str, str]] = Counter()
    show(COLUMNS, silent=False)
    files = [f for p in chosen.paths for f in ([p] if p.is_file() else sorted(p.rglob("*.onnx")))]
    for path in files:
        kind, feed, _ = forked(lambda path=path: inputs_of(path), chosen.limit)
        for verb in chosen.verbs:
            folder = Path(tempfile.mkdtemp(prefix="igniter-sweep-"))
            subject = Subject(path, folder, feed if kind == "ok" else None)
            found, said, seconds = forked(lambda s=subject, verb=verb: VERBS[verb](s), chosen.limit)
            shutil.rmtree(folder)
            counts[verb, found] += 1
            if chosen.all or found not in ("ok", "skip"):
                show(COLUMNS, silent=False, cells=[path.name, verb, found, f"{seconds:.1f}"])
                print(f"    {str(said).strip()[:400]}")
    for verb in chosen.verbs:
        print(f"{verb}: {', '.join(f'{n} {kind}' for (v, kind), n in sorted(counts.items()) if v == verb)}")
    return int(any(kind in ("wrong", "crash", "died", "time") for _, kind in counts))


if __name__ == "__main__":
    sys.exit(main())
