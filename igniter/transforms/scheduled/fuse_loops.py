"""`fuse-loops`: merges neighbouring loops over one axis.

    loop.for i = 0 to n schedule [fuse "row"] { ... store .., %m[i] }
    loop.for i1 = 0 to n schedule [fuse "row"] { ... load %m[i1] ... }
becomes
    loop.for i = 0 to n { ... store .., %m[i]   ... load %m[i] ... }

Two loops fuse if they have the same range and step, request it (with the same `fuse` hint or the option `all`; loops
inside a fused loop always request it), and no dependence crosses iterations. Statements between the loops needed by the
second one move before the first, if legal. An illegal pair stays, with a remark; with the option `strict` it is an
error if a hint requested fusion.

The pass runs directly after `lower-to-loops`, and later passes work on fewer, longer loop bodies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import (
    Access,
    accesses_in,
    all_in_same_iteration,
    by_base,
    conflicts,
    enclosing_loops,
    same_iteration_only,
)
from igniter.dialects.loop import AllocOp, ForOp, FuncOp, ViewOp
from igniter.dialects.loop.dead_values import is_pure
from igniter.dialects.loop.words import merged
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.scheduled.loop_rewrites import (
    consume,
    is_version,
    move_ops,
    substitute_axes,
)

Report = Callable[[ForOp, ForOp, str], None]


@dataclass(frozen=True)
class FuseLoops(ModulePass):
    """Merges sibling loops over the same range if no dependence crosses iterations."""

    name = "fuse-loops"
    one_rewrite = "two loops fused"

    all: bool = False
    """Fuses every legal pair, with or without `fuse`."""
    strict: bool = False
    """Makes it an error if a pair with `fuse` cannot fuse."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp):

                def report(a: ForOp, b: ForOp, reason: str, name: str = func.sym_name.data) -> None:
                    if self.strict and _asks(a, b):
                        raise IgniterError(f"@{name}: loops '{a.axis}' and '{b.axis}': {reason}")
                    remark(ctx, self.name, f"{name}.{b.axis}", "missed", f"not fused with '{a.axis}': {reason}")

                asked = Counter(x.words.fuse for x in func.walk() if isinstance(x, ForOp))
                fuse_block(func.block, self.all, report, budget(ctx, self.name))
                for loop in [x for x in func.walk() if isinstance(x, ForOp)]:
                    label = consume(loop, "fuse").fuse
                    if label and asked[label] == 1:
                        where = f"{func.sym_name.data}.{loop.axis}"
                        remark(ctx, self.name, where, "missed", f'no other loop has fuse "{label}"')


def fuse_block(block: Block, everything: bool, report: Report, rewrites: Budget) -> None:
    """Fuses the loops directly in `block`, then those inside the results."""
    hoist_declarations(block)
    touched: dict[Operation, list[Access]] = {}

    def accesses(op: Operation) -> list[Access]:
        if op not in touched:
            touched[op] = list(accesses_in([op]))
        return touched[op]

    for second in [op for op in block.ops if isinstance(op, ForOp)]:
        for first in _candidates(block, second, everything):
            reason = why_not_fuse(first, second, accesses)
            if reason is None:
                if not rewrites.take(second.axis, f"it is fused with '{first.axis}'"):
                    break
                _merge(first, second)
                touched.pop(first, None)
                break
            report(first, second, reason)
    for loop in block.ops:
        if isinstance(loop, ForOp):
            merged = loop.attributes.pop("fused", None) is not None
            fuse_block(loop.block, everything or merged, report, rewrites)
        elif is_version(loop):
            fuse_block(loop.regions[0].block, everything, report, rewrites)


def hoist_declarations(block: Block) -> None:
    """Moves allocations, views and constants to the front: their operands are all defined before."""
    front = [op for op in block.ops if isinstance(op, (AllocOp, ViewOp)) or op.name == "arith.constant"]
    anchor: Operation | None = None
    for op in front:
        op.detach()
        if anchor is None:
            first = block.first_op
            if first is None:
                block.add_op(op)
            else:
                block.insert_op_before(op, first)
        else:
            block.insert_op_after(op, anchor)
        anchor = op


def _candidates(block: Block, second: ForOp, everything: bool) -> list[ForOp]:
    """Returns earlier loops for `second` to join, nearest first."""
    found: list[ForOp] = []
    op = second.prev_op
    while op is not None:
        if isinstance(op, ForOp) and _same_range(op, second) and (everything or _asks(op, second)):
            found.append(op)
        op = op.prev_op
    return found


def _asks(first: ForOp, second: ForOp) -> bool:
    return bool(first.words.fuse) and first.words.fuse == second.words.fuse


def _same_range(a: ForOp, b: ForOp) -> bool:
    if a.is_sequential or b.is_sequential or a.indices or b.indices:
        return False
    return a.first == b.first and a.end == b.end and a.step == b.step and a.grain == b.grain


def why_not_fuse(first: ForOp, second: ForOp, accesses: Callable[[Operation], list[Access]]) -> str | None:
    """Moves the statements between the loops that `second` needs before `first`, and returns None if the loops may then
    fuse; otherwise returns the reason."""
    lanes = first.words.vector, second.words.vector
    if all(lanes) and lanes[0] != lanes[1]:
        return "they are vectorised differently"
    if first.words.by != second.words.by and not _asks(first, second):
        return "only one of them is tiled, and neither requests the other"
    crossing = _crossing(first, second, accesses)
    if crossing is not None:
        return crossing
    between: list[Operation] = []
    op = first.next_op
    while op is not None and op is not second:
        between.append(op)
        op = op.next_op
    needed: list[Operation] = []
    wanted: list[Operation] = [second]
    for op in reversed(between):
        if any(_depends(later, op, accesses) for later in wanted):
            needed.append(op)
            wanted.append(op)
    for op in needed:
        if _depends(op, first, accesses):
            return f"'{op.name}' between them depends on the first and the second depends on it"
    move_ops(reversed(needed), first.parent_block() or _no_block(), before=first)
    return None


def _crossing(first: ForOp, second: ForOp, accesses: Callable[[Operation], list[Access]]) -> str | None:
    around = {loop.axis for loop in enclosing_loops(first)}
    others = by_base(accesses(second))
    for base, xs in by_base(accesses(first)).items():
        ys = others.get(base, [])
        if not ys or all_in_same_iteration(xs, first.axis, ys, second.axis, around):
            continue
        for x, y in conflicts(xs, ys):
            if not same_iteration_only(x, first.axis, y, second.axis, first.step):
                name = base.name_hint or "a buffer"
                return (
                    f"different iterations access the same element of %{name}: [{', '.join(map(str, x.subscripts))}] "
                    f"and [{', '.join(map(str, y.subscripts))}]"
                )
    return None


def _depends(later: Operation, earlier: Operation, accesses: Callable[[Operation], list[Access]]) -> bool:
    if any(result.uses for result in earlier.results):
        inside = set(later.walk())
        if any(use.operation in inside for r in earlier.results for use in r.uses):
            return True
    return next(conflicts(accesses(earlier), accesses(later)), None) is not None


def _merge(first: ForOp, second: ForOp) -> None:
    """Appends the body of `second` to the body of `first`."""
    ops = list(second.block.ops)
    substitute_axes(ops, {second.axis: Expr.of(first.axis)})
    move_ops(ops, first.block)
    if second.is_reduction:
        first.reduction = second.reduction
    words = merged(first.words, second.words)
    mine, theirs = first.words.inside, second.words.inside
    if mine is not None and theirs is not None:
        # Only loops with statements to sink below have `sink` for the loop inside the tile; "loops" is the strongest.
        inside = merged(mine, theirs)
        strongest = "loops" if "loops" in (mine.sink, theirs.sink) else inside.sink
        words = replace(words, inside=replace(inside, sink=strongest))
    vectors_inside = any(op.words.vector for op in first.block.walk() if isinstance(op, ForOp))
    if words.by != 1 or vectors_inside:  # Then only the inner loops become vectors.
        words = replace(words, vector=0, accumulators=0)
    first.words = words
    first.attributes["fused"] = StringAttr("")
    second.detach()
    second.erase()


def _no_block() -> Block:
    raise IgniterError("a loop is not in a block")


__all__ = ["FuseLoops", "fuse_block", "hoist_declarations", "is_pure", "why_not_fuse"]
