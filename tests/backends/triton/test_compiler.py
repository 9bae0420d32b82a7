"""Triton kernels compiled without a GPU: PTX that each GPU's assembler takes, without spills; texts that say nothing of
a model's names; and Triton's IR, which is another way to the same kernel."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from igniter.backends.triton.compiler import compile_source, compile_ttir, resources_of, signature_of
from igniter.backends.triton.python_source import Unprintable, print_kernel
from igniter.backends.triton.target import ARCHITECTURES, target_of
from igniter.dialects import triton as tt
from igniter.errors import IgniterError
from tests.backends.triton.programs import kernels_of, lowered
from tests.backends.triton.test_interpreter import FLOATS, UNARY, model, one

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

F32 = TensorProto.FLOAT
GPUS = (80, 90, 100, 120)
"""Ampere, Hopper and two of Blackwell."""
MODELS = {
    "softmax of long rows": lambda: one("Softmax", F32),
    "softmax of short rows": lambda: one("Softmax", F32, dims=["n", 100]),
    "transpose": lambda: one("Transpose", F32, dims=["a", "b", "c"], perm=[2, 0, 1]),
    "functions": lambda: model(
        [
            helper.make_node("Tanh", ["x"], ["a"]),
            helper.make_node("Erf", ["a"], ["b"]),
            helper.make_node("Exp", ["b"], ["y"]),
        ],
        {"x": (TensorProto.FLOAT16, ["n", "m"])},
    ),
    "columns": lambda: model(
        [helper.make_node("ReduceSum", ["x", "axes"], ["y"])], {"x": (F32, ["n", "m"])}, {"axes": np.array([0])}
    ),
    "bytes": lambda: one("Mod", TensorProto.UINT8, TensorProto.UINT8),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_gpu_takes_a_kernel_without_spills(name: str) -> None:
    for func in kernels_of(lowered(MODELS[name]())):
        kernel = compile_source(print_kernel(func), signature_of(func))
        assert kernel.parameters == len(signature_of(func)) + 2
        assert f".reqntid {kernel.threads}" in kernel.ptx
        assert kernel.shared <= 48 << 10
        for arch in GPUS:
            found = resources_of(kernel, arch)
            assert found.spills == found.stack == 0, f"sm_{arch}: {found}"
            assert not found.serialized
            assert 0 < found.registers <= 255


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_every_float_compile(op: str, kind: str) -> None:
    nodes = one(op, FLOATS[kind][0])
    nodes.opset_import[0].version = 20 if op == "Gelu" else 18
    (func,) = kernels_of(lowered(nodes))
    assert compile_source(print_kernel(func), signature_of(func)).parameters == len(signature_of(func)) + 2


@pytest.mark.parametrize("name", ["softmax of long rows", "transpose"])
def test_triton_reads_the_generic_form(name: str) -> None:
    """Both ways load, store and compute as often."""
    for func in kernels_of(lowered(MODELS[name]())):
        text = io.StringIO()
        module = ModuleOp([func.clone()])
        next(op for op in module.ops if isinstance(op, tt.FuncOp)).sym_name = func.sym_name.__class__("kernel")
        Printer(text, print_generic_format=True).print_op(module)
        ir = compile_ttir(text.getvalue(), len(signature_of(func)))
        source = compile_source(print_kernel(func), signature_of(func))
        assert ir.parameters == source.parameters
        for word in ("ld.global", "st.global", "ex2.approx", "max.NaN"):
            assert ir.ptx.count(word) == source.ptx.count(word), word


def test_texts_say_nothing_of_a_model() -> None:
    texts: list[list[str]] = []
    for name in ("n", 'x"; import os\n'):
        given = model(
            [helper.make_node("Softmax", [name], ["y"], name=name)],
            {name: (F32, ["rows" if name == "n" else name, "m"])},
        )
        texts.append([print_kernel(func) for func in kernels_of(lowered(given))])
    assert texts[0] == texts[1]


def test_kernels_are_the_same_from_run_to_run() -> None:
    (func,) = kernels_of(lowered(MODELS["functions"]()))
    first, second = (compile_source(print_kernel(func), signature_of(func)) for _ in range(2))
    assert first == second
    assert "igniter" not in first.ptx
    assert ".loc" not in first.ptx


def test_what_triton_refuses_is_said() -> None:
    with pytest.raises(IgniterError, match=r"(?s)Triton refuses a kernel: .*undefined_name"):
        compile_source("@triton.jit\ndef kernel(v0):\n    v1 = undefined_name(v0)\n", ["*fp32"])


def test_what_has_no_python_is_named() -> None:
    func = tt.FuncOp("f", [])
    with pytest.raises(Unprintable, match="Triton has no elements of"):
        from xdsl.dialects.builtin import f80

        from igniter.backends.triton.python_source import type_name

        type_name(f80)
    func.body.block.add_op(tt.ReturnOp())
    assert print_kernel(func) == "@triton.jit\ndef kernel():\n    pass\n"


def test_targets() -> None:
    assert [target_of(f"cuda:sm_{arch}").arch for arch in ARCHITECTURES] == list(ARCHITECTURES)
    assert target_of("cuda").arch == 80
    with pytest.raises(IgniterError, match="there is no target 'cuda:sm_70': GPUs are cuda"):
        target_of("cuda:sm_70")


def test_without_triton() -> None:
    """The kernels can be looked at; what compiles them says what to install."""
    script = (
        "import sys; sys.modules['triton'] = None\n"
        "from igniter.backends.triton.compiler import compile_source\n"
        "from igniter.errors import IgniterError\n"
        "try: compile_source('', [])\n"
        "except IgniterError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'onnx-igniter[triton]'" in done.stdout


def test_positions_have_32_bits_where_all_sizes_are_known_and_small() -> None:
    from onnx import TensorProto, helper

    from tests.backends.triton.programs import kernels_of, lowered, model

    def wide(dims: list[Any], *nodes: Any) -> bool:
        given = model(list(nodes) or [helper.make_node("Relu", ["x"], ["y"])], {"x": (TensorProto.FLOAT, dims)})
        return any("xi64>" in str(kernel) or ": i64" in str(kernel) for kernel in kernels_of(lowered(given)))

    assert not wide([64, 100])
    assert wide(["n", 100])
    assert wide([70000, 40000])
    assert not wide([64, 100], helper.make_node("Softmax", ["x"], ["y"], axis=-1))


def test_positions_that_are_data_or_of_long_dims_have_64_bits() -> None:
    from onnx import TensorProto, helper

    from tests.backends.triton.programs import check, kernels_of, lowered, model

    trilu = model(
        [helper.make_node("Trilu", ["x", "k"], ["y"])],
        {"x": (TensorProto.FLOAT, [10, 3]), "k": (TensorProto.INT64, [])},
    )
    check(trilu, {"x": np.ones((10, 3), np.float32), "k": np.array(2**33)})
    gather = model(
        [helper.make_node("Gather", ["x", "k"], ["y"])],
        {"x": (TensorProto.FLOAT, [10, 3]), "k": (TensorProto.INT64, [4])},
    )
    assert "xi64>" in str(kernels_of(lowered(gather))[0])
    long = model(
        [
            helper.make_node("Expand", ["x", "shape"], ["w"]),
            helper.make_node("ReduceSum", ["w", "first"], ["y"], keepdims=0),
        ],
        {"x": (TensorProto.FLOAT, [1, 4])},
        {"shape": np.array([3_000_000_000, 4], np.int64), "first": np.array([0], np.int64)},
    )
    assert all("i64" in str(kernel) for kernel in kernels_of(lowered(long)))
