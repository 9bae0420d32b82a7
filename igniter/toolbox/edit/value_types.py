"""Infers the types of a model's values, including results of calls of local functions."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import FunctionOp, main_graph
from igniter.dialects.onnx.types import UNKNOWN
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.toolbox.edit.names import result_names
from igniter.transforms.onnx.inline_functions import InlineFunctions


def is_unknown(type_: Attribute) -> bool:
    """True if not even the element type is known."""
    return UNKNOWN in (type_, tensor_element(type_))


def value_types(module: ModuleOp) -> dict[SSAValue, Attribute]:
    """Returns the inferred type of every value. Inference does not look into functions, so if types are unknown, it
    runs again on a copy with the functions inlined."""
    types = dict(infer_shapes(module).types)
    unknown = {
        name: value
        for op in main_graph(module).body.ops
        if isinstance(op, OnnxOp)
        for name, value in zip(result_names(op), op.results, strict=True)
        if name and is_unknown(types.get(value, value.type))
    }
    if not unknown or not any(isinstance(op, FunctionOp) for op in module.ops):
        return types
    copy = module.clone()
    InlineFunctions().apply(Context(), copy)
    found = infer_shapes(copy).types
    for op in main_graph(copy).body.ops:
        if isinstance(op, OnnxOp):
            for name, value in zip(result_names(op), op.results, strict=True):
                if name in unknown:
                    types[unknown[name]] = found.get(value, value.type)
    return types
