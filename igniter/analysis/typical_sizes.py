"""What a symbol is taken to be where a choice needs a figure: the size that was given for it, else a typical one.

Sizes are given by a user (`igniter compile --sizes batch=1,seq=128`). They are in the context, by the names of the
model's symbols; `lower-onnx-to-loop` writes those of a region's symbols on its kernel, whose symbols are renamed
afterwards, and from there on a pass asks the kernel (`typical_of`). They decide between choices that are all right:
code is correct for every size, whatever was given.

Where nobody said anything there are two figures, and both err to the side that costs less:

* `WORK` is for the work of a loop. Taken too large, tasks are handed over that are not worth it, and panels are taken
  to be deeper than they are; taken too small, a few tasks less are made. So it is low.
* `MEMORY` is for the bytes of tensors: what fusion saves, and which of two buffers is larger. There only the
  proportions to the dims that are known count, which are hundreds in most models.

Neither will do for the samples of a signal where a network looks at frames of hundreds of them: no frame would be left,
and what is done with the frames would cost nothing. So a symbol is taken to be as large as it has to be for the dims of
all tensors to be `LEAST` (`sizes_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
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
"""A symbol that nobody gave a size, where the work of a loop is estimated."""

MEMORY = 128
"""A symbol that nobody gave a size, where bytes are."""

LEAST = 4
"""What a dim is raised to that would be empty."""

LARGEST = 1 << 20
"""The largest size that a symbol is raised to."""


@dataclass(frozen=True)
class TypicalSizes:
    """The sizes that were given for symbols, by name."""

    given: tuple[tuple[str, int], ...] = ()

    def known(self, e: Expr) -> int | None:
        """The value of an expression, where sizes were given for all of its symbols."""
        sizes = dict(self.given)
        return e.evaluate(sizes) if e.symbols <= sizes.keys() else None

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.given)

    def value(self, e: Expr, otherwise: int, zero: Collection[str] = ()) -> int:
        """The value of an expression; symbols without a size are `otherwise`, and names in `zero`, of axes, are 0.
        Where these sizes make a divisor 0, a loop that it is of does not run: the value is 0."""
        sizes = {s: 0 if s in zero else otherwise for s in e.symbols}
        try:
            return e.evaluate({**sizes, **{n: size for n, size in self.given if n not in zero}})
        except ZeroDivisionError:
            return 0


NONE = TypicalSizes()
"""Nobody said anything."""


def sizes_of(ctx: Context, module: ModuleOp) -> dict[str, int]:
    """The sizes that were given for the symbols of the model, in the context of passes, and those of symbols of which
    the typical figures would leave tensors of the model empty."""
    given: Mapping[str, int] = getattr(ctx, "sizes", {})
    found = dict(given)
    # A dim of one symbol says which it is; of several all would be raised.
    for dim in sorted(module_dims(module), key=lambda e: (len(e.symbols), str(e))):
        if dim.symbol is None:
            found.update(_raised(dim, found, given))
    return found


def _raised(dim: Expr, found: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Sizes of the symbols of a dim, doubled until it is `LEAST`; none where it is not empty, or stays so."""
    free = dim.symbols - given.keys()

    def at(size: int) -> int:
        return TypicalSizes(tuple({**found, **{s: max(size, found.get(s, 0)) for s in free}}.items())).value(dim, size)

    if not free or at(WORK) > 0:
        return {}
    size = MEMORY
    while at(size) < LEAST and size < LARGEST:
        size *= 2
    return {s: size for s in free if size > found.get(s, 0)} if at(size) >= LEAST else {}


def typical_of(op: Operation | None) -> TypicalSizes:
    """The sizes that were given for the symbols of the kernel that `op` is in, or is."""
    while op is not None and not isinstance(op, (KernelOp, FuncOp)):
        op = op.parent_op()
    return NONE if op is None or op.typical is None else TypicalSizes(op.typical.data)


def give_sizes(kernel: KernelOp | FuncOp, sizes: Mapping[str, int]) -> None:
    """Writes the sizes of its own symbols on a kernel, in the place of those that it says already."""
    all_sizes = {**dict(typical_of(kernel).given), **sizes}
    kernel.typical = sizes_attr({name: all_sizes[name] for name in kernel.symbol_names if name in all_sizes})


def checked_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes; `IgniterError` for one that no dim has to be."""
    for name, size in sizes.items():
        if size < 1:
            raise IgniterError(f"the typical size of '{name}' is {size}: a size is positive")
    return dict(sizes)


def require_known(
    sizes: Mapping[str, int], known: Iterable[str], shown: Callable[[Iterable[str]], list[str]] = sorted
) -> None:
    """`IgniterError` that lists the symbols there are where a size is of another; `shown` has the words for them."""
    symbols = set(known)
    unknown = sorted(set(sizes) - symbols)
    if unknown:
        there = shown(symbols)
        raise IgniterError(f"the model has no dim {', '.join(unknown)}; its dims are {', '.join(there) or 'fixed'}")


def module_symbols(module: ModuleOp) -> set[str]:
    """The symbols in the types of a module, and those of its kernels."""
    found = {name for dim in module_dims(module) for name in dim.symbols}
    return found.union(*(op.symbol_names for op in module.ops if isinstance(op, (KernelOp, FuncOp))))


def module_dims(module: ModuleOp) -> set[Expr]:
    """The dims that are not fixed, of the tensors in a module, but not in its kernels, which speak of axes as well."""
    kinds: set[Attribute] = set()
    for root in module.ops:
        if isinstance(root, (KernelOp, FuncOp)):
            continue
        for op in root.walk():
            kinds.update(arg.type for region in op.regions for block in region.blocks for arg in block.args)
            kinds.update(result.type for result in op.results)
    return {dim for kind in kinds for dim in _dims(kind) if dim.symbols}


def give_module_sizes(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """What stands for a command line's sizes in IR that is read: they are of symbols there, and the kernels that there
    are already get those of their own. `IgniterError` for one of a symbol that is not there."""
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
