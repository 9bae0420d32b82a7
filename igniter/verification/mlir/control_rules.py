"""The ops of `func`, `cf` and `scf`."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Operation

from igniter.verification.mlir.machine import (
    Execute,
    Jump,
    Machine,
    attr_of,
    int_of,
    ints_of,
    require_attr,
    rule,
    segments,
    truth,
)
from igniter.verification.mlir.math_rules import LIBRARY
from igniter.verification.mlir.tensor_rules import parallel_insert
from igniter.verification.mlir.values import DYNAMIC, POISON, Array, Undefined, concrete, rounding


def returned(values: Sequence[Any], op: Operation) -> Any:
    """Returns the values of a region as the results of its op."""
    return values[0] if len(op.results) == 1 else tuple(values)


@rule("func.call", "llvm.call")
def call(machine: Machine, op: Operation) -> Execute:
    """Decodes a call: of a function of the module, or of a declared function of the C library."""
    callee = machine.symbol(require_attr(op, "callee"))
    name = str(attr_of(callee, "sym_name")).strip('"')
    if not callee.regions[0].blocks and name in LIBRARY and len(op.results) == 1:
        function, round_ = LIBRARY[name], rounding(op.results[0].type)
        return lambda *a: POISON if any(x is POISON for x in a) else round_(function(*a))
    return lambda *args: returned(machine.call(callee, args), op)


# -- cf ----------------------------------------------------------------------------------------------------------------


@rule("cf.br", "llvm.br")
def branch(_: Machine, op: Operation) -> Execute:
    """Decodes a branch."""
    target = op.successors[0]
    return lambda *args: Jump(target, args)


@rule("cf.cond_br", "llvm.cond_br")
def conditional_branch(_: Machine, op: Operation) -> Execute:
    """Decodes a branch on a condition."""

    def run(*operands: Any) -> Jump:
        (condition,), if_true, if_false = segments(op, operands)
        taken = truth(condition, "the condition of a branch")
        return Jump(op.successors[0 if taken else 1], tuple(if_true if taken else if_false))

    return run


@rule("cf.switch")
def switch(_: Machine, op: Operation) -> Execute:
    """Decodes a branch on an integer."""
    values = attr_of(op, "case_values")
    cases = [int(v) for v in values.get_values()] if isinstance(values, builtin.DenseIntOrFPElementsAttr) else []
    sizes = ints_of(attr_of(op, "case_operand_segments"))

    def run(*operands: Any) -> Jump:
        (flag,), default, rest = segments(op, operands)
        concrete(flag, "the flag of a switch")
        if flag not in cases:
            return Jump(op.successors[0], tuple(default))
        case = cases.index(flag)
        start = sum(sizes[:case])
        return Jump(op.successors[1 + case], tuple(rest[start : start + sizes[case]]))

    return run


@rule("cf.assert")
def assertion(_: Machine, op: Operation) -> Execute:
    """Decodes an assertion. A failed one ends the program, which counts as undefined behaviour of the input."""
    message = str(attr_of(op, "msg"))

    def run(condition: Any) -> None:
        if not truth(condition, "the condition of an assertion"):
            raise Undefined(f"an assertion fails: {message}")

    return run


# -- scf ---------------------------------------------------------------------------------------------------------------


@rule("scf.for")
def for_loop(machine: Machine, op: Operation) -> Execute:
    """Decodes a loop."""
    body = op.regions[0]

    def run(lower: Any, upper: Any, step: Any, *values: Any) -> Any:
        for bound in (lower, upper, step):
            concrete(bound, "a bound of a loop")
        if step <= 0:
            raise Undefined(f"a loop with the step {step}")
        index = lower
        while index < upper:
            values = machine.run(body, (index, *values))[1]
            index += step
        return returned(values, op)

    return run


@rule("scf.if")
def if_(machine: Machine, op: Operation) -> Execute:
    """Decodes a conditional."""
    then, otherwise = op.regions

    def run(condition: Any) -> Any:
        region = then if truth(condition, "the condition of an if") else otherwise
        return returned(machine.run(region)[1] if region.blocks else (), op)

    return run


@rule("scf.while")
def while_(machine: Machine, op: Operation) -> Execute:
    """Decodes a loop with a condition before its body."""
    before, after = op.regions

    def run(*values: Any) -> Any:
        while True:
            condition, *passed = machine.run(before, values)[1]
            if not truth(condition, "the condition of a loop"):
                return returned(passed, op)
            values = machine.run(after, tuple(passed))[1]

    return run


@rule("scf.execute_region", "memref.alloca_scope")
def execute_region(machine: Machine, op: Operation) -> Execute:
    """Decodes a region that runs once."""
    return lambda: returned(machine.run(op.regions[0])[1], op)


@rule("scf.index_switch")
def index_switch(machine: Machine, op: Operation) -> Execute:
    """Decodes a choice by an index."""
    cases = ints_of(require_attr(op, "cases"))

    def run(flag: Any) -> Any:
        concrete(flag, "the flag of a switch")
        place = 1 + cases.index(flag) if flag in cases else 0
        return returned(machine.run(op.regions[place])[1], op)

    return run


@rule("scf.parallel")
def parallel(machine: Machine, op: Operation) -> Execute:
    """Decodes a parallel loop; its iterations run in order."""

    def run(*operands: Any) -> Any:
        lower, upper, step, initial = segments(op, operands)
        values = list(initial)
        for bound in (*lower, *upper, *step):
            concrete(bound, "a bound of a loop")
        if any(s <= 0 for s in step):
            raise Undefined("a parallel loop with a step that is not positive")
        for point in product(*(range(a, b, s) for a, b, s in zip(lower, upper, step, strict=True))):
            end, parts = machine.run(op.regions[0], point)
            for place, region in enumerate(end.regions):
                values[place] = machine.run(region, (values[place], parts[place]))[1][0]
        return returned(values, op)

    return run


@rule("scf.forall")
def forall(machine: Machine, op: Operation) -> Execute:
    """Decodes a parallel loop with shared tensors; its iterations run in order."""
    static = [ints_of(require_attr(op, f"static{name}")) for name in ("LowerBound", "UpperBound", "Step")]

    def run(*operands: Any) -> Any:
        *dynamic, outs = segments(op, operands)
        bounds: list[list[int]] = []
        for numbers, values in zip(static, dynamic, strict=True):
            rest = iter(values)
            bounds.append([next(rest) if n == DYNAMIC else n for n in numbers])
        shared: list[Array] = [out.copy() for out in outs]
        for point in product(*(range(a, b, s) for a, b, s in zip(*bounds, strict=True))):
            end, _ = machine.run(op.regions[0], (*point, *shared))
            for insert in end.regions[0].blocks[0].ops:
                parallel_insert(machine, insert)
        return returned(shared, op)

    return run


def number_of(op: Operation, name: str) -> int:
    """Returns an integer attribute of an op."""
    return int_of(require_attr(op, name))
