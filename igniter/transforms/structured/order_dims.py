"""`order-dims`: chooses the order of dims of tensors between nests, for contiguous writes of producers.

    %c = loop.nest "conv" [o: parallel 64, y: parallel 56, x: parallel 56, k: reduction 576] -> tensor<64x56x56xf32> {
      .. reads whose elements lie side by side along o ..
      loop.yield add %v at [o, y, x]
    }
    %r = loop.nest "relu" [o: ..] .. { %a = loop.read %c[o, y, x] ..

becomes

    %c = loop.nest "conv" [..] -> tensor<56x56x64xf32> {      loop.yield add %v at [y, x, o]
    %r = loop.nest "relu" [..] .. { %a = loop.read %c[y, x, o] ..

The order of the dims of such a tensor is free: it is only the order of the model. A nest becomes a vector loop along
the axis of most contiguous reads; its result should be contiguous along the same axis. So the dim written by this axis
becomes the last. The pass decides in the order of the kernel: producers before readers. First of all come contractions
of bytes, because they multiply several contiguous steps of depth. A nest of mere movement to a result of the kernel is
then merged into its producer if the producer writes in this order.

A view fixes the order of the dims. If a nest sums over the elements of a view of a product's results, another nest
moves them to this order (`conv.move`), so that the product stores whole vectors. A normalisation of groups of channels
after a convolution is such a case.

With `blocks=true`, for GPUs, the columns of an implicit product go behind its rows: `flatten-rows` joins the rows.

The pass runs after `inline-nests` and `form-rims`, when the reads of a nest are final, and before `collapse-axes`, to
let it join the dims now adjacent.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from igniter.analysis.structured.contractions import contraction_of
from igniter.analysis.structured.dot_products import dot_product, hangs_on
from igniter.analysis.structured.packing import computed_weight, convolution_of
from igniter.dialects.loop import Axis, Clause, KernelOp, NestOp, ProcedureOp, ReadOp, ViewOp, YieldOp
from igniter.dialects.loop.panels import group_of
from igniter.dialects.sym import DimsAttr, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Call, Expr, linearize
from igniter.dialects.sym.ranges import simplify
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.canonicalize_loop import leaves_kernel
from igniter.transforms.structured.nest_rewriting import erase_dead_nests, fresh_label, nest_of, readers_of, set_clauses
from igniter.transforms.structured.sink_moves import sink


@dataclass(frozen=True)
class OrderDims(ModulePass):
    """Makes the dim of a nest's vector axis the last of its result."""

    name = "order-dims"
    one_rewrite = "a tensor whose dims are reordered"

    blocks: bool = False
    """Orders the results of products for programs on blocks of elements, those of a GPU."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            self.run_on(ctx, kernel)

    def run_on(self, ctx: Context, kernel: KernelOp) -> None:
        """Decides nest by nest, in the order of the kernel."""
        rewrites = budget(ctx, self.name)
        for nest in kernel.nests:
            for rule, use in ((grouped_depth, "multiplies in groups"), (computed_channels, "sums with a window")):
                wanted = None if rewrites.is_spent else rule(nest)
                if wanted is None:
                    continue
                producer, k, place = wanted
                put_last(producer, k, place)
                message = f"the dim that '{nest.label}' {use} is now the last of its result"
                rewrites.count(producer.label, message)
                remark(ctx, self.name, producer.label, "applied", message)
        for nest in kernel.nests if self.blocks else ():
            for place in [] if rewrites.is_spent else places_behind_rows(nest):
                put_last(nest, 0, place)
                rewrites.count(nest.label, "the rows of its product are now side by side in its result")
        for nest in kernel.nests:
            axis = None if rewrites.is_spent or (self.blocks and dot_product(nest)) else vector_axis(nest)
            for k, result in enumerate(nest.outputs if axis is not None else ()):
                assert axis is not None
                place = last_place(nest, k, axis)
                if place is None:
                    continue
                told = f"the dim of '{axis}' is now the last of its result"
                if not all(is_free(use.operation) for use in result.uses):
                    if self.blocks or not is_worth_a_copy(nest, result):
                        continue
                    move = copy_for_views(nest, k)
                    told += f", and '{move.label}' moves it to the order of its views"
                put_last(nest, k, place)
                rewrites.count(nest.label, told)
                remark(ctx, self.name, nest.label, "applied", told)
        for nest in kernel.nests:
            if not rewrites.is_spent and sink(nest, vector_axis) is not None:
                rewrites.count(nest.label, "the nest before it performs its data movement")
        erase_dead_nests(kernel)


def vector_axis(nest: NestOp) -> str | None:
    """Returns the parallel axis with most contiguous reads of a nest and with stride 0 or groups for the others; None
    if there is no such axis. For a contraction it is the axis of the columns; for a convolution with a
    computed weight, the axis of its output channels, which `pack-operands` makes columns."""
    if nest.schedule is not None:
        return None
    contraction = contraction_of(nest)
    if not isinstance(contraction, str):
        return contraction.columns
    weight = computed_weight(nest)
    if not isinstance(weight, str):
        return weight.column
    scores: dict[str, int] = {}
    for axis in nest.axes:
        if axis.kind == "parallel" and axis.extent != ONE:
            steps = [step(nest, read, axis.name) for read in nest.reads]
            near = (s in (ONE, ZERO) or in_groups(nest, r, axis.name) for s, r in zip(steps, nest.reads, strict=True))
            if ONE in steps and all(near):
                scores[axis.name] = sum(s == ONE for s in steps)
    return max(scores, key=lambda n: scores[n], default=None)


def places_behind_rows(nest: NestOp) -> list[int]:
    """Returns the dims to put last in the result of a product of blocks, one after the other, for its rows to be side
    by side: the groups and the columns of an implicit product, whose rows are several axes. Empty if they are already,
    or if elementwise readers pass the order on to a result of the kernel."""
    dot = dot_product(nest)
    if dot is None or nest.schedule is not None:
        return []
    subscripts = nest.yield_op.clauses[0].subscripts
    names = {a.name for a in nest.axes if a.extent != ONE and a.kind == "parallel"}
    in_a, in_b = hangs_on(dot.a) & names, hangs_on(dot.b) & names
    rows = max(in_a - in_b, in_b - in_a, key=len)
    at = [k for k, s in enumerate(subscripts) if s.symbol in rows]
    between = [s.symbol for s in subscripts[min(at, default=0) : max(at, default=-1) + 1] if s.symbol in names]
    if len(at) < 2 or all(name in rows for name in between):
        return []
    if passes_order_on(nest.outputs[0]):
        return []
    columns = [k for k, s in enumerate(subscripts) if s.symbol in names - rows]
    # Each dim that goes last moves the ones behind it one place forward.
    return [place - moved for moved, place in enumerate(columns)]


def passes_order_on(value: SSAValue) -> bool:
    """True if a tensor is a result of its kernel, or if an elementwise reader of it makes one with the same dims."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            read = use.operation
            if not isinstance(read, ReadOp):
                return True
            nest = read.parent_op()
            assert isinstance(nest, NestOp)
            if all(tuple(c.subscripts) == tuple(read.subscripts) for c in nest.yield_op.clauses):
                fresh = [v for v in nest.outputs if v not in seen]
                seen.update(fresh)
                pending += fresh
    return False


def grouped_depth(nest: NestOp) -> tuple[NestOp, int, int] | None:
    """Returns, for a contraction with groups of depth steps, the producer of its left factor, the index of the result,
    and the dim of the depth if it is not the last; otherwise None."""
    found = contraction_of(nest, moved=True)
    if isinstance(found, str) or group_of(found.kind) == 1:
        return None
    source = found.a.source
    producer = source.owner
    places = [k for k, s in enumerate(found.a.subscripts) if s.symbol == found.depth]
    if not isinstance(producer, NestOp) or producer.schedule is not None or len(places) != 1:
        return None
    if places[0] == len(found.a.subscripts) - 1 or not all(isinstance(u.operation, ReadOp) for u in source.uses):
        return None
    return producer, producer.outputs.index(source), places[0]


def computed_channels(nest: NestOp) -> tuple[NestOp, int, int] | None:
    """Returns, for a convolution of an image that its kernel computes, the producer of the image, the index of the
    result, and the dim of the channels if it is not the last; otherwise None. A row of the window and its channels are
    then one stretch of memory, as in an image that another kernel stored."""
    found = convolution_of(nest)
    if found is None or nest.schedule is not None:
        return None
    image = found.image
    producer = image.source.owner
    places = [k for k, s in enumerate(image.subscripts) if s.symbols & set(found.channels)]
    if not isinstance(producer, NestOp) or producer.schedule is not None or len(places) != 1:
        return None
    if places[0] == len(image.subscripts) - 1 or not all(isinstance(u.operation, ReadOp) for u in image.source.uses):
        return None
    return producer, producer.outputs.index(image.source), places[0]


def is_free(reader: Operation) -> bool:
    """True if a reader of a tensor can read it in another order. The left factor of a contraction with groups of depth
    steps cannot: these steps must be contiguous. Nor can a convolution whose image has its channels last."""
    if not isinstance(reader, ReadOp):
        return False
    nest = reader.parent_op()
    convolution = convolution_of(nest) if isinstance(nest, NestOp) else None
    if convolution is not None and convolution.image is reader:
        return not reader.subscripts[-1].symbols & set(convolution.channels)
    found = contraction_of(nest) if isinstance(nest, NestOp) else ""
    return isinstance(found, str) or found.a is not reader or group_of(found.kind) == 1


def is_worth_a_copy(nest: NestOp, result: SSAValue) -> bool:
    """True if only views fix the order of a result's dims, and a copy for them is better than strided stores.

    The nest ends a product or a procedure, whose columns are the lanes, or other nests read the result along its
    vector; in any other nest `choose-schedule` takes squares of two axes. And some nest sums over the elements of a
    view: movements and elementwise nests read a view in any order, and a copy for them is a pass too many (ShuffleNet,
    whose channels are shuffled by views, took 1.09 times as long).
    """
    users = [use.operation for use in result.uses]
    views = [user for user in users if isinstance(user, ViewOp)]
    if not all(is_free(user) or user in views for user in users) or any(leaves_kernel(v.result) for v in views):
        return False
    reads, _ = readers_of(result)
    if not any(axis.kind == "reduction" for read, through in reads if through for axis in nest_of(read).axes):
        return False
    sources = [read.source.owner for read in nest.reads]
    return (
        len(views) < len(users)
        or not isinstance(contraction_of(nest), str)
        or any(isinstance(s, NestOp) and not isinstance(contraction_of(s), str) for s in sources)
        or any(isinstance(s, ProcedureOp) for s in sources)
    )


def copy_for_views(nest: NestOp, clause: int) -> NestOp:
    """Adds a nest after `nest` that copies a result, and makes the views of the result views of the copy. In the order
    that the result has afterwards the copy is a transposition, in squares of two axes: a convolution of 4 to 32
    channels of 32 x 32 and a normalisation of its groups took 2.3 times as long with the results of the convolution
    stored element by element (one thread of a Zen 3)."""
    result = nest.outputs[clause]
    axes = [Axis(f"i{k}", extent, "parallel") for k, extent in enumerate(dims_of(result.type))]
    at = [Expr.of(axis.name) for axis in axes]
    read = ReadOp(result, at)
    body = Block([read, YieldOp([Clause("none", read.result, at)])])
    copy = NestOp(fresh_label(nest, f"{nest.label}.move"), axes, [result.type], Region(body))
    block = nest.parent
    assert block is not None
    block.insert_op_after(copy, nest)
    for view in [use.operation for use in result.uses if isinstance(use.operation, ViewOp)]:
        view.operands[0] = copy.outputs[0]
    return copy


def step(nest: NestOp, read: ReadOp, axis: str) -> Expr | None:
    """Returns the stride of a read in memory along an axis; None if it varies."""
    if read.indices:
        return None
    offset = linearize(read.subscripts, dims_of(read.source.type))
    return simplify(offset, nest.axes_attr.ranges).coefficient(axis)


def in_groups(nest: NestOp, read: ReadOp, axis: str) -> bool:
    """True if a read takes one element for several steps of an axis and then an element at most as many steps further,
    like the results of a grouped convolution: `x[4 * (o floordiv 4) + k]`. A vector of results then reads from one
    range."""
    if read.indices:
        return False
    offset = simplify(linearize(read.subscripts, dims_of(read.source.type)), nest.axes_attr.ranges)
    found = [(monomial, c) for monomial, c in offset.terms if axis in Expr({monomial: c}).symbols]
    if len(found) != 1 or len(found[0][0]) != 1:
        return False
    atom, step = found[0][0][0], found[0][1]
    if not isinstance(atom, Call) or atom.fn != "floordiv" or atom.args[0].symbol != axis:
        return False
    size = atom.args[1].constant
    return size is not None and 0 < step <= size


def last_place(nest: NestOp, clause: int, axis: str) -> int | None:
    """Returns the dim of a result written along an axis, if dims of more than one element follow it."""
    subscripts = nest.yield_op.clauses[clause].subscripts
    places = [k for k, s in enumerate(subscripts) if s.symbol == axis]
    behind = [d for k, d in enumerate(dims_of(nest.outputs[clause].type)) if places and k > places[0]]
    return places[0] if len(places) == 1 and any(d != ONE for d in behind) else None


def put_last(nest: NestOp, clause: int, place: int) -> None:
    """Makes a dim of a result the last; only reads may use the result."""
    result = nest.outputs[clause]
    reads = [use.operation for use in result.uses]
    dims = dims_of(result.type)
    order = [*(k for k in range(len(dims)) if k != place), place]
    clauses = nest.yield_op.clauses
    old = clauses[clause]
    clauses[clause] = old.at(old.subscripts[k] for k in order)
    set_clauses(nest.yield_op, clauses)
    fresh: SSAValue = Rewriter.replace_value_with_new_type(
        result, tensor_of(element_of(result.type), [dims[k] for k in order])
    )
    for read in reads:
        if isinstance(read, ReadOp) and read.source is fresh:
            read.subscripts_attr = DimsAttr([read.subscripts[k] for k in order])
