"""What a user of `igniter.torch` can choose."""

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

    * `weights`: `frozen` makes parameters and buffers constants, which are packed for the machine, and looks before
      each call whether they changed (`igniter.torch.weights`); `checked` reads every byte of them for that; `inputs`
      hands them over at each call.
    * `verify` compares the first call of each compiled graph with eager; what differs by more than `rtol` of the
      largest value stays eager.
    * `keep_faster` times the calls behind the first one in eager as well; what is clearly slower compiled stays eager
      (`igniter.torch.faster`). `False` keeps what is compiled.
    * `sets_of_weights` is how many different sets of frozen weights one graph is compiled for (equal layers share a
      graph); beyond, it takes them as inputs. `sessions` is how many sessions `igniter.torch.compile` keeps.
    * `threads` are ONNX Runtime's, 0: as many as `torch.get_num_threads()` says when a graph is compiled.
    * `smallest` is the number of ATen ops below which a graph stays eager.
    * `cache` keeps exported graphs and compiled models on disk. `compile_options` are handed on to
      `igniter.compile`, `session_options` to `Artifact.session`.
    """

    weights: str = "frozen"
    verify: bool = True
    rtol: float = 1e-3
    keep_faster: bool = True
    sets_of_weights: int = 32
    sessions: int = 8
    threads: int = 0
    smallest: int = 1
    cache: bool = True
    compile_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    session_options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise IgniterError(f"weights is '{self.weights}': choose one of {', '.join(WEIGHTS)}")
        for name in ("sets_of_weights", "sessions", "smallest"):
            if getattr(self, name) < 1:
                raise IgniterError(f"{name} is {getattr(self, name)}: it has to be at least 1")
        if self.threads < 0 or not self.rtol >= 0:
            raise IgniterError(f"threads ({self.threads}) and rtol ({self.rtol}) cannot be negative")


def options_of(given: Mapping[str, Any] | None) -> TorchOptions:
    """The options that a mapping names; `IgniterError` for one that there is not."""
    known = [f.name for f in fields(TorchOptions)]
    for name in given or {}:
        if name not in known:
            like = get_close_matches(str(name), known, 1)
            hint = f"; did you mean {like[0]}?" if like else ""
            raise IgniterError(f"igniter.torch has no option '{name}'{hint} There are {', '.join(known)}")
    return TorchOptions(**dict(given or {}))
