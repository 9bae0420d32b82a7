"""The verbs of onnx-tool beside Igniter's, on the same models.

    python -m benchmark.onnx_tool --peer-python PYTHON [MODEL ...] [--json FILE] [--limit 120]

PYTHON is one that has onnx-tool (`python -m venv .onnx-tool; .onnx-tool/bin/pip install onnx-tool`). Without models it
takes ResNet-50 and DenseNet-121 of the onnx package and what `benchmark.export` has exported. Each verb runs in a
process of its own with a limit of time. What comes out is judged by ONNX Runtime:

* `shapes`: those of the outputs at sizes that were not told before, beside what ONNX Runtime gives;
* `compute-graph`, `fuse`, `int8`, `int4`: whether the model that comes out runs, and how far its outputs are off;
* `extract`: whether the three parts, one after the other, give the outputs of the whole.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmark.onnx_tool.own_worker import OPERANDS
from benchmark.onnx_tool.task import VERBS
from igniter.dialects.sym.expr import Expr
from igniter.runtime.session import make_session

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache"
SIZES, OTHER = {"batch": 1, "past": 64}, {"batch": 2, "past": 33}
SEQUENCE, OTHER_SEQUENCE = 128, 37
LIGHT = ("light_resnet50", "light_densenet121")


@dataclass(frozen=True)
class Subject:
    """A model, and what both tools are asked about it."""

    name: str
    path: Path

    @cached_property
    def session(self) -> Any:
        return make_session(str(self.path), log_severity_level=4)

    @cached_property
    def inputs(self) -> dict[str, tuple[str, list[int | str]]]:
        dtypes = {
            "tensor(float)": "float32",
            "tensor(int64)": "int64",
            "tensor(int32)": "int32",
            "tensor(bool)": "bool",
        }
        given = {i.name for i in onnx.load(self.path, load_external_data=False).graph.initializer}
        found = [i for i in self.session.get_inputs() if i.name not in given]
        return {i.name: (dtypes.get(i.type, "float32"), list(i.shape)) for i in found}

    def sizes(self, chosen: Mapping[str, int], rest: int) -> dict[str, int]:
        dims = {d for _, shape in self.inputs.values() for d in shape if isinstance(d, str)}
        return {d: chosen.get(d, rest) for d in sorted(dims) if d.isidentifier()}

    def described(self, sizes: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """Of each input its type, dims, and shape at sizes."""
        return {
            name: {"dtype": dtype, "dims": dims, "shape": [_dim(d, sizes) for d in dims]}
            for name, (dtype, dims) in self.inputs.items()
        }

    def variables(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Every text that is a dim, sums included, with its value."""
        return {d: _dim(d, sizes) for _, dims in self.inputs.values() for d in dims if isinstance(d, str)}

    def feeds(self, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
        """Random floats, and small integers for what may be indices."""
        rng = np.random.default_rng(seed)
        found: dict[str, Any] = {}
        for name, (dtype, dims) in self.inputs.items():
            shape = [_dim(d, sizes) for d in dims]
            is_float = dtype.startswith("float")
            array = (
                rng.standard_normal(shape)
                if is_float
                else np.ones(shape)
                if "mask" in name
                else rng.integers(0, 2, shape)
            )
            found[name] = np.asarray(array).astype(dtype)
        return found

    @cached_property
    def cut(self) -> list[list[str]]:
        """The values that pass two places, about a third and two thirds of the way: where they are fewest nearby."""
        graph = onnx.load(self.path, load_external_data=False).graph
        last = {name: k for k, node in enumerate(graph.node) for name in node.input}
        last |= {o.name: len(graph.node) for o in graph.output}
        live, moving, places = set[str](), set(self.inputs), list[tuple[int, list[str]]]()
        for k, node in enumerate(graph.node):
            if moving & set(node.input):
                moving.update(node.output)
            live = {n for n in live if last[n] > k} | {n for n in node.output if last.get(n, 0) > k and n in moving}
            if live:
                places.append((k, sorted(live)))
        count, found = len(places), list[tuple[int, list[str]]]()
        for part in (0.33, 0.66):
            near = range(int(count * (part - 0.1)), int(count * (part + 0.1)))
            found.append(places[min(near, key=lambda k: (len(places[k][1]), abs(k - part * count)))])
        # What passes both places is no end of what lies between them, and a beginning only where that reads it.
        (first, begin), (second, end) = found
        read = {name for node in graph.node[first + 1 : second + 1] for name in node.input}
        return [[n for n in begin if n in read], [n for n in end if n not in begin]]

    @cached_property
    def chain(self) -> list[str]:
        """Two ops in a row of which the model has most."""
        graph = onnx.load(self.path, load_external_data=False).graph
        readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        pairs = Counter(
            (node.op_type, after[0].op_type)
            for node in graph.node
            if len(after := readers.get(node.output[0], [])) == 1
            and (node.op_type in OPERANDS and after[0].op_type in OPERANDS)
        )
        return list(max(pairs, key=lambda pair: pairs[pair]))


def _dim(dim: int | str, sizes: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else Expr.parse(dim).evaluate(sizes)


def default_models() -> list[Subject]:
    """The light models, and the exports that are there."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    exports = [Subject(p.parent.name.removesuffix("-dynamo"), p) for p in sorted(CACHE.glob("*/model.onnx"))]
    return [*(Subject(name, light / f"{name}.onnx") for name in LIGHT), *exports]


def ask(subject: Subject, verb: str, worker: Sequence[str], folder: Path, limit: float) -> dict[str, Any]:
    """What a tool answers; an `error` where it stops or takes too long."""
    task = {
        "verb": verb,
        "model": str(subject.path),
        "sizes": subject.sizes(SIZES, SEQUENCE),
        "other": subject.sizes(OTHER, OTHER_SEQUENCE),
        "inputs": subject.described(subject.sizes(SIZES, SEQUENCE)),
        "variables": subject.variables(subject.sizes(SIZES, SEQUENCE)),
        "other_variables": subject.variables(subject.sizes(OTHER, OTHER_SEQUENCE)),
        "outputs": [o.name for o in subject.session.get_outputs()],
        "cut": subject.cut,
        "chain": subject.chain,
        "out": str(folder / verb),
    }
    try:
        done = subprocess.run(
            worker, input=json.dumps(task), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"over {limit:.0f} s"}
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return {"error": (done.stderr.strip().splitlines() or ["it ended without an answer"])[-1]}


def judge(subject: Subject, answer: dict[str, Any]) -> dict[str, Any]:
    """Adds what ONNX Runtime says of an answer."""
    if "shapes" in answer:
        # A model without symbols has one size.
        sizes = subject.sizes(OTHER, OTHER_SEQUENCE)
        outputs = subject.session.run(None, subject.feeds(sizes))
        true = {o.name: list(v.shape) for o, v in zip(subject.session.get_outputs(), outputs, strict=True)}
        wrong = {n: answer["shapes"].get(n) for n, shape in true.items() if answer["shapes"].get(n) != shape}
        answer["wrong"] = [f"{n} is {wrong[n]}, not {true[n]}" for n in wrong]
    for file in answer.get("files", ()):
        answer |= _beside(subject, [Path(file)])
    if "parts" in answer:
        answer |= _beside(subject, [Path(p) for p in answer["parts"]])
    return answer


def _beside(subject: Subject, files: Sequence[Path]) -> dict[str, Any]:
    """Runs models one after the other, and compares what they give with the original."""
    feeds = subject.feeds(subject.sizes(SIZES, SEQUENCE))
    values = dict(feeds)
    try:
        for file in files:
            if not file.exists():
                continue  # a part without nodes
            session: Any = make_session(str(file), log_severity_level=4)
            names = [i.name for i in session.get_inputs()]
            found = session.run(None, {n: values[n] for n in names})
            values |= {o.name: v for o, v in zip(session.get_outputs(), found, strict=True)}
        expected = subject.session.run(None, feeds)
        worst = 0.0
        for output, value in zip(subject.session.get_outputs(), expected, strict=True):
            if np.asarray(value).dtype.kind == "f":
                scale = float(np.abs(value).max()) or 1.0
                worst = max(worst, float(np.abs(values[output.name].astype(np.float64) - value).max()) / scale)
    # ONNX Runtime's exceptions have no base but this one; KeyError is a value that no part gives.
    except Exception as error:
        return {"does_not_run": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}
    return {"error_of_outputs": worst}


def cell(answer: Mapping[str, Any]) -> str:
    """An answer as text."""
    if "error" in answer:
        return f"stops: {answer['error']}"
    parts: list[str] = []
    if "figure" in answer:
        parts.append(f"{answer['figure']:,}")
    if "bytes" in answer:
        parts.append(f"{answer['bytes'] / 1e6:.1f} MB")
    if "wrong" in answer:
        parts.append("; ".join(answer["wrong"]) or "right")
    if "does_not_run" in answer:
        parts.append(f"does not run: {answer['does_not_run']}")
    if "error_of_outputs" in answer:
        parts.append(f"runs, error {answer['error_of_outputs']:.1e}")
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--peer-python", required=True, help="a Python that has onnx-tool")
    parser.add_argument("--json", type=Path, help="write the answers to this file too")
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=VERBS, help="only these")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one verb")
    args = parser.parse_args()
    subjects = [Subject(p.stem, p) for p in args.models] or default_models()
    workers = {
        "onnx-tool": [args.peer_python, str(HERE / "peer_worker.py")],
        "igniter": [sys.executable, "-m", "benchmark.onnx_tool.own_worker"],
    }
    found: list[dict[str, Any]] = []
    for subject in subjects:
        print(f"\n{subject.name}\n\n| | onnx-tool | Igniter |\n| --- | --- | --- |")
        for verb in args.verbs:
            row: dict[str, Any] = {"model": subject.name, "verb": verb}
            for tool, worker in workers.items():
                with tempfile.TemporaryDirectory(prefix="igniter-beside-") as folder:
                    row[tool] = judge(subject, ask(subject, verb, worker, Path(folder), args.limit))
            found.append(row)
            print(f"| {verb} | {cell(row['onnx-tool'])} | {cell(row['igniter'])} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
