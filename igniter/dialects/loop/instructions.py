"""Micro-kernels as data: what each one means is a structured kernel, and all else is read off that.

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

A meaning is one nest of two tensors and one result. Its axes are a row, a panel, a lane of a panel and the depth, which
is the one reduction. The first tensor is read along the rows and the depth, the second along the panels, the depth and
the lanes. Dims that are constants are dense and lie as written; the steps along the others are arguments of the code. A
constant at the end is the *group*: so many steps of depth lie side by side. A panel has 64 bytes of sums, whatever the
target, so that what is packed does not depend on it. The body is any arithmetic on the two reads, and any combiner
folds it over the depth: `igniter.analysis.structured.matching` proves that a nest means the same.

Micro-kernels of other packages are entry points of the group `igniter.micro_kernels`
(`igniter.backends.cpu.micro_kernels`: a meaning with its code). They, and those of `BY_NAME`, compute what a schedule
names them for: `product(i, j, k) tile [6, 1] by "acme.distance"`.
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

from igniter import registry
from igniter.dialects.loop.attrs import Combiner, as_integer, element_bytes, is_unsigned, scalar_type
from igniter.dialects.loop.bodies import ReadOp
from igniter.dialects.loop.structured import KernelOp, NestOp
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, floordiv, mod
from igniter.errors import IgniterError

PANEL_BYTES = 64
"""The sums of one row in a panel."""

NAME = re.compile(r"[A-Za-z][\w.-]*")

_FLOATS = {Float16Type: "f16", BFloat16Type: "bf16", Float32Type: "f32", Float64Type: "f64"}


@dataclass(frozen=True)
class Facts:
    """What a meaning says, read off its nest."""

    kernel: KernelOp
    nest: NestOp
    a: ReadOp
    b: ReadOp
    elements: tuple[Attribute, Attribute, Attribute]
    """The types of the elements of both operands, and of the sums."""
    lanes: int
    """The columns of a panel."""
    group: int
    """The steps of depth that lie side by side."""
    combiner: Combiner


@dataclass(frozen=True)
class MicroKernel:
    """A micro-kernel: its name and, as text, its meaning."""

    name: str
    text: str

    @cached_property
    def facts(self) -> Facts:
        """What the meaning says; `IgniterError` where it is none."""
        return _facts(self)

    @property
    def group(self) -> int:
        """The steps of depth that lie side by side."""
        return self.facts.group

    @property
    def lanes(self) -> int:
        """The columns of a panel."""
        return self.facts.lanes

    @cached_property
    def operations(self) -> int:
        """The arithmetic of one step of depth for one sum: a product that is added to it is one operation."""
        body = [op for op in self.facts.nest.block.ops if op.name.startswith(("arith.", "math."))]
        work = [op for op in body if not op.name.startswith(("arith.ext", "arith.constant"))]
        fused = self.facts.combiner == "add" and any(op.name in ("arith.mulf", "arith.muli") for op in work)
        return len(work) + (0 if fused else 1)

    @property
    def element_names(self) -> tuple[str, str, str]:
        """The types of both operands and of the sums, as `element_name` spells them."""
        a, b, c = (element_name(e) for e in self.facts.elements)
        return a, b, c

    def takes(self, a: Attribute, b: Attribute, c: Attribute) -> bool:
        """Whether it folds elements of `a` and `b` in `c`. The sign of integers that are summed is no matter; that of
        integers that are compared is."""
        found, wanted = [element_name(e) for e in (a, b, c)], self.element_names
        ordered = self.facts.combiner in ("max", "min")
        same = found[2] == wanted[2] or (not ordered and scalar_type(c) == scalar_type(self.facts.elements[2]))
        return found[:2] == list(wanted[:2]) and same

    @property
    def identity(self) -> str:
        """A digest of all that decides what the micro-kernel is: its meaning, and the module that defines its class or
        its code, for those of other packages."""
        return hashlib.sha256("\n".join([self.name, self.text, *self.sources()]).encode()).hexdigest()[:16]

    def sources(self) -> list[str]:
        """The code that makes the micro-kernel, beyond Igniter's own."""
        return []


def source_of(thing: object) -> str:
    """The source of the module that defines a function or a class; where it has none, what names it."""
    module = sys.modules.get(getattr(thing, "__module__", ""))
    try:
        return inspect.getsource(module) if module is not None else repr(thing)
    except (OSError, TypeError):
        return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', thing)}"


def element_name(element: Attribute) -> str:
    """A type as micro-kernels tell them apart: an integer without a sign of its own is signed."""
    integer = as_integer(element)
    if integer is not None:
        return f"{'u' if is_unsigned(element) else 'i'}{integer.width.data}"
    return next((name for kind, name in _FLOATS.items() if isinstance(element, kind)), str(element))


# -- which there are --------------------------------------------------------------------------------------------------


def known_micro_kernels() -> list[str]:
    """The names of all micro-kernels, those of installed packages too."""
    return sorted({*BUILT_IN, *registry.external("micro_kernels")})


def micro_kernel(name: str) -> MicroKernel:
    """The micro-kernel called `name`; `UnknownName` lists those that there are."""
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
    """What stands for the micro-kernels of other packages in the keys of compiled code; empty where there are none. One
    that does not load stands there with the reason: it is an error where a schedule names it, and nowhere else."""
    names = sorted(registry.external("micro_kernels"))
    return " ".join(micro_kernel_reason(name) or micro_kernel(name).identity for name in names)


def micro_kernel_reason(name: str) -> str | None:
    """Why there is no micro-kernel of that name."""
    try:
        micro_kernel(name)
    except IgniterError as error:
        return error.message
    return None


@cache
def chosen_kernels() -> Mapping[tuple[str, str, str], str]:
    """The micro-kernel that products of elements become where nothing else is said, by the types' names."""
    return {kernel.element_names: kernel.name for kernel in BUILT_IN.values() if kernel.name not in BY_NAME}


# -- what a meaning says ----------------------------------------------------------------------------------------------


def _facts(kernel: MicroKernel) -> Facts:
    op = _parse(kernel)

    def refuse(reason: str) -> IgniterError:
        return IgniterError(f"the meaning of micro-kernel '{kernel.name}' is none: {reason}")

    nests, clauses = op.nests, [c for nest in op.nests for c in nest.yield_op.clauses]
    if len(nests) != 1 or len(list(op.block.ops)) != 2 or len(clauses) != 1 or len(op.block.args) != 2:
        raise refuse("it is one nest of two tensors, with one result")
    nest, clause = nests[0], clauses[0]
    depths = [x for x in nest.axes if x.kind == "reduction"]
    if len(depths) != 1 or len(nest.axes) != 4:
        raise refuse("its axes are a row, a panel, a lane and one reduction, the depth")
    reads = {read.source: read for read in nest.reads}
    if len(nest.reads) != 2 or len(reads) != 2 or any(r.guards or r.indices for r in nest.reads):
        raise refuse("it reads each tensor once, without guards and indices")
    a, b = (reads[v] for v in op.block.args)
    row, panel, lane = (s.symbol or "" for s in clause.subscripts) if len(clause.subscripts) == 3 else ("",) * 3
    if "" in (row, panel, lane) or {row, panel, lane, depths[0].name} != {x.name for x in nest.axes}:
        raise refuse("its result is written at [row, panel, lane]")
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
            raise refuse(f"the {what} tensor is read at [{', '.join(map(str, wanted))}]")
    lanes = nest.axis(lane).extent.constant
    elements = element_of(a.source.type), element_of(b.source.type), element_of(nest.outputs[0].type)
    if lanes is None or lanes * element_bytes(elements[2]) != PANEL_BYTES:
        raise refuse(f"a panel has {PANEL_BYTES} bytes of sums, which are {PANEL_BYTES // element_bytes(elements[2])}")
    dense = [d.constant for d in (dims[1][2], dims[2][2], *dims[0][2:], *dims[1][3:])]
    if dense != [lanes, lanes, *([group] * (2 * len(inner)))]:
        raise refuse("its lanes and groups are whole dims of constants")
    if group > 1 and group * element_bytes(elements[0]) != element_bytes(elements[2]):
        raise refuse("a group of steps of depth has as many bytes as a sum")
    return Facts(op, nest, a, b, elements, lanes, group, clause.combiner)


def _parse(kernel: MicroKernel) -> KernelOp:
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    from igniter.context import IgniterContext

    try:
        op = Parser(IgniterContext(), kernel.text, f"the meaning of micro-kernel '{kernel.name}'").parse_op()
        op.verify()
    except (ParseError, VerifyException) as error:
        raise IgniterError(f"the meaning of micro-kernel '{kernel.name}' is no kernel: {error}") from error
    if not isinstance(op, KernelOp):
        raise IgniterError(f"the meaning of micro-kernel '{kernel.name}' is no loop.kernel but '{op.name}'")
    return op


# -- those of Igniter -------------------------------------------------------------------------------------------------


def meaning(name: str, a: str, b: str, c: str, body: str, lanes: int, group: int = 1, combiner: str = "add") -> str:
    """The text of a meaning of elements `a`, `b` and sums `c`; `body` computes `%v` of the two reads, `%x` and `%y`."""
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
    """The body of a product of elements, widened to `c`."""
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
"""The micro-kernels of Igniter."""

BY_NAME = frozenset(("f16",))
"""Those that are there for schedules that name them. An `a` of f16 is else made f32 once, for all columns."""
