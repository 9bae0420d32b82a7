"""What is said between a race and the processes of the peers; everything is pickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Precision = Literal["f32", "bf16", "int8-dynamic"]
Arrays = Mapping[str, np.ndarray]


class Unavailable(Exception):
    """A peer that cannot take part, with the reason as a person reads it."""


@dataclass(frozen=True)
class Task:
    """One model at one size, as a peer is told it."""

    model: str
    """The ONNX file, which every peer but torch's takes."""
    inputs: Arrays
    threads: int = 1
    precision: Precision = "f32"
    spinning: bool = False
    """Whether threads may spin between ops where the peer lets one choose."""
    family: str = ""
    """What ORT's transformers optimizer takes the model for; nothing where it is no transformer."""
    torch: tuple[str, ...] = ()
    """`("package.module:function", argument, ...)`, which makes the torch module; its arguments are the inputs in
    order, its results the outputs in order."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Igniter's `CompileOptions` by name."""


@dataclass(frozen=True)
class Prepared:
    """A model that a peer has loaded: one run of it, and the outputs of the last run in the model's order."""

    run: Callable[[], Any]
    outputs: Callable[[], list[np.ndarray]]
    note: str = ""
    """What to know of how it was built: variants tried, shapes fixed."""


@dataclass(frozen=True)
class Load:
    """Load a model and run it once; answered by `Loaded`."""

    task: Task


@dataclass(frozen=True)
class Loaded:
    """The model runs: its outputs, how long it took to build, the peer's version, and `Prepared.note`."""

    outputs: list[np.ndarray]
    seconds: float
    version: str
    note: str


@dataclass(frozen=True)
class Run:
    """Run so many times, after one more that does not count; answered by the list of seconds."""

    times: int


@dataclass(frozen=True)
class Failed:
    """Instead of any answer: why there is none."""

    reason: str
