"""`lower-to-loops`: from the structured to the scheduled level.

    %s = loop.nest "sum" [i: parallel n, k: reduction 768] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
becomes
    loop.for i = 0 to n {
      %acc = loop.alloc "sum" : memref<f32, "register">
      loop.store %zero, %acc[]
      loop.for k = 0 to 768 reduction {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %acc[]
      }
      %v = loop.load %acc[] : f32
      loop.store %v, %s[i]
    }

Every tensor gets a buffer: an output of the kernel its argument, any other an arena allocation. Reductions run in an
accumulator of their own, so that whatever happens to the loops around it, the sum is never in memory. The schedule of
a nest, if it has one, decides the order of its loops (`order`) and leaves hints on them (`loops`), which the passes
that follow consume. It stands first on the scheduled level.

The body of a `loop.procedure` is copied between loops over its axes; `loops` of its schedule names its own loops too.

An axis with the hint `block = n` becomes two loops, over blocks and inside one; it is twice in `order`, and `inner` are
the hints of the second loop. With `group = m` besides there are three: over groups of `m` blocks, over the blocks of a
group, and inside a block. A contraction whose schedule has a `product` becomes a micro-kernel for each tile:

    loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] schedule {
      order = ["j", "i", "i", "j"], loops = {i = {block = 8}, j = {block = 48, inner = {vector = 16}}},
      product = {rows = "i", columns = "j", depth = "k", tile = [8, 3]}} ...
becomes
    loop.for j = 0 to 64 {
      loop.for i = 0 to (m + 7) floordiv 8 {
        %t = loop.alloc "matmul" : memref<8x48xf32, "local">
        loop.tile_product %t[r, 16*p + l] = %a[8*i + r, k] * %b[3*j + p, k, l] over r = min(8, m - 8*i), p = 3, ..
        loop.for i1 = 0 to min(8, m - 8*i) { loop.for j1 = 0 to 48 { %v = loop.load %t[i1, j1] .. } }
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.structured.contractions import Contraction, Product, contraction_of, product_of, product_reason
from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    Axis,
    Clause,
    Combiner,
    ComputeOp,
    ForOp,
    FuncOp,
    IndexOp,
    KernelOp,
    LoadOp,
    NestOp,
    ProcedureOp,
    ReadOp,
    ReturnOp,
    StoreOp,
    TileProductOp,
    ViewOp,
    YieldOp,
    is_unsigned,
    scalar_type,
)
from igniter.dialects.loop.attrs import as_integer
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, Ranges, minimum, simplify
from igniter.errors import IgniterError
from igniter.transforms.scheduled.loop_rewrites import substitute_axes


@dataclass(frozen=True)
class LowerToLoops(ModulePass):
    """Lowers every loop.kernel to a loop.func: tensors to buffers, nests to loops."""

    name = "lower-to-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            func = lower_kernel(kernel)
            op.body.block.insert_op_before(func, kernel)
            kernel.detach()
            kernel.erase()


def identity(combiner: Combiner, element: Attribute) -> arith.ConstantOp:
    """What leaves any value unchanged under `combiner`, as a constant of the body's type for `element`."""
    scalar = scalar_type(element)
    if isinstance(scalar, (Float16Type, BFloat16Type, Float32Type, Float64Type)):
        number = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf, "none": 0.0}.get(combiner)
        if number is None:
            raise IgniterError(f"lower-to-loops: '{combiner}' does not combine {element}")
        return arith.ConstantOp(FloatAttr(number, scalar))
    integer = as_integer(scalar)
    if integer is None:
        raise IgniterError(f"lower-to-loops: no reduction of elements of type {element}")
    width = integer.width.data
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    if is_unsigned(element) or width == 1:
        low, high = 0, (1 << width) - 1
    ones = 1 if width == 1 else -1
    value = {"add": 0, "mul": 1, "max": low, "min": high, "and": ones, "or": 0, "xor": 0, "none": 0}[combiner]
    return arith.ConstantOp(IntegerAttr(value, IntegerType(width), truncate_bits=True))


def lower_kernel(kernel: KernelOp) -> FuncOp:
    """The loop.func that does what `kernel` means, one loop nest after the other."""
    return _Lowering(kernel).run()


class _Lowering:
    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.names: set[str] = set(kernel.symbol_names)
        self.block = Block()

    def run(self) -> FuncOp:
        kernel = self.kernel
        for arg in kernel.block.args:
            buffer = self.block.insert_arg(memref_of(element_of(arg.type), dims_of(arg.type)), len(self.block.args))
            buffer.name_hint = arg.name_hint
            self.buffers[arg] = buffer
        returned = kernel.returned
        outputs = [self.block.insert_arg(self._memref(v), len(self.block.args)) for v in returned]
        copies: list[tuple[SSAValue, SSAValue]] = []
        for value, output in zip(returned, outputs, strict=True):
            if not self._produce_into(value, output):
                copies.append((value, output))
        for op in kernel.block.ops:
            if isinstance(op, NestOp):
                self._nest(op)
            elif isinstance(op, ProcedureOp):
                self._procedure(op)
            elif isinstance(op, ViewOp):
                self._view(op)
        for value, output in copies:
            self._copy(self.buffers[value], output)
        attributes = dict(kernel.attributes.items())
        name, body = kernel.sym_name.data, Region(self.block)
        return FuncOp(name, kernel.symbol_names, len(outputs), body, None, attributes, kernel.requires, kernel.checks)

    def _memref(self, value: SSAValue, space: str | None = None) -> Attribute:
        return memref_of(element_of(value.type), dims_of(value.type), space)

    def _produce_into(self, value: SSAValue, output: SSAValue) -> bool:
        """Makes the nest behind a returned value write the caller's buffer; False when it needs a copy."""
        source = value
        while isinstance(source.owner, ViewOp):
            source = source.owner.source
        if not isinstance(source.owner, ComputeOp) or source in self.buffers:
            return False
        if source.type == value.type:
            self.buffers[source] = output
        else:
            view = ViewOp(output, self._memref(source))
            self.block.add_op(view)
            self.buffers[source] = view.result
        return True

    def _view(self, op: ViewOp) -> None:
        view = ViewOp(self.buffers[op.source], self._memref(op.result))
        self.block.add_op(view)
        self.buffers[op.result] = view.result

    def _axis(self, base: str) -> str:
        name, k = base, 1
        while name in self.names:
            name = f"{base}{k}" if not base[-1:].isdigit() else f"{base}_{k}"
            k += 1
        self.names.add(name)
        return name

    def _allocate(self, op: ComputeOp) -> None:
        for result in op.outputs:
            if result not in self.buffers:
                alloc = AllocOp(op.label, self._memref(result, "scratch"))
                alloc.result.name_hint = result.name_hint
                self.block.add_op(alloc)
                self.buffers[result] = alloc.result

    def _procedure(self, op: ProcedureOp) -> None:
        """The loops over the axes, and the body inside, its buffers and the names of its loops replaced."""
        self._allocate(op)
        mapping = dict(zip(op.read_buffers, (self.buffers[v] for v in op.inputs), strict=True))
        mapping |= zip(op.written_buffers, (self.buffers[r] for r in op.outputs), strict=True)
        values: dict[str, Expr] = {}
        block = self.block
        for level in _levels(op):
            block = self._open(level, values, block)
        copies = [statement.clone(mapping) for statement in op.block.ops]
        block.add_ops(copies)
        for loop in [inner for copy in copies for inner in copy.walk() if isinstance(inner, ForOp)]:
            loop.hints = _hints(op, loop.axis) or loop.hints
            name = self._axis(loop.axis)
            values[loop.axis] = Expr.of(name)
            loop.axis_attr = StringAttr(name)
        substitute_axes(copies, values)

    def _nest(self, nest: NestOp) -> None:
        self._allocate(nest)
        levels = _levels(nest)
        if any(level.axis.kind == "parallel" and level.axis.extent == ZERO for level in levels):
            return  # nothing to compute; the buffers are there, and empty
        product = product_of(nest)
        if product is not None:
            self._product(nest, levels, product)
        else:
            self._loops(nest, levels)

    def _loops(self, nest: NestOp, levels: Sequence[Level]) -> None:
        values: dict[str, Expr] = {}
        block = self.block
        for level in (x for x in levels if x.axis.kind == "parallel"):
            block = self._open(level, values, block)
        clauses = nest.yield_op.clauses
        reductions = [x for x in levels if x.axis.kind == "reduction"]
        accumulators: dict[int, SSAValue] = {}
        inner = block
        if reductions or any(c.combiner != "none" for c in clauses):
            for k, clause in enumerate(clauses):
                accumulators[k] = self._accumulator(nest, k, clause, block)
            for level in reductions:
                inner = self._open(level, values, inner)
        mapping = self._body(nest, values, inner)
        for k, clause in enumerate(clauses):
            value = mapping.get(clause.value, clause.value)
            subscripts = [s.substitute(values) for s in clause.subscripts]
            target = self.buffers[nest.outputs[k]]
            if k in accumulators:
                inner.add_op(AccumulateOp(clause.combiner, value, accumulators[k], []))
                total = LoadOp(accumulators[k], [])
                block.add_op(total)
                value = total.result
            block.add_op(StoreOp(value, target, subscripts))

    def _product(self, nest: NestOp, levels: Sequence[Level], product: Product) -> None:
        """A contraction: a micro-kernel for every tile, and loops that move the tile to where it belongs."""
        contraction = contraction_of(nest)
        reason = product_reason(nest, product, {x.axis.name: x.size for x in levels})
        if reason is not None or isinstance(contraction, str):
            raise IgniterError(f"lower-to-loops: nest '{nest.label}' has a schedule for a product, but {reason}")
        values: dict[str, Expr] = {}
        block = self.block
        outside = [x for x in levels if not x.inside]
        for level in outside:
            block = self._open(level, values, block)
        result = nest.outputs[0]
        lanes = panel_lanes(element_of(result.type))
        names = [self._axis(n) for n in ("r", "p", "l", "k")]
        row, panel, lane, depth = map(Expr.of, names)
        sizes = {x.axis.name: x.size for x in outside}
        at: dict[str, Expr] = {**values, product.depth: depth}
        rows = columns = ONE
        for x in outside:
            if x.axis.name == product.rows:
                at[product.rows] = values[product.rows] * sizes[product.rows] + row
                rows = x.rest(values)
            elif x.axis.name == product.columns and x.group == 1:
                at[product.columns] = values[product.columns] * sizes[product.columns] + panel * lanes + lane
                columns = x.rest(values)
        height, panels = product.tile
        tile = AllocOp(nest.label, memref_of(element_of(result.type), [height, panels * lanes], "local"))
        tile.result.name_hint = result.name_hint
        extents = [rows, columns.ceildiv(lanes), lanes, nest.axis(product.depth).extent]
        own = {n: (ZERO, Expr.of(e)) for n, e in zip(names, extents, strict=True)}
        ranges = Ranges({**nest.axes_attr.ranges.axes, **own})
        subscripts: list[list[Expr]] = [[row, panel * lanes + lane]]
        for read in (contraction.a, contraction.b):
            subscripts.append([simplify(s.substitute(at), ranges) for s in read.subscripts])
        buffers = [tile.result, *(self.buffers[r.source] for r in (contraction.a, contraction.b))]
        fetch = self._next_panels(contraction, product, outside, values, sizes)
        block.add_ops([tile, TileProductOp(buffers, subscripts, names, extents, product.tile, fetch=fetch)])
        outer = dict(values)
        for level in (x for x in levels if x.inside):
            block = self._open(level, values, block)
        inside = [values.get(n, ZERO) - outer.get(n, ZERO) * sizes.get(n, 0) for n in (product.rows, product.columns)]
        value = LoadOp(tile.result, inside)
        target = [s.substitute(values) for s in nest.yield_op.clauses[0].subscripts]
        block.add_ops([value, StoreOp(value.result, self.buffers[result], target)])

    def _next_panels(
        self,
        contraction: Contraction,
        product: Product,
        outside: Sequence[Level],
        values: Mapping[str, Expr],
        sizes: Mapping[str, int],
    ) -> list[Expr] | None:
        """Where the panels of the next tile of columns are: the first tiles of rows fetch one each."""
        if not product.rows or outside[-1].axis.name != product.rows or outside[-2].axis.name != product.columns:
            return None
        number = minimum(values[product.rows], Expr.of(product.tile[1] - 1))
        lanes = sizes[product.columns] // product.tile[1]
        column = (values[product.columns] + 1) * sizes[product.columns] + number * lanes
        return [
            s.substitute({**values, product.columns: column, product.depth: ZERO}) for s in contraction.b.subscripts
        ]

    def _accumulator(self, nest: NestOp, k: int, clause: Clause, block: Block) -> SSAValue:
        element = element_of(nest.outputs[k].type)
        alloc = AllocOp(nest.label, memref_of(element, [], "register"))
        zero = identity(clause.combiner, element)
        block.add_ops([alloc, zero, StoreOp(zero.result, alloc.result, [])])
        return alloc.result

    def _open(self, level: Level, values: dict[str, Expr], block: Block) -> Block:
        """The loop of a level at the end of `block`; `values` learns what the axis is in it. Its body."""
        body = Block()
        name = self._axis(level.axis.name)
        own = Expr.of(name)
        axis = level.axis
        if level.group > 1:
            end, value = axis.extent.ceildiv(level.size * level.group), own * level.group
        elif level.within > 1:
            blocks = axis.extent.ceildiv(level.size)
            end, value = minimum(Expr.of(level.within), blocks - values[axis.name]), values[axis.name] + own
        elif level.size == 1:
            end, value = axis.extent, own
        elif level.inside:
            end, value = level.rest(values), values[axis.name] * level.size + own
        else:
            end, value = axis.extent.ceildiv(level.size), own
        values[axis.name] = value
        block.add_op(ForOp(name, 0, end, body, reduction=axis.kind == "reduction", hints=level.hints))
        return body

    def _body(self, nest: NestOp, values: dict[str, Expr], block: Block) -> dict[SSAValue, SSAValue]:
        mapping: dict[SSAValue, SSAValue] = {}
        for op in nest.block.ops:
            if isinstance(op, YieldOp):
                continue
            copy: Operation
            if isinstance(op, ReadOp):
                copy = LoadOp(
                    self.buffers[op.source],
                    [s.substitute(values) for s in op.subscripts],
                    indices=[mapping[i] for i in op.indices],
                    guards=[g.substitute(values) for g in op.guards],
                    otherwise=None if op.otherwise is None else mapping[op.otherwise],
                )
            elif isinstance(op, IndexOp):
                copy = IndexOp(op.value.substitute(values))
            else:
                copy = op.clone(mapping)
            block.add_op(copy)
            for old, new in zip(op.results, copy.results, strict=True):
                new.name_hint = old.name_hint
                mapping[old] = new
        return mapping

    def _copy(self, source: SSAValue, target: SSAValue) -> None:
        if ZERO in dims_of(target.type):
            return
        block = self.block
        names = [self._axis("c") for _ in dims_of(target.type)]
        for name, dim in zip(names, dims_of(target.type), strict=True):
            body = Block()
            block.add_op(ForOp(name, 0, dim, body))
            block = body
        load = LoadOp(source, names)
        block.add_ops([load, StoreOp(load.result, target, names)])


@dataclass(frozen=True)
class Level:
    """One loop of a nest: of an axis (`size` 1), of its blocks of `size`, or of the iterations `inside` one. Blocks may
    come in groups: of so many (`group`), and those `within` one."""

    axis: Axis
    hints: DictionaryAttr | None
    size: int = 1
    inside: bool = False
    group: int = 1
    within: int = 1

    def rest(self, values: Mapping[str, Expr]) -> Expr:
        """The iterations inside the block whose number `values` has."""
        extent = self.axis.extent
        if extent.constant is not None and extent.constant % self.size == 0:
            return Expr.of(self.size)
        return minimum(Expr.of(self.size), extent - values[self.axis.name] * self.size)


def _levels(nest: ComputeOp) -> list[Level]:
    """The loops in the order that the schedule gives, else as the axes are written, parallel ones first."""
    nest.verify_schedule()
    order = nest.schedule.data.get("order") if nest.schedule is not None else None
    by_name = {a.name: a for a in nest.axes}
    if isinstance(order, ArrayAttr):
        names = [n.data for n in cast("ArrayAttr[Attribute]", order) if isinstance(n, StringAttr)]
    else:
        names = [a.name for a in sorted(nest.axes, key=lambda a: a.kind == "reduction")]
    hints = {name: _hints(nest, name) for name in by_name}
    parts = {name: _parts(by_name[name], hints[name]) for name in by_name}
    return [parts[name].pop(0) for name in names]


def _parts(axis: Axis, hints: DictionaryAttr | None) -> list[Level]:
    """The loops of one axis, outermost first."""
    size, group = _count(hints, "block"), _count(hints, "group")
    if size == 1:
        return [Level(axis, hints)]
    assert hints is not None
    inner = hints.data.get("inner")
    outer = DictionaryAttr({k: v for k, v in hints.data.items() if k not in ("block", "group", "inner")})
    own = outer if outer.data else None
    inside = Level(axis, inner if isinstance(inner, DictionaryAttr) else None, size, True)
    if group == 1:
        return [Level(axis, own, size), inside]
    return [Level(axis, own, size, group=group), Level(axis, own, size, within=group), inside]


def _count(hints: DictionaryAttr | None, key: str) -> int:
    size = hints.data.get(key) if hints is not None else None
    return size.value.data if isinstance(size, IntegerAttr) else 1


def _hints(nest: ComputeOp, axis: str) -> DictionaryAttr | None:
    loops = nest.schedule.data.get("loops") if nest.schedule is not None else None
    hints = loops.data.get(axis) if isinstance(loops, DictionaryAttr) else None
    return hints if isinstance(hints, DictionaryAttr) else None


__all__ = ["LowerToLoops", "ReturnOp", "identity", "lower_kernel"]
