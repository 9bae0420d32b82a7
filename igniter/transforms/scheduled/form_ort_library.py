"""`form-ort-library`: describes the custom op of each scheduled kernel.

    loop.func @r0 symbols [n] (%x : memref<?x8xf32, ..>, %y : memref<?x8xf32, ..>) outputs 1 scratch(64*n) { .. }
adds
    ort.library @igniter {
      ort.op @igniter_r0 kernel @r0 symbols [n] scratch(64*n) ins ["in0" : f32 [n, 8]] outs ["out0" : f32 [n, 8]]
    }

The pass needs `plan-buffers` for the scratch size. A kernel called only by programs is no op. `replace_regions` then
turns every `fusion.program` and every other `fusion.region` into a node of its op, in the library's domain. It runs
when the code exists, because the domain's name is a hash of the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.fusion import GroupOp, ProgramOp, RegionOp, program_around
from igniter.dialects.loop import CallOp, FuncOp
from igniter.dialects.made import MakeOp
from igniter.dialects.onnx.attributes import text_of, texts_attr, texts_of
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.onnx.bound import carrier_text, is_carrier
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.ort import STAMPS, LibraryOp, OpOp, Port, PortAttr, ValuesOp
from igniter.dialects.sym import checks_attr, dims_of, element_of, requirements_attr, tensor_of
from igniter.dialects.sym.expr import Expr, maximum
from igniter.errors import IgniterError
from igniter.transforms.conversion.lower_programs import time_stamps, with_names

LONGEST_NAME = 200
"""The most characters of a value's name in a message."""


@dataclass(frozen=True)
class FormOrtLibrary(ModulePass):
    """Collects the scheduled kernels of a module into the description of a custom-op library."""

    name = "form-ort-library"

    library: str = "igniter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        within = _called_in_programs_only(op)
        funcs = [f for f in op.ops if isinstance(f, FuncOp) and f.sym_name.data not in within]
        alone = [r for r in op.walk() if isinstance(r, RegionOp) and program_around(r) is None]
        ops: dict[OpOp, None] = {}
        for func in funcs:
            described = describe(func)
            users = [region for region in alone if region.kernel_name == func.sym_name.data]
            ops.update(dict.fromkeys(name_nodes(described, users).values() or [described]))
        for old in [o for o in op.ops if isinstance(o, LibraryOp) and o.sym_name.data == self.library]:
            old.detach()
            old.erase()
        if ops:
            op.body.block.add_op(LibraryOp(self.library, list(ops)))


def _called_in_programs_only(module: ModuleOp) -> set[str | None]:
    """Returns the kernels called by programs that compute no region outside a program."""
    regions = [op for op in module.walk() if isinstance(op, RegionOp)]
    alone = {r.kernel_name for r in regions if program_around(r) is None}
    called = {op.callee for op in module.walk() if isinstance(op, CallOp)}
    return (called | {r.kernel_name for r in regions}) - alone


def op_name(kernel: str) -> str:
    """Returns the name of the custom op of a kernel: an identifier with an underscore, unlike any ONNX op."""
    return f"igniter_{kernel}"


def describe(func: FuncOp) -> OpOp:
    """Returns the custom op of one kernel."""
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
        [_port(f"out{k}", t) for k, t in enumerate(types[inputs : len(types) - len(func.checks)])],
        func.scratch_bytes,
        func.requires,
        func.checks,
    )


def with_scratch(op: OpOp, scratch: Expr) -> OpOp:
    """Returns the op with an arena for its own kernel and for one that needs `scratch` bytes."""
    size = maximum(op.scratch, scratch)
    return OpOp(op.sym_name.data, op.kernel_name, op.symbol_names, op.inputs, op.outputs, size, op.requires, op.checks)


def _port(name: str, memref: Attribute) -> Port:
    return Port(name, element_of(memref), dims_of(memref))


def name_nodes(op: OpOp, regions: Iterable[RegionOp]) -> dict[str, OpOp]:
    """Returns the custom op of each of `regions`, which share the kernel of `op`, by the region's label.

    They share one op, unless the op has requirements or checks: an error names nodes, and each region has other node
    names. The kernel is the same. An op with one region uses the names of its values.
    """
    regions = list(regions)
    if len(regions) == 1:
        op = name_ports(op, regions[0])
    if all(not isinstance(r.node, int) for r in (*op.requires, *op.checks)):
        return {region.label: op for region in regions}
    found: dict[str, OpOp] = {}
    for region in regions:
        named = name_ports(op, region)
        named.sym_name = StringAttr(op_name(region.label))
        named.requires_attr = requirements_attr(with_names(op.requires, region))
        named.checks_attr = checks_attr(with_names(op.checks, region))
        found[region.label] = named
    return found


def name_ports(op: OpOp, group: GroupOp) -> OpOp:
    """Returns the op with its inputs and outputs named like the ONNX values of `group`, for messages."""
    named = op.clone()
    named.inputs_attr = _named_ports(op.inputs, group.inputs)
    named.outputs_attr = _named_ports(op.outputs, group.yielded)
    return named


def _named_ports(ports: Sequence[Port], values: Sequence[SSAValue]) -> ArrayAttr[PortAttr]:
    names: list[str] = []
    for index, port in enumerate(ports):
        name = value_name(values[index])[:LONGEST_NAME] if index < len(values) else ""
        # A protobuf string may be invalid text.
        name = name.encode("utf-8", "replace").decode()
        names.append(port.name if not name or name in names else name)
    return ArrayAttr(PortAttr(replace(p, name=n)) for p, n in zip(ports, names, strict=True))


def value_name(value: SSAValue) -> str:
    """Returns the name of a value in the model; "" if it has none."""
    owner = value.owner
    if isinstance(value, BlockArgument):
        graph = value.block.parent_op()
        if isinstance(graph, GraphOp):
            return graph.input_names[value.index]
        return value_name(graph.inputs[value.index]) if isinstance(graph, GroupOp) else ""
    if isinstance(owner, MakeOp):
        return value_name(owner.constant)
    if isinstance(owner, GroupOp) and isinstance(value, OpResult):
        return value_name(owner.yield_op.values[value.index])
    if isinstance(owner, OnnxOp) and isinstance(value, OpResult):
        names = owner.output_names
        name = names[value.index] if value.index < len(names) else ""
        return name or text_of(owner.properties.get("initializer_name")) or ""
    return ""


def replace_regions(module: ModuleOp, domain: str, profile: bool = False, ops: Mapping[str, OpOp] | None = None) -> int:
    """Replaces every program, and every region outside programs, by a node of its custom op. Returns their number.

    `profile`: programs have an additional output, their time stamps, also an output of the graph. `ops` are the ops of
    regions (`name_nodes`) with other names than their kernels.
    """
    groups = [op for op in module.walk() if isinstance(op, GroupOp) and program_around(op) is None]
    for group in groups:
        named = (ops or {}).get(group.label)
        _replace(group, domain, profile, None if named is None else named.sym_name.data)
    for make in [op for op in module.walk() if isinstance(op, MakeOp)]:
        _drop_unread(make, make.constant)
    return len(groups)


def _drop_unread(make: MakeOp, constant: SSAValue) -> None:
    """Erases an op without readers, and the constant that nothing else reads."""
    make.detach()
    make.erase()
    if isinstance(constant.owner, Operation) and constant.first_use is None:
        owner = constant.owner
        owner.detach()
        owner.erase()


def _replace(group: GroupOp, domain: str, profile: bool, name: str | None) -> None:
    kernel = group.kernel_name if isinstance(group, RegionOp) else group.label
    if kernel is None:
        raise IgniterError(f"region @{group.label} has no kernel; run lower-onnx-to-loop first")
    types = list(group.result_types)
    stamped = profile and isinstance(group, ProgramOp)
    if isinstance(group, ProgramOp) and stamped:
        types.append(tensor_of(i64, [time_stamps(group)]))
    # A constant that a kernel computes is made by the op itself, from its source.
    given = [v.owner.source if isinstance(v.owner, MakeOp) else v for v in group.inputs]
    node = make_op(name or op_name(kernel), given, types, domain=domain, node_name=group.label)
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


def name_carriers(module: ModuleOp) -> dict[Operation, ValuesOp]:
    """Returns the library op of each node that makes a carrier. A carrier without readers (they were left to ONNX
    Runtime) is erased."""
    found: dict[Operation, ValuesOp] = {}
    for op in [op for op in module.walk() if is_carrier(op)]:
        if op.results[0].first_use is None:
            op.detach()
            op.erase()
            continue
        count = len(dims_of(op.results[0].type)) - 1
        found[op] = ValuesOp(op_name(f"values_{len(found)}"), count, carrier_text(op))
    return found


def replace_carriers(carriers: Mapping[Operation, ValuesOp], domain: str) -> None:
    """Replaces every node that makes a carrier by its library op."""
    for op, values in carriers.items():
        block = op.parent
        assert block is not None
        node = make_op(values.sym_name.data, list(op.operands), [r.type for r in op.results], domain=domain)
        block.insert_op_before(node, op)
        node.results[0].name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(node.results[0])
        op.detach()
        op.erase()


def _add_output(value: SSAValue, name: str) -> None:
    """Makes a value an additional output of the main graph."""
    block = value.owner.parent if isinstance(value.owner, Operation) else None
    assert block is not None
    graph, end = block.parent_op(), block.last_op
    assert graph is not None
    assert end is not None
    names = texts_of(graph.attributes["output_names"])
    graph.attributes["output_names"] = texts_attr([*names, name])
    end.operands = [*end.operands, value]
