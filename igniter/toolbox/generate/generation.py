"""The loop of generation: tokens of one or several sequences, until each ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from igniter.toolbox.generate.caches import Past
from igniter.toolbox.generate.sampling import Sampling
from igniter.toolbox.generate.text_stream import TextStream

if TYPE_CHECKING:
    import numpy as np

    from igniter.toolbox.generate.speculation import Acceptance

    Array = np.ndarray[Any, Any]

Reason = Literal["eos", "stop", "length", "context"]
"""Why a text ended: a token for it, a stop word, the number of tokens asked for, or the most that the model takes."""


@dataclass(frozen=True)
class Times:
    """The seconds of a generation, and the tokens that they were for."""

    prompt_tokens: int
    """Of all sequences."""
    reused_tokens: int
    """Of these, those that the cache had already."""
    new_tokens: int
    prefill: float
    """Seconds for the prompts."""
    first: float
    """Seconds to the first token."""
    decode: float
    """Seconds from the first token to the last."""

    @property
    def prefill_rate(self) -> float:
        """Tokens a second of the prompts that were computed."""
        return (self.prompt_tokens - self.reused_tokens) / self.prefill if self.prefill else 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first one of each sequence."""
        return self._later / self.decode if self.decode else 0.0

    _later: int = 0

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        del found["_later"]
        return {**found, "prefill_tokens_per_second": self.prefill_rate, "decode_tokens_per_second": self.decode_rate}


@dataclass(frozen=True)
class Generation:
    """What was generated for a prompt."""

    prompt: list[int] = field(repr=False)
    tokens: list[int]
    """The new tokens; the one that ends the text is not among them."""
    text: str
    """Their text, up to a stop word; "" without a tokenizer."""
    finish_reason: Reason
    stop: str
    """The stop word that was found."""
    times: Times = field(repr=False)
    """Of all sequences of the call together."""
    acceptance: Acceptance | None = field(default=None, repr=False)
    """Of the tokens of a draft model."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON of `igniter generate --json`."""
        found: dict[str, Any] = {
            "prompt_tokens": len(self.prompt),
            "tokens": self.tokens,
            "text": self.text,
            "finish_reason": self.finish_reason,
        }
        if self.stop:
            found["stop"] = self.stop
        return found


@dataclass(frozen=True)
class Limits:
    """What ends a text."""

    new_tokens: int
    eos: frozenset[int] = frozenset()
    stop: tuple[str, ...] = ()
    context: int | None = None


class GeneratedSequence:
    """One sequence under generation."""

    def __init__(self, prompt: Sequence[int], limits: Limits, tokenizer: Any):
        self.prompt, self.limits = list(prompt), limits
        self.tokens: list[int] = []
        self.stream = TextStream(tokenizer, limits.stop, self.prompt) if tokenizer is not None else None
        self.reason: Reason | None = None
        if limits.new_tokens <= 0:
            self.reason = "length"

    @property
    def history(self) -> list[int]:
        """All tokens: of the prompt, and new ones."""
        return self.prompt + self.tokens

    def add(self, token: int) -> str:
        """Adds a token; returns the text that it completes."""
        if token in self.limits.eos:
            return self._end("eos")
        self.tokens.append(token)
        text = self.stream.add(token) if self.stream is not None else ""
        if self.stream is not None and self.stream.stopped:
            self.reason = "stop"
        elif len(self.tokens) >= self.limits.new_tokens:
            text += self._end("length")
        elif self.limits.context is not None and len(self.prompt) + len(self.tokens) > self.limits.context:
            text += self._end("context")
        return text

    def piece(self, row: int, token: int) -> Piece:
        """Adds a token; returns what it added."""
        text = self.add(token)
        return Piece(row, token, text, self.reason == "eos")

    def _end(self, reason: Reason) -> str:
        self.reason = reason
        if self.stream is None:
            return ""
        text = self.stream.end()
        if self.stream.stopped:
            self.reason = "stop"
        return text

    def result(self, times: Times, acceptance: Acceptance | None = None) -> Generation:
        assert self.reason is not None
        text, stop = (self.stream.text, self.stream.stopped) if self.stream is not None else ("", "")
        return Generation(self.prompt, self.tokens, text, self.reason, stop, times, acceptance)


@dataclass(frozen=True)
class Piece:
    """What a step added to a sequence."""

    row: int
    token: int
    text: str
    ends: bool = False
    """True for the token that ends the text and is no part of it."""


class Clock:
    """Notes the times of a generation."""

    def __init__(self, now: Callable[[], float] = time.perf_counter):
        self._now = now
        self._start = self._prefilled = self._first = self._last = now()
        self.reused = 0

    def prefilled(self) -> None:
        self._prefilled = self._first = self._last = self._now()

    def token(self, first: bool) -> None:
        self._last = self._now()
        if first:
            self._first = self._last

    def times(self, sequences: Sequence[GeneratedSequence]) -> Times:
        new = sum(len(s.tokens) for s in sequences)
        later = new - sum(bool(s.tokens) for s in sequences)
        prompts = sum(len(s.prompt) for s in sequences)
        seconds = (self._prefilled - self._start, self._first - self._start, self._last - self._first)
        return Times(prompts, self.reused, new, *seconds, later)


def decode(
    past: Past, sequences: Sequence[GeneratedSequence], logits: Array, sampling: Sampling, clock: Clock
) -> Iterator[Piece]:
    """Yields the new tokens of sequences whose prompts are in `past`; `logits` are the last ones, [batch, vocabulary].

    Each step adds a token to every sequence that has not ended. The last token of a sequence is not in `past`.
    """
    randoms = sampling.generators(len(sequences))
    first = True
    while True:
        last: list[int] = []
        for row, sequence in enumerate(sequences):
            token = sequence.tokens[-1] if sequence.tokens else sequence.prompt[-1]
            if sequence.reason is None:
                token = sampling.choose(logits[row], sequence.history, randoms[row])
                clock.token(first)
                yield sequence.piece(row, token)
            last.append(token)
        first = False
        active = [sequence.reason is None for sequence in sequences]
        if not any(active):
            return
        logits = past.step(last, None if all(active) else active)


__all__ = ["Clock", "GeneratedSequence", "Generation", "Limits", "Piece", "Reason", "Times", "decode"]
