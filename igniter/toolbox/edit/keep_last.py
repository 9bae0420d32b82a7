"""`keep-last`: an output keeps the last row of an axis, and the nodes before it compute no other row.

    %h = onnx.Add(%x, %s) : tensor<?x?x64xf32>          keep-last{outputs="logits:1"}     %h = onnx.Add(%x, %s)
    %y = onnx.MatMul(%h, %w) : tensor<?x?x32000xf32>               ->                     %l = onnx.Gather(%h, [-1])
                                                                                          %y = onnx.MatMul(%l, %w)

Generation reads the logits of the last position; those of the others are most of a prompt's work in a small model. The
Gather moves up through nodes that compute each row from the same row of their operands (products with weights,
normalisations of rows, elementwise nodes), as long as nothing else reads their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.onnx.row_operands import row_operands
from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, Expr
from igniter.errors import IgniterError
from igniter.frontend.written_nodes import parse_node
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import forget_derived, info_entries, restore_order, set_info
from igniter.toolbox.edit.insert_nodes import place
from igniter.toolbox.edit.names import Names, node_text, set_result_name


@dataclass(frozen=True)
class KeepLast(Edit):
    """Keeps the last row of an axis of outputs, and computes no other row."""

    name = "keep-last"
    outputs: tuple[str, ...] = ()
    """The outputs, each as OUTPUT:AXIS."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.outputs:
            raise IgniterError("no output is named for keep-last")
        for text in self.outputs:
            nodes = _Rows(op, text).run()
            remark(ctx, self.name, text, "applied", f"{len(nodes)} nodes compute the last row only")

    def track(self, interface: Interface) -> None:
        interface.different.append(f"{', '.join(self.outputs)}: only the last row is kept")


@dataclass
class _Rows:
    module: ModuleOp
    text: str
    carriers: dict[Operation, list[int]] = field(default_factory=dict[Operation, list[int]])
    """The nodes that compute the last row only, with their operands that have rows."""
    sliced: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def run(self) -> list[Operation]:
        graph = main_graph(self.module)
        self.types: Mapping[SSAValue, Attribute] = infer_shapes(self.module).types
        name, _, number = self.text.rpartition(":")
        if name not in graph.output_names or not number.isdigit():
            raise IgniterError(f"'{self.text}' is no OUTPUT:AXIS; outputs are {', '.join(graph.output_names)}")
        self.position = graph.output_names.index(name)
        last = graph.body.last_op
        assert last is not None
        value = last.operands[self.position]
        dims = self._dims(value)
        if dims is None or int(number) >= len(dims):
            raise IgniterError(f"'{self.text}': the output has no known dim {number}")
        self.row, self.from_end = dims[int(number)], len(dims) - int(number)
        if self.row == ONE:
            raise IgniterError(f"'{self.text}' has one row already")
        self._collect(graph)
        if value.owner not in self.carriers:
            what = node_text(value.owner) if isinstance(value.owner, OnnxOp) else "an input"
            raise IgniterError(f"'{self.text}': {what} does not compute rows one by one for this output alone")
        self._cut(graph)
        restore_order(graph.body)
        self._forget(graph)
        return list(self.carriers)

    def _dims(self, value: SSAValue) -> tuple[Expr, ...] | None:
        try:
            return tuple(dims_of(self.types.get(value, value.type)))
        except ValueError:
            return None

    def _collect(self, graph: GraphOp) -> None:
        for op in reversed(list(graph.body.ops)):
            if not isinstance(op, OnnxOp) or not op.operands or op.regions:
                continue
            uses = [use for result in op.results for use in result.uses]
            if uses and all(self._is_inside(use.operation, use.index) for use in uses):
                found = row_operands(op, self.from_end, self.row, self._dims)
                if found:
                    self.carriers[op] = found

    def _is_inside(self, user: Operation, index: int) -> bool:
        if isinstance(user, ReturnOp):
            return index == self.position
        return index in self.carriers.get(user, ())

    def _cut(self, graph: GraphOp) -> None:
        for op, operands in reversed(self.carriers.items()):
            for k in operands:
                if op.operands[k].owner not in self.carriers:
                    op.operands[k] = self._last_row(graph, op.operands[k])
            for result in op.results:
                dims = self._dims(result)
                if dims is not None and isinstance(result.type, TensorType):
                    kept = [*dims[: -self.from_end], ONE, *dims[len(dims) - self.from_end + 1 :]]
                    result._type = tensor_of(element_of(self.types.get(result, cast("Attribute", result.type))), kept)

    def _last_row(self, graph: GraphOp, value: SSAValue) -> SSAValue:
        if value not in self.sliced:
            dims = self._dims(value)
            assert dims is not None
            index = place(self.module, parse_node("y = Constant <value_ints = [-1]> ()"), [], graph.body)
            # Not a Slice: its result has one row only if there is one, and onnxruntime-genai asks for a declared 1.
            text = f"y = Gather <axis = {len(dims) - self.from_end}> (x, i)"
            made = place(self.module, parse_node(text), [value, self._named(index, "last.index")], graph.body)
            self.sliced[value] = self._named(made, "last.rows")
        return self.sliced[value]

    def _named(self, op: OnnxOp, base: str) -> SSAValue:
        result = op.results[0]
        set_result_name(result, Names(self.module).fresh(base))
        return result

    def _forget(self, graph: GraphOp) -> None:
        """Removes the declared type of the output: inference finds it again."""
        forget_derived(graph)
        infos = info_entries(graph.attributes.get("output_info"), len(graph.output_names))
        entry = infos[self.position]
        if isinstance(entry, DictionaryAttr):
            kept = {key: attr for key, attr in cast("dict[str, Attribute]", entry.data).items() if key != "type"}
            infos[self.position] = DictionaryAttr(kept) if kept else None
        set_info(graph, "output_info", infos)
