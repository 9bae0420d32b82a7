"""SmolLM2 in Igniter, ONNX Runtime, OpenVINO GenAI and llama.cpp: perplexity, and tokens per second in turns.

    python -m benchmark.language_models.peers
    python -m benchmark.language_models.peers --threads 1 --prompts 128 --systems ort:f32 igniter:f32 openvino:f16

Each system has a process of its own, and they take turns. Cells are the speed of a prompt / of the steps behind it over
that of the first system, the median of the rounds; the first system's row has tokens per second. The perplexity is that
of 3 windows of 512 tokens of a text (`benchmark.perplexity`). llama.cpp does not give logits of prompts here: its
perplexity is that of OpenVINO with the same file.
A system is `ort:FORM` or `igniter:FORM` with a form of `benchmark.language_models`, or `openvino:TYPE` or
`llama.cpp:TYPE` with f16, q4_0, q4_1 or q8_0. They need onnxruntime-genai, openvino-genai, xllamacpp and gguf.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.language_models.build import FOLDER, PRUNED, build
from benchmark.language_models.gguf_files import gguf_file
from benchmark.language_models.measure import compiled_model
from benchmark.language_models.systems import GENAI, Rates, prepare, worker
from benchmark.perplexity import COUNT, LENGTH, TEXT, negative_log_likelihood, perplexity
from igniter.toolbox.generate.generator import Generator
from igniter.toolbox.generate.model_folder import open_model
from igniter.toolbox.generate.samples import windows

NAME = "smollm2"
SYSTEMS = (
    *("ort:f32", "ort:f32-pruned", "igniter:f32-pruned", "openvino:f16", "llama.cpp:f16"),
    *("ort:int4-level4-pruned", "ort:int4-level0-pruned", "igniter:int4-level4-pruned", "igniter:int4-level0-pruned"),
    *("openvino:q4_0", "llama.cpp:q4_0"),
)
WORDS = 49152
SECONDS = 600
"""The longest turn; a system that takes longer has died or hangs."""


# -- perplexity -------------------------------------------------------------------------------------------------------


def quality(system: str, folder: Path, tokens: Sequence[int]) -> float:
    """Returns the perplexity of a system."""
    kind, _, form = system.partition(":")
    if kind not in GENAI:
        return _openvino(gguf_file(form, folder / NAME / "gguf"), tokens)
    form = form.removesuffix(PRUNED)
    return perplexity(
        open_model(compiled_model(NAME, form, folder) if kind == "igniter" else build(NAME, form, folder)),
        tokens,
        LENGTH,
        COUNT,
    )


def _openvino(file: Path, tokens: Sequence[int]) -> float:
    """The pipeline writes the model that it makes of a GGUF file, which OpenVINO runs for its logits."""
    import openvino
    import openvino_genai

    with tempfile.TemporaryDirectory(dir=file.parent) as name:
        place = Path(name)
        linked = place / file.name
        linked.hardlink_to(file)
        openvino_genai.LLMPipeline(str(linked), "CPU", enable_save_ov_model=True)
        request: Any = openvino.Core().compile_model(str(place / "openvino_model.xml"), "CPU").create_infer_request()
        total, number = 0.0, 0
        for window in windows(tokens, LENGTH, COUNT):
            ids = np.array([window], np.int64)
            request.reset_state()
            places, first = np.arange(ids.size)[None], np.zeros(1, np.int32)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": places, "beam_idx": first}
            logits = request.infer(feed)["logits"]
            total += negative_log_likelihood(logits[0], window)
            number += ids.size - 1
    return float(np.exp(total / number))


# -- speed ------------------------------------------------------------------------------------------------------------


@contextmanager
def started(system: str, folder: Path, threads: int, max_length: int) -> Iterator[Any]:
    """Runs a system in a process; yields the pipe to it."""
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=worker, args=(theirs, system, NAME, folder, threads, max_length), daemon=True)
    process.start()
    theirs.close()
    try:
        yield pipe
        pipe.send(None)
        process.join(60)
    finally:
        process.kill()


def turn(pipe: Any, system: str, prompt: Sequence[int], steps: int) -> Rates:
    """Lets a system run once."""
    try:
        pipe.send((prompt, steps))
        if not pipe.poll(SECONDS):
            raise RuntimeError(f"{system} did not answer within {SECONDS} seconds")
        return pipe.recv()
    except (EOFError, BrokenPipeError) as error:
        raise RuntimeError(f"{system} ended; its message is above") from error


def random_prompt(length: int, number: int) -> list[int]:
    """Returns one of the prompts of a length."""
    return [int(n) for n in np.random.default_rng((length, number)).integers(3, WORDS, length)]


def timed(
    systems: Sequence[str], folder: Path, threads: int, length: int, asked: argparse.Namespace
) -> list[list[Rates]]:
    """Returns the rates of each system in each round."""
    with ExitStack() as stack:
        pipes = [stack.enter_context(started(s, folder, threads, asked.max_length)) for s in systems]
        for pipe, system in zip(pipes, systems, strict=True):
            turn(pipe, system, random_prompt(length, asked.rounds), 2)
        # A prompt of its own for each round: OpenVINO's pipeline keeps the caches of prompts.
        rounds = [
            [
                turn(pipe, system, random_prompt(length, k), asked.steps)
                for pipe, system in zip(pipes, systems, strict=True)
            ]
            for k in range(asked.rounds)
        ]
    return [list(each) for each in zip(*rounds, strict=True)]


def cell(first: Sequence[Rates], rates: Sequence[Rates]) -> str:
    """Tokens per second of the first system, and ratios of another one."""
    if rates is first:
        return " / ".join(
            f"{statistics.median(v):.0f}" for v in zip(*((r.prompt, r.decode) for r in rates), strict=True)
        )
    ratios = [(r.prompt / f.prompt, r.decode / f.decode) for f, r in zip(first, rates, strict=True)]
    return " / ".join(f"{statistics.median(v):.2f}" for v in zip(*ratios, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.language_models.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompts", type=int, nargs="+", default=[128, 512], metavar="TOKENS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=2048)
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder of the models")
    parser.add_argument("--no-perplexity", action="store_true")
    asked = parser.parse_args()
    for system in asked.systems:
        prepare(system, NAME, asked.to)
    columns: dict[str, list[str]] = {"system": list(asked.systems)}
    if not asked.no_perplexity:
        tokens = Generator(build(NAME, "f32", asked.to)).encode(TEXT.read_text(encoding="utf-8"))
        known: dict[str, str] = {}
        for system in asked.systems:
            same = system.replace("llama.cpp", "openvino").removesuffix(PRUNED)
            known[same] = known.get(same) or f"{quality(system, asked.to, tokens):.2f}"
        columns["perplexity"] = [known[s.replace("llama.cpp", "openvino").removesuffix(PRUNED)] for s in asked.systems]
    for threads in asked.threads:
        for length in asked.prompts:
            found = timed(asked.systems, asked.to, threads, length, asked)
            columns[f"{threads} thread{'s' * (threads > 1)}, {length}"] = [cell(found[0], rates) for rates in found]
            print(f"{threads} threads, {length}: {columns[[*columns][-1]]}", file=sys.stderr, flush=True)
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in zip(*columns.values(), strict=True):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
