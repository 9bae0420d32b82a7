"""The ops of `tensor` as views and nests.

expand_shape, collapse_shape, reshape     views; the numbers of elements must be equal
pad, concat, insert_slice                 guarded reads
extract_slice, gather                     reads at other subscripts
extract, from_elements, splat, generate   nests of scalars
empty, dim, rank, cast                    dims only
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, ArrayAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.onnx.lowering.builder import Nest
from igniter.dialects.onnx.lowering.scalar import Scalar
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, mod, product
from igniter.dialects.sym.requirements import FINE, DataCheck
from igniter.dialects.tensor import GatherOp, GenerateOp, RankOp, ReshapeOp
from igniter.transforms.conversion.linalg.bodies import BodyEmitter, Reads
from igniter.transforms.conversion.linalg.errors import place_of, refused
from igniter.transforms.conversion.linalg.known import Known, is_wide
from igniter.transforms.conversion.linalg.space import finish
from igniter.transforms.conversion.linalg.values import Empty, Scope, Sizes, Value, static_dims, stored_element

Dims = tuple[Expr, ...]


def typed_dims(scope: Scope, op: Operation, kind: Attribute, dynamic: Sequence[Expr]) -> Dims:
    """Returns the dims of a type, with sizes in the place of its dynamic dims."""
    sizes = iter(dynamic)
    found = tuple(next(sizes) if d is None else Expr.of(d) for d in static_dims(cast("TensorType[Attribute]", kind)))
    scope.facts.nonnegative(op, found, "a size is negative")
    return found


def matched(scope: Scope, op: Operation, kind: Attribute, dims: Sequence[Expr], text: str) -> Dims:
    """Returns `dims`, equal to the static dims of a type."""
    for known, dim in zip(static_dims(cast("TensorType[Attribute]", kind)), dims, strict=True):
        if known is not None:
            scope.facts.equal(op, dim, Expr.of(known), text)
    return tuple(dims)


def element_in(kind: Attribute) -> Attribute:
    """Returns the element type of a tensor type, as it is stored."""
    return stored_element(cast("TensorType[Attribute]", kind).element_type)


def mixed(
    scope: Scope, op: Operation, dynamic: Sequence[SSAValue], static: DenseArrayBase[I64], what: str
) -> list[Expr]:
    """Returns a list of static and dynamic numbers, such as the offsets of a slice."""
    values = iter(dynamic)
    return [
        scope.size(next(values), op, what) if int(k) == DYNAMIC_INDEX else Expr.of(int(k)) for k in static.get_values()
    ]


# -- dims -------------------------------------------------------------------------------------------------------------


def lower_empty(scope: Scope, op: tensor.EmptyOp) -> Value:
    sizes = [scope.size(v, op) for v in op.dynamic_sizes]
    return Empty(typed_dims(scope, op, op.tensor.type, sizes), element_in(op.tensor.type))


def lower_dim(scope: Scope, op: tensor.DimOp | RankOp) -> Value:
    nest = Nest(scope.kernel, "dim")
    return BodyEmitter(scope, Reads(nest), [], {}, op).dim(op)


def lower_cast(scope: Scope, op: tensor.CastOp) -> Value:
    found = scope.of(op.source, op)
    if not isinstance(op.dest.type, TensorType):
        raise refused(op, f"{op.dest.type} has no rank; cast to a ranked type")
    matched(scope, op, op.dest.type, scope.dims(op.source, op), "a dim differs from the type of a cast")
    return found


# -- views ------------------------------------------------------------------------------------------------------------


def viewed(scope: Scope, value: SSAValue, op: Operation, dims: Dims) -> Value:
    """Returns a tensor with other dims."""
    found = scope.of(value, op)
    if isinstance(found, Empty):
        return Empty(dims, found.element)
    if isinstance(found, Sizes):
        return (
            Sizes(found.elements, dims, found.element)
            if len(dims) < 2
            else scope.kernel.view(scope.tensor(value, op), dims)
        )
    return scope.kernel.view(scope.tensor(value, op), dims)


def _groups(attr: Attribute) -> list[list[int]]:
    groups = cast("ArrayAttr[ArrayAttr[IntegerAttr]]", attr)
    return [[int(k.value.data) for k in group] for group in groups]


def lower_expand(scope: Scope, op: tensor.ExpandShapeOp) -> Value:
    source = scope.dims(op.src, op)
    sizes = mixed(scope, op, op.dynamic_output_shape, op.static_output_shape, "a dim of the output")
    scope.facts.nonnegative(op, sizes, "a size is negative")
    for dim, group in zip(source, _groups(op.reassociation), strict=True):
        scope.facts.equal(op, dim, product(sizes[k] for k in group), "the sizes do not multiply to the expanded dim")
    return viewed(scope, op.src, op, matched(scope, op, op.result.type, sizes, "a dim differs from the result's type"))


def lower_collapse(scope: Scope, op: tensor.CollapseShapeOp) -> Value:
    source = scope.dims(op.src, op)
    groups = _groups(op.reassociation)
    sizes = [product(source[k] for k in group) for group in groups]
    if not groups:
        for dim in source:
            scope.facts.equal(op, dim, ONE, "a tensor of several elements cannot have rank 0")
    return viewed(scope, op.src, op, matched(scope, op, op.result.type, sizes, "a dim differs from the result's type"))


def lower_reshape(scope: Scope, op: ReshapeOp) -> Value:
    shape = scope.of(op.shape, op)
    if not isinstance(shape, Sizes):
        raise refused(op, "its shape depends on data, not only on the sizes of the arguments; use tensor.from_elements")
    sizes = [scope.size_of(e, op, "a dim of the shape") for e in shape.elements]
    scope.facts.nonnegative(op, sizes, "a size is negative")
    sizes = matched(scope, op, op.result.type, sizes, "a dim differs from the result's type")
    have = product(scope.dims(op.source, op))
    scope.facts.equal(op, have, product(sizes), "the numbers of elements differ")
    return viewed(scope, op.source, op, sizes)


# -- movement ---------------------------------------------------------------------------------------------------------


def lower_pad(scope: Scope, op: tensor.PadOp) -> Value:
    low = mixed(scope, op, op.low, op.static_low, "padding")
    high = mixed(scope, op, op.high, op.static_high, "padding")
    source = scope.tensor(op.source, op)
    dims = [d + a + b for d, a, b in zip(dims_of(source.type), low, high, strict=True)]
    scope.facts.nonnegative(op, dims, "a size is negative")
    dims = matched(scope, op, op.result.type, dims, "a dim differs from the result's type")
    nest = scope.kernel.nest("pad")
    axes = nest.axes(dims)
    emitter = _emitter(scope, op, nest, axes, dims)
    for arg, at in zip(op.region.block.args, axes, strict=True):
        emitter.known[arg] = Known(expr=at)
    (padding,) = emitter.emit(op.region.block)
    at = [i - a for i, a in zip(axes, low, strict=True)]
    value = nest.read_inside(source, at, otherwise=_stored(emitter.scalar(padding, op), element_of(source.type)))
    return finish(nest, value, axes, tensor_of(element_of(source.type), dims))


def _stored(x: Scalar, element: Attribute) -> Scalar:
    """Returns a body's scalar as an element of a tensor."""
    return Scalar(x.nest, x.value, element)


def _emitter(scope: Scope, op: Operation, nest: Nest, axes: Sequence[Expr], dims: Sequence[Expr]) -> BodyEmitter:
    extents = {e.symbol: d for e, d in zip(axes, dims, strict=True) if e.symbol is not None}
    return BodyEmitter(scope, Reads(nest), axes, extents, op)


def lower_extract_slice(scope: Scope, op: tensor.ExtractSliceOp) -> Value:
    source = scope.tensor(op.source, op)
    offsets, sizes, strides = _slice(scope, op, dims_of(source.type))
    shape = static_dims(op.result.type)
    kept = _kept_dims(op, sizes, shape)
    dims = matched(scope, op, op.result.type, [sizes[k] for k in kept], "a dim differs from the result's type")
    nest = scope.kernel.nest("slice")
    axes = dict(zip(kept, nest.axes(dims), strict=True))
    at = [o + axes.get(k, ZERO) * s for k, (o, s) in enumerate(zip(offsets, strides, strict=True))]
    value = nest.read(source, at)
    return finish(nest, value, [axes[k] for k in kept], tensor_of(element_of(source.type), dims))


def _slice(
    scope: Scope, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, dims: Sequence[Expr]
) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """Returns the offsets, sizes and strides of a slice, required to be inside of `dims`."""
    offsets = mixed(scope, op, op.offsets, op.static_offsets, "an offset")
    sizes = mixed(scope, op, op.sizes, op.static_sizes, "a size")
    strides = mixed(scope, op, op.strides, op.static_strides, "a stride")
    facts = scope.facts
    facts.nonnegative(op, sizes, "a size is negative")
    facts.nonnegative(op, offsets, "an offset is negative")
    for offset, size, stride, dim in zip(offsets, sizes, strides, dims, strict=True):
        if stride != ONE:
            facts.at_most(op, ONE, stride, "a stride is not positive")
        facts.at_most(op, offset + (size - 1) * stride, dim - 1, "a slice is beyond its tensor", [size])
    return offsets, sizes, strides


def _kept_dims(op: Operation, sizes: Sequence[Expr], shape: Sequence[int | None]) -> list[int]:
    """Returns the dims of a slice that are dims of a tensor of lower rank: the others are 1."""
    kept: list[int] = []
    left = list(shape)
    dropped = len(sizes) - len(shape)
    for k, size in enumerate(sizes):
        fits = bool(left) and (left[0] is None or size.constant is None or left[0] == size.constant)
        if dropped and size == ONE and not (fits and left[0] == 1 and sum(s == ONE for s in sizes[k:]) > dropped):
            dropped -= 1
        elif fits:
            kept.append(k)
            left.pop(0)
        else:
            raise refused(op, f"a slice of sizes {[str(s) for s in sizes]} has no dims {list(shape)}")
    return kept


def lower_insert_slice(scope: Scope, op: tensor.InsertSliceOp) -> Value:
    source, target = scope.tensor(op.source, op), scope.tensor(op.dest, op)
    dims = dims_of(target.type)
    offsets, sizes, strides = _slice(scope, op, dims)
    kept = _kept_dims(op, sizes, static_dims(cast("TensorType[Attribute]", op.source.type)))
    for k, dim in zip(kept, dims_of(source.type), strict=True):
        scope.facts.equal(op, dim, sizes[k], "the source differs from the slice")
    nest = scope.kernel.nest("insert_slice")
    axes = nest.axes(dims)
    at: list[Expr] = []
    guards: list[Expr] = []
    for i, offset, size, stride in zip(axes, offsets, sizes, strides, strict=True):
        place = i - offset
        if stride != ONE:
            guards.append(-mod(place, stride))
        at.append(floordiv(place, stride))
        guards += [place, offset + (size - 1) * stride - i]
    guards = list(dict.fromkeys(g for g in guards if g != ZERO))
    old = nest.read(target, axes)
    value = nest.read_inside(source, [at[k] for k in kept], guards=guards, otherwise=old)
    return finish(nest, value, axes, tensor_of(element_of(target.type), dims))


def lower_concat(scope: Scope, op: tensor.ConcatOp) -> Value:
    axis = op.dim.value.data
    parts = [scope.tensor(v, op) for v in op.inputs]
    shapes = [dims_of(p.type) for p in parts]
    for shape in shapes[1:]:
        for k, (a, b) in enumerate(zip(shapes[0], shape, strict=True)):
            if k != axis:
                scope.facts.equal(op, a, b, f"dim {k} of the operands differs")
    total = sum((s[axis] for s in shapes), ZERO)
    dims = [total if k == axis else d for k, d in enumerate(shapes[0])]
    dims = matched(scope, op, op.result.type, dims, "a dim differs from the result's type")
    nest = scope.kernel.nest("concat")
    axes = nest.axes(dims)
    value: Scalar | None = None
    end = total
    for part, shape in zip(parts[::-1], shapes[::-1], strict=True):
        first = end - shape[axis]
        at = [i - first if k == axis else i for k, i in enumerate(axes)]
        value = nest.read_inside(part, at, otherwise=value)
        end = first
    assert value is not None
    return finish(nest, value, axes, tensor_of(element_of(parts[0].type), dims))


def lower_gather(scope: Scope, op: GatherOp) -> Value:
    source, indices = scope.tensor(op.source, op), scope.tensor(op.indices, op)
    gathered = [int(k) for k in op.gather_dims.get_values()]
    have, coordinates = dims_of(source.type), dims_of(indices.type)
    scope.facts.equal(op, coordinates[-1], Expr.of(len(gathered)), "the last dim of the indices is not their number")
    batch = coordinates[:-1]
    full = len(op.result.type.get_shape()) == len(batch) + len(have)
    rest = [ONE if k in gathered else d for k, d in enumerate(have) if full or k not in gathered]
    dims = matched(scope, op, op.result.type, [*batch, *rest], "a dim differs from the result's type")
    nest = scope.kernel.nest("gather")
    axes = nest.axes(dims)
    own = iter(axes[len(batch) :])
    at: list[Expr | Scalar] = []
    for k in range(len(have)):
        if k in gathered:
            at.append(nest.read(indices, [*axes[: len(batch)], Expr.of(gathered.index(k))]).to(i64))
            if full:
                next(own)
        else:
            at.append(next(own))
    value = nest.read_inside(source, at)
    made = finish(nest, value, axes, tensor_of(element_of(source.type), dims))
    _check_gather(scope, op, indices, [have[k] for k in gathered])
    return made


def _check_gather(scope: Scope, op: Operation, indices: SSAValue, dims: Sequence[Expr]) -> None:
    """Checks that every coordinate is inside of its dim."""
    for k, dim in enumerate(dims):
        nest = scope.kernel.nest("gather.check")
        at = [nest.reduction(d) for d in dims_of(indices.type)[:-1]]
        place = nest.read(indices, [*at, Expr.of(k)]).to(i64)
        outside = (place < 0) | (place >= nest.index(dim))
        value = outside.select(place.maximum(FINE + 1), nest.const(FINE, i64))
        (found,) = nest.finish(("max", value, [], tensor_of(i64, [])))
        scope.kernel.checks.append((DataCheck("an index is out of bounds", (ZERO, dim - 1), place_of(op)), found))


# -- scalars ----------------------------------------------------------------------------------------------------------


def lower_extract(scope: Scope, op: tensor.ExtractOp) -> Value:
    found = scope.of(op.tensor, op)
    if isinstance(found, Sizes):
        at = [scope.size(v, op, "a subscript").constant for v in op.indices]
        if all(k is not None for k in at):
            place = at[0] if at else 0
            if place is None or not 0 <= place < len(found.elements):
                raise refused(op, f"subscript {place} of {len(found.elements)} elements")
            return found.elements[place]
    nest = scope.kernel.nest("extract")
    emitter = BodyEmitter(scope, Reads(nest), [], {}, op)
    emitter.emit_op(op)
    element = element_in(op.tensor.type)
    return finish(nest, _stored(emitter.scalar(op.result, op), element), [], tensor_of(element, []))


def lower_from_elements(scope: Scope, op: tensor.FromElementsOp) -> Value:
    kind, element = op.result.type, element_in(op.result.type)
    dims = typed_dims(scope, op, kind, [])
    known = [scope.known(v, op) for v in op.elements]
    sizes = [k for k in known if k is not None and k.expr is not None]
    if len(sizes) == len(known) and len(dims) < 2 and is_wide(element):
        return Sizes(tuple(sizes), dims, element)
    nest = scope.kernel.nest("from_elements")
    axes = nest.axes(dims)
    emitter = _emitter(scope, op, nest, axes, dims)
    place = ZERO
    for i, dim in zip(axes, dims, strict=True):
        place = place * dim + i
    value = emitter.scalar(op.elements[0], op)
    for k, each in list(enumerate(op.elements))[1:]:
        value = (nest.index(place) >= k).select(emitter.scalar(each, op), value)
    return finish(nest, _stored(value, element), axes, tensor_of(element, dims))


def lower_splat(scope: Scope, op: tensor.SplatOp) -> Value:
    sizes = [scope.size(v, op) for v in op.dynamicSizes]
    dims, element = typed_dims(scope, op, op.result.type, sizes), element_in(op.result.type)
    nest = scope.kernel.nest("splat")
    axes = nest.axes(dims)
    value = _emitter(scope, op, nest, axes, dims).scalar(op.input, op)
    known = value.number
    if known is not None:
        return scope.kernel.splat(known, tensor_of(element, dims))
    return finish(nest, _stored(value, element), axes, tensor_of(element, dims))


def lower_generate(scope: Scope, op: GenerateOp) -> Value:
    sizes = [scope.size(v, op) for v in op.sizes]
    dims, element = typed_dims(scope, op, op.result.type, sizes), element_in(op.result.type)
    nest = scope.kernel.nest("generate")
    axes = nest.axes(dims)
    emitter = _emitter(scope, op, nest, axes, dims)
    for arg, at in zip(op.body.block.args, axes, strict=True):
        emitter.known[arg] = Known(expr=at)
    (value,) = emitter.emit(op.body.block)
    return finish(nest, _stored(emitter.scalar(value, op), element), axes, tensor_of(element, dims))


def lower_insert(scope: Scope, op: tensor.InsertOp) -> Value:
    target = scope.tensor(op.dest, op)
    dims = dims_of(target.type)
    nest = scope.kernel.nest("insert")
    axes = nest.axes(dims)
    emitter = _emitter(scope, op, nest, axes, dims)
    here: Scalar | None = None
    for index, i, dim in zip(op.indices, axes, dims, strict=True):
        at = scope.size(index, op, "a subscript")
        scope.facts.at_most(op, at, dim - 1, "a subscript is beyond its dim")
        scope.facts.at_most(op, ZERO, at, "a subscript is negative")
        same = nest.index(i).eq(nest.index(at))
        here = same if here is None else here & same
    new, old = _stored(emitter.scalar(op.scalar, op), element_of(target.type)), nest.read(target, axes)
    value = new if here is None else here.select(new, old)
    return finish(nest, value, axes, target.type)


TENSOR_OPS: dict[type[Operation], Callable[..., Value]] = {
    tensor.EmptyOp: lower_empty,
    tensor.DimOp: lower_dim,
    RankOp: lower_dim,
    tensor.CastOp: lower_cast,
    tensor.ExpandShapeOp: lower_expand,
    tensor.CollapseShapeOp: lower_collapse,
    ReshapeOp: lower_reshape,
    tensor.PadOp: lower_pad,
    tensor.ExtractSliceOp: lower_extract_slice,
    tensor.InsertSliceOp: lower_insert_slice,
    tensor.ConcatOp: lower_concat,
    GatherOp: lower_gather,
    tensor.ExtractOp: lower_extract,
    tensor.FromElementsOp: lower_from_elements,
    tensor.SplatOp: lower_splat,
    GenerateOp: lower_generate,
    tensor.InsertOp: lower_insert,
}
"""The lowering of each op of `tensor`, with one result."""
