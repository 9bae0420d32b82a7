"""The inputs and outputs of a decoder: tokens, mask, positions, logits, and each past with its present.

Names come from `genai_config.json` if there is one, otherwise from the usual ones:

    input_ids, attention_mask, position_ids, use_cache_branch, num_logits_to_keep
    past_key_values.N.key, past_key_values.N.value     ->  present.N.key, present.N.value
    past_N, past_key_N, past.N.key                     ->  present_N, present_key_N, present.N.key
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from igniter.errors import IgniterError

KINDS: dict[str, tuple[Any, int]] = {
    "tensor(float)": (np.float32, 1),
    "tensor(float16)": (np.float16, 10),
    "tensor(bfloat16)": (np.uint16, 16),
    "tensor(double)": (np.float64, 11),
    "tensor(int8)": (np.int8, 3),
    "tensor(uint8)": (np.uint8, 2),
    "tensor(int32)": (np.int32, 6),
    "tensor(int64)": (np.int64, 7),
    "tensor(bool)": (np.bool_, 9),
}
"""The types of tensors that caches and inputs have: the NumPy type of the storage, and ONNX's number."""

FED = {
    "input_ids": ("input_ids", "inputs_ids", "tokens"),
    "attention_mask": ("attention_mask",),
    "position_ids": ("position_ids",),
    "use_cache_branch": ("use_cache_branch",),
    "num_logits_to_keep": ("num_logits_to_keep", "logits_to_keep"),
}
"""The inputs besides caches, by role, with their usual names."""


@dataclass(frozen=True)
class CachePair:
    """One past and its present."""

    past: str
    present: str
    kind: str
    """The type, as `tensor(float)`."""
    dims: tuple[int | None, ...]
    """The sizes; `None` for the batch and for the rows."""
    batch_axis: int
    row_axis: int

    def shape(self, batch: int, rows: int) -> tuple[int, ...]:
        """Returns the shape of a past of `rows` rows."""
        sizes = dict(enumerate(self.dims)) | {self.batch_axis: batch, self.row_axis: rows}
        return tuple(int(sizes[k] or 0) for k in range(len(self.dims)))


@dataclass(frozen=True)
class Named:
    """An input that is not a cache."""

    name: str
    kind: str

    @property
    def dtype(self) -> Any:
        return KINDS[self.kind][0]


@dataclass(frozen=True)
class DecoderGraph:
    """What a decoder reads and writes."""

    inputs: Mapping[str, Named]
    """By role, as in `FED`."""
    logits: str
    caches: tuple[CachePair, ...]
    vocabulary: int | None
    last_only: bool
    """True if the graph says that it computes the logits of the last position alone."""
    shared: bool | None = None
    """True if a past and its present may be one buffer; `None` if a trial has to tell."""


def decoder_graph(session: Any, config: Mapping[str, Any], where: str) -> DecoderGraph:
    """Returns the roles of a session's inputs and outputs; raises `IgniterError` if they are not a decoder's."""
    decoder: Mapping[str, Any] = config.get("model", {}).get("decoder", {})
    outputs = {o.name: o for o in session.get_outputs()}
    given_inputs: Mapping[str, str] = decoder.get("inputs", {})
    given_outputs: Mapping[str, str] = decoder.get("outputs", {})
    logits = given_outputs.get("logits", "logits")
    if logits not in outputs:
        raise IgniterError(f"{where} has no output '{logits}': its outputs are {_some(outputs)}; it is no decoder")
    inputs: dict[str, Named] = {}
    pasts: list[Any] = []
    unknown: list[str] = []
    for value in cast("list[Any]", session.get_inputs()):
        role = _role(str(value.name), given_inputs)
        if role is not None:
            inputs[role] = Named(str(value.name), str(value.type))
        elif re.match(r"(past|cache)", value.name) or value.name in _patterned(given_inputs):
            pasts.append(value)
        else:
            unknown.append(value.name)
    if "input_ids" not in inputs or unknown:
        why = f"does not know its input {_some(unknown)}" if unknown else "finds no input 'input_ids'"
        raise IgniterError(
            f"{where}: generation {why}; it feeds {', '.join(FED)}, and caches named past_key_values.N.key and alike"
        )
    head = decoder.get("head_size")
    caches = tuple(_pair(value, outputs, given_inputs, given_outputs, head, where) for value in pasts)
    shape: Sequence[Any] = outputs[logits].shape
    share = config.get("search", {}).get("past_present_share_buffer")
    return DecoderGraph(
        inputs,
        logits,
        caches,
        shape[-1] if shape and isinstance(shape[-1], int) else None,
        len(shape) == 3 and shape[1] == 1,
        bool(share) if caches and share is not None else None if caches else False,
    )


def _role(name: str, given: Mapping[str, str]) -> str | None:
    return next((role for role, usual in FED.items() if name in (given.get(role), *usual)), None)


def _patterned(given: Mapping[str, str]) -> set[str]:
    """Returns the names of caches that a configuration gives by patterns, `past.%d.key`."""
    patterns = [p for key, p in given.items() if key.startswith("past") and "%d" in str(p)]
    return {p.replace("%d", str(k)) for p in patterns for k in range(512)}


def _pair(
    value: Any,
    outputs: Mapping[str, Any],
    given_inputs: Mapping[str, str],
    given_outputs: Mapping[str, str],
    head: int | None,
    where: str,
) -> CachePair:
    """Returns the pair of a past."""
    present = next((n for n in _presents(value.name, given_inputs, given_outputs) if n in outputs), None)
    if present is None:
        raise IgniterError(f"{where}: no output is the present of the input '{value.name}': name it present.N.key")
    rank = len(value.shape)
    if rank not in (3, 4, 5) or value.type not in KINDS:
        raise IgniterError(
            f"{where}: the cache '{value.name}' is {value.type} of rank {rank}, which has no meaning here"
        )
    batch_axis, row_axis = (1 if rank == 5 else 0), rank - 2
    sizes: list[int | None] = []
    for axis, dim in enumerate(value.shape):
        if axis in (batch_axis, row_axis):
            sizes.append(None)
            continue
        output = outputs[present].shape
        size = dim if isinstance(dim, int) else output[axis] if len(output) == rank else None
        sizes.append(size if isinstance(size, int) else head if axis == rank - 1 else None)
    return CachePair(value.name, present, value.type, tuple(sizes), batch_axis, row_axis)


def _presents(past: str, given_inputs: Mapping[str, str], given_outputs: Mapping[str, str]) -> Iterable[str]:
    """Yields the names that the present of a past may have."""
    for key, pattern in given_inputs.items():
        other = given_outputs.get(key.replace("past", "present"))
        if key.startswith("past") and other and "%d" in pattern:
            found = re.fullmatch(re.escape(pattern).replace("%d", r"(\d+)"), past)
            if found:
                yield other.replace("%d", found[1])
    yield past.replace("past_key_values", "present")
    yield past.replace("past", "present", 1)


def unknown_sizes(graph: DecoderGraph) -> list[str]:
    """Returns the caches with a size that the graph does not say."""
    return [
        pair.past
        for pair in graph.caches
        if any(size is None for axis, size in enumerate(pair.dims) if axis not in (pair.batch_axis, pair.row_axis))
    ]


def with_sizes(graph: DecoderGraph, sizes: Mapping[str, Sequence[int | None]]) -> DecoderGraph:
    """Returns the graph with the missing sizes of caches from `sizes`, by the name of the past."""

    def filled(pair: CachePair) -> CachePair:
        found = sizes.get(pair.past, pair.dims)
        inner = [a if a is not None else b for a, b in zip(pair.dims, found, strict=True)]
        for axis in (pair.batch_axis, pair.row_axis):
            inner[axis] = None
        return replace(pair, dims=tuple(inner))

    return replace(graph, caches=tuple(filled(pair) for pair in graph.caches))


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


__all__ = ["FED", "KINDS", "CachePair", "DecoderGraph", "Named", "decoder_graph", "unknown_sizes", "with_sizes"]
