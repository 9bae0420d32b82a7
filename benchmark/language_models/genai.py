"""Folders for onnxruntime-genai: a built model, and the same with the model that Igniter compiled."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIG = "genai_config.json"


def link_folder(built: Path, target: Path, compiled: Path | None = None, threads: int = 1) -> Path:
    """Returns a folder for onnxruntime-genai with hard links to the files of a built model, or to its compiled form.

    `threads` are ONNX Runtime's threads within an op.
    """
    target.mkdir(parents=True)
    for file in built.iterdir():
        if file.name != CONFIG and (compiled is None or not file.name.startswith("model.onnx")):
            os.link(file, target / file.name)
    config = json.loads((built / CONFIG).read_text())
    options = config["model"]["decoder"]["session_options"]
    options["intra_op_num_threads"] = threads
    if compiled is not None:
        for file in compiled.iterdir():
            os.link(file, target / file.name)
        (library,) = compiled.glob("*igniter_*.so")
        options["custom_ops_library"] = library.name
    (target / CONFIG).write_text(json.dumps(config, indent=2))
    return target


@dataclass
class Run:
    """One greedy generation: its tokens, and seconds of the prompt and of each step."""

    tokens: list[int]
    prompt_seconds: float
    step_seconds: list[float] = field(default_factory=list[float])


def generate(model: Any, prompt: Sequence[int], steps: int, max_length: int) -> Run:
    """Generates greedily with a shared buffer of `max_length` keys."""
    import onnxruntime_genai as og

    parameters: Any = og.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=max_length)
    generator: Any = og.Generator(model, parameters)
    start = time.perf_counter()
    generator.append_tokens(list(prompt))
    run = Run([], time.perf_counter() - start)
    for _ in range(steps):
        start = time.perf_counter()
        generator.generate_next_token()
        run.step_seconds.append(time.perf_counter() - start)
        run.tokens.append(int(generator.get_next_tokens()[0]))
    return run


def last_logits(model: Any, tokens: Sequence[int], max_length: int) -> Any:
    """Returns the logits after some tokens, as f32 [vocabulary]."""
    import numpy as np
    import onnxruntime_genai as og

    parameters: Any = og.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=max_length)
    generator: Any = og.Generator(model, parameters)
    generator.append_tokens(list(tokens))
    logits: Any = np.asarray(generator.get_logits())
    return logits.reshape(-1, logits.shape[-1])[-1].astype(np.float32)
