"""Compares the code that two revisions emit: `python -m tests.same_code OLD NEW`.

Both revisions run the same inputs, those of NEW:

| part | inputs | compared |
| --- | --- | --- |
| `lit` | every `igniter-opt` command of a RUN line in lit_tests/ | its output |
| `nodes` | ONNX's node tests, every op a kernel of its own | LLVM IR by target, Triton's Python for `cuda` |
| `models` | .onnx files of `--models FOLDER`, such as the packages that `benchmark/corpus.py` fetched | the same |

Each answer is a file in `--out`. A comparison that was stopped continues where it stopped. The exit code is 1 where an
answer differs; `--show N` prints the first differing lines of N answers.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DUMP = Path(__file__).with_name("dump.py")
CPUS = ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64")
SINGLE = "form-fusion-regions{contractions=all singletons=all views=all},lift-constants"
NODES = {
    "cpu": f"cpu-onnx,bind-values,{SINGLE},pack-weights,cpu-loop,cpu-kernels",
    "cuda": f"cuda-onnx,bind-values,{SINGLE},cuda-loop,cuda-kernels",
}
MODELS = {
    "cpu": "cpu-onnx,cpu-tiles,cpu-fusion,cpu-loop,cpu-kernels,cpu-programs,cpu-calls",
    "cuda": "cuda-onnx,cuda-fusion,cuda-loop,cuda-kernels",
}


@dataclass(frozen=True)
class Item:
    """One command: the name of its answer, the arguments of `igniter-opt` and the folder to run it in."""

    name: str
    args: list[str]
    folder: str


def main() -> int:
    options = _arguments()
    out = options.out or Path(tempfile.mkdtemp(prefix="same-code-"))
    items = plan(options, out)
    plans = [items[k :: options.jobs] for k in range(options.jobs)]
    for revision in dict.fromkeys((options.old, options.new)):
        _dump(revision, plans, out)
    return _compare(items, out / name_of(options.old), out / name_of(options.new), options.show)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.same_code", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="a revision of git")
    parser.add_argument("new", help="another one")
    parser.add_argument("--parts", default="lit,nodes", help="of lit, nodes and models (default: %(default)s)")
    parser.add_argument("--models", type=Path, action="append", default=[], help="a folder with .onnx files")
    parser.add_argument("--targets", default=",".join((*CPUS, "cuda")), help="comma-separated (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="only each N-th input of a part")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--out", type=Path, help="the answers (default: a temporary folder)")
    parser.add_argument("--show", type=int, default=5, help="print the differences of so many answers")
    return parser.parse_args()


def name_of(revision: str) -> str:
    """The commit of a revision."""
    return subprocess.check_output(["git", "rev-parse", "--short", revision], cwd=ROOT, text=True).strip()


def plan(options: argparse.Namespace, out: Path) -> list[Item]:
    """The commands of the chosen parts, their inputs written below `out`."""
    tree = _tree(options.new, out)
    parts = options.parts.split(",")
    targets = options.targets.split(",")
    items: list[Item] = []
    if "lit" in parts:
        items += _lit(tree)[:: options.every]
    if "nodes" in parts:
        files = _node_models(out / "inputs")[:: options.every]
        items += [_item(f"nodes/{file.stem}", file, target, NODES) for file in files for target in targets]
    if "models" in parts:
        files = sorted(f for folder in options.models for f in folder.resolve().rglob("*.onnx"))[:: options.every]
        items += [_item(f"models/{_slug(file)}", file, target, MODELS) for file in files for target in targets]
    if not items:
        raise SystemExit(f"no inputs in the parts '{options.parts}'; 'models' needs --models FOLDER")
    return items


def _slug(file: Path) -> str:
    return re.sub(r"\W+", "_", str(file.with_suffix("")))[-120:]


def _item(name: str, file: Path, target: str, pipelines: dict[str, str]) -> Item:
    gpu = target.startswith("cuda")
    passes = pipelines["cuda" if gpu else "cpu"]
    args = [str(file), "-p", passes, "--isolate", "--no-verify-each", "--emit=llvm", f"--target={target}"]
    return Item(f"{name}.{target}", args, str(file.parent))


def _lit(tree: Path) -> list[Item]:
    """The `igniter-opt` commands of RUN lines, without their filters."""
    items: list[Item] = []
    for file in sorted((tree / "lit_tests").rglob("*.mlir")):
        runs = re.findall(r"RUN: (?:not )?igniter-opt ([^|\n]*[^|\n ])", file.read_text())
        for number, run in enumerate(runs):
            args = [a.strip("\"'") for a in re.findall(r'(?:"[^"]*"|\'[^\']*\'|\S)+', run) if not a.startswith("2>")]
            name = f"{file.relative_to(tree).with_suffix('')}.{number}"
            items.append(Item(name, [a.replace("%s", file.name) for a in args], str(file.parent)))
    return items


def _node_models(folder: Path) -> list[Path]:
    """ONNX's node tests as files."""
    from tests.conformance.node_cases import node_cases

    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, case in sorted(node_cases().items()):
        file = folder / f"{name}.onnx"
        if case.model is not None:
            file.write_bytes(case.model.SerializeToString())
            files.append(file)
    return files


def _tree(revision: str, out: Path) -> Path:
    """The files of a revision, below `out`."""
    tree = out / f"tree-{name_of(revision)}"
    if not tree.exists():
        tree.mkdir(parents=True)
        archive = subprocess.Popen(["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(tree)], stdin=archive.stdout, check=True)
        if archive.wait():
            raise SystemExit(f"git has no revision '{revision}'")
    return tree


def _dump(revision: str, plans: list[list[Item]], out: Path) -> None:
    """Runs all commands with one revision, a process for each plan."""
    tree, answers = _tree(revision, out), out / name_of(revision)
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "IGNITER_JOBS": "1"}
    workers: list[subprocess.Popen[bytes]] = []
    for number, items in enumerate(plans):
        file = out / f"plan-{number}.json"
        file.write_text(json.dumps([asdict(item) for item in items]))
        command = [sys.executable, str(DUMP), str(tree), str(file), str(answers)]
        workers.append(subprocess.Popen(command, env=environment))
    failed = [worker.args for worker in workers if worker.wait()]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(workers)} processes of {revision} failed")


def _compare(items: list[Item], old: Path, new: Path, show: int) -> int:
    counts: Counter[str] = Counter()
    differing: list[str] = []
    for item in items:
        part = item.name.partition("/")[0]
        same = (old / item.name).read_text() == (new / item.name).read_text()
        counts[f"{part}: {'same' if same else 'different'}"] += 1
        counts[f"{part}: with code"] += "== status 0" in (new / item.name).read_text()
        if not same:
            differing.append(item.name)
    for name in differing[:show]:
        lines = [(folder / name).read_text().splitlines() for folder in (old, new)]
        print(*list(difflib.unified_diff(*lines, f"old/{name}", f"new/{name}", lineterm="", n=1))[:30], sep="\n")
    for key, count in sorted(counts.items()):
        print(f"{key:24} {count:6}")
    print(*differing[show:], sep="\n")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
