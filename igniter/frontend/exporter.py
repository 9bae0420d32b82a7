"""IR to `ModelProto`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import onnx
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from igniter.dialects.onnx.attributes import (
    GraphsAttr,
    SparseTensorAttr,
    TensorAttr,
    entries_of,
    text_of,
    texts_of,
    to_python,
)
from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.bound import COUNT_AXIS, is_bound, is_count
from igniter.dialects.onnx.schemas import latest_opset
from igniter.dialects.onnx.structure import FunctionOp, ReturnOp, main_graph
from igniter.dialects.onnx.types import UNKNOWN
from igniter.errors import IgniterError
from igniter.frontend.attributes import export_attribute
from igniter.frontend.extras import (
    dictionaries,
    fill_annotations,
    fill_attribute_extra,
    fill_messages,
    fill_metadata,
    fill_sparse_extra,
    fill_tensor_extra,
)
from igniter.frontend.tensors import InlineSink, TensorSink, export_sparse, export_tensor
from igniter.frontend.value_names import ValueNames
from igniter.frontend.value_types import (
    DimNames,
    apply_value_info,
    export_type,
    is_omitted,
    worth_writing,
)


def export_module(module: ModuleOp, sink: TensorSink | None = None) -> onnx.ModelProto:
    """Exports a module as a `ModelProto`; `sink` takes the bytes of the weights (by default into the message)."""
    return _ModelExporter(module, sink if sink is not None else InlineSink()).run()


class _ModelExporter:
    def __init__(self, module: ModuleOp, sink: TensorSink):
        self.module = module
        self.sink = sink
        self.header = entries_of(module.attributes.get("onnx.model"))
        self.dims = DimNames.of(self.header)
        # A generated name must differ from all names in the model.
        self.reserved: set[str] = set()
        for op in module.walk():
            for key in ("output_names", "input_names"):
                self.reserved.update(texts_of(op.properties.get(key)))
                self.reserved.update(texts_of(op.attributes.get(key)))
            self.reserved.add(text_of(op.properties.get("initializer_name")))
        self.counters: dict[str, int] = {}

    def run(self) -> onnx.ModelProto:
        model = onnx.ModelProto()
        header = self.header
        model.ir_version = to_python(header["ir_version"]) if "ir_version" in header else 10
        self._imports(header.get("opset_import"), model.opset_import)
        for name in ("producer_name", "producer_version", "domain", "doc_string"):
            if name in header:
                setattr(model, name, text_of(header[name]))
        if "model_version" in header:
            model.model_version = to_python(header["model_version"])
        fill_metadata(header.get("metadata"), model.metadata_props)
        fill_messages(header.get("training_info"), model.training_info)
        fill_messages(header.get("configuration"), model.configuration)
        for op in self.module.ops:
            if isinstance(op, FunctionOp):
                self._function(op, model.functions.add())
        try:
            graph = main_graph(self.module)
        except ValueError as error:
            raise IgniterError(f"{error}: there is no graph to write as an ONNX model") from error
        self.graph(graph.body, graph.attributes, model.graph, None)
        if model.ir_version < 4:
            _list_initializers_as_inputs(model.graph)
        return model

    def _imports(self, imports: Attribute | None, protos: Any) -> None:
        entries = entries_of(imports)
        if not entries:
            protos.add(domain="", version=latest_opset(""))
        for domain, version in entries.items():
            protos.add(domain=domain, version=to_python(version))

    # -- graphs ------------------------------------------------------------------------------------------------------

    def graph(
        self, block: Block, info: Mapping[str, Attribute], proto: onnx.GraphProto, outer: ValueNames | None
    ) -> None:
        """Writes a graph to `proto`, from its block and its attributes."""
        names = ValueNames(outer)
        proto.name = text_of(info.get("graph_name"), "main")
        if "doc_string" in info:
            proto.doc_string = text_of(info["doc_string"])
        fill_metadata(info.get("metadata"), proto.metadata_props)
        self._inputs(block, info, proto, names)
        copies = self._outputs(block, info, proto, names)
        self._nodes(block, proto, names)
        for value, name in copies:
            proto.node.add(op_type="Identity", input=[self._name_of(value, names)], output=[name])
        fill_annotations(info.get("quantization_annotations"), proto)

    def _inputs(self, block: Block, info: Mapping[str, Attribute], proto: onnx.GraphProto, names: ValueNames) -> None:
        given = texts_of(info.get("input_names"))
        infos = dictionaries(info.get("input_info"))
        signature = info.get("igniter.signature")
        types = list(cast("ArrayAttr[Attribute]", signature).data) if isinstance(signature, ArrayAttr) else []
        if len(types) != len(block.args):
            types = [argument.type for argument in block.args]
        for index, argument in enumerate(block.args):
            name = given[index] if index < len(given) else ""
            if not name or names.is_taken(name):
                # Inlining can put a graph inside another one with a value of the same name.
                name = self._fresh(argument, names)
            names.give(argument, name)
            self._value(proto.input.add(), name, types[index], infos[index] if index < len(infos) else None)
        names.define(block.args)
        for name, attr in entries_of(info.get("input_defaults")).items():
            self._initializer(proto, name, attr)

    def _outputs(
        self, block: Block, info: Mapping[str, Attribute], proto: onnx.GraphProto, names: ValueNames
    ) -> list[tuple[SSAValue, str]]:
        """Gives the values that the graph returns the names of its outputs; returns the values that cannot take their
        name, with it, to be copied."""
        last = block.last_op
        if not isinstance(last, ReturnOp):
            raise IgniterError("a graph does not end with onnx.return")
        given = texts_of(info.get("output_names"))
        infos = dictionaries(info.get("output_info"))
        copies: list[tuple[SSAValue, str]] = []
        for index, value in enumerate(last.operands):
            name = given[index] if index < len(given) else ""
            if names.is_visible(name):
                name = ""
            if not name or names.by_value.get(value) != name:
                owned = isinstance(value, OpResult) and value.owner.parent is block and value not in names.by_value
                name = name or (self._preferred(value, names) if owned else self._fresh(value, names))
                if owned:
                    names.give(value, name)
                else:
                    names.taken.add(name)
                    copies.append((value, name))
            said = infos[index] if index < len(infos) else None
            type_ = said.data.get("type", value.type) if said is not None else value.type
            if said is not None and "untyped" in said.data and not worth_writing(type_):
                type_ = UNKNOWN
            self._value(proto.output.add(), name, type_, said)
        return copies

    def _nodes(self, block: Block, proto: Any, names: ValueNames) -> None:
        """Writes the ops of `block`; `proto` is a graph or a function."""
        outputs = {v.name for v in proto.output} if isinstance(proto, onnx.GraphProto) else set[str]()
        for op in block.ops:
            if isinstance(op, (ReturnOp, NoValueOp)):
                continue
            if not isinstance(op, OnnxOp):
                raise IgniterError(f"{op.name} is not an ONNX node; export works on the onnx level only")
            for index, result in enumerate(op.results):
                if not is_omitted(result.type) and result not in names.by_value:
                    names.give(result, self._preferred(result, names, index))
            if "initializer_name" in op.properties and isinstance(proto, onnx.GraphProto):
                attr = op.attributes.get("value", op.attributes.get("sparse_value"))
                if attr is None:
                    raise IgniterError(f"the initializer {names.by_value[op.results[0]]!r} has no value")
                self._initializer(proto, names.by_value[op.results[0]], attr, op)
                names.define(op.results)
                continue
            self._node(op, proto.node.add(), names)
            if is_count(op):
                self._counted(op, proto, names)
            names.define(op.results)
            self._value_infos(op, proto, names, outputs)

    def _value_infos(self, op: OnnxOp, proto: Any, names: ValueNames, outputs: set[str]) -> None:
        infos = dictionaries(op.properties.get("output_info"))
        for index, result in enumerate(op.results):
            info = infos[index] if index < len(infos) and infos[index].data else None
            name = names.by_value.get(result)
            if name is None or name in outputs or (op.name == "onnx.Constant" and info is None):
                continue
            if info is not None or worth_writing(result.type):
                self._value(proto.value_info.add(), name, result.type, info)

    def _initializer(self, proto: onnx.GraphProto, name: str, attr: Attribute, op: Operation | None = None) -> None:
        extra = entries_of(op.properties.get("attribute_info")).get("value") if op is not None else None
        if isinstance(attr, TensorAttr):
            tensor = proto.initializer.add()
            fill_tensor_extra(extra, tensor)
            export_tensor(attr.data, name, self.sink, tensor)
        elif isinstance(attr, SparseTensorAttr):
            sparse = proto.sparse_initializer.add()
            fill_sparse_extra(extra, sparse)
            export_sparse(attr, name, self.sink, sparse)
        else:
            raise IgniterError(f"the initializer {name!r} has the value {attr}, which is not a tensor")

    def _value(self, proto: onnx.ValueInfoProto, name: str, type_: Attribute, info: DictionaryAttr | None) -> None:
        proto.name = name
        if type_ != UNKNOWN:
            try:
                export_type(type_, self.dims, proto.type)
            except IgniterError as error:
                raise IgniterError(f"value {name!r}: {error.message}") from error
        apply_value_info(info, proto)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _node(self, op: OnnxOp, proto: onnx.NodeProto, names: ValueNames) -> None:
        proto.op_type = op.op_type
        bound = is_bound(op)
        spelled = "" if bound or is_count(op) else text_of(op.properties.get("domain"), op.domain)
        if spelled:
            proto.domain = spelled
        for key, fill in (("node_name", "name"), ("overload", "overload"), ("doc_string", "doc_string")):
            if key in op.properties:
                setattr(proto, fill, text_of(op.properties[key]))
        fill_metadata(op.properties.get("metadata"), proto.metadata_props)
        fill_messages(op.properties.get("device_configurations"), proto.device_configurations)
        operands = op.operands[:-1] if bound else op.operands
        proto.input.extend("" if is_omitted(v.type) else self._name_of(v, names) for v in operands)
        while bound and proto.input and not proto.input[-1]:
            del proto.input[-1]
        proto.output.extend("" if is_omitted(r.type) else names.by_value[r] for r in op.results)
        try:
            self._attributes(op, proto, names)
        except IgniterError as error:
            raise IgniterError(f"{op.qualified_name} {op.node_name!r}: {error.message}") from error

    def _counted(self, op: OnnxOp, proto: Any, names: ValueNames) -> None:
        """Writes a Shape after the node of ONNX; the node's result gets a name of its own."""
        name = names.by_value[op.results[0]]
        whole = self._fresh(op.results[0], names)
        names.taken.add(whole)
        proto.node[-1].output[0] = whole
        axis = op.attr(COUNT_AXIS)
        if op.opset >= 15:
            node = proto.node.add(op_type="Shape", input=[whole], output=[name])
            node.attribute.add(name="start", type=onnx.AttributeProto.INT, i=axis)
            node.attribute.add(name="end", type=onnx.AttributeProto.INT, i=axis + 1)
            return
        parts = [self._fresh(op.results[0], names) for _ in range(3)]
        proto.node.add(op_type="Shape", input=[whole], output=[parts[0]])
        for part, value in zip(parts[1:], (axis, axis + 1), strict=True):
            tensor = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [value])
            proto.node.add().CopyFrom(onnx.helper.make_node("Constant", [], [part], value=tensor))
        proto.node.add(op_type="Slice", input=parts, output=[name])

    def _attributes(self, op: OnnxOp, proto: onnx.NodeProto, names: ValueNames) -> None:
        infos = entries_of(op.properties.get("attribute_info"))
        lists: dict[str, onnx.AttributeProto] = {}
        for name, attr in op.attributes.items():
            if name.startswith("igniter."):
                continue
            attribute = proto.attribute.add()
            if isinstance(attr, GraphsAttr):
                attribute.name, attribute.type = name, onnx.AttributeProto.GRAPHS
                lists[name] = attribute
            else:
                export_attribute(name, attr, attribute, self.sink, self.dims)
        for name, region in zip(op.graph_names, op.regions, strict=True):
            base = name.partition("[")[0]
            if base in lists and base != name:
                graph = lists[base].graphs.add()
            else:
                graph = proto.attribute.add(name=name, type=onnx.AttributeProto.GRAPH).g
            last = region.block.last_op
            self.graph(region.block, last.attributes if last is not None else {}, graph, names)
        for attribute in proto.attribute:
            fill_attribute_extra(infos.get(attribute.name), attribute)

    def _function(self, op: FunctionOp, proto: onnx.FunctionProto) -> None:
        attributes = op.attributes
        proto.domain, proto.name, proto.overload = op.key
        if not proto.overload:
            proto.ClearField("overload")
        names = ValueNames(None)
        infos = dictionaries(attributes.get("input_info"))
        for index, (argument, name) in enumerate(zip(op.body.args, op.input_names, strict=True)):
            names.give(argument, name)
            info = infos[index] if index < len(infos) and infos[index].data else None
            if info is not None or argument.type != UNKNOWN:
                self._value(proto.value_info.add(), name, argument.type, info)
        proto.input.extend(op.input_names)
        proto.output.extend(op.output_names)
        copies: list[tuple[SSAValue, str]] = []
        for value, name in zip(op.terminator.operands, op.output_names, strict=True):
            if value not in names.by_value:
                names.give(value, name)
            elif names.by_value[value] != name:
                copies.append((value, name))
        self._nodes(op.body, proto, names)
        for value, name in copies:
            proto.node.add(op_type="Identity", input=[names.by_value[value]], output=[name])
        proto.attribute.extend(texts_of(attributes.get("attribute_names")))
        fill_messages(attributes.get("attribute_defaults"), proto.attribute_proto)
        if entries_of(attributes.get("opset_import")):
            self._imports(attributes["opset_import"], proto.opset_import)
        if "doc_string" in attributes:
            proto.doc_string = text_of(attributes["doc_string"])
        fill_metadata(attributes.get("metadata"), proto.metadata_props)

    # -- names -------------------------------------------------------------------------------------------------------

    def _name_of(self, value: SSAValue, names: ValueNames) -> str:
        name = names.find(value)
        if name is None:
            raise IgniterError(f"a node reads {value}, which is not defined before it")
        return name

    def _preferred(self, value: SSAValue, names: ValueNames, index: int | None = None) -> str:
        """Returns the value's name in the model if it is free, otherwise a new one."""
        owner = value.owner
        if isinstance(owner, Operation):
            position = index if index is not None else cast(OpResult, value).index
            given = texts_of(owner.properties.get("output_names"))
            name = given[position] if position < len(given) else text_of(owner.properties.get("initializer_name"))
            if name and not names.is_taken(name):
                return name
        return self._fresh(value, names)

    def _fresh(self, value: SSAValue, names: ValueNames) -> str:
        base = value.name_hint or "value"
        while True:
            count = self.counters.get(base, 0)
            self.counters[base] = count + 1
            name = base if count == 0 else f"{base}_{count}"
            if name not in self.reserved and not names.is_taken(name):
                return name


# -- pieces -----------------------------------------------------------------------------------------------------------


def _list_initializers_as_inputs(graph: onnx.GraphProto) -> None:
    """Adds the initializers to the inputs, as required before IR version 4."""
    known = {v.name for v in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in known:
            value = graph.input.add(name=tensor.name)
            value.type.tensor_type.elem_type = tensor.data_type
            value.type.tensor_type.shape.SetInParent()
            for dim in tensor.dims:
                value.type.tensor_type.shape.dim.add(dim_value=dim)
