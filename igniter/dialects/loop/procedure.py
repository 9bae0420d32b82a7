"""`loop.procedure`: an algorithm beyond nests of parallel and reduction axes, as scheduled-level code on the structured
level.

    op ::= %r... = loop.procedure "name" [axis: parallel extent, ...] (computes #algorithm)? (schedule [..])?
               (%buffer = %tensor, ...) -> (%buffer : tensor, ...) { stmt* }

The statements are those of the scheduled level (see `scheduled.py`). They access one memref for each operand and
result, and local buffers. The body runs once for every point of the axes, in any order or concurrently; every element
of every result is written by some point. The body only reads its operands.

    %y = loop.procedure "cumsum" [i: parallel n] (%x = %input) -> (%o : tensor<?x8xf32, #sym.dims<n, 8>>) {
      %sum = loop.alloc "sum" : memref<f32, "register">
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %sum[]
      loop.for k = 0 to 8 sequential {
        %v = loop.load %x[i, k] : f32
        loop.accumulate add %v, %sum[]
        %s = loop.load %sum[] : f32
        loop.store %s, %o[i, k]
      }
    }

The passes over nests treat a procedure as a black box: they neither inspect nor move it. `lower-to-loops` puts loops
over the axes around the body.

`computes` states the algorithm of the body (see `algorithms.py`), for backends that compute it another way. A schedule
with `launch` is for such a backend: its loops are over the dims of the algorithm.

The verifier checks the independence of points: in every access to a result, each axis is a bare subscript, in the same
dim for all accesses. An indirect subscript has a lower and an upper guard, so no value of a tensor leads outside a
buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoMemoryEffect, NoTerminator
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.loop.algorithms import ALGORITHMS, Algorithm
from igniter.dialects.loop.attrs import INDIRECT_PREFIX, AxesAttr, Axis, parse_axes, render_axes
from igniter.dialects.loop.bodies import parse_value
from igniter.dialects.loop.func import verify_block
from igniter.dialects.loop.memory import LoadOp, MemoryOp
from igniter.dialects.loop.schedule import ScheduleAttr, parse_schedule, schedule_reason
from igniter.dialects.loop.scheduled import ForOp
from igniter.dialects.loop.structured import ComputeOp, ViewOp
from igniter.dialects.loop.tiles import TileProductOp
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import Expr, symbols_of


def buffer_type(tensor: Attribute) -> Attribute:
    """Returns the type of the memref in the body for a tensor."""
    return memref_of(element_of(tensor), dims_of(tensor))


@irdl_op_definition
class ProcedureOp(ComputeOp):
    """Statements over buffers for each point of parallel axes; the op computes tensors from tensors."""

    name = "loop.procedure"
    inputs = var_operand_def(TensorType)
    computes_attr = opt_prop_def(Attribute, prop_name="computes")
    traits = traits_def(NoMemoryEffect(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self,
        label: str,
        axes: Iterable[Axis],
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
        schedule: ScheduleAttr | None = None,
        computes: Algorithm | None = None,
    ):
        properties = {"label": StringAttr(label), "axes": AxesAttr(axes), "schedule": schedule, "computes": computes}
        super().__init__(
            operands=[list(inputs)],
            properties=properties,
            result_types=[result_types],
            regions=[body],
        )

    @property
    def read_buffers(self) -> tuple[SSAValue, ...]:
        """The block arguments of the operands."""
        return tuple(self.block.args[: len(self.inputs)])

    @property
    def written_buffers(self) -> tuple[SSAValue, ...]:
        """The block arguments of the results."""
        return tuple(self.block.args[len(self.inputs) :])

    @property
    def computes(self) -> Algorithm | None:
        """What the body computes, if the lowering that wrote it says so."""
        found = self.computes_attr
        return found if isinstance(found, ALGORITHMS) else None

    @property
    def loops_inside(self) -> Sequence[str]:
        return [op.axis for op in self.block.walk() if isinstance(op, ForOp)]

    def schedule_refusal(self, schedule: ScheduleAttr) -> str | None:
        if schedule.launch is None or self.computes is None:
            return super().schedule_refusal(schedule)
        used = {loop.axis for loop in schedule.loops}
        axes = {dim: "parallel" for dim in self.computes.dims if dim in used}
        return schedule_reason(schedule, axes, ())

    def _verify_algorithm(self) -> None:
        if self.computes_attr is None:
            return
        if self.computes is None:
            raise VerifyException(f"{self.computes_attr} is no algorithm of a procedure")
        reason = self.computes.reason([v.type for v in self.inputs], [v.type for v in self.outputs])
        if reason is not None:
            raise VerifyException(f"procedure '{self.label}' does not compute {self.computes}: {reason}")

    def verify_(self) -> None:
        names = [a.name for a in self.axes]
        if len(set(names)) != len(names):
            raise VerifyException("the axes of a procedure must have different names")
        if any(a.kind != "parallel" for a in self.axes):
            raise VerifyException(
                "the axes of a procedure must be parallel; write sequential computation as a loop in its body"
            )
        wanted = [buffer_type(v.type) for v in (*self.inputs, *self.outputs)]
        if [a.type for a in self.block.args] != wanted:
            raise VerifyException("the buffers of a procedure do not match its operands and results")
        inputs = set(self.read_buffers)
        for op in self.block.walk():
            if isinstance(op, TileProductOp):
                raise VerifyException("a micro-kernel is a choice of the schedule; it cannot be in a procedure")
            if isinstance(op, MemoryOp):
                if op.accessed in inputs and not isinstance(op, LoadOp):
                    raise VerifyException("a procedure cannot write an operand")
                _verify_guarded(op)
            if isinstance(op, ViewOp) and op.source in self.written_buffers and self._wide():
                raise VerifyException(
                    "a view of a result is not allowed: it hides which iteration writes which element"
                )
        for buffer in self.written_buffers:
            self._verify_apart(buffer)
        self._verify_algorithm()
        self.verify_schedule()

    def _wide(self) -> list[Axis]:
        return [a for a in self.axes if a.extent.constant != 1]

    def place_of(self, axis: str, buffer: SSAValue) -> int | None:
        """Returns the dim with the axis as a bare subscript in every access to a buffer; None if no dim has."""
        accesses = [use.operation for use in buffer.uses if isinstance(use.operation, MemoryOp)]
        name = Expr.of(axis)
        places = range(len(dims_of(buffer.type)))
        return next((k for k in places if all(op.subscripts[k] == name for op in accesses)), None)

    def _verify_apart(self, buffer: SSAValue) -> None:
        """Checks every access to a result: each axis must be a bare subscript, always in the same dim."""
        for axis in self._wide():
            if self.place_of(axis.name, buffer) is None:
                raise VerifyException(
                    f"iterations along '{axis.name}' of '{self.label}' may access the same element of {buffer.type}"
                )

    def verify_names(self, symbols: frozenset[str]) -> None:
        super().verify_names(symbols)
        verify_block(self.block, symbols | {a.name for a in self.axes}, set())

    @classmethod
    def parse(cls, parser: Parser) -> ProcedureOp:
        label = parser.parse_str_literal("procedure label")
        axes = parse_axes(parser)
        computes = parser.parse_attribute() if parser.parse_optional_keyword("computes") is not None else None
        if computes is not None and not isinstance(computes, ALGORITHMS):
            parser.raise_error(f"{computes} is no algorithm of a procedure")
        schedule = parse_schedule(parser, label)
        read = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_input(parser))
        parser.parse_characters("->")
        written = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        types = [a.type for a in written]
        arguments = [
            *(argument.resolve(buffer_type(tensor.type)) for argument, tensor in read),
            *(Parser.Argument(a.name, buffer_type(a.type)) for a in written),
        ]
        body = parser.parse_region(arguments)
        return cls(label, axes, [tensor for _, tensor in read], types, body, schedule, computes)

    def print(self, printer: Printer) -> None:
        def bind(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" = ")
            printer.print_ssa_value(pair[1])

        def result(pair: tuple[SSAValue, SSAValue]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" : ")
            printer.print_attribute(pair[1].type)

        printer.print_string(" ")
        printer.print_string_literal(self.label)
        printer.print_string(f" [{render_axes(self.axes)}]")
        if self.computes is not None:
            printer.print_string(" computes ")
            printer.print_attribute(self.computes)
        if self.schedule is not None:
            printer.print_string(f" schedule {self.schedule}")
        printer.print_string(" (")
        printer.print_list(zip(self.read_buffers, self.inputs, strict=True), bind)
        printer.print_string(") -> (")
        printer.print_list(zip(self.written_buffers, self.outputs, strict=True), result)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)


def _parse_input(parser: Parser) -> tuple[Parser.UnresolvedArgument, SSAValue]:
    """Parses `%buffer = %tensor`."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parse_value(parser)


def _verify_guarded(op: MemoryOp) -> None:
    """Checks the guards of an indirect operand used in a subscript: it needs a lower and an upper one."""
    for k in range(len(op.indices)):
        name = f"{INDIRECT_PREFIX}{k}"
        if name not in symbols_of(op.subscripts):
            continue
        signs = {
            (c.constant or 0) > 0 for c in (g.coefficient(name) for g in op.guards) if c is not None and c.constant
        }
        if len(signs) != 2:
            raise VerifyException(
                f"the indirect subscript {name} of '{op.name}' needs guards for both its lower and its upper bound"
            )


__all__ = ["ProcedureOp", "buffer_type"]
