"""Evaluation of one nest inside another: the place at which a read accesses a producer, and the clone of its body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.nest_bodies import backward_slice
from igniter.dialects.loop import Clause, IndexOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import Ranges, simplify
from igniter.dialects.sym.reindexing import invert, reindex
from igniter.transforms.structured.nest_rewriting import (
    condition,
    indirect,
    materialize,
    nest_of,
    zero,
)


@dataclass(frozen=True)
class Site:
    """One read of a producer, and its point in the producer's domain."""

    read: ReadOp
    reader: NestOp
    values: Mapping[str, Expr]
    """Each axis of the producer as an expression of the reader's axes and the read's own indirect operands."""


def locate(clause: Clause, producer: NestOp, read: ReadOp, views: Sequence[ViewOp]) -> Site | str:
    """Returns the site of `read` in `producer`, or the reason why it is unknown."""
    reader = nest_of(read)
    ranges = reader.axes_attr.ranges
    subscripts: Sequence[Expr] = read.subscripts
    for view in reversed(views):
        subscripts = reindex(subscripts, dims_of(view.result.type), dims_of(view.source.type), ranges)
    source = views[0].source if views else read.source
    extents = {a.name: a.extent for a in producer.axes}
    values = invert(clause.subscripts, subscripts, dims_of(source.type), extents)
    return values if isinstance(values, str) else Site(read, reader, values)


def substituted(e: Expr, values: Mapping[str, Expr], ranges: Ranges) -> Expr:
    return simplify(e.substitute(values), ranges)


def shifted(e: Expr, count: int, by: int) -> Expr:
    """Returns `e` with the indirect operands `_0`..`_count-1` increased by `by`."""
    return e.substitute({indirect(k): Expr.of(indirect(k + by)) for k in range(count)}) if by and count else e


class Cloner:
    """Evaluates one value of a producer's body at a site."""

    def __init__(self, site: Site):
        self.site = site
        self.ranges = site.reader.axes_attr.ranges
        self.values: dict[SSAValue, SSAValue] = {}

    def insert(self, op: Operation) -> None:
        block = self.site.read.parent
        assert block is not None
        block.insert_op_before(op, self.site.read)

    def run(self, value: SSAValue) -> SSAValue:
        """Clones the backward slice of `value` before the read. Returns the value in the reader."""
        for op in backward_slice(value):
            if isinstance(op, ReadOp):
                self.values[op.result] = self._read(op)
            elif isinstance(op, IndexOp):
                e = substituted(op.value, self.site.values, self.ranges)
                self.values[op.result] = materialize(e, self.site.read.indices, self.insert)
            else:
                clone = op.clone(dict(self.values))
                self.insert(clone)
                self.values.update(zip(op.results, clone.results, strict=True))
        return self.values[value]

    def _read(self, op: ReadOp) -> SSAValue:
        read, own = self.site.read, len(op.indices)
        values = {axis: shifted(e, len(read.indices), own) for axis, e in self.site.values.items()}
        outer = [shifted(g, len(read.indices), own) for g in read.guards]
        clone = ReadOp(
            op.source,
            [substituted(e, values, self.ranges) for e in op.subscripts],
            [*(self.values[i] for i in op.indices), *read.indices],
            [*outer, *(substituted(g, values, self.ranges) for g in op.guards)],
            None if op.otherwise is None else self.values[op.otherwise],
        )
        self.insert(clone)
        return clone.result

    def guarded(self, value: SSAValue, inner: SSAValue) -> SSAValue:
        """Returns `value`, cloned from `inner`, under the site's guards; elsewhere the other value of the site's
        read."""
        read = self.site.read
        if not read.guards:
            return value
        origin, clone = inner.owner, value.owner
        if isinstance(origin, ReadOp) and isinstance(clone, ReadOp):
            return self._guarded_read(origin, clone)
        otherwise = self._otherwise(value)
        other = otherwise.owner
        if isinstance(clone, arith.ConstantOp) and isinstance(other, arith.ConstantOp) and clone.value == other.value:
            return value
        choice = arith.SelectOp(condition(read.guards, read.indices, self.insert), value, otherwise)
        self.insert(choice)
        return choice.result

    def _otherwise(self, value: SSAValue) -> SSAValue:
        if self.site.read.otherwise is not None:
            return self.site.read.otherwise
        constant = zero(value.type)
        self.insert(constant)
        return constant.result

    def _guarded_read(self, origin: ReadOp, clone: ReadOp) -> SSAValue:
        """Sets the value of a cloned read where its guards fail; the clone already carries the site's guards."""
        if not origin.guards:
            otherwise = self.site.read.otherwise
        elif origin.otherwise is not None:
            otherwise = self.guarded(self.values[origin.otherwise], origin.otherwise)
        elif self.site.read.otherwise is None:
            otherwise = None
        else:
            constant = zero(clone.result.type)
            self.insert(constant)
            otherwise = self.guarded(constant.result, constant.result)
        again = ReadOp(clone.source, clone.subscripts, clone.indices, clone.guards, otherwise)
        self.insert(again)
        return again.result
