"""From a seed to a network of images: convolutions, and what networks have between them.

What a node makes of its inputs is not worked out here: every node is tried in ONNX Runtime as it is added, at all sizes
that the model will run at, and a rule whose node is refused is undone. So the rules of `image_ops` may be as wild as
they like, the shapes of all values are known at every size, and what is amplified beyond measure is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from igniter.dialects.sym.expr import Expr
from tests.fuzz.graph import TYPES, Array, Case, GraphBuilder, Value, make_model, random_array

SYMBOLS = ("n", "h", "w", "d")
OPSETS = (9, 11, 13, 17, 17, 18, 19, 20, 21)
LARGEST_VALUE = 1e3
PLAIN = "cpu-fusion"
FUSIONS = (
    PLAIN,
    PLAIN,
    "form-fusion-regions{contractions=all singletons=all},choose-layouts,lift-constants,pack-weights",
    "form-fusion-regions{contractions=all singletons=all max-nodes=2},choose-layouts,lift-constants,pack-weights",
)
"""As by default, as much as can be in large regions, and in small ones, between which images pass."""


@dataclass(frozen=True)
class Measure:
    """The size of a network."""

    channels: tuple[int, ...]
    sides: tuple[int, ...]
    elements: int
    """No tensor has more elements than this."""
    products: int
    """No convolution multiplies more often than this."""


SMALL = Measure(
    (1, 2, 3, 4, 5, 8, 8, 16, 16, 17, 24, 32, 48),
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 21, 28, 33),
    60_000,
    20_000_000,
)
"""Odd in every way."""
LARGE = Measure((3, 16, 40, 64, 72, 96, 128, 256), (7, 13, 14, 28, 31, 56, 64), 1_000_000, 150_000_000)
"""What does not fit into the first caches: schedules in groups of panels, threads, what is fetched ahead."""


class Refused(Exception):
    """A rule does not apply here, or ONNX Runtime does not run what it made."""


class ImageBuilder(GraphBuilder):
    """A network under construction, with what every value holds at each of its sizes."""

    def __init__(
        self, rng: random.Random, opset: int, spatial: int, sizes: Sequence[dict[str, int]], measure: Measure = SMALL
    ):
        super().__init__(rng, opset)
        self.spatial, self.sizes, self.measure = spatial, tuple(sizes), measure
        self.samples: dict[str, tuple[Array, ...]] = {}
        """The arrays of every value but weights, one for each of `sizes`."""

    def image(self, dims: Sequence[Expr]) -> Value:
        """A graph input of floats."""
        value = self.input("f32", dims, exact=False)
        self.samples[value.name] = tuple(random_array(self, value, s) for s in self.sizes)
        return value

    def add(self, op: str, inputs: Sequence[Value | str], results: int = 1, **attrs: Any) -> Value:
        """Appends a node that ONNX Runtime runs at every size; its first result. `Refused` where it does not."""
        return self.add_all(op, inputs, results, **attrs)[0]

    def add_all(self, op: str, inputs: Sequence[Value | str], results: int, **attrs: Any) -> list[Value]:
        """The same, with all results."""
        names = [i if isinstance(i, str) else i.name for i in inputs]
        node = helper.make_node(op, names, [self.fresh("v") for _ in range(results)], **attrs)
        node.name = f"{op}_{self._numbers}"
        made = self._run(node)
        values: list[Value] = []
        for name, arrays in zip(node.output, zip(*made, strict=True), strict=True):
            # Pools of nothing take ONNX Runtime's process down.
            if any(a.size == 0 or a.size > self.measure.elements or not _is_tame(a) for a in arrays):
                raise Refused("too much, or nothing")
            self.samples[name] = arrays
            kind = next(k for k, code in TYPES.items() if code == helper.np_dtype_to_tensor_dtype(arrays[0].dtype))
            values.append(Value(name, kind, self._dims(arrays), exact=False))
        self.nodes.append(node)
        self.values.extend(values)
        return values

    def _dims(self, arrays: Sequence[Array]) -> tuple[Expr, ...]:
        """Numbers where a dim is the same at every size, else a symbol of its own."""
        sizes = zip(*(a.shape for a in arrays), strict=True)
        return tuple(Expr.of(s[0]) if len(set(s)) == 1 else Expr.of(self.fresh("s")) for s in sizes)

    def _run(self, node: onnx.NodeProto) -> list[list[Array]]:
        """The results of ONNX Runtime for a node at each size."""
        from tests.fuzz.run import reference

        images = [i for i in dict.fromkeys(node.input) if i in self.samples]
        weights = [numpy_helper.from_array(self.weights[i], i) for i in node.input if i in self.weights]
        inputs = [
            helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(a[0].dtype), [None] * a[0].ndim)
            for i, a in ((i, self.samples[i]) for i in images)
        ]
        outputs = [onnx.ValueInfoProto(name=o) for o in node.output]
        graph = helper.make_graph([node], "alone", inputs, outputs, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        feeds = [{i: self.samples[i][k] for i in images} for k in range(len(self.sizes))]
        try:
            return reference(model, feeds)
        except Exception as error:
            raise Refused(str(error)) from error

    # -- what rules ask --

    def shapes(self, value: Value) -> tuple[tuple[int, ...], ...]:
        """The shape of a value at each size."""
        return tuple(a.shape for a in self.samples[value.name])

    def channels(self, value: Value) -> int:
        """The number of channels, which has to be the same at every size."""
        known = value.dims[1].constant
        if not known:
            raise Refused("no number of channels")
        return known

    def images(self) -> list[Value]:
        """The values that are images of this network: batch, channels, places."""
        return [v for v in self.values if v.type == "f32" and v.rank == self.spatial + 2]

    def pick(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """An image; recent ones more often, so that chains grow."""
        found = [v for v in self.images() if fits(v)]
        if not found:
            raise Refused("no image")
        return self.rng.choice(found[-2:] if self.rng.random() < 0.7 else found)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def normal(self, shape: Sequence[int], scale: float = 1.0) -> Value:
        """A weight of random numbers."""
        return self.weight(np.asarray(self.data.standard_normal(list(shape)) * scale), "f32")

    def uniform(self, shape: Sequence[int], low: float, high: float) -> Value:
        return self.weight(np.asarray(self.data.uniform(low, high, list(shape))), "f32")


def _is_tame(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.max(np.abs(array), initial=0.0) <= LARGEST_VALUE)


def make_image_case(seed: int) -> Case:
    """The network of a seed: always the same."""
    from tests.fuzz.image_ops import RULES

    rng = random.Random(f"images {seed}")
    spatial = rng.choice((2,) * 8 + (1, 1, 3))
    dynamic = rng.random() < 0.6
    measure = LARGE if spatial < 3 and rng.random() < 0.15 else SMALL
    sizes = [_sizes(rng, spatial, measure) for _ in range(3 if dynamic else 1)]
    b = ImageBuilder(rng, rng.choice(OPSETS), spatial, sizes, measure)
    first = _first_dims(b, dynamic)
    b.image(first)
    if rng.random() < 0.2:
        b.image([first[0], Expr.of(rng.choice(measure.channels)), *first[2:]])
    rules, weights = zip(*RULES, strict=True)
    wanted = rng.choice((2, 4, 8, 14) if measure is SMALL else (2, 4, 8))
    for _ in range(10 * wanted):
        if len(b.nodes) >= wanted:
            break
        _attempt(b, rng.choices(rules, weights)[0])
    if not b.nodes:
        b.add("Identity", [b.inputs[0]])
    made = [v for v in b.values if v not in b.inputs and v.type in ("f32", "i64")]
    read = {name for node in b.nodes for name in node.input}
    leaves = [v for v in made if v.name not in read]
    outputs = list(dict.fromkeys([*leaves, *rng.sample(made, min(len(made), rng.choice((0, 0, 1, 2))))]))
    model = make_model(b, outputs)
    used = [i.name for i in model.graph.input]
    feeds = tuple({name: b.samples[name][k] for name in used} for k in range(len(b.sizes)))
    return Case(seed, model, feeds, b.sizes, rng.choice(FUSIONS), rng.choice((1, 1, 3)))


def _attempt(b: ImageBuilder, rule: Callable[[ImageBuilder], None]) -> None:
    """Applies a rule, wholly or not at all."""
    nodes, values = len(b.nodes), len(b.values)
    try:
        rule(b)
    except Refused:
        del b.nodes[nodes:], b.values[values:]


def _sizes(rng: random.Random, spatial: int, measure: Measure) -> dict[str, int]:
    sides = measure.sides if spatial < 3 else measure.sides[:9]
    found = {s: rng.choice(sides) for s in SYMBOLS[1:]}
    return {"n": rng.choice((1, 1, 1, 2, 3)), **found}


def _first_dims(b: ImageBuilder, dynamic: bool) -> list[Expr]:
    """Batch, channels and places: numbers or symbols, also the same one twice."""
    rng, typical = b.rng, b.sizes[0]
    batch = Expr.of("n") if dynamic and rng.random() < 0.7 else Expr.of(typical["n"])
    dims = [batch, Expr.of(rng.choice(b.measure.channels))]
    for name in SYMBOLS[1 : b.spatial + 1]:
        symbol = Expr.of(rng.choice((name, name, name, "h")))
        if not dynamic or rng.random() < 0.2:
            dims.append(Expr.of(typical[name]))
        else:
            dims.append(symbol)
    return dims
