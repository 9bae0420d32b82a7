"""The softmax of an attention: scores, their maximum, exponentials, and the sums of those over the keys.

The value subtracted from a row's scores may be any function of their maximum. `split-softmax` uses this analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.contractions import factors_of
from igniter.dialects.loop import Axis, NestOp, ReadOp
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of


@dataclass(frozen=True)
class Softmax:
    """The nests of a softmax of weights for values; nothing else reads them."""

    exponentials: NestOp
    score: ReadOp
    floor: ReadOp
    """The value subtracted from the scores by `exponentials`; it has no axis of keys."""
    keys: Axis
    """The axis of keys of `exponentials`."""
    top: NestOp
    """The maximum of the scores of a row."""
    sums: tuple[NestOp, ...]
    """The sums of the exponentials over the keys, alone or times values."""
    scores: tuple[tuple[NestOp, str], ...]
    """The producers of the scores for all rows and keys, each with its axis of keys, in reverse order."""


def difference_of(nest: NestOp) -> tuple[ReadOp, ReadOp] | None:
    """Returns the two reads of a nest, if it yields only the exponential of their difference."""
    clauses = nest.yield_op.clauses
    raised = clauses[0].value.owner
    if len(clauses) != 1 or clauses[0].combiner != "none" or not isinstance(raised, math.ExpOp):
        return None
    difference = raised.operand.owner
    if not isinstance(difference, arith.SubfOp) or len(list(nest.block.ops)) != 5:
        return None
    a, b = difference.lhs.owner, difference.rhs.owner
    if not isinstance(a, ReadOp) or not isinstance(b, ReadOp) or a.guards or b.guards or a.indices or b.indices:
        return None
    return (a, b) if symbols_of(a.subscripts) - symbols_of(b.subscripts) else None


def softmax_of(nest: NestOp, size: int) -> Softmax | str:
    """Returns the softmax whose exponentials `nest` yields, or the reason why its keys are not split into blocks of
    `size`."""
    reads = difference_of(nest)
    assert reads is not None
    score, floor = reads
    own = [a for a in nest.axes if a.name not in symbols_of(floor.subscripts) and a.extent.constant != 1]
    if len(own) != 1:
        return f"it runs over {len(own)} axes, {', '.join(a.name for a in own)}; only one axis can be split"
    keys = own[0]
    count = keys.extent.constant
    if count is not None and count <= size:
        return f"its {count} keys fit into one block of {size}"
    if type(element_of(nest.outputs[0].type)) not in (Float32Type, Float64Type):
        return f"its exponentials are {element_of(nest.outputs[0].type)}, not f32 or f64"
    names = {a.name for a in nest.axes}
    if any(_bare(s) != names for s in (score.subscripts, nest.yield_op.clauses[0].subscripts)):
        return "the dims of its scores and exponentials are not its axes"
    sums = _sums(nest, keys.name)
    if isinstance(sums, str):
        return sums
    top = _top(nest, score, keys.name)
    if isinstance(top, str):
        return top
    scores = _scores(score.source, dim_of(score.subscripts, keys.name), (nest, top))
    scheduled = next((n for n in (nest, top, *sums, *(s for s, _ in scores)) if n.schedule is not None), None)
    if scheduled is not None:
        return f"'{scheduled.label}' has a schedule for its present loops"
    return Softmax(nest, score, floor, keys, top, sums, scores)


def _bare(subscripts: Sequence[Expr]) -> set[str] | None:
    """Returns the axes used as subscripts; `None` unless each subscript is a constant or a distinct axis."""
    names = [s.symbol for s in subscripts if s.constant is None]
    return None if None in names or len(set(names)) != len(names) else {n for n in names if n is not None}


def dim_of(subscripts: Sequence[Expr], axis: str) -> int:
    """Returns the dim indexed by an axis in an access."""
    return next(k for k, s in enumerate(subscripts) if s.symbol == axis)


def _readers(tensor: SSAValue) -> list[NestOp] | str:
    """Returns the readers of a tensor, once each; a reason if another op reads it, or a nest reads it otherwise."""
    found: list[NestOp] = []
    for use in tensor.uses:
        read = use.operation
        nest = read.parent_op()
        if not isinstance(read, ReadOp) or not isinstance(nest, NestOp):
            return f"{read.name} uses them too"
        if nest in found or read.guards or read.indices:
            return f"'{nest.label}' reads them more than once, or under a condition"
        found.append(nest)
    return found


def read_of(nest: NestOp, tensor: SSAValue) -> ReadOp:
    """Returns a nest's read of a tensor."""
    return next(r for r in nest.reads if r.source is tensor)


def _sums(nest: NestOp, keys: str) -> tuple[NestOp, ...] | str:
    """Returns the sums of exponentials over the keys: one at least, and one of them a contraction."""
    tensor = nest.outputs[0]
    readers = _readers(tensor)
    if isinstance(readers, str):
        return f"its exponentials have other uses: {readers}"
    dim = dim_of(nest.yield_op.clauses[0].subscripts, keys)
    for reader in readers:
        at = read_of(reader, tensor).subscripts
        sums = [a.name for a in reader.axes if a.kind == "reduction"]
        clauses = reader.yield_op.clauses
        plain = len(clauses) == 1 and clauses[0].value is read_of(reader, tensor).result
        if (
            len(clauses) != 1
            or clauses[0].combiner != "add"
            or sums != [at[dim].symbol]
            or _bare(at) is None
            or not (plain or not isinstance(factors_of(reader), str))
        ):
            return (
                f"'{reader.label}' reads its exponentials, but is not a sum over the keys of them or of products "
                "with them"
            )
    if all(isinstance(factors_of(reader), str) for reader in readers):
        return "no contraction multiplies values by its exponentials"
    return tuple(sorted(readers, key=place_of))


def place_of(op: Operation) -> int:
    """Returns the number of ops before `op` in its block."""
    assert op.parent is not None
    return list(op.parent.ops).index(op)


def _top(nest: NestOp, score: ReadOp, keys: str) -> NestOp | str:
    """Returns the maximum of the scores over the keys; it alone reads them beside `nest`."""
    readers = _readers(score.source)
    if isinstance(readers, str):
        return f"its scores have other uses: {readers}"
    others = [r for r in readers if r is not nest]
    if not others:
        return "no nest computes the maximum of its scores"
    dim = dim_of(score.subscripts, keys)
    for top in others:
        read, clauses = read_of(top, score.source), top.yield_op.clauses
        sums = [a.name for a in top.axes if a.kind == "reduction"]
        if (
            len(others) > 1
            or len(clauses) != 1
            or clauses[0].combiner != "max"
            or clauses[0].value is not read.result
            or sums != [read.subscripts[dim].symbol]
            or _bare(read.subscripts) is None
        ):
            return f"'{top.label}' reads its scores, but is not their maximum over the keys alone"
    return others[0]


def _scores(tensor: SSAValue, dim: int, readers: tuple[NestOp, ...]) -> tuple[tuple[NestOp, str], ...]:
    """Returns the producers of the scores, for all rows and keys; only `readers` and these nests read the results."""
    nest = tensor.owner
    if not isinstance(nest, NestOp) or len(nest.outputs) != 1:
        return ()
    if any(use.operation.parent_op() not in readers for use in tensor.uses):
        return ()
    written = nest.yield_op.clauses[0].subscripts
    names, keys = _bare(written), written[dim].symbol
    if names is None or keys is None or names != {a.name for a in nest.axes if a.kind == "parallel"}:
        return ()
    found = [(nest, keys)]
    for source in dict.fromkeys(read.source for read in nest.reads):
        reads = [read for read in nest.reads if read.source is source]
        at = reads[0].subscripts
        alike = all(r.subscripts == at and not r.guards and not r.indices for r in reads)
        if alike and _bare(at) == names:
            found += _scores(source, dim_of(at, keys), (nest,))
    return tuple(found)
