"""Weights to files and back, of every element type; and models whose weights are never read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError

from . import models

DTYPES = [
    np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn,
]  # fmt: skip


def of_one(array: np.ndarray, name: str = "a/w:0") -> onnx.ModelProto:
    tensor = numpy_helper.from_array(array, name)
    shape = list(array.shape)
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", tensor.data_type, shape)],
        [tensor],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", ["w.npz", "folder", "w.npy"])
def test_weights_go_to_files_and_back(dtype: type, where: str, tmp_path: Path):
    array = np.arange(-3, 9).reshape(3, 4).clip(0 if "uint" in np.dtype(dtype).name else -3).astype(dtype)
    module = igniter.load(of_one(array))
    module.save_weights(tmp_path / where)
    zero = igniter.load(of_one(np.zeros_like(array)))
    given = {"a/w:0": tmp_path / where} if where == "w.npy" else tmp_path / where
    made = zero.replace_weights(given).to_onnx()
    assert made.graph.initializer[0].data_type == module.to_onnx().graph.initializer[0].data_type
    np.testing.assert_array_equal(
        numpy_helper.to_array(made.graph.initializer[0]).astype(np.complex64), array.astype(np.complex64)
    )


def test_strings_and_empty_and_scalar_weights(tmp_path: Path):
    for array in (np.array(["a", "böb"], object), np.zeros((0, 3), np.float32), np.float32(2.5).reshape(())):
        module = igniter.load(of_one(array))
        module.save_weights(tmp_path / "w.npz")
        made = igniter.load(of_one(array)).replace_weights(tmp_path / "w.npz").weights()["a/w:0"]
        assert made.shape == array.shape and made.array().tolist() == array.tolist()


def test_a_mapped_file_stays_where_it_is(tmp_path: Path):
    np.save(tmp_path / "w.npy", np.full((4, 3), 2, np.float32))
    module = igniter.load(models.branches()).replace_weights({"w": tmp_path / "w.npy"})
    found = module.weights()["w"]
    assert found.file is not None and found.file.path == str(tmp_path / "w.npy")
    # Bytes in another order are read.
    np.save(tmp_path / "f.npy", np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3)))
    found = module.replace_weights({"w": tmp_path / "f.npy"}).weights()["w"]
    np.testing.assert_array_equal(found.array(), np.arange(12).reshape(4, 3))


def test_a_weight_that_does_not_fit_says_why(tmp_path: Path):
    module = igniter.load(models.branches())
    np.save(tmp_path / "long.npy", np.zeros((4, 4), np.float32))
    np.save(tmp_path / "wide.npy", np.zeros((4, 3), np.float64))
    for given, why in (
        ({"w": tmp_path / "long.npy"}, "has the shape [4, 3]"),
        ({"w": tmp_path / "wide.npy"}, "'w' is float, and in"),
        ({"w": np.zeros((4, 3), np.int8)}, "'w' is float, and in the array it is int8"),
        ({"v": tmp_path / "long.npy"}, "there is no weight called 'v'"),
        ({"w": tmp_path / "none.npy"}, "cannot read the weight 'w'"),
    ):
        with pytest.raises(IgniterError, match=why.replace("[", r"\[").replace("]", r"\]")):
            module.replace_weights(given)
    with pytest.raises(IgniterError, match="did you mean 'tab'"):
        module.save_weights(tmp_path / "x.npz", ["tabb"])


def test_sparse_weights_are_values_and_indices(tmp_path: Path):
    module = igniter.load(models.quantised())
    written = module.save_weights(tmp_path / "w.npz")
    assert {"bias.values", "bias.indices", "wq"} <= set(written)
    module.replace_weights({"bias.values": np.array([3, 5], np.float32)})
    made = module.to_onnx()
    assert list(numpy_helper.to_array(made.graph.sparse_initializer[0].values)) == [3, 5]
    with pytest.raises(IgniterError, match=r"is sparse: name bias.values and bias.indices"):
        module.replace_weights({"bias": np.zeros(3, np.float32)})


# -- big models -------------------------------------------------------------------------------------------------------

BIG = 5 << 30


def big_model(folder: Path) -> Path:
    """A model with 5 GB of external data: a file with a hole."""
    side = 1 << 15
    count = BIG // (4 * side * side) + 1
    data = folder / "big.data"
    with open(data, "wb") as file:
        file.truncate(count * 4 * side * side)
    nodes, tensors, name = [], [], "x"
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[side, side])
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": data.name, "offset": i * 4 * side * side, "length": 4 * side * side}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"h{i}"], f"product_{i}"))
        name = f"h{i}"
    graph = helper.make_graph(
        nodes,
        "big",
        [helper.make_tensor_value_info("x", 1, ["batch", side])],
        [helper.make_tensor_value_info(name, 1, ["batch", side])],
        tensors,
    )
    path = folder / "big.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return path


SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))
from igniter.tools.main import app
app(sys.argv[1:])
"""


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The tool with 600 MB for all but mapped files."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_big_model_is_edited_without_its_weights(tmp_path: Path):
    path, out = big_model(tmp_path), tmp_path / "out.onnx"
    arguments = ["--fix-dim", "batch=1", "--rename", "x=image", "--expose", "h0", "--drop", "product_1", "--opset", 21]
    done = limited("edit", path, "-o", out, *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "its weights are" in done.stdout
    made = onnx.load(out, load_external_data=False)
    assert made.graph.input[0].name == "image" and made.opset_import[0].version == 21
    assert {e.value for t in made.graph.initializer for e in t.external_data if e.key == "location"} == {"big.data"}
    assert out.stat().st_size < 10_000 and sorted(p.name for p in tmp_path.iterdir()) == [
        "big.data",
        "big.onnx",
        "out.onnx",
    ]


@pytest.mark.slow
def test_a_part_of_a_big_model_refers_to_its_weights(tmp_path: Path):
    path, out = big_model(tmp_path), tmp_path / "part.onnx"
    done = limited("extract", path, "--from", "h0", "--to", "h1", "-o", out, "--no-verify")
    assert done.returncode == 0, done.stderr
    assert [t.name for t in onnx.load(out, load_external_data=False).graph.initializer] == ["w1"]


def test_a_folder_elsewhere_gets_the_weights_it_needs(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    model = models.branches()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, tmp_path / "a" / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    igniter.load(tmp_path / "a" / "m.onnx").rename({"x": "q"}).save(tmp_path / "b" / "m.onnx", keep_weights=True)
    feed = models.feed_of_branches()
    feed["q"] = feed.pop("x")
    models.run(onnx.load(tmp_path / "b" / "m.onnx"), feed)
    assert [p.name for p in (tmp_path / "b").iterdir()] == ["m.onnx"]
    # In its own folder the model refers to the file, and a weight that is replaced is in the message.
    module = igniter.load(tmp_path / "a" / "m.onnx").replace_weights({"w": np.ones((4, 3), np.float32)})
    module.save(tmp_path / "a" / "m.onnx", keep_weights=True)
    made = onnx.load(tmp_path / "a" / "m.onnx", load_external_data=False)
    assert [bool(t.external_data) for t in made.graph.initializer] == [True, False]
    loaded = numpy_helper.to_array(onnx.load(tmp_path / "a" / "m.onnx").graph.initializer[0])
    assert loaded[9, 3] == np.float32(3.9)
