"""The dims of inputs by their places: `x.0`, or `x:0`, is the first of the input `x`.

A dim without a name in the model has a generated symbol (`unk__0`); users identify it by its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import entries_of, pairs_of
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym.dim_words import Place, is_anonymous, split_place
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.errors import IgniterError

_MADE_UP = re.compile(r"unk\d*__(any_)?\d+")


def input_places(module: ModuleOp) -> dict[tuple[str, int], Expr]:
    """Returns the dims of the inputs of known rank, by the input's name and the axis; empty without a graph."""
    graph = next((op for op in module.ops if isinstance(op, GraphOp)), None)
    if graph is None:
        return {}
    return {
        (name, axis): dim
        for name, arg in zip(graph.input_names, graph.body.args, strict=True)
        for axis, dim in enumerate(known_dims_of(arg.type) or ())
    }


def place_names(module: ModuleOp) -> dict[str, str]:
    """Returns the places of generated symbols: `x.0`, by the first input that has them."""
    found: dict[str, str] = {}
    for (name, axis), dim in input_places(module).items():
        if dim.symbol is not None and _MADE_UP.fullmatch(dim.symbol):
            found.setdefault(dim.symbol, f"{name}.{axis}")
    return found


def by_symbol(module: ModuleOp, sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns sizes by symbols, where some are given by places. Raises `IgniterError` if two of them contradict each
    other, or the dim at a place is no symbol."""
    places = input_places(module)
    symbols = {s for dim in places.values() for s in dim.symbols}
    called: dict[str, list[str]] = {}
    for symbol, said in dim_names(module).items():
        if symbol in symbols:
            called.setdefault(said, []).append(symbol)
    found: dict[str, int] = {}
    for text, size in sizes.items():
        dim = None if text in symbols else _at(places, text)
        if dim is None:
            # The model's name, if it belongs to a single dim.
            symbol = called[text][0] if text not in symbols and len(called.get(text, ())) == 1 else text
        elif dim.constant is not None:
            if dim.constant != size:
                raise IgniterError(f"{text} is {dim} in the model, not {size}")
            continue
        elif dim.symbol is None:
            raise IgniterError(f"{text} is {dim}: give {', '.join(sorted(dim.symbols))} instead")
        else:
            symbol = dim.symbol
        if found.setdefault(symbol, size) != size:
            raise IgniterError(f"{text} is {symbol}, which cannot be {found[symbol]} and {size}")
    return found


def _at(places: Mapping[tuple[str, int], Expr], text: str) -> Expr | None:
    place = (text.input, text.axis) if isinstance(text, Place) else split_place(text)
    ranks = Counter(name for name, _ in places)
    if place is None:  # An input with one dim is a name for that dim.
        place = (text, 0) if ranks[text] == 1 else None
    if isinstance(text, Place) and ranks[text.input] not in (0, text.rank):
        raise IgniterError(f"input '{text.input}' has {ranks[text.input]} dims, but {text.rank} sizes are given")
    return None if place is None else places.get(place)


def dim_names(module: ModuleOp) -> dict[str, str]:
    """Returns the model's names of dims whose symbols have another name."""
    return dict(pairs_of(entries_of(module.attributes.get("onnx.model")).get("dim_names")))


def session_sizes(module: ModuleOp, sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns sizes of symbols by the names in a session of ONNX Runtime: those of the model, or places."""
    aliases = dim_names(module)
    found: dict[str, int] = {}
    for (name, axis), dim in input_places(module).items():
        symbol = dim.symbol
        if symbol is None or symbol not in sizes:
            continue
        said = aliases.get(symbol, "" if _MADE_UP.fullmatch(symbol) else symbol)
        found[f"{name}.{axis}" if is_anonymous(said) else said] = sizes[symbol]
    return found


def dim_text(module: ModuleOp) -> Callable[[Expr], str]:
    """Returns a formatter of a model's dims for users: `x.0` for an unnamed dim, `?` for one absent from all inputs."""
    places = {symbol: Expr.of(place) for symbol, place in place_names(module).items()}

    def text(dim: Expr) -> str:
        unknown = any(_MADE_UP.fullmatch(symbol) for symbol in dim.symbols - places.keys())
        shown = dim.substitute(places)
        return "?" if unknown else shown.symbol or str(shown)

    return text


def shown_dims(module: ModuleOp, names: Iterable[str]) -> list[str]:
    """Returns symbols in the form for users, sorted: generated symbols of inputs by their places. Other generated
    symbols are omitted, since they cannot be given a size."""
    places = place_names(module)
    return sorted(places.get(name, name) for name in names if name in places or not _MADE_UP.fullmatch(name))
