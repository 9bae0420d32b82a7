"""Names of input dims: placeholders without a name, and places: `x:0` is the first dim of the input `x`."""

from __future__ import annotations

import re
from typing import Self

_ANONYMOUS = re.compile(r"\s*(\?+|-1|[Nn]one|null|nan|unk|unk_*\d+|[Uu]nknown(_?\d+)?)?\s*")


def is_anonymous(word: str) -> bool:
    """True for the placeholders of exporters for an unknown dim. Equal placeholders do not imply equal dims, so users
    refer to such a dim by its place."""
    return _ANONYMOUS.fullmatch(word) is not None


class Place(str):
    """A dim in a shape given as a whole, `x=1x3x224x224`: its text is `x:0`, and it knows the rank of the shape."""

    input: str
    axis: int
    rank: int

    @classmethod
    def of(cls, name: str, axis: int, rank: int) -> Self:
        """Returns the dim of an input at an axis of `rank`."""
        made = cls(f"{name}:{axis}")
        made.input, made.axis, made.rank = name, axis, rank
        return made


def split_place(text: str) -> tuple[str, int] | None:
    """Returns the input and the axis of `x:0` or `x.0`; None for other text."""
    for sign in (":", "."):
        name, found, axis = text.rpartition(sign)
        if found and axis.isdecimal():
            return name, int(axis)
    return None
