"""A nest as `scf.for` loops that insert into its results, for subscripts that no indexing map of a result can hold.

loop.yield none %v at [i + 1]        %t1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %t0) -> (tensor<?xf32>) {
                                       %at = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
                                       %u = tensor.insert %v into %t[%at]
                                       scf.yield %u
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute

from igniter.backends.mlir.accesses import write_extract
from igniter.backends.mlir.expressions import Expressions, map_text
from igniter.backends.mlir.scalars import Values, write_combined, write_scalar
from igniter.backends.mlir.tensors import Tensors
from igniter.backends.mlir.text import Writer, element_text, heading, parts, tensor_text
from igniter.dialects.loop import Clause, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.combiners import identity
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import Expr

FALSE = IntegerAttr(0, IntegerType(1))


@contextmanager
def for_loop(
    writer: Writer, axis: str, bounds: tuple[str, str, str], carried: list[str], types: Sequence[str]
) -> Generator[str]:
    """Writes a loop around the lines of the block. `carried` holds the carried tensors, which the block replaces; they
    are the results of the loop afterwards. Gives the name of the induction variable."""
    first, end, step = bounds
    counter, inner = writer.fresh(axis), [writer.fresh("t") for _ in carried]
    head = f"scf.for {counter} = {first} to {end} step {step}"
    if not carried:
        writer.line(f"{head} {{")
        with writer.deeper():
            yield counter
        writer.line("}")
        return
    name = writer.fresh("t")
    given = ", ".join(f"{i} = {c}" for i, c in zip(inner, carried, strict=True))
    writer.line(f"{heading(name, len(carried))} = {head} iter_args({given}) -> ({', '.join(types)}) {{")
    carried[:] = inner
    with writer.deeper():
        yield counter
        writer.line(f"scf.yield {', '.join(carried)} : {', '.join(types)}")
    writer.line("}")
    carried[:] = parts(name, len(carried))


def write_loops(tensors: Tensors, nest: NestOp) -> None:
    """Writes a nest as loops."""
    _Loops(tensors, nest).write()


class _Loops:
    def __init__(self, tensors: Tensors, nest: NestOp):
        self.tensors = tensors
        self.writer = tensors.writer
        self.nest = nest
        self.clauses = nest.yield_op.clauses
        self.kinds: list[Attribute] = [r.type for r in nest.outputs]
        self.carried = [self._start(c, k) for c, k in zip(self.clauses, self.kinds, strict=True)]
        self.masks: dict[int, int] = {}
        """The places of the masks of written elements, for folds with a value for elements that are not written."""
        for place, clause in enumerate(self.clauses):
            if clause.otherwise is not None and clause.combiner != "none":
                kind = tensor_of(IntegerType(1), dims_of(self.kinds[place]))
                self.masks[place] = len(self.carried)
                self.kinds.append(kind)
                self.carried.append(tensors.filled(tensors.empty(kind), kind, FALSE))
        self.names = dict(tensors.symbols)
        self.values: Values = {}

    def _start(self, clause: Clause, kind: Attribute) -> str:
        made = self.tensors.empty(kind)
        if clause.combiner != "none":
            return self.tensors.filled(made, kind, identity(clause.combiner, element_of(kind)).value)
        return made if clause.otherwise is None else self.tensors.filled(made, kind, clause.otherwise)

    def write(self) -> None:
        self._axis(0)
        for place, mask in self.masks.items():
            self.carried[place] = self._chosen(place, mask)
        self.tensors.names.update(zip(self.nest.outputs, self.carried, strict=False))

    def _axis(self, depth: int) -> None:
        axes = self.nest.axes
        if depth == len(axes):
            self._body()
            return
        extent = Expressions(self.writer, self.tensors.symbols).value(axes[depth].extent)
        bounds = (self.writer.index(0), extent, self.writer.index(1))
        types = [tensor_text(k) for k in self.kinds]
        with for_loop(self.writer, axes[depth].name, bounds, self.carried, types) as counter:
            self.names[axes[depth].name] = counter
            self._axis(depth + 1)

    def _body(self) -> None:
        for op in self.nest.block.ops:
            if isinstance(op, ReadOp):
                source = self.tensors.names[op.source]
                self.values[op.result] = write_extract(self.writer, op, source, op.otherwise, self.values, self.names)
            elif isinstance(op, YieldOp):
                for place, clause in enumerate(self.clauses):
                    self._insert(place, clause)
            else:
                write_scalar(self.writer, op, self.values, self.names)

    def _insert(self, place: int, clause: Clause) -> None:
        at = Expressions(self.writer, self.names).values(clause.subscripts)
        kind = tensor_text(self.kinds[place])
        value = self.values[clause.value]
        if clause.combiner != "none":
            old = self.writer.let("v", f"tensor.extract {self.carried[place]}[{at}] : {kind}")
            value = write_combined(self.writer, clause.combiner, element_of(self.kinds[place]), old, value)
        self.carried[place] = self.writer.let("t", f"tensor.insert {value} into {self.carried[place]}[{at}] : {kind}")
        if place in self.masks:
            mask = self.masks[place]
            true = self.writer.let("true", "arith.constant true")
            into = f"{self.carried[mask]}[{at}] : {tensor_text(self.kinds[mask])}"
            self.carried[mask] = self.writer.let("t", f"tensor.insert {true} into {into}")

    def _chosen(self, place: int, mask: int) -> str:
        """Writes a result with its value for elements that are not written, where the mask is false."""
        otherwise = self.clauses[place].otherwise
        assert otherwise is not None
        kind = self.kinds[place]
        text, element = tensor_text(kind), element_text(kind)
        other = self.tensors.filled(self.tensors.empty(kind), kind, otherwise)
        names = [f"d{k}" for k in range(len(dims_of(kind)))]
        point = map_text(names, [Expr.of(n) for n in names])
        axes = ", ".join(['"parallel"'] * len(names))
        x, made, out = (self.writer.fresh(n) for n in ("x", "x", "out"))
        name = self.writer.let(
            "chosen",
            f"linalg.generic {{indexing_maps = [{', '.join([point] * 3)}], iterator_types = [{axes}]}} "
            f"ins({self.carried[mask]}, {self.carried[place]} : {tensor_text(self.kinds[mask])}, {text}) "
            f"outs({other} : {text}) {{",
        )
        self.writer.line(f"^bb0({x}: i1, {made}: {element}, {out}: {element}):")
        with self.writer.deeper():
            value = self.writer.let("v", f"arith.select {x}, {made}, {out} : {element}")
            self.writer.line(f"linalg.yield {value} : {element}")
        self.writer.line(f"}} -> {text}")
        return name
