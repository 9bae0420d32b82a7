"""Basic rewrites of the scheduled passes: substituting axes, cloning bodies, naming loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

from igniter.dialects.loop import AllocOp, ForOp, FuncOp, IfOp
from igniter.dialects.loop.words import LoopWords, without
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import Ranges, simplify


class AxisNames:
    """The names used in a func; creates new, unique ones."""

    def __init__(self, func: FuncOp):
        self._taken = set(func.symbol_names)
        self._taken.update(op.axis for op in func.walk() if isinstance(op, ForOp))

    def fresh(self, base: str) -> str:
        """Returns `base` if it is free, else `base` with the first free number."""
        stem = base.rstrip("0123456789") if base[-1:].isdigit() else base
        name, k = base, 1
        while name in self._taken:
            name = f"{stem}{k}"
            k += 1
        self._taken.add(name)
        return name


def is_version(op: Operation | None) -> bool:
    """True if an op selects statements of a func by sizes: a variant of its kernel, which is a program of its own."""
    return isinstance(op, IfOp) and not op.indices and isinstance(op.parent_op(), FuncOp)


def substitute_axes(ops: Iterable[Operation], values: Mapping[str, Expr], ranges: Ranges | None = None) -> None:
    """Replaces names in every expression of `ops` and below, in place; with `ranges`, also simplifies."""
    mapping = dict(values)
    for op in ops:
        for inner in op.walk():
            for key, attr in inner.properties.items():
                if isinstance(attr, DimsAttr):
                    exprs = (e.substitute(mapping) for e in attr.data)
                    inner.properties[key] = DimsAttr(e if ranges is None else simplify(e, ranges) for e in exprs)


def clone_ops(
    ops: Iterable[Operation],
    names: AxisNames,
    values: Mapping[str, Expr] | None = None,
    mapping: dict[SSAValue, SSAValue] | None = None,
) -> list[Operation]:
    """Returns copies of `ops` with axes substituted and inner loops renamed, so that names stay unique."""
    mapping = {} if mapping is None else mapping
    copies = [op.clone(mapping) for op in ops]
    renamed: dict[str, Expr] = dict(values or {})
    for copy in copies:
        for inner in copy.walk():
            if isinstance(inner, ForOp):
                fresh = names.fresh(inner.axis)
                renamed[inner.axis] = Expr.of(fresh)
                inner.properties["axis"] = type(inner.axis_attr)(fresh)
    if renamed:
        substitute_axes(copies, renamed)
    return copies


def move_ops(ops: Iterable[Operation], block: Block, before: Operation | None = None) -> None:
    """Moves `ops`, in order, to the end of `block` or before one of its ops."""
    for op in list(ops):
        op.detach()
        if before is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, before)


def consume(loop: ForOp, *names: str) -> LoopWords:
    """Removes words from the loop, and returns all that it had: a word is applied once."""
    words = loop.words
    loop.words = without(words, *names)
    return words


def replace_alloc(old: AllocOp, new: AllocOp) -> None:
    """Replaces `old` by `new`; the subscripts of its users must already fit."""
    block = old.parent_block()
    assert block is not None
    block.insert_op_before(new, old)
    old.result.replace_all_uses_with(new.result)
    old.detach()
    old.erase()


def loops_in(op: Operation) -> Iterator[ForOp]:
    """Yields every loop below `op`, outer ones first. The yielded loop may be rewritten, but not its siblings."""
    yield from [inner for inner in op.walk() if isinstance(inner, ForOp)]


def nested_blocks(block: Block) -> list[Block]:
    """Returns `block` and all blocks inside it, outer ones first."""
    found = [block]
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                found.extend(nested_blocks(inner))
    return found
