"""Sizes at which a proof fails, run: a refutation is a difference of two runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.errors import IgniterError
from igniter.verification.check_inputs import TypedInput, random_arrays, sizes_without_empties
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.scheduled import run_func
from igniter.verification.interp.structured import run_kernel
from igniter.verification.judgement import compare_output
from igniter.verification.prove.integers import Points, Sizes, isl

MOST_ELEMENTS = 1 << 18
"""The limit of elements in the buffers of a run."""
MOST_SECONDS = 5.0
"""No further sizes are run after this processor time."""
BOUNDS = (4, 20, 70, 140, 520)
"""Sizes are first looked for below these bounds."""
LARGE = 300.0
"""The factor of a second run's inputs."""
CLEAR = 0.1
"""The least relative error of a difference in a second run: its sums round more."""
COMMON: tuple[int, ...] = (1, 2, 3, 0, 5, 8, 17, 33, 64, 65, 127)
"""Sizes to try if isl names none."""


@dataclass(frozen=True)
class Witness:
    """Sizes with a difference."""

    sizes: dict[str, int]
    difference: str


def find_witness(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Sizes, failing: Sequence[Points]
) -> Witness | None:
    """Runs two kernels at sizes out of `failing`; returns the first that differ, None if none do."""
    tried: list[dict[str, int]] = []
    end = time.process_time() + MOST_SECONDS
    for values in _candidates(before, sizes, failing):
        if values in tried or len(tried) == 6 or (tried and time.process_time() > end):
            continue
        tried.append(values)
        difference = run_both(before, after, values)
        if difference is not None:
            return Witness(values, difference)
    return None


def _candidates(before: KernelOp | FuncOp, sizes: Sizes, failing: Sequence[Points]) -> Iterator[dict[str, int]]:
    names = list(before.symbol_names)
    for points in failing:
        yield from _sampled(points.intersect_params(sizes.context()), names, sizes)
        yield from islice(_listed(points, names, sizes), 1)
    arguments = [a.type for a in before.block.args]
    for known in ({}, {n: 70 + 3 * k for k, n in enumerate(names)}):
        yield sizes_without_empties(arguments, list(before.walk()), before.requires, known)


def _sampled(points: Points, names: Sequence[str], sizes: Sizes) -> Iterator[dict[str, int]]:
    for bound in BOUNDS:
        limits = " and ".join(f"{p} <= {bound}" for p in sizes.symbols.values())
        body = f"{{ : {limits} }}" if limits else "{ : }"
        near = points.intersect_params(isl().Set(sizes.parameters(body) + body))
        if near.is_empty():
            continue
        point = near.sample_point()
        space, kind = near.get_space(), isl().dim_type.param
        found = {space.get_dim_name(kind, k): k for k in range(space.dim(kind))}
        values = {
            name: int(str(point.get_coordinate_val(kind, found[p]))) if (p := sizes.symbols.get(name)) in found else 1
            for name in names
        }
        values = {name: value * sizes.divisors.get(name, 1) for name, value in values.items()}
        if _is_consistent(points, values, sizes):
            yield values
            return


def _listed(points: Points, names: Sequence[str], sizes: Sizes) -> Iterator[dict[str, int]]:
    """Yields common sizes within `points`, with their opaque functions."""
    for each in islice(product(COMMON, repeat=len(names)), 3000):
        values: dict[str, int] = dict(zip(names, each, strict=True))
        if _is_consistent(points, values, sizes):
            yield values


def _is_consistent(points: Points, values: Mapping[str, int], sizes: Sizes) -> bool:
    """True if `points` contains the sizes, with every opaque parameter at its value."""
    kind = isl().dim_type.param
    space = points.get_space()
    if any(value % sizes.divisors.get(name, 1) for name, value in values.items()):
        return False
    values = {name: value // sizes.divisors.get(name, 1) for name, value in values.items()}
    for k in range(space.dim(kind)):
        try:
            value = sizes.exprs[space.get_dim_name(kind, k)].evaluate(values)
        except (KeyError, ZeroDivisionError):
            return False
        points = points.fix_val(kind, k, isl().Val(value))
    return not points.is_empty()


# -- runs -------------------------------------------------------------------------------------------------------------


def run_both(before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Mapping[str, int]) -> str | None:
    """Returns the difference of two kernels in words; None if they agree or cannot run at these sizes."""
    count = len(before.block.args) - (before.output_count if isinstance(before, FuncOp) else 0)
    specs = [TypedInput(f"i{k}", a.type) for k, a in enumerate(list(before.block.args)[:count])]
    if _elements(after, sizes) > MOST_ELEMENTS:
        return None
    inputs = [np.asarray(a, order="C") for a in random_arrays(specs, sizes, 0)]
    return _difference(before, after, inputs, sizes, 0.0) or _difference(
        before, after, [_large(a) for a in inputs], sizes, CLEAR
    )


def _difference(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, inputs: Sequence[Any], sizes: Mapping[str, int], clear: float
) -> str | None:
    try:
        expected = run(before, inputs, sizes)
    except IgniterError:
        # The sizes break a requirement of the kernel.
        return None
    try:
        actual = run(after, inputs, sizes)
    except InterpreterError as error:
        return str(error)
    for k, (one, other) in enumerate(zip(expected, actual, strict=True)):
        found = compare_output(f"result {k}", one, other)
        if not found.ok and not found.says_nothing and not found.max_error < clear:
            return f"result {k}: {found.reason}"
    return None


def _large(array: Any) -> Any:
    """Returns large floats: `exp` overflows unless a kernel subtracts the maximum."""
    return np.asarray(array * array.dtype.type(LARGE), order="C") if array.dtype.kind == "f" else array


def _elements(kernel: KernelOp | FuncOp, sizes: Mapping[str, int]) -> int:
    values = [*kernel.block.args, *(r for op in kernel.walk() for r in op.results if "loop.alloc" in op.name)]
    total = 0
    for value in values:
        count = 1
        for dim in dims_of(value.type):
            try:
                count *= dim.evaluate(sizes)
            except KeyError:
                continue
        total += count
    return total


def run(kernel: KernelOp | FuncOp, inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    """Runs a kernel in the interpreter of its level. Unwritten elements of a scheduled kernel hold a pattern."""
    if isinstance(kernel, KernelOp):
        return list(run_kernel(kernel, inputs, sizes))
    outputs: list[Any] = []
    for arg in list(kernel.block.args)[len(inputs) :]:
        shape = [d.evaluate(sizes) for d in dims_of(arg.type)]
        array = np.zeros(shape, BY_ATTR[element_of(arg.type)].dtype)
        array.view(np.uint8).reshape(-1)[:] = 0xA5 if array.size else 0
        outputs.append(array)
    run_func(kernel, [*inputs, *outputs], sizes)
    return outputs
