"""Reductions that no combiner expresses, such as the maximum with its index: a procedure in the order of the axes.

parallel axes                   axes of the procedure
reduction axes                  sequential loops, in the op's order
outputs                         variables, with their initial values; stored after the loops
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering.builder import Subscript
from igniter.dialects.onnx.lowering.procedure import Procedure, Variable
from igniter.dialects.onnx.lowering.scalar import Scalar
from igniter.dialects.sym import axis_ranges, dims_of, element_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.proofs import proven
from igniter.transforms.conversion.linalg.bodies import BodyEmitter, Reads
from igniter.transforms.conversion.linalg.errors import refused
from igniter.transforms.conversion.linalg.space import Space
from igniter.transforms.conversion.linalg.values import Scope


class _BufferReads(Reads):
    """The reads of a procedure: by `loop.load`, from the buffers of its operands."""

    def __init__(self, procedure: Procedure, buffers: dict[SSAValue, SSAValue], extents: dict[str, Expr]):
        super().__init__(procedure)
        self.procedure = procedure
        self.buffers = buffers
        self.extents = extents

    def read(
        self, source: SSAValue, at: Sequence[Subscript], guards: Sequence[Expr] = (), indices: Sequence[Scalar] = ()
    ) -> Scalar:
        return self.read_inside(source, at, guards, indices)

    def read_inside(
        self, source: SSAValue, at: Sequence[Subscript], guards: Sequence[Expr], indices: Sequence[Scalar]
    ) -> Scalar:
        constant = self.procedure.kernel.constants.get(source)
        if constant is not None:
            return self.procedure.const(constant, element_of(source.type))
        ranges = axis_ranges(self.extents.items())
        plain = [
            fact
            for subscript, dim in zip(at, dims_of(source.type), strict=True)
            if isinstance(subscript, Expr)
            for fact in (subscript, dim - 1 - subscript)
            if not proven(fact, ranges)
        ]
        # Guards by data select the value; the load itself is inside of the buffer in any case.
        known = [g for g in guards if not any(s.startswith("_") for s in g.symbols)]
        return self.procedure.load(self.buffers[source], at, guards=[*plain, *known])


def lower_recurrence(space: Space, numbers: Sequence[int]) -> None:
    """Lowers the outputs `numbers` of an op together."""
    scope, op, body = space.scope, space.op, space.structure.body
    outputs = body.args[len(op.inputs) :]
    every = range(len(op.outputs))
    sources = _sources(space)
    types = [space.output_type(k) for k in numbers]
    procedure = Procedure(scope.kernel, space.label, sources, types)
    buffers = dict(zip(sources, procedure.buffers, strict=False))
    kinds = space.structure.kinds
    axes: dict[int, Expr] = {
        k: procedure.parallel(extent) for k, extent in enumerate(space.extents) if kinds[k] == "parallel"
    }
    extents = {e.symbol: space.extents[k] for k, e in axes.items() if e.symbol is not None}
    reads = _BufferReads(procedure, buffers, extents)
    variables: list[Variable] = []
    for k in every:
        start = reads.read(scope.tensor(op.outputs[k], op), _place(space, k, axes))
        variables.append(procedure.variable(BodyEmitter.typed(start), f"out{k}"))
    with ExitStack() as stack:
        for k, extent in enumerate(space.extents):
            if kinds[k] != "parallel":
                axes[k] = stack.enter_context(procedure.sequential(extent))
                extents[axes[k].symbol or ""] = extent
        point = [axes[k] for k in range(len(kinds))]
        emitter = BodyEmitter(scope, reads, point, dict(extents), op)
        for number, (value, arg) in enumerate(zip(space.operands, body.args, strict=True)):
            if arg.first_use is not None and arg not in outputs:
                space.bind(emitter, number, value, arg, point)
        for k, variable in enumerate(variables):
            emitter.scalars[outputs[k]] = variable.get()
        made = [emitter.scalar(v, op) for v in emitter.emit(body)]
        for variable, value in zip(variables, made, strict=True):
            variable.set(value)
    for place, k in enumerate(numbers):
        buffer = procedure.buffers[len(sources) + place]
        value = variables[k].get()
        element = element_of(types[place])
        procedure.store(Scalar(procedure, value.value, element), buffer, _place(space, k, axes))
    for k, result in zip(numbers, procedure.end(), strict=True):
        scope.values[op.res[k]] = result


def _place(space: Space, output: int, axes: dict[int, Expr]) -> list[Expr]:
    """Returns the element of an output at a point of the parallel axes."""
    known = [axes.get(k, Expr.of(0)) for k in range(len(space.extents))]
    return space.place(len(space.op.inputs) + output, known)


def _sources(space: Space) -> list[SSAValue]:
    """Returns the tensors that the op reads, each once: operands, and what its body extracts from."""
    scope: Scope = space.scope
    found: dict[SSAValue, None] = {}
    for value in space.operands:
        if scope.known(value, space.op) is None:
            found[scope.tensor(value, space.op)] = None
    for op in space.structure.body.walk():
        for value in op.operands:
            if value in scope.values and scope.known(value, op) is None:
                if dims_of(scope.tensor(value, op).type) and not isinstance(op, (tensor.ExtractOp, tensor.DimOp)):
                    raise refused(op, f"the body uses the whole tensor {value.type}; read it by tensor.extract")
                found[scope.tensor(value, op)] = None
    return [v for v in found if v not in scope.kernel.constants]
