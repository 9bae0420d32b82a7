"""User-given sizes of symbols, converted to the symbols of a profile.

Inference finds equal symbols, and symbols with a value derived from others. A size for any name in the model is
accepted; a contradiction of inference is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from igniter.errors import IgniterError
from igniter.toolbox.profile.profile import Profile


def given_sizes(profile: Profile, sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns `sizes` by the profile's own symbols. Raises `IgniterError` for an unknown symbol, for a negative size,
    and for sizes without a valid run."""
    own = {*profile.symbols, *(s for p in profile.inputs for d in p.tensor.dims or () for s in d.symbols)}
    found: dict[str, int] = {}
    later: list[tuple[str, int]] = []
    for name, value in sizes.items():
        if value < 0:
            raise IgniterError(f"the size of {name} is {value}: it is not negative")
        if name in own:
            found[name] = value
        elif name in profile.aliases:
            later.append((name, value))
        else:
            raise IgniterError(unknown_symbol(name, (*own, *profile.aliases)))
    for name, value in later:
        means = profile.aliases[name]
        symbol = means.symbol
        if symbol is not None:
            if found.setdefault(symbol, value) != value:
                raise IgniterError(
                    f"{name} is {symbol} in every valid run, and cannot be {value} beside {found[symbol]}"
                )
            continue
        missing = sorted(means.symbols - found.keys())
        if missing:
            raise IgniterError(f"{name} is {means} in every valid run: give {', '.join(missing)} instead")
        if means.evaluate(found) != value:
            raise IgniterError(
                f"{name} is {means} in every valid run, which is {means.evaluate(found)} and not {value}"
            )
    return found


def unknown_symbol(name: str, known: Iterable[str]) -> str:
    """Returns the error message for an unknown symbol."""
    names = sorted(set(known))
    if not names:
        return f"the model has no symbol '{name}': all its sizes are numbers; leave --sizes out"
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"its symbols are {', '.join(names)}"
    return f"the model has no symbol '{name}'; {hint}"
