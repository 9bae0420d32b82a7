"""Values for the inputs of a model, by the kind of each input.

Facts of the graph come first: indices are below the length of the indexed axis, operands of logarithms are positive.
Otherwise the name and the dims of the input decide: masks are ones and then zeros, positions count up, an `sr` is
16000, 4 dims with 3 channels are images.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from igniter.dialects.onnx.types import BY_NAME
from igniter.errors import IgniterError
from igniter.verification.graph_facts import GraphFacts
from igniter.verification.pictures import page, ranged
from igniter.verification.roles import is_image, is_sound
from igniter.verification.specs import InputSpec, Shapes

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Style = Literal["usual", "ones", "zeros", "large"]
"""The values of integers and scalars without a specific kind: `usual` is random, `large` is near the type's limits."""


ELEMENTS = 2
"""The number of elements of a generated sequence."""


@dataclass(frozen=True)
class _Request:
    spec: InputSpec
    shape: tuple[int, ...]
    length: int
    """The largest symbolic dim of the inputs at these sizes, except first dims: the maximum of a length."""
    facts: GraphFacts
    rng: np.random.Generator
    style: Style
    seed: int

    @property
    def name(self) -> str:
        return self.spec.name.lower()

    @property
    def limit(self) -> int | None:
        return self.facts.limits.get(self.spec.name)


def random_inputs(
    specs: Sequence[InputSpec],
    shapes: Shapes,
    facts: GraphFacts | Mapping[str, int] | None = None,
    seed: int = 0,
    style: Style = "usual",
) -> dict[str, Any]:
    """Returns a value for every input, deterministic in `seed`: an array, or a list of arrays for a sequence. `facts`
    can also be just the bounds of integer inputs."""
    known = facts if isinstance(facts, GraphFacts) else GraphFacts(dict(facts or {}))
    rng = np.random.default_rng(seed)
    made = [spec.shape(shapes) for spec in specs]
    # A "lengths" input can refer to any symbolic dim of an input except the first.
    symbolic = [n for spec, shape in zip(specs, made, strict=True) for n, d in _axes(spec, shape) if d.constant is None]
    length = max(symbolic, default=1)
    found: dict[str, Any] = {}
    for spec, shape in zip(specs, made, strict=True):
        request = _Request(spec, shape, length, known, rng, style, seed)
        found[spec.name] = [_value(request) for _ in range(ELEMENTS)] if spec.is_sequence else _value(request)
    return found


def _axes(spec: InputSpec, shape: tuple[int, ...]) -> list[tuple[int, Any]]:
    return list(zip(shape, spec.exprs(), strict=True))[1:]


def _value(r: _Request) -> Array:
    if r.spec.is_float:
        values = _floats(r)
        # A type with only exponent bits has no sign and no zero.
        return (abs(values) + 0.25 if r.spec.dtype == "float8e8m0" else values).astype(_dtype(r.spec.dtype))
    if r.spec.dtype == "bool":
        return (_mask(r.shape, r.rng) if "mask" in r.name else r.rng.integers(0, 2, r.shape)).astype(bool)
    if r.spec.dtype == "string":
        return r.rng.integers(0, 100, r.shape).astype(str).astype(object)
    return _integers(r)


# -- floats -----------------------------------------------------------------------------------------------------------

_SAMPLE_RATE = r"sample_?rate|^(sr|fs)$"
_LENGTH = r"(^|_)len(gth)?s?($|_)"

_FLOAT_NAMES: tuple[tuple[str, Callable[[_Request], Any]], ...] = (
    (r"mask", lambda r: _mask(r.shape, r.rng)),
    (r"thresh|(^|_)(conf|iou|score|top_?p|prob)", lambda r: r.rng.uniform(0.1, 0.9, r.shape)),
    (_SAMPLE_RATE, lambda r: _filled(r.shape, 16000)),
    (r"scale|speed|temperature|rate|ratio|gain|alpha|sigma", lambda r: r.rng.uniform(0.5, 1.25, r.shape)),
    (r"im_?shape|(orig|target|image|input|img).*(size|shape|hw|dims)", lambda r: _filled(r.shape, r.length)),
    (r"timestep|^t$", lambda r: r.rng.uniform(1, 999, r.shape)),
)


def _setting(spec: InputSpec, shape: Sequence[int]) -> Callable[[_Request], Any] | None:
    """Returns the generator of a float input that is a setting or a mask by its name, or `None`. A setting is a scalar
    or a vector; a mask has any rank. Other tensors with such a name do not count."""
    if is_image(spec):
        return None
    for pattern, make in _FLOAT_NAMES:
        if re.search(pattern, spec.name.lower()) and (len(shape) <= 1 or "mask" in pattern):
            return make
    return None


def is_setting(spec: InputSpec, shape: Sequence[int]) -> bool:
    """True if a float input is a setting or a mask, so that its values have a specific meaning."""
    return _setting(spec, shape) is not None


def _floats(r: _Request) -> Array:
    make = _setting(r.spec, r.shape)
    if make is not None:
        return np.asarray(make(r), np.float64)
    if r.spec.name in r.facts.positive:
        return r.rng.uniform(0.1, 2.0, r.shape)
    if is_image(r.spec):
        # Image models expect different ranges: 0 .. 1, or centred on zero. Text detectors find nothing without text.
        # Noise makes every pixel count.
        kind = r.seed % 4
        if kind == 3:
            return ranged(r.spec, page(r.spec, r.shape, r.rng), "normalised")
        return _image(r) if kind == 0 else 4 * _image(r) - 2 if kind == 1 else r.rng.standard_normal(r.shape)
    if is_sound(r.spec) or (r.facts.sound and 1 <= len(r.shape) <= 2 and r.shape[-1] >= 256):
        return _sound(r)
    return r.rng.standard_normal(r.shape)


def _filled(shape: tuple[int, ...], value: float) -> Array:
    return np.full(shape, value, np.float64)


def _image(r: _Request) -> Array:
    """Returns smooth patches in 0 .. 1 with a little noise, different in each channel and picture."""
    coarse = r.rng.uniform(0.0, 1.0, tuple(-(-n // 8) if n > 8 else n for n in r.shape))
    for axis, size in enumerate(r.shape):
        if coarse.shape[axis] != size:
            coarse = np.take(coarse, np.arange(size) // 8, axis=axis)
    return np.clip(0.9 * coarse + 0.1 * r.rng.uniform(0.0, 1.0, r.shape), 0.0, 1.0)


def _sound(r: _Request) -> Array:
    """Returns three sine waves with noise, mostly in -1 .. 1, different in each row."""
    time = np.arange(r.shape[-1]) / 16000.0
    rows = (*r.shape[:-1], 1)
    wave = sum(0.25 * np.sin(2 * np.pi * r.rng.uniform(80, 4000, rows) * time) for _ in range(3))
    return wave + 0.05 * r.rng.standard_normal(r.shape)


# -- integers ---------------------------------------------------------------------------------------------------------


def takes_large(spec: InputSpec, facts: GraphFacts) -> bool:
    """True if an integer input may have any value: the graph only computes with it, and its name has no other
    meaning."""
    named = rf"mask|position|{_SAMPLE_RATE}|{_LENGTH}"
    return spec.name in facts.large and spec.is_integer and re.search(named, spec.name.lower()) is None


def is_position(name: str) -> bool:
    """True if the name of an integer input implies an order or few values: positions, masks, types, lengths."""
    return re.search(rf"mask|position|type|segment|{_LENGTH}", name.lower()) is not None


def _integers(r: _Request) -> Array:
    dtype, info = _integer_type(r.spec)
    if r.style == "large" and takes_large(r.spec, r.facts):
        return _large(r, dtype, info)
    caches = r.facts.caches
    counts_keys = caches is not None and r.spec.name in caches.masks
    if "mask" in r.name:
        # An attention takes no fewer keys than there are new ones; with a cache that slides, in each batch element.
        least = 1.0 if caches is not None and caches.windows else 0.75
        return _mask(r.shape, r.rng, least if counts_keys else 0.0).astype(dtype)
    if "position" in r.name and r.shape:
        count = np.arange(r.shape[-1]) if r.limit is None else np.arange(r.shape[-1]) % r.limit
        return np.broadcast_to(count, r.shape).astype(dtype)
    if re.search(_SAMPLE_RATE, r.name):
        return np.full(r.shape, min(16000, int(info.max)), dtype)
    if re.search(_LENGTH, r.name) and r.limit is None:
        # The first is the longest: one row must have the full length of the batch.
        lengths = r.rng.integers(max(1, r.length // 2), r.length + 1, r.shape)
        return np.asarray(np.where(np.arange(lengths.size).reshape(r.shape) == 0, r.length, lengths)).astype(dtype)
    if r.style in ("ones", "zeros"):
        return np.full(r.shape, r.style == "ones", dtype)
    if r.spec.dtype == "uint8" and is_image(r.spec):
        return np.clip(_image(r) * 255, 0, 255).astype(dtype)
    return _small(r, dtype, info)


def _small(r: _Request, dtype: Any, info: Any) -> Array:
    limit = r.limit
    if "token_type" in r.name or "segment" in r.name:
        limit = 2 if limit is None else min(limit, 2)
    if "byte" in r.name and limit is None:
        limit = 256
    named = "id" in r.name or "token" in r.name
    low = 0 if limit is not None or named or info.min == 0 else -8
    if r.spec.name in r.facts.positive:
        low = 1
    high = min(limit if limit is not None else 100 if named else 8, int(info.max) + 1)
    return r.rng.integers(low, max(high, low + 1), r.shape).astype(dtype)


def _large(r: _Request, dtype: Any, info: Any) -> Array:
    """Returns values at and near the type's limits, near powers of two, and small values among them."""
    low, high = int(info.min), int(info.max)
    middle = 1 << (info.bits // 2)
    picks = [low, low + 1, high, high - 1, middle, middle + 1, -middle, (1 << 24) + 1, (1 << 31) + 1, 0, 1, -1, 7]
    allowed = [v for v in picks if max(low, 1 if r.spec.name in r.facts.positive else low) <= v <= high]
    return np.array(allowed, dtype)[r.rng.integers(0, len(allowed), r.shape)]


def _integer_type(spec: InputSpec) -> tuple[Any, Any]:
    try:
        dtype = _dtype(spec.dtype)
        if dtype.kind == "V":
            import ml_dtypes

            return dtype, ml_dtypes.iinfo(dtype)
        return dtype, np.iinfo(dtype)
    except (TypeError, ValueError):
        raise IgniterError(f"no random values of type {spec.dtype}; give input '{spec.name}' in `inputs`") from None


def _mask(shape: tuple[int, ...], rng: np.random.Generator, least: float = 0.0) -> np.ndarray[Any, Any]:
    """Returns ones and then zeros along the last axis, as for padding; every row has a one, and at least the share
    `least` of ones."""
    if not shape or shape[-1] == 0:
        return np.ones(shape)
    lengths = rng.integers(max(1, math.ceil(least * shape[-1])), shape[-1] + 1, (*shape[:-1], 1))
    return (np.arange(shape[-1]) < lengths).astype(np.float64)


def _dtype(name: str) -> Any:
    known = BY_NAME.get(name)
    return known.dtype if known is not None else np.dtype(name)
