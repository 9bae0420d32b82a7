"""Runs a structured kernel twice: by the interpreter, and scheduled, compiled and called. Shared by several tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from igniter.backends.cpu.jit import compile_func
from igniter.backends.cpu.target import target_of
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.requirements import FINE
from igniter.registry import load_pass
from igniter.verification.interp.structured import run_kernel

SCHEDULE = (
    "choose-schedule",
    "form-fma",
    "lower-to-loops",
    "fuse-loops",
    "promote-buffers",
    "slide-loops",
    "tile-loops",
    "sink-loops",
    "prefetch-loops",
    "parallelize-loops",
    "vectorize-loops",
    "unroll-loops",
    "transpose-accesses",
    "plan-buffers",
)
Array = np.ndarray


def parse(text: str) -> ModuleOp:
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return module


def kernel_of(module: ModuleOp) -> KernelOp:
    return next(op for op in module.ops if isinstance(op, KernelOp))


def schedule(module: ModuleOp, passes: Sequence[str] = SCHEDULE, **options: Mapping[str, object]) -> FuncOp:
    """Runs the schedule passes; `options` gives fields of a pass, by its name with `_`.

    What they leave together is verified. After every single pass, `igniter-opt` verifies IR in the lit tests; here
    it would take more than half of the time of a thousand tests.
    """
    for name in passes:
        load_pass(name)(**options.get(name.replace("-", "_"), {})).apply(IgniterContext(), module)
    module.verify()
    return next(op for op in module.ops if isinstance(op, FuncOp))


def random_inputs(kernel: KernelOp, symbols: Mapping[str, int], rng: np.random.Generator) -> list[Array]:
    inputs: list[Array] = []
    for arg in kernel.block.args:
        shape = [d.evaluate(symbols) for d in dims_of(arg.type)]
        dtype = element_type(element_of(arg.type)).dtype
        if dtype.kind == "f":
            inputs.append(rng.standard_normal(shape).astype(dtype))
        elif dtype.kind == "b":
            inputs.append(rng.random(shape) < 0.5)
        else:
            inputs.append(rng.integers(0, 5, shape).astype(dtype))
    return inputs


def run_compiled(
    func: FuncOp, inputs: Sequence[Array], symbols: Mapping[str, int], target: str = "native"
) -> list[Array]:
    """The outputs of a scheduled kernel; they start as garbage, so that what is not written shows."""
    return call(func, compile_func(func, target_of(target)), inputs, symbols)


def call(
    func: FuncOp, compiled: Callable[..., None], inputs: Sequence[Array], symbols: Mapping[str, int]
) -> list[Array]:
    """As `run_compiled`, of a kernel that is compiled already."""
    outputs: list[Array] = []
    for arg in func.block.args[len(inputs) :]:
        shape = [d.evaluate(symbols) for d in dims_of(arg.type)]
        dtype = element_type(element_of(arg.type)).dtype
        outputs.append(np.full(shape, 1, dtype) if dtype.kind == "b" else np.full(shape, 77, dtype))
    compiled(*[np.ascontiguousarray(i) for i in inputs], *outputs, **{s: symbols[s] for s in func.symbol_names})
    found = outputs[len(outputs) - len(func.checks) :]
    assert all(value == FINE for value in found), f"the checks of @{func.sym_name.data} find {found}"
    return outputs[: len(outputs) - len(func.checks)]


def check(
    text: str,
    cases: Sequence[Mapping[str, int]],
    *,
    rtol: float = 1e-5,
    seed: int = 0,
    machines: Sequence[int] = (64, 32, 16),
    passes: Sequence[str] = SCHEDULE,
) -> None:
    """Compares the kernel in `text` as interpreted and as compiled, for every vector width and every case."""
    kernel = kernel_of(parse(text))
    inputs = [random_inputs(kernel, case, np.random.default_rng(seed)) for case in cases]
    expected = [run_kernel(kernel, values, case) for values, case in zip(inputs, cases, strict=True)]
    for vector_bytes in machines:
        func = schedule(parse(text), passes, choose_schedule={"vector_bytes": vector_bytes})
        compiled = compile_func(func, target_of("native"))
        for case, values, wanted in zip(cases, inputs, expected, strict=True):
            for want, got in zip(wanted, call(func, compiled, values, case), strict=True):
                scale = float(np.abs(want[np.isfinite(want)]).max(initial=0)) if want.dtype.kind == "f" else 0.0
                np.testing.assert_allclose(
                    got, want, rtol=rtol, atol=rtol * scale, err_msg=f"{case} at {vector_bytes} bytes\n{func}"
                )
