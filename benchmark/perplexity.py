"""The perplexity of a language model with weights in fewer bits: one table of forms, with sizes.

    python -m benchmark.perplexity FOLDER [--forms f32 int4 gptq ...] [--text FILE] [--calibrate FILE] [--csv FILE]

FOLDER has `model.onnx` in f32 and its tokenizer, as `python -m benchmark.language_models build smollm2 --forms f32`
writes them. `int4` is rounding to nearest in blocks of 32, `gptq` the same with codes corrected by samples;
`.symmetric` has no zero points, and `.head` leaves the embedding in f32. Other folders, such as those of
onnxruntime-genai's builder (`--beside int4-level4=FOLDER`), are rows of their own.
The text that is evaluated, in windows of 512 tokens, is the GPL (Debian's `/usr/share/common-licenses/GPL-3`); that of
the samples is the reference of Python's own language (`pydoc_data.topics`). ONNX Runtime runs all forms.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import igniter
from igniter.toolbox.generate.caches import numbers
from igniter.toolbox.generate.generator import Generator
from igniter.toolbox.generate.model_folder import LanguageModel, open_model
from igniter.toolbox.generate.samples import feed, text_samples, windows

TEXT = Path("/usr/share/common-licenses/GPL-3")
FORMS = ("f32", "int8", "int4", "int4.symmetric", "gptq", "gptq.symmetric")
LENGTH, COUNT, SAMPLES = 512, 3, 32


@dataclass(frozen=True)
class Row:
    """A form of the model."""

    form: str
    megabytes: float
    perplexity: float
    seconds: float
    """To compress it."""


def python_text() -> str:
    """The reference of Python's language, in the order of its topics."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def negative_log_likelihood(logits: Any, window: Sequence[int]) -> float:
    """The sum over all tokens of a window but the first, whose logits are rows [positions, vocabulary]."""
    before = logits[:-1].astype(np.float64)
    top = before.max(axis=-1, keepdims=True)
    likely = before - top - np.log(np.exp(before - top).sum(axis=-1, keepdims=True))
    following = np.array(window[1:])
    return -float(likely[np.arange(following.size), following].sum())


def perplexity(model: LanguageModel, tokens: Sequence[int], length: int, count: int) -> float:
    """The exponential of the mean negative log likelihood of each token but the first of every window."""
    import onnxruntime

    total, number = 0.0, 0
    for window in windows(tokens, length, count):
        values = feed(model.graph, window)
        binding = model.session.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        binding.bind_output(model.graph.logits)
        model.session.run_with_iobinding(binding)
        total += negative_log_likelihood(numbers(binding.get_outputs()[0])[0], window)
        number += len(window) - 1
    return math.exp(total / number)


def written(form: str, model: Path, folder: Path, samples: Any) -> Path:
    """The model in a form."""
    if form == "f32":
        return model
    kind, *parts = form.split(".")
    target = folder / f"{form}.onnx"
    options: dict[str, Any] = {"symmetric": "symmetric" in parts, "measure": False}
    options["leave"] = ["Gather"] if "head" in parts else []
    if kind == "gptq":
        options |= {"correct": "gptq", "data": samples}
    module = igniter.load(model).compress("int8" if kind == "int8" else "int4", "block:32", **options)
    module.save(target)
    return target


def size(path: Path) -> float:
    """The megabytes of a model and its weights."""
    files = [path, *path.parent.glob(f"{path.name}*data")]
    return sum(p.stat().st_size for p in {*files}) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--forms", nargs="+", default=list(FORMS))
    parser.add_argument("--beside", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--text", type=Path, default=TEXT)
    parser.add_argument("--calibrate", type=Path)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--windows", type=int, default=COUNT)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the models of the forms")
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    original = open_model(asked.folder, intra_op_num_threads=asked.threads)
    tokens = Generator(asked.folder).encode(asked.text.read_text(encoding="utf-8"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="igniter-perplexity-") as made:
        folder = asked.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        text = asked.calibrate or Path(made) / "calibration.txt"
        if asked.calibrate is None:
            text.write_text(python_text(), encoding="utf-8")
        samples = text_samples(original, text, length=LENGTH, count=asked.samples)
        for form in asked.forms:
            start = time.perf_counter()
            path = written(form, original.path, folder, samples)
            seconds = time.perf_counter() - start
            rows.append(row(form, path, asked.folder, tokens, seconds, asked))
        for beside in asked.beside:
            name, _, where = beside.partition("=")
            rows.append(row(name, open_model(where).path, Path(where), tokens, 0.0, asked))
    if asked.csv:
        with asked.csv.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["form", "megabytes", "perplexity", "seconds"])
            out.writerows([r.form, f"{r.megabytes:.1f}", f"{r.perplexity:.2f}", f"{r.seconds:.1f}"] for r in rows)
    return 0


def row(form: str, path: Path, folder: Path, tokens: Sequence[int], seconds: float, asked: Any) -> Row:
    """Measures a form, and prints it."""
    model = open_model(path, intra_op_num_threads=asked.threads)
    found = Row(form, size(path), perplexity(model, tokens, LENGTH, asked.windows), seconds)
    print(f"| {form} | {found.megabytes:.1f} | {found.perplexity:.2f} | {found.seconds:.0f} |", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
