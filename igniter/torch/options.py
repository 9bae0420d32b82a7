"""The options of `igniter.torch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from igniter.errors import IgniterError

WEIGHTS = ("frozen", "checked", "inputs")


@dataclass(frozen=True)
class TorchOptions:
    """Options of `torch.compile(..., backend="igniter", options={...})` and of `igniter.torch.compile`.

    * `weights`: `frozen` makes parameters and buffers constants, packed for the machine, and checks them for changes
      before each call (`igniter.torch.weights`); `checked` includes every byte in this check; `inputs` passes them at
      each call.
    * `verify` compares the first call of each compiled graph with eager. The graph stays eager if a result differs by
      more than `rtol` of the largest value.
    * `keep_faster` also times eager in the calls after the first one. A part clearly slower than eager stays eager
      (`igniter.torch.faster`). `False` always keeps the compiled part.
    * `sets_of_weights`: the maximum number of sets of frozen weights for one graph (equal layers share a graph).
      With more sets, the graph takes weights as inputs. `sessions`: the number of sessions that
      `igniter.torch.compile` keeps.
    * `threads`: the threads of ONNX Runtime; 0: `torch.get_num_threads()` at the time of compilation.
    * `smallest`: a graph with fewer ATen ops stays eager.
    * `background` exports and compiles in a thread, while eager serves. A compiled part serves once it is verified;
      `igniter.torch.wait()` waits for that.
    * `cache` keeps exported graphs and compiled models on disk. `compile_options` are passed to `igniter.compile`,
      `session_options` to `Artifact.session`.
    """

    weights: str = "frozen"
    verify: bool = True
    rtol: float = 1e-3
    keep_faster: bool = True
    sets_of_weights: int = 32
    sessions: int = 8
    threads: int = 0
    smallest: int = 1
    background: bool = False
    cache: bool = True
    compile_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    session_options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise IgniterError(f"weights is '{self.weights}'; it must be one of {', '.join(WEIGHTS)}")
        for name in ("sets_of_weights", "sessions", "smallest"):
            if getattr(self, name) < 1:
                raise IgniterError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.threads < 0 or not self.rtol >= 0:
            raise IgniterError(f"threads ({self.threads}) and rtol ({self.rtol}) cannot be negative")


def options_of(given: Mapping[str, Any] | None) -> TorchOptions:
    """Returns the options in a mapping. An unknown option raises `IgniterError`."""
    known = [f.name for f in fields(TorchOptions)]
    for name in given or {}:
        if name not in known:
            like = get_close_matches(str(name), known, 1)
            hint = f"; did you mean {like[0]}?" if like else ""
            raise IgniterError(f"igniter.torch has no option '{name}'{hint} Known: {', '.join(known)}")
    return TorchOptions(**dict(given or {}))
