"""Micro-kernels as data: a structured kernel defines the meaning of each, and all other facts derive from it.

    loop.kernel @u8i8 symbols [rows, panels, groups] (%a: tensor<?x?x4xui8, #sym.dims<rows, groups, 4>>,
        %b: tensor<?x?x16x4xi8, #sym.dims<panels, groups, 16, 4>>) -> (tensor<?x?x16xi32, ..>) {
      %c = loop.nest "u8i8" [r: parallel rows, p: parallel panels, l: parallel 16, k: reduction 4*groups] -> .. {
        %x = loop.read %a[r, k floordiv 4, k mod 4] : i8
        %y = loop.read %b[p, k floordiv 4, l, k mod 4] : i8
        %u = arith.extui %x : i8 to i32
        %v = arith.extsi %y : i8 to i32
        %w = arith.muli %u, %v : i32
        loop.yield add %w at [r, p, l]
      }
      loop.return %c : ..
    }

A meaning is one nest with two tensors and one result. Its axes are a row, a panel, a lane of a panel, and the depth,
the only reduction. The first tensor is indexed by the row and the depth, the second by the panel, the depth and the
lane. Constant dims are dense, in the order written; the strides of the others are arguments of the code. A constant
last dim is the *group*: the number of adjacent steps of depth. A panel has 64 bytes of sums on every target; packing is
therefore independent of the target. The body is any arithmetic on the two reads, folded over the depth with any
combiner: `igniter.analysis.structured.matching` proves equality of meanings.

Micro-kernels of other packages are entry points of the group `igniter.micro_kernels`
(`igniter.backends.cpu.micro_kernels`: a meaning with its code). A schedule selects these, and the ones in `BY_NAME`, by
name: `product(i, j, k) tile [6, 1] by "acme.distance"`.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from igniter import registry
from igniter.context import IgniterContext
from igniter.dialects.loop.attrs import Combiner, as_integer, element_bytes, is_unsigned, scalar_type
from igniter.dialects.loop.bodies import ReadOp
from igniter.dialects.loop.structured import KernelOp, NestOp
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, floordiv, mod
from igniter.errors import IgniterError

PANEL_BYTES = 64
"""The bytes of sums of one row in a panel."""

NAME = re.compile(r"[A-Za-z][\w.-]*")

_FLOATS = {Float16Type: "f16", BFloat16Type: "bf16", Float32Type: "f32", Float64Type: "f64"}


@dataclass(frozen=True)
class Facts:
    """The facts derived from the nest of a meaning."""

    kernel: KernelOp
    nest: NestOp
    a: ReadOp
    b: ReadOp
    elements: tuple[Attribute, Attribute, Attribute]
    """The element types of both operands and of the sums."""
    lanes: int
    """The number of columns of a panel."""
    group: int
    """The number of adjacent steps of depth."""
    combiner: Combiner


@dataclass(frozen=True)
class MicroKernel:
    """A micro-kernel: its name and its meaning, as text."""

    name: str
    text: str

    @cached_property
    def facts(self) -> Facts:
        """The facts derived from the meaning; raises `IgniterError` if the text is not a valid meaning."""
        return _facts(self)

    @property
    def group(self) -> int:
        """The number of adjacent steps of depth."""
        return self.facts.group

    @property
    def lanes(self) -> int:
        """The number of columns of a panel."""
        return self.facts.lanes

    @cached_property
    def operations(self) -> int:
        """The arithmetic operations of one step of depth for one sum; a multiply-add counts as one."""
        body = [op for op in self.facts.nest.block.ops if op.name.startswith(("arith.", "math."))]
        work = [op for op in body if not op.name.startswith(("arith.ext", "arith.constant"))]
        fused = self.facts.combiner == "add" and any(op.name in ("arith.mulf", "arith.muli") for op in work)
        return len(work) + (0 if fused else 1)

    @property
    def element_names(self) -> tuple[str, str, str]:
        """The types of both operands and of the sums, as spelled by `element_name`."""
        a, b, c = (element_name(e) for e in self.facts.elements)
        return a, b, c

    def takes(self, a: Attribute, b: Attribute, c: Attribute) -> bool:
        """True if it folds elements of `a` and `b` into `c`. The signedness of sums is irrelevant; the signedness of a
        maximum or minimum is not."""
        found, wanted = [element_name(e) for e in (a, b, c)], self.element_names
        ordered = self.facts.combiner in ("max", "min")
        same = found[2] == wanted[2] or (not ordered and scalar_type(c) == scalar_type(self.facts.elements[2]))
        return found[:2] == list(wanted[:2]) and same

    @property
    def identity(self) -> str:
        """A digest of the micro-kernel: its name, its meaning and, for other packages, the source of the module with
        its class or code."""
        return hashlib.sha256("\n".join([self.name, self.text, *self.sources()]).encode()).hexdigest()[:16]

    def sources(self) -> list[str]:
        """Returns the sources of the micro-kernel, beyond Igniter's own."""
        return []


def source_of(thing: object) -> str:
    """Returns the source of the module of a function or a class; without a source, its name."""
    module = sys.modules.get(getattr(thing, "__module__", ""))
    try:
        return inspect.getsource(module) if module is not None else repr(thing)
    except (OSError, TypeError):
        return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', thing)}"


def element_name(element: Attribute) -> str:
    """Returns the name of a type in micro-kernels: a signless integer counts as signed."""
    integer = as_integer(element)
    if integer is not None:
        return f"{'u' if is_unsigned(element) else 'i'}{integer.width.data}"
    return next((name for kind, name in _FLOATS.items() if isinstance(element, kind)), str(element))


# -- lookup -----------------------------------------------------------------------------------------------------------


def known_micro_kernels() -> list[str]:
    """Returns the names of all micro-kernels, including installed packages."""
    return sorted({*BUILT_IN, *registry.external("micro_kernels")})


def micro_kernel(name: str) -> MicroKernel:
    """Returns the micro-kernel called `name`; raises `UnknownName` with the known ones."""
    return BUILT_IN[name] if name in BUILT_IN else _external(name)


@cache
def _external(name: str) -> MicroKernel:
    if name not in registry.external("micro_kernels"):
        raise registry.UnknownName("micro-kernel", name, dict.fromkeys(known_micro_kernels()), listed=True)
    found: object = registry.load_micro_kernel(name)
    if not isinstance(found, MicroKernel):
        raise IgniterError(f"the micro-kernel '{name}' is a {type(found).__name__}, not a MicroKernel")
    if found.name != name or NAME.fullmatch(name) is None:
        raise IgniterError(
            f"the micro-kernel '{found.name}' is installed as '{name}': its name is that of its entry point, letters, "
            "digits, dots, dashes and underscores"
        )
    _ = found.facts
    return found


def outside_identity() -> str:
    """Returns the part of compiled-code cache keys for micro-kernels of other packages; empty without such packages. If
    one fails to load, it holds the reason; only a schedule that names it is an error."""
    names = sorted(registry.external("micro_kernels"))
    return " ".join(micro_kernel_reason(name) or micro_kernel(name).identity for name in names)


def micro_kernel_reason(name: str) -> str | None:
    """Returns the reason why no micro-kernel of this name is available; None if one is."""
    try:
        micro_kernel(name)
    except IgniterError as error:
        return error.message
    return None


@cache
def chosen_kernels() -> Mapping[tuple[str, str, str], str]:
    """Returns the default micro-kernels of products, by the names of the element types."""
    return {kernel.element_names: kernel.name for kernel in BUILT_IN.values() if kernel.name not in BY_NAME}


# -- facts of a meaning -----------------------------------------------------------------------------------------------


def _facts(kernel: MicroKernel) -> Facts:
    op = _parse(kernel)

    def refuse(reason: str) -> IgniterError:
        return IgniterError(f"the meaning of micro-kernel '{kernel.name}' is invalid: {reason}")

    nests, clauses = op.nests, [c for nest in op.nests for c in nest.yield_op.clauses]
    if len(nests) != 1 or len(list(op.block.ops)) != 2 or len(clauses) != 1 or len(op.block.args) != 2:
        raise refuse("it must be one nest of two tensors with one result")
    nest, clause = nests[0], clauses[0]
    depths = [x for x in nest.axes if x.kind == "reduction"]
    if len(depths) != 1 or len(nest.axes) != 4:
        raise refuse("its axes must be a row, a panel, a lane and one reduction, the depth")
    reads = {read.source: read for read in nest.reads}
    if len(nest.reads) != 2 or len(reads) != 2 or any(r.guards or r.indices for r in nest.reads):
        raise refuse("it must read each tensor once, without guards or indirect subscripts")
    a, b = (reads[v] for v in op.block.args)
    row, panel, lane = (s.symbol or "" for s in clause.subscripts) if len(clause.subscripts) == 3 else ("",) * 3
    if "" in (row, panel, lane) or {row, panel, lane, depths[0].name} != {x.name for x in nest.axes}:
        raise refuse("its result must be written at [row, panel, lane]")
    dims = [dims_of(v.type) for v in (*op.block.args, nest.outputs[0])]
    last = dims[0][-1].constant
    group = 1 if last is None else last
    k = Expr.of(depths[0].name)
    steps, inner = ([k], []) if last is None else ([floordiv(k, Expr.of(group))], [mod(k, Expr.of(group))])
    for what, read, wanted in (
        ("first", a, [Expr.of(row), *steps, *inner]),
        ("second", b, [Expr.of(panel), *steps, Expr.of(lane), *inner]),
    ):
        if list(read.subscripts) != wanted:
            raise refuse(f"the {what} tensor must be read at [{', '.join(map(str, wanted))}]")
    lanes = nest.axis(lane).extent.constant
    elements = element_of(a.source.type), element_of(b.source.type), element_of(nest.outputs[0].type)
    if lanes is None or lanes * element_bytes(elements[2]) != PANEL_BYTES:
        raise refuse(
            f"the sums of a panel must fill {PANEL_BYTES} bytes, so its constant number of lanes must be "
            f"{PANEL_BYTES // element_bytes(elements[2])}"
        )
    dense = [d.constant for d in (dims[1][2], dims[2][2], *dims[0][2:], *dims[1][3:])]
    if dense != [lanes, lanes, *([group] * (2 * len(inner)))]:
        raise refuse("its lanes and groups must be whole dims of constant size")
    if group > 1 and group * element_bytes(elements[0]) != element_bytes(elements[2]):
        raise refuse("a group of depth steps must have as many bytes as a sum")
    return Facts(op, nest, a, b, elements, lanes, group, clause.combiner)


def _parse(kernel: MicroKernel) -> KernelOp:
    try:
        op = Parser(IgniterContext(), kernel.text, f"the meaning of micro-kernel '{kernel.name}'").parse_op()
        op.verify()
    except (ParseError, VerifyException) as error:
        raise IgniterError(f"the meaning of micro-kernel '{kernel.name}' is not a valid kernel: {error}") from error
    if not isinstance(op, KernelOp):
        raise IgniterError(f"the meaning of micro-kernel '{kernel.name}' must be a loop.kernel, not '{op.name}'")
    return op


# -- built-in micro-kernels -------------------------------------------------------------------------------------------


def meaning(name: str, a: str, b: str, c: str, body: str, lanes: int, group: int = 1, combiner: str = "add") -> str:
    """Returns the text of a meaning for elements `a`, `b` and sums `c`; `body` computes `%v` from the reads `%x` and
    `%y`."""
    at, inside, sizes = ("k", "", "") if group == 1 else (f"k floordiv {group}", f", k mod {group}", f", {group}")
    dense = f"x{group}x" if group > 1 else "x"
    depth = "groups" if group == 1 else f"{group}*groups"
    result = f"tensor<?x?x{lanes}x{c}, #sym.dims<rows, panels, {lanes}>>"
    axes = f"r: parallel rows, p: parallel panels, l: parallel {lanes}, k: reduction {depth}"
    x, y = a.replace("ui", "i"), b.replace("ui", "i")
    return f"""
loop.kernel @meaning symbols [rows, panels, groups] (%a: tensor<?x?{dense}{a}, #sym.dims<rows, groups{sizes}>>,
    %b: tensor<?x?x{lanes}{dense}{b}, #sym.dims<panels, groups, {lanes}{sizes}>>) -> ({result}) {{
  %c = loop.nest "{name}" [{axes}] -> {result} {{
    %x = loop.read %a[r, {at}{inside}] : {x}
    %y = loop.read %b[p, {at}, l{inside}] : {y}
    {body}
    loop.yield {combiner} %v at [r, p, l]
  }}
  loop.return %c : {result}
}}"""


def _product(a: str, b: str, c: str) -> str:
    """Returns the body of a product of elements, widened to `c`."""
    lines: list[str] = []
    for value, wide, element in (("%x", "%u", a), ("%y", "%w", b)):
        ext = "arith.extf" if "f" in element else "arith.extui" if element.startswith("u") else "arith.extsi"
        if element != c:
            lines.append(f"{wide} = {ext} {value} : {element.replace('ui', 'i')} to {c}")
    left, right = ("%x" if a == c else "%u"), ("%y" if b == c else "%w")
    lines.append(f"%v = arith.{'mulf' if 'f' in c else 'muli'} {left}, {right} : {c}")
    return "\n    ".join(lines)


def _of_products(name: str, a: str, b: str, c: str, group: int = 1) -> MicroKernel:
    lanes = 8 if c == "f64" else 16
    return MicroKernel(name, meaning(name, a, b, c, _product(a, b, c), lanes, group))


BUILT_IN: Mapping[str, MicroKernel] = {
    kernel.name: kernel
    for kernel in (
        _of_products("f32", "f32", "f32", "f32"),
        _of_products("f64", "f64", "f64", "f64"),
        _of_products("f32f16", "f32", "f16", "f32"),
        _of_products("f32bf16", "f32", "bf16", "f32"),
        _of_products("f16", "f16", "f16", "f32"),
        _of_products("bf16", "bf16", "bf16", "f32", 2),
        _of_products("u8i8", "ui8", "i8", "i32", 4),
        _of_products("i8i8", "i8", "i8", "i32", 4),
        _of_products("i16", "i16", "i16", "i32", 2),
    )
}
"""The built-in micro-kernels."""

BY_NAME = frozenset(("f16",))
"""The micro-kernels used only by name, in schedules. Otherwise an `a` of f16 is converted to f32
once, for all columns."""
