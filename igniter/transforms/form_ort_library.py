"""`form-ort-library`: describes the custom op that each scheduled kernel becomes.

    loop.func @r0 symbols [n] (%x : memref<?x8xf32, ..>, %y : memref<?x8xf32, ..>) outputs 1 scratch(64*n) { .. }
adds
    ort.library @igniter {
      ort.op @igniter_r0 kernel @r0 symbols [n] scratch(64*n) ins ["in0" : f32 [n, 8]] outs ["out0" : f32 [n, 8]]
    }

It needs `plan-buffers`, which knows the scratch size. `replace_regions` then turns every `fusion.region` into a node
of that op, in the library's domain; it is called once the code is there, because the domain's name is a hash of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from igniter.analysis.expr import Expr, maximum
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import FuncOp
from igniter.dialects.ort import LibraryOp, OpOp, Port
from igniter.dialects.sym import dims_of, element_of
from igniter.errors import IgniterError


@dataclass(frozen=True)
class FormOrtLibrary(ModulePass):
    """Collects the scheduled kernels of a module into the description of a custom-op library."""

    name = "form-ort-library"

    library: str = "igniter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = [describe(func) for func in op.ops if isinstance(func, FuncOp)]
        if ops:
            op.body.block.add_op(LibraryOp(self.library, ops))


def op_name(kernel: str) -> str:
    """The name of the custom op around a kernel: an identifier with an underscore, as no ONNX op has."""
    return f"igniter_{kernel}"


def describe(func: FuncOp) -> OpOp:
    """The custom op around one kernel."""
    name = func.sym_name.data
    if func.scratch_bytes is None:
        raise IgniterError(f"form-ort-library: @{name} has no buffer plan; run plan-buffers first")
    types = [arg.type for arg in func.block.args]
    inputs = len(types) - func.output_count
    return OpOp(
        op_name(name),
        name,
        func.symbol_names,
        [_port(f"in{k}", t) for k, t in enumerate(types[:inputs])],
        [_port(f"out{k}", t) for k, t in enumerate(types[inputs:])],
        func.scratch_bytes,
    )


def with_scratch(op: OpOp, scratch: Expr) -> OpOp:
    """The op with an arena that is large enough for its own kernel and for one that needs `scratch` bytes."""
    size = maximum(op.scratch, scratch)
    return OpOp(op.sym_name.data, op.kernel_name, op.symbol_names, op.inputs, op.outputs, size)


def _port(name: str, memref: Attribute) -> Port:
    return Port(name, element_of(memref), dims_of(memref))


def replace_regions(module: ModuleOp, domain: str) -> int:
    """Replaces every region by a node of its custom op; returns how many there were."""
    from igniter.dialects.onnx.base import make_op

    regions = [op for op in module.walk() if isinstance(op, RegionOp)]
    for region in regions:
        kernel = region.kernel_name
        if kernel is None:
            raise IgniterError(f"region @{region.label} has no kernel; run lower-onnx-to-loop first")
        node = make_op(
            op_name(kernel),
            list(region.inputs),
            list(region.result_types),
            domain=domain,
            node_name=region.label,
        )
        for key, attr in region.attributes.items():
            node.attributes[key] = attr
        block = region.parent_block()
        assert block is not None
        block.insert_op_before(node, region)
        for old, new in zip(region.results, node.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        region.detach()
        region.erase()
    return len(regions)
