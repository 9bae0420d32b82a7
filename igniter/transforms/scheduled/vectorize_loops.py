"""`vectorize-loops`: turns a loop over single elements into a loop over vectors.

    loop.for j = 0 to n schedule [vector 16] {
      %a = loop.load %x[i, j] : f32     %b = loop.load %m[i] : f32     %c = arith.subf %a, %b : f32
      loop.store %c, %o[i, j]
    }
becomes
    loop.for j = 0 to n - n mod 16 step 16 {
      %a = loop.load %x[i, j + v] lane v : vector<16xf32>     %b = loop.load %m[i] : f32
      %w = vector.broadcast %b : f32 to vector<16xf32>        %c = arith.subf %a, %w : vector<16xf32>
      loop.store %c, %o[i, j + v] lane v
    }
    loop.for j1 = n - n mod 16 to n step 16 { the same, guarded by [n - 1 - j1 - v] }

Values that depend on the axis become vectors; the others stay scalar and are broadcast when combined with a vector. A
buffer owned by an iteration gets a lane dim. An accumulation of all iterations into one element uses a vector
accumulator (with the hint `accumulators = 4`, four in turn, to hide the latency of the addition), whose lanes are
reduced after the loop. If a loop with the hint contains another one (`fuse-loops` joins separately planned loops), the
inner one is vectorised. The pass runs after `sink-loops` and before `unroll-loops`. Used alone: `vectorize-loops{axis=j
width=16}`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import vector
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.arith import vector_class
from igniter.dialects.locations import name_added, name_of
from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    ForOp,
    FuncOp,
    IfOp,
    IndexOp,
    LoadOp,
    MemoryOp,
    ReduceLanesOp,
    StoreOp,
    is_unsigned,
)
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.dead_values import is_pure
from igniter.dialects.loop.words import LoopWords, without
from igniter.dialects.sym import DimsAttr, dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ZERO, Expr, mod
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import AxisNames, consume, replace_alloc


@dataclass(frozen=True)
class VectorizeLoops(ModulePass):
    """Vectorises loops with the hint `vector`, or the loop named by `axis`, with any width; tails are masked."""

    name = "vectorize-loops"
    one_rewrite = "a loop vectorised"

    axis: str | None = None
    width: int = 16
    accumulators: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names, name = AxisNames(func), func.sym_name.data
            for loop in [x for x in func.walk() if isinstance(x, ForOp)]:
                if loop.parent is None:  # It was inside a loop that is now vectorised.
                    continue
                if self.axis is not None:
                    if loop.axis == self.axis and rewrites.take(f"{name}.{loop.axis}", f"vectors of {self.width}"):
                        vectorize(loop, self.width, self.accumulators, names)
                    continue
                words = consume(loop, "vector", "accumulators")
                if words.vector <= 1:
                    continue
                if any(isinstance(x, ForOp) and x is not loop and x.words.vector for x in loop.walk()):
                    continue
                if rewrites.take(f"{name}.{loop.axis}", f"vectors of {words.vector}"):
                    vectorize(loop, words.vector, words.accumulators or 1, names)
            for alloc in [a for a in func.walk() if isinstance(a, AllocOp) and a.space == "register"]:
                _pad_lanes(alloc)


def vectorize(loop: ForOp, width: int, accumulators: int, names: AxisNames) -> None:
    """Replaces `loop` by vector loops of `width` lanes, in place."""
    _Vectorizer(loop, width, accumulators, names).run()


class _Vectorizer:
    def __init__(self, loop: ForOp, width: int, accumulators: int, names: AxisNames):
        if loop.step != 1:
            raise self._refusal(loop, f"it has step {loop.step}")
        if loop.is_sequential or loop.indices:
            raise self._refusal(loop, "its iterations are sequential, or their number is a value of the program")
        self.loop = loop
        self.width = width
        self.names = names
        self.lane = names.fresh("v")
        self.private = {op.result for op in loop.walk() if isinstance(op, AllocOp)}
        self.shared = [op for op in loop.walk() if isinstance(op, AccumulateOp) and self._is_shared(op)]
        extent = (loop.end - loop.first).constant
        self.accumulators = max(1, min(accumulators, extent // width if extent is not None else accumulators))
        if not self.shared:
            self.accumulators = 1
        self.partial: dict[AccumulateOp, SSAValue] = {}
        self._make_lanes_last()

    def _refusal(self, loop: ForOp, why: str) -> IgniterError:
        return IgniterError(f"vectorize-loops: loop '{loop.axis}': {why}")

    def _is_shared(self, op: AccumulateOp) -> bool:
        """True if every iteration accumulates into the same element."""
        if op.buffer in self.private or op.indices:
            return False
        return all(self.loop.axis not in s.symbols for s in op.subscripts)

    def _make_lanes_last(self) -> None:
        """Reorders the dims of the kernel's own buffers so that the lanes of a register are adjacent."""
        for op in self.loop.walk():
            if not isinstance(op, MemoryOp) or not isinstance(op.accessed.owner, AllocOp):
                continue
            alloc = op.accessed.owner
            if alloc.space != "register":
                continue
            where = [k for k, s in enumerate(op.subscripts) if self.loop.axis in s.symbols]
            if len(where) == 1 and where[0] != len(op.subscripts) - 1:
                _move_dim_last(alloc, where[0])

    def run(self) -> None:
        loop, width, unroll = self.loop, self.width, self.accumulators
        block = loop.parent_block()
        assert block is not None
        for op in self._open_accumulators():
            block.insert_op_before(op, loop)
        extent = loop.end - loop.first
        rest = mod(extent, Expr.of(width))
        middle = loop.end - rest
        first = loop.first
        pieces: list[Operation] = []
        if unroll > 1:
            wide = mod(extent, Expr.of(width * unroll))
            pieces.append(self._wide_loop(first, loop.end - wide, unroll))
            first = loop.end - wide
        if middle - first != ZERO:
            pieces.append(self._vector_loop(loop.axis if not pieces else self.names.fresh(loop.axis), first, middle))
        if rest != ZERO:
            pieces.append(self._vector_loop(self.names.fresh(loop.axis), middle, loop.end, tail=True))
        for piece in [*pieces, *self._close_accumulators()]:
            block.insert_op_before(piece, loop)
        loop.detach()
        loop.erase()

    # -- the loops ----------------------------------------------------------------------------------------------------

    def _vector_loop(self, axis: str, first: Expr, end: Expr, *, tail: bool = False) -> ForOp:
        body = Block()
        guard = end - 1 - axis - self.lane if tail else None
        self._emit(self.loop.block, body, {}, Expr.of(axis), guard, ZERO)
        grain = None if tail or self.loop.grain is None else self.loop.grain.ceildiv(self.width)
        new = ForOp(axis, first, end, body, step=self.width, reduction=self.loop.is_reduction, grain=grain)
        new.words = without(self.loop.words, "threads", "interior") if tail else self.loop.words
        return new

    def _wide_loop(self, first: Expr, end: Expr, unroll: int) -> ForOp:
        axis, copy = self.loop.axis, self.names.fresh("u")
        inner = Block()
        self._emit(self.loop.block, inner, {}, Expr.of(axis) + Expr.of(copy) * self.width, None, Expr.of(copy))
        each = ForOp(copy, 0, unroll, inner)
        each.words = LoopWords(unroll=0)
        return ForOp(axis, first, end, Block([each]), step=self.width * unroll, reduction=self.loop.is_reduction)

    # -- accumulators -------------------------------------------------------------------------------------------------

    def _open_accumulators(self) -> list[Operation]:
        ops: list[Operation] = []
        for op in self.shared:
            element = element_of(op.buffer.type)
            alloc = AllocOp("lanes", memref_of(element, [self.accumulators, self.width], "register"))
            zero = identity(op.combiner, element)
            splat = vector.BroadcastOp(zero.result, self._vector(zero.result.type))
            ops.extend((alloc, zero, splat))
            ops.extend(
                StoreOp(splat.results[0], alloc.result, [Expr.of(k), self.lane], lane=self.lane)
                for k in range(self.accumulators)
            )
            self.partial[op] = alloc.result
        return ops

    def _close_accumulators(self) -> list[Operation]:
        ops: list[Operation] = []
        for op in self.shared:
            buffer = self.partial[op]
            kind = self._vector(op.value.type)
            step = 1
            while step < self.accumulators:
                for k in range(0, self.accumulators - step, 2 * step):
                    other = LoadOp(buffer, [Expr.of(k + step), self.lane], kind, lane=self.lane)
                    ops.append(other)
                    ops.append(AccumulateOp(op.combiner, other.result, buffer, [Expr.of(k), self.lane], lane=self.lane))
                step *= 2
            lanes = LoadOp(buffer, [ZERO, self.lane], kind, lane=self.lane)
            total = ReduceLanesOp(op.combiner, lanes.result, is_unsigned(element_of(op.buffer.type)))
            ops.extend((lanes, total, AccumulateOp(op.combiner, total.result, op.buffer, op.subscripts)))
        return ops

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _emit(
        self,
        source: Block,
        target: Block,
        mapping: dict[SSAValue, SSAValue],
        base: Expr,
        guard: Expr | None,
        copy: Expr,
        values: dict[str, Expr] | None = None,
    ) -> None:
        """Copies the ops of `source` into `target` for the iterations `base + lane`."""
        values = {self.loop.axis: base + self.lane} if values is None else values
        for op in source.ops:
            if isinstance(op, ForOp):
                self._emit_loop(op, target, mapping, base, guard, copy, values)
            elif isinstance(op, IfOp):
                indices = [mapping.get(i, i) for i in op.indices]
                varies = any(isinstance(i.type, VectorType) for i in indices)
                if varies or any(self.loop.axis in g.symbols for g in op.guards):
                    raise self._refusal(self.loop, "a condition inside it depends on it")
                body = Block()
                self._emit(op.block, body, dict(mapping), base, guard, copy, values)
                target.add_op(IfOp([g.substitute(values) for g in op.guards], body, indices))
            elif isinstance(op, AllocOp):
                dims = (*dims_of(op.result.type), Expr.of(self.width))
                fresh = op.like(dims)
                target.add_op(fresh)
                mapping[op.result] = fresh.result
            elif isinstance(op, MemoryOp):
                last = target.last_op
                self._emit_access(op, target, mapping, values, guard, copy)
                name_added(target, last, name_of(op))
            elif isinstance(op, IndexOp):
                self._emit_index(op, target, mapping, values)
            elif is_pure(op):
                self._emit_pure(op, target, mapping)
            else:
                raise self._refusal(self.loop, f"'{op.name}' inside it cannot be vectorised")

    def _emit_loop(
        self,
        op: ForOp,
        target: Block,
        mapping: dict[SSAValue, SSAValue],
        base: Expr,
        guard: Expr | None,
        copy: Expr,
        values: dict[str, Expr],
    ) -> None:
        indices = [mapping.get(i, i) for i in op.indices]
        varies = op.going in self.private or any(isinstance(i.type, VectorType) for i in indices)
        if varies or self.loop.axis in op.first.symbols | op.end.symbols:
            raise self._refusal(self.loop, f"the range of loop '{op.axis}' inside it depends on it")
        axis = self.names.fresh(op.axis)
        inner = {**values, op.axis: Expr.of(axis)}
        body = Block()
        self._emit(op.block, body, dict(mapping), base, guard, copy, inner)
        new = ForOp(
            axis,
            op.first.substitute(values),
            op.end.substitute(values),
            body,
            step=op.step,
            reduction=op.is_reduction,
            sequential=op.is_sequential,
            indices=indices,
            going=op.going,
        )
        new.words = op.words
        target.add_op(new)

    def _emit_index(
        self, op: IndexOp, target: Block, mapping: dict[SSAValue, SSAValue], values: dict[str, Expr]
    ) -> None:
        varies = self.loop.axis in op.value.symbols
        value = op.value.substitute(values)
        new = IndexOp(value, self.lane, self._vector(op.result.type)) if varies else IndexOp(value)
        target.add_op(new)
        mapping[op.result] = new.result

    def _emit_pure(self, op: Operation, target: Block, mapping: dict[SSAValue, SSAValue]) -> None:
        operands = [mapping.get(v, v) for v in op.operands]
        if not any(isinstance(v.type, VectorType) for v in operands):
            copy = op.clone(mapping)
            target.add_op(copy)
            return
        wide = [self._widen(v, target) for v in operands]
        results = [self._vector(r.type) for r in op.results]
        copy = vector_class(op).create(
            operands=wide, result_types=results, properties=op.properties.copy(), attributes=op.attributes.copy()
        )
        copy.location = op.location
        target.add_op(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            mapping[old] = new

    def _emit_access(
        self,
        op: MemoryOp,
        target: Block,
        mapping: dict[SSAValue, SSAValue],
        values: dict[str, Expr],
        guard: Expr | None,
        copy: Expr,
    ) -> None:
        if op.lane is not None:
            raise self._refusal(self.loop, "it already has vector accesses")
        buffer = mapping.get(op.accessed, op.accessed)
        subscripts = [s.substitute(values) for s in op.subscripts]
        guards = [g.substitute(values) for g in op.guards]
        indices = [mapping.get(i, i) for i in op.indices]
        owned = op.accessed in self.private
        varies = (
            owned
            or any(self.lane in e.symbols for e in (*subscripts, *guards))
            or any(isinstance(i.type, VectorType) for i in indices)
            or (isinstance(op, LoadOp) and _is_vector(mapping, op.otherwise))
        )
        if owned:
            subscripts.append(Expr.of(self.lane))
        elif guard is not None and varies and not self._has_room(op):
            guards.append(guard)
        if isinstance(op, AccumulateOp) and op in self.partial:
            value = self._widen(mapping.get(op.value, op.value), target)
            tail = guards if guard is None else [*guards, guard]
            target.add_op(
                AccumulateOp(
                    op.combiner, value, self.partial[op], [copy, self.lane], guards=_unique(tail), lane=self.lane
                )
            )
            return
        lane = self.lane if varies else None
        if isinstance(op, LoadOp):
            otherwise = None if op.otherwise is None else mapping.get(op.otherwise, op.otherwise)
            if varies and otherwise is not None:
                otherwise = self._widen(otherwise, target)
            kind = self._vector(op.result.type) if varies else op.result.type
            new = LoadOp(buffer, subscripts, kind, indices=indices, guards=guards, otherwise=otherwise, lane=lane)
            new.result.name_hint = op.result.name_hint
            mapping[op.result] = new.result
            target.add_op(new)
            return
        assert isinstance(op, (StoreOp, AccumulateOp))
        value = mapping.get(op.value, op.value)
        if not varies:
            raise self._refusal(self.loop, "its iterations store to the same element")
        value = self._widen(value, target)
        if isinstance(op, StoreOp):
            target.add_op(StoreOp(value, buffer, subscripts, indices=indices, guards=guards, lane=lane))
        else:
            target.add_op(
                AccumulateOp(op.combiner, value, buffer, subscripts, indices=indices, guards=guards, lane=lane)
            )

    def _has_room(self, op: MemoryOp) -> bool:
        """True if a whole vector fits where the tail accesses a kernel's own buffer: nobody reads the lanes behind the
        last element, so they need no mask."""
        alloc, axis = op.accessed.owner, self.loop.axis
        if not isinstance(alloc, AllocOp) or alloc.space != "local" or op.indices or self.loop.first != ZERO:
            return False
        size = dims_of(alloc.result.type)[-1].constant if op.subscripts else None
        elsewhere = any(axis in e.symbols for e in (*op.subscripts[:-1], *op.guards))
        return not elsewhere and size is not None and size % self.width == 0 and op.subscripts[-1] == Expr.of(axis)

    def _widen(self, value: SSAValue, target: Block) -> SSAValue:
        if isinstance(value.type, VectorType):
            return value
        splat = vector.BroadcastOp(value, self._vector(value.type))
        target.add_op(splat)
        return splat.results[0]

    def _vector(self, scalar: Attribute) -> VectorType[Attribute]:
        return VectorType(scalar, [self.width])


def _unique(guards: list[Expr]) -> list[Expr]:
    return list(dict.fromkeys(guards))


def _is_vector(mapping: dict[SSAValue, SSAValue], value: SSAValue | None) -> bool:
    return value is not None and isinstance(mapping.get(value, value).type, VectorType)


def _pad_lanes(alloc: AllocOp) -> None:
    """Rounds the last dim of a register buffer up to whole vectors, if a masked tail would exceed its end."""
    dims = dims_of(alloc.result.type)
    size = dims[-1].constant if dims else None
    widths = {_lanes(use.operation) for use in alloc.result.uses}
    if size is None or size % max(widths, default=1) == 0:
        return
    widest = max(widths)
    replace_alloc(alloc, alloc.like([*dims[:-1], Expr.of(-(-size // widest) * widest)]))


def _lanes(op: Operation) -> int:
    """Returns the number of elements that an access touches along the last dim of its buffer."""
    if not isinstance(op, MemoryOp) or op.lane is None or not op.subscripts or op.lane not in op.subscripts[-1].symbols:
        return 1
    value = op.value if isinstance(op, (StoreOp, AccumulateOp)) else op.results[0]
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 1


def _move_dim_last(alloc: AllocOp, dim: int) -> None:
    dims = list(dims_of(alloc.result.type))
    dims.append(dims.pop(dim))
    for use in list(alloc.result.uses):
        user = use.operation
        assert isinstance(user, MemoryOp)
        subscripts = list(user.subscripts)
        subscripts.append(subscripts.pop(dim))
        user.subscripts_attr = DimsAttr(subscripts)
    replace_alloc(alloc, alloc.like(dims))
