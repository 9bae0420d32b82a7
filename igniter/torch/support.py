"""The ops of a graph that can be compiled, and the reasons why the others stay eager."""

from __future__ import annotations

import operator
from typing import Any

from igniter.torch.decompositions import why_eager
from igniter.torch.exporter import is_exportable
from igniter.torch.names import Node, is_tensor, pytree, torch

READ_MEMORY = ("aten::as_strided", "aten::as_strided_copy", "aten::as_strided_scatter")
"""Ops whose results depend on the strides of tensors; ONNX has no strides."""

ELEMENT_TYPES: dict[Any, int] = {
    torch.float32: 1,
    torch.uint8: 2,
    torch.int8: 3,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.bool: 9,
    torch.float16: 10,
    torch.float64: 11,
    torch.bfloat16: 16,
}
"""ONNX's number of each element type supported between torch and ONNX Runtime."""


def why_not(node: Node) -> str:
    """Returns the reason why a node cannot be compiled; empty if it can."""
    wrong = next((why for value in _values(node) if (why := _wrong_type(value))), "")
    if wrong or node.op in ("placeholder", "get_attr", "output"):
        return wrong
    if node.op != "call_function":
        return f"{node.op} is not an op"
    if node.target is operator.getitem:
        return ""
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _never_drops(node):
        return "it draws random numbers, and ONNX Runtime would draw different ones"
    if is_assertion(node):
        return ""
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        return "it changes its input in place"
    if schema is not None and schema.name in READ_MEMORY:
        return "it depends on the memory layout of tensors"
    if why := why_eager(node):
        return why
    return "" if is_exportable(node.target) else "PyTorch's ONNX exporter cannot translate it"


def _never_drops(node: Node) -> bool:
    """True if an op draws random numbers only for dropout, and its dropout is off."""
    arguments = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(arguments, node.args, strict=False)), **node.kwargs}
    if "dropout_p" in arguments:
        return given.get("dropout_p", 0.0) == 0.0
    return "train" in arguments and given.get("train") is False


def is_assertion(node: Node) -> bool:
    """True if a node is only an assertion; the exporter removes these."""
    return str(node.target) in (
        "aten.sym_constrain_range_for_size.default",
        "aten._assert_async.default",
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten._assert_tensor_metadata.default",
    )


def _values(node: Node) -> list[Any]:
    """Returns the values of a node and of its operands."""
    nodes: list[Any] = [node, *node.all_input_nodes]
    return [value for each in nodes for value in pytree.tree_leaves(each.meta.get("val"))]


def _wrong_type(value: Any) -> str:
    if not is_tensor(value):
        return ""
    if value.device.type != "cpu":
        return f"it uses a tensor on {value.device}, but kernels run on CPUs"
    if value.layout is not torch.strided or value.is_quantized:
        return f"it uses a tensor with the layout {value.layout}"
    if value.dtype not in ELEMENT_TYPES:
        return f"it uses {value.dtype}"
    return ""


def computes(node: Node) -> bool:
    """True if a node counts as an op: a call of an ATen op with a tensor result, but no getitem, size or assertion."""
    if node.op != "call_function" or node.target is operator.getitem or is_assertion(node):
        return False
    return isinstance(node.target, torch._ops.OpOverload) and is_tensor(_first(node.meta.get("val")))


def _first(value: Any) -> Any:
    return next(iter(pytree.tree_leaves(value)), None)
