"""`form-kernel-graph`: an ONNX graph around the kernel of a function, so that it becomes a custom op of a model.

    loop.kernel @scale symbols [n] (%x: tensor<?x8xf32, ..>, %w: tensor<8xf32>) -> (tensor<?x8xf32, ..>)
        attributes {igniter.arguments = [{name = "x"}, {name = "weight0", value = #onnx.tensor<..>}],
                    igniter.results = ["result0"]} { .. }

becomes the same kernel, without the attributes, and

    onnx.graph @main(%x: tensor<?x8xf32, ..>) attributes {input_names = ["x"], output_names = ["result0"]} {
      %w = onnx.Constant() {value = #onnx.tensor<..>}
      %y = fusion.region @scale (%a = %x, %b = %w) kernel @scale -> (tensor<?x8xf32, ..>) {
        %0 = onnx.custom(%a, %b) <{domain = "igniter.linalg", op_type = "scale"}>
        fusion.yield %0
      }
      onnx.return %y
    }

A weight is a constant of the graph, by its handle. The region has no ONNX nodes to return to: its only node is the
function itself, so a kernel that cannot be compiled is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.structured.kernel_signature import ARGUMENTS, RESULTS, KernelSignature, signature_of
from igniter.dialects.fusion import RegionOp, YieldOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.base import make_constant, make_op
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, graph_module
from igniter.errors import IgniterError

DOMAIN = "igniter.linalg"
"""The domain of the node in place of a function."""
OPSET = 17
IR_VERSION = 8


@dataclass(frozen=True)
class FormKernelGraph(ModulePass):
    """Makes a graph of the module's one kernel."""

    name = "form-kernel-graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = [k for k in op.ops if isinstance(k, KernelOp) and signature_of(k) is not None]
        if any(isinstance(each, GraphOp) for each in op.ops) or not kernels:
            return
        if len(kernels) > 1:
            names = ", ".join(k.sym_name.data for k in kernels)
            raise IgniterError(
                f"form-kernel-graph: a model has one graph, and the module has the functions {names}; keep one by "
                "lower-linalg-to-loop{function=NAME}"
            )
        (kernel,) = kernels
        signature = signature_of(kernel)
        assert signature is not None
        made = _graph(kernel, signature)
        for name, attr in made.attributes.items():
            op.attributes[name] = attr
        for key in (ARGUMENTS, RESULTS):
            del kernel.attributes[key]
        graph = made.body.block.first_op
        assert graph is not None
        graph.detach()
        op.body.block.insert_op_before(graph, kernel)


def _graph(kernel: KernelOp, signature: KernelSignature) -> ModuleOp:
    """Returns a module with the graph."""
    name = kernel.sym_name.data
    for argument in signature.arguments:
        if argument.index:
            raise IgniterError(
                f"function '{name}' has the index argument '{argument.name}', and ONNX passes sizes only as dims of "
                "tensors; use igniter.jit, or make it a dim of an argument"
            )
    tensors = list(zip(signature.tensors, kernel.block.args, strict=True))
    inputs = [(a, v.type) for a, v in tensors if a.weight is None]
    block = Block(arg_types=[t for _, t in inputs])
    given = iter(block.args)
    operands: list[SSAValue] = []
    for argument, value in tensors:
        if argument.weight is None:
            operands.append(next(given))
            operands[-1].name_hint = argument.name
            continue
        constant = make_constant(argument.weight, argument.name)
        block.add_op(constant)
        operands.append(constant.results[0])
        assert constant.results[0].type == value.type
    results: list[Attribute] = list(kernel.declared_types)[: len(signature.results)]
    region = RegionOp(name, operands, results, Region(_body(name, operands, results)), name)
    block.add_ops([region, ReturnOp.make(region.results)])
    opsets = {"": OPSET, DOMAIN: 1}
    return graph_module(Region(block), [a.name for a, _ in inputs], list(signature.results), opsets, IR_VERSION)


def _body(name: str, operands: list[SSAValue], results: list[Attribute]) -> Block:
    """Returns the body of the region: the function as one node."""
    inside = Block(arg_types=[v.type for v in operands])
    node = make_op(name, list(inside.args), results, domain=DOMAIN, node_name=name)
    inside.add_ops([node, YieldOp(node.results)])
    return inside
