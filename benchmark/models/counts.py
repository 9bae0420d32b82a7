"""What a model has and does: shapes of its values, learned parameters, multiply-adds. Weights need no values."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from benchmark.models.builder import LEARNED

Shape = tuple[int, ...]


def parameters(model: onnx.ModelProto) -> int:
    """Learned parameters, as papers count them: without the means and variances of batch normalisation."""
    return sum(math.prod(w.dims) for w in model.graph.initializer if w.name.startswith(LEARNED))


def shapes(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, Shape]:
    """Of every value with a shape, once the symbolic dims of the inputs have those sizes."""
    fixed = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    fixed.graph.CopyFrom(model.graph)
    for value in fixed.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = dims[dim.dim_param]
    inferred = onnx.shape_inference.infer_shapes(fixed, strict_mode=True, data_prop=True).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    found = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}
    return {**{w.name: tuple(w.dims) for w in inferred.initializer}, **found}


def multiply_adds(model: onnx.ModelProto, dims: Mapping[str, int]) -> int:
    """Those of convolutions and products, at that size."""
    known = shapes(model, dims)
    total = 0
    for node in model.graph.node:
        if node.op_type == "Conv":
            total += math.prod(known[node.output[0]]) * math.prod(known[node.input[1]][1:])
        elif node.op_type in ("Gemm", "MatMul"):
            # What is summed over is the last axis of the first operand: no Gemm here has it transposed.
            total += math.prod(known[node.output[0]]) * known[node.input[0]][-1]
    return total
