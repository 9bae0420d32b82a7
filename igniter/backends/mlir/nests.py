"""A nest as `linalg.generic` on tensors.

    loop.nest "rows" [i: parallel n, k: reduction m] {
      %v = loop.read %x[i, k] : f32
      loop.yield add %v at [i]
    }

    %e = tensor.empty(%n) : tensor<?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
                         iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) { .. }

A read becomes an operand if its subscripts are affine in the axes and each bare one covers its whole dim; `linalg`
derives the iteration domain from such dims. Any other read is a `tensor.extract` at `linalg.index`. An axis without a
bare subscript in any operand gets an operand of its extent that is never read. A nest that writes at other subscripts
than bare axes becomes loops (`loops.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from igniter.backends.mlir.accesses import write_extract
from igniter.backends.mlir.expressions import is_affine, map_text
from igniter.backends.mlir.loops import write_loops
from igniter.backends.mlir.scalars import Values, write_combined, write_scalar
from igniter.backends.mlir.tensors import Tensors
from igniter.backends.mlir.text import (
    element_text,
    heading,
    parts,
    results_text,
    string,
    tensor_text,
    type_text,
)
from igniter.dialects.loop import Axis, Clause, IndexOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.combiners import identity
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr


@dataclass
class Operand:
    """An operand of a `linalg.generic`: the tensor, its type, and the indexing map."""

    name: str
    kind: str
    element: str
    subscripts: Sequence[Expr]


def write_nest(tensors: Tensors, nest: NestOp) -> None:
    """Writes a nest; its results are known to `tensors` afterwards."""
    writer = tensors.writer
    writer.line(f"// nest {string(nest.label)}" + (f" schedule {nest.schedule}" if nest.schedule is not None else ""))
    if all(_fits_map(c, r, nest.axes) for c, r in zip(nest.yield_op.clauses, nest.outputs, strict=True)):
        _Generic(tensors, nest).write()
    else:
        write_loops(tensors, nest)


def _fits_map(clause: Clause, result: SSAValue, axes: Sequence[Axis]) -> bool:
    """True if a result is written at bare axes that cover its dims."""
    extents = {a.name: a.extent for a in axes}
    names = [s.symbol for s in clause.subscripts if s.constant is None]
    if len(set(names)) != len(names) or clause.otherwise is not None:
        return False
    return all(
        s.constant is not None or (s.symbol is not None and extents.get(s.symbol) == d)
        for s, d in zip(clause.subscripts, dims_of(result.type), strict=True)
    )


def is_operand(read: ReadOp, axes: Sequence[Axis]) -> bool:
    """True if a read can be an operand, from whose dims the right iteration domain follows."""
    extents = {a.name: a.extent for a in axes}
    if read.guards or any(a.extent.constant == 0 for a in axes):  # MLIR compares the subscripts of the first point.
        return False
    return all(
        s.symbols <= extents.keys() and is_affine(s) and (s.symbol is None or extents[s.symbol] == d)
        for s, d in zip(read.subscripts, dims_of(read.source.type), strict=True)
    )


class _Generic:
    """The text of one nest."""

    def __init__(self, tensors: Tensors, nest: NestOp):
        self.tensors = tensors
        self.writer = tensors.writer
        self.nest = nest
        self.names = [a.name for a in nest.axes]
        self.clauses = nest.yield_op.clauses
        self.inputs: list[Operand] = []
        self.values: Values = {}

    def write(self) -> None:
        nest = self.nest
        direct = [r for r in nest.reads if is_operand(r, nest.axes)]
        for read in direct:
            self._add(self.tensors.names[read.source], tensor_text(read.source.type), read.subscripts, read.result)
        outputs = [self._start(c, r) for c, r in zip(self.clauses, nest.outputs, strict=True)]
        self._add_extents(outputs)
        types = [o.kind for o in outputs]
        maps = ", ".join(map_text(self.names, o.subscripts) for o in (*self.inputs, *outputs))
        kinds = ", ".join(f'"{a.kind}"' for a in nest.axes)
        name = self.writer.fresh(nest.label)
        self.writer.line(
            f"{heading(name, len(outputs))} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
        )
        self.writer.line(f"    {_group('ins', self.inputs)}{_group('outs', outputs)}{{")
        self._write_body(outputs, direct)
        self.writer.line(f"}} -> {results_text(types)} loc({string(nest.label)})")
        self.tensors.names.update(zip(nest.outputs, parts(name, len(outputs)), strict=True))

    def _add(self, name: str, kind: str, subscripts: Sequence[Expr], value: SSAValue) -> None:
        self.inputs.append(Operand(name, kind, type_text(value.type), subscripts))

    def _start(self, clause: Clause, result: SSAValue) -> Operand:
        """Writes the initial value of a result."""
        made = self.tensors.empty(result.type)
        if clause.combiner != "none":
            made = self.tensors.filled(made, result.type, identity(clause.combiner, element_of(result.type)).value)
        return Operand(made, tensor_text(result.type), element_text(result.type), clause.subscripts)

    def _add_extents(self, outputs: Sequence[Operand]) -> None:
        """Adds an operand for each axis that is no bare subscript of another."""
        bare = {s.symbol for o in (*self.inputs, *outputs) for s in o.subscripts}
        for axis in self.nest.axes:
            if axis.name not in bare:
                made, kind = self.tensors.extent(axis.extent)
                self.inputs.append(Operand(made, kind, "i8", [Expr.of(axis.name)]))

    def _write_body(self, outputs: Sequence[Operand], direct: Sequence[ReadOp]) -> None:
        writer = self.writer
        arguments = [writer.fresh("x") for _ in self.inputs]
        totals = [writer.fresh("out") for _ in outputs]
        typed = [f"{n}: {o.element}" for n, o in zip([*arguments, *totals], [*self.inputs, *outputs], strict=True)]
        self.values.update(zip((r.result for r in direct), arguments, strict=False))
        writer.line(f"^bb0({', '.join(typed)}):")
        with writer.deeper():
            names = self._axis_values(direct)
            for op in self.nest.block.ops:
                if isinstance(op, YieldOp):
                    self._yield(outputs, totals)
                elif isinstance(op, ReadOp):
                    if op.result not in self.values:
                        source = self.tensors.names[op.source]
                        self.values[op.result] = write_extract(writer, op, source, op.otherwise, self.values, names)
                else:
                    write_scalar(writer, op, self.values, names)

    def _axis_values(self, direct: Sequence[ReadOp]) -> dict[str, str]:
        """Writes `linalg.index` for the axes that the body names."""
        used: set[str] = set()
        for op in self.nest.block.ops:
            if isinstance(op, ReadOp) and op not in direct:
                used.update(*(e.symbols for e in (*op.subscripts, *op.guards)), ())
            elif isinstance(op, IndexOp):
                used |= op.value.symbols
        found = dict(self.tensors.symbols)
        for k, name in enumerate(self.names):
            if name in used:
                found[name] = self.writer.let(name, f"linalg.index {k} : index")
        return found

    def _yield(self, outputs: Sequence[Operand], totals: Sequence[str]) -> None:
        made: list[str] = []
        for clause, result, total in zip(self.clauses, self.nest.outputs, totals, strict=True):
            value = self.values[clause.value]
            if clause.combiner != "none":
                value = write_combined(self.writer, clause.combiner, element_of(result.type), total, value)
            made.append(value)
        self.writer.line(f"linalg.yield {', '.join(made)} : {', '.join(o.element for o in outputs)}")


def _group(keyword: str, operands: Sequence[Operand]) -> str:
    if not operands:
        return ""
    return f"{keyword}({', '.join(o.name for o in operands)} : {', '.join(o.kind for o in operands)}) "
