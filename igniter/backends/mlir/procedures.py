"""A procedure as `scf` loops on tensors.

    loop.for k = 0 to 8 {            %o1 = scf.for %k = %c0 to %c8 step %c1 iter_args(%o = %o0) -> (tensor<?x8xf32>) {
      %v = loop.load %x[i, k]          %v = tensor.extract %x[%i, %k]
      loop.store %v, %o[i, k]          %o2 = tensor.insert %v into %o[%i, %k]
    }                                  scf.yield %o2 }

A buffer is a tensor that each write replaces, and every block gives the buffers that it writes as its results. MLIR's
bufferization turns this back into writes in place. A view of a buffer is a `tensor.reshape` at each access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.backends.mlir.accesses import with_indirect, write_extract
from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.loops import for_loop
from igniter.backends.mlir.scalars import Values, write_combined, write_scalar
from igniter.backends.mlir.tensors import Tensors
from igniter.backends.mlir.text import heading, parts, string, tensor_text
from igniter.dialects.loop import AccumulateOp, AllocOp, ForOp, IfOp, IndexOp, LoadOp, ProcedureOp, StoreOp, ViewOp
from igniter.dialects.loop.bodies import DotBytesOp
from igniter.dialects.loop.memory import MemoryOp
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr


def write_procedure(tensors: Tensors, procedure: ProcedureOp) -> None:
    """Writes a procedure; its results are known to `tensors` afterwards."""
    _Statements(tensors, procedure).write()


class _Statements:
    """The text of the statements of one procedure."""

    def __init__(self, tensors: Tensors, procedure: ProcedureOp):
        self.tensors = tensors
        self.writer = tensors.writer
        self.procedure = procedure
        self.names = dict(tensors.symbols)
        self.values: Values = {}
        self.buffers: dict[SSAValue, str] = {}
        """The current tensor of each buffer."""
        self.views: dict[SSAValue, SSAValue] = {}
        """The source of each view."""

    def write(self) -> None:
        procedure = self.procedure
        self.writer.line(f"// procedure {string(procedure.label)}")
        for buffer, value in zip(procedure.read_buffers, procedure.inputs, strict=True):
            self.buffers[buffer] = self.tensors.names[value]
        for buffer in procedure.written_buffers:
            self.buffers[buffer] = self.tensors.empty(buffer.type)
        self._axis(0)
        for buffer, result in zip(procedure.written_buffers, procedure.outputs, strict=True):
            self.tensors.names[result] = self.buffers[buffer]

    def _axis(self, depth: int) -> None:
        procedure = self.procedure
        if depth == len(procedure.axes):
            self._block(procedure.block)
            return
        axis = procedure.axes[depth]
        extent = Expressions(self.writer, self.names).value(axis.extent)
        bounds = (self.writer.index(0), extent, self.writer.index(1))
        written = self._written(procedure.block.ops)
        carried = [self.buffers[b] for b in written]
        with for_loop(self.writer, axis.name, bounds, carried, _types(written)) as counter:
            self.names[axis.name] = counter
            self._enter(written, carried)
            self._axis(depth + 1)
            carried[:] = [self.buffers[b] for b in written]
        self._enter(written, carried)

    def _enter(self, written: Sequence[SSAValue], names: Sequence[str]) -> None:
        self.buffers.update(zip(written, names, strict=True))

    def _written(self, ops: Iterable[Operation]) -> list[SSAValue]:
        """Returns the buffers from outside of `ops` that they write."""
        found: dict[SSAValue, None] = {}
        for op in ops:
            for inner in op.walk():
                if isinstance(inner, (StoreOp, AccumulateOp)):
                    buffer = self._root(inner.accessed)
                    if buffer in self.buffers:
                        found[buffer] = None
        return list(found)

    def _root(self, buffer: SSAValue) -> SSAValue:
        """Returns the buffer of which `buffer` is a view, at any depth."""
        while isinstance(buffer.owner, ViewOp):
            buffer = buffer.owner.source
        return buffer

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._statement(op)

    def _statement(self, op: Operation) -> None:
        if isinstance(op, AllocOp):
            self.buffers[op.result] = self.writer.let(
                "e",
                f"tensor.empty({Expressions(self.writer, self.names).values(_dynamic(op.result.type))}) : "
                f"{tensor_text(op.result.type)}",
            )
        elif isinstance(op, ViewOp):
            return  # Each access reshapes.
        elif isinstance(op, ForOp):
            self._for(op) if op.going is None else self._while(op, op.going)
        elif isinstance(op, IfOp):
            self._if(op)
        elif isinstance(op, MemoryOp):
            if op.lane is not None:
                raise self.writer.refuse(f"'{op.name}'", "a procedure accesses single elements")
            self._access(op)
        elif isinstance(op, (IndexOp, DotBytesOp)) or op.name.partition(".")[0] in ("arith", "math"):
            if isinstance(op, IndexOp) and op.lane is not None:
                raise self.writer.refuse(f"'{op.name}'", "a procedure has no vectors")
            write_scalar(self.writer, op, self.values, self.names)
        else:
            raise self.writer.refuse(f"'{op.name}' of procedure '{self.procedure.label}'", "it is no known statement")

    # -- control flow -------------------------------------------------------------------------------------------------

    def _for(self, op: ForOp) -> None:
        local = Expressions(self.writer, with_indirect(self.writer, op.indices, self.values, self.names))
        bounds = (local.value(op.first), local.value(op.end), self.writer.index(op.step))
        written = self._written(op.block.ops)
        carried = [self.buffers[b] for b in written]
        with for_loop(self.writer, op.axis, bounds, carried, _types(written)) as counter:
            self._enter(written, carried)
            self._within(op.axis, counter, op.block)
            carried[:] = [self.buffers[b] for b in written]
        self._enter(written, carried)

    def _within(self, axis: str, counter: str, block: Block) -> None:
        """Writes a block in which `axis` is known."""
        self.names[axis] = counter
        self._block(block)
        del self.names[axis]

    def _while(self, op: ForOp, going: SSAValue) -> None:
        """Writes a loop that ends before an iteration where the element of `going` is 0."""
        writer = self.writer
        local = Expressions(writer, with_indirect(writer, op.indices, self.values, self.names))
        first, end = local.value(op.first), local.value(op.end)
        written = self._written(op.block.ops)
        types = ["index", *_types(written)]
        name = writer.fresh("w")
        tests = [writer.fresh(op.axis), *(writer.fresh("t") for _ in written)]
        given = ", ".join(
            f"{t} = {v}" for t, v in zip(tests, [first, *(self.buffers[b] for b in written)], strict=True)
        )
        typed = ", ".join(types)
        writer.line(f"{heading(name, len(types))} = scf.while ({given}) : ({typed}) -> ({typed}) {{")
        with writer.deeper():
            self._enter(written, tests[1:])
            more = writer.let("in", f"arith.cmpi slt, {tests[0]}, {end} : index")
            kind = str(element_of(going.type))
            flag = writer.let("v", f"tensor.extract {self.buffers[self._root(going)]}[] : {tensor_text(going.type)}")
            zero = writer.let("zero", f"arith.constant {'false' if kind == 'i1' else f'0 : {kind}'}")
            goes = writer.let("in", f"arith.cmpi ne, {flag}, {zero} : {kind}")
            both = writer.let("in", f"arith.andi {more}, {goes} : i1")
            writer.line(f"scf.condition({both}) {', '.join(tests)} : {typed}")
        writer.line("} do {")
        inner = [writer.fresh(op.axis), *(writer.fresh("t") for _ in written)]
        writer.line(f"^bb0({', '.join(f'{n}: {t}' for n, t in zip(inner, types, strict=True))}):")
        with writer.deeper():
            self._enter(written, inner[1:])
            self._within(op.axis, inner[0], op.block)
            after = writer.let(op.axis, f"arith.addi {inner[0]}, {writer.index(op.step)} : index")
            writer.line(f"scf.yield {', '.join([after, *(self.buffers[b] for b in written)])} : {typed}")
        writer.line("}")
        self._enter(written, parts(name, len(types))[1:])

    def _if(self, op: IfOp) -> None:
        local = Expressions(self.writer, with_indirect(self.writer, op.indices, self.values, self.names))
        self._conditional(local.holds(op.guards), self._written([op]), lambda: self._block(op.block))

    def _conditional(self, holds: str, written: Sequence[SSAValue], inside: Callable[[], None]) -> None:
        """Writes `inside` if `holds`; the buffers are unchanged otherwise."""
        writer = self.writer
        before = [self.buffers[b] for b in written]
        types = ", ".join(_types(written))
        name = writer.fresh("t")
        writer.line(
            f"{heading(name, len(written))} = scf.if {holds} -> ({types}) {{" if written else f"scf.if {holds} {{"
        )
        with writer.deeper():
            inside()
            if written:
                writer.line(f"scf.yield {', '.join(self.buffers[b] for b in written)} : {types}")
        if written:
            writer.line("} else {")
            with writer.deeper():
                writer.line(f"scf.yield {', '.join(before)} : {types}")
        writer.line("}")
        self._enter(written, parts(name, len(written)))

    # -- accesses -----------------------------------------------------------------------------------------------------

    def _seen(self, buffer: SSAValue) -> str:
        """Writes the current tensor of a buffer or of a view."""
        if not isinstance(buffer.owner, ViewOp):
            return self.buffers[buffer]
        source = buffer.owner.source
        return self._reshaped(self._seen(source), source, buffer)

    def _reshaped(self, tensor: str, source: SSAValue, into: SSAValue) -> str:
        return self.tensors.reshaped(tensor, source.type, dims_of(into.type), into.type)

    def _access(self, op: MemoryOp) -> None:
        if isinstance(op, LoadOp):
            source = self._seen(op.buffer)
            self.values[op.result] = write_extract(self.writer, op, source, op.otherwise, self.values, self.names)
            return
        assert isinstance(op, (StoreOp, AccumulateOp))
        local = Expressions(self.writer, with_indirect(self.writer, op.indices, self.values, self.names))
        if op.guards:
            self._conditional(local.holds(op.guards), [self._root(op.accessed)], lambda: self._insert(op, local))
        else:
            self._insert(op, local)

    def _insert(self, op: StoreOp | AccumulateOp, local: Expressions) -> None:
        buffer = op.accessed
        kind, value, tensor = tensor_text(buffer.type), self.values[op.value], self._seen(buffer)
        at = local.values(op.subscripts)
        if isinstance(op, AccumulateOp):
            old = self.writer.let("v", f"tensor.extract {tensor}[{at}] : {kind}")
            value = write_combined(self.writer, op.combiner, element_of(buffer.type), old, value)
        made = self.writer.let("t", f"tensor.insert {value} into {tensor}[{at}] : {kind}")
        while isinstance(buffer.owner, ViewOp):
            made = self._reshaped(made, buffer, buffer.owner.source)
            buffer = buffer.owner.source
        self.buffers[buffer] = made


def _types(buffers: Sequence[SSAValue]) -> list[str]:
    return [tensor_text(b.type) for b in buffers]


def _dynamic(kind: Attribute) -> list[Expr]:
    return [d for d in dims_of(kind) if d.constant is None]
