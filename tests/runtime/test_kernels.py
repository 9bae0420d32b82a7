"""Kernels of the loop level in a library: from `loop.func` to stock ONNX Runtime, alone and inside a bigger model."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from library_kit import TARGET, build, model, node, scale_kernel, scale_op, session, value
from onnx import helper
from xdsl.parser import Parser

from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp
from igniter.dialects.ort import LibraryOp
from igniter.runtime.library import LibraryPart, build_library
from igniter.transforms.scheduled.form_ort_library import describe

FUNC = """
loop.func @rows symbols [n, m] (%x : memref<?x?xf32, #sym.dims<n, m>>, %b : memref<?xf32, #sym.dims<m>>,
                                %y : memref<?x?xf32, #sym.dims<m, n>>) outputs 1 scratch(4*n*m) {
  %t = loop.alloc "t" offset 0 : memref<?x?xf32, #sym.dims<n, m>, "scratch">
  loop.for i = 0 to n threads(2) {
    loop.for j = 0 to m {
      %v = loop.load %x[i, j] : f32
      %c = loop.load %b[j] : f32
      %s = arith.addf %v, %c : f32
      loop.store %s, %t[i, j]
    }
  }
  loop.for p = 0 to m threads(1) {
    loop.for q = 0 to n {
      %v = loop.load %t[q, p] : f32
      loop.store %v, %y[p, q]
    }
  }
}
"""


def func() -> FuncOp:
    (op,) = Parser(IgniterContext(), FUNC).parse_module().ops
    assert isinstance(op, FuncOp)
    return op


def test_the_descriptor_is_the_signature() -> None:
    op = describe(func())
    op.verify()
    assert [(p.name, p.shape_text) for p in op.inputs] == [("in0", "[n, m]"), ("in1", "[m]")]
    assert [(p.name, p.shape_text) for p in op.outputs] == [("out0", "[m, n]")]
    assert op.symbol_names == ("n", "m") and op.kernel_name == "rows" and str(op.scratch) == "4*m*n"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_with_threads_and_scratch(tmp_path: Path, threads: int) -> None:
    kernel = func()
    op = describe(kernel)
    library = build_library(LibraryPart(LibraryOp("test", [op]), {TARGET: [emit_llvm(kernel, TARGET)]}))
    proto = model(
        [node(library, op.sym_name.data, ["x", "b"], ["y"])],
        [value("x", 1, ["N", "M"]), value("b", 1, ["M"])],
        [value("y", 1, None)],
        [library.domain],
    )
    s = session(proto, [library], tmp_path, threads)
    assert s.get_outputs()[0].shape == ["M", "N"]
    rng = np.random.default_rng(0)
    for n, m in [(1, 1), (7, 5), (64, 100), (0, 3), (3, 0), (301, 77)]:
        x, b = rng.standard_normal((n, m), np.float32), rng.standard_normal(m, np.float32)
        np.testing.assert_array_equal(s.run(None, {"x": x, "b": b})[0], (x + b).T)


def test_ops_inside_of_control_flow(tmp_path: Path) -> None:
    library = build([scale_op()], [scale_kernel()])
    branches = {
        name: helper.make_graph(
            [node(library, "Scale_k", ["x"], [f"{name}_a"]), helper.make_node(op, [f"{name}_a"], [f"{name}_y"])],
            name,
            [],
            [value(f"{name}_y", 1, ["n", "m"])],
        )
        for name, op in (("yes", "Abs"), ("no", "Neg"))
    }
    choose = helper.make_node("If", ["c"], ["y"], then_branch=branches["yes"], else_branch=branches["no"])
    ins, outs = [value("c", 9, []), value("x", 1, ["n", "m"])], [value("y", 1, ["n", "m"])]
    s = session(model([choose], ins, outs, [library.domain]), [library], tmp_path)
    x = np.array([[-1, 2]], np.float32)
    assert s.run(None, {"c": np.array(True), "x": x})[0].tolist() == [[2, 4]]
    assert s.run(None, {"c": np.array(False), "x": x})[0].tolist() == [[2, -4]]


def test_many_nodes_of_one_op_and_the_model_that_ort_writes(tmp_path: Path) -> None:
    """ORT's optimised model, with its inferred shapes, loads again with the library."""
    library = build([scale_op()], [scale_kernel()])
    names = [f"v{i}" for i in range(21)]
    nodes = [node(library, "Scale_k", [a], [b]) for a, b in itertools.pairwise(names)]
    proto = model(nodes, [value("v0", 1, ["n", "m"])], [value("v20", 1, ["n", "m"])], [library.domain])
    path = library.write(tmp_path)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    options.register_custom_ops_library(str(path))
    x = np.array([[1, -1]], np.float32)
    first = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert first.run(None, {"v0": x})[0].tolist() == [[2.0**20, -(2.0**20)]]
    again = session(onnx.load(tmp_path / "optimized.onnx"), [library], tmp_path)
    assert again.run(None, {"v0": x})[0].tolist() == [[2.0**20, -(2.0**20)]]


@pytest.mark.slow
def test_a_large_constant_is_mapped_not_copied(tmp_path: Path) -> None:
    """An external initializer given to an op costs next to no memory, however large it is."""
    import subprocess
    import sys

    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import itertools
from pathlib import Path
import numpy as np, onnx, psutil
from onnx import TensorProto
from xdsl.dialects.builtin import f32
from library_kit import build, function, model, node, value
from igniter.dialects.ort import OpOp, port
from igniter.runtime.session import make_session
folder = Path({str(tmp_path)!r})
op = OpOp("big_k", "big", ["n"], [port("x", f32, ["n"]), port("w", f32, [32 << 20])], [port("y", f32, ["n"])])
kernel = function("big", '''
%w = buffer 1
%y = buffer 2
%v = load float, ptr %w
store float %v, ptr %y
''')
library = build([op], [kernel])
(folder / "w.bin").write_bytes(np.full(1 << 20, 7, np.float32).tobytes() * 32)
proto = model([node(library, "big_k", ["x", "w"], ["y"])], [value("x", 1, ["n"])], [value("y", 1, ["n"])],
              [library.domain])
weight = TensorProto(name="w", data_type=1, dims=[32 << 20], data_location=TensorProto.EXTERNAL)
weight.external_data.add(key="location", value="w.bin")
proto.graph.initializer.append(weight)
onnx.save(proto, folder / "m.onnx")
path = library.write(folder)
before = psutil.Process().memory_info().rss
s = make_session(folder / "m.onnx", [path], log_severity_level=3)
assert s.run(None, {{"x": np.zeros(3, np.float32)}})[0][0] == 7
print((psutil.Process().memory_info().rss - before) >> 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64, f"{done.stdout} MB for a weight of 128 MB"
