"""GPUs of AMD: kernels become their code, without spills; there is no library, which is said before the work."""

from __future__ import annotations

import re

import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from benchmark.models.half import bert
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import lower_to_kernels
from igniter.errors import IgniterError
from igniter.targets import backend_for

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")


def assembly(model: onnx.ModelProto, target: str) -> str:
    module = igniter.load(model)
    c = Compilation(module.ir, CompileOptions(target=target), module.ctx)
    lower_to_kernels(c)
    assert c.kernels and not c.isolation.regions, c.isolation.regions
    backend = backend_for(target)
    return backend.assembly(backend.merged([t for k in c.kernels for t in k.variants], c.one_target()), c.one_target())


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
def test_a_small_bert_is_code_of_amd(gpu: str) -> None:
    text = assembly(bert(1, 32, 2, 64, 50), f"hip:{gpu}")
    assert text.count(f'amdhsa-unknown-{gpu}"') > 3
    assert ("v_mfma" in text) == (gpu == "gfx942"), "products go by matrix instructions"
    assert set(re.findall(r"vgpr_spill_count: (\d+)", text)) == {"0"}


def test_functions_of_the_device_are_those_of_amd() -> None:
    ops = ["Erf", "Tanh", "Sin", "Asinh", "Log", "Exp", "Sqrt", "Floor", "Atan", "Cosh"]
    names = ["x", *(f"v{k}" for k in range(len(ops)))]
    nodes = [helper.make_node(op, [names[k]], [names[k + 1]]) for k, op in enumerate(ops)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 40]) for n in (names[0], names[-1])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    assert ".amdgcn_target" in assembly(model, "hip:gfx942")


def test_no_library_is_made_and_that_is_said_first() -> None:
    with pytest.raises(IgniterError, match="compiled and not run, so there is no library: --emit=asm gives"):
        igniter.compile(bert(1, 32, 2, 64, 50), target="hip:gfx942", cache=False)


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(IgniterError, match=r"there is no target 'hip:gfx1': GPUs of AMD are hip:gfx90a, "):
        backend_for("hip:gfx1").target_of("hip:gfx1")
