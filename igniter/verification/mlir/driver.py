"""A program that calls a function on given arguments and prints what it did, for MLIR's runner.

Every value is printed as integers, one a line: the bits of scalars; sizes, then elements, of memrefs and tensors. A
call of an external function prints 1, its number and its arguments; the end of a case prints 2, then the results, then
the arguments that are memrefs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from igniter.verification.mlir.drawing import Argument
from igniter.verification.mlir.machine import External
from igniter.verification.mlir.observing import Function, Run
from igniter.verification.mlir.values import (
    DYNAMIC,
    Array,
    Unsupported,
    array_of,
    bits_of,
    element_of,
    from_bits,
    is_array,
    is_integer,
    is_memref,
    is_shaped,
    is_tensor,
    is_vector,
    shape_of,
    to_bits,
    wrapped,
)

ENTRY = "igniter_check_main"
CALLED, ENDED = 1, 2
MOST_LANES = 256


@dataclass(frozen=True)
class Declared:
    """An external function of the program."""

    name: str
    inputs: tuple[Attribute, ...]
    outputs: tuple[Attribute, ...]


@dataclass
class Driver:
    """The text of a driver, as it is written."""

    function: Function
    externals: Sequence[Declared]
    globals: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    printers: dict[str, str] = field(default_factory=dict[str, str])
    """By the type of memrefs: the text of a function that prints one."""
    _fresh: Iterator[int] = field(default_factory=itertools.count)

    def text(self, cases: Sequence[Sequence[Argument]]) -> str:
        """Returns the module that calls the function on every case in turn."""
        bodies = [self._external(number, external) for number, external in enumerate(self.externals)]
        self.lines = []
        for arguments in cases:
            self._case(arguments)
        f = self.function
        kinds = f"({', '.join(map(str, f.inputs))}) -> ({', '.join(map(str, f.outputs))})"
        return "\n".join(
            [
                "module {",
                'memref.global "private" @igniter_check_calls : memref<i64> = dense<0>',
                *self.globals,
                f"func.func private @{f.name}{kinds}",
                *bodies,
                *self.printers.values(),
                f"func.func @{ENTRY}() {{",
                *self.lines,
                "return",
                "}",
                "}",
            ]
        )

    def _name(self) -> str:
        return f"%v{next(self._fresh)}"

    def _add(self, text: str) -> str:
        name = self._name()
        self.lines.append(f"{name} = {text}")
        return name

    def _case(self, arguments: Sequence[Argument]) -> None:
        # Calls are counted in each case from 0.
        zero = self._add("arith.constant 0 : i64")
        calls = self._add("memref.get_global @igniter_check_calls : memref<i64>")
        self.lines.append(f"memref.store {zero}, {calls}[] : memref<i64>")
        values = [self._argument(argument) for argument in arguments]
        f = self.function
        kinds = f"({', '.join(map(str, f.inputs))}) -> ({', '.join(map(str, f.outputs))})"
        call = f"func.call @{f.name}({', '.join(values)}) : {kinds}"
        results: list[str] = []
        if f.outputs:
            base = self._name()
            self.lines.append(f"{base}:{len(f.outputs)} = {call}" if len(f.outputs) > 1 else f"{base} = {call}")
            results = [f"{base}#{i}" for i in range(len(f.outputs))] if len(f.outputs) > 1 else [base]
        else:
            self.lines.append(call)
        self._print_number(ENDED)
        for value, type_ in zip(results, f.outputs, strict=True):
            self._print(value, type_)
        for value, type_ in zip(values, f.inputs, strict=True):
            if is_memref(type_):
                self._print(value, type_)

    def _argument(self, argument: Argument) -> str:
        type_ = argument.type_
        if is_vector(type_):
            return self._add(f"arith.constant dense<{_literal(argument.data, element_of(type_))}> : {type_}")
        if not is_array(argument.data):
            if is_integer(type_):
                return self._add(f"arith.constant {argument.data} : {type_}")
            return self._add(f"arith.constant 0x{to_bits(argument.data, type_):0{bits_of(type_) // 4}X} : {type_}")
        element = element_of(type_)
        fixed = "x".join([*map(str, argument.data.shape), str(element)])
        name = f"igniter_check_data{next(self._fresh)}"
        literal = f"dense<{_literal(argument.data, element)}>"
        self.globals.append(f'memref.global "private" constant @{name} : memref<{fixed}> = {literal}')
        source = self._add(f"memref.get_global @{name} : memref<{fixed}>")
        made = self._add(f"memref.alloc() : memref<{fixed}>")
        self.lines.append(f"memref.copy {source}, {made} : memref<{fixed}> to memref<{fixed}>")
        if is_memref(type_):
            parts: Any = type_
            if not isinstance(parts.layout, builtin.NoneAttr) or not isinstance(parts.memory_space, builtin.NoneAttr):
                raise Unsupported(f"an argument of the type {type_}")
            return self._cast("memref", made, f"memref<{fixed}>", str(type_))
        tensor = self._add(f"bufferization.to_tensor {made} restrict writable : memref<{fixed}>")
        return self._cast("tensor", tensor, f"tensor<{fixed}>", str(type_))

    def _cast(self, dialect: str, value: str, old: str, new: str) -> str:
        return value if old == new else self._add(f"{dialect}.cast {value} : {old} to {new}")

    # -- printing ------------------------------------------------------------------------------------------------------

    def _print_number(self, number: int) -> None:
        value = self._add(f"arith.constant {number} : i64")
        self.lines.append(f"vector.print {value} : i64")

    def _print(self, value: str, type_: Attribute) -> None:
        if is_vector(type_):
            shape = shape_of(type_)
            if math.prod(shape) > MOST_LANES:
                raise Unsupported(f"a result of the type {type_}")
            for point in itertools.product(*map(range, shape)):
                place = ", ".join(map(str, point))
                one = self._add(f"vector.extract {value}[{place}] : {element_of(type_)} from {type_}")
                self._print_scalar(one, element_of(type_))
        elif is_shaped(type_):
            kind = str(type_)
            if is_tensor(type_):
                dims = ["?" if n == DYNAMIC else str(n) for n in shape_of(type_)]
                kind = f"memref<{'x'.join([*dims, str(element_of(type_))])}>"
                value = self._add(f"bufferization.to_memref {value} : {kind}")
            self._print_memref(value, kind, shape_of(type_), element_of(type_))
        else:
            self._print_scalar(value, type_)

    def _print_memref(self, memref: str, kind: str, shape: Sequence[int], element: Attribute) -> None:
        """Calls the function that prints the sizes and elements of memrefs of this type."""
        name = f"igniter_check_print{list(self.printers).index(kind) if kind in self.printers else len(self.printers)}"
        if kind not in self.printers:
            outer, self.lines = self.lines, []
            self._each("%memref", kind, shape, element)
            self.printers[kind] = "\n".join(
                [f"func.func private @{name}(%memref: {kind}) {{", *self.lines, "return", "}"]
            )
            self.lines = outer
        self.lines.append(f"func.call @{name}({memref}) : ({kind}) -> ()")

    def _print_scalar(self, value: str, type_: Attribute) -> None:
        if isinstance(type_, builtin.IndexType):
            value = self._add(f"arith.index_cast {value} : index to i64")
        else:
            bits = bits_of(type_)
            if not is_integer(type_):
                value = self._add(f"arith.bitcast {value} : {type_} to i{bits}")
            if bits > 64:
                raise Unsupported(f"a result of the type {type_}")
            if bits < 64:
                value = self._add(f"arith.extui {value} : i{bits} to i64")
        self.lines.append(f"vector.print {value} : i64")

    def _each(self, memref: str, type_: str, shape: Sequence[int], element: Attribute) -> None:
        if is_vector(element):
            raise Unsupported("a memref of vectors")
        sizes: list[str] = []
        for axis in range(len(shape)):
            number = self._add(f"arith.constant {axis} : index")
            sizes.append(self._add(f"memref.dim {memref}, {number} : {type_}"))
            self._print_scalar(sizes[-1], builtin.IndexType())
        zero, one = self._add("arith.constant 0 : index"), self._add("arith.constant 1 : index")
        indices: list[str] = []
        for size in sizes:
            indices.append(self._name())
            self.lines.append(f"scf.for {indices[-1]} = {zero} to {size} step {one} {{")
        self._print_scalar(self._add(f"memref.load {memref}[{', '.join(indices)}] : {type_}"), element)
        self.lines += ["}"] * len(sizes)

    # -- external functions --------------------------------------------------------------------------------------------

    def _external(self, number: int, external: Declared) -> str:
        """Returns a function that does what the interpreter's external functions do (`machine.opaque_scalar`)."""
        self.lines = []
        names = [self._name() for _ in external.inputs]
        calls = self._add("memref.get_global @igniter_check_calls : memref<i64>")
        count = self._add(f"memref.load {calls}[] : memref<i64>")
        one = self._add("arith.constant 1 : i64")
        self.lines.append(f"memref.store {self._add(f'arith.addi {count}, {one} : i64')}, {calls}[] : memref<i64>")
        self._print_number(CALLED)
        self._print_number(number)
        for name, type_ in zip(names, external.inputs, strict=True):
            self._print(name, type_)
        for place, (name, type_) in enumerate(zip(names, external.inputs, strict=True)):
            if is_memref(type_):
                self._overwrite(name, type_, count, place)
        results: list[str] = []
        for place, type_ in enumerate(external.outputs):
            if is_shaped(type_):
                raise Unsupported(f"an external function that returns {type_}")
            results.append(self._opaque(count, place, None, type_))
        kinds = ", ".join(f"{n}: {t}" for n, t in zip(names, external.inputs, strict=True))
        outputs = ", ".join(map(str, external.outputs))
        end = f"return {', '.join(results)} : {outputs}" if results else "return"
        return "\n".join([f"func.func @{external.name}({kinds}) -> ({outputs}) {{", *self.lines, end, "}"])

    def _overwrite(self, name: str, type_: Attribute, count: str, place: int) -> None:
        rank = len(shape_of(type_))
        element = element_of(type_)
        zero, one = self._add("arith.constant 0 : index"), self._add("arith.constant 1 : index")
        sizes: list[str] = []
        for axis in range(rank):
            number = self._add(f"arith.constant {axis} : index")
            sizes.append(self._add(f"memref.dim {name}, {number} : {type_}"))
        indices: list[str] = []
        flat = zero
        for size in sizes:
            indices.append(self._name())
            self.lines.append(f"scf.for {indices[-1]} = {zero} to {size} step {one} {{")
            scaled = self._add(f"arith.muli {flat}, {size} : index")
            flat = self._add(f"arith.addi {scaled}, {indices[-1]} : index")
        value = self._opaque(count, place, flat, element)
        self.lines.append(f"memref.store {value}, {name}[{', '.join(indices)}] : {type_}")
        self.lines += ["}"] * rank

    def _opaque(self, count: str, place: int, flat: str | None, type_: Attribute) -> str:
        """Computes `(7 * call + 5 * place + 3 * index) mod 23` in a type."""
        seven, five = self._add("arith.constant 7 : i64"), self._add(f"arith.constant {5 * place} : i64")
        total = self._add(f"arith.addi {self._add(f'arith.muli {count}, {seven} : i64')}, {five} : i64")
        if flat is not None:
            three = self._add("arith.constant 3 : i64")
            index = self._add(f"arith.index_cast {flat} : index to i64")
            total = self._add(f"arith.addi {total}, {self._add(f'arith.muli {index}, {three} : i64')} : i64")
        limit = self._add("arith.constant 23 : i64")
        value = self._add(f"arith.remui {total}, {limit} : i64")
        if isinstance(type_, builtin.IndexType):
            return self._add(f"arith.index_cast {value} : i64 to index")
        if not is_integer(type_):
            return self._add(f"arith.uitofp {value} : i64 to {type_}")
        bits = bits_of(type_)
        if bits == 64:
            return value
        return self._add(f"arith.{'trunci' if bits < 64 else 'extui'} {value} : i64 to i{bits}")


def _literal(data: Array, element: Attribute) -> str:
    """Returns the elements of a dense literal."""
    if data.size == 0:
        return ""

    def scalar(value: Any) -> str:
        if is_integer(element):
            return ("true" if value else "false") if bits_of(element) == 1 else str(value)
        return f"0x{to_bits(value, element):0{bits_of(element) // 4}X}"

    def nested(part: Array) -> str:
        if part.ndim == 0:
            return scalar(part[()])
        return f"[{', '.join(nested(row) if is_array(row) else scalar(row) for row in part)}]"

    return nested(data)


@dataclass
class Printed:
    """The integers that a driver printed, read back as runs."""

    numbers: list[int]
    function: Function
    externals: Sequence[Declared]
    at: int = 0

    def run(self) -> Run:
        """Returns the next case."""
        events: list[External] = []
        while self._next() == CALLED:
            external = self.externals[self._next()]
            events.append(External(external.name, tuple(self._value(t) for t in external.inputs)))
        results = tuple(self._value(t) for t in self.function.outputs)
        memrefs = {i: self._value(t) for i, t in enumerate(self.function.inputs) if is_memref(t)}
        return Run(results, memrefs, tuple(events), 0)

    def _next(self) -> int:
        if self.at == len(self.numbers):
            raise Unsupported("the output of the runner ends too early")
        self.at += 1
        return self.numbers[self.at - 1]

    def _value(self, type_: Attribute) -> Any:
        if is_vector(type_):
            return self._elements(shape_of(type_), element_of(type_))
        if is_tensor(type_) or is_memref(type_):
            return self._elements([self._next() for _ in shape_of(type_)], element_of(type_))
        return self._scalar(type_)

    def _elements(self, shape: Sequence[int], element: Attribute) -> Array:
        return array_of([self._scalar(element) for _ in range(math.prod(shape))], shape)

    def _scalar(self, type_: Attribute) -> Any:
        bits = self._next()
        return wrapped(bits, bits_of(type_)) if is_integer(type_) else from_bits(bits, type_)
