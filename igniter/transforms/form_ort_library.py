"""`form-ort-library`: describes the custom op that each scheduled kernel becomes.

    loop.func @r0 symbols [n] (%x : memref<?x8xf32, ..>, %y : memref<?x8xf32, ..>) outputs 1 scratch(64*n) { .. }
adds
    ort.library @igniter {
      ort.op @igniter_r0 kernel @r0 symbols [n] scratch(64*n) ins ["in0" : f32 [n, 8]] outs ["out0" : f32 [n, 8]]
    }

It needs `plan-buffers`, which knows the scratch size. A kernel that only programs call is no op. `replace_regions` then
turns every `fusion.program` and every other `fusion.region` into a node of its op, in the library's domain; it is
called once the code is there, because the domain's name is a hash of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.expr import Expr, maximum
from igniter.dialects.fusion import GroupOp, ProgramOp, RegionOp
from igniter.dialects.loop import CallOp, FuncOp
from igniter.dialects.onnx.attributes import texts_attr, texts_of
from igniter.dialects.ort import LibraryOp, OpOp, Port
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.errors import IgniterError
from igniter.transforms.lower_programs import time_stamps


@dataclass(frozen=True)
class FormOrtLibrary(ModulePass):
    """Collects the scheduled kernels of a module into the description of a custom-op library."""

    name = "form-ort-library"

    library: str = "igniter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        within = _called_in_programs_only(op)
        ops = [describe(f) for f in op.ops if isinstance(f, FuncOp) and f.sym_name.data not in within]
        for old in [o for o in op.ops if isinstance(o, LibraryOp) and o.sym_name.data == self.library]:
            old.detach()
            old.erase()
        if ops:
            op.body.block.add_op(LibraryOp(self.library, ops))


def _called_in_programs_only(module: ModuleOp) -> set[str | None]:
    """The kernels that programs call, and that compute no region outside of one."""
    regions = [op for op in module.walk() if isinstance(op, RegionOp)]
    alone = {r.kernel_name for r in regions if not isinstance(r.parent_op(), ProgramOp)}
    called = {op.callee for op in module.walk() if isinstance(op, CallOp)}
    return (called | {r.kernel_name for r in regions}) - alone


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


def replace_regions(module: ModuleOp, domain: str, profile: bool = False) -> int:
    """Replaces every program, and every region in none, by a node of its custom op; returns how many there were.

    `profile`: programs have one more output, their time stamps, which becomes an output of the graph.
    """
    groups = [op for op in module.walk() if isinstance(op, GroupOp) and not isinstance(op.parent_op(), ProgramOp)]
    for group in groups:
        _replace(group, domain, profile)
    return len(groups)


def _replace(group: GroupOp, domain: str, profile: bool) -> None:
    from igniter.dialects.onnx.base import make_op
    from igniter.runtime.verify import STAMPS

    kernel = group.kernel_name if isinstance(group, RegionOp) else group.label
    if kernel is None:
        raise IgniterError(f"region @{group.label} has no kernel; run lower-onnx-to-loop first")
    types = list(group.result_types)
    stamped = profile and isinstance(group, ProgramOp)
    if isinstance(group, ProgramOp) and stamped:
        types.append(tensor_of(i64, [time_stamps(group)]))
    node = make_op(op_name(kernel), list(group.inputs), types, domain=domain, node_name=group.label)
    for key, attr in group.attributes.items():
        node.attributes[key] = attr
    block = group.parent_block()
    assert block is not None
    block.insert_op_before(node, group)
    for old, new in zip(group.results, node.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    if stamped:
        _add_output(node.results[-1], STAMPS + group.label)
    group.detach()
    group.erase()


def _add_output(value: SSAValue, name: str) -> None:
    """Makes a value of the main graph one more output of it."""
    block = value.owner.parent if isinstance(value.owner, Operation) else None
    assert block is not None
    graph, end = block.parent_op(), block.last_op
    assert graph is not None
    assert end is not None
    names = texts_of(graph.attributes["output_names"])
    graph.attributes["output_names"] = texts_attr([*names, name])
    end.operands = [*end.operands, value]
