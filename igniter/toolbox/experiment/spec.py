"""Specifications of experiments, as data: models x variants x sizes x threads, the metrics, the measurement.

`spec_reading.py` makes them from TOML; `docs/how-to/experiment.md` describes every key.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

METRICS = {
    "time": "the median time of a run in milliseconds",
    "ratio": "the time relative to the base's, with its interval, and the verdict",
    "kernels": "different kernels",
    "regions": "fusion regions",
    "left": "nodes left to ONNX Runtime",
    "bytes_saved": "bytes that fusion keeps out of memory, at the sizes of the run",
    "compile_seconds": "seconds of a compilation without the cache, the median",
    "compile_memory": "peak resident memory of the compilation",
    "code_bytes": "bytes of the libraries",
    "peak_memory": "peak resident memory of the process that runs the model",
}
"""The metrics, with what each is."""

LEVELS = ("onnx", "fusion", "loop", "scheduled", "llvm")
"""The levels of IR that an archive may have."""

DEFAULT_LEVELS = ("fusion", "scheduled")

SYSTEMS = ("igniter", "onnxruntime", "openvino", "iree", "tvm", "inductor", "torch")
"""What a variant runs in; all but the first two are peers (`benchmark/peers`)."""

PIPELINES = ("onnx", "fusion", "loop", "schedule", "programs")


@dataclass(frozen=True)
class Variant:
    """One way to run a model."""

    name: str
    system: str = "igniter"
    fusion: str = ""
    """The fusion author, `NAME{option=value}`; "" is the backend's."""
    schedule: str = ""
    """The schedule author; "" is the backend's."""
    pipelines: Mapping[str, str] = field(default_factory=dict[str, str])
    """Passes by level, in place of the backend's."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `igniter.CompileOptions`; of `onnxruntime`, options of its sessions."""
    plugins: tuple[str, ...] = ()
    """Folders with packages of passes, authors or ops, relative to the specification."""
    target: str = "native"
    sizes: Mapping[str, int] | str = field(default_factory=dict[str, int])
    """Typical sizes of the compilation, or "run" for those of the run."""
    tune: float = 0.0
    """Seconds of tuning per model before the compilation."""
    threads: int | None = None
    """The threads, where they differ from the comparison's."""
    spinning: bool | None = None

    def key(self) -> str:
        """Returns a hash of what affects the compilation and the run."""
        return digest(dataclasses.asdict(self))


@dataclass(frozen=True)
class Measure:
    """How times are taken."""

    rounds: int = 7
    """The turns of every system, for each launch of the processes."""
    launches: int = 3
    """How often the processes are started anew."""
    seconds: float = 0.2
    """The length of a turn."""
    compiles: int = 1
    """Compilations of a variant, for the compile time."""
    seed: int = 0
    """Of inputs, orders and resamples."""
    confidence: float = 0.95
    resamples: int = 2000
    limit: float = 900.0
    """The most seconds of one step, such as a compilation."""
    spinning: bool = False
    verify: bool = True
    """False to time outputs without comparing them with ONNX Runtime's."""

    def timing(self) -> list[object]:
        """Returns what affects the times of a launch."""
        return [self.rounds, self.seconds, self.seed, self.spinning, self.verify]


@dataclass(frozen=True)
class ModelSpec:
    """A model by name or path, with its own choices of sizes."""

    name: str
    sizes: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True)
class Spec:
    """An experiment: every model at every choice of sizes and threads, in all variants."""

    title: str
    models: tuple[ModelSpec, ...]
    variants: tuple[Variant, ...]
    base: str
    sizes: tuple[Mapping[str, int], ...] = ()
    """Choices of sizes of symbolic dims, for models without their own."""
    threads: tuple[int, ...] = (1,)
    metrics: tuple[str, ...] = (*METRICS,)
    ir: tuple[str, ...] = DEFAULT_LEVELS
    """The levels of IR in the archive."""
    measure: Measure = field(default_factory=Measure)
    folder: str = field(default="", compare=False)
    """The folder that relative paths start from."""

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; `spec_of` is the inverse."""
        said = dataclasses.asdict(self)
        said["variant"] = [without_defaults(dataclasses.asdict(v)) for v in self.variants]
        said["models"] = [m.name if not m.sizes else dataclasses.asdict(m) for m in self.models]
        del said["folder"], said["variants"]
        return cast("dict[str, Any]", json.loads(json.dumps(said)))

    def variant(self, name: str) -> Variant:
        """Returns a variant by name."""
        return next(v for v in self.variants if v.name == name)


def digest(value: object) -> str:
    """Returns a hash of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def without_defaults(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a variant that differ from their default."""
    plain = dataclasses.asdict(Variant(""))
    return {k: v for k, v in said.items() if k == "name" or plain[k] != v}
