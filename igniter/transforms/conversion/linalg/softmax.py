"""`linalg.softmax` as nests: the maximum, the exponentials, their sum, and the quotients."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from igniter.dialects.linalg import SoftmaxOp
from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.transforms.conversion.linalg.space import finish
from igniter.transforms.conversion.linalg.values import Scope


def lower_softmax(scope: Scope, op: SoftmaxOp) -> None:
    """Lowers a softmax; records its result."""
    source = scope.tensor(op.inputs[0], op)
    dims, element, axis = dims_of(source.type), element_of(source.type), op.dimension.value.data
    for a, b in zip(dims, scope.dims(op.outputs[0], op), strict=True):
        scope.facts.equal(op, a, b, "the dims of the operands differ")
    wide, kernel = compute_type(element), scope.kernel
    row = tensor_of(wide, [ONE if k == axis else d for k, d in enumerate(dims)])

    def fold(part: str, combiner: Combiner, tensor: SSAValue) -> SSAValue:
        nest = kernel.nest(f"softmax.{part}")
        at = [ZERO if k == axis else nest.parallel(d) for k, d in enumerate(dims)]
        inside = nest.reduction(dims[axis])
        place = [inside if k == axis else i for k, i in enumerate(at)]
        value = nest.read(tensor, place).widened()
        return nest.finish((combiner, value, at, row))[0]

    def at_row(place: Sequence[Expr]) -> list[Expr]:
        return [ZERO if k == axis else i for k, i in enumerate(place)]

    top = fold("max", "max", source)
    nest = kernel.nest("softmax.exp")
    axes = nest.axes(dims)
    shifted = nest.read(source, axes).widened() - nest.read(top, at_row(axes))
    (powers,) = nest.finish(("none", shifted.exp(nonpositive=True), axes, tensor_of(wide, dims)))
    total = fold("sum", "add", powers)
    nest = kernel.nest("softmax")
    axes = nest.axes(dims)
    value = nest.read(powers, axes) / nest.read(total, at_row(axes))
    scope.values[op.res[0]] = finish(nest, value, axes, tensor_of(element, dims))
