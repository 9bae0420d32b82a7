"""Features of models besides plain nodes: each round trips, and means in the IR what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model_equality import difference
from onnx import AttributeProto, TensorProto
from onnx import helper as h
from onnx import numpy_helper as nh
from round_trip import reparsed, round_trip
from runtime_equality import original_outputs, outputs, same_bits
from xdsl.dialects.builtin import ModuleOp, NoneType, TensorType
from xdsl.ir import Region
from xdsl.parser import Parser

import igniter
from igniter.context import IgniterContext
from igniter.dialects.onnx.base import CustomOp, OnnxOp, constant_value, make_constant, make_op
from igniter.dialects.onnx.structure import ReturnOp, functions, main_graph
from igniter.dialects.onnx.types import ELEMENT_TYPES
from igniter.dialects.sym import dims_of
from igniter.frontend import export_model, import_model

FLOAT = TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    *,
    opsets: dict[str, int] | None = None,
    ir_version: int = 10,
    **graph: Any,
) -> onnx.ModelProto:
    """A model whose inputs and outputs are f32 of the given dims (or ValueInfos)."""
    infos = [
        [v if isinstance(v, onnx.ValueInfoProto) else h.make_tensor_value_info(k, FLOAT, v) for k, v in d.items()]
        for d in (inputs, outputs)
    ]
    made = h.make_graph(nodes, "g", *infos, **graph)
    imports = [h.make_opsetid(d, v) for d, v in (opsets or {"": 21}).items()]
    return h.make_model(made, opset_imports=imports, ir_version=ir_version)


def keeps(before: onnx.ModelProto) -> onnx.ModelProto:
    """Assert that a round trip keeps everything, and give what it gave."""
    after = round_trip(before)
    assert difference(before, after) is None
    return after


def node_ops(module: ModuleOp) -> list[OnnxOp]:
    """The nodes, those of subgraphs included."""
    return [op for op in module.walk() if isinstance(op, OnnxOp)]


# -- names ------------------------------------------------------------------------------------------------------------


def test_names_survive() -> None:
    names = ["/layer.0/Add:0", "x y", "%percent", "naïve", 'quo"te', "back\\slash", "0", "a_1", "a"]
    nodes = [h.make_node("Relu", [a], [b], name=f"n {b}") for a, b in zip(["in", *names[:-1]], names, strict=True)]
    keeps(model(nodes, {"in": [1]}, {"a": [1]}))


def test_a_new_value_gets_a_name_that_no_value_has() -> None:
    module = import_model(model([h.make_node("Relu", ["x"], ["relu"])], {"x": [2]}, {"relu": [2]}))
    graph = main_graph(module)
    first = node_ops(module)[0]
    extra = make_op("Neg", [first.results[0]], [first.results[0].type])
    extra.results[0].name_hint = "relu"
    graph.body.insert_op_before(extra, graph.terminator)
    graph.terminator.operands[0] = extra.results[0]
    made = export_model(module)
    assert [list(n.output) for n in made.graph.node] == [["relu_1"], ["relu"]]
    onnx.checker.check_model(made, full_check=True)


def test_a_passed_through_value_is_copied_to_the_outputs_name() -> None:
    module = import_model(model([h.make_node("Identity", ["x"], ["y"])], {"x": [2]}, {"y": [2]}))
    graph = main_graph(module)
    graph.terminator.operands[0] = graph.body.args[0]
    made = export_model(module)
    unused, copy = made.graph.node
    assert (copy.op_type, list(copy.input), list(copy.output)) == ("Identity", ["x"], ["y"])
    assert list(unused.output) != ["y"]


def test_one_value_returned_twice_is_copied() -> None:
    nodes = [h.make_node("Relu", ["x"], ["a"]), h.make_node("Relu", ["x"], ["b"])]
    module = import_model(model(nodes, {"x": [2]}, {"a": [2], "b": [2]}))
    terminator = main_graph(module).terminator
    terminator.operands[1] = terminator.operands[0]
    made = export_model(module)
    feeds = {"x": np.array([-1, 2], np.float32)}
    assert same_bits(outputs(made, feeds), [np.array([0, 2], np.float32)] * 2)


def test_text_without_names_gets_names() -> None:
    text = """
    builtin.module attributes {onnx.model = {opset_import = {"" = 21 : i64}}} {
      onnx.graph @main(%x: tensor<2xf32>) {
        %y = onnx.Relu(%x) : (tensor<2xf32>) -> tensor<2xf32>
        onnx.return %y, %x : tensor<2xf32>, tensor<2xf32>
      }
    }
    """
    made = export_model(Parser(IgniterContext(), text).parse_module())
    onnx.checker.check_model(made, full_check=True)
    assert [v.name for v in made.graph.output] == ["y", "x_1"]
    feeds = {"x": np.array([1, -2], np.float32)}
    assert same_bits(outputs(made, feeds), [np.array([1, 0], np.float32), feeds["x"]])


def test_a_graph_that_ends_up_inside_another_gets_names_of_its_own() -> None:
    module = import_model(_loop_in_loop())
    made = export_model(module)
    assert difference(_loop_in_loop(), made) is None
    # What inlining does: the inner body's names are now those of the outer body too.
    outer = next(op for op in node_ops(module) if op.op_type == "Loop")
    first, second = outer.regions[0].block.last_op, None
    for op in outer.regions[0].walk():
        second = op if isinstance(op, ReturnOp) and op is not first else second
    assert first is not None and second is not None
    for key in ("input_names", "output_names"):
        second.attributes[key] = first.attributes[key]
    made = export_model(module)
    onnx.checker.check_model(made, full_check=True)
    feeds = {"x": np.ones(2, np.float32), "n": np.array(2)}
    assert same_bits(original_outputs(_loop_in_loop(), feeds), outputs(made, feeds))


def _loop_in_loop() -> onnx.ModelProto:
    def body(prefix: str, nodes: list[onnx.NodeProto], result: str) -> onnx.GraphProto:
        inputs = [
            h.make_tensor_value_info(f"{prefix}i", TensorProto.INT64, []),
            h.make_tensor_value_info(f"{prefix}c", TensorProto.BOOL, []),
            h.make_tensor_value_info(f"{prefix}v", FLOAT, [2]),
        ]
        outs = [
            h.make_tensor_value_info(f"{prefix}d", TensorProto.BOOL, []),
            h.make_tensor_value_info(result, FLOAT, [2]),
        ]
        keep = h.make_node("Identity", [f"{prefix}c"], [f"{prefix}d"])
        return h.make_graph([keep, *nodes], prefix, inputs, outs)

    inner = body("p", [h.make_node("Add", ["pv", "ov"], ["pw"])], "pw")
    outer = body("o", [h.make_node("Loop", ["n", "", "ov"], ["ow"], body=inner)], "ow")
    count = h.make_tensor_value_info("n", TensorProto.INT64, [])
    return model([h.make_node("Loop", ["n", "", "x"], ["y"], body=outer)], {"x": [2], "n": count}, {"y": [2]})


def test_an_input_that_is_an_output_stays_one() -> None:
    keeps(model([h.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"x": [2], "y": [2]}))


# -- dims -------------------------------------------------------------------------------------------------------------


def test_dims_become_symbols() -> None:
    value = h.make_tensor_value_info("x", FLOAT, ["batch", None, 3, "a+b", "", 'q"t', "unk__0"])
    module = import_model(
        model([h.make_node("Relu", ["x"], ["y"])], {"x": value}, {"y": ["batch", None, 3, 1, 1, 1, 1]})
    )
    dims = dims_of(main_graph(module).body.args[0].type)
    assert dims[0].symbol == "batch" and dims[2] == 3 and dims[3].symbol == "a+b" and dims[6].symbol == "unk__any_1"
    assert len({str(d) for d in dims}) == 7
    again = main_graph(reparsed(module)).body.args[0].type
    assert dims_of(again) == dims


def test_dims_come_back() -> None:
    value = h.make_tensor_value_info("x", FLOAT, ["batch", None, 3, "a+b", "", 'q"t', "unk__0", "min", "b\nc", "é"])
    value.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    value.type.denotation = "IMAGE"
    value.doc_string = "the input"
    value.metadata_props.add(key="k", value="v")
    keeps(model([h.make_node("Relu", ["x"], ["y"])], {"x": value}, {"y": [None] * 10}))


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.integers(0, 2**40), st.text(max_size=8)), max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_dims_come_back(dims: list[Any]) -> None:
    value = h.make_tensor_value_info("x", FLOAT, dims)
    keeps(model([h.make_node("Relu", ["x"], ["y"])], {"x": value}, {"y": dims}))


def test_an_unranked_value_stays_unranked() -> None:
    x = h.make_tensor_value_info("x", FLOAT, None)
    inner = h.make_tensor_value_info("a", FLOAT, None)
    nodes = [h.make_node("Relu", ["x"], ["a"]), h.make_node("Relu", ["a"], ["y"])]
    after = keeps(model(nodes, {"x": x}, {"y": h.make_tensor_value_info("y", FLOAT, None)}, value_info=[inner]))
    assert len(after.graph.value_info) == 1


# -- types and tensors ------------------------------------------------------------------------------------------------


def _use(row: Any) -> onnx.NodeProto:
    """A node that takes w and gives y; the 6-bit types are too new for Identity."""
    return h.make_node("Identity", ["w"], ["y"], domain="d" if row.bits == 6 else "")


def _random_raw(code: int, count: int, bits: int) -> bytes:
    data = np.random.default_rng(code).integers(0, 256, (count * bits + 7) // 8, dtype=np.uint8)
    if code == TensorProto.BOOL:
        data &= 1
    spare = len(data) * 8 - count * bits
    if spare:
        data[-1] &= 0xFF >> spare
    return data.tobytes()


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda r: r.onnx_name)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (5, 7), (3, 11, 3)], ids=str)
def test_every_element_type(row: Any, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    tensor = TensorProto(name="w", data_type=row.code, dims=shape)
    if row.bits:
        tensor.raw_data = _random_raw(row.code, count, row.bits)
    else:
        tensor.string_data.extend([b"ascii", "né".encode(), b"\xff\x00", b"", b'"\\'][i % 5] for i in range(count))
    value = h.make_tensor_value_info("y", row.code, shape)
    before = model([_use(row)], {}, {"y": value}, opsets={"": 27, "d": 1}, initializer=[tensor])
    after = keeps(before)
    constant = node_ops(import_model(after))[0]
    if row.bits:
        assert nh.to_array(after.graph.initializer[0]).tobytes() == nh.to_array(tensor).tobytes()
        array = constant_value(constant.results[0])
        assert array is not None and array.shape == shape and array.dtype == nh.to_array(tensor).dtype


@pytest.mark.parametrize("row", [r for r in ELEMENT_TYPES if r.bits], ids=lambda r: r.onnx_name)
def test_tensors_with_values_in_the_field_of_their_type(row: Any) -> None:
    reference = nh.to_array(TensorProto(data_type=row.code, dims=[5], raw_data=_random_raw(row.code, 5, row.bits)))
    finite = np.nan_to_num(reference.astype(np.complex64 if "complex" in row.onnx_name else np.float32))
    tensor = h.make_tensor("w", row.code, [5], finite.astype(reference.dtype).tolist())
    assert not tensor.raw_data
    value = h.make_tensor_value_info("y", row.code, [5])
    keeps(model([_use(row)], {}, {"y": value}, opsets={"": 27, "d": 1}, initializer=[tensor]))


def test_a_weight_made_from_an_array_is_packed() -> None:
    import ml_dtypes

    values = np.array([1, -2, 7, -8, 3]).astype(ml_dtypes.int4)
    op = make_constant(values, "w")
    array = constant_value(op.results[0])
    assert array is not None and array.astype(int).tolist() == [1, -2, 7, -8, 3]
    assert constant_value(op.results[0]) is not None and not array.flags.writeable


@given(st.lists(st.floats(width=32), max_size=6), st.floats(width=32))
@example([1000001.0, 0.0], 1000001.0)
@example([float("inf")], float("nan"))
@example([1e-45, -0.0, 16777216.0, 1e30], 1e-45)
@settings(max_examples=80, deadline=None)
def test_float_attributes_come_back(values: list[float], one: float) -> None:
    nodes = [h.make_node("C", ["x"], ["y"], domain="d", many=values or [1.0], one=one)]
    after = round_trip(model(nodes, {"x": [1]}, {"y": [1]}, opsets={"": 21, "d": 1}))
    found = {a.name: a for a in after.graph.node[0].attribute}
    assert np.array(found["many"].floats, np.float32).tobytes() == np.array(values or [1.0], np.float32).tobytes()
    assert np.float32(found["one"].f).tobytes() == np.float32(one).tobytes()


@pytest.mark.slow
@given(st.lists(st.binary(max_size=6), max_size=4), st.binary(max_size=12), st.text(max_size=8), st.text(max_size=8))
@settings(max_examples=100, deadline=None)
def test_any_text_comes_back(strings: list[bytes], one: bytes, key: str, text: str) -> None:
    node = h.make_node("C", ["x"], ["y"], domain="d", name=text, doc_string=text)
    node.attribute.add(name="many", type=AttributeProto.STRINGS, strings=strings)
    node.attribute.add(name="one", type=AttributeProto.STRING, s=one)
    before = model([node], {"x": [1]}, {"y": [1]}, opsets={"": 21, "d": 1}, doc_string=text)
    before.metadata_props.add(key=key, value=text)
    before.producer_name = text
    keeps(before)


# -- attributes -------------------------------------------------------------------------------------------------------


def _graph_attribute(name: str) -> onnx.GraphProto:
    made = h.make_graph([h.make_node("Relu", ["x"], [name])], f"graph {name}", [], [onnx.ValueInfoProto(name=name)])
    made.doc_string = "a graph"
    return made


def test_attributes_of_every_kind() -> None:
    tensor = nh.from_array(np.arange(3.0), "name of tensor")
    tensor.doc_string = "doc of tensor"
    sparse = onnx.SparseTensorProto(
        values=nh.from_array(np.array([1.0, 2.0], np.float32), "sv"),
        indices=nh.from_array(np.array([1, 3], np.int64), "si"),
        dims=[5],
    )
    type_proto = h.make_tensor_type_proto(FLOAT, ["n", 2])
    node = h.make_node("Everything", ["x"], ["y"], domain="d", name="all", f=0.1, i=-(2**63), s=b"\xffbytes")
    node.attribute.extend(
        [
            AttributeProto(name="t", type=AttributeProto.TENSOR, t=tensor, doc_string="doc of t"),
            AttributeProto(name="g", type=AttributeProto.GRAPH, g=_graph_attribute("a")),
            AttributeProto(name="sparse", type=AttributeProto.SPARSE_TENSOR, sparse_tensor=sparse),
            AttributeProto(name="tp", type=AttributeProto.TYPE_PROTO, tp=type_proto),
            AttributeProto(name="floats", type=AttributeProto.FLOATS, floats=[0.1, -0.0, float("inf")]),
            AttributeProto(name="ints", type=AttributeProto.INTS, ints=[-1, 2**63 - 1]),
            AttributeProto(name="strings", type=AttributeProto.STRINGS, strings=[b"a", b"", b"\xc3\xa9"]),
            AttributeProto(name="tensors", type=AttributeProto.TENSORS, tensors=[tensor, tensor]),
            AttributeProto(
                name="graphs", type=AttributeProto.GRAPHS, graphs=[_graph_attribute("b"), _graph_attribute("c")]
            ),
            AttributeProto(name="sparses", type=AttributeProto.SPARSE_TENSORS, sparse_tensors=[sparse]),
            AttributeProto(name="types", type=AttributeProto.TYPE_PROTOS, type_protos=[type_proto, onnx.TypeProto()]),
        ]
    )
    for name, kind in (("e6", 6), ("e7", 7), ("e8", 8), ("e9", 9), ("e10", 10), ("e12", 12), ("e14", 14)):
        node.attribute.append(AttributeProto(name=name, type=kind))
    before = model([node], {"x": [1]}, {"y": [1]}, opsets={"": 21, "d": 3})
    keeps(before)
    op = node_ops(import_model(before))[0]
    assert (op.attr("i"), op.attr("ints")) == (-(2**63), [-1, 2**63 - 1])
    assert op.attr("s") == b"\xffbytes" and op.attr("strings") == ["a", "", "é"]
    assert op.attr("sparse").tolist() == [0, 1, 0, 2, 0] and op.attr("t").tolist() == [0, 1, 2]
    assert isinstance(op.attr("g"), Region) and len(op.attr("graphs")) == 2 and op.attr("e10") == []


def test_schema_defaults() -> None:
    nodes = [h.make_node("Gemm", ["x", "x"], ["y"], transB=1), h.make_node("ConstantOfShape", ["s"], ["z"])]
    shape = nh.from_array(np.array([2, 2]), "s")
    module = import_model(model(nodes, {"x": [2, 2]}, {"y": [2, 2], "z": [2, 2]}, initializer=[shape]))
    _, gemm, fill = node_ops(module)
    assert (gemm.attr("alpha"), gemm.attr("transA"), gemm.attr("transB")) == (1.0, 0, 1)
    assert gemm.attr("beta", 5.0) == 5.0 and gemm.attr("no such") is None
    assert fill.opset == 21 and fill.attr("value") is None


def test_a_model_without_attribute_types() -> None:
    before = model([h.make_node("Gather", ["x", "i"], ["y"], axis=1)], {"x": [2, 3], "i": [1]}, {"y": [2, 1]})
    before.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    expected = export_model(import_model(before))
    before.graph.node[0].attribute[0].ClearField("type")
    assert round_trip(before) == expected


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_omitted_inputs_and_outputs() -> None:
    nodes = [
        h.make_node("Clip", ["x", "", "m"], ["c"]),
        h.make_node("Dropout", ["c", "", ""], ["d", ""]),
        h.make_node("GRU", ["s", "w", "r"], ["", "h"], hidden_size=2),
        h.make_node("Foo", ["", "d"], ["", "e", ""], domain="d"),
    ]
    inputs = {"x": [2], "m": [], "s": [1, 1, 2], "w": [1, 6, 2], "r": [1, 6, 2]}
    before = model(nodes, inputs, {"d": [2], "h": [1, 1, 2], "e": [2]}, opsets={"": 21, "d": 1})
    keeps(before)
    clip, dropout, gru, foo = node_ops(import_model(before))
    assert clip.inputs[1] is None and clip.inputs[2] is not None
    assert gru.outputs[0] is None and isinstance(gru.results[0].type, NoneType)
    assert [v is None for v in foo.outputs] == [True, False, True] and len(dropout.results) == 2


def test_make_op_omits_inputs() -> None:
    module = import_model(model([h.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}))
    relu = node_ops(module)[0]
    graph = main_graph(module)
    high = make_constant(np.array(6, np.float32), "six")
    graph.body.insert_op_before(high, relu)
    clip = make_op("Clip", [graph.body.args[0], None, high.results[0]], [relu.results[0].type], node_name="clip")
    graph.body.insert_op_before(clip, relu)
    graph.terminator.operands[0] = clip.results[0]
    module.verify()
    made = export_model(module)
    assert list(made.graph.node[0].input) == ["x", "", "six"] and made.graph.node[0].output[0] == "y"
    assert same_bits(outputs(made, {"x": np.array([-9, 9], np.float32)}), [np.array([-9, 6], np.float32)])


def test_make_op_takes_python_values() -> None:
    body = Region()
    op = make_op("com.microsoft.FusedMatMul", [], [], {"alpha": 2.0, "transA": 1, "names": ["a"], "g": body})
    assert isinstance(op, CustomOp) and op.domain == "com.microsoft" and op.op_type == "FusedMatMul"
    assert (op.attr("alpha"), op.attr("transA"), op.attr("names"), op.attr("g")) == (2.0, 1, ["a"], body)
    assert make_op("LeakyRelu", [], [], {"alpha": 1}).attributes["alpha"].name == "float"


def test_custom_and_unknown_ops_are_carried() -> None:
    nodes = [
        h.make_node("SkipLayerNormalization", ["x", "x", "g"], ["a"], domain="com.microsoft", epsilon=1e-5),
        h.make_node("Mystery", ["a"], ["b"], name="no such op in ai.onnx"),
        h.make_node("Scaler", ["b"], ["c"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0]),
        h.make_node("Relu", ["c"], ["y"], domain="ai.onnx"),
    ]
    before = model(
        nodes, {"x": [1, 2, 4], "g": [4]}, {"y": [1, 2, 4]}, opsets={"": 21, "com.microsoft": 1, "ai.onnx.ml": 5}
    )
    keeps(before)
    names = [(op.name, op.qualified_name) for op in node_ops(import_model(before))]
    assert names == [
        ("onnx.custom", "com.microsoft.SkipLayerNormalization"),
        ("onnx.custom", "Mystery"),
        ("onnx.ml.Scaler", "ai.onnx.ml.Scaler"),
        ("onnx.Relu", "Relu"),
    ]


def test_the_opset_picks_the_schema() -> None:
    old = model([h.make_node("Softmax", ["x"], ["y"])], {"x": [2, 3, 4]}, {"y": [2, 3, 4]}, opsets={"": 11})
    new = model([h.make_node("Softmax", ["x"], ["y"])], {"x": [2, 3, 4]}, {"y": [2, 3, 4]}, opsets={"": 13})
    assert [node_ops(import_model(m))[0].attr("axis") for m in (old, new)] == [1, -1]


def test_everything_a_node_carries() -> None:
    node = h.make_node("Relu", ["x"], ["y"], name="n", doc_string="doc")
    node.metadata_props.add(key="namespace", value="model.layer")
    node.metadata_props.add(key="né", value="é")
    node.device_configurations.add(configuration_id="c").pipeline_stage = 3
    value = h.make_tensor_value_info("y", FLOAT, [1], doc_string="about y")
    before = model([node], {"x": [1]}, {"y": value})
    before.configuration.add(name="c", num_devices=2).device.extend(["a", "b"])
    before.doc_string, before.domain, before.model_version, before.producer_version = "about", "dom", 7, "1.2"
    before.graph.metadata_props.add(key="a", value="1")
    before.graph.metadata_props.add(key="a", value="2")
    annotation = before.graph.quantization_annotation.add(tensor_name="y")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    training = before.training_info.add()
    training.algorithm.name = "sgd"
    training.update_binding.add(key="w", value="w2")
    keeps(before)


# -- initializers -----------------------------------------------------------------------------------------------------


def test_initializers_that_may_be_overridden_are_inputs_with_defaults() -> None:
    weight = nh.from_array(np.array([3, 4], np.float32), "w")
    before = model([h.make_node("Add", ["x", "w"], ["y"])], {"x": [2], "w": [2]}, {"y": [2]}, initializer=[weight])
    after = keeps(before)
    add = node_ops(import_model(before))[0]
    assert constant_value(add.operands[1]) is None
    for feeds in ({"x": np.ones(2, np.float32)}, {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)}):
        assert same_bits(original_outputs(before, feeds), outputs(after, feeds))


def test_before_ir_4_initializers_are_constants_though_listed_as_inputs() -> None:
    weight = nh.from_array(np.array([3, 4], np.float32), "w")
    inputs = {"w": [2], "x": [2]}
    nodes = [h.make_node("Add", ["x", "w"], ["y"])]
    before = model(nodes, inputs, {"y": [2]}, initializer=[weight], ir_version=3, opsets={"": 8})
    after = keeps(before)
    assert {v.name for v in after.graph.input} == {"x", "w"}
    onnx.checker.check_model(after)
    add = node_ops(import_model(before))[1]
    assert constant_value(add.operands[1]) is not None


def test_sparse_initializers() -> None:
    sparse = onnx.SparseTensorProto(
        values=nh.from_array(np.array([5.0, 6.0], np.float32), "w"),
        indices=nh.from_array(np.array([[0, 1], [2, 0]], np.int64), "i"),
        dims=[3, 2],
    )
    before = model([h.make_node("Add", ["x", "w"], ["y"])], {"x": [3, 2]}, {"y": [3, 2]}, sparse_initializer=[sparse])
    after = round_trip(before)
    assert after.graph.sparse_initializer[0].dims == [3, 2]
    module = import_model(after)
    value = constant_value(node_ops(module)[0].results[0])
    assert value is not None and value.tolist() == [[0, 5], [0, 0], [6, 0]]
    assert node_ops(module)[0].results[0].type == TensorType(node_ops(module)[1].results[0].type.element_type, [3, 2])


def test_constant_nodes_of_every_form() -> None:
    forms: dict[str, Any] = {
        "value_float": 1.5,
        "value_floats": [1.5, 2.5],
        "value_int": 3,
        "value_ints": [3, 4],
        "value_string": "s",
        "value_strings": ["s", "t"],
    }
    nodes = [h.make_node("Constant", [], [name], **{name: value}) for name, value in forms.items()]
    values = {name: onnx.ValueInfoProto(name=name) for name in forms}
    types = {"value_f": FLOAT, "value_i": TensorProto.INT64, "value_s": TensorProto.STRING}
    for name, value in values.items():
        dims = [2] if name.endswith("s") else []
        value.type.CopyFrom(h.make_tensor_type_proto(types[name[:7]], dims))
    before = model(nodes, {}, values)
    keeps(before)
    for op in node_ops(import_model(before)):
        found = constant_value(op.results[0])
        assert found is not None and found.tolist() == forms[next(iter(op.attributes))]


# -- graphs and functions ---------------------------------------------------------------------------------------------


def _if_model() -> onnx.ModelProto:
    then = h.make_graph(
        [h.make_node("Add", ["x", "k"], ["r"])], "then", [], [h.make_tensor_value_info("r", FLOAT, [2])]
    )
    deep = h.make_graph(
        [h.make_node("Mul", ["x", "n"], ["r"])], "deep", [], [h.make_tensor_value_info("r", FLOAT, [2])]
    )
    same = h.make_graph(
        [h.make_node("Identity", ["n"], ["s"])], "same", [], [h.make_tensor_value_info("s", FLOAT, [2])]
    )
    inner = h.make_node("If", ["c"], ["r2"], then_branch=deep, else_branch=same)
    other = h.make_graph(
        [h.make_node("Neg", ["x"], ["n"]), inner],
        "else",
        [],
        [h.make_tensor_value_info("r2", FLOAT, [2])],
        initializer=[nh.from_array(np.array([1.0], np.float32), "unused")],
    )
    condition = h.make_tensor_value_info("c", TensorProto.BOOL, [])
    nodes = [
        h.make_node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other),
        h.make_node("Relu", ["y"], ["r"]),
    ]
    weight = nh.from_array(np.array([10, 20], np.float32), "k")
    return model(nodes, {"x": [2], "c": condition}, {"r": [2]}, initializer=[weight])


def test_subgraphs_capture_and_reuse_names() -> None:
    before = _if_model()
    after = keeps(before)
    onnx.checker.check_model(after, full_check=True)
    for flag in (True, False):
        feeds = {"x": np.array([1, -2], np.float32), "c": np.array(flag)}
        assert same_bits(original_outputs(before, feeds), outputs(after, feeds))
    op = next(o for o in node_ops(import_model(before)) if o.node_name == "if")
    assert op.graph_names == ["then_branch", "else_branch"] or op.graph_names == ["else_branch", "then_branch"]
    add = op.attr("then_branch").block.first_op
    assert add.operands[0] is main_graph(op.get_toplevel_object()).body.args[0]


def test_a_branch_that_returns_a_captured_value_gets_a_copy() -> None:
    module = import_model(_if_model())
    op = next(o for o in node_ops(module) if o.node_name == "if")
    block = op.attr("then_branch").block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    last.operands[0] = main_graph(module).body.args[0]
    made = export_model(module)
    onnx.checker.check_model(made, full_check=True)
    feeds = {"x": np.array([1, -2], np.float32), "c": np.array(True)}
    assert same_bits(outputs(made, feeds), [np.array([1, 0], np.float32)])


def _function_model() -> onnx.ModelProto:
    body = [
        h.make_node("Constant", [], ["k"]),
        h.make_node("Mul", ["a", "k"], ["m"], name="inner"),
        h.make_node("LeakyRelu", ["m"], ["b"]),
    ]
    body[0].attribute.add(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="factor")
    body[2].attribute.add(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope")
    function = h.make_function(
        "local",
        "Scale",
        ["a"],
        ["b"],
        body,
        [h.make_opsetid("", 21)],
        attributes=["factor"],
        attribute_protos=[h.make_attribute("slope", 0.5)],
        doc_string="scales",
        value_info=[h.make_tensor_value_info("m", FLOAT, ["n"])],
    )
    function.metadata_props.add(key="k", value="v")
    nested = h.make_function(
        "local", "Twice", ["a"], ["c"], [
            h.make_node("Scale", ["a"], ["b"], domain="local", factor=2.0),
            h.make_node("Scale", ["b"], ["c"], domain="local", factor=3.0, slope=0.25),
        ], [h.make_opsetid("", 21), h.make_opsetid("local", 1)], overload="v2",
    )  # fmt: skip
    call = h.make_node("Twice", ["x"], ["y"], domain="local", overload="v2")
    before = model([call], {"x": ["n"]}, {"y": ["n"]}, opsets={"": 21, "local": 1})
    before.functions.extend([function, nested])
    return before


def test_functions() -> None:
    before = _function_model()
    after = keeps(before)
    onnx.checker.check_model(after)
    module = import_model(before)
    assert set(functions(module)) == {("local", "Scale", ""), ("local", "Twice", "v2")}
    feeds = {"x": np.array([1, -2], np.float32)}
    for made in (before, after):
        made.functions[1].ClearField("overload")
        made.graph.node[0].ClearField("overload")
    assert same_bits(original_outputs(before, feeds), outputs(after, feeds))


def test_sequences_optionals_and_maps() -> None:
    tensor = h.make_tensor_type_proto(FLOAT, ["n", 2])
    seq = h.make_sequence_type_proto(tensor)
    mapping = onnx.TypeProto()
    mapping.map_type.key_type = TensorProto.INT64
    mapping.map_type.value_type.CopyFrom(h.make_tensor_type_proto(FLOAT, []))
    values = {
        "s": seq,
        "o": h.make_optional_type_proto(seq),
        "m": h.make_sequence_type_proto(mapping),
        "p": h.make_sparse_tensor_type_proto(FLOAT, [3, "k"]),
    }
    infos = {k: onnx.ValueInfoProto(name=k, type=v) for k, v in values.items()}
    opaque = onnx.ValueInfoProto(name="q")
    opaque.type.opaque_type.domain, opaque.type.opaque_type.name = "d", "T"
    node = h.make_node("Foo", ["s", "o", "m", "p", "q"], ["y"], domain="d")
    keeps(model([node], {**infos, "q": opaque}, {"y": [1]}, opsets={"": 21, "d": 1}))


def test_dim_params_that_are_arithmetic_on_other_dims_are_expressions() -> None:
    """Exporters name what is a sum by the sum: such a dim is that of a Concat, and no symbol of its own."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[batch, past] x, float[batch, 1] y, float[batch, "past + 1"] m, float["other + 1"] u)
        => (float[batch, "past + 1"] z, float["other + 1"] v) { c = Concat<axis = 1>(x, y)  z = Add(c, m)  v = Relu(u) }
    """
    model = onnx.parser.parse_model(text.replace('"past + 1"', "past_plus").replace('"other + 1"', "other_plus"))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = {"past_plus": "past + 1", "other_plus": "other + 1"}.get(dim.dim_param, dim.dim_param)
    module = igniter.load(model)
    assert "#sym.dims<batch, past + 1>" in str(module)
    assert '"other + 1"' in str(module), "a name over dims that no input has stays a name"
    back = module.to_onnx()
    params = [[d.dim_param for d in v.type.tensor_type.shape.dim] for v in back.graph.input]
    assert params == [["batch", "past"], ["batch", ""], ["batch", "past + 1"], ["other + 1"]]
    module.run_passes("infer-shapes")
    assert "whether" not in str(module)


@settings(max_examples=25)
@given(st.lists(st.from_regex(r"p(_[0-3]){0,3}", fullmatch=True), min_size=2, max_size=8, unique=True))
@example(["p_1", "p_1_1", "p", "p_1_1_2"])
def test_values_whose_names_differ_in_numeric_suffixes(names: list[str]) -> None:
    """xDSL strips one suffix from a name and adds its own, so that two values could be printed by one name."""
    weights = [nh.from_array(np.float32(k), name) for k, name in enumerate(names)]
    nodes = [h.make_node("Sum", ["x", *names], ["y"], name="sum")]
    summed = model(nodes, {"x": [2]}, {"y": [2]}, initializer=weights)
    assert difference(round_trip(summed), summed) is None
