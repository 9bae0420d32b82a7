"""What became of a candidate, and when two outcomes are the same failure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

PASSED = "passed"
WRONG = "wrong"
REFUSAL = "refusal"
CRASH = "crash"
TIMEOUT = "timeout"
INVALID = "invalid"
COMMAND = "command"

FAILURES = (WRONG, CRASH, REFUSAL, TIMEOUT)
"""What can be asked for by name."""

PREFIX = 60
"""Characters of a message by which two refusals are told apart, its names and numbers left out."""

_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|[@%][\w.$-]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Outcome:
    """What became of one candidate."""

    kind: str
    """passed | wrong | refusal | crash | timeout | invalid (no valid IR or model), or command."""
    message: str = ""
    where: str = ""
    """The pass that failed, or that ran when the process ended."""
    place: int = -1
    """Where that pass stands in the pipeline."""
    changed: bool = False
    """Of `wrong`: whether a result changed, and not something that the interpreter or ONNX Runtime found."""
    rewrites: int = 0
    """How many rewrites the passes made."""
    last_rewrite: str = ""
    text: str = ""
    """What was asked for, where that is IR."""

    @property
    def failure(self) -> tuple[str, str, str]:
        """Equal for outcomes that are the same failure: its kind, its pass, and how its message begins."""
        message = "" if self.kind in (TIMEOUT, COMMAND) or self.changed else masked(self.message)[:PREFIX]
        return self.kind, self.where, message

    def __str__(self) -> str:
        where = f" in the pass '{self.where}'" if self.where and f"'{self.where}'" not in self.message else ""
        lines = self.message.strip().splitlines()
        return f"{self.kind}{where}{f': {lines[0]}' if lines else ''}"

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {k: v for k, v in asdict(self).items() if k != "text"}


def masked(message: str) -> str:
    """A message without the names and numbers in it, which differ from candidate to candidate."""
    return _NAMES.sub("_", " ".join(message.split()))


@dataclass(frozen=True)
class Request:
    """What a process of its own is to do with a candidate."""

    path: str
    passes: tuple[str, ...] | None = None
    """The pipeline; `None`: compile the model and verify it."""
    task: str = "judge"
    """judge | validate (load it into ONNX Runtime) | types (infer them, give the IR) | lower (give the IR after)."""
    check_results: bool = False
    """Whether the IR is run before and after every pass."""
    validate: bool = False
    """Whether a model that ONNX Runtime does not load counts as invalid."""
    seed: int = 0
    target: str = ""
    strict: bool = False
    stop_after: int | None = None
    timeout: float = 60.0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Request:
        """The inverse of `to_dict`."""
        passes = data.pop("passes")
        return Request(**data, passes=None if passes is None else tuple(passes))
