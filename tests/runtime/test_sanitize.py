"""Sanitized libraries: what a kernel does outside of its buffers ends the call with an error; what is right runs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from library_kit import one_node, session
from onnx import TensorProto, helper

import igniter
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.target import target_of
from igniter.compiler.compilation import CompileOptions
from igniter.dialects.ort import LibraryOp
from igniter.runtime.library import LibraryPart, build_library
from igniter.tools.demo_model import Shape, build_demo_model
from igniter.transforms.scheduled.form_ort_library import describe
from tests.backends.cpu.cpu_kit import parse_func

PLANTED = """
loop.func @planted symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(0) {
  loop.for i = 0 to n {
    %a = loop.load %x[i + 3] : f32
    loop.store %a, %y[i]
  }
}"""


def test_an_access_outside_is_an_error_of_the_session(tmp_path):
    func = parse_func(PLANTED)
    op = describe(func)
    ir = emit_llvm(func, target_of("native"), sanitize=True)
    library = build_library(LibraryPart(LibraryOp("test", [op]), {target_of("native"): [ir]}), sanitize=True)
    runner = session(one_node(library, op), [library], tmp_path)
    for _ in range(2):
        with pytest.raises(
            Exception, match=r"Igniter op igniter_planted: kernel 'planted': 'loop.load' of memref<\?xf32"
        ):
            runner.run(None, {"in0": np.ones(4, "f4")})
        assert runner.run(None, {"in0": np.ones(0, "f4")})[0].shape == (0,)


@pytest.mark.slow
def test_a_program_with_products_runs_clean():
    model = build_demo_model(Shape(layers=1, vocabulary=64))
    artifact = igniter.compile(model, options=CompileOptions(sanitize=True), shapes=[{"batch": 1, "sequence": 7}])
    assert artifact.report["options"]["sanitize"]
    assert artifact.report["regions"] > 0 and not artifact.report["left_to_onnxruntime"]


def test_sanitized_kernels_are_not_the_others_of_the_cache():
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 5]) for name in "xy")
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    assert isinstance(model, onnx.ModelProto)
    for sanitize in (False, True):
        artifact = igniter.load(model).compile(sanitize=sanitize)
        assert (b"outside of its buffer" in artifact.libraries[0].read_bytes()) == sanitize
