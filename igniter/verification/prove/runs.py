"""Two kernels, run at one choice of sizes: small ones in the interpreter, large ones compiled for this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from igniter.dialects.loop import CallOp, FuncOp, KernelOp, NestOp, TileProductOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import product
from igniter.errors import IgniterError
from igniter.targets import backend_for
from igniter.transforms.scheduled.plan_buffers import plan_func
from igniter.verification.check_inputs import TypedInput, random_arrays
from igniter.verification.interp.scheduled import UNWRITTEN, run_func
from igniter.verification.interp.structured import run_kernel
from igniter.verification.judgement import compare_output

INTERPRETED_FIRST = 1 << 13
"""Scheduled kernels with more elements or points are compiled; the interpreter also finds races."""
MOST_INTERPRETED = 1 << 18
"""The limit of elements and points of a scheduled kernel in the interpreter."""
MOST_ELEMENTS = 1 << 24
"""The limit of elements in the buffers of a run."""
MOST_POINTS = 1 << 27
"""The limit of points of a structured kernel."""
LARGE = 300.0
"""The factor of a second run's inputs."""
CLEAR = 0.1
"""The least relative error of a difference in a second run: its sums round more."""

Runner = Callable[[Sequence[Any], Mapping[str, int]], list[Any]]


@dataclass(frozen=True)
class Compared:
    """The result of two runs; empty texts if they agree, or the sizes break a requirement."""

    difference: str = ""
    limit: str = ""
    """Why the kernels were not run."""


def run_both(before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Mapping[str, int]) -> str | None:
    """Returns the difference of two kernels in words; None if they agree or cannot run at these sizes."""
    return compare(before, after, sizes).difference or None


def compare(before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Mapping[str, int]) -> Compared:
    """Runs two kernels on random inputs, and on large ones."""
    limit = _limit(before, after, sizes)
    if limit:
        return Compared(limit=limit)
    size = max(_elements(after, sizes), _points(before, sizes))
    try:
        reference, runners = _runners(before, size)[0], _runners(after, size)
    except IgniterError as error:
        reason = str(error).partition("\n")[0]
        return Compared(limit=f"the kernel is too large for the interpreter and cannot be compiled: {reason}")
    count = len(before.block.args) - (before.output_count if isinstance(before, FuncOp) else 0)
    specs = [TypedInput(f"i{k}", a.type) for k, a in enumerate(list(before.block.args)[:count])]
    inputs = [np.asarray(a, order="C") for a in random_arrays(specs, sizes, 0)]
    # The interpreter, after compiled code, looks for races and bounds; other inputs have the same ones.
    for factor, clear, used in ((1.0, 0.0, runners), (LARGE, CLEAR, runners[:1])):
        difference = _difference(reference, used, [_scaled(a, factor) for a in inputs], sizes, clear)
        if difference:
            return Compared(difference)
    return Compared()


def _limit(before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Mapping[str, int]) -> str:
    """Returns why kernels are too large to run."""
    for what, count, most in (
        ("elements in its buffers", max(_elements(k, sizes) for k in (before, after)), MOST_ELEMENTS),
        ("iterations", max(_points(k, sizes) for k in (before, after)), MOST_POINTS),
    ):
        if count > most:
            return f"the kernel has {count:,} {what}, and the limit is {most:,}"
    return ""


def _difference(
    reference: Runner, runners: Sequence[Runner], inputs: Sequence[Any], sizes: Mapping[str, int], clear: float
) -> str:
    try:
        expected = reference(inputs, sizes)
    except IgniterError:
        # The sizes break a requirement of the kernel.
        return ""
    for runner in runners:
        try:
            actual = runner(inputs, sizes)
        except IgniterError as error:
            return str(error)
        for k, (one, other) in enumerate(zip(expected, actual, strict=True)):
            found = compare_output(f"result {k}", one, other)
            if not found.ok and not found.says_nothing and not found.max_error < clear:
                return f"result {k}: {found.reason}"
    return ""


def _scaled(array: Any, factor: float) -> Any:
    """Returns floats times a factor: with a large one, `exp` overflows unless a kernel subtracts the maximum."""
    return np.asarray(array * array.dtype.type(factor), order="C") if array.dtype.kind == "f" else array


def _elements(kernel: KernelOp | FuncOp, sizes: Mapping[str, int]) -> int:
    values = [*kernel.block.args, *(r for op in kernel.walk() for r in op.results if "loop.alloc" in op.name)]
    total = 0
    for value in values:
        try:
            total += product(dims_of(value.type)).evaluate(sizes)
        except KeyError:
            continue
    return total


def _points(kernel: KernelOp | FuncOp, sizes: Mapping[str, int]) -> int:
    """Returns the iterations of a structured kernel's nests; 0 for a scheduled kernel."""
    nests = [op for op in kernel.walk() if isinstance(op, NestOp)]
    return sum(product([axis.extent for axis in nest.axes]).evaluate(sizes) for nest in nests)


# -- runners ----------------------------------------------------------------------------------------------------------


def _runners(kernel: KernelOp | FuncOp, size: int) -> list[Runner]:
    """Returns the ways to run a kernel, the fastest first; raises `IgniterError` if there is none."""
    if isinstance(kernel, KernelOp):
        return [lambda inputs, sizes: list(run_kernel(kernel, inputs, sizes))]
    interpreter = _scheduled(kernel, lambda buffers, sizes: run_func(kernel, buffers, sizes))
    if size <= INTERPRETED_FIRST:
        return [interpreter]
    try:
        compiled = _compiled(kernel)
    except IgniterError:
        if size > MOST_INTERPRETED:
            raise
        return [interpreter]
    return [compiled, interpreter] if size <= MOST_INTERPRETED else [compiled]


def _compiled(func: FuncOp) -> Runner:
    if any(isinstance(op, (CallOp, TileProductOp)) for op in func.walk()):
        raise IgniterError(f"@{func.sym_name.data} calls code that this machine may not have")
    copy = func.clone()
    if copy.scratch_bytes is None:
        plan_func(copy)
    code = backend_for("native").compile_func(copy, "native", sanitize=True)
    return _scheduled(func, lambda buffers, sizes: code(*buffers, **sizes))


def _scheduled(func: FuncOp, call: Callable[[Sequence[Any], Mapping[str, int]], None]) -> Runner:
    """Returns a runner that makes the buffers of the results. Their unwritten elements hold a pattern."""

    def run(inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        outputs: list[Any] = []
        for arg in list(func.block.args)[len(inputs) :]:
            shape = [d.evaluate(sizes) for d in dims_of(arg.type)]
            array = np.zeros(shape, BY_ATTR[element_of(arg.type)].dtype)
            array.view(np.uint8).reshape(-1)[:] = UNWRITTEN if array.dtype.kind == "f" else 0xA5
            outputs.append(array)
        call([*inputs, *outputs], sizes)
        return outputs[: len(outputs) - len(func.checks)]

    return run
