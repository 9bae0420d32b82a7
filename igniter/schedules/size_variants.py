"""Variants of kernels for some sizes, where one schedule does not suit all: which are worth their code, and their
sizes.

A product of two computed tensors has its right factor packed into panels for micro-kernels. Packing is profitable where
rows share the panels. A symbolic number of rows may be 1, as in each step of a decoder behind the first. The copy then
dominates, so a single row is multiplied with the unpacked matrix. Measured on one core of a server with AVX-512, in us,
with packing and without:

    scores of 12 heads of 64, 64 keys      1 row   7.6   5.0    2 rows   7.7   9.9
    scores of 12 heads of 64, 512 keys     1 row   120    40    2 rows   120    76    3 rows   124   116
    their attention, 128 keys              1 row    20    12    2 rows    24    16    3 rows    24    24
    their attention, 1024 keys             1 row   462   242    2 rows   469   291    3 rows   470   331
    256 to 1000 columns, row-major         1 row    53    12    2 rows    55    24    3 rows    52    47

Where the columns are strided, each row of a plain loop gathers them again, so more than one row is a loss at some
sizes. Where they are contiguous, the plain loop is faster below `pack_rows` of the machine, also if they would be
panels but for the caches (`crowded_factor`).
"""

from __future__ import annotations

from dataclasses import dataclass

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.packing import UnpackedFactor, crowded_factor, unpacked_factor
from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.sym.expr import Expr
from igniter.schedules.products import deep_rows

MOST_COMPUTATIONS = 16
"""The most computations in a kernel with a variant, which is compiled twice: a limit on code size and compile time, on
any machine."""


@dataclass(frozen=True)
class SizeVariant:
    """A worthwhile variant: the sizes that it is for, and the typical sizes of its schedule."""

    name: str
    what: Expr
    most: int
    """It runs if `what` is at most this."""
    typical: dict[str, int]
    why: str


@dataclass(frozen=True)
class SizeVariants:
    """The worthwhile variants of a kernel, in the order of their tests; there may be none."""

    variants: tuple[SizeVariant, ...]
    rest: dict[str, int] | None = None
    """The typical sizes of the kernel's own body, which runs at all other sizes; `None`: those that it has."""


def worthwhile_variant(kernel: KernelOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the profitable variant of a kernel. `None` if one schedule suits all sizes, if the kernel has schedules
    or variants already, or if packing takes less time than a call costs anyway."""
    if kernel.variants or len(kernel.computations) > MOST_COMPUTATIONS:
        return None
    if any(each.schedule is not None for each in kernel.computations):
        return None
    found: SizeVariant | None = None
    for nest in kernel.nests:
        factor = crowded_factor(nest, machine) or unpacked_factor(nest)
        this = _of_depth(nest, machine) if isinstance(factor, str) else _of_packed(nest, factor, kernel, machine)
        if this is None or (found is not None and found.what != this.what):
            if isinstance(factor, str):
                continue
            return None
        found = this if found is None or this.most <= found.most else found
    return found


def _of_depth(nest: NestOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the variant for one row of a product whose depth is blocked for many."""
    rows = deep_rows(nest, machine)
    if rows is None or not rows.symbols:
        return None
    why = f"one row reads each panel of '{nest.label}' contiguously, without blocks of the depth"
    return SizeVariant("one_row", rows, 1, dict.fromkeys(sorted(rows.symbols), 1), why)


def _of_packed(nest: NestOp, factor: UnpackedFactor, kernel: KernelOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the variant for row counts too small for packing the right factor to pay."""
    rows = factor.all_rows
    if not rows.symbols or rows.symbols & factor.elements.symbols:
        return None  # The number of rows is constant, or few rows mean few columns, too.
    most = machine.pack_rows - 1 if factor.is_beside else 1
    ones = dict.fromkeys(sorted(rows.symbols), 1)
    typical = typical_of(kernel)
    # A matrix with two unknown sizes may be large, and a small one loses nothing by the variant.
    is_open = len(factor.elements.symbols - dict(typical.given).keys()) > 1
    is_small = not is_open and typical.value(factor.elements, WORK) < machine.launch_elements
    if rows.evaluate(ones) > most or is_small:
        return None
    return SizeVariant("few_rows", rows, most, ones, f"too few rows to repay packing a factor of '{nest.label}'")
