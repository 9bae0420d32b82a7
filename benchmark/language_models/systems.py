"""The systems that run a language model, each in a process of its own: `worker` serves one of them.

| system | runs |
| --- | --- |
| `ort:FORM` | the builder's model of that form in onnxruntime-genai |
| `igniter:FORM` | the same, compiled by Igniter with default options |
| `openvino:TYPE` | a GGUF file in OpenVINO GenAI, with its default options |
| `llama.cpp:TYPE` | the same file in llama.cpp (the package xllamacpp) |
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmark.language_models.build import build
from benchmark.language_models.genai import generate, link_folder
from benchmark.language_models.gguf_files import gguf_file
from benchmark.language_models.measure import compiled_model

GENAI = ("ort", "igniter")


@dataclass(frozen=True)
class Rates:
    """Tokens per second of a prompt and of the steps behind it; the tokens, where the system gives them."""

    prompt: float
    decode: float
    tokens: list[int]


Runner = Callable[[Sequence[int], int], Rates]
"""Computes a prompt and then some steps, greedily, whatever the token that ends a text is."""


def prepare(system: str, name: str, folder: Path) -> None:
    """Makes the files of a system that are missing: built, compiled and converted models."""
    kind, _, form = system.partition(":")
    if kind == "ort":
        build(name, form, folder)
    elif kind == "igniter":
        compiled_model(name, form, folder)
    else:
        gguf_file(form, folder / name / "gguf")


def runner(system: str, name: str, folder: Path, place: Path, threads: int, max_length: int) -> Runner:
    """Loads the model of a system; `threads` compute it. `place` is an empty folder for links."""
    kind, _, form = system.partition(":")
    if kind in GENAI:
        compiled = compiled_model(name, form, folder) if kind == "igniter" else None
        return _genai(link_folder(build(name, form, folder), place / kind, compiled, threads), max_length)
    file = gguf_file(form, folder / name / "gguf")
    return _openvino(file, threads) if kind == "openvino" else _llamacpp(file, threads, max_length)


def _genai(folder: Path, max_length: int) -> Runner:
    import onnxruntime_genai as og

    model: Any = og.Model(str(folder))

    def run(prompt: Sequence[int], steps: int) -> Rates:
        found = generate(model, prompt, steps, max_length)
        return Rates(len(prompt) / found.prompt_seconds, 1 / statistics.median(found.step_seconds), found.tokens)

    return run


def _openvino(file: Path, threads: int) -> Runner:
    import numpy as np
    import openvino
    import openvino_genai

    pipeline: Any = openvino_genai.LLMPipeline(str(file), "CPU", INFERENCE_NUM_THREADS=threads)

    def run(prompt: Sequence[int], steps: int) -> Rates:
        settings: Any = openvino_genai.GenerationConfig()
        settings.max_new_tokens, settings.ignore_eos, settings.do_sample = steps + 1, True, False
        ids = np.array([prompt], np.int64)
        given: Any = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(np.ones_like(ids)))
        made: Any = pipeline.generate(given, settings)
        # The pipeline's own clock, in us: the first is the prompt.
        first, *others = made.perf_metrics.raw_metrics.token_infer_durations
        return Rates(len(prompt) / first * 1e6, 1e6 / statistics.median(others), list(made.tokens[0]))

    return run


def _llamacpp(file: Path, threads: int, max_length: int) -> Runner:
    import xllamacpp

    settings: Any = xllamacpp.CommonParams()
    settings.model.path = str(file)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.n_ctx, settings.n_parallel, settings.n_gpu_layers, settings.verbosity = max_length, 1, 0, 0
    server: Any = xllamacpp.Server(settings)

    def run(prompt: Sequence[int], steps: int) -> Rates:
        asked = {"prompt": list(prompt), "n_predict": steps + 1, "temperature": 0, "ignore_eos": True}
        times: Any = server.handle_completions({**asked, "cache_prompt": False})["timings"]
        return Rates(times["prompt_per_second"], times["predicted_per_second"], [])

    return run


def worker(pipe: Connection, system: str, name: str, folder: Path, threads: int, max_length: int) -> None:
    """Answers each (prompt, steps) by `Rates`, until it is given `None`."""
    with tempfile.TemporaryDirectory(dir=folder / name) as place:
        run = runner(system, name, folder, Path(place), threads, max_length)
        while (asked := pipe.recv()) is not None:
            pipe.send(run(*asked))
