"""A builder of `loop.procedure`s that lets the lowering of an op read like a short algorithm.

    p = ctx.procedure([x], [ctx.output_type()])             cumulative sums along the second of three dims
    source, target = p.buffers
    i, j = p.parallel(n), p.parallel(m)
    total = p.variable(p.const(0, f32))
    with p.sequential(k) as t:
        total.set(total.get() + p.load(source, [i, t, j]))
        p.store(total.get(), target, [i, t, j])
    return p.end()

Scalars are those of a nest's body (`Scalar`), with the same operators. A `Scalar` used as a subscript is bounds-checked
against its dim: a load outside gives 0 (or `otherwise`), and a store outside is skipped.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from igniter.dialects.loop import (
    AccumulateOp,
    Algorithm,
    AllocOp,
    Combiner,
    ForOp,
    IfOp,
    IfSharedOp,
    LoadOp,
    ProcedureOp,
    StoreOp,
)
from igniter.dialects.loop.dead_values import erase_dead_values
from igniter.dialects.loop.procedure import buffer_type
from igniter.dialects.onnx.lowering.builder import KernelBuilder, Nest, Subscript
from igniter.dialects.onnx.lowering.scalar import Number, Scalar, compute_type
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ZERO, Expr, ExprLike

Bound = Expr | int | Scalar
"""A bound of a loop: an expression over axes and symbols, or an i64 computed before it."""


class Variable:
    """A mutable scalar of a procedure, read and written in its loops."""

    def __init__(self, procedure: Procedure, buffer: SSAValue):
        self.procedure = procedure
        self.buffer = buffer

    def get(self) -> Scalar:
        return self.procedure.load(self.buffer, [])

    def set(self, value: Scalar | Number) -> None:
        self.procedure.store(value, self.buffer, [])


class Procedure(Nest):
    """A `loop.procedure` under construction: first its axes, then its statements, then `end`."""

    def __init__(self, kernel: KernelBuilder, label: str, inputs: Sequence[SSAValue], results: Sequence[Attribute]):
        super().__init__(kernel, label)
        self.inputs = list(inputs)
        self.results = list(results)
        self.body = Block(arg_types=[buffer_type(t) for t in (*(v.type for v in inputs), *results)])
        self.block = self.body
        self._loops = 0

    @property
    def buffers(self) -> list[SSAValue]:
        """The buffers of the operands, then of the results."""
        return list(self.body.args)

    # -- control -------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, end: Bound, first: Bound = 0) -> Generator[Expr]:
        """Opens a loop with independent iterations."""
        with self._for(first, end) as axis:
            yield axis

    @contextmanager
    def fold(self, end: Bound, first: Bound = 0) -> Generator[Expr]:
        """Opens a reduction loop: its iterations depend on each other only through accumulations, so their order is
        free."""
        with self._for(first, end, reduction=True) as axis:
            yield axis

    @contextmanager
    def sequential(self, end: Bound, first: Bound = 0, going: Variable | None = None) -> Generator[Expr]:
        """Opens a loop with ordered iterations that ends once `going`, an integer or a bool, is 0."""
        with self._for(first, end, sequential=True, going=going) as axis:
            yield axis

    @contextmanager
    def _for(
        self,
        first: Bound,
        end: Bound,
        *,
        reduction: bool = False,
        sequential: bool = False,
        going: Variable | None = None,
    ) -> Generator[Expr]:
        indices: list[SSAValue] = []
        bounds = [self._expr(e, indices) for e in (first, end)]
        name = self._fresh_axis("k" if sequential else "r" if reduction else "j")
        body = Block()
        buffer = None if going is None else going.buffer
        op = ForOp(
            name,
            bounds[0],
            bounds[1],
            body,
            reduction=reduction,
            sequential=sequential,
            indices=indices,
            going=buffer,
        )
        self.block.add_op(op)
        with self._inside(body):
            yield Expr.of(name)

    @contextmanager
    def when(self, *conditions: Scalar | Expr) -> Generator[None]:
        """Opens a conditional: every bool must be true and every expression >= 0."""
        guards: list[Expr] = []
        indices: list[SSAValue] = []
        for each in conditions:
            if isinstance(each, Scalar):
                guards.append(self._expr(each.to(i64), indices) - 1)
            else:
                guards.append(each)
        body = Block()
        self.block.add_op(IfOp(guards, body, indices))
        with self._inside(body):
            yield

    @contextmanager
    def within(self, *places: tuple[Scalar, Expr]) -> Generator[None]:
        """Opens a conditional: every index must be within its dim."""
        guards: list[Expr] = []
        indices: list[SSAValue] = []
        for index, dim in places:
            name = self._expr(index, indices)
            guards += [name, dim - 1 - name]
        body = Block()
        self.block.add_op(IfOp(guards, body, indices))
        with self._inside(body):
            yield

    @contextmanager
    def if_shared(self, first: SSAValue, second: SSAValue, shared: bool) -> Generator[None]:
        """Opens a conditional: two buffers are one buffer of the caller (`shared`), or they are not."""
        body, other = Block(), Block()
        blocks = (body, other) if shared else (other, body)
        self.block.add_op(IfSharedOp(first, second, *blocks))
        with self._inside(body):
            yield

    @contextmanager
    def _inside(self, body: Block) -> Generator[None]:
        outer, values = self.block, self._values
        # Values computed outside are available inside, but not the reverse.
        self.block, self._values = body, dict(values)
        try:
            yield
        finally:
            self.block, self._values = outer, values

    def _expr(self, bound: Bound, indices: list[SSAValue]) -> Expr:
        if not isinstance(bound, Scalar):
            return Expr.of(bound)
        indices.append(bound.to(i64).value)
        return Expr.of(f"_{len(indices) - 1}")

    def _fresh_axis(self, prefix: str) -> str:
        while True:
            name = f"{prefix}{self._loops}"
            self._loops += 1
            if name not in self.kernel.reserved:
                return name

    # -- memory --------------------------------------------------------------------------------------------------------

    def local(self, element: Attribute, dims: Sequence[ExprLike], name: str = "local") -> SSAValue:
        """Allocates an uninitialised buffer, private to the point. Its dims are expressions of symbols."""
        return self._allocate(name, memref_of(element, dims, "local" if dims else "register"))

    def variable(self, value: Scalar, name: str = "variable") -> Variable:
        """Creates a variable with the type and initial value of `value`."""
        made = Variable(self, self._allocate(name, memref_of(value.element, [], "register")))
        made.set(value)
        return made

    def _allocate(self, name: str, kind: Attribute) -> SSAValue:
        op = AllocOp(name, kind)
        self.block.add_op(op)
        return op.result

    def load(
        self,
        buffer: SSAValue,
        subscripts: Sequence[Subscript],
        *,
        guards: Sequence[Expr] = (),
        otherwise: Scalar | Number | None = None,
    ) -> Scalar:
        """Loads the element of `buffer` at `subscripts`; gives `otherwise` (default 0) if a `Scalar` subscript is out
        of bounds."""
        element = element_of(buffer.type)
        at, indices, conditions = self._places(buffer, subscripts)
        if otherwise is not None and not isinstance(otherwise, Scalar):
            otherwise = self.const(otherwise, element)
        fallback = None if otherwise is None else otherwise.value
        op = LoadOp(buffer, at, indices=indices, guards=[*conditions, *guards], otherwise=fallback)
        self.block.add_op(op)
        return Scalar(self, op.result, element)

    def store(
        self, value: Scalar | Number, buffer: SSAValue, subscripts: Sequence[Subscript], *, guards: Sequence[Expr] = ()
    ) -> None:
        """Stores an element; does nothing if a `Scalar` subscript is out of bounds."""
        at, indices, conditions = self._places(buffer, subscripts)
        stored = self._converted(value, buffer)
        self.block.add_op(StoreOp(stored.value, buffer, at, indices=indices, guards=[*conditions, *guards]))

    def accumulate(
        self,
        combiner: Combiner,
        value: Scalar | Number,
        buffer: SSAValue,
        subscripts: Sequence[Subscript],
        *,
        guards: Sequence[Expr] = (),
    ) -> None:
        """Combines a value into an element, in the element's own type."""
        at, indices, conditions = self._places(buffer, subscripts)
        op = AccumulateOp(
            combiner,
            self._converted(value, buffer).value,
            buffer,
            at,
            indices=indices,
            guards=[*conditions, *guards],
        )
        self.block.add_op(op)

    def _converted(self, value: Scalar | Number, buffer: SSAValue) -> Scalar:
        element = element_of(buffer.type)
        if not isinstance(value, Scalar):
            return self.const(value, element)
        if value.element != element and compute_type(element) != value.element:
            raise TypeError(f"procedure '{self.label}' stores {value.element} in {buffer.type}")
        return value.to(element)

    def _places(
        self, buffer: SSAValue, subscripts: Sequence[Subscript]
    ) -> tuple[list[Expr], list[SSAValue], list[Expr]]:
        at: list[Expr] = []
        indices: list[SSAValue] = []
        guards: list[Expr] = []
        for subscript, dim in zip(subscripts, dims_of(buffer.type), strict=True):
            if isinstance(subscript, Scalar):
                known = subscript.number
                if known is not None and dim.constant is not None and 0 <= known < dim.constant:
                    at.append(Expr.of(int(known)))
                    continue
                name = self._expr(subscript, indices)
                guards += [name, dim - 1 - name]
                at.append(name)
            else:
                at.append(Expr.of(subscript))
        return at, indices, guards

    # -- shorthands ----------------------------------------------------------------------------------------------------

    @contextmanager
    def over(self, dims: Sequence[ExprLike]) -> Generator[list[Expr]]:
        """Opens independent loops over all of `dims`; a dim of 1 needs none."""
        with ExitStack() as stack:
            yield [ZERO if Expr.of(d) == 1 else stack.enter_context(self.loop(Expr.of(d))) for d in dims]

    @contextmanager
    def in_order(self, dims: Sequence[ExprLike]) -> Generator[list[Expr]]:
        """Opens sequential loops over all of `dims`, in row-major order."""
        with ExitStack() as stack:
            yield [ZERO if Expr.of(d) == 1 else stack.enter_context(self.sequential(Expr.of(d))) for d in dims]

    def copy(self, source: SSAValue, target: SSAValue, fixed: Sequence[Expr | None] = ()) -> None:
        """Copies a buffer element by element; a dim with an entry in `fixed` is copied only at that subscript."""
        dims = dims_of(target.type)
        kept = list(fixed) or [None] * len(dims)
        with self.over([d if at is None else 1 for d, at in zip(dims, kept, strict=True)]) as found:
            at = [f if k is None else k for f, k in zip(found, kept, strict=True)]
            self.store(self.load(source, at), target, at)

    def true(self) -> Scalar:
        return self.const(True, i1)

    # -- end -----------------------------------------------------------------------------------------------------------

    def end(self, computes: Algorithm | None = None) -> tuple[SSAValue, ...]:
        """Ends the body and appends the procedure to the kernel. `computes` states the algorithm of the body."""
        erase_dead_values(self.body)
        label = self.kernel.unique(self.label)
        op = ProcedureOp(label, self._axes, self.inputs, self.results, Region(self.body), computes=computes)
        self.kernel.block.add_op(op)
        return tuple(op.outputs)


__all__ = ["Bound", "Procedure", "Variable"]
