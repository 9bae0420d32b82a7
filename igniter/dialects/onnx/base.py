"""`OnnxOp`, the base of every op that is an ONNX node, and the helpers to build ops and constants.

    %y = onnx.Softmax(%x) <{node_name = "attn", output_names = ["y"]}> {axis = -1 : i64} : (tensor<..>) -> tensor<..>

The attributes in `{}` are the node's own, under their ONNX names. The properties in `<{}>` do not change the node's
meaning: two ops that differ only in properties compute the same.

    node_name, doc_string, overload, metadata, device_configurations
    output_names      names of the values, "" for an omitted output
    output_info       per output, what the model's value_info says besides the type
    attribute_info    per attribute, its doc string and the names of its tensors
    graphs            names of the graph attributes, one a region (`body`, or `bodies[0]` for a list of graphs)
    domain, op_type   of an `onnx.custom` op; `domain` also where a node spells its domain "ai.onnx"

One class covers all opset versions of an op; the module's imports select the schema. Classes are created on demand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NoneType, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, OpTraits, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import OpTrait, Pure, RecursiveMemoryEffect

from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import (
    FLOATS_KIND,
    RefAttr,
    SparseTensorAttr,
    TensorAttr,
    floats_attr,
    own_text,
    text_attr,
    text_of,
    texts_attr,
    texts_of,
    to_attr,
    to_python,
)
from igniter.dialects.onnx.bound import BOUND_DOMAIN, COUNT_DOMAIN
from igniter.dialects.onnx.schemas import find_schema, latest_opset, op_names
from igniter.dialects.onnx.text import parse_node, print_node
from igniter.dialects.onnx.types import NONE
from igniter.dialects.onnx.verify import verify_node
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.schemas import OpSchema

_DEFAULT_GRAPHS = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",), "SequenceMap": ("body",)}


class OnnxOp(Operation):
    """An ONNX node. `op_class` creates the subclasses, one for each op with a schema."""

    OP_TYPE: ClassVar[str] = ""
    DOMAIN: ClassVar[str] = ""

    # -- the node ----------------------------------------------------------------------------------------------------

    @property
    def op_type(self) -> str:
        """The name of the ONNX op, without its domain."""
        return self.OP_TYPE

    @property
    def domain(self) -> str:
        """The domain of the op; "" for ai.onnx."""
        return self.DOMAIN

    @property
    def schema_domain(self) -> str:
        """The domain of the op's schema; a bound node has the schema of an ONNX op."""
        return self.domain

    @property
    def qualified_name(self) -> str:
        """The name with its domain, if it is not ai.onnx: `Add`, `com.microsoft.SkipLayerNormalization`."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    @property
    def node_name(self) -> str:
        """The name of the node in the model; "" if it has none."""
        return text_of(self.properties.get("node_name"))

    @property
    def overload(self) -> str:
        """The overload of the called model-local function."""
        return text_of(self.properties.get("overload"))

    @property
    def opset(self) -> int:
        """The version of the op's domain imported by the enclosing function or model; the newest for a detached op."""
        version = imported_opset(self, self.schema_domain)
        if version is None:
            return latest_opset(self.schema_domain)
        return version

    @property
    def schema(self) -> OpSchema | None:
        """The schema of the op in its opset; `None` if it has none, as for custom ops."""
        return find_schema(self.schema_domain, self.op_type, imported_opset(self, self.schema_domain))

    @property
    def inputs(self) -> list[SSAValue | None]:
        """The operands, with `None` for omitted ones."""
        return [None if type(v.type) is NoneType else v for v in self.operands]

    @property
    def outputs(self) -> list[OpResult | None]:
        """The results, with `None` for omitted ones."""
        return [None if type(r.type) is NoneType else r for r in self.results]

    @property
    def output_names(self) -> list[str]:
        """The names of the results in the model; empty for an op that did not come from a model."""
        return texts_of(self.properties.get("output_names"))

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns the attribute as a Python value; if absent, `default` or, if that is `None`, the schema's default.

        The types are int, float, str (bytes if not UTF-8), list, NumPy array for a tensor, `Region` for a graph, a list
        of regions for a list of graphs, and an IR type for a type.
        """
        found = self.attributes.get(name)
        if found is not None and found.name != "onnx.graphs":
            return to_python(found)
        if self.regions:
            names = self.graph_names
            if name in names:
                return self.regions[names.index(name)]
            if found is not None:
                return [r for r, n in zip(self.regions, names, strict=True) if n.startswith(f"{name}[")]
        if default is not None:
            return default
        schema = self.schema
        spec = schema.attributes.get(name) if schema is not None else None
        return spec.default if spec is not None else None

    @property
    def graph_names(self) -> list[str]:
        """The names of the graph attributes, in the order of the regions."""
        names = texts_of(self.properties.get("graphs"))
        return names or list(_DEFAULT_GRAPHS.get(self.op_type, ())[: len(self.regions)])

    # -- text and checks ---------------------------------------------------------------------------------------------

    def print(self, printer: Printer) -> None:
        print_node(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return parse_node(parser, cls)

    def verify_(self) -> None:
        verify_node(self)


class CustomOp(OnnxOp):
    """A node of a domain without schemas, a call of a model-local function, or an op missing from its opset."""

    name = "onnx.custom"
    traits = OpTraits(lambda: (RecursiveMemoryEffect(),))

    @property
    def op_type(self) -> str:
        return text_of(self.properties.get("op_type"))

    @property
    def domain(self) -> str:
        spelled = text_of(self.properties.get("domain"))
        return "" if spelled == "ai.onnx" else spelled

    @property
    def schema_domain(self) -> str:
        return "" if self.domain in (BOUND_DOMAIN, COUNT_DOMAIN) else self.domain


class NoValueOp(Operation):
    """The placeholder for an omitted input of a node."""

    name = "onnx.NoValue"
    traits = OpTraits(lambda: (Pure(),))

    def print(self, printer: Printer) -> None:
        printer.print_string(" : none")

    @classmethod
    def parse(cls, parser: Parser) -> NoValueOp:
        parser.parse_punctuation(":")
        parser.parse_keyword("none")
        return cls.make()

    @classmethod
    def make(cls) -> NoValueOp:
        """Creates one."""
        return cls.create(result_types=[NONE])


# -- classes ----------------------------------------------------------------------------------------------------------


def ir_name(domain: str, op_type: str) -> str:
    """Returns the IR name of an op with a schema: `onnx.Add`, `onnx.ml.Scaler`, `onnx.preview.training.Adam`."""
    return f"onnx.{domain.removeprefix('ai.onnx.')}.{op_type}" if domain else f"onnx.{op_type}"


def op_class(domain: str, op_type: str) -> type[OnnxOp]:
    """Returns the class of an ONNX op; `CustomOp` if no version has a schema for it."""
    return _classes().get((domain, op_type), CustomOp)


def op_classes() -> list[type[Operation]]:
    """Returns every op class of the dialect for nodes."""
    return [*_classes().values(), CustomOp, NoValueOp]


@cache
def _classes() -> dict[tuple[str, str], type[OnnxOp]]:
    return {key: _make_class(*key) for key in op_names()}


def _make_class(domain: str, op_type: str) -> type[OnnxOp]:
    body: dict[str, Any] = {
        "name": ir_name(domain, op_type),
        "OP_TYPE": op_type,
        "DOMAIN": domain,
        "__module__": __name__,
        "__doc__": f"{op_type} of {domain or 'ai.onnx'}.",
        "traits": OpTraits(lambda: _traits(domain, op_type)),
    }
    return cast("type[OnnxOp]", type(op_type, (OnnxOp,), body))


def _traits(domain: str, op_type: str) -> tuple[OpTrait, ...]:
    schema = find_schema(domain, op_type, None)
    if schema is None or not schema.deterministic:
        return ()
    has_graphs = any(a.kind in (5, 10) for a in schema.attributes.values())
    return (RecursiveMemoryEffect(),) if has_graphs else (Pure(),)


def imported_opset(op: Operation, domain: str) -> int | None:
    """Returns the version of `domain` imported by the function or module around `op`; `None` if there is no import."""
    parent: Operation | None = op
    while parent is not None:
        imports: Attribute | None = None
        if parent.name == "onnx.function":
            imports = parent.attributes.get("opset_import")
        elif isinstance(parent, ModuleOp):
            model = parent.attributes.get("onnx.model")
            imports = model.data.get("opset_import") if isinstance(model, DictionaryAttr) else None
        if isinstance(imports, DictionaryAttr):
            version = imports.data.get(domain)
            if version is None and domain == "":
                version = imports.data.get("ai.onnx")
            if version is not None:
                return int(to_python(version))
        parent = parent.parent_op()
    return None


# -- building ---------------------------------------------------------------------------------------------------------


def make_op(
    name: str,
    inputs: Sequence[SSAValue | None],
    result_types: Sequence[Attribute],
    attrs: Mapping[str, Any] | None = None,
    *,
    domain: str = "",
    node_name: str = "",
    output_names: Sequence[str] = (),
) -> OnnxOp:
    """Returns a new op. `name` may contain the domain (`com.microsoft.Gelu`); an input `None` is omitted. Attribute
    values are Python values, `Region`s for graphs, or IR attributes."""
    if not domain and "." in name:
        domain, _, name = name.rpartition(".")
    operands = _operands(name, inputs)
    cls = op_class("" if domain == "ai.onnx" else domain, name)
    properties: dict[str, Attribute] = {}
    if cls is CustomOp:
        properties["domain"], properties["op_type"] = StringAttr(domain), StringAttr(name)
    if node_name:
        properties["node_name"] = text_attr(node_name)
    if output_names:
        properties["output_names"] = texts_attr(output_names)
    attributes: dict[str, Attribute] = {}
    graphs: dict[str, Region] = {}
    for key, value in (attrs or {}).items():
        if isinstance(value, Region):
            graphs[key] = value
        else:
            attributes[key] = _coerced(domain, name, key, value)
    if graphs:
        properties["graphs"] = texts_attr(list(graphs))
    return cls.create(
        operands=operands,
        result_types=result_types,
        attributes=attributes,
        properties=properties,
        regions=list(graphs.values()),
    )


def _operands(name: str, inputs: Sequence[SSAValue | None]) -> list[SSAValue]:
    count = len(inputs)
    while count and inputs[count - 1] is None:
        count -= 1
    if all(v is not None for v in inputs[:count]):
        return cast("list[SSAValue]", list(inputs[:count]))
    omitted = no_value_near(next(v for v in inputs if v is not None))
    return [omitted if v is None else v for v in inputs[:count]]


def no_value_near(value: SSAValue) -> SSAValue:
    """Returns the result of a `NoValueOp` visible wherever `value` is, at the start of its block."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    if block is None:
        raise ValueError(f"{value} is not in a block, so no onnx.NoValue can be inserted after it")
    first = block.first_op
    if isinstance(first, NoValueOp):
        return first.results[0]
    made = NoValueOp.make()
    if first is None:
        block.add_op(made)
    else:
        block.insert_op_before(made, first)
    return made.results[0]


def _coerced(domain: str, op_type: str, key: str, value: Any) -> Attribute:
    """Returns `value` as an attribute of the kind in the schema; an int becomes a float if the
    schema asks for a float."""
    schema = find_schema(domain, op_type, None)
    spec = schema.attributes.get(key) if schema is not None else None
    if spec is not None and spec.kind == 1 and isinstance(value, int):
        return to_attr(float(value))
    if spec is not None and spec.kind == FLOATS_KIND and isinstance(value, (list, tuple)):
        return floats_attr([float(v) for v in cast("Sequence[float]", value)])
    return to_attr(value)


# -- constants --------------------------------------------------------------------------------------------------------


def make_constant(
    value: np.ndarray[Any, Any] | Weight, name: str = "", type_: TensorType[Attribute] | None = None
) -> OnnxOp:
    """Returns an `onnx.Constant` that exports as an initializer called `name`, or as a Constant node if `name` is
    empty. `type_` is its type, if known."""
    weight = value if isinstance(value, Weight) else Weight.of(value)
    properties: dict[str, Attribute] = {"initializer_name": own_text(name)} if name else {}
    type_ = type_ if type_ is not None else tensor_of(weight.element_type, weight.shape)
    attributes: dict[str, Attribute] = {"value": building.data(TensorAttr, weight)}
    op = building.new_op(op_class("", "Constant"), (), (type_,), attributes, properties)
    hint = name_hint(name)
    if hint:
        building.set_hint(op.results[0], hint)
    return op


def constant_weight(value: SSAValue | None) -> Weight | None:
    """Returns the weight of a value defined by an `onnx.Constant` with a dense tensor; else `None`."""
    attr = _constant_attr(value, "value")
    return attr.data if isinstance(attr, TensorAttr) else None


def constant_value(value: SSAValue | None) -> np.ndarray[Any, Any] | None:
    """Returns the value as a read-only array if an `onnx.Constant` of any form defines it; else `None`."""
    weight = constant_weight(value)
    if weight is not None:
        return weight.array()
    owner = value.owner if isinstance(value, OpResult) else None
    if owner is None or owner.name != "onnx.Constant":
        return None

    for key, dtype in _CONSTANT_FORMS.items():
        attr = owner.attributes.get(key)
        if attr is not None:
            # An attribute of the caller of a function is not a known value.
            return None if isinstance(attr, RefAttr) else np.array(to_python(attr), dtype=dtype)
    sparse = owner.attributes.get("sparse_value")
    return cast("np.ndarray[Any, Any]", to_python(sparse)) if isinstance(sparse, SparseTensorAttr) else None


_CONSTANT_FORMS = {
    "value_float": "float32",
    "value_floats": "float32",
    "value_int": "int64",
    "value_ints": "int64",
    "value_string": "object",
    "value_strings": "object",
}


def _constant_attr(value: SSAValue | None, key: str) -> Attribute | None:
    owner = value.owner if isinstance(value, OpResult) else None
    return owner.attributes.get(key) if owner is not None and owner.name == "onnx.Constant" else None


_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_.$-]*[A-Za-z0-9])?")
"""The names used unchanged, the common case."""
_OTHER = re.compile(r"[^A-Za-z0-9_.$-]")


def name_hint(name: str) -> str | None:
    """Returns a legal SSA name similar to the name of an ONNX value; `None` if no character is usable."""
    if _PLAIN.fullmatch(name):
        return name
    kept = _OTHER.sub("_", name)
    kept = kept.strip("_.$-") if kept.strip("_.$-") else ""
    if not kept:
        return None
    return f"v{kept}" if kept[0].isdigit() else kept


def info_list(values: Sequence[Attribute | None]) -> ArrayAttr[Attribute] | None:
    """Returns a property such as `output_info`: one dictionary per entry, empty for `None`; `None`
    if all are `None`."""
    if all(v is None for v in values):
        return None
    return ArrayAttr([v if v is not None else DictionaryAttr({}) for v in values])
