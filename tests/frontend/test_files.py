"""Models in files: nothing is copied that need not be, what is written can be mapped, and damage is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from model_equality import difference
from onnx import TensorProto
from onnx import helper as h
from onnx import numpy_helper as nh
from round_trip import reparsed
from runtime_equality import outputs, same_bits
from xdsl.dialects.builtin import f32
from xdsl.dialects.test import TestOp

import igniter
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.weights import FileRange, Weight, map_file
from igniter.errors import IgniterError
from igniter.frontend import export_model, import_model, reading, save_model, tensors
from igniter.frontend.wire import WireError, without_weights

FLOAT = TensorProto.FLOAT


def _model(size: int = 2048) -> onnx.ModelProto:
    """y = (x + w) * c, with w an initializer and c a Constant node inside a branch."""
    rng = np.random.default_rng(0)
    constant = h.make_node("Constant", [], ["c"], value=nh.from_array(rng.random(size, np.float32), "inner"))
    y = h.make_tensor_value_info("r", FLOAT, [size])
    branch = h.make_graph([constant, h.make_node("Mul", ["a", "c"], ["r"])], "b", [], [y])
    nodes = [h.make_node("Add", ["x", "w"], ["a"], name="add")]
    nodes.append(h.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch))
    inputs = [h.make_tensor_value_info("x", FLOAT, [size]), h.make_tensor_value_info("flag", TensorProto.BOOL, [])]
    weights = [nh.from_array(rng.random(size, np.float32), "w"), nh.from_array(np.arange(3), "small")]
    graph = h.make_graph(nodes, "g", inputs, [h.make_tensor_value_info("y", FLOAT, [size])], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)


def _weights(path: Path) -> dict[str, Weight]:
    found: dict[str, Weight] = {}
    for op in import_model(path).walk():
        if isinstance(op, OnnxOp):
            weight = constant_weight(op.results[0])
            if weight is not None:
                found[str(op.results[0].name_hint)] = weight
    return found


# -- reading ----------------------------------------------------------------------------------------------------------


def test_big_weights_stay_in_the_model_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_model(), path)
    weights = _weights(path)
    assert weights["w"].file is not None and weights["c"].file is not None and weights["small"].file is None
    assert weights["w"].file.path == str(path) and weights["w"].nbytes == 8192
    expected = nh.to_array(onnx.load(path).graph.initializer[0])
    assert weights["w"].array().tobytes() == expected.tobytes()


def test_the_text_refers_to_the_file_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    before = _model()
    onnx.save(before, path)
    module = import_model(path)
    assert f'file("{path}", ' in str(module) and len(str(module)) < 6000
    assert difference(before, export_model(reparsed(module))) is None


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    before = _model()
    stored = onnx.ModelProto()
    stored.CopyFrom(before)
    onnx.save(stored, path, save_as_external_data=True, location="w.bin", size_threshold=0, convert_attribute=True)
    weights = _weights(path)
    assert all(w.file is not None and w.file.path == str(tmp_path / "w.bin") for w in weights.values())
    assert difference(before, export_model(import_model(path))) is None
    # A ModelProto does not know where it came from, so the caller says.
    loaded = onnx.load(path, load_external_data=False)
    assert difference(before, export_model(import_model(loaded, base_dir=str(tmp_path)))) is None


def test_a_model_over_2_gb_in_one_file(tmp_path: Path) -> None:
    size = (2**31 + 4096) // 4
    path = tmp_path / "big.onnx"
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[size]).SerializeToString()
    raw = size * 4
    head = b"\x4a" + _varint(raw)  # field 9, raw_data
    tensor_length = len(tensor) + len(head) + raw
    graph = h.make_graph(
        [h.make_node("Identity", ["w"], ["y"])], "g", [], [h.make_tensor_value_info("y", FLOAT, [size])]
    ).SerializeToString()
    graph_length = len(graph) + 1 + len(_varint(tensor_length)) + tensor_length
    model = h.make_model(h.make_graph([], "g", [], []), opset_imports=[h.make_opsetid("", 21)])
    model.ClearField("graph")
    with path.open("wb") as file:
        file.write(model.SerializeToString() + b"\x3a" + _varint(graph_length) + graph)
        file.write(b"\x2a" + _varint(tensor_length) + tensor + head)
        file.seek(raw - 4, os.SEEK_CUR)
        file.write(np.array([7], np.float32).tobytes())
    (weight,) = _weights(path).values()
    assert weight.nbytes == raw and weight.array()[-1] == 7 and weight.array()[-2] == 0


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.mark.slow
def test_importing_does_not_read_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_model(60_000_000 // 4), path)
    code = (
        "import resource, onnx, sys; from igniter.frontend import import_model\n"
        "import igniter.frontend.importer, numpy\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "import_model(sys.argv[1])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    grown = int(subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True).stdout)
    assert grown < 30_000, f"{grown} KiB for a model of 180 MB"


def test_cutting_weights_out_keeps_the_rest() -> None:
    data = _model().SerializeToString()
    small = onnx.ModelProto.FromString(without_weights(memoryview(data)))
    tensor = small.graph.initializer[0]
    entries = {e.key: int(e.value) for e in tensor.external_data if e.key != "location"}
    assert data[entries["offset"] :][: entries["length"]] == _model().graph.initializer[0].raw_data
    assert len(small.SerializeToString()) < 2000 and len(small.graph.node) == 2


def test_a_tensor_that_says_where_its_data_is(tmp_path: Path) -> None:
    """Tools write `data_location: DEFAULT` behind the bytes; the reference in their place must count."""
    model = _model()
    model.graph.initializer[0].data_location = TensorProto.DEFAULT
    onnx.save(model, tmp_path / "model.onnx")
    weight = _weights(tmp_path / "model.onnx")["w"]
    assert np.array_equal(weight.array(), nh.to_array(model.graph.initializer[0]))


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        cut = without_weights(memoryview(data))
    except WireError:
        return
    assert cut == data, "messages without big tensors are unchanged"


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no graph"),
        (b"this is not a model at all", "is not an ONNX model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "is not an ONNX model"),
        (b"\x7fELF" + b"\x02\x01\x01" + bytes(300), "is not an ONNX model"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(IgniterError, match=message) as caught:
        import_model(path)
    assert str(path) in caught.value.message and "\n" not in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=r"cannot read .*no\.onnx: No such file"):
        import_model(tmp_path / "no.onnx")
    with pytest.raises(IgniterError, match="it is a folder"):
        import_model(tmp_path)


def test_a_cut_off_model_is_never_read_quietly(tmp_path: Path) -> None:
    data = _model(64).SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(1, len(data) - 1, 7):
        path.write_bytes(data[:length])
        try:
            module = import_model(path)
        except IgniterError:
            continue
        # A message may end between two of its fields; then what is there is a model.
        assert onnx.ModelProto.FromString(data[:length]).HasField("graph") and main_graph(module)


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "", "a/../../w.bin"])
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(16))
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    model = h.make_model(h.make_graph([], "g", [], [], [tensor]))
    path = tmp_path / "inner" / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(IgniterError, match=r"'w'.* is not a file in the model's folder"):
        import_model(path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "none.bin"}, "cannot be read: No such file"),
        ({"location": "w.bin", "offset": "x"}, "bad offset or length"),
        ({"location": "w.bin", "offset": "8"}, "bytes 8 to 24 of .*, which has 16"),
        ({"location": "w.bin", "offset": "-4"}, "bytes -4 to 12"),
        ({"location": "w.bin", "length": "12"}, "needs 16 bytes, but has 12"),
    ],
)
def test_external_data_that_does_not_fit(tmp_path: Path, entries: dict[str, str], message: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    model = h.make_model(h.make_graph([], "g", [], [], [tensor]))
    with pytest.raises(IgniterError, match=f"tensor 'w': .*{message}"):
        import_model(model, base_dir=str(tmp_path))


def _broken(change: str) -> onnx.ModelProto:
    model = _model(4)
    node, weight = model.graph.node[0], model.graph.initializer[0]
    if change == "reads":
        node.input[0] = "nowhere"
    elif change == "twice":
        model.graph.node.append(node)
    elif change == "output":
        model.graph.output[0].name = "nothing"
    elif change == "bytes":
        weight.raw_data = weight.raw_data[:-1]
    elif change == "element":
        weight.data_type = 99
    elif change == "dims":
        weight.dims[0] = -4
    elif change == "initializers":
        model.graph.initializer.append(weight)
    elif change == "attribute":
        node.attribute.add(name="empty")
    elif change == "attributes":
        model.graph.node[1].attribute.append(model.graph.node[1].attribute[0])
    elif change == "value":
        model.graph.input[0].type.tensor_type.elem_type = 77
    return model


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("reads", r"node 'add' \(Add\) of the main graph reads 'nowhere', which nothing defines"),
        ("twice", r"node 'add' \(Add\) of the main graph defines 'a', which is already defined"),
        ("output", "the main graph has the output 'nothing', which nothing in it defines"),
        ("bytes", "tensor 'w': tensor<4xf32> needs 16 bytes, but has 15"),
        ("element", "tensor 'w' has the element type 99"),
        ("dims", r"tensor 'w' has the invalid shape \[-4\]"),
        ("initializers", "the main graph has two initializers called 'w'"),
        ("attribute", "node 'add' .*attribute 'empty' has neither a type nor a value"),
        ("attributes", "the node If of the main graph that computes '.*': attribute 'else_branch' is given twice"),
        ("value", "a value has the element type 77"),
    ],
)
def test_broken_models_are_named(change: str, message: str) -> None:
    with pytest.raises(IgniterError, match=message):
        import_model(_broken(change))


def test_a_file_that_shrank_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(8))
    weight = Weight([4], f32, file=FileRange(str(path), 0, 16))
    with pytest.raises(IgniterError, match=r"w\.bin is truncated: a weight needs bytes 0 to 16, but the file has 8"):
        weight.array()


# -- writing ----------------------------------------------------------------------------------------------------------


def test_saving_inline(tmp_path: Path) -> None:
    before = _model()
    save_model(import_model(before), tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]
    assert difference(before, onnx.load(tmp_path / "m.onnx")) is None


def test_saving_with_external_data(tmp_path: Path) -> None:
    before = _model()
    path = tmp_path / "m.onnx"
    save_model(import_model(before), path, external_data_threshold=1024)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    stored = onnx.load(path, load_external_data=False)
    entries = {e.key: e.value for e in stored.graph.initializer[0].external_data}
    assert entries["location"] == "m.onnx.data" and int(entries["offset"]) % 4096 == 0
    assert not stored.graph.initializer[1].external_data
    # The branch is there twice, its constant once.
    assert path.stat().st_size < 4000 and (tmp_path / "m.onnx.data").stat().st_size == 2 * 8192
    assert difference(before, onnx.load(path)) is None
    feeds = {"x": np.ones(2048, np.float32), "flag": np.array(True)}
    assert same_bits(outputs(before, feeds), outputs(str(path), feeds))


def test_saving_over_the_file_that_the_weights_are_mapped_from(tmp_path: Path) -> None:
    before = _model()
    path = tmp_path / "m.onnx"
    onnx.save(before, path)
    module = import_model(path)
    for threshold in (None, 16, 16, None):
        save_model(module, path, external_data_threshold=threshold)
        module = import_model(path)
        assert difference(before, export_model(module)) is None


def test_a_model_too_big_for_a_message_gets_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MESSAGE_LIMIT", 10_000)
    save_model(import_model(_model()), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").exists()
    with pytest.raises(IgniterError, match="over 2 GB, the limit of a message; use save_model"):
        export_model(import_model(_model()))


def test_a_message_that_is_too_big_is_loaded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """protobuf does not even count the bytes of one over 2 GB; what is in memory has no need to be written."""

    class Large:
        def ByteSize(self) -> int:
            raise EncodeError("Failed to serialize proto")

    assert reading.byte_size(cast("onnx.ModelProto", Large())) > reading.MESSAGE_LIMIT
    monkeypatch.setattr(reading, "MESSAGE_LIMIT", 100)
    module = igniter.load(_model())
    assert module.source is None
    assert "nodes" in repr(module)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    module = import_model(_model())
    graph = main_graph(module)
    graph.body.insert_op_before(TestOp(), graph.terminator)
    with pytest.raises(IgniterError, match=r"test\.op is not an ONNX node"):
        save_model(module, path, external_data_threshold=16)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["m.onnx"]


def test_saving_where_one_cannot(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=r"cannot write the model .*: No such file or directory"):
        save_model(import_model(_model()), tmp_path / "no" / "m.onnx")


# -- weights ----------------------------------------------------------------------------------------------------------


def test_equal_weights_are_equal_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    values = np.arange(6, dtype=np.float32)
    path.write_bytes(b"head" + values.tobytes())
    here, there = Weight.of(values), Weight([6], f32, file=FileRange(str(path), 4, 24))
    assert here == there and hash(here) == hash(there) and here.digest() == there.digest()
    other = Weight.of(values + 1)
    assert here != other and here.digest() != other.digest()
    assert here != Weight.of(values.reshape(2, 3)) and here.digest() != Weight.of(values.reshape(2, 3)).digest()


def test_views_and_foreign_byte_orders() -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    for view in (values.T, values[:, ::2], values.astype(">i4"), np.asfortranarray(values)):
        weight = Weight.of(view)
        assert weight.array().tolist() == view.tolist()
        assert bytes(weight.raw()) == np.ascontiguousarray(view).astype("<i4").tobytes()


def test_one_file_is_mapped_once(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(bytes(8))
    assert map_file(str(path)) is map_file(str(path))
    path.unlink()
    path.write_bytes(bytes(16))
    assert len(map_file(str(path))) == 16


def test_strings() -> None:
    weight = Weight.of(np.array([["a", "é"], ["", "c"]]))
    assert weight.shape == (2, 2) and weight.array().tolist() == [["a", "é"], ["", "c"]]
    assert weight.nbytes == 4 and weight != Weight.of(np.array([["a", "e"], ["", "c"]]))
    with pytest.raises(IgniterError, match="has no raw bytes"):
        weight.raw()


def test_elided_values_say_so() -> None:
    weight = Weight([2], f32)
    with pytest.raises(IgniterError, match="the values of tensor<2xf32> were elided"):
        weight.array()


def test_constants_are_found_in_every_place(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_model(), path)
    module = import_model(path)
    add = main_graph(module).body.last_op
    assert add is not None
    values = [constant_value(o.results[0]) for o in module.walk() if o.name == "onnx.Constant"]
    assert sum(v is not None for v in values) == 4
