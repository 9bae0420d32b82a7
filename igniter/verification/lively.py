"""Realistic inputs: pages of text, scenes, speech, words, and other ranges of values.

Random values leave many outputs at rest: a text detector finds no text in noise, and a sigmoid after large weights is 0
or 1. If the usual inputs leave an output at rest, `variants` are tried, and `mutations` then change the best of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.verification.graph_facts import GraphFacts
from igniter.verification.inputs import is_setting, random_inputs, takes_large
from igniter.verification.pictures import page, ranged, scene
from igniter.verification.roles import is_image, is_sound
from igniter.verification.specs import InputSpec, Shapes

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Make = Callable[[InputSpec, Array, np.random.Generator], Array]

Feed = dict[str, Any]


FAR = frozenset(
    (*(f"values times {factor}" for factor in ("16", "0.0625", "128", "0.00390625")), "single values", "special values")
)
"""Kinds of `variants` far from realistic inputs. Many models compute only noise and infinities for them."""


def variants(specs: Sequence[InputSpec], sizes: Shapes, facts: GraphFacts, seed: int) -> Iterator[tuple[str, Feed]]:
    """Yields feeds of these sizes, each with the name of its kind: pictures, sounds and texts for suitable inputs, then
    the usual values in other ranges. Feeds without a change are left out."""
    rng = np.random.default_rng(seed)
    for name, fits, make in _kinds(facts):
        base = random_inputs(specs, sizes, facts, int(rng.integers(1 << 30)))
        changed = dict(base)
        for spec in specs:
            if fits(spec, base[spec.name]):
                value = base[spec.name]
                changed[spec.name] = np.asarray(make(spec, np.asarray(value), rng)).astype(value.dtype)
        if any(changed[n] is not base[n] for n in base):
            yield name, changed


def _kinds(facts: GraphFacts) -> Iterator[tuple[str, Callable[[InputSpec, Any], bool], Make]]:
    def is_picture(spec: InputSpec, value: Any) -> bool:
        return is_image(spec) and _is_array(value) and min(value.shape) > 0

    def is_wave(spec: InputSpec, value: Any) -> bool:
        long = facts.sound and spec.is_float and 1 <= len(spec.dims) <= 2
        return (is_sound(spec) or long) and _is_array(value) and bool(value.shape) and value.shape[-1] >= 64

    def is_free(spec: InputSpec, value: Any) -> bool:
        return spec.is_float and _is_array(value) and not is_setting(spec, value.shape)

    def is_text(spec: InputSpec, value: Any) -> bool:
        return spec.is_integer and _is_array(value) and bool(value.shape) and not _is_structure(spec)

    def is_number(spec: InputSpec, value: Any) -> bool:
        return takes_large(spec, facts) and _is_array(value)

    for scale in ("normalised", "0 .. 1", "-1 .. 1", "0 .. 255"):
        yield f"a page of text, {scale}", is_picture, lambda s, v, rng, r=scale: ranged(s, page(s, v.shape, rng), r)
        yield f"a scene, {scale}", is_picture, lambda s, v, rng, r=scale: ranged(s, scene(s, v.shape, rng), r)
    yield "speech", is_wave, _speech
    yield "a chord", is_wave, _chord
    yield "words", is_text, lambda s, v, rng: _words(v, facts.limits.get(s.name), rng)
    for factor in (4.0, 0.25, 16.0, 1 / 16, 128.0, 1 / 256):
        yield f"values times {factor:g}", is_free, partial(_scaled, factor=factor)
    for shift in (2.0, -2.0, 20.0, -20.0):
        yield f"values plus {shift:g}", is_free, partial(_scaled, shift=shift)
    yield "single values", is_free, _single
    yield "numbers", is_number, lambda s, v, rng: rng.integers(0, 100, _shape(v))
    yield "special values", is_free, _special


def mutations(best: Feed, other: Mapping[str, Any], specs: Sequence[InputSpec], rng: np.random.Generator) -> Feed:
    """Returns the best feed so far with each float input scaled, shifted, or mixed with that of another feed."""
    changed = dict(best)
    for spec in specs:
        value = best[spec.name]
        if not spec.is_float or not _is_array(value) or is_setting(spec, value.shape):
            continue
        way, mixed = int(rng.integers(4)), np.asarray(other[spec.name], np.float64)
        wide: Array = np.asarray(value, np.float64)
        if way == 0:
            wide = wide * 2.0 ** rng.uniform(-2, 2)
        elif way == 1:
            wide = wide + rng.standard_normal() * (np.std(wide) + 0.1)
        elif way == 2 and mixed.shape == wide.shape:
            either = rng.random(_shape(value)) < 0.5
            wide = np.where(either, wide, mixed)
        elif mixed.shape == wide.shape:
            wide = wide + rng.uniform(-1, 1) * mixed
        changed[spec.name] = np.asarray(wide).astype(value.dtype)
    return changed


def _shape(value: Array) -> tuple[int, ...]:
    return tuple(int(n) for n in value.shape)


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _is_structure(spec: InputSpec) -> bool:
    return re.search(r"mask|position|len|type|segment|rate|^sr$", spec.name.lower()) is not None


def _scaled(spec: InputSpec, value: Array, rng: np.random.Generator, factor: float = 1.0, shift: float = 0.0) -> Any:
    return value * factor + shift


def _single(spec: InputSpec, value: Array, rng: np.random.Generator) -> Any:
    keep = rng.random(_shape(value)) < 0.05
    return 30 * value * keep


def _special(spec: InputSpec, value: Array, rng: np.random.Generator) -> Array:
    picks = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
    there = rng.random(_shape(value)) < 0.2
    return np.where(there, picks[rng.integers(0, len(picks), _shape(value))], value)


# -- sounds and texts -------------------------------------------------------------------------------------------------


def _speech(spec: InputSpec, value: Array, rng: np.random.Generator) -> Array:
    """Returns a sequence of vowels with pauses: the overtones of a voice, loudest at two formants."""
    length = int(value.shape[-1])
    time = np.arange(length) / 16000.0
    rows = (*value.shape[:-1], 1)
    pitch = rng.uniform(90, 220, rows)
    formants = [(730, 1090), (270, 2290), (300, 870), (530, 1840)]
    syllable = (time * 6).astype(int)
    wave: Array = np.zeros(value.shape)
    for k in range(1, 25):
        loud = np.zeros(length)
        for n, (one, two) in enumerate(formants):
            mean = float(np.mean(pitch)) * k
            gain = np.exp(-(((mean - one) / 150) ** 2)) + 0.5 * np.exp(-(((mean - two) / 200) ** 2)) + 0.02
            loud = np.where(syllable % len(formants) == n, gain, loud)
        wave = wave + loud * np.sin(2 * np.pi * k * pitch * time)
    envelope = np.clip(np.sin(np.pi * (time * 6 % 1)) * 1.3, 0, 1) * (syllable % 5 != 4)
    wave = 0.4 * wave * envelope / max(float(np.max(np.abs(wave), initial=0.0)), 1e-6)
    noise = rng.standard_normal(_shape(value))
    return wave + 0.003 * noise


def _chord(spec: InputSpec, value: Array, rng: np.random.Generator) -> Array:
    length = int(value.shape[-1])
    time = np.arange(length) / 16000.0
    rows = (*value.shape[:-1], 1)
    root = rng.uniform(100, 400, rows)
    return sum(0.2 * np.sin(2 * np.pi * root * f * time) for f in (1, 1.25, 1.5, 2)) * np.exp(-2 * (time % 0.5))


_TEXT = (
    b"The quick brown fox jumps over the lazy dog. import numpy as np\ndef area(r): return 3.14159 * r ** 2\n"
    b'<html><body><p>Dear reader,</p></body></html>\n{"name": "value", "list": [1, 2, 3]}\n'
)


def _words(value: Array, limit: int | None, rng: np.random.Generator) -> Array:
    """Returns bytes of text if indices are below about 256, otherwise few distinct words with geometric frequencies."""
    high = min(limit or 100, int(np.iinfo(value.dtype).max) if value.dtype.kind in "iu" else 100)
    if 128 < high <= 300:
        text: Array = np.frombuffer(_TEXT, np.uint8)
        start = int(rng.integers(len(_TEXT)))
        return np.resize(np.roll(text, -start), value.shape) % high
    drawn = rng.geometric(min(1.0, 8 / max(high, 8)), _shape(value))
    return np.minimum(drawn, max(high - 1, 0))
