"""Random inputs that a model accepts: shapes from its symbolic dims, integers in the ranges that its graph allows.

An integer input that ends up as the indices of a `Gather` has to be below the length of what is gathered from. Where
the graph says nothing, the name of the input does: masks are ones and then zeros, positions count up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from igniter.analysis.expr import Expr
from igniter.errors import IgniterError

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue

Shapes = Mapping[str, int]
"""A value for every symbolic dim."""


@dataclass(frozen=True)
class InputSpec:
    """An input as ORT describes it: `dtype` is ONNX's name of the element type, a dim an integer, a name or None."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...]

    def symbols(self) -> tuple[str, ...]:
        """The names that need a value, those of unnamed dims made up from the input's."""
        found: dict[str, None] = {}
        for dim in self.exprs():
            found.update(dict.fromkeys(sorted(dim.symbols)))
        return tuple(found)

    def exprs(self) -> tuple[Expr, ...]:
        return tuple(_dim(self.name, axis, dim) for axis, dim in enumerate(self.dims))

    def shape(self, shapes: Shapes) -> tuple[int, ...]:
        """The dims with values for the symbols; `IgniterError` names a symbol that has none."""
        try:
            return tuple(dim.evaluate(shapes) for dim in self.exprs())
        except KeyError as error:
            raise IgniterError(f"no size is given for dim {error} of input '{self.name}'") from None


def _dim(name: str, axis: int, dim: int | str | None) -> Expr:
    if isinstance(dim, int):
        return Expr.of(dim)
    if dim is None or not dim:
        return Expr.of(f"{name}.{axis}")
    # Exporters write sums as names: "past_sequence_length + 1".
    if re.search(r"[-+*]", dim):
        try:
            return Expr.parse(dim)
        except ValueError:
            return Expr.of(dim)
    return Expr.of(dim)


def specs_of(session: Any) -> list[InputSpec]:
    """The inputs of an ORT session; `IgniterError` for one that is not a tensor."""
    found: list[InputSpec] = []
    for value in session.get_inputs():
        match = re.fullmatch(r"tensor\((\w+)\)", value.type)
        if match is None:
            raise IgniterError(f"input '{value.name}' is a {value.type}; give a value for it in `inputs`")
        found.append(InputSpec(value.name, match[1], tuple(value.shape)))
    return found


# -- shapes -----------------------------------------------------------------------------------------------------------

_BATCHES = (1, 3, 1, 2)
_LENGTHS = ((1, 1, 1, 1), (8, 7, 5, 6), (32, 17, 23, 9), (13, 13, 13, 13))


def default_shapes(specs: Sequence[InputSpec]) -> list[dict[str, int]]:
    """Several values for the symbolic dims: all ones, all different (so that no two can be mistaken), all equal."""
    symbols = list(dict.fromkeys(s for spec in specs for s in spec.symbols()))
    if not symbols:
        return [{}]
    cases: list[dict[str, int]] = []
    for batch, lengths in zip(_BATCHES, _LENGTHS, strict=True):
        others = 0
        case: dict[str, int] = {}
        for symbol in symbols:
            if _is_batch(symbol):
                case[symbol] = batch
            else:
                case[symbol] = lengths[others % len(lengths)]
                others += 1
        if case not in cases:
            cases.append(case)
    return cases


def _is_batch(symbol: str) -> bool:
    return symbol in ("N", "B", "b", "n") or "batch" in symbol.lower()


# -- values -----------------------------------------------------------------------------------------------------------

_FLOATS = frozenset(("float", "double", "float16", "bfloat16"))
_NUMPY = {"float": "float32", "double": "float64"}


def random_inputs(
    specs: Sequence[InputSpec], shapes: Shapes, limits: Mapping[str, int], seed: int = 0
) -> dict[str, np.ndarray[Any, Any]]:
    """A value for every input, the same for the same seed; `limits` bounds integer inputs from above."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return {spec.name: _random(spec, spec.shape(shapes), limits.get(spec.name), rng) for spec in specs}


def _random(
    spec: InputSpec, shape: tuple[int, ...], limit: int | None, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    import numpy as np

    if spec.dtype in _FLOATS:
        return rng.standard_normal(shape).astype(_dtype(spec.dtype))
    if spec.dtype == "bool":
        return (_mask(shape, rng) if "mask" in spec.name.lower() else rng.integers(0, 2, shape)).astype(bool)
    if spec.dtype == "string":
        return rng.integers(0, 100, shape).astype(str).astype(object)
    try:
        dtype = _dtype(spec.dtype)
        info = np.iinfo(dtype)
    except (TypeError, ValueError):
        raise IgniterError(f"no random values of type {spec.dtype}: give input '{spec.name}' in `inputs`") from None
    name = spec.name.lower()
    if "mask" in name:
        return _mask(shape, rng).astype(dtype)
    if "position" in name and shape:
        count = np.arange(shape[-1]) if limit is None else np.arange(shape[-1]) % limit
        return np.broadcast_to(count, shape).astype(dtype)
    if "token_type" in name or "segment" in name:
        limit = 2 if limit is None else min(limit, 2)
    low = 0 if limit is not None or "id" in name or info.min == 0 else -8
    high = min(limit if limit is not None else 100 if "id" in name else 8, int(info.max) + 1)
    return rng.integers(low, max(high, low + 1), shape).astype(dtype)


def _mask(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Ones and then zeros along the last axis, never only zeros, as padding makes them."""
    import numpy as np

    if not shape or shape[-1] == 0:
        return np.ones(shape)
    lengths = rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return (np.arange(shape[-1]) < lengths).astype(np.float64)


def _dtype(name: str) -> Any:
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NUMPY.get(name, name))


# -- what the graph allows --------------------------------------------------------------------------------------------

_KEEPS_VALUES = frozenset(
    ("Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
)
_INDEXED = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1}


def index_limits(module: ModuleOp) -> dict[str, int]:
    """For every input of the main graph that is used as indices: the smallest length of what it is an index into."""
    from igniter.dialects.onnx.structure import main_graph

    graph = main_graph(module)
    limits: dict[str, int] = {}
    for name, value in zip(graph.input_names, graph.body.args, strict=True):
        found = [limit for limit in _limits(value) if limit > 0]
        if found:
            limits[name] = min(found)
    return limits


def _limits(value: SSAValue) -> Iterator[int]:
    """The lengths that `value`, or its elements moved about, are indices into."""
    from igniter.dialects.onnx.base import OnnxOp

    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            op = use.operation
            if not isinstance(op, OnnxOp) or op.domain not in ("", "ai.onnx"):
                continue
            if _INDEXED.get(op.op_type) == use.index:
                limit = _length(op.operands[0], int(op.attr("axis", 0)))
                if limit is not None:
                    yield limit
            elif op.op_type in _KEEPS_VALUES and use.index == 0:
                todo.extend(op.results)


def _length(data: SSAValue, axis: int) -> int | None:
    from xdsl.dialects.builtin import TensorType

    if not isinstance(data.type, TensorType):
        return None
    shape = data.type.get_shape()
    if not -len(shape) <= axis < len(shape) or shape[axis] < 0:
        return None
    return shape[axis]
