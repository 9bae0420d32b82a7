"""ONNX Runtime's descriptions of a model's inputs, and the symbols of their dims."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from igniter.dialects.onnx.attributes import entries_of
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.dim_words import Place, is_anonymous, split_place
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.errors import IgniterError
from igniter.frontend.value_types import DimNames

if TYPE_CHECKING:
    from onnx import GraphProto
    from xdsl.dialects.builtin import ModuleOp

Shapes = Mapping[str, int]
"""A value for every symbolic dim."""


MOST_DIMS = 64
MOST_ELEMENTS = 1 << 26
"""The maximum size of a generated input. A dim of 2^40 in a file is a mistake, or worse."""


@dataclass(frozen=True)
class InputSpec:
    """ORT's description of an input: `dtype` is ONNX's name of the element type; a dim is an integer, a name or None.
    For a sequence, both describe its elements."""

    name: str
    dtype: str
    dims: tuple[int | str | None, ...]
    is_sequence: bool = False

    def symbols(self) -> tuple[str, ...]:
        """Returns the symbols that need a value. An unnamed dim gets a symbol made from the input's name."""
        found: dict[str, None] = {}
        for dim in self.exprs():
            found.update(dict.fromkeys(sorted(dim.symbols)))
        return tuple(found)

    def exprs(self) -> tuple[Expr, ...]:
        return tuple(_dim(self.name, axis, dim) for axis, dim in enumerate(self.dims))

    def shape(self, shapes: Shapes) -> tuple[int, ...]:
        """Returns the dims with sizes for the symbols. A symbol without a size, and an impossible shape, raise
        `IgniterError`."""
        try:
            shape = tuple(dim.evaluate(shapes) for dim in self.exprs())
        except KeyError as error:
            raise IgniterError(f"dim {error} of input '{self.name}' has no size") from None
        if len(shape) > MOST_DIMS:
            raise IgniterError(
                f"input '{self.name}' has {len(shape)} dims, and NumPy's arrays have at most {MOST_DIMS}"
            )
        if any(d < 0 for d in shape) or math.prod(shape) > MOST_ELEMENTS:
            raise IgniterError(
                f"cannot generate values for input '{self.name}' of shape {list(shape)}: it has more than "
                f"{MOST_ELEMENTS:,} elements, or a negative dim"
            )
        return shape

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype.lstrip("u").startswith("int")


# fmt: off
FLOATS = frozenset((
    "float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e8m0", "float4e2m1",
))
# fmt: on


def _dim(name: str, axis: int, dim: int | str | None) -> Expr:
    if isinstance(dim, int) and dim >= 0:
        return Expr.of(dim)
    if dim is None or isinstance(dim, int) or is_anonymous(dim):
        return Expr.of(f"{name}.{axis}")
    # Exporters write sums as names: "past_sequence_length + 1".
    if re.search(r"[-+*]", dim):
        try:
            found = Expr.parse(dim)
        except ValueError:
            return Expr.of(dim)
        # Some exporters write "-1" for an unknown size.
        return found if found.symbols else Expr.of(f"{name}.{axis}")
    return Expr.of(dim)


_TYPE = re.compile(r"(?:optional\()?(?P<sequence>seq\()?tensor\((?P<dtype>\w+)\)+")
"""ORT's names of the supported input types: tensors, sequences of tensors, and optionals of both."""


def specs_of(
    session: Any, given: Iterable[str] = (), elements: Mapping[str, Sequence[int | str | None]] | None = None
) -> list[InputSpec]:
    """Returns the inputs of an ORT session, except those in `given`. `elements` gives the dims of the elements of
    sequences, because ORT does not report them. Raises `IgniterError` for a map, a sequence of anything but tensors,
    and a sequence missing in `elements`."""
    found: list[InputSpec] = []
    left_out = set(given)
    for value in session.get_inputs():
        if value.name in left_out:
            continue
        match = _TYPE.fullmatch(value.type)
        dims = tuple(value.shape) if match is None or not match["sequence"] else (elements or {}).get(value.name)
        if match is None or dims is None:
            raise IgniterError(f"input '{value.name}' is of type {value.type}; give a value for it in `inputs`")
        found.append(InputSpec(value.name, match["dtype"], tuple(dims), bool(match["sequence"])))
    return found


def element_dims(graph: GraphProto) -> dict[str, list[int | str | None]]:
    """Returns the dims of a graph's inputs, for sequences of their elements. Only tensors of known rank are
    included."""
    found: dict[str, list[int | str | None]] = {}
    for value in graph.input:
        type_ = value.type
        while type_.WhichOneof("value") in ("optional_type", "sequence_type"):
            inner = type_.optional_type if type_.WhichOneof("value") == "optional_type" else type_.sequence_type
            type_ = inner.elem_type
        if type_.HasField("tensor_type") and type_.tensor_type.HasField("shape"):
            dims = type_.tensor_type.shape.dim
            found[value.name] = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]
    return found


def specs_of_module(module: ModuleOp) -> list[InputSpec]:
    """Returns the tensor inputs of an imported module. This works before ONNX Runtime loads the model."""
    names = DimNames.of(entries_of(module.attributes.get("onnx.model")))
    graph, found = main_graph(module), list[InputSpec]()
    for name, value in zip(graph.input_names, graph.body.args, strict=True):
        dims, element = known_dims_of(value.type), tensor_element(value.type)
        if dims is not None and element in BY_ATTR:
            params = [names.param(d) if d.constant is None else d.constant for d in dims]
            found.append(InputSpec(name, BY_ATTR[element].onnx_name, tuple(params)))
    return found


def symbols_of(specs: Sequence[InputSpec]) -> list[str]:
    """Returns the symbols of all inputs, in order of first occurrence."""
    return list(dict.fromkeys(s for spec in specs for s in spec.symbols()))


def checked_shapes(specs: Sequence[InputSpec], shapes: Shapes) -> dict[str, int]:
    """Returns `shapes` by the symbols of the inputs. A size is given for a symbol, for a place (`x:0`, `x.0`), or for a
    placeholder name of the model (`unk__7`), then for all its dims. Raises `IgniterError` for an unknown name, for a
    negative size, and for a size that contradicts the model."""
    known = symbols_of(specs)
    found: dict[str, int] = {}
    unknown: list[str] = []
    for name, size in shapes.items():
        dims = [Expr.of(name)] if name in known else _dims_called(specs, name)
        if not dims:
            unknown.append(name)
        for dim in dims:
            if dim.symbol is None and dim.constant != size:
                raise IgniterError(f"{name} is {dim} in the model; it cannot be {size}")
            if dim.symbol is not None and found.setdefault(dim.symbol, size) != size:
                raise IgniterError(f"{name} is {dim}, which cannot be {found[dim.symbol]} and {size}")
    if unknown:
        names = ", ".join(sorted(unknown))
        raise IgniterError(f"the model has no dim {names}; its dims are {', '.join(known) or 'fixed'}")
    wrong = [f"{name}={size}" for name, size in shapes.items() if size < 0]
    if wrong:
        raise IgniterError(f"{', '.join(wrong)}: a size cannot be negative")
    return found


def _dims_called(specs: Sequence[InputSpec], name: str) -> list[Expr]:
    """Returns the dims denoted by a name that is not a symbol."""
    place = (name.input, name.axis) if isinstance(name, Place) else split_place(name) or (name, 0)
    for spec in specs:
        if spec.name == place[0]:
            if isinstance(name, Place) and name.rank != len(spec.dims):
                raise IgniterError(f"input '{spec.name}' has {len(spec.dims)} dims, but {name.rank} sizes are given")
            if place[1] < len(spec.dims) and (name != spec.name or len(spec.dims) == 1):
                return [spec.exprs()[place[1]]]
    return [e for spec in specs for e, dim in zip(spec.exprs(), spec.dims, strict=True) if dim == name]
