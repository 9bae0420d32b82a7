"""`ModelProto` to IR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import onnx
import onnx.helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import (
    GraphsAttr,
    SparseTensorAttr,
    TensorAttr,
    dictionary,
    entries_of,
    own_text,
    text_attr,
    texts_attr,
    to_attr,
    to_python,
)
from igniter.dialects.onnx.base import CustomOp, NoValueOp, OnnxOp, info_list, make_constant, name_hint, op_class
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp
from igniter.dialects.onnx.types import NONE, UNKNOWN
from igniter.dialects.sym import tensor_of
from igniter.errors import IgniterError
from igniter.frontend.attributes import Kind, attribute_type
from igniter.frontend.diagnosis import node_text
from igniter.frontend.extras import (
    annotations_attr,
    attribute_extra,
    messages_attr,
    metadata_attr,
    sparse_extra,
    tensor_extra,
)
from igniter.frontend.node_order import in_order
from igniter.frontend.node_tables import AttributeTable, OpTable, holds_graph
from igniter.frontend.result_types import ResultTypes
from igniter.frontend.schemas import latest_opset, schema_domains
from igniter.frontend.tensors import Source, import_sparse, import_tensor
from igniter.frontend.value_types import Symbols, dim_params, input_params, value_info

_INT32 = 1 << 31


def import_proto(model: onnx.ModelProto, source: Source) -> ModuleOp:
    """Imports a model as a module; `source` finds its external data."""
    return _ModelImporter(model, source).run()


def node_of_proto(
    node: onnx.NodeProto, operands: list[SSAValue], opsets: dict[str, int], functions: Iterable[tuple[str, str]] = ()
) -> OnnxOp:
    """Imports one node with the inputs `operands`, in a model that imports `opsets` and has local `functions` of these
    domains and names. Its attributes contain no graphs, and its result types come from its schema."""
    model = onnx.ModelProto()
    for domain, name in functions:
        model.functions.add(domain=domain, name=name)
    model.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items())
    importer = _GraphImporter(_ModelImporter(model, Source()), opsets)
    return importer.node(node, operands, list(node.output), _Scope(), _Declared())


@dataclass
class _Scope:
    """The visible values by name, including those of the graphs around."""

    parent: _Scope | None = None
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def find(self, name: str) -> SSAValue | None:
        scope: _Scope | None = self
        while scope is not None:
            found = scope.values.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


@dataclass
class _Declared:
    """The model's declarations of values by name: their types, and the rest of their ValueInfo."""

    types: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    infos: dict[str, DictionaryAttr] = field(default_factory=dict[str, DictionaryAttr])


def _require_known(model: onnx.ModelProto) -> None:
    """Raises `IgniterError` for a version of the format, or of ONNX's ops, newer than the installed `onnx`."""
    newest = onnx.IR_VERSION
    advice = (
        f"the installed onnx {onnx.__version__} supports up to %d; install a newer onnx, or export an older version"
    )
    if model.ir_version > newest:
        raise IgniterError(f"the model has version {model.ir_version} of ONNX's format, but {advice % newest}")
    imports = [*model.opset_import, *(entry for f in model.functions for entry in f.opset_import)]
    for entry in imports:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        if domain in schema_domains() and entry.version > latest_opset(domain):
            named = domain or "ai.onnx"
            raise IgniterError(
                f"the model imports opset {entry.version} of {named}, but {advice % latest_opset(domain)}"
            )


class _ModelImporter:
    def __init__(self, model: onnx.ModelProto, source: Source):
        self.model = model
        self.source = source
        self.symbols = Symbols.for_names(dim_params(model), input_params(model))
        self.opsets = {entry.domain: entry.version for entry in model.opset_import}
        self.functions = {(f.domain, f.name, f.overload) for f in model.functions}
        self.function_names = {(f.domain, f.name) for f in model.functions}

    def run(self) -> ModuleOp:
        if not self.model.HasField("graph"):
            raise IgniterError(f"{self.source.path or 'the model'} has no graph")
        for domain, version in self.opsets.items():
            if not -_INT32 <= version < _INT32:
                raise IgniterError(
                    f"the model imports version {version} of the domain {domain!r}, which does not exist"
                )
        _require_known(self.model)
        functions = [self._function(f, i) for i, f in enumerate(self.model.functions)]
        graph = _GraphImporter(self, self.opsets).main(self.model.graph)
        return ModuleOp([*functions, graph], {"onnx.model": self._header()})

    def _header(self) -> DictionaryAttr:
        model = self.model
        entries: dict[str, Attribute | None] = {
            "ir_version": to_attr(model.ir_version),
            "opset_import": opset_attr(model.opset_import),
        }
        for name in ("producer_name", "producer_version", "domain", "doc_string"):
            text = getattr(model, name)
            entries[name] = text_attr(text) if text else None
        if model.model_version:
            entries["model_version"] = to_attr(model.model_version)
        entries["metadata"] = metadata_attr(model.metadata_props)
        entries["training_info"] = messages_attr("TrainingInfoProto", model.training_info)
        entries["configuration"] = messages_attr("DeviceConfigurationProto", model.configuration)
        if self.symbols.prefix != Symbols().prefix:
            entries["unknown_dims"] = StringAttr(self.symbols.prefix)
        if self.symbols.aliases:
            entries["dim_names"] = DictionaryAttr({k: text_attr(v) for k, v in self.symbols.aliases.items()})
        return dictionary(entries)

    def _function(self, proto: onnx.FunctionProto, index: int) -> FunctionOp:
        opsets = {entry.domain: entry.version for entry in proto.opset_import} or self.opsets
        importer = _GraphImporter(self, opsets, in_function=True)
        declared = importer.declare(proto.value_info)
        block = Block(arg_types=[declared.types.get(name, UNKNOWN) for name in proto.input])
        scope = _Scope(values={n: a for n, a in zip(proto.input, block.args, strict=True) if n})
        importer.hints(proto.input, block.args)
        where = f"function {proto.domain}.{proto.name}"
        importer.nodes(proto.node, block, scope, declared, where)
        block.add_op(ReturnOp.make([importer.output(scope, name, where) for name in proto.output]))
        attributes: dict[str, Attribute | None] = {
            "domain": text_attr(proto.domain),
            "function_name": text_attr(proto.name),
            "overload": text_attr(proto.overload) if proto.overload else None,
            "input_names": texts_attr(proto.input),
            "output_names": texts_attr(proto.output),
            "attribute_names": texts_attr(proto.attribute) if len(proto.attribute) else None,
            "attribute_defaults": self._defaults(proto),
            "opset_import": opset_attr(proto.opset_import),
            "doc_string": text_attr(proto.doc_string) if proto.doc_string else None,
            "metadata": metadata_attr(proto.metadata_props),
            "input_info": info_list([declared.infos.get(n) for n in proto.input]),
        }
        return FunctionOp.make(
            f"function_{index}_{_identifier(proto.name)}", Region(block), dictionary(attributes).data
        )

    def _defaults(self, proto: onnx.FunctionProto) -> Attribute | None:
        """Returns a function's attributes with defaults; as messages, since the IR has no place for a graph among
        them."""
        return messages_attr("AttributeProto", proto.attribute_proto)


class _GraphImporter:
    """The import of the nodes of one graph or function, and of the graphs inside its nodes."""

    def __init__(self, model: _ModelImporter, opsets: dict[str, int], in_function: bool = False):
        self.model = model
        self.in_function = in_function
        self.source = model.source
        self.symbols = model.symbols
        self.opsets = opsets
        self.result_types = ResultTypes(opsets)
        self.attributes = AttributeTable(model.source, model.symbols, in_function)
        self.ops = OpTable(opsets, model.function_names)
        self.constant_types: dict[tuple[int, tuple[int, ...]], TensorType[Attribute]] = {}
        self.omitted: dict[Block, SSAValue] = {}

    # -- graphs ------------------------------------------------------------------------------------------------------

    def main(self, graph: onnx.GraphProto) -> GraphOp:
        region, info = self.graph(graph, None, "the main graph")
        info.setdefault("graph_name", text_attr(graph.name))
        return GraphOp.make("main", region, info)

    def graph(self, graph: onnx.GraphProto, outer: _Scope | None, where: str) -> tuple[Region, dict[str, Attribute]]:
        """Returns the region of a graph, ended by its return, and the graph's attributes."""
        initialized = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
        # An initializer's type is known from itself.
        declared = self.declare(graph.value_info, initialized)
        inputs = self.declare(graph.input)
        outputs = self.declare(graph.output)
        declared.types.update({k: v for k, v in outputs.types.items() if v != UNKNOWN})
        # Before IR version 4 every initializer had to be an input too, and could not be overridden.
        constant = initialized if self.model.model.ir_version < 4 else set[str]()
        arguments = [v for v in graph.input if v.name not in constant]
        block = Block(arg_types=[inputs.types[v.name] for v in arguments])
        scope = _Scope(outer, {v.name: a for v, a in zip(arguments, block.args, strict=True)})
        self.hints([v.name for v in arguments], block.args)
        defaults = self._initializers(graph, block, scope, {v.name for v in arguments}, where)
        self.nodes(graph.node, block, scope, declared, where)
        values = [self.output(scope, v.name, where) for v in graph.output]
        info: dict[str, Attribute | None] = {
            "graph_name": text_attr(graph.name) if graph.name else None,
            "input_names": texts_attr([v.name for v in arguments]),
            "output_names": texts_attr([v.name for v in graph.output]),
            "input_info": info_list([inputs.infos.get(v.name) for v in arguments]),
            "output_info": info_list(
                [_output_info(v.name, outputs, x) for v, x in zip(graph.output, values, strict=True)]
            ),
            "input_defaults": DictionaryAttr(defaults) if defaults else None,
            "quantization_annotations": annotations_attr(graph),
            "doc_string": text_attr(graph.doc_string) if graph.doc_string else None,
            "metadata": metadata_attr(graph.metadata_props),
        }
        kept = {k: v for k, v in info.items() if v is not None}
        block.add_op(ReturnOp.make(values, kept if outer is not None else {}))
        return Region(block), kept

    def declare(self, values: Iterable[onnx.ValueInfoProto], but: Collection[str] = ()) -> _Declared:
        declared = _Declared()
        for value in values:
            name = value.name
            if name in but:
                continue
            declared.types[name], denotations = self.symbols.read(value.type)
            info = value_info(value, denotations)
            if info is not None:
                declared.infos[name] = info
        return declared

    def hints(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        for name, value in zip(names, values, strict=True):
            hint = name_hint(name)
            if hint is not None:
                building.set_hint(value, hint)

    def output(self, scope: _Scope, name: str, where: str) -> SSAValue:
        value = scope.find(name)
        if value is None:
            raise IgniterError(f"{where} has the output {name!r}, which nothing in it defines")
        return value

    def _initializers(
        self, graph: onnx.GraphProto, block: Block, scope: _Scope, arguments: set[str], where: str
    ) -> dict[str, Attribute]:
        """Adds the constants to `block`; the ones with an override by the caller are returned instead, by name."""
        defaults: dict[str, Attribute] = {}
        for tensor in graph.initializer:
            weight, name = import_tensor(tensor, self.source), tensor.name
            if name in arguments:
                defaults[name] = TensorAttr(weight)
                continue
            type_ = self.constant_types.get((weight.element.code, weight.shape))
            op = make_constant(weight, name, type_)
            self.constant_types[weight.element.code, weight.shape] = cast("TensorType[Attribute]", op.results[0].type)
            extra = tensor_extra(tensor, with_name=False)
            if extra is not None:
                op.properties["attribute_info"] = DictionaryAttr({"value": extra})
            self._define_initializer(op, name, block, scope, where)
        for sparse in graph.sparse_initializer:
            attr = import_sparse(sparse, self.source)
            if sparse.values.name in arguments:
                defaults[sparse.values.name] = attr
                continue
            op = op_class("", "Constant").create(
                result_types=[_sparse_type(attr)],
                attributes={"sparse_value": attr},
                properties={"initializer_name": text_attr(sparse.values.name)},
            )
            extra = sparse_extra(sparse, with_name=False)
            if extra is not None:
                op.properties["attribute_info"] = DictionaryAttr({"value": extra})
            self._define_initializer(op, sparse.values.name, block, scope, where)
        return defaults

    def _define_initializer(self, op: Operation, name: str, block: Block, scope: _Scope, where: str) -> None:
        if not name or name in scope.values:
            raise IgniterError(f"{where} has {'two initializers' if name else 'an initializer'} named {name!r}")
        building.append(block, op)
        scope.values[name] = op.results[0]

    # -- nodes -------------------------------------------------------------------------------------------------------

    def nodes(
        self, nodes: Sequence[onnx.NodeProto], block: Block, scope: _Scope, declared: _Declared, where: str
    ) -> None:
        values = scope.values
        for node, inputs in _readable(nodes, values, where):
            operands: list[SSAValue] = []
            for name in inputs:
                value = values.get(name) or (scope.find(name) if name else self._omitted(block))
                if value is None:
                    raise IgniterError(f"{node_text(node, where)} reads {name!r}, which nothing defines")
                operands.append(value)
            outputs = list(node.output)
            try:
                op = self.node(node, operands, outputs, scope, declared)
            except IgniterError as error:
                raise IgniterError(f"{node_text(node, where)}: {error.message}") from error
            building.append(block, op)
            for name, result in zip(outputs, op.results, strict=True):
                if not name:
                    continue
                if name in values:
                    raise IgniterError(f"{node_text(node, where)} defines {name!r}, which is already defined")
                values[name] = result
                hint = name_hint(name)
                if hint is not None:
                    building.set_hint(result, hint)

    def _omitted(self, block: Block) -> SSAValue:
        """Returns the value of a block for the omitted inputs of nodes."""
        found = self.omitted.get(block)
        if found is None:
            op = NoValueOp.make()
            block.add_op(op)
            found = self.omitted[block] = op.results[0]
        return found

    def node(
        self, node: onnx.NodeProto, operands: list[SSAValue], outputs: list[str], scope: _Scope, declared: _Declared
    ) -> OnnxOp:
        cls, properties = self._class(node, outputs)
        attributes, regions = self._attributes(node, properties, scope) if len(node.attribute) else ({}, ())
        types, outputs_info = self._results(node, outputs, operands, attributes, regions, declared)
        if outputs_info is not None:
            properties["output_info"] = outputs_info
        return building.new_op(cls, operands, types, attributes, properties, regions)

    def _attributes(
        self, node: onnx.NodeProto, properties: dict[str, Attribute], scope: _Scope
    ) -> tuple[dict[str, Attribute], Sequence[Region]]:
        """Returns the attributes and the graphs of a node; adds their names and extras to the properties."""
        attributes: dict[str, Attribute] = {}
        infos: dict[str, Attribute] = {}
        graphs: list[str] = []
        regions: list[Region] = []
        for proto in node.attribute:
            found = None if holds_graph(proto) else self.attributes.of(proto)
            name = proto.name if found is None else found.name
            extra = attribute_extra(proto, attribute_type(proto)) if found is None else found.extra
            if name in attributes or name in graphs:
                raise IgniterError(f"attribute {name!r} is given twice")
            if extra is not None:
                infos[name] = extra
            if found is not None:
                attributes[name] = found.value
            elif attribute_type(proto) == Kind.GRAPH:
                graphs.append(name)
                regions.append(self.graph(proto.g, scope, f"the graph {name!r}")[0])
            else:
                attributes[name] = GraphsAttr(IntegerAttr(len(proto.graphs), i64))
                for index, graph in enumerate(proto.graphs):
                    graphs.append(f"{name}[{index}]")
                    regions.append(self.graph(graph, scope, f"the graph {graphs[-1]!r}")[0])
        if node.op_type == "Einsum" and isinstance(equation := attributes.get("equation"), StringAttr):
            _check_ellipses(equation.data)
        if graphs:
            properties["graphs"] = texts_attr(graphs)
        if infos:
            properties["attribute_info"] = DictionaryAttr(infos)
        return attributes, regions

    def _class(self, node: onnx.NodeProto, outputs: list[str]) -> tuple[type[OnnxOp], dict[str, Attribute]]:
        properties: dict[str, Attribute] = {}
        domain, op_type, name = node.domain, node.op_type, node.name
        cls = self.ops.of(domain, op_type)
        if cls is CustomOp:
            properties["domain"] = text_attr(domain)
            properties["op_type"] = text_attr(op_type)
        elif domain == "ai.onnx":
            properties["domain"] = text_attr(domain)
        if name:
            properties["node_name"] = own_text(name)
        if outputs:
            properties["output_names"] = building.data(ArrayAttr, tuple([own_text(name) for name in outputs]))
        if node.overload:
            properties["overload"] = text_attr(node.overload)
        if node.doc_string:
            properties["doc_string"] = text_attr(node.doc_string)
        metadata = metadata_attr(node.metadata_props, self.source.is_own)
        if metadata is not None:
            properties["metadata"] = metadata
        if len(node.device_configurations):
            devices = messages_attr("NodeDeviceConfigurationProto", node.device_configurations)
            if devices is not None:
                properties["device_configurations"] = devices
        return cls, properties

    def _results(
        self,
        node: onnx.NodeProto,
        outputs: list[str],
        operands: list[SSAValue],
        attributes: dict[str, Attribute],
        regions: Sequence[Region],
        declared: _Declared,
    ) -> tuple[list[Attribute], Attribute | None]:
        types: list[Attribute] = []
        infos: list[Attribute | None] = [None] * len(outputs)
        for index, name in enumerate(outputs):
            said = declared.types.get(name) if name else NONE
            if name in declared.infos:
                infos[index] = declared.infos[name]
            if said is None or said is UNKNOWN:
                said = self.result_types.infer(node, index, operands, attributes, regions)
            elif type(said) is UnrankedTensorType:
                # An inferred type would look the same, and is not exported.
                infos[index] = DictionaryAttr({**entries_of(infos[index]), "declared": UnitAttr()})
            types.append(cast(Attribute, said))
        return types, info_list(infos) if any(infos) else None


# -- pieces -----------------------------------------------------------------------------------------------------------


def opset_attr(imports: Iterable[onnx.OperatorSetIdProto]) -> DictionaryAttr:
    """Returns versions by domain."""
    return DictionaryAttr({entry.domain: to_attr(entry.version) for entry in imports})


def _output_info(name: str, outputs: _Declared, value: SSAValue) -> DictionaryAttr | None:
    """Returns the declaration of an output, except its value's type."""
    info = outputs.infos.get(name)
    said = outputs.types[name]
    if said != value.type:
        # A branch's output may be declared without a type; an inferred type is not exported in its place.
        extra = {"untyped": UnitAttr()} if said == UNKNOWN else {"type": said}
        return DictionaryAttr({**(info.data if info is not None else {}), **extra})
    return info


def _sparse_type(attr: SparseTensorAttr) -> Attribute:
    return tensor_of(attr.values.data.element_type, to_python(attr.dims))


def _readable(
    nodes: Sequence[onnx.NodeProto], values: Mapping[str, SSAValue], where: str
) -> Iterator[tuple[onnx.NodeProto, list[str]]]:
    """Yields the nodes of a graph with their input names, each after its producers.

    `values` are the values of the graph defined so far. Nodes are reordered from the first one on that reads another
    value, or may do so in a graph inside it; most models need no reordering.
    """
    for index, node in enumerate(nodes):
        inputs, attributes = list(node.input), node.attribute
        missing = not all(map(values.get, inputs)) and any(name not in values for name in inputs if name)
        if missing or (len(attributes) and any(map(holds_graph, attributes))):
            for later in in_order(nodes[index:], where):
                yield later, list(later.input)
            return
        yield node, inputs


def _identifier(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)


def _check_ellipses(equation: str) -> None:
    """Raises `IgniterError` for an equation of Einsum with two ellipses in one term.

    Other mistakes in an equation are left to ONNX Runtime; it and ONNX's shape inference never return from this one.
    """
    for term in equation.replace("->", ",").split(","):
        if term.count("...") > 1:
            raise IgniterError(
                f"the equation {equation!r} has {term.count('...')} ellipses in one term; only one is allowed"
            )
