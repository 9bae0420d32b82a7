"""The tutorial's backend for RISC-V: kernels of models, run by qemu, against NumPy.

The tests that run kernels skip without qemu for RISC-V or the `ziglang` package.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from igniter import registry, targets
from igniter.backends.cpu.target import Target
from igniter.dialects.loop import KernelOp
from igniter.errors import IgniterError
from igniter.targets import Backend, backend_for
from igniter.toolbox.kernel.workbench import Version, find_kernel, outputs_of, schedule

Array = np.ndarray
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "docs" / "examples" / "my_package"
RNG = np.random.default_rng(38)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Array, g: Array, b: Array) -> Array:
    centred = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


def erf_gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2)))


def shifted_exp(x: Array, b: Array) -> Array:
    return np.exp(x.astype(np.float64)) + b


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b


def byte_product(a: Array, b: Array) -> Array:
    return a.astype(np.int32) @ b.astype(np.int32)


CASES: dict[str, tuple[str, Callable[..., Array], Callable[[], list[Array]]]] = {
    "exp": (
        "(float[n, m] x, float[m] b) => (float[n, m] y) { e = Exp(x)  y = Add(e, b) }",
        shifted_exp,
        lambda: [normal(3, 37), normal(37)],
    ),
    "softmax": ("(float[n, m] x) => (float[n, m] y) { y = Softmax(x) }", softmax, lambda: [3 * normal(5, 67)]),
    "layer norm": (
        "(float[n, 45] x, float[45] g, float[45] b) => (float[n, 45] y) { y = LayerNormalization(x, g, b) }",
        layer_norm,
        lambda: [normal(7, 45), normal(45), normal(45)],
    ),
    "gelu": ("(float[n] x) => (float[n] y) { y = Gelu(x) }", erf_gelu, lambda: [3 * normal(101)]),
    "matmul": (
        "(float[n, 33] a, float[33, 29] b) => (float[n, 29] y) { y = MatMul(a, b) }",
        product,
        lambda: [normal(9, 33), normal(33, 29)],
    ),
    "int8 product": (
        "(int8[n, 35] a, int8[35, 21] b) => (int32[n, 21] y) { y = MatMulInteger(a, b) }",
        byte_product,
        lambda: [integers("int8", 6, 35), integers("int8", 35, 21)],
    ),
    "uint8 product": (
        "(uint8[n, 35] a, int8[35, 21] b) => (int32[n, 21] y) { y = MatMulInteger(a, b) }",
        byte_product,
        lambda: [integers("uint8", 6, 35), integers("int8", 35, 21)],
    ),
}


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the tutorials' package was installed."""
    monkeypatch.setitem(registry.BACKENDS, "riscv64", "my_package.my_riscv:RiscvBackend")
    monkeypatch.syspath_prepend(str(PACKAGE))
    targets._made.cache_clear()
    yield
    targets._made.cache_clear()
    for name in [n for n in sys.modules if n.partition(".")[0] == "my_package"]:
        del sys.modules[name]


def my_qemu() -> Any:
    return importlib.import_module("my_package.my_qemu")


@pytest.fixture
def qemu(package: None) -> None:
    reason: str | None = my_qemu().missing()
    if reason is not None:
        pytest.skip(reason)


def riscv(bits: int) -> tuple[Backend, Target]:
    backend = backend_for(f"riscv64:{bits}")
    target = backend.target_of(f"riscv64:{bits}")
    assert isinstance(target, Target)
    return backend, target


def kernel_of(case: str, bits: int, folder: Path) -> tuple[KernelOp, Target]:
    backend, target = riscv(bits)
    path = folder / "model.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> case {CASES[case][0]}')
    onnx.save(model, path)
    return find_kernel(path, "", backend.machine_for(target)), target


def scheduled(case: str, bits: int, folder: Path) -> tuple[KernelOp, Version, Target]:
    kernel, target = kernel_of(case, bits, folder)
    return kernel, schedule(case, kernel, target), target


def check(got: Array, wanted: Array) -> None:
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, 2e-5, 2e-6)


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("case", CASES)
def test_kernels_of_models_compute_as_numpy(qemu: None, tmp_path: Path, case: str, bits: int):
    _, reference, inputs = CASES[case]
    kernel, version, target = scheduled(case, bits, tmp_path)
    given = inputs()
    for threads in (1, 2) if case == "softmax" else (1,):
        (got,) = outputs_of(kernel, version.func, target, given, threads)
        check(got, reference(*given))


def test_code_runs_on_longer_registers(qemu: None, tmp_path: Path):
    """Vectors have the length of the target, whatever the register has."""
    backend, _ = riscv(128)
    _, version, target = scheduled("softmax", 128, tmp_path)
    x = normal(5, 67)
    found: list[bytes] = []
    for bits in (128, 256, 1024):
        call: Any = backend.compile_func(version.func, target)
        call.bits, y = bits, np.zeros_like(x)
        call(x, y, **dict(zip(version.func.symbol_names, x.shape, strict=True)))
        check(y, softmax(x))
        found.append(y.tobytes())
    assert len(set(found)) == 1


def test_an_access_past_a_buffer_ends_the_call(qemu: None, tmp_path: Path):
    backend, _ = riscv(256)
    _, version, target = scheduled("gelu", 256, tmp_path)
    call = backend.compile_func(version.func, target)
    x = normal(64)
    call(x, np.zeros_like(x), d0=64)
    with pytest.raises(IgniterError, match="ended in qemu with"):
        call(x[:60], np.zeros_like(x), d0=64)


@pytest.mark.parametrize(
    ("case", "instructions"),
    [("matmul", ("vfmacc.v", "vsetivli")), ("exp", ("vfm", "vsetivli")), ("softmax", ("vfm",))],
)
def test_the_code_uses_vectors(tmp_path: Path, case: str, instructions: tuple[str, ...]):
    """This needs LLVM alone."""
    for bits in (128, 256):
        backend, _ = riscv(bits)
        _, version, target = scheduled(case, bits, tmp_path)
        text = backend.listing(version.func, target).text
        assert not [name for name in instructions if name not in text]
        assert f"zvl{bits}b" in text


def test_targets_and_refusals():
    backend, target = riscv(128)
    assert backend.target_of("riscv64") == target
    assert (target.arch, target.vector_bytes, target.byte_products) == ("riscv64", 16, False)
    assert backend.machine_for("riscv64:256").vector_bytes == 32
    assert list(backend.target_names("riscv64:2")) == ["riscv64:256"]
    with pytest.raises(IgniterError, match=r"there is no target 'riscv64:64'.*Targets: riscv64:128, riscv64:256"):
        backend.target_of("riscv64:64")
    with pytest.raises(IgniterError, match="one vector length; name one"):
        backend.targets_of("riscv64:128,riscv64:256")


def test_a_library_is_refused(tmp_path: Path):
    import igniter

    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> m {CASES["softmax"][0]}'), path)
    with pytest.raises(IgniterError, match="ONNX Runtime has no package for RISC-V"):
        igniter.compile(path, target="riscv64:256")


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    backend, _ = riscv(128)
    _, version, target = scheduled("gelu", 128, tmp_path)
    monkeypatch.setattr(my_qemu(), "PROGRAMS", ("no-such-qemu",))
    with pytest.raises(IgniterError, match="install qemu-user-static"):
        backend.compile_func(version.func, target)
