"""The past of a generation, and runs that add to it, in three forms.

`SharedPast`: a past and its present are one buffer, into which the model writes new rows. The buffers are bound once,
as inputs and as outputs, and nothing is copied. A run of several tokens is of one sequence, in its rows of the buffer,
so prompts of different lengths need no padding; a step of all sequences has a mask with the length of each.

`GrowingPast`: a run returns the whole present, which is bound as the next past as it is. The model copies the past into
it. Prompts of different lengths are padded on the left.

`Recompute`: the model has no caches; each run has all tokens.

All of them hold tokens on the CPU. `lengths` has the number of rows of each sequence.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from igniter.errors import IgniterError
from igniter.runtime.session import onnxruntime_package
from igniter.toolbox.generate.decoder_graph import KINDS, DecoderGraph

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

LEAST_ROWS = 64
"""The rows of the smallest buffer; larger ones are powers of two, up to the limit of the model."""


class Past(Protocol):
    """What a model has seen."""

    batch: int
    lengths: list[int]

    def prefill(self, rows: Sequence[Sequence[int]], chunk: int = 0) -> Array:
        """Adds tokens to each sequence, at most `chunk` in a run; returns the last logits, [batch, vocabulary]."""
        ...

    def step(self, tokens: Sequence[int], active: Sequence[bool] | None = None) -> Array:
        """Adds a token to each active sequence; returns the logits, [batch, vocabulary]."""
        ...

    def every(self, tokens: Sequence[int]) -> Array:
        """Adds tokens to the only sequence; returns the logits of each, [tokens, vocabulary]."""
        ...

    def rewind(self, length: int) -> None:
        """Forgets the rows of the only sequence from `length` on."""
        ...

    def reserve(self, length: int) -> None:
        """Makes room for sequences of `length` tokens."""
        ...


def tensor(value: Array, kind: str) -> Any:
    """Returns an OrtValue on the memory of an array, without a copy."""
    ort = onnxruntime_package()
    if kind == "tensor(bfloat16)":
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value, KINDS[kind][1])
    return ort.OrtValue.ortvalue_from_numpy(value)


def storage(value: Any) -> Array:
    """Returns an array on the memory of an OrtValue, valid as long as that is; bf16 as u16, for which NumPy has no
    type."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = value.shape()
    memory: Any = (ctypes.c_uint16 * math.prod(shape)).from_address(value.data_ptr())
    return np.frombuffer(memory, np.uint16).reshape(shape)


def numbers(value: Any) -> Array:
    """Returns the values of an OrtValue as f32."""
    found = storage(value)
    if found.dtype == np.uint16:
        found = (found.astype(np.uint32) << 16).view(np.float32)
    return found.astype(np.float32, copy=False)


class _Runs:
    """Runs of a session with IO binding, and the inputs besides caches."""

    def __init__(self, session: Any, graph: DecoderGraph, batch: int):
        self.session, self.graph, self.batch = session, graph, batch
        self.lengths = [0] * batch

    def _bind(self, binding: Any, tokens: Array, mask: Array, positions: Array, *, past: bool, every: bool) -> None:
        """Binds the inputs besides caches."""
        values = {
            "input_ids": tokens,
            "attention_mask": mask,
            "position_ids": positions,
            "use_cache_branch": np.array([past]),
            "num_logits_to_keep": np.array(0 if every else 1),
        }
        for role, named in self.graph.inputs.items():
            value = np.ascontiguousarray(values[role], named.dtype)
            binding.bind_ortvalue_input(named.name, tensor(value, named.kind))

    def _go(self, binding: Any, options: Any = None) -> None:
        try:
            self.session.run_with_iobinding(binding, options)
        except Exception as error:  # ONNX Runtime's errors have no common base
            raise IgniterError(f"ONNX Runtime does not run the model: {error}") from error

    def _logits(self, value: Any, count: int, every: bool) -> Array:
        found = numbers(value)
        if every and found.shape[1] != count:
            raise IgniterError(
                "the model computes the logits of its last position alone, and speculative decoding needs all: "
                "build it without prune_lm_head"
            )
        return found if every else found[:, -1]


class SharedPast(_Runs):
    """Past and present in one buffer."""

    def __init__(self, session: Any, graph: DecoderGraph, batch: int, most: int | None = None):
        super().__init__(session, graph, batch)
        self.most = most
        self.capacity = 0
        self.buffers: dict[str, Array] = {}
        self.moves = 0
        """How often buffers were too small, and their rows moved to larger ones."""
        self._bindings: dict[int | None, Any] = {}
        self._step_logits: Any = None

    def reserve(self, length: int) -> None:
        if length <= self.capacity:
            return
        if self.most is not None and length > self.most:
            raise IgniterError(f"the sequence has {length} tokens, and the model takes {self.most} at most")
        rows = max(LEAST_ROWS, 1 << (length - 1).bit_length())
        self.capacity = rows if self.most is None else min(rows, self.most)
        used = max(self.lengths)
        for pair in self.graph.caches:
            # Zeros of fresh memory take no room until they are written.
            fresh = np.zeros(pair.shape(self.batch, self.capacity), KINDS[pair.kind][0])
            if used:
                rows_of = (slice(None),) * pair.row_axis + (slice(0, used),)
                fresh[rows_of] = self.buffers[pair.past][rows_of]
            self.buffers[pair.past] = fresh
        self.moves += bool(used)
        self._bindings.clear()

    def _binding(self, row: int | None) -> Any:
        """Returns the binding of a sequence, or of all, with the caches in it."""
        if row not in self._bindings:
            binding = self.session.io_binding()
            for pair in self.graph.caches:
                buffer = self.buffers[pair.past]
                if row is not None and self.batch > 1:
                    if pair.batch_axis:
                        raise IgniterError(f"the cache '{pair.past}' has no batch in front: generate one at a time")
                    buffer = buffer[row : row + 1]
                value = tensor(buffer, pair.kind)
                binding.bind_ortvalue_input(pair.past, value)
                binding.bind_ortvalue_output(pair.present, value)
            self._bindings[row] = binding
        return self._bindings[row]

    def _run_one(self, row: int, tokens: Sequence[int], every: bool) -> Array:
        start, count = self.lengths[row], len(tokens)
        self.reserve(start + count)
        binding = self._binding(row)
        mask, positions = np.ones((1, start + count)), np.arange(start, start + count)[None]
        self._bind(binding, np.array([tokens]), mask, positions, past=start > 0, every=every)
        binding.bind_output(self.graph.logits)
        self._go(binding)
        self.lengths[row] += count
        return self._logits(binding.get_outputs()[len(self.graph.caches)], count, every)

    def prefill(self, rows: Sequence[Sequence[int]], chunk: int = 0) -> Array:
        self.reserve(max(length + len(tokens) for length, tokens in zip(self.lengths, rows, strict=True)))
        found: list[Array] = []
        for row, tokens in enumerate(rows):
            last: Array | None = None
            for part in pieces(tokens, chunk):
                last = self._run_one(row, part, False)
            assert last is not None
            found.append(last[0])
        return np.stack(found)

    def every(self, tokens: Sequence[int]) -> Array:
        return self._run_one(0, tokens, True)[0]

    def step(self, tokens: Sequence[int], active: Sequence[bool] | None = None) -> Array:
        if active is not None:
            # A sequence that has ended writes its last row again, and its result is not read.
            self.lengths = [n if on else n - 1 for n, on in zip(self.lengths, active, strict=True)]
        lengths = np.array(self.lengths)
        total = int(lengths.max()) + 1
        self.reserve(total)
        binding = self._binding(None)
        mask = np.arange(total)[None, :] <= lengths[:, None]
        self._bind(binding, np.array(tokens)[:, None], mask, lengths[:, None], past=True, every=False)
        if self._step_logits is None:
            binding.bind_output(self.graph.logits)
        else:
            binding.bind_ortvalue_output(self.graph.logits, self._step_logits)
        self._go(binding)
        self.lengths = [n + 1 for n in self.lengths]
        if self._step_logits is None:
            # Of one shape from here on: bound as it is, without a list of all outputs after each run.
            self._step_logits = binding.get_outputs()[len(self.graph.caches)]
        return self._logits(self._step_logits, 1, False).copy()

    def rewind(self, length: int) -> None:
        self.lengths[0] = length


class GrowingPast(_Runs):
    """The present of a run is the past of the next."""

    def __init__(self, session: Any, graph: DecoderGraph, batch: int, most: int | None = None):
        super().__init__(session, graph, batch)
        self.most = most
        self.values: dict[str, Any] = {}
        self._mask: Array = np.zeros((batch, 0), np.int64)
        self._clear()

    def _clear(self) -> None:
        for pair in self.graph.caches:
            empty = np.zeros(pair.shape(self.batch, 0), KINDS[pair.kind][0])
            self.values[pair.past] = tensor(empty, pair.kind)

    def reserve(self, length: int) -> None:
        if self.most is not None and length > self.most:
            raise IgniterError(f"the sequence has {length} tokens, and the model takes {self.most} at most")

    def run(self, tokens: Array, seen: Array, every: bool, options: Any = None) -> Array:
        """Runs tokens, [batch, count]; `seen` is 0 for padding. Returns logits."""
        start = self._mask.shape[1]
        mask = np.concatenate([self._mask, seen], axis=1)
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, start:]
        binding = self.session.io_binding()
        for pair in self.graph.caches:
            binding.bind_ortvalue_input(pair.past, self.values[pair.past])
            binding.bind_output(pair.present)
        self._bind(binding, tokens, mask, positions, past=start > 0, every=every)
        binding.bind_output(self.graph.logits)
        self._go(binding, options)
        outputs = binding.get_outputs()
        for pair, value in zip(self.graph.caches, outputs, strict=False):
            self.values[pair.past] = value
        self._mask = mask
        self.lengths = [int(n) for n in mask.sum(axis=1)]
        return self._logits(outputs[-1], tokens.shape[1], every)

    def prefill(self, rows: Sequence[Sequence[int]], chunk: int = 0) -> Array:
        tokens, seen = left_padded(rows)
        self.reserve(self._mask.shape[1] + tokens.shape[1])
        last: Array | None = None
        step = chunk or tokens.shape[1]
        for start in range(0, tokens.shape[1], step):
            part = slice(start, start + step)
            last = self.run(tokens[:, part], seen[:, part], False)
        assert last is not None
        return last

    def every(self, tokens: Sequence[int]) -> Array:
        self.reserve(self._mask.shape[1] + len(tokens))
        return self.run(np.array([tokens]), np.ones((1, len(tokens)), np.int64), True)[0]

    def step(self, tokens: Sequence[int], active: Sequence[bool] | None = None) -> Array:
        self.reserve(self._mask.shape[1] + 1)
        seen = np.ones(self.batch, np.int64) if active is None else np.array(active, np.int64)
        return self.run(np.array(tokens)[:, None], seen[:, None], False)

    def rewind(self, length: int) -> None:
        if length == self.lengths[0]:
            return
        self._mask, self.lengths = self._mask[:, :length], [length]
        for pair in self.graph.caches:
            rows = (slice(None),) * pair.row_axis + (slice(0, length),)
            kept = storage(self.values[pair.past])[rows].copy()
            self.values[pair.past] = tensor(kept, pair.kind)


class Recompute(_Runs):
    """No caches: all tokens in each run."""

    def __init__(self, session: Any, graph: DecoderGraph, batch: int, most: int | None = None):
        super().__init__(session, graph, batch)
        self.most = most
        self.tokens: list[list[int]] = [[] for _ in range(batch)]

    def reserve(self, length: int) -> None:
        if self.most is not None and length > self.most:
            raise IgniterError(f"the sequence has {length} tokens, and the model takes {self.most} at most")

    def _run(self, every: bool) -> Array:
        self.lengths = [len(row) for row in self.tokens]
        self.reserve(max(self.lengths))
        tokens, seen = left_padded(self.tokens)
        binding = self.session.io_binding()
        positions = np.maximum(np.cumsum(seen, axis=1) - 1, 0)
        self._bind(binding, tokens, seen, positions, past=False, every=every)
        binding.bind_output(self.graph.logits)
        self._go(binding)
        return self._logits(binding.get_outputs()[-1], tokens.shape[1], every)

    def prefill(self, rows: Sequence[Sequence[int]], chunk: int = 0) -> Array:
        for own, new in zip(self.tokens, rows, strict=True):
            own.extend(new)
        return self._run(False)

    def every(self, tokens: Sequence[int]) -> Array:
        self.tokens[0].extend(tokens)
        return self._run(True)[0, -len(tokens) :]

    def step(self, tokens: Sequence[int], active: Sequence[bool] | None = None) -> Array:
        for row, token in enumerate(tokens):
            if active is None or active[row]:
                self.tokens[row].append(token)
        return self._run(False)

    def rewind(self, length: int) -> None:
        del self.tokens[0][length:]
        self.lengths = [length]


def pieces(tokens: Sequence[int], chunk: int) -> list[Sequence[int]]:
    """Returns the tokens in parts of at most `chunk`; 0 for a single one."""
    step = chunk or len(tokens)
    return [tokens[start : start + step] for start in range(0, len(tokens), step)]


def left_padded(rows: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Returns sequences as one array, padded on the left, and the mask of what is not padding."""
    width = max(len(row) for row in rows)
    tokens, seen = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    for index, row in enumerate(rows):
        if row:
            tokens[index, -len(row) :], seen[index, -len(row) :] = row, 1
    return tokens, seen


def can_share(session: Any, graph: DecoderGraph) -> bool:
    """True if a present is as long as its past where the past has room: found by a run of one token.

    GroupQueryAttention has such caches. A graph that concatenates returns a longer present, or refuses the mask.
    """
    ort = onnxruntime_package()
    rows = 4
    trial = GrowingPast(session, graph, 1)
    for pair in graph.caches:
        trial.values[pair.past] = tensor(np.zeros(pair.shape(1, rows), KINDS[pair.kind][0]), pair.kind)
    options = ort.RunOptions()
    options.log_severity_level = 4
    try:
        trial.run(np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64), False, options)
    except IgniterError:  # a graph that concatenates may refuse the mask
        return False
    return all(trial.values[pair.past].shape()[pair.row_axis] == rows for pair in graph.caches)


__all__ = ["GrowingPast", "Past", "Recompute", "SharedPast", "can_share", "left_padded", "numbers", "pieces", "tensor"]
