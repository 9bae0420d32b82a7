"""Variants: the same kernel scheduled in several ways, of which the sizes of a call choose one.

    loop.kernel @k symbols [n] (%x : ..) -> (..) {
      ...
    } variants {
      loop.kernel @one_row symbols [n] (%x : ..) -> (..) typical [n = 1] when n <= 1 {
        ...
      }
    }

A variant is a whole kernel of the same inputs and results, and means the same for all sizes: `when` says where it is
the better one, and is no promise that a pass may rely on. The first variant runs whose condition holds, the kernel's
own body where none does. `lower-to-loops` makes a `loop.if` of each.
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

MOST_VARIANTS = 2
"""Beside the kernel's own body: each is code that is compiled, kept in a library and in the caches of a CPU."""


def parse_when(parser: Parser) -> DimsAttr | None:
    """`(when expr <= expr)?`"""
    if parser.parse_optional_keyword("when") is None:
        return None
    left = parse_expr_here(parser)
    parser.parse_punctuation("<")
    parser.parse_punctuation("=")
    return DimsAttr([left, parse_expr_here(parser)])


def print_when(attr: DimsAttr | None, printer: Printer) -> None:
    """The other direction of `parse_when`."""
    if attr is not None:
        printer.print_string(f" when {condition_text(attr)}")


def condition_text(when: DimsAttr) -> str:
    """A condition in words."""
    left, right = when.data
    return f"{left} <= {right}"


def guard_of(when: DimsAttr) -> Expr:
    """What is >= 0 where the condition holds."""
    left, right = when.data
    return right - left


def guards_of(kernel: KernelOp) -> list[tuple[KernelOp, tuple[Expr, ...]]]:
    """The versions of a kernel in the order in which they are asked, itself last, each with what is >= 0 where it
    runs: its own condition, and that those before it do not hold."""
    found: list[tuple[KernelOp, tuple[Expr, ...]]] = []
    before: tuple[Expr, ...] = ()
    for variant in kernel.variants:
        assert variant.when is not None
        guard = guard_of(variant.when)
        found.append((variant, (*before, guard)))
        before = (*before, -guard - 1)
    return [*found, (kernel, before)]


def verify_variants(kernel: KernelOp) -> None:
    """`VerifyException` where a kernel and its variants do not fit together."""
    from igniter.dialects.loop.structured import KernelOp

    parent = kernel.parent_op()
    if not isinstance(parent, KernelOp):
        if kernel.when is not None:
            raise VerifyException("only a variant of a kernel has a condition ('when')")
    elif kernel.when is None or len(kernel.when) != 2:
        raise VerifyException(f"variant @{kernel.sym_name.data} has no condition: when n <= 8")
    elif kernel.variants:
        raise VerifyException(f"variant @{kernel.sym_name.data} has variants of its own")
    elif free := sorted(symbols_of(kernel.when.data) - set(kernel.symbol_names)):
        raise VerifyException(f"the condition of variant @{kernel.sym_name.data} names '{free[0]}', no symbol of it")
    variants = kernel.variants
    if len(variants) > MOST_VARIANTS:
        raise VerifyException(f"{len(variants)} variants: a kernel has at most {MOST_VARIANTS} beside itself")
    names = [v.sym_name.data for v in variants]
    for variant in variants:
        name = variant.sym_name.data
        if names.count(name) > 1:
            raise VerifyException(f"two variants are called @{name}")
        for what, own, other in (
            ("symbols", kernel.symbols, variant.symbols),
            ("inputs", [a.type for a in kernel.block.args], [a.type for a in variant.block.args]),
            ("results", kernel.declared_types, variant.declared_types),
            ("requirements", kernel.requires_attr, variant.requires_attr),
            ("checks", kernel.checks_attr, variant.checks_attr),
        ):
            if own != other:
                raise VerifyException(f"variant @{name} has other {what} than its kernel")
