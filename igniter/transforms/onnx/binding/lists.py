"""Ops whose kernels take sizes directly: the operands become values of a carrier and must not be negative."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_carrier
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.transforms.onnx.binding.arithmetic import Builder
from igniter.transforms.onnx.binding.sizes import unknown_list
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims

SIZES: dict[str, Mapping[int, str]] = {
    "BlackmanWindow": {0: "its size is negative"},
    "CenterCropPad": {1: "its shape has a negative size"},
    "ConstantOfShape": {0: "its shape has a negative size"},
    "HammingWindow": {0: "its size is negative"},
    "HannWindow": {0: "its size is negative"},
    "MaxUnpool": {2: "its output shape has a negative size"},
    "OneHot": {1: "its depth is not positive"},
    "Split": {1: "a size of its split is negative"},
    "STFT": {1: "its frames are not a positive number of samples apart", 3: "its frames have a negative length"},
    "Tile": {1: "a number of repeats is negative"},
    "TopK": {1: "its k is negative"},
}
"""For each op, its size operands, with the error message for a negative one."""
POSITIVE = frozenset((("OneHot", 1), ("STFT", 1)))
"""The operands with positive values only."""


def _bind_sizes(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    build = Builder(rewriter)
    if is_carrier(op) or any(known_dims(v) is None for v in op.inputs if v is not None):
        return None
    sizes = SIZES[op.op_type]
    lists = {k: found for k in sizes if (found := unknown_list(op, k, build)) is not None and len(found)}
    if not lists:
        return None
    for k in [k for k in lists if (op.op_type, k) in POSITIVE]:
        lists[k] = lists[k].less(1).select(-1, lists[k])
    carrier = build.carrier(build.concat(*lists.values()), "; or ".join(sizes[k] for k in lists))
    operands = list(op.inputs)
    first = 0
    for k, values in lists.items():
        operands[k] = like(build, build.read(carrier, first, len(values)), op.operands[k])
        first += len(values)
    return build.bound(op, operands, carrier).results


def like(build: Builder, values: SSAValue, given: SSAValue) -> SSAValue:
    """Returns values of a carrier with the rank and the integer type of an operand; their elements are still known."""
    dims = known_dims_of(given.type)
    if dims == ():
        values = build.rewriter.op("Reshape", [values, build.value([])], [tensor_of(i64, [])]).results[0]
    if tensor_element(given.type) == i32:
        values = build.rewriter.op("Cast", [values], [tensor_of(i32, dims_of(values.type))], {"to": 6}).results[0]
    return values


RULES: Rules = {name: [_bind_sizes] for name in SIZES}
