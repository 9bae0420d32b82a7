"""Running one function of a module, and comparing what can be observed of two runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from igniter.verification.mlir.drawing import Argument
from igniter.verification.mlir.machine import External, Machine, attr_of, name_of
from igniter.verification.mlir.values import (
    POISON,
    Array,
    MemRef,
    OutOfSteps,
    Unsupported,
    element_of,
    is_array,
    is_memref,
    is_shaped,
)

TOLERANCE = {"f64": 1e-9, "f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}
"""The relative difference allowed between floats: a pass may change the order of a sum."""


FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What rules raise for a form of an op that they do not expect; the function counts as not checked."""


@dataclass(frozen=True)
class Function:
    """A function of a module."""

    name: str
    op: Operation
    inputs: tuple[Attribute, ...]
    outputs: tuple[Attribute, ...]
    is_public: bool


@dataclass(frozen=True)
class Run:
    """The observable effects of one run."""

    results: tuple[Any, ...]
    memrefs: dict[int, Array]
    """The elements of the arguments that are memrefs, afterwards."""
    events: tuple[External, ...]
    steps: int


def functions(module: ModuleOp) -> dict[str, Function]:
    """Returns the functions with a body by name."""
    found: dict[str, Function] = {}
    for op in module.ops:
        name, type_ = attr_of(op, "sym_name"), attr_of(op, "function_type")
        if name_of(op) != "func.func" or not isinstance(name, StringAttr) or not op.regions[0].blocks:
            continue
        assert isinstance(type_, builtin.FunctionType)
        public = str(attr_of(op, "sym_visibility")).strip('"') not in ("private", "nested")
        found[name.data] = Function(name.data, op, tuple(type_.inputs), tuple(type_.outputs), public)
    return found


def run_function(machine: Machine, function: Function, arguments: Sequence[Argument], limit: int) -> Run:
    """Runs a function on fresh copies of the arguments.

    Raises `Undefined`, `Unsupported` or `OutOfSteps`.
    """
    machine.start()
    machine.limit = limit
    values = [a.value(t) for a, t in zip(arguments, function.inputs, strict=True)]
    try:
        results = machine.call(function.op, values)
    except RecursionError as error:
        raise OutOfSteps("the program calls too deeply") from error
    except FAULTS as error:
        raise Unsupported(f"a fault of the interpreter: {type(error).__name__}: {error}") from error
    memrefs = {i: v.array() for i, v in enumerate(values) if isinstance(v, MemRef)}
    return Run(tuple(map(_seen, results)), memrefs, tuple(machine.events), machine.steps)


def _seen(value: Any) -> Any:
    return value.array() if isinstance(value, MemRef) else value


def difference(before: Run, after: Run, function: Function) -> str:
    """Returns where two runs differ, in words; empty if the second does what the first allows."""
    for place, (event, other) in enumerate(zip(before.events, after.events, strict=False)):
        if event.name != other.name:
            return f"call {place} is of @{other.name} instead of @{event.name}"
        for i, (a, b) in enumerate(zip(event.args, other.args, strict=False)):
            found = _value_difference(a, b, 1e-5)
            if found:
                return f"call {place}, of @{event.name}, argument {i}{found}"
    if len(before.events) != len(after.events):
        return f"{len(after.events)} calls of external functions instead of {len(before.events)}"
    if len(before.results) != len(after.results):
        return f"{len(after.results)} results instead of {len(before.results)}"
    for i, (a, b, type_) in enumerate(zip(before.results, after.results, function.outputs, strict=True)):
        found = _value_difference(a, b, _tolerance(type_))
        if found:
            return f"result {i}{found}"
    for i, type_ in enumerate(function.inputs):
        if is_memref(type_) and i in after.memrefs:
            found = _value_difference(before.memrefs[i], after.memrefs[i], _tolerance(type_))
            if found:
                return f"argument {i} afterwards{found}"
    return ""


def _tolerance(type_: Attribute) -> float:
    return TOLERANCE.get(str(element_of(type_)), 0.0)


def _value_difference(before: Any, after: Any, tolerance: float) -> str:
    if not is_array(before) or not is_array(after):
        if is_array(before) or is_array(after):
            return ": a scalar on one side, elements on the other"
        return "" if agrees(before, after, tolerance) else f": {after} instead of {before}"
    if before.shape != after.shape:
        return f": the sizes {list(after.shape)} instead of {list(before.shape)}"
    flat = enumerate(zip(before.reshape(-1), after.reshape(-1), strict=True))
    wrong = [(i, a, b) for i, (a, b) in flat if not agrees(a, b, tolerance)]
    if not wrong:
        return ""
    place, a, b = wrong[0]
    index: list[int] = []
    for size in reversed(before.shape):
        place, i = divmod(place, size)
        index.insert(0, i)
    where = f", element [{', '.join(map(str, index))}]" if index else ""
    return f"{where}: {b} instead of {a} ({len(wrong)} of {before.size} elements differ)"


def agrees(before: Any, after: Any, tolerance: float) -> bool:
    """True if a value is one that the original allows: poison allows every value."""
    if before is POISON:
        return True
    if after is POISON:
        return False
    if not isinstance(before, float) or not isinstance(after, float):
        return before == after
    if math.isnan(before) or math.isnan(after):
        return math.isnan(before) and math.isnan(after)
    if before == after:
        return before != 0.0 or math.copysign(1.0, before) == math.copysign(1.0, after)
    if math.isinf(before) or math.isinf(after):
        return False
    return abs(before - after) <= tolerance * max(abs(before), abs(after))


def require_same_signature(before: Function, after: Function) -> None:
    """Raises `Unsupported` if the functions cannot get the same arguments.

    A tensor may have become a memref.
    """
    if len(before.inputs) != len(after.inputs) or len(before.outputs) != len(after.outputs):
        raise Unsupported(f"@{before.name} has other arguments or results afterwards")
    for a, b in zip((*before.inputs, *before.outputs), (*after.inputs, *after.outputs), strict=True):
        if a != b and not (is_shaped(a) and is_shaped(b) and element_of(a) == element_of(b)):
            raise Unsupported(f"@{before.name}: {a} became {b}")
