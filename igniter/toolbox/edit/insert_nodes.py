"""`insert-nodes`: inserts nodes into the graph, written in ONNX's text form (`onnx.parser`).

    %h = onnx.Exp(%x)          insert-nodes{nodes="h = Clip <...> (h, low, high)"}     %h_1 = onnx.Exp(%x)
    %y = onnx.Neg(%h)                                  ->                              %h = onnx.Clip(%h_1, ...)
                                                                                       %y = onnx.Neg(%h)

A node whose output has the name of an existing value replaces the value: all its readers read the new one under the
same name; the old value gets another name. This inserts a node after a value. To insert it before certain nodes,
`readers` names them for each node; `*` means all. A node with new output names is only added; nodes inserted later may
read it, or it may become an output (`expose-values`). A new domain is imported at version 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, no_value_near
from igniter.dialects.onnx.types import UNKNOWN
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains
from igniter.frontend.written_nodes import WrittenNode, parse_node
from igniter.remarks import remark
from igniter.toolbox.edit.change_types import is_constant
from igniter.toolbox.edit.drop_nodes import replace_value, require_same_type
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import restore_order
from igniter.toolbox.edit.names import Names, block_of, node_text, readers, set_result_name

ALL_READERS = "*"


@dataclass(frozen=True)
class InsertNodes(Edit):
    """Inserts the user's nodes into the graph."""

    name = "insert-nodes"
    nodes: tuple[str, ...] = ()
    """The nodes, in ONNX's text form."""
    readers: tuple[str, ...] = ()
    """For each, the nodes that read its result instead of the value of that name, separated by commas; `*`, or an empty
    list, for all."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.nodes:
            raise IgniterError("no node is given for insert-nodes")
        if self.readers and len(self.readers) != len(self.nodes):
            raise IgniterError(f"{len(self.nodes)} nodes and {len(self.readers)} lists of readers are given")
        for text, who in zip(self.nodes, self.readers or [ALL_READERS] * len(self.nodes), strict=True):
            made = _insert(op, parse_node(text), who)
            remark(ctx, self.name, text, "applied", f"{node_text(made)} is inserted")
        import_domains(op)

    def track(self, interface: Interface) -> None:
        interface.different.append("nodes are inserted")


def _insert(module: ModuleOp, written: WrittenNode, who: str) -> OnnxOp:
    names = Names(module)
    operands = [names.value(n) if n else None for n in written.inputs]
    replaced = [n for n in written.outputs if n in names.values]
    if len(replaced) > 1:
        raise IgniterError(f"`{written.text}` would take the place of {len(replaced)} values: of one at a time")
    target = names.values[replaced[0]] if replaced else None
    if target is None and who != ALL_READERS:
        raise IgniterError(f"`{written.text}` computes no value of the model, so {who} cannot read it in its place")
    block = _block_for(names, written, operands, target)
    made = place(module, written, operands, block)
    if target is None:
        return made
    _take_place(names, made, made.results[written.outputs.index(replaced[0])], target, who)
    restore_order(block)
    return made


def _take_place(names: Names, made: OnnxOp, result: OpResult, target: SSAValue, who: str) -> None:
    name = names.name_of(target)
    types = {**infer_shapes(names.module).types}
    require_same_type(target, result, types, f"{node_text(made)} cannot take the place of '{name}'")
    found = {op for op in readers(target) if op is not made}
    all_of_them = who == ALL_READERS
    if not all_of_them:
        chosen = {names.node(n.strip()) for n in who.split(",")}
        for node in chosen - found:
            raise IgniterError(f"{node_text(node)} does not read '{name}'")
        found = cast("set[Operation]", chosen)
    owned = isinstance(target, OpResult)
    fresh = names.fresh(name)
    if all_of_them and owned:
        set_result_name(target, fresh)
    else:
        # An input keeps its name, and so does a value with other readers.
        set_result_name(result, fresh)
    if result.type == UNKNOWN:
        result._type = target.type
    replace_value(names, target, result, cast("set[OnnxOp]", found))


def _block_for(names: Names, written: WrittenNode, operands: list[SSAValue | None], target: SSAValue | None) -> Block:
    """Returns the graph for the node: the graph of the replaced value, else the innermost one of its operands."""
    blocks = [b for v in (target, *operands) if v is not None and (b := block_of(v)) is not None]
    if target is not None:
        chosen = blocks[0]
    else:
        chosen = max(blocks, key=_depth, default=names.graph.body)
    for name, value in zip(written.inputs, operands, strict=True):
        if value is not None and not _sees(chosen, block_of(value)):
            raise IgniterError(f"`{written.text}` cannot read '{name}', which is inside of another graph")
    return chosen


def _depth(block: Block) -> int:
    parent = block.parent_op()
    return 0 if parent is None or parent.parent is None else 1 + _depth(parent.parent)


def _sees(inner: Block, outer: Block | None) -> bool:
    block: Block | None = inner
    while block is not None:
        if block is outer:
            return True
        parent = block.parent_op()
        block = parent.parent if parent is not None else None
    return False


def place(module: ModuleOp, written: WrittenNode, operands: list[SSAValue | None], block: Block) -> OnnxOp:
    """Makes a node and inserts it after the last of its operands."""
    some = next((v for v in operands if v is not None), None)
    omitted = None
    if any(v is None for v in operands):
        omitted = no_value_near(some) if some is not None else _no_value(block)
    made = written.make(module, operands, omitted)
    last: Operation | None = None
    for op in block.ops:
        if is_constant(op) or any(r in operands for r in op.results):
            last = op
    if last is None:
        first = block.first_op
        assert first is not None
        block.insert_op_before(made, first)
    else:
        block.insert_op_after(made, last)
    return made


def _no_value(block: Block) -> SSAValue:
    made = NoValueOp.make()
    first = block.first_op
    assert first is not None
    block.insert_op_before(made, first)
    return made.results[0]
