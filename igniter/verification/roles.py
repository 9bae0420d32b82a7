"""The roles of symbolic dims, from their names, or else from their input and their position in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from igniter.verification.specs import InputSpec


class Role(StrEnum):
    """The role of a dim; it determines the sizes to try."""

    BATCH = "batch"
    HEIGHT = "height"
    WIDTH = "width"
    LENGTH = "length"
    """Tokens, phonemes, boxes: tens to hundreds."""
    FRAMES = "frames"
    """Feature vectors of sound: about a hundred per second."""
    SAMPLES = "samples"
    """Samples of sound: thousands."""
    CHANNELS = "channels"
    OTHER = "other"


_NAMES = (
    (Role.BATCH, r"^(n|b|bs|bsz)$|batch|num_?(images|samples|crops|sentences)$"),
    (Role.HEIGHT, r"^h$|height|^ih$"),
    (Role.WIDTH, r"^w$|width|^iw$"),
    (Role.SAMPLES, r"samples|wave|audio|pcm"),
    (Role.FRAMES, r"frames|mel|^t$|^time"),
    (Role.CHANNELS, r"^c$|channel|^ch$"),
    (Role.LENGTH, r"seq|len|token|phoneme|text|word|char|past|boxes|query|^s$|^l$"),
)
_IMAGE_CHANNELS = (1, 3, 4)
_STATE = re.compile(r"state|hidden|cache|memory|^[hc]_?[0n]?$", re.IGNORECASE)
"""Names of the state inputs of recurrent models; their dims are layers, batch and features."""


def role_of_name(symbol: str) -> Role | None:
    """Returns the role that the name of a dim implies, or `None`."""
    for role, pattern in _NAMES:
        if re.search(pattern, symbol, re.IGNORECASE):
            return role
    return None


def is_image(spec: InputSpec) -> bool:
    """True if an input looks like images: floats or bytes of 4 dims, with an axis of channels."""
    return len(spec.dims) == 4 and (spec.is_float or spec.dtype == "uint8") and image_channels_axis(spec) is not None


def image_channels_axis(spec: InputSpec) -> int | None:
    """Returns the axis of the channels in an image, the second or the last; `None` if the input is not an image."""
    if len(spec.dims) != 4:
        return None
    if spec.dims[1] in _IMAGE_CHANNELS:
        return 1
    if spec.dims[3] in _IMAGE_CHANNELS:
        return 3
    return 1 if not isinstance(spec.dims[1], int) or spec.dtype in ("float", "float16") else None


def is_sound(spec: InputSpec) -> bool:
    """True if the name of a float input suggests sound."""
    return (
        spec.is_float and re.search(r"audio|wav|speech|signal|pcm|sound|samples", spec.name, re.IGNORECASE) is not None
    )


def roles_of(specs: Sequence[InputSpec], convolved: Sequence[str] = ()) -> dict[str, Role]:
    """Returns the role of every symbol. `convolved` lists the inputs of convolutions over time, see `graph_facts`."""
    found: dict[str, Role] = {}
    for spec in specs:
        for axis, dim in enumerate(spec.exprs()):
            for symbol in sorted(dim.symbols):
                named = None if symbol.startswith(f"{spec.name}.") else role_of_name(symbol)
                role = named or _by_place(spec, axis, spec.name in convolved)
                if role is Role.LENGTH and named is not None and _long(spec, axis, convolved):
                    # In a model of sound, "sequence" means thousands of samples.
                    role = Role.SAMPLES
                if found.get(symbol, Role.OTHER) is Role.OTHER:
                    found[symbol] = role
    return found


def _long(spec: InputSpec, axis: int, convolved: Sequence[str]) -> bool:
    return spec.is_float and len(spec.dims) <= 2 and axis == len(spec.dims) - 1 and spec.name in convolved


def _by_place(spec: InputSpec, axis: int, convolved: bool) -> Role:
    rank = len(spec.dims)
    if is_image(spec):
        channels = image_channels_axis(spec)
        spatial = [a for a in range(1, 4) if a != channels]
        if axis in spatial:
            return Role.HEIGHT if axis == spatial[0] else Role.WIDTH
        return Role.BATCH if axis == 0 else Role.CHANNELS
    if rank == 3 and spec.dims[0] in _IMAGE_CHANNELS and axis > 0:
        return Role.HEIGHT if axis == 1 else Role.WIDTH
    if (rank >= 2 and axis == 0) or (rank == 3 and _STATE.search(spec.name)):
        return Role.BATCH
    if spec.is_float:
        if is_sound(spec) or (convolved and rank <= 2 and axis == rank - 1):
            return Role.SAMPLES
        if rank == 3:
            return Role.FRAMES if convolved else Role.LENGTH
        return Role.OTHER
    if rank == 1:
        return Role.BATCH if "len" in spec.name.lower() else Role.LENGTH
    return Role.LENGTH


def tied_by_role(roles: Mapping[str, Role]) -> dict[str, str | int]:
    """Maps every symbol to the first symbol of its role. Height and width count as one role."""
    first: dict[str, str] = {}
    tied: dict[str, str | int] = {}
    for symbol, role in roles.items():
        key = "spatial" if role in (Role.HEIGHT, Role.WIDTH) else role.value
        tied[symbol] = first.setdefault(key, symbol)
    return tied
