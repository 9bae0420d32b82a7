"""Variants: one kernel with several schedules; the sizes of a call choose one of them.

    loop.kernel @k symbols [n] (%x : ..) -> (..) {
      ...
    } variants {
      loop.kernel @one_row symbols [n] (%x : ..) -> (..) typical [n = 1] when n <= 1 {
        ...
      }
    }

A variant is a whole kernel with the same inputs, results and meaning for all sizes. Its schedule is better if `when`
holds; no pass may rely on `when` for correctness. The first variant whose condition holds runs, or else the kernel's
own body. `lower-to-loops` lowers each variant to a `loop.if`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.sym import DimsAttr, parse_expr_here
from igniter.dialects.sym.expr import Expr, symbols_of

if TYPE_CHECKING:
    from igniter.dialects.loop.structured import KernelOp

MOST_VARIANTS = 3
"""The maximum number of variants beside the kernel's own body. Each costs compile time, library
size and cache space."""


def parse_when(parser: Parser) -> DimsAttr | None:
    """Parses `(when expr <= expr)?`."""
    if parser.parse_optional_keyword("when") is None:
        return None
    left = parse_expr_here(parser)
    parser.parse_punctuation("<")
    parser.parse_punctuation("=")
    return DimsAttr([left, parse_expr_here(parser)])


def print_when(attr: DimsAttr | None, printer: Printer) -> None:
    """Prints the inverse of `parse_when`."""
    if attr is not None:
        printer.print_string(f" when {condition_text(attr)}")


def condition_text(when: DimsAttr) -> str:
    """Returns the text of a condition."""
    left, right = when.data
    return f"{left} <= {right}"


def guard_of(when: DimsAttr) -> Expr:
    """Returns an expression equivalent to the condition: it holds if and only if the expression is >= 0."""
    left, right = when.data
    return right - left


def guards_of(kernel: KernelOp) -> list[tuple[KernelOp, tuple[Expr, ...]]]:
    """Returns the versions of a kernel in the order of their tests, the kernel itself last, each with its guards (>=
    0): its own condition, and the negated conditions before it."""
    found: list[tuple[KernelOp, tuple[Expr, ...]]] = []
    before: tuple[Expr, ...] = ()
    for variant in kernel.variants:
        assert variant.when is not None
        guard = guard_of(variant.when)
        found.append((variant, (*before, guard)))
        before = (*before, -guard - 1)
    return [*found, (kernel, before)]


def has_variant(kernel: KernelOp, what: Expr) -> bool:
    """True if a kernel has a variant for small sizes of the symbols of an expression."""
    return any(v.when is not None and v.when.data[0].symbols & what.symbols for v in kernel.variants)


def verify_variants(kernel: KernelOp) -> None:
    """Checks the consistency of a kernel and its variants; raises `VerifyException` otherwise."""
    from igniter.dialects.loop.structured import KernelOp

    parent = kernel.parent_op()
    if not isinstance(parent, KernelOp):
        if kernel.when is not None:
            raise VerifyException("only a variant of a kernel has a condition ('when')")
    elif kernel.when is None or len(kernel.when) != 2:
        raise VerifyException(f"variant @{kernel.sym_name.data} needs a condition, as in 'when n <= 8'")
    elif kernel.variants:
        raise VerifyException(f"variant @{kernel.sym_name.data} cannot have variants of its own")
    elif free := sorted(symbols_of(kernel.when.data) - set(kernel.symbol_names)):
        raise VerifyException(
            f"the condition of variant @{kernel.sym_name.data} names '{free[0]}', which is not one of its symbols"
        )
    variants = kernel.variants
    if len(variants) > MOST_VARIANTS:
        raise VerifyException(f"{len(variants)} variants: a kernel has at most {MOST_VARIANTS} besides itself")
    names = [v.sym_name.data for v in variants]
    for variant in variants:
        name = variant.sym_name.data
        if names.count(name) > 1:
            raise VerifyException(f"two variants are named @{name}")
        for what, own, other in (
            ("symbols", kernel.symbols, variant.symbols),
            ("inputs", [a.type for a in kernel.block.args], [a.type for a in variant.block.args]),
            ("results", kernel.declared_types, variant.declared_types),
            ("requirements", kernel.requires_attr, variant.requires_attr),
            ("checks", kernel.checks_attr, variant.checks_attr),
        ):
            if own != other:
                raise VerifyException(f"variant @{name} and its kernel have different {what}")
