"""Typical sizes of symbols, for choices that need a number: the given size of a symbol, or a default.

Sizes are given by a user (`igniter compile --sizes batch=1,seq=128`). They are in the context, by the names of the
model's symbols. `lower-onnx-to-loop` writes those of a region's symbols on its kernel, whose symbols are renamed
afterwards, and later passes ask the kernel (`typical_of`). They decide between equally correct choices: code is correct
for every size.

There are two defaults for symbols without a size, and both err on the cheaper side:

* `WORK` is for the work of a loop. Too large, it makes tasks too small for their hand-over, and makes panels seem
  deeper than they are; too small, it makes a few tasks fewer. So it is low.
* `MEMORY` is for the bytes of tensors: the traffic saved by fusion, and the larger of two buffers. Only the ratios to
  the known dims count there, and these are hundreds in most models.

Neither is enough for the samples of a signal, if a network divides it into frames of hundreds of them: there would be
no frame, and all work on frames would cost nothing. So a symbol is raised until the dims of all tensors are at least
`LEAST` (`sizes_of`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Operation

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.loop.typical import sizes_attr
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

WORK = 64
"""The assumed value of a symbol without a size, in estimates of a loop's work."""

MEMORY = 128
"""The assumed value of a symbol without a size, in estimates of bytes."""

LEAST = 4
"""The least value of a raised dim."""

LARGEST = 1 << 20
"""The largest size of a raised symbol."""


@dataclass(frozen=True)
class TypicalSizes:
    """The given sizes of symbols, by name."""

    given: tuple[tuple[str, int], ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return dict(self.given)

    def known(self, e: Expr) -> int | None:
        """Returns the value of an expression, if all of its symbols have a given size."""
        return e.evaluate(self._by_name) if e.symbols <= self._by_name.keys() else None

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.given)

    def value(self, e: Expr, otherwise: int, zero: Collection[str] = ()) -> int:
        """Returns the value of an expression; symbols without a size are `otherwise`, and names in `zero`, of axes, are
        0. If these sizes make a divisor 0, the loop with this divisor does not run: the value is 0."""
        if e.constant is not None:
            return e.constant
        sizes = self._by_name
        try:
            return e.evaluate({s: 0 if s in zero else sizes.get(s, otherwise) for s in e.symbols})
        except ZeroDivisionError:
            return 0


NONE = TypicalSizes()
"""No given sizes."""


def sizes_of(ctx: Context, module: ModuleOp) -> dict[str, int]:
    """Returns the given sizes of the model's symbols, from the context of passes, and raised sizes of symbols whose
    default would leave tensors of the model empty."""
    given: Mapping[str, int] = getattr(ctx, "sizes", {})
    found = dict(given)
    # A dim of one symbol determines it; a dim of several would raise all of them.
    for dim in sorted(module_dims(module), key=lambda e: (len(e.symbols), str(e))):
        if dim.symbol is None:
            found.update(_raised(dim, found, given))
    return found


def _raised(dim: Expr, found: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Returns sizes of the symbols of a dim, doubled until it is `LEAST`; none where it is not empty, or stays
    empty."""
    free = dim.symbols - given.keys()

    def at(size: int) -> int:
        return TypicalSizes(tuple({**found, **{s: max(size, found.get(s, 0)) for s in free}}.items())).value(dim, size)

    if not free or at(WORK) > 0:
        return {}
    size = MEMORY
    while at(size) < LEAST and size < LARGEST:
        size *= 2
    return {s: size for s in free if size > found.get(s, 0)} if at(size) >= LEAST else {}


ROW = 128
"""The typical size of the inner symbols of a product of several: the tokens of a sequence, the columns of an image."""


def sizes_with(total: Expr, least: int, given: Mapping[str, int], symbols: Sequence[str]) -> dict[str, int]:
    """Returns sizes at which an expression is about `least` or a little more. Symbols without a given size grow from 1,
    the inner (last) ones up to `ROW`, the outermost without a limit."""
    free = [s for s in reversed(symbols) if s in total.symbols and s not in given]
    sizes = {**dict.fromkeys(total.symbols, 1), **{s: given[s] for s in total.symbols if s in given}}
    for symbol in free:

        def enough(size: int, symbol: str = symbol) -> bool:
            return TypicalSizes(tuple({**sizes, symbol: size}.items())).value(total, 1) >= least

        limit = LARGEST if symbol == free[-1] else ROW
        sizes[symbol] = 1 + bisect_left(range(1, limit), True, key=enough)
    return {s: sizes[s] for s in symbols if s in sizes}


def typical_of(op: Operation | None) -> TypicalSizes:
    """Returns the given sizes of the symbols of the kernel that is or contains `op`."""
    while op is not None and not isinstance(op, (KernelOp, FuncOp)):
        op = op.parent_op()
    return NONE if op is None or op.typical is None else TypicalSizes(op.typical.data)


def give_sizes(kernel: KernelOp | FuncOp, sizes: Mapping[str, int]) -> None:
    """Writes sizes of a kernel's own symbols on the kernel; they override its earlier ones."""
    all_sizes = {**dict(typical_of(kernel).given), **sizes}
    kernel.typical = sizes_attr({name: all_sizes[name] for name in kernel.symbol_names if name in all_sizes})


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns the sizes; raises `IgniterError` for a size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise IgniterError(f"the typical size of '{name}' is {size}; it must be positive")
    return dict(sizes)


def require_known(
    sizes: Mapping[str, int], known: Iterable[str], shown: Callable[[Iterable[str]], list[str]] = sorted
) -> None:
    """Raises `IgniterError` with a list of the symbols if a size belongs to an unknown one; `shown` formats the
    list."""
    symbols = set(known)
    unknown = sorted(set(sizes) - symbols)
    if unknown:
        there = shown(symbols)
        raise IgniterError(f"the model has no dim {', '.join(unknown)}; its dims are {', '.join(there) or 'fixed'}")


def module_symbols(module: ModuleOp) -> set[str]:
    """Returns the symbols in the types of a module, and those of its kernels."""
    found = {name for dim in module_dims(module) for name in dim.symbols}
    return found.union(*(op.symbol_names for op in module.ops if isinstance(op, (KernelOp, FuncOp))))


def module_dims(module: ModuleOp) -> set[Expr]:
    """Returns the symbolic dims of a module's tensors, without those in its kernels, where dims contain axes as
    well."""
    kinds: set[Attribute] = set()
    for root in module.ops:
        if isinstance(root, (KernelOp, FuncOp)):
            continue
        for op in root.walk():
            kinds.update(arg.type for region in op.regions for block in region.blocks for arg in block.args)
            kinds.update(result.type for result in op.results)
    return {dim for kind in kinds for dim in _dims(kind) if dim.symbols}


def give_module_sizes(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """Applies `--sizes` to parsed IR: the kernels in it get the sizes of their own symbols. Raises `IgniterError` for
    an unknown symbol."""
    if not sizes:
        return
    require_known(checked_sizes(sizes), module_symbols(module))
    for op in module.ops:
        if isinstance(op, (KernelOp, FuncOp)):
            give_sizes(op, sizes)


def _dims(kind: Attribute) -> tuple[Expr, ...]:
    try:
        return dims_of(kind)
    except ValueError:
        return ()
