"""`change-types`: gives inputs and outputs another element type, with a Cast to or from the type of the nodes.

    graph(%ids: tensor<?x8xi64>)            graph(%ids: tensor<?x8xi32>)
      %y = Gather(%w, %ids)          ->       %c = onnx.Cast(%ids) {to = 7}
                                              %y = Gather(%w, %c)

    change-types{values="ids" types="int32"}

Types have their ONNX names: float, double, float16, bfloat16, int32, int64, uint8, bool, ... The default value of an
input is converted too.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from igniter.dialects.onnx.attributes import TensorAttr, entries_of
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.onnx.types import BY_ATTR, BY_NAME, ElementType
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.tensor_types import ranked, tensor_element, unranked
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains
from igniter.registry import UnknownName
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.graph_edits import forget_derived, info_entries, set_defaults, set_info
from igniter.toolbox.edit.names import Names, set_result_name

_ALIASES = {
    "f32": "float", "float32": "float", "f64": "double", "float64": "double", "f16": "float16", "half": "float16",
    "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64",
}  # fmt: skip


def element_called(text: str) -> ElementType:
    """Returns the element type of a name, such as `int32` or `i32`. Raises `IgniterError` for unknown names."""
    row = BY_NAME.get(_ALIASES.get(text, text))
    if row is None:
        raise UnknownName("type", text, {**BY_NAME, **_ALIASES})
    return row


@dataclass(frozen=True)
class ChangeTypes(Edit):
    """Gives inputs and outputs another element type, with Casts."""

    name = "change-types"
    values: tuple[str, ...] = ()
    """Names of inputs and outputs."""
    types: tuple[str, ...] = ()
    """The element type of each, in the same order."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for name, text in paired("change-types", self.values, self.types):
            names, row = Names(op), element_called(text)
            if name in names.graph.input_names:
                before = _change_input(names, name, row)
            else:
                before = _change_output(names, names.output(name), name, row)
            remark(ctx, self.name, name, "applied", f"is {row.onnx_name}, was {before.onnx_name}")
        import_domains(op)

    def track(self, interface: Interface) -> None:
        """Changes nothing: a comparison reads the types of both models."""


def _element(value: SSAValue, name: str, row: ElementType) -> ElementType:
    found = tensor_element(value.type)
    known = BY_ATTR.get(found) if found is not None else None
    if known is None:
        raise IgniterError(f"'{name}' is {value.type}: only a tensor of a known type can be given another")
    if known is row:
        raise IgniterError(f"'{name}' is to be {row.onnx_name}, which it is")
    if "complex" in known.onnx_name + row.onnx_name:
        raise IgniterError(f"'{name}' is {known.onnx_name}, and ONNX has no Cast from or to complex numbers")
    return known


def _with_element(type_: Attribute, element: Attribute) -> Attribute:
    tensor = ranked(type_)
    if tensor is None:
        return unranked(element)
    return TensorType(element, tensor.shape, tensor.encoding)


def _cast(value: SSAValue, row: ElementType) -> OnnxOp:
    return make_op("Cast", [value], [_with_element(value.type, row.attr)], {"to": row.code})


def _change_input(names: Names, name: str, row: ElementType) -> ElementType:
    graph = names.graph
    argument = graph.body.args[names.input(name)]
    before = _element(argument, name, row)
    uses = list(argument.uses)
    argument._type = _with_element(argument.type, row.attr)
    made = _cast(argument, before)
    set_result_name(made.results[0], names.fresh(f"{name}_{before.onnx_name}"))
    first = next((op for op in graph.body.ops if not is_constant(op)), None)
    assert first is not None
    graph.body.insert_op_before(made, first)
    for use in uses:
        use.operation.operands[use.index] = made.results[0]
    defaults = dict(entries_of(graph.attributes.get("input_defaults")))
    if name in defaults:
        given = defaults[name]
        if not isinstance(given, TensorAttr):
            raise IgniterError(f"'{name}' is by default a sparse tensor, which is not converted")
        defaults[name] = TensorAttr(Weight.of(given.data.array().astype(row.dtype)))
        set_defaults(graph, defaults)
    forget_derived(graph)
    return before


def is_constant(op: object) -> bool:
    """True if an op is a constant or marks an omitted input; these come first."""
    return isinstance(op, Operation) and op.name in ("onnx.Constant", "onnx.NoValue")


def _change_output(names: Names, position: int, name: str, row: ElementType) -> ElementType:
    graph = names.graph
    last = graph.terminator
    value = last.operands[position]
    before = _element(value, name, row)
    made = _cast(value, row)
    graph.body.insert_op_before(made, last)
    others = [i for i, v in enumerate(last.operands) if v is value and i != position]
    if isinstance(value, OpResult) and not others:
        # The output keeps its name, so its source needs another one.
        set_result_name(value, names.fresh(f"{name}_{before.onnx_name}"))
    set_result_name(made.results[0], name)
    last.operands[position] = made.results[0]
    infos = info_entries(graph.attributes.get("output_info"), len(last.operands))
    infos[position] = None
    set_info(graph, "output_info", infos)
    return before
