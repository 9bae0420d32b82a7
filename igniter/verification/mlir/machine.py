"""The interpreter's core: regions, blocks, functions, and the table of ops.

A rule decodes an op once, and returns a function from the values of its operands to those of its results. So the
attributes of an op in a loop are read only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from igniter.verification.mlir.values import (
    DYNAMIC,
    POISON,
    MemRef,
    OutOfSteps,
    Undefined,
    Unsupported,
    allocate,
    array_of,
    bits_of,
    element_of,
    filled,
    is_integer,
    is_tensor,
    is_vector,
    shape_of,
    wrapped,
)

Execute = Callable[..., Any]
"""A decoded op: operand values to the value of its result, or a tuple of values if it has not exactly one."""

Rule = Callable[["Machine", Operation], Execute]

_RULES: dict[str, Rule] = {}
_RULE_FILES = ("arith", "math", "control", "affine", "memory", "vector", "transfer", "tensor", "linalg", "llvm")


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for ops of these names."""

    def register(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return register


@cache
def rules() -> dict[str, Rule]:
    """Returns the table of all rules."""
    for name in _RULE_FILES:
        import_module(f"igniter.verification.mlir.{name}_rules")
    return _RULES


def name_of(op: Operation) -> str:
    """Returns the name of an op, registered or not."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def attr_of(op: Operation, name: str) -> Attribute | None:
    """Returns a property or an attribute of an op."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def require_attr(op: Operation, *names: str) -> Attribute:
    """Returns an attribute that the op must have, under one of its names."""
    for name in names:
        found = attr_of(op, name)
        if found is not None:
            return found
    raise Unsupported(f"'{name_of(op)}' without the attribute '{names[0]}'")


def ints_of(attribute: Attribute | None) -> tuple[int, ...]:
    """Returns the integers of an array attribute; empty without one."""
    if attribute is None:
        return ()
    if isinstance(attribute, builtin.DenseArrayBase):
        return tuple(int(v) for v in attribute.get_values())
    if isinstance(attribute, builtin.ArrayAttr):
        return tuple(int_of(element) for element in cast(Any, attribute).data)
    raise Unsupported(f"{attribute} is no array of integers")


def int_of(attribute: Attribute) -> int:
    """Returns the value of an integer attribute."""
    if isinstance(attribute, builtin.IntegerAttr):
        return attribute.value.data
    raise Unsupported(f"{attribute} is no integer")


def segments(op: Operation, operands: Sequence[Any], name: str = "operandSegmentSizes") -> list[Sequence[Any]]:
    """Returns the operands by segment."""
    found: list[Sequence[Any]] = []
    place = 0
    for size in ints_of(require_attr(op, name)):
        found.append(operands[place : place + size])
        place += size
    return found


def constant(attribute: Attribute, type_: Attribute) -> Any:
    """Returns the value of a constant attribute."""
    if isinstance(attribute, builtin.IntegerAttr):
        return wrapped(attribute.value.data, bits_of(type_))
    if isinstance(attribute, builtin.FloatAttr):
        return float(attribute.value.data)
    if isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        element = element_of(type_)
        bits = bits_of(element)
        values = [wrapped(int(v), bits) if is_integer(element) else float(v) for v in attribute.get_values()]
        shape = shape_of(type_)
        if values and (len(values) == 1 or attribute.is_splat()):
            return filled(values[0], shape)
        return array_of(values, shape)
    raise Unsupported(f"the interpreter does not read the constant {str(attribute)[:60]}")


@dataclass(frozen=True)
class External:
    """An event that an observer of the program can see: a call of a function without a body."""

    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Jump:
    """The value of a branch: the next block and its arguments."""

    block: Block
    args: tuple[Any, ...]


@dataclass(frozen=True)
class _Step:
    execute: Execute
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    op: Operation


TERMINATORS = frozenset(
    {
        *("func.return", "llvm.return", "scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return"),
        *("scf.forall.in_parallel", "affine.yield", "vector.yield", "linalg.yield", "tensor.yield"),
        *("memref.alloca_scope.return", "bufferization.yield"),
    }
)
"""The ops that end a region and give its values."""


@dataclass
class Machine:
    """One program and its state. `limit` is the number of ops that it may execute."""

    module: ModuleOp
    limit: int = 1_000_000
    steps: int = 0
    events: list[External] = field(default_factory=list[External])
    iteration: tuple[int, ...] = ()
    """The current iteration of the innermost linalg op."""
    _env: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    _blocks: dict[Block, list[_Step]] = field(default_factory=dict[Block, "list[_Step]"])
    _globals: dict[str, MemRef] = field(default_factory=dict[str, MemRef])
    _symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])

    def __post_init__(self) -> None:
        for op in self.module.ops:
            name = attr_of(op, "sym_name")
            if isinstance(name, builtin.StringAttr):
                self._symbols[name.data] = op

    def start(self) -> None:
        """Forgets the state of an earlier run; the decoded ops stay."""
        self.steps = 0
        self.events = []
        self._globals = {}
        self._env = {}

    def symbol(self, attribute: Attribute) -> Operation:
        """Returns the op that a symbol names."""
        name = attribute.string_value() if isinstance(attribute, builtin.SymbolRefAttr) else str(attribute)
        found = self._symbols.get(name)
        if found is None:
            raise Unsupported(f"there is no symbol @{name} at the top of the module")
        return found

    def call(self, func: Operation, args: Sequence[Any]) -> tuple[Any, ...]:
        """Runs a function; returns its results."""
        region = func.regions[0]
        if not region.blocks:
            return self._external(func, args)
        outer, self._env = self._env, {}
        try:
            return self.run(region, args)[1]
        finally:
            self._env = outer

    def run(self, region: Region, args: Sequence[Any] = ()) -> tuple[Operation, tuple[Any, ...]]:
        """Runs a region until a terminator; returns it with the values of its operands."""
        block = region.blocks[0]
        env = self._env
        while True:
            for argument, value in zip(block.args, args, strict=True):
                env[argument] = value
            steps = self._decoded(block)
            self.steps += len(steps) or 1
            if self.steps > self.limit:
                raise OutOfSteps(f"the program executes more than {self.limit:,} ops")
            jump: Jump | None = None
            for step in steps:
                operands = [env[operand] for operand in step.operands]
                value = step.execute(*operands)
                if isinstance(value, Jump):
                    jump = value
                elif len(step.results) == 1:
                    env[step.results[0]] = value
                elif step.results:
                    for result, part in zip(step.results, value, strict=True):
                        env[result] = part
            if jump is None:
                end = block.last_op
                if end is None or name_of(end) not in TERMINATORS:
                    return (end or region.parent_op() or self.module), ()
                return end, tuple(env[operand] for operand in end.operands)
            block, args = jump.block, jump.args

    def value(self, value: SSAValue) -> Any:
        """Returns the current value of an SSA value."""
        return self._env[value]

    def bind(self, result: SSAValue, value: Any) -> None:
        """Gives an SSA value its value."""
        self._env[result] = value

    def global_memref(self, op: Operation) -> MemRef:
        """Returns the memref of a `memref.global`."""
        name = str(attr_of(op, "sym_name"))
        if name not in self._globals:
            type_ = require_attr(op, "type")
            made = allocate(shape_of(type_), f"the global {name}")
            initial = attr_of(op, "initial_value")
            if initial is None:
                raise Unsupported(f"the external global {name}")
            if not isinstance(initial, builtin.UnitAttr):
                made.fill_from(constant(initial, type_))
            self._globals[name] = made
        return self._globals[name]

    def _decoded(self, block: Block) -> list[_Step]:
        found = self._blocks.get(block)
        if found is None:
            table = rules()
            found = []
            for op in block.ops:
                name = name_of(op)
                if name in TERMINATORS and op is block.last_op:
                    continue
                if name not in table:
                    raise Unsupported(f"the interpreter has no rule for '{name}'")
                found.append(_Step(table[name](self, op), tuple(op.operands), tuple(op.results), op))
            self._blocks[block] = found
        return found

    def _external(self, func: Operation, args: Sequence[Any]) -> tuple[Any, ...]:
        """Calls a function without a body: it records its arguments, and writes every element of its memrefs.

        The values written and returned depend on the number of calls before, and on nothing else.
        """
        name = attr_of(func, "sym_name")
        assert isinstance(name, builtin.StringAttr)
        seen = tuple(a.array() if isinstance(a, MemRef) else a for a in args)
        call = len(self.events)
        self.events.append(External(name.data, seen))
        type_ = attr_of(func, "function_type")
        if not isinstance(type_, builtin.FunctionType):
            raise Unsupported(f"a call of @{name.data}, which has no body")
        for place, (arg, kind) in enumerate(zip(args, type_.inputs, strict=True)):
            if isinstance(arg, MemRef):
                arg.fill_from(opaque_array(call, place, arg.sizes, element_of(kind)))
        return tuple(opaque(call, place, kind) for place, kind in enumerate(type_.outputs))


def opaque(call: int, place: int, type_: Attribute) -> Any:
    """Returns the result of an external function."""
    if is_vector(type_) or is_tensor(type_):
        shape = shape_of(type_)
        if DYNAMIC in shape:
            raise Unsupported("an external function that returns a tensor of unknown size")
        return opaque_array(call, place, shape, element_of(type_))
    return opaque_scalar(call, place, 0, type_)


def opaque_array(call: int, place: int, shape: Sequence[int], element: Attribute) -> Any:
    """Returns the elements that an external function writes."""
    return array_of((opaque_scalar(call, place, i, element) for i in range(math.prod(shape))), shape)


def opaque_scalar(call: int, place: int, index: int, type_: Attribute) -> Any:
    """Returns a small integer that differs between calls, arguments and elements."""
    value = (7 * call + 5 * place + 3 * index) % 23
    if is_integer(type_):
        return wrapped(value, bits_of(type_))
    if isinstance(type_, builtin.AnyFloat):
        return float(value)
    raise Unsupported(f"an external function with values of the type {type_}")


def truth(value: Any, what: str) -> bool:
    """Returns a condition. Raises `Undefined` if it is poison."""
    if value is POISON:
        raise Undefined(f"{what} is poison")
    return bool(value)
