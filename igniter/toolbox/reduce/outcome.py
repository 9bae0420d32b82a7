"""The outcome of a candidate, and the equivalence of failures."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

PASSED = "passed"
WRONG = "wrong"
REFUTED = "refuted"
REFUSAL = "refusal"
CRASH = "crash"
TIMEOUT = "timeout"
INVALID = "invalid"
COMMAND = "command"

FAILURES = (WRONG, REFUTED, CRASH, REFUSAL, TIMEOUT)
"""The failures with a name."""

PREFIX = 60
"""The length of the key prefix of a refusal's message, without names and numbers."""

_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|[@%][\w.$-]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one candidate."""

    kind: str
    """passed | wrong | refuted | refusal | crash | timeout | invalid (no valid IR or model), or command."""
    message: str = ""
    where: str = ""
    """The failed pass, or the running pass at the end of the process."""
    place: int = -1
    """The index of this pass in the pipeline."""
    changed: bool = False
    """True if a result changed or a proof failed, false if the interpreter or ONNX Runtime found an error."""
    manner: str = ""
    """A further part of the key of equal failures."""
    rewrites: int = 0
    """The number of rewrites made by the passes."""
    last_rewrite: str = ""
    text: str = ""
    """The requested IR, if any."""

    @property
    def failure(self) -> tuple[str, str, str]:
        """The key of equal failures: the kind, the pass and the manner, and the prefix of the message."""
        message = "" if self.kind in (TIMEOUT, COMMAND) or self.changed else masked(self.message)[:PREFIX]
        return self.kind, self.where + self.manner, message

    def __str__(self) -> str:
        where = f" in the pass '{self.where}'" if self.where and f"'{self.where}'" not in self.message else ""
        lines = self.message.strip().splitlines()
        return f"{self.kind}{where}{f': {lines[0]}' if lines else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {k: v for k, v in asdict(self).items() if k != "text"}


def masked(message: str) -> str:
    """Returns a message without its names and numbers; they differ between candidates."""
    return _NAMES.sub("_", " ".join(message.split()))


@dataclass(frozen=True)
class CheckRequest:
    """A request to a process of its own about a candidate."""

    path: str
    passes: tuple[str, ...] | None = None
    """The pipeline; `None`: compile the model and verify it."""
    task: str = "judge"
    """judge | validate (load it into ONNX Runtime) | types (infer them, give the IR) | lower (give the IR after)."""
    check_results: bool = False
    """True if the IR runs before and after every pass."""
    prove: bool = False
    """True if every pass over kernels is proven."""
    validate: bool = False
    """True if a model refused by ONNX Runtime counts as invalid."""
    seed: int = 0
    target: str = ""
    strict: bool = False
    stop_after: int | None = None
    timeout: float = 60.0

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> CheckRequest:
        """Restores an object from the result of `to_dict`."""
        passes = data.pop("passes")
        return CheckRequest(**data, passes=None if passes is None else tuple(passes))
