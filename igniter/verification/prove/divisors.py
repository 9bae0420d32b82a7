"""Sizes with a known divisor: a requirement such as `64*((16*n) floordiv 64) == 16*n` makes `n` a multiple of 4.

Such an `n` becomes `4*n` in both kernels, so that quotients of it are sizes and not parameters with inequalities, and
views such as `[n, 16]` as `[64, n floordiv 4]` are known to have as many elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, lcm

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.sym import requirements_attr
from igniter.dialects.sym.expr import Call, Expr, Sym
from igniter.dialects.sym.requirements import Requirement
from igniter.transforms.structured.kernel_exprs import map_kernel_exprs, retype


def divisors(kernel: KernelOp | FuncOp) -> dict[str, int]:
    """Returns the divisors of sizes by the requirements of a kernel."""
    found: dict[str, int] = {}
    for requirement in kernel.requires:
        known = _divisor(requirement)
        if known is not None:
            name, divisor = known
            found[name] = lcm(found.get(name, 1), divisor)
    return found


def _divisor(requirement: Requirement) -> tuple[str, int] | None:
    """Returns a size and its divisor, by `factor*((a*size) floordiv b) == c*size` with `factor*a == b*c`."""
    terms = (requirement.left - requirement.right).terms
    if requirement.relation != "==" or len(terms) != 2:
        return None
    for (quotient, factor), (size, c) in (terms, terms[::-1]):
        if len(quotient) != 1 or len(size) != 1 or not isinstance(quotient[0], Call) or not isinstance(size[0], Sym):
            continue
        call = quotient[0]
        (a, dividend), b = _scaled(call.args[0]), call.args[1].constant if len(call.args) == 2 else None
        if call.fn == "floordiv" and b is not None and b > 0 and dividend == size[0].name and factor * a == -c * b:
            return dividend, b // gcd(a, b)
    return None


def _scaled(e: Expr) -> tuple[int, str]:
    """Returns the factor and the name of `factor*name`; no name for other expressions."""
    if len(e.terms) == 1 and len(e.terms[0][0]) == 1 and isinstance(e.terms[0][0][0], Sym):
        return e.terms[0][1], e.terms[0][0][0].name
    return 0, ""


def divided(kernel: KernelOp | FuncOp, known: Mapping[str, int]) -> KernelOp | FuncOp:
    """Returns a kernel whose sizes are the quotients by `known` divisors."""
    if not known:
        return kernel
    values = {name: divisor * Expr.of(name) for name, divisor in known.items()}

    def of(e: Expr) -> Expr:
        return e.substitute(values)

    copy = kernel.clone()
    map_kernel_exprs(copy, of)
    for each in (copy, *(copy.variants if isinstance(copy, KernelOp) else ())):
        for arg in each.block.args:
            retype(arg, of)
        each.requires_attr = requirements_attr(r.substitute(values) for r in each.requires)
        if isinstance(each, KernelOp) and each.when is not None:
            each.when = each.when.substitute(values)
    return copy
