"""`tokens` and `speed`: a compiled model beside ONNX Runtime's, both inside of onnxruntime-genai."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.language_models.build import build
from benchmark.language_models.genai import generate, last_logits, link_folder

STEPS = 256
"""The tokens compared."""


@dataclass(frozen=True)
class Pair:
    """A model of ONNX Runtime's and the one that Igniter compiled from it, loaded."""

    theirs: Any
    ours: Any
    words: int


def compiled_model(name: str, form: str, folder: Path, again: bool = False) -> Path:
    """Returns the folder of the compiled model, compiled with default options if missing."""
    import igniter

    target = folder / name / f"{form}.igniter"
    if again or not target.exists():
        igniter.load(build(name, form, folder) / "model.onnx").compile(output=target)
    return target


def load_pair(name: str, form: str, folder: Path, threads: int, place: Path, against: str = "") -> Pair:
    """Loads both models with links in `place`; compiles the model if that is missing. ONNX Runtime runs the form
    `against`, by default the same."""
    import json

    import onnxruntime_genai as og

    built, compiled = build(name, form, folder), compiled_model(name, form, folder)
    place = Path(tempfile.mkdtemp(dir=place))
    folders = [
        link_folder(build(name, against or form, folder), place / "ort", None, threads),
        link_folder(built, place / "igniter", compiled, threads),
    ]
    words = json.loads((built / "genai_config.json").read_text())["model"]["vocab_size"]
    theirs, ours = (og.Model(str(each)) for each in folders)
    return Pair(theirs, ours, words)


def random_prompt(pair: Pair, length: int) -> list[int]:
    """Returns the prompt of a length, from a fixed seed."""
    import numpy as np

    return [int(n) for n in np.random.default_rng(length).integers(3, pair.words, length)]


# -- tokens -----------------------------------------------------------------------------------------------------------


def compare_tokens(pair: Pair, prompt: Sequence[int], steps: int, max_length: int) -> tuple[int, str]:
    """Returns the number of equal tokens at the start, and an account of the first difference.

    A difference is a tie if the logits of the two tokens differ by no more than twice the largest difference of the
    two systems' logits after the same tokens.
    """
    import numpy as np

    theirs, ours = (generate(m, prompt, steps, max_length).tokens for m in (pair.theirs, pair.ours))
    equal = next((k for k, (a, b) in enumerate(zip(theirs, ours, strict=True)) if a != b), steps)
    if equal == steps:
        return equal, "equal"
    before = [*prompt, *theirs[:equal]]
    a, b = (last_logits(m, before, max_length) for m in (pair.theirs, pair.ours))
    gap, error = abs(float(a[theirs[equal]] - a[ours[equal]])), float(np.abs(a - b).max())
    kind = "a tie" if gap <= 2 * error else "NOT a tie"
    return equal, f"{kind}: the two logits differ by {gap:.2e}, the systems by up to {error:.2e}"


def run_tokens(
    names: Sequence[str], forms: Sequence[str], folder: Path, threads: Sequence[int], prompts: Sequence[int]
) -> int:
    """Compares greedy tokens; the status is 1 if a difference is not a tie."""
    failed = 0
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for name in names:
            for form in forms:
                for count in threads:
                    pair = load_pair(name, form, folder, count, Path(place))
                    for length in prompts:
                        prompt = random_prompt(pair, length)
                        equal, account = compare_tokens(pair, prompt, STEPS, length + STEPS + 64)
                        print(
                            f"{name} {form}, {count} threads, prompt {length}: {equal} of {STEPS}, {account}",
                            flush=True,
                        )
                        failed |= "NOT" in account
    return int(failed)


# -- speed ------------------------------------------------------------------------------------------------------------


def run_speed(
    names: Sequence[str],
    forms: Sequence[str],
    folder: Path,
    threads: Sequence[int],
    prompts: Sequence[int],
    rounds: int,
    steps: int,
    max_length: int,
    against: str = "",
) -> int:
    """Times prompts and steps in turns, with a shared buffer of `max_length` keys, and prints tokens per second."""
    print("model form | threads | prompt | ORT prefill / decode | Igniter prefill / decode | ratio prefill / decode")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for name in names:
            for form in forms:
                for count in threads:
                    pair = load_pair(name, form, folder, count, Path(place), against)
                    for length in prompts:
                        prompt = random_prompt(pair, length)
                        rows = _timed(pair, prompt, rounds, steps, max_length)
                        cells = [" / ".join(f"{value:.{digits}f}" for value in row) for row, digits in rows]
                        print(f"{name} {form} | {count} | {length} | {' | '.join(cells)}", flush=True)
    return 0


def _timed(
    pair: Pair, prompt: Sequence[int], rounds: int, steps: int, max_length: int
) -> list[tuple[list[float], int]]:
    """Returns rates of both and their ratios: the medians over the rounds, in which both take turns."""
    rates: list[list[list[float]]] = [[], []]
    for model in (pair.theirs, pair.ours):
        generate(model, prompt, 2, max_length)
    for _ in range(rounds):
        for side, model in enumerate((pair.theirs, pair.ours)):
            run = generate(model, prompt, steps, max_length)
            rates[side].append([len(prompt) / run.prompt_seconds, 1 / statistics.median(run.step_seconds)])
    medians = [[statistics.median(row[k] for row in side) for k in (0, 1)] for side in rates]
    ratios = [statistics.median(b[k] / a[k] for a, b in zip(*rates, strict=True)) for k in (0, 1)]
    return [(medians[0], 0), (medians[1], 0), (ratios, 2)]
