"""The keyword arguments of `igniter.compile`, those of `Module.compile`, for type checkers and for the error about an
unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.compiler.compilation import CompileOptions, Inputs, Machine
    from igniter.compiler.measuring.request import Asked
    from igniter.observation import PassObserver


class UnknownArgument(IgniterError, TypeError):
    """Raised for a keyword argument that a function of the API does not have."""

    code = "IGN0003"


class CompileArguments(TypedDict, total=False):
    """The keyword arguments of `igniter.compile`; `Module.compile` describes them."""

    target: str
    machine: Machine
    sizes: Mapping[str, int] | None
    precision: str
    winograd: int | str
    subnormals: str
    tile_weights: str
    fusion_author: str
    passes: str
    options: CompileOptions | None
    verify: bool
    load: bool
    shapes: Sequence[Mapping[str, int]] | None
    inputs: Inputs
    rtol: float | None
    atol: float
    seed: int
    budget: float | None
    cache: bool
    strict: bool
    sanitize: bool
    debug_info: bool
    progress: Callable[[str], None] | None
    measure: Asked
    threads: int
    observers: Sequence[PassObserver]


def require_known(function: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises `UnknownArgument` for the first keyword argument that `function` does not have."""
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, list(known), n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(known)}"
            raise UnknownArgument(f"{function} has no argument '{name}'; {hint}")
