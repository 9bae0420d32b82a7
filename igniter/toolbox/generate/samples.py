"""Samples of a language model's inputs, from text: windows of tokens with empty caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.toolbox.generate.decoder_graph import KINDS, DecoderGraph
from igniter.toolbox.generate.model_folder import LanguageModel, open_model
from igniter.toolbox.generate.tokenizer import FileTokenizer, find_tokenizer

LENGTH, COUNT = 512, 32


def feed(graph: DecoderGraph, tokens: Sequence[int]) -> dict[str, Any]:
    """Returns the inputs of a run of tokens, by name, with empty caches."""
    ids = np.array([tokens])
    values = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.arange(ids.size)[None],
        "use_cache_branch": np.array([False]),
        "num_logits_to_keep": np.array(0),
    }
    found: dict[str, Any] = {n.name: values[role].astype(n.dtype) for role, n in graph.inputs.items()}
    return found | {pair.past: np.zeros(pair.shape(1, 0), KINDS[pair.kind][0]) for pair in graph.caches}


def windows(tokens: Sequence[int], length: int, count: int) -> list[Sequence[int]]:
    """Returns `count` windows of a text, spread over it, that do not overlap; fewer if it has not as many."""
    whole = len(tokens) // length
    if not whole:
        return [tokens]
    places = sorted({k * whole // min(count, whole) for k in range(min(count, whole))})
    return [tokens[k * length : (k + 1) * length] for k in places]


def text_samples(
    model: str | Path | LanguageModel,
    text: str | Path,
    tokenizer: str | Path | None = None,
    *,
    length: int = LENGTH,
    count: int = COUNT,
) -> Callable[[], Iterator[Mapping[str, Any]]]:
    """Returns samples for `Module.compress` and `Module.quantize`: windows of the text in a file, as a model's inputs.
    The tokenizer is the one beside the model, or the given one."""
    opened = model if isinstance(model, LanguageModel) else open_model(model)
    file = find_tokenizer(opened.folders, tokenizer)
    if file is None:
        raise IgniterError(f"no tokenizer.json is beside {opened.path}: text samples need one")
    tokens = FileTokenizer(file).encode(Path(text).read_text(encoding="utf-8"))
    chosen = windows(tokens, length, count)
    graph = opened.graph
    return lambda: (feed(graph, each) for each in chosen)


__all__ = ["feed", "text_samples", "windows"]
