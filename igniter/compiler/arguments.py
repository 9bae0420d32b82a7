"""The keyword arguments of `igniter.compile`, those of `Module.compile`, for type checkers; and the errors of the API
about an unknown argument, or one of another type than the function takes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict, cast

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.compiler.compilation import CompileOptions, Inputs, Machine
    from igniter.compiler.measuring.request import Asked
    from igniter.observation import PassObserver


class UnknownArgument(IgniterError, TypeError):
    """Raised for a keyword argument that a function of the API does not have."""

    code = "IGN0003"


class WrongArgument(IgniterError, TypeError):
    """Raised for an argument of the API of another type than the function takes."""

    code = "IGN0005"

    def __init__(self, function: str, name: str, takes: str, given: object, instead: str = ""):
        kind = "None" if given is None else f"{given!r:.60} ({type(given).__name__})"
        super().__init__(f"{function}: '{name}' takes {takes}, not {kind}{instead}")


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
    max_memory: int | str | None
    max_seconds: float | None


def require_known(function: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises `UnknownArgument` for the first keyword argument that `function` does not have."""
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, list(known), n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(known)}"
            raise UnknownArgument(f"{function} has no argument '{name}'; {hint}")


def require_compile_arguments(function: str, given: Mapping[str, Any]) -> None:
    """Raises `WrongArgument` for the first keyword argument of `compile` of a wrong type."""
    require_sizes(function, "sizes", given.get("sizes"))
    require_shapes(function, given.get("shapes"), ", or sizes= for typical sizes")
    for name in ("target", "precision", "subnormals", "tile_weights", "fusion_author", "passes"):
        if name in given:
            require_text(function, name, given[name])
    for name in ("rtol", "atol", "budget", "max_seconds"):
        require_number(function, name, given.get(name))
    for name in ("seed", "threads"):
        if name in given:
            require_integer(function, name, given[name])
    memory = given.get("max_memory")
    if memory is not None and not isinstance(memory, str) and not _is_integer(memory):
        raise WrongArgument(function, "max_memory", "a number of bytes, or a size such as '2G'", memory)
    require_observers(function, given.get("observers", ()))
    options = given.get("options")
    if options is not None and not hasattr(options, "kernel_key"):
        raise WrongArgument(function, "options", "a CompileOptions", options, ": give options by name")


def require_path(function: str, name: str, given: object) -> None:
    """Raises `WrongArgument` unless the argument is a path, or `None`."""
    if given is not None and not isinstance(given, (str, PathLike)):
        raise WrongArgument(function, name, "a path", given)


def require_text(function: str, name: str, given: object, such_as: str = "") -> None:
    """Raises `WrongArgument` unless the argument is a text."""
    if not isinstance(given, str):
        raise WrongArgument(function, name, f"a text{such_as}", given)


def require_number(function: str, name: str, given: object) -> None:
    """Raises `WrongArgument` unless the argument is a number, or `None`."""
    if given is not None and (isinstance(given, bool) or not hasattr(given, "__float__")):
        raise WrongArgument(function, name, "a number", given)


def require_integer(function: str, name: str, given: object) -> None:
    """Raises `WrongArgument` unless the argument is an integer."""
    if not _is_integer(given):
        raise WrongArgument(function, name, "an integer", given)


def require_sizes(function: str, name: str, given: object) -> None:
    """Raises `WrongArgument` unless the argument is a mapping of sizes by dim, or `None`."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise WrongArgument(function, name, "a mapping of sizes by dim, such as {'batch': 1}", given)
    for dim, size in cast("Mapping[Any, Any]", given).items():
        if not isinstance(dim, str):
            raise WrongArgument(function, name, "the names of dims as keys", dim)
        if not _is_integer(size):
            raise WrongArgument(function, f'{name}["{dim}"]', "an integer", size)


def require_shapes(function: str, given: object, more: str = "") -> None:
    """Raises `WrongArgument` unless the argument `shapes` is a sequence of mappings of sizes by dim, or `None`. `more`
    names another argument that takes a mapping."""
    if given is None:
        return
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        instead = f": write shapes=[{given!r}]{more}" if isinstance(given, Mapping) else ""
        raise WrongArgument(function, "shapes", "a list of mappings of sizes by dim", cast("object", given), instead)
    for place, each in enumerate(cast("Sequence[object]", given)):
        if each is None:
            raise WrongArgument(function, f"shapes[{place}]", "a mapping of sizes by dim", each)
        require_sizes(function, f"shapes[{place}]", each)


def require_observers(function: str, given: object) -> None:
    """Raises `WrongArgument` unless the argument `observers` is a sequence of observers of passes."""
    takes = "a sequence of objects with the methods 'before' and 'after' (igniter.observation)"
    if not isinstance(given, Iterable):
        raise WrongArgument(function, "observers", takes, given)
    for each in cast("Iterable[object]", given if isinstance(given, Sequence) else ()):
        if not (hasattr(each, "before") and hasattr(each, "after")):
            raise WrongArgument(function, "observers", takes, each)


def _is_integer(given: object) -> bool:
    return hasattr(given, "__index__") and not isinstance(given, bool)
