"""The nodes with code for GPUs: those whose kernels are nests, of types that Triton has.

A node is tested by lowering it alone, to the structured level; its requirements to the backend are visible there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import NoneType

from igniter.analysis.fusion.legality import Reason
from igniter.dialects.loop import DotBytesOp, NestOp, ProcedureOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.lowering.builder import KernelBuilder
from igniter.dialects.onnx.ops.quantized_cache import is_quantized
from igniter.dialects.sym import element_of
from igniter.errors import IgniterError
from igniter.transforms.conversion.launch_values import memory_element
from igniter.transforms.conversion.lower_onnx_to_loop import lower_node

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


def _is_in_scan(op: OnnxOp) -> bool:
    """True if a node is in the body of a Scan, at any depth."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, OnnxOp) and parent.op_type == "Scan":
            return True
        parent = parent.parent_op()
    return False


def refusal(op: OnnxOp) -> Reason | None:
    """Returns the reason why a node has no code for GPUs; None if it has, or if it has no kernel on any backend."""
    if _is_in_scan(op):
        reason = f"{op.qualified_name} is in a Scan, which hands slices to its body that are at any address"
        return Reason("illegal", f"{reason}: a GPU kernel loads 16 bytes at once")
    given = [v for v in dict.fromkeys(op.operands) if not isinstance(v.type, NoneType)]
    try:
        kernel = KernelBuilder([v.type for v in given])
        lower_node(op, kernel, dict(zip(given, kernel.args, strict=True)))
    except IgniterError:
        # Other errors of the node are reported by the lowering with its neighbours.
        return None
    if op.op_type == "GroupQueryAttention" and is_quantized(op):
        reason = "ONNX Runtime's kernel for GPUs attends to some new keys before it quantises them"
        return Reason("illegal", f"{op.qualified_name}: {reason}")
    if kernel.in_place:
        return Reason("illegal", f"{op.qualified_name} moves the rows of a cache, which has no GPU kernel")
    values: list[SSAValue] = list(kernel.args)
    for each in kernel.block.ops:
        if isinstance(each, ProcedureOp):
            values += each.outputs
            if each.computes is not None:
                continue
            return Reason("illegal", f"{op.qualified_name} goes step by step, which has no GPU kernel")
        if isinstance(each, NestOp):
            values += each.outputs
            if any(isinstance(inner, DotBytesOp) for inner in each.block.ops):
                # ONNX Runtime does not quantise to bytes on GPUs either.
                return Reason("illegal", f"{op.qualified_name} multiplies bytes, as CPUs do")
    for value in values:
        element = element_of(value.type)
        if memory_element(element) is None:
            return Reason("type", f"{op.qualified_name}: there is no GPU kernel for elements of {element}")
    return None
