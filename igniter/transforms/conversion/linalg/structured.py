"""`linalg` ops with a structure, as nests of a kernel.

Without reduction axes, an output is one nest. With them, an output that is folded by a combiner is one nest over all
axes, and another for the initial value unless it is the identity; any other recurrence is a procedure (`general`).
Every output is computed by itself, so an unused one costs nothing. The dims of operands at bare axes are equal to the
extents; other subscripts must stay inside of their dims.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.linalg.structure import StructuredOp
from igniter.dialects.loop.attrs import Combiner, is_float
from igniter.dialects.onnx.lowering.scalar import Number, Scalar
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr, linearize
from igniter.dialects.sym.requirements import FINE, DataCheck
from igniter.transforms.conversion.linalg.bodies import BodyEmitter, needs_check
from igniter.transforms.conversion.linalg.errors import place_of, refused
from igniter.transforms.conversion.linalg.folds import Fold, depends_on, fold_of, is_identity, products_in_sums
from igniter.transforms.conversion.linalg.general import lower_recurrence
from igniter.transforms.conversion.linalg.known import Known
from igniter.transforms.conversion.linalg.space import Space, axes_in, discard, extents_of, finish, require_inside
from igniter.transforms.conversion.linalg.values import Empty, Scope, Value


def lower_structured(scope: Scope, op: StructuredOp) -> None:
    """Lowers an op with a structure; records its results."""
    structure = op.structure()
    space = Space(scope, op, structure, extents_of(scope, op, structure))
    require_inside(space)
    outputs = structure.body.args[len(op.inputs) :]
    terminator = structure.body.last_op
    assert terminator is not None
    recurrences: list[int] = []
    for number, result in enumerate(op.res):
        if result.first_use is None:
            continue
        yielded = terminator.operands[number]
        if "reduction" not in structure.kinds:
            scope.values[result] = _pointwise(space, number)
            continue
        fold = fold_of(structure.body, outputs[number], yielded, outputs)
        if fold is not None and not _keeps_nan(space, number, fold):
            scope.values[result] = _folded(space, number, fold)
        else:
            recurrences.append(number)
    if recurrences:
        lower_recurrence(space, recurrences)
    if needs_check(structure.body):
        _check(space)


def _keeps_nan(space: Space, number: int, fold: Fold) -> bool:
    """True for a maximum of numbers whose initial value may be NaN: its fold is no combiner."""
    if not fold.skips_nan:
        return False
    init = space.scope.values.get(space.op.outputs[number])
    value = space.scope.kernel.constants.get(init) if isinstance(init, SSAValue) else None
    return value is None or value != value


# -- outputs ----------------------------------------------------------------------------------------------------------


def _pointwise(space: Space, number: int) -> SSAValue:
    """Returns an output of an op without reductions."""
    splat = _copied_number(space, number)
    if splat is not None:
        return splat
    nest = space.scope.kernel.nest(space.label)
    axes = axes_in(space, nest, number)
    emitter = space.emitter(nest, axes)
    value = emitter.scalar(emitter.emit(space.structure.body)[number], space.op)
    place = space.place(len(space.op.inputs) + number, axes)
    return finish(nest, value, place, space.output_type(number))


def _copied_number(space: Space, number: int) -> SSAValue | None:
    """Returns the output of a fill by a constant: a tensor of one number, which readers get at no cost."""
    terminator = space.structure.body.last_op
    assert terminator is not None
    value = terminator.operands[number]
    if value not in space.structure.body.args:
        return None
    number_of = next(k for k, arg in enumerate(space.structure.body.args) if arg is value)
    constant = _number(space.scope, space.scope.of(space.operands[number_of], space.op))
    return None if constant is None else space.scope.kernel.splat(constant, space.output_type(number))


def _number(scope: Scope, found: Value) -> Number | None:
    """Returns the one number that a value repeats; None if its elements differ or are unknown."""
    if isinstance(found, SSAValue):
        return scope.kernel.constants.get(found)
    if isinstance(found, Known):
        if isinstance(found.number, FloatAttr):
            return float(found.number.value.data)
        if found.truth is not None:
            return None if found.truth.constant is None else found.truth.constant >= 0
        return None if found.expr is None else found.expr.constant
    return 0 if isinstance(found, Empty) else None


def _folded(space: Space, number: int, fold: Fold) -> SSAValue:
    """Returns an output folded by a combiner."""
    kernel, combiner = space.scope.kernel, fold.combiner
    target = space.output_type(number)
    element = element_of(target)
    accumulated = fold.accumulator(element)
    nest = kernel.nest(space.label)
    axes = axes_in(space, nest, number)
    emitter = space.emitter(nest, axes)
    emitter.wide = products_in_sums(space.structure.body, fold.terms)
    emitter.emit(space.structure.body)
    value = _term(emitter, space, fold, accumulated)
    place = space.place(len(space.op.inputs) + number, axes)
    made = nest.finish((combiner, value, place, tensor_of(accumulated, dims_of(target))))[0]
    return _with_initial(space, number, fold, made)


def _term(emitter: BodyEmitter, space: Space, fold: Fold, accumulated: Attribute) -> Scalar:
    """Returns the value that a point adds to the fold."""
    found: Scalar | None = None
    for term in fold.terms:
        value = emitter.scalar(term, space.op)
        value = Scalar(value.nest, value.value, accumulated) if not is_float(accumulated) else value.to(accumulated)
        if fold.skips_nan:
            least = float("-inf") if fold.combiner == "max" else float("inf")
            value = value.is_nan().select(least, value)
        found = value if found is None else combine(fold.combiner, found, value)
    assert found is not None
    if not fold.subtracts:
        return found
    return -found if is_float(accumulated) else found.nest.const(0, accumulated) - found


def combine(combiner: Combiner, a: Scalar, b: Scalar) -> Scalar:
    """Returns two values of a fold combined."""
    if combiner == "add":
        return a ^ b if a.is_bool else a + b
    if combiner == "mul":
        return a & b if a.is_bool else a * b
    if combiner == "max":
        return a | b if a.is_bool else a.maximum(b)
    if combiner == "min":
        return a & b if a.is_bool else a.minimum(b)
    return a & b if combiner == "and" else a | b if combiner == "or" else a ^ b


def _with_initial(space: Space, number: int, fold: Fold, folded: SSAValue) -> SSAValue:
    """Returns a fold combined with the initial value of its output, in the output's type."""
    scope, target = space.scope, space.output_type(number)
    initial = scope.of(space.op.outputs[number], space.op)
    accumulated = element_of(folded.type)
    constant = scope.kernel.constants.get(initial) if isinstance(initial, SSAValue) else None
    plain = isinstance(initial, Empty) or is_identity(constant, fold.combiner, accumulated)
    if plain and accumulated == element_of(target):
        return folded
    nest = scope.kernel.nest(f"{space.label}.init" if not plain else f"{space.label}.round")
    axes = nest.axes(dims_of(target))
    value = nest.read(folded, axes)
    if not plain:
        start = nest.read(scope.tensor(space.op.outputs[number], space.op), axes)
        start = start.to(accumulated) if is_float(accumulated) else Scalar(nest, start.value, accumulated)
        value = combine(fold.combiner, start, value)
    return finish(nest, value, axes, target)


# -- checks -----------------------------------------------------------------------------------------------------------


def _check(space: Space) -> None:
    """Adds the checks of a body's assertions: each folds the place of a failing point, in row-major order."""
    kernel = space.scope.kernel
    nest = kernel.nest(f"{space.label}.check")
    axes = axes_in(space, nest, None)
    emitter = space.emitter(nest, axes)
    emitter.checking = True
    emitter.emit(space.structure.body)
    if not emitter.assertions:
        discard(nest)
        return
    outputs = space.structure.body.args[len(space.op.inputs) :]
    if any(depends_on(v, outputs) for a in emitter.assertions for v in a.op.operands) and not all(
        kind == "parallel" for kind in space.structure.kinds
    ):
        raise refused(emitter.assertions[0].op, "it depends on the value that the reduction folds; assert on inputs")
    place = nest.index(linearize(axes, space.extents) if axes else ZERO)
    number = tensor_of(i64, [])
    values = [a.holds.select(nest.const(FINE, i64), place) for a in emitter.assertions]
    clauses: list[tuple[Combiner, Scalar, list[Expr], Attribute]] = [("max", v, [], number) for v in values]
    made = nest.finish(*clauses)
    for assertion, found in zip(emitter.assertions, made, strict=True):
        kernel.checks.append((DataCheck(assertion.text, None, place_of(assertion.op)), found))
