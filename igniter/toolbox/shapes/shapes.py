"""The shape and type of every value of a model, as expressions of the symbols of its inputs.

    model_shapes(module) -> ModelShapes       of a module after `infer-shapes`

Values of nested graphs are included, with their place (`scope`); those of functions where `inline-functions` replaced
the calls. A symbol absent from all inputs is a size known only at run time, such as the number of elements found by
NonZero. `ModelShapes.origins` has the node behind each of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from igniter.analysis.onnx.assumptions import declared_types, graph_assumptions
from igniter.dialects.onnx.attributes import text_of, texts_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.dialects.onnx.types import BY_ATTR, UNKNOWN
from igniter.dialects.onnx.verify import type_name
from igniter.dialects.sym.expr import Expr, symbols_of
from igniter.dialects.sym.requirements import Requirement
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of, tensor_element
from igniter.toolbox.object_html import shapes_html

Kind = Literal["input", "weight", "value"]


@dataclass(frozen=True)
class ValueShape:
    """One value. `dims` is `None` where the rank is not known, or the value is no tensor."""

    name: str
    """Its name in the model, behind the name of the node around its graph: `loop/body/y`."""
    scope: str
    """The nested graph around it, `loop/body`; "" for the main graph."""
    kind: Kind
    node: str
    """The name of its producer, "" for inputs and weights."""
    op: str
    """The producer's op, with the domain where it is not ONNX's own."""
    type: str
    """The element type, by NumPy's name, or the whole type of a value other than a tensor, in ONNX's form."""
    dims: tuple[Expr, ...] | None
    is_output: bool = False


@dataclass(frozen=True)
class InputDims:
    """The dims of an input: `declared` by the model (`None` without a name), and in the symbols of `ModelShapes`."""

    name: str
    declared: tuple[Expr | None, ...] | None
    dims: tuple[Expr, ...] | None


@dataclass(frozen=True)
class ModelShapes:
    """The values of a model in the order of its nodes."""

    values: tuple[ValueShape, ...]
    inputs: tuple[InputDims, ...]
    assumptions: tuple[Requirement, ...]
    """Relations in every valid run of the model, beyond those visible in the dims of the inputs."""
    origins: Mapping[str, str]
    """For each symbol absent from all inputs, its dependence in words."""

    def __repr__(self) -> str:
        symbols = f", in {', '.join(self.symbols)}" if self.symbols else ""
        return f"<ModelShapes: {len(self.values)} values, {len(self.inputs)} inputs{symbols}>"

    def _repr_html_(self) -> str:
        """Returns the table of values, for notebooks."""
        return shapes_html(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the inputs, in the order of their appearance."""
        found: dict[str, None] = {}
        for given in self.inputs:
            for dim in given.dims or ():
                found.update(dict.fromkeys([dim.symbol] if dim.symbol is not None else sorted(dim.symbols)))
        return tuple(found)

    def unknown_of(self, value: ValueShape) -> list[str]:
        """Returns the dependences of a value's shape besides the inputs' shapes, in words."""
        if value.dims is None:
            return [] if tensor_like(value.type) is None else ["its rank is not known"]
        return list(dict.fromkeys(self.origins[s] for s in sorted(symbols_of(value.dims)) if s in self.origins))


def tensor_like(type_: str) -> str | None:
    """Returns the type, if it is an element type; `None` for sequences, optionals and maps."""
    return None if type_.startswith(("seq(", "map(", "optional(", "sparse_", "!onnx.")) else type_


def model_shapes(module: ModuleOp) -> ModelShapes:
    """Returns the known facts of every value in the module's main graph and the graphs nested in it."""
    graph = main_graph(module)
    inputs = tuple(
        InputDims(name, None if dims is None else tuple(dims), known_dims_of(arg.type))
        for name, arg, type_ in zip(graph.input_names, graph.body.args, declared_types(graph), strict=True)
        for dims in (declared_dims(type_),)
    )
    lister = _Lister()
    lister.graph(graph)
    symbols = {s for i in inputs for s in symbols_of(i.dims or ())}
    origins = {s: told for s, told in lister.origins.items() if s not in symbols}
    return ModelShapes(tuple(lister.values), inputs, graph_assumptions(graph), origins)


@dataclass
class _Lister:
    values: list[ValueShape] = field(default_factory=list[ValueShape])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    _taken: dict[str, int] = field(default_factory=dict[str, int])

    def graph(self, graph: GraphOp) -> None:
        """Lists the main graph."""
        self._block(graph.body, "", graph.input_names, graph.output_names)

    def _block(self, block: Block, scope: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        end = block.last_op
        returned = dict(zip(end.operands, outputs, strict=False)) if isinstance(end, ReturnOp) else {}
        for i, arg in enumerate(block.args):
            name = inputs[i] if i < len(inputs) else f"input_{i}"
            told = f"the caller of '{scope}'" if scope else f"input '{name}'"
            self._value(arg, name, scope, "input", "", "", told, arg in returned)
        for op in block.ops:
            if not isinstance(op, OnnxOp):
                continue
            for result in op.results:
                if not isinstance(result.type, NoneType):
                    self._result(op, result, scope, returned)
            for name, region in zip(op.graph_names, op.regions, strict=True):
                inner = f"{scope}/" * bool(scope) + f"{op.node_name or op.op_type}/{name}"
                last = region.block.last_op
                given = _texts(last, "input_names")
                self._block(region.block, inner, given, _texts(last, "output_names"))

    def _result(self, op: OnnxOp, result: OpResult, scope: str, returned: Mapping[SSAValue, str]) -> None:
        weight = op.op_type == "Constant" and op.domain == "" and not op.operands
        name = value_name(op, result) or returned.get(result, "")
        if not name:
            name = f"{op.node_name or op.op_type}:{result.index}"
        kind: Kind = "weight" if weight else "value"
        self._value(result, name, scope, kind, op.node_name, op.qualified_name, _told(op), result in returned)

    def _value(
        self, value: SSAValue, name: str, scope: str, kind: Kind, node: str, op: str, told: str, is_output: bool
    ) -> None:
        full = self._unique(f"{scope}/{name}" if scope else name)
        dims = known_dims_of(value.type)
        self.values.append(ValueShape(full, scope, kind, node, op, type_text(value.type), dims, is_output))
        for symbol in symbols_of(dims or ()):
            self.origins.setdefault(symbol, told)

    def _unique(self, name: str) -> str:
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return self._unique(f"{name}#{count + 1}") if count else name


def value_name(op: OnnxOp, result: OpResult) -> str:
    """Returns the model's name for a result; for one from an inlined function, its name there behind the call's; ""
    without a name."""
    names = op.output_names
    if result.index < len(names) and names[result.index]:
        return names[result.index]
    given = text_of(op.properties.get("initializer_name"))
    if given or not result.name_hint:
        return given
    call = op.node_name.rpartition("/")[0]
    return f"{call}/{result.name_hint}" if call else result.name_hint


def type_text(type_: Attribute) -> str:
    """Returns the element type of a tensor by NumPy's name; any other type in ONNX's form, `seq(tensor(float))`."""
    element = tensor_element(type_)
    if element is None:
        return "unknown" if type_ == UNKNOWN else type_name(type_) or str(type_)
    row = BY_ATTR.get(element)
    if row is None:
        return "unknown"
    return "string" if row.numpy_name == "object" else row.numpy_name


def shape_text(dims: Iterable[object] | None) -> str:
    """Formats dims: `[batch, 12, 64*seq]`; `?` for an unknown rank or dim."""
    return "?" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"


def _told(op: OnnxOp) -> str:
    name = f"{op.qualified_name} '{op.node_name}'" if op.node_name else op.qualified_name
    spec = spec_of(op)
    if op.schema is None and (spec is None or spec.infer is None):
        return f"what {name} says, an op without a shape rule"
    return f"the data of {name}"


def _texts(last: Operation | None, key: str) -> list[str]:
    return texts_of(last.attributes.get(key)) if last is not None else []


def walk_values(shapes: ModelShapes, weights: bool = False) -> Iterator[ValueShape]:
    """Yields the values, those of weights only on request."""
    return (v for v in shapes.values if weights or v.kind != "weight")
