"""Shape rules of ops with graphs: If, Loop and Scan.

A nested graph may run never, once or many times. So requirements of its nodes bind only its own symbols. These have no
meaning outside: a result's dim in such terms becomes a fresh symbol.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, SSAValue

from igniter.analysis.onnx.node_context import NodeContext
from igniter.analysis.onnx.shape_inference import ControlRule, ShapeInference
from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.registry import Dims, TensorInfo
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element, unranked

MAX_ITERATIONS = 6
"""The most generalisations of a Loop's carried dims before giving up their ranks."""


def infer_if(engine: ShapeInference, ctx: NodeContext) -> None:
    """Infers an If: a result has the common dims of both branches."""
    blocks: list[Block] = [ctx.op.attr(name).block for name in ("then_branch", "else_branch")]
    (then_types, then_own), (else_types, else_own) = (_nested(engine, block) for block in blocks)
    then_values, else_values = (_returned(block) for block in blocks)
    for i, result in enumerate(ctx.op.results):
        if i >= len(then_types) or i >= len(else_types):
            engine.assign(result, None, ctx)
            continue
        merged = _merged(then_types[i], else_types[i], then_own | else_own, ctx, f"if_{i}")
        if _varies(engine, then_values[i], else_values[i], (then_types[i], else_types[i])):
            engine.assign_varying(result, merged)
        else:
            engine.assign_type(result, merged, ctx)


def infer_loop(engine: ShapeInference, ctx: NodeContext) -> None:
    """Infers a Loop: carried values keep dims invariant in all iterations; scan outputs stack the body's results."""
    op = ctx.op
    body: Block = op.attr("body").block
    initial = [engine.type_of(v) for v in op.operands[2:]]
    carried = list(initial)
    outputs: list[Attribute] = []
    own: frozenset[str] = frozenset()
    for round_ in range(MAX_ITERATIONS):
        for i, arg in enumerate(body.args[:2]):
            engine.assign_declared(arg, f"loop_{i}")
        _set_args(engine, body.args[2:], carried)
        outputs, own = _nested(engine, body)
        returned = _returned(body)[1:]
        for arg, value, types in zip(body.args[2:], returned, zip(carried, outputs[1:], strict=False), strict=False):
            if _varies(engine, arg, value, types):
                engine.varying.add(arg)
        widened = _widened(carried, outputs[1:], own, ctx, round_ + 1 == MAX_ITERATIONS)
        if widened == carried:
            break
        carried = widened
    trips = _trip_count(engine, ctx, body)
    own |= {name for t in carried for name in _own_symbols(t)} - {n for t in initial for n in _own_symbols(t)}
    for i, result in enumerate(op.results):
        if i < len(carried):
            # A value other than a tensor may change its type: an optional sequence goes in and a sequence comes out.
            type_ = outputs[i + 1] if tensor_element(carried[i]) is None and i + 1 < len(outputs) else carried[i]
            type_ = _merged(type_, initial[i], own, ctx, f"loop_out_{i}")
            if i + 2 < len(body.args) and body.args[i + 2] in engine.varying:
                engine.assign_varying(result, type_)
                continue
        elif i + 1 < len(outputs):
            type_ = _stacked(outputs[i + 1], trips, 0, own, ctx, f"loop_scan_{i}", runs=is_nonneg(trips - 1))
        else:
            engine.assign(result, None, ctx)
            continue
        engine.assign_type(result, type_, ctx)


def infer_scan(engine: ShapeInference, ctx: NodeContext) -> None:
    """Infers a Scan: states keep their dims; scan inputs are sliced along their axis, and scan outputs stacked along
    theirs."""
    op = ctx.op
    if op.opset < 9:
        for result in op.results:
            engine.assign(result, None, ctx)
        return
    body: Block = op.attr("body").block
    count: int = op.attr("num_scan_inputs")
    states: int = len(op.operands) - count
    in_axes: list[int] = op.attr("scan_input_axes") or [0] * count
    out_axes: list[int] = op.attr("scan_output_axes") or [0] * (len(op.results) - states)
    length: Expr = ctx.fresh("scan")
    sliced: list[Attribute] = []
    for value, axis in zip(op.operands[states:], in_axes, strict=True):
        info = engine.info(value)
        if info is None or info.dims is None:
            sliced.append(engine.type_of(value))
            continue
        axis %= len(info.dims)
        engine.equalities.equate(length, info.dims[axis])
        sliced.append(tensor_of(info.element, _without(info.dims, axis)))
    carried = [engine.type_of(v) for v in op.operands[:states]]
    _set_args(engine, body.args, [*carried, *sliced])
    outputs, own = _nested(engine, body)
    length = engine.equalities.resolve(length)
    for i, result in enumerate(op.results):
        if i < states:
            type_ = _merged(carried[i], outputs[i], own, ctx, f"scan_{i}")
        else:
            type_ = _stacked(outputs[i], length, out_axes[i - states], own, ctx, f"scan_{i}")
        engine.assign_type(result, type_, ctx)


RULES: dict[str, ControlRule] = {"If": infer_if, "Loop": infer_loop, "Scan": infer_scan}


def _nested(engine: ShapeInference, block: Block) -> tuple[list[Attribute], frozenset[str]]:
    """Returns the result types of a nested graph, and the symbols without meaning outside."""
    engine.equalities.enter()
    engine.infer_block(block)
    types = [engine.type_of(v) for v in _returned(block)]
    return types, engine.equalities.leave()


def _returned(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if last is not None else ()


def _set_args(engine: ShapeInference, args: Sequence[SSAValue], types: Sequence[Attribute]) -> None:
    for arg, type_ in zip(args, types, strict=False):
        if isinstance(arg.type, NoneType):
            continue
        element = tensor_element(type_)
        if element is not None:
            engine.infos[arg] = engine.interned.info(TensorInfo(element, known_dims_of(type_)))
        else:
            engine.others[arg] = type_


def _without(dims: Dims, axis: int) -> Dims:
    return (*dims[:axis], *dims[axis + 1 :])


def _own_symbols(type_: Attribute) -> frozenset[str]:
    return frozenset(name for dim in known_dims_of(type_) or () for name in dim.symbols)


def _merged(a: Attribute, b: Attribute, own: frozenset[str], ctx: NodeContext, hint: str) -> Attribute:
    """Returns the common type of an `a` and a `b`."""
    element = tensor_element(a)
    if element is None or tensor_element(b) is None:
        return a
    first, second = known_dims_of(a), known_dims_of(b)
    if first is None or second is None or len(first) != len(second):
        return unranked(element)
    dims = [
        x if x == y and x.symbols.isdisjoint(own) else ctx.fresh(f"{hint}_{i}")
        for i, (x, y) in enumerate(zip(first, second, strict=True))
    ]
    return tensor_of(element, tuple(dims))


def _varies(engine: ShapeInference, a: SSAValue | None, b: SSAValue | None, types: tuple[Attribute, Attribute]) -> bool:
    """True if the ranks of an `a` and a `b` are known to differ."""
    if any(v in engine.varying for v in (a, b)):
        return True
    first, second = (known_dims_of(t) for t in types)
    return first is not None and second is not None and len(first) != len(second)


def _widened(
    carried: list[Attribute], outputs: Sequence[Attribute], own: frozenset[str], ctx: NodeContext, give_up: bool
) -> list[Attribute]:
    """Returns the carried types, with changed dims replaced by symbols."""
    result: list[Attribute] = []
    for i, (before, after) in enumerate(zip(carried, outputs, strict=False)):
        widened = _merged(before, after, own, ctx, f"loop_in_{i}")
        element = tensor_element(widened)
        if give_up and widened != before and element is not None:
            widened = unranked(element)
        result.append(widened)
    return result


def _stacked(
    type_: Attribute,
    length: Expr,
    axis: int,
    own: frozenset[str],
    ctx: NodeContext,
    hint: str,
    runs: bool = True,
) -> Attribute:
    """Returns the type of `length` stacked results. `runs`: there is at least one iteration.

    ONNX Runtime stacks nothing to [0, 0, 8] where it knows but one dim of [n, 8]: a Loop without iterations has dims of
    0 for symbols, whatever these are. (It rejects a Scan without iterations.)
    """
    dims, element = known_dims_of(type_), tensor_element(type_)
    if dims is None or element is None:
        return type_
    kept = [d.constant is not None or (runs and d.symbols.isdisjoint(own)) for d in dims]
    outside = [d if keep else ctx.fresh(f"{hint}_{i}") for i, (d, keep) in enumerate(zip(dims, kept, strict=True))]
    outside.insert(axis % (len(dims) + 1), length)
    return tensor_of(element, tuple(outside))


def _trip_count(engine: ShapeInference, ctx: NodeContext, body: Block) -> Expr:
    """Returns the number of iterations, when nothing but the trip count ends the loop."""
    trips = ctx.values(0)
    unknown = ctx.fresh("trips")
    if trips is None or len(trips) != 1 or not is_nonneg(trips[0]):
        return unknown
    start = ctx.op.inputs[1] if len(ctx.op.inputs) > 1 else None
    last = body.last_op
    going = last.operands[0] if last is not None and last.operands else None
    while going is not None and going is not body.args[1]:
        owner = going.owner
        if isinstance(owner, Block) or owner.name != "onnx.Identity":
            break
        going = owner.operands[0]
    stays = going is body.args[1] or _is_true(going)
    return trips[0] if stays and (start is None or _is_true(start)) else unknown


def _is_true(value: SSAValue | None) -> bool:
    constant = constant_value(value)
    return constant is not None and constant.size == 1 and bool(constant.reshape(-1)[0])
