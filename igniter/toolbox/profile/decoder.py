"""Decoders with a cache of keys and values: their recognition, and their speed on a device.

A model is a decoder if outputs are inputs with more of one dim: the cache of the tokens so far, `past`, is returned
with the new ones behind it, `past + new`. The shapes show that. Names (`past_key_values.0.key`, `present.0.key`) decide
only where the length of the output is a symbol of its own, as in GroupQueryAttention. Where input and output are one
buffer (`past_present_share_buffer`), `past` may be a number, the capacity of the buffer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.analysis.devices import Device
from igniter.analysis.onnx.op_counts import packed_bytes
from igniter.dialects.onnx.types import ELEMENT_TYPES
from igniter.dialects.sym.expr import ZERO, Expr, product
from igniter.errors import IgniterError
from igniter.toolbox.profile.profile import NodeProfile, Port, Profile
from igniter.toolbox.profile.roofline import estimate, node_time

PRECISIONS: dict[str, tuple[str, float]] = {
    "float": ("float", 32.0),
    "float16": ("float16", 16.0),
    "int8": ("float16", 8.5),
    "int4": ("float16", 4.5),
}
"""Weights of products: the type of the multiplication, and bits of an element. Blocks of 32 have a scale of 16 bits."""

CONTEXTS = (128, 512, 1024, 2048, 4096)

_BITS = {row.onnx_name: row.bits for row in ELEMENT_TYPES}
_PAST = re.compile(r"past|cache|kv", re.IGNORECASE)
_PRESENT = re.compile(r"present|past|cache|kv", re.IGNORECASE)


@dataclass(frozen=True)
class Decoder:
    """The form of a model's cache."""

    past: str
    """The symbol of the number of tokens in the cache; "" where the dim is `capacity`, however many are in use."""
    new: Expr
    """The tokens of a run: a number, or the symbol of the input's length."""
    total: str
    """The symbol of past and new together, if there is one; else ""."""
    cache: tuple[Port, ...]
    """The inputs that are the cache."""
    capacity: int = 0
    """The tokens in a full buffer of fixed length; 0 for a growing cache."""

    def sizes(self, past: int, new: int) -> dict[str, int]:
        """Returns the sizes of a run with `past` tokens in the cache. Raises `IgniterError` if the model takes another
        number of new tokens."""
        symbol = self.new.symbol
        if symbol is None and self.new.constant != new:
            raise IgniterError(f"the model takes {self.new} new tokens in a run, and not {new}")
        found = {**({self.past: past} if self.past else {}), **({symbol: new} if symbol is not None else {})}
        return {**found, **({self.total: past + new} if self.total else {})}

    def cache_bytes(self, sizes: Mapping[str, int]) -> Expr:
        """Returns the bytes of the cache."""
        values = {k: Expr.of(v) for k, v in sizes.items()}
        found = (packed_bytes(product(p.tensor.dims or ()), _BITS.get(p.tensor.element, 0)) for p in self.cache)
        return sum(found, ZERO).substitute(values)


@dataclass(frozen=True)
class Generation:
    """A context length at a precision: `prefill` reads `context` tokens, `decode` makes one more behind them; seconds,
    `None` where the model takes one token at a time, or none at all. `fits` is false where memory is too small."""

    context: int
    precision: str
    prefill: float | None
    decode: float | None
    cache_bytes: int
    weight_bytes: int
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """Converts the figures to JSON values; tokens are of the whole batch's sequences, each."""
        return {
            "context": self.context,
            "weights": self.precision,
            "prefill_seconds": self.prefill,
            "prefill_tokens_per_second": self.context / self.prefill if self.prefill else None,
            "decode_seconds": self.decode,
            "decode_tokens_per_second": 1 / self.decode if self.decode else None,
            "cache_bytes": self.cache_bytes,
            "weight_bytes": self.weight_bytes,
            "fits": self.fits,
        }


def find_decoder(profile: Profile) -> Decoder | str:
    """Returns the model as a decoder, or the reason why it is none."""
    found: list[tuple[Port, Expr, Expr]] = []
    left = [p for p in profile.inputs if len(p.tensor.dims or ()) >= 3]
    for output in profile.outputs:
        for port in left:
            grown = _grown(port, output)
            if grown is not None:
                found.append((port, *grown))
                left.remove(port)
                break
    if not found:
        return (
            "it is no decoder with a cache: no output is an input with more of one dim, as present.0.key is "
            "past_key_values.0.key. A model that is given all tokens each time is estimated with --sizes"
        )
    _, past, total = found[0]
    if any(p != past or t != total for _, p, t in found):
        lengths = ", ".join(sorted({str(p) for _, p, _ in found}))
        return f"it is no decoder that is known: its caches have several lengths, {lengths}"
    ports = tuple(p for p, _, _ in found)
    name, new = past.symbol or "", total - past
    if name and name not in new.symbols and (new.symbol is not None or new.constant is not None):
        return Decoder(name, new, "", ports)
    tokens = _tokens(profile, past.symbols | total.symbols)
    if tokens is None or total.symbol is None:
        return f"it is no decoder that is known: its cache of {past} comes back with {total}"
    return Decoder(name, tokens, total.symbol if total.symbol != name else "", ports, past.constant or 0)


def _grown(port: Port, output: Port) -> tuple[Expr, Expr] | None:
    """Returns the length of a cache before and after, where `output` is `port` with more along one dim."""
    before, after = port.tensor.dims or (), output.tensor.dims or ()
    if port.tensor.element != output.tensor.element or len(before) != len(after):
        return None
    different = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
    if len(different) != 1 or (different[0][0].symbol is None and different[0][0].constant is None):
        return None
    past, total = different[0]
    step = (total - past).constant
    if past.symbol is not None and (
        (step is not None and step > 0) or (step is None and (total - past).symbol is not None)
    ):
        return past, total
    # A length of its own, or the longer one of it and the past, as for a shared buffer.
    others = total.symbols - past.symbols
    named = _PAST.search(port.name) and _PRESENT.search(output.name)
    return (past, Expr.of(next(iter(others)))) if named and len(others) == 1 else None


def _tokens(profile: Profile, lengths: frozenset[str]) -> Expr | None:
    """Returns the length of the first two-dimensional integer input other than those with a cache length, such as a
    mask."""
    for port in profile.inputs:
        dims = port.tensor.dims or ()
        if port.tensor.element in ("int64", "int32") and len(dims) == 2 and not lengths & dims[1].symbols:
            return dims[1]
    return None


# -- time -------------------------------------------------------------------------------------------------------------


def generation(
    profile: Profile,
    decoder: Decoder,
    device: Device,
    sizes: Mapping[str, int],
    contexts: Sequence[int] = CONTEXTS,
    precisions: Sequence[str] = tuple(PRECISIONS),
) -> list[Generation]:
    """Returns the time of prefill and decode at each context length, for each precision of the weights of products.

    `sizes` are those of the other symbols; the batch, which is the first dim of the cache, is 1 without one.
    """
    batch = (decoder.cache[0].tensor.dims or (ZERO,))[0].symbol
    others = {**({batch: 1} if batch is not None else {}), **sizes}
    found: list[Generation] = []
    for context in _held(decoder, contexts):
        reading = None if decoder.new.symbol is None else _run(profile, decoder, others, 0, context)
        making = _run(profile, decoder, others, context, 1) if decoder.new.symbol or decoder.new.constant == 1 else None
        cache = decoder.cache_bytes({**others, **decoder.sizes(context, decoder.new.constant or 1)}).constant or 0
        for precision in precisions:
            weights = _weight_bytes(profile, precision)
            found.append(
                Generation(
                    context,
                    precision,
                    None if reading is None else _seconds(reading, device, precision),
                    None if making is None else _seconds(making, device, precision),
                    cache,
                    weights,
                    not device.memory or weights + cache <= device.memory,
                )
            )
    return found


def _held(decoder: Decoder, contexts: Sequence[int]) -> Sequence[int]:
    """Returns the context lengths behind which a cache of fixed length has room for one more token; of the usual ones
    at least one. Raises `IgniterError` for other requested lengths."""
    if not decoder.capacity:
        return contexts
    most = decoder.capacity - 1
    over = [c for c in contexts if c > most]
    if over and tuple(contexts) != CONTEXTS:
        raise IgniterError(
            f"the cache has room for {decoder.capacity} tokens, and a context of {over[0]} with one more needs "
            f"{over[0] + 1}: give --context up to {most}"
        )
    return [c for c in contexts if c <= most] or [most]


def _run(profile: Profile, decoder: Decoder, others: Mapping[str, int], past: int, new: int) -> Profile:
    return profile.at({**others, **decoder.sizes(past, new)})


def _seconds(profile: Profile, device: Device, precision: str) -> float:
    # Names the symbols without a size.
    if any(n.cost.flops.constant is None or n.cost.moved.constant is None for n in profile.nodes):
        estimate(profile, device)
    element, bits = PRECISIONS[precision]
    times = 0.0
    for node in profile.nodes:
        weights = _product_bytes(node)
        saved = weights - _product_elements(node) * bits / 8
        times += node_time(node, device, element if weights else "", saved).seconds
    return times


def is_product_weight(node: NodeProfile, rank: int) -> bool:
    """True if a weight of a node is quantised: a matrix of a product."""
    return bool(node.cost.macs.terms) and rank >= 2


def _product_bytes(node: NodeProfile) -> int:
    return sum(w.nbytes for w in node.weights if is_product_weight(node, len(w.tensor.dims or ())))


def _product_elements(node: NodeProfile) -> int:
    return sum(w.parameters for w in node.weights if is_product_weight(node, len(w.tensor.dims or ())))


def _weight_bytes(profile: Profile, precision: str) -> int:
    """Returns the bytes of all weights, those of products at a precision, each once."""
    bits = PRECISIONS[precision][1]
    sizes: dict[object, float] = {}
    for node in profile.nodes:
        for w in node.weights:
            product_weight = w.parameters and is_product_weight(node, len(w.tensor.dims or ()))
            size = w.parameters * bits / 8 if product_weight else w.nbytes
            # A table that is both read and multiplied, such as tied embeddings, is stored in the wider of its forms.
            sizes[w.key] = max(size, sizes.get(w.key, 0.0))
    return round(sum(sizes.values()))
