"""A tile of a contraction by its meaning: loops over rows and panels, and sums of all lanes over the depth.

    scf.for %r ... { scf.for %p ... {
      %sums = scf.for %k = %c0 to %depth step %c1 iter_args(%sum = %start) -> (vector<16xf32>) {
        %a = memref.load ..., %b = vector.load ..., the body of the micro-kernel, the combination with %sum
      }
      vector.store %sums, ...
    } }

The CPU backend unrolls rows and panels into registers; here they are loops.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.ir import SSAValue

from igniter.backends.mlir.arithmetic import Operand, write_combined, write_op
from igniter.backends.mlir.kinds import broadcast, constant, kind_of
from igniter.backends.mlir.lanes import Scalars
from igniter.backends.mlir.memory import Access, Buffer
from igniter.backends.mlir.text import Writer
from igniter.dialects.loop import TileProductOp, YieldOp
from igniter.dialects.loop.bodies import as_number
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.instructions import MicroKernel
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr


def write_tile(scalars: Scalars, op: TileProductOp, buffers: Mapping[SSAValue, Buffer]) -> None:
    """Writes a tile of a contraction."""
    kernel = op.kernel
    if kernel is None:
        kinds = ", ".join(str(element_of(v.type)) for v in (op.a, op.b, op.c))
        raise scalars.writer.refuse("'loop.tile_product'", f"there is no micro-kernel for elements {kinds}")
    _Tile(scalars, op, buffers, kernel).write()


class _Tile:
    def __init__(self, scalars: Scalars, op: TileProductOp, buffers: Mapping[SSAValue, Buffer], kernel: MicroKernel):
        self.scalars = scalars
        self.writer: Writer = scalars.writer
        self.op = op
        self.buffers = buffers
        self.facts = kernel.facts
        lanes = op.extents[op.names[2]].constant
        assert lanes is not None
        self.lanes = lanes
        self.sums = kind_of(self.facts.elements[2]).with_lanes(lanes)

    def write(self) -> None:
        row, panel, _, depth, *rounds = self.op.names
        names = dict(self.scalars.names)
        with self._loop(row, names), self._loop(panel, names):
            into = self._access(0, names)
            if self.op.adds:
                total = into.load_lanes(None)
            else:
                number = as_number(identity(self.facts.combiner, self.facts.elements[2]).value)
                assert number is not None
                total = constant(self.writer, self.sums, number.value.data)
            into.store_lanes(self._summed([*rounds, depth], names, total))

    @contextmanager
    def _loop(self, name: str, names: dict[str, str]) -> Generator[None]:
        """Writes a loop over one of the tile's names around the lines of the block."""
        names[name], end = self.writer.fresh(name), self.scalars.value(self.op.extents[name])
        zero, one = self.writer.index(0), self.writer.index(1)
        self.writer.line(f"scf.for {names[name]} = {zero} to {end} step {one} {{")
        with self.writer.deeper():
            yield
        self.writer.line("}")

    def _summed(self, depths: Sequence[str], names: Mapping[str, str], total: str) -> str:
        """Writes the loops over the depths; returns the sums."""
        if not depths:
            return self._step(names, total)
        name = depths[0]
        counter, inner, result = (self.writer.fresh(n) for n in (name, "sum", "sums"))
        end = self.scalars.value(self.op.extents[name])
        zero, one = self.writer.index(0), self.writer.index(1)
        carried = f"iter_args({inner} = {total}) -> ({self.sums})"
        self.writer.line(f"{result} = scf.for {counter} = {zero} to {end} step {one} {carried} {{")
        with self.writer.deeper():
            after = self._summed(depths[1:], {**names, name: counter}, inner)
            self.writer.line(f"scf.yield {after} : {self.sums}")
        self.writer.line("}")
        return result

    def _step(self, names: Mapping[str, str], total: str) -> str:
        """Writes one step of the depth."""
        left, right = self._operand(1, names), self._operand(2, names)
        values: dict[SSAValue, Operand] = {self.facts.a.result: left, self.facts.b.result: right}
        for op in self.facts.nest.block.ops:
            if not isinstance(op, YieldOp) and op.results[0] not in values:
                args = [values[v] for v in op.operands]
                lanes = self.lanes if any(a.kind.lanes for a in args) else 0
                values[op.results[0]] = write_op(self.writer, op, args, lanes)
        value = values[self.facts.nest.yield_op.clauses[0].value]
        vector = broadcast(self.writer, value.name, value.kind, self.lanes)
        return write_combined(self.writer, self.facts.combiner, self.facts.elements[2], total, vector, self.lanes)

    def _operand(self, which: int, names: Mapping[str, str]) -> Operand:
        access = self._access(which, names)
        value = access.load_lanes(None) if access.count else access.load_scalar(None)
        return Operand(value, access.kind)

    def _access(self, which: int, names: Mapping[str, str]) -> Access:
        value, _, subscripts = self.op.accesses[which]
        lane = self.op.names[2]
        local, buffer = Scalars(self.writer, names), self.buffers[value]
        if which == 1:
            return Access(local, buffer, subscripts)
        return Access(local, buffer, list(map(Expr.of, subscripts)), lane=lane, count=self.lanes)
