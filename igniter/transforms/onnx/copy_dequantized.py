"""`copy-dequantized`: gives every reader of a dequantised tensor its own DequantizeLinear.

    %a = onnx.DequantizeLinear(%q, %s, %z)           %a = onnx.DequantizeLinear(%q, %s, %z)
    %b = onnx.Relu(%a)                         ->    %b = onnx.Relu(%a)
    %c = onnx.Add(%a, %y)                            %d = onnx.DequantizeLinear(%q, %s, %z)
                                                     %c = onnx.Add(%d, %y)

Dequantising costs a subtraction and a multiplication, and floats are four times as large as the integers. If one node
dequantises for several readers, regions pass floats to each other; with separate nodes they pass integers
(`form-fusion-regions` puts each node into its reader's region). ONNX Runtime does the same for its nodes. The pass runs
after `eliminate-common-nodes`, which would merge the copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class CopyDequantized(ModulePass):
    """Gives each reader of a dequantised tensor its own node."""

    name = "copy-dequantized"
    one_rewrite = "a node copied for its readers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites, count = budget(ctx, self.name), 0
        for node in [n for n in op.walk() if isinstance(n, OnnxOp) and n.op_type == "DequantizeLinear"]:
            others = _other_readers(node)
            if others and rewrites.take(node.node_name, f"it is copied for {len(others)} readers"):
                count += len(others)
                for reader in others:
                    _copy(node, reader)
        if count:
            remark(ctx, self.name, "", "applied", f"{count} copies, one for each reader", count=count)


def _other_readers(node: OnnxOp) -> Sequence[Operation]:
    """Returns the readers of a dequantised tensor, except one if all are nodes; empty for a constant."""
    if constant_weight(node.operands[0]) is not None:
        return []
    readers = list(dict.fromkeys(use.operation for use in node.results[0].uses))
    found = [r for r in readers if isinstance(r, OnnxOp) and r.parent is node.parent]
    return found[:-1] if len(found) == len(readers) else found


def _copy(node: OnnxOp, reader: Operation) -> None:
    """Inserts a copy of a node, without its names, before a reader."""
    copy = node.clone()
    for key in ("node_name", "output_names"):
        copy.properties.pop(key, None)
    copy.results[0].name_hint = None
    assert reader.parent is not None
    reader.parent.insert_op_before(copy, reader)
    for index, value in enumerate(reader.operands):
        if value is node.results[0]:
            reader.operands[index] = copy.results[0]
