"""Text of MLIR: lines with fresh names, types, numbers, and the reason of a refusal."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, FloatAttr, IntegerType
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import as_integer, is_float, scalar_type
from igniter.dialects.loop.bodies import as_number
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.errors import IgniterError

BARE_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


class MlirRefusal(IgniterError):
    """Raised for a kernel that has no form in MLIR's dialects; the message names the op and the kernel."""

    code = "IGN0305"


class Writer:
    """The lines of one function. Constants of `index` are defined once, at its head."""

    def __init__(self, kernel: str):
        self.kernel = kernel
        self._head: list[str] = []
        self._lines: list[str] = []
        self._indent = 2
        self._counts: dict[str, int] = {}
        self._used: set[str] = set()
        self._constants: dict[int, str] = {}

    @property
    def lines(self) -> list[str]:
        return [*self._head, *self._lines]

    def fresh(self, hint: str) -> str:
        """Returns an unused name of a value."""
        base = re.sub(r"[^A-Za-z0-9_]+", "_", hint) or "v"
        base = f"v{base}" if base[0].isdigit() else base
        name = base
        while name in self._used:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{self._counts[base]}"
        self._used.add(name)
        return f"%{name}"

    def line(self, text: str) -> None:
        self._lines.append("  " * self._indent + text)

    def let(self, hint: str, text: str) -> str:
        """Writes an op with one result; returns its name."""
        name = self.fresh(hint)
        self.line(f"{name} = {text}")
        return name

    def index(self, value: int) -> str:
        """Returns a constant of type `index`."""
        found = self._constants.get(value)
        if found is None:
            hint = f"c{value}" if value >= 0 else f"cm{-value}"
            found = self._constants[value] = self.let_first(hint, f"arith.constant {value} : index")
        return found

    def let_first(self, hint: str, text: str) -> str:
        """Writes an op without operands at the head of the function; returns its name."""
        name = self.fresh(hint)
        self._head.append(f"    {name} = {text}")
        return name

    @contextmanager
    def deeper(self) -> Generator[None]:
        """Writes lines one level deeper."""
        self._indent += 1
        yield
        self._indent -= 1

    def refuse(self, what: str, reason: str) -> MlirRefusal:
        """Returns the error for a part of the kernel that cannot be written."""
        return MlirRefusal(f"kernel @{self.kernel}: {what} has no form in MLIR: {reason}")


def symbol_name(name: str) -> str:
    """Returns a reference to a symbol of a module."""
    return f"@{name}" if BARE_SYMBOL.fullmatch(name) else f"@{string(name)}"


def string(text: str) -> str:
    """Returns a string literal."""
    escaped = "".join(c if c.isprintable() and ord(c) < 128 and c not in '"\\' else _escape(c) for c in text)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def type_text(scalar: Attribute) -> str:
    """Returns the type of a scalar; integers have no sign in MLIR."""
    return str(scalar_type(scalar))


def element_text(shaped: Attribute) -> str:
    """Returns the element type of a tensor or memref."""
    return type_text(element_of(shaped))


def shape_text(shaped: Attribute) -> str:
    """Returns the dims and the element type of a tensor or memref: `?x4xf32`."""
    dims = ("?" if d.constant is None else str(d.constant) for d in dims_of(shaped))
    return "x".join((*dims, element_text(shaped)))


def tensor_text(shaped: Attribute) -> str:
    """Returns the type of a tensor with its dims; symbolic ones are dynamic."""
    return f"tensor<{shape_text(shaped)}>"


def memref_text(shaped: Attribute) -> str:
    """Returns the type of a dense memref with its dims; symbolic ones are dynamic."""
    return f"memref<{shape_text(shaped)}>"


def number_text(value: Attribute) -> str:
    """Returns a numeric attribute with its type: `1.5 : f32`, `-3 : i8`, `true`."""
    number = as_number(value)
    if number is None:
        raise IgniterError(f"{value} is not a number")
    if isinstance(number, FloatAttr):
        return f"{_float(number.value.data, number.type)} : {type_text(number.type)}"
    return _integer(number.value.data, number.type)


def _float(number: float, kind: Attribute) -> str:
    if np.isfinite(number):
        text = repr(float(number))
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
        return f"{mantissa}e{exponent}" if exponent else mantissa
    dtype = element_type(kind).dtype
    if isinstance(kind, BFloat16Type):
        bits = int(np.asarray(number, np.float32).view(np.uint32)) >> 16
        return f"0x{bits:04X}"
    bits = int(np.asarray(number, dtype).view(f"u{dtype.itemsize}"))
    return f"0x{bits:0{2 * dtype.itemsize}X}"


def _integer(number: int, kind: Attribute) -> str:
    if kind == IntegerType(1):
        return "true" if number else "false"
    integer = as_integer(kind)
    if integer is None:
        return f"{number} : {kind}"
    width = integer.width.data
    wrapped = (number + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    return f"{wrapped} : i{width}"


def zero_text(scalar: Attribute) -> str:
    """Returns the zero of a scalar type, with its type."""
    if type_text(scalar) == "i1":
        return "false"
    return f"{'0.0' if is_float(scalar) else '0'} : {type_text(scalar)}"


def results_text(names: Sequence[str]) -> str:
    """Returns types as the results of an op: one, or several in parentheses."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def parts(name: str, count: int) -> list[str]:
    """Returns the names of the results of an op with `count` results, defined by `heading`."""
    return [name] if count == 1 else [f"{name}#{k}" for k in range(count)]


def heading(name: str, count: int) -> str:
    """Returns the left side of an op with `count` results."""
    return name if count == 1 else f"{name}:{count}"
