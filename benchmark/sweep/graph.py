"""Small graphs under construction: their sizes, static or symbolic, and the inputs that fit them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, shape_inference

from benchmark.models.builder import Builder

STATIC, SYMBOLIC = "static", "symbolic"
FORMS = (STATIC, SYMBOLIC)
DEFAULT_OPSET = 18
SIDES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
Dim = int | tuple[str, int]
"""A fixed size, or an expression over symbols (`batch`, `2*height`, `past + sequence`) with its value."""
Feeds = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Fed:
    """An input: its type, its dims as expressions, and the range of its integers."""

    name: str
    kind: int
    dims: tuple[int | str, ...]
    below: int
    scale: float
    around: float


@dataclass(frozen=True)
class Made:
    """A model with its inputs, and the sizes of its symbols (in the static form too)."""

    model: onnx.ModelProto
    inputs: tuple[Fed, ...]
    sizes: dict[str, int]

    def feeds(self, sizes: Mapping[str, int] | None = None, seed: int = 0) -> Feeds:
        """Returns random inputs at some sizes of the symbols, by default those of the graph."""
        rng = np.random.default_rng(seed)
        return {fed.name: _values(fed, rng, sizes or self.sizes) for fed in self.inputs}

    def other_sizes(self) -> dict[str, int]:
        """Returns a second set of sizes, at which the symbolic form is checked too: none of them is the first."""
        return {name: size + 1 if size < 8 else size - size // 3 for name, size in self.sizes.items()}


def _values(fed: Fed, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
    shape = [_evaluated(d, sizes) for d in fed.dims]
    dtype = helper.tensor_dtype_to_np_dtype(fed.kind)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        low, high = (-128, 128) if fed.kind == TensorProto.INT8 else (0, fed.below)
        return rng.integers(low, high, shape).astype(dtype)
    return np.asarray(fed.around + fed.scale * rng.standard_normal(shape)).astype(dtype)


def _evaluated(dim: int | str, sizes: Mapping[str, int]) -> int:
    # The expressions are those of the groups; there are no others.
    return dim if isinstance(dim, int) else int(eval(dim, {"__builtins__": {}}, dict(sizes)))


class Sketch(Builder):
    """A graph under construction in one of the two forms.

    Seed 0 has the sizes as they are written in the groups; another seed draws sizes nearby (`wide`, `side`), the same
    for both forms. Weights are drawn by the name of the graph and the seed.
    """

    def __init__(self, name: str, form: str, seed: int):
        number = zlib.crc32(name.encode())
        super().__init__(seed=number + seed, opset=DEFAULT_OPSET)
        self._model.ir_version = 10
        self.symbolic, self.varied = form == SYMBOLIC, seed != 0
        self.sides_are_free = bool(number % 2)
        """True if the symbolic form also leaves the sides of its images free; every other graph does."""
        self._draws = np.random.default_rng([number, seed])
        self.fed: list[Fed] = []
        self.sizes: dict[str, int] = {}
        self._declared: dict[str, onnx.ValueInfoProto] = {}

    def use_opset(self, version: int) -> None:
        """Sets the version of ONNX's ops for the whole graph."""
        self._model.opset_import[0].version = version

    # -- sizes --------------------------------------------------------------------------------------------------------

    def wide(self, size: int, multiple: int = 1) -> int:
        """Returns a number of channels or columns: `size`, or for another seed a multiple of `multiple` near it."""
        if not self.varied or size <= 3:
            return size
        step = multiple if size < 16 or self._draws.random() < 0.3 else int(np.lcm(multiple, 8))
        return max(1, round(size * self._draws.uniform(0.6, 1.5) / step)) * step

    def side(self, size: int, multiple: int = 1) -> int:
        """Returns a length or a side of an image; sizes up to 2 stay."""
        if not self.varied or size <= 2:
            return size
        return max(1, round(size * self._draws.uniform(0.75, 1.3) / multiple)) * multiple

    # -- inputs and outputs -------------------------------------------------------------------------------------------

    def input(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        name: str,
        *dims: Dim,
        kind: int = TensorProto.FLOAT,
        below: int = 100,
        scale: float = 1.0,
        around: float = 0.0,
    ) -> str:
        """Adds an input of normally distributed numbers, or of integers from 0 to `below` (for i8 of all)."""
        for dim in dims:
            if isinstance(dim, tuple) and dim[0].isidentifier():
                self.sizes[dim[0]] = dim[1]
        self.fed.append(Fed(name, kind, tuple(d if isinstance(d, int) else d[0] for d in dims), below, scale, around))
        shown = [d if isinstance(d, int) else d[0] if self.symbolic else d[1] for d in dims]
        return super().input(name, *shown, kind=kind)

    def image(self, channels: int, *sides: int, name: str = "x", batch: int = 1, **more: Any) -> str:
        """Adds an image (or a signal, or a volume) with a free batch, and in every other graph with free sides."""
        dims: list[Dim] = list(sides)
        if self.sides_are_free:
            dims = list(zip(SIDES[len(sides)], sides, strict=True))
        return self.input(name, ("batch", batch), channels, *dims, **more)

    def tokens(self, length: int, width: int, name: str = "x", batch: int = 1, **more: Any) -> str:
        """Adds [batch, sequence, width]."""
        return self.input(name, ("batch", batch), ("sequence", length), width, **more)

    def declare(self, output: str, like: str, kind: int = TensorProto.FLOAT) -> str:
        """Gives an output the dims of an input; for ops whose shape ONNX does not infer."""
        info = next(i for i in self._graph.input if i.name == like)
        self._declared[output] = helper.make_tensor_value_info(output, kind, None)
        self._declared[output].type.tensor_type.shape.CopyFrom(info.type.tensor_type.shape)
        return output

    def made(self, outputs: Iterable[str]) -> Made:
        """Ends the graph; raises if a shape cannot be inferred."""
        infos = (self._declared.get(name) or helper.make_empty_tensor_value_info(name) for name in outputs)
        self._graph.output.extend(infos)
        inferred = shape_inference.infer_shapes(self._model, check_type=True, strict_mode=True, data_prop=True)
        del inferred.graph.value_info[:]
        return Made(inferred, tuple(self.fed), self.sizes)

    # -- what exporters write for shapes ------------------------------------------------------------------------------

    def dim(self, x: str, axis: int) -> str:
        """Adds the nodes that read one dim of a tensor, as [1]; in the static form too, as tracing exporters leave
        them where they do not fold."""
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.scalar(axis), axis=0), self.integers(0))

    def reshape(self, x: str, *parts: int | str) -> str:
        """Adds a Reshape; with names of dims among the parts, the Concat that joins them too."""
        if all(isinstance(p, int) for p in parts):
            return self.op("Reshape", x, self.constant(np.array(parts, np.int64)))
        names = [self.integers(p) if isinstance(p, int) else p for p in parts]
        return self.op("Reshape", x, self.op("Concat", *names, axis=0))

    def scalar(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def numbers(self, *values: float) -> str:
        return self.constant(np.array(values, np.float32))

    def cast(self, x: str, kind: int) -> str:
        return self.op("Cast", x, to=kind)

    def heads(self, x: str, heads: int, width: int, perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        """[batch, sequence, heads * width] to [batch, heads, sequence, width], or another order."""
        return self.op("Transpose", self.reshape(x, 0, 0, heads, width), perm=list(perm))


Build = Callable[[Sketch], str | Sequence[str]]
"""Adds a graph to a sketch; returns its outputs."""


@dataclass(frozen=True)
class Graph:
    """A graph of the sweep. Its name has the sizes of seed 0."""

    group: str
    kind: str
    build: Build = field(compare=False)

    @property
    def name(self) -> str:
        return f"{self.group}/{self.kind}"

    def make(self, form: str = STATIC, seed: int = 0) -> Made:
        """Builds the model."""
        sketch = Sketch(self.name, form, seed)
        outputs = self.build(sketch)
        return sketch.made([outputs] if isinstance(outputs, str) else outputs)


def times(sizes: Iterable[int]) -> str:
    """Sizes as names have them: `64x56x56`."""
    return "x".join(map(str, sizes))
