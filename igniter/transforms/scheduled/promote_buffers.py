"""`promote-buffers`: shrinks a buffer to the part needed by one iteration of a loop.

    %e = loop.alloc "exp" : memref<?x128xf32, #sym.dims<n, 128>, "scratch">
    loop.for i = 0 to n {
      loop.for j .. { loop.store %d, %e[i, j] }
      loop.for j1 .. { loop.load %e[i, j1] }
    }
becomes
    loop.for i = 0 to n {
      %e = loop.alloc "exp" : memref<128xf32, "local">
      ...%e[j]... %e[j1]
    }

If all accesses are inside one loop body, and every subscript is a common expression of the axes around that body plus a
nonnegative rest, the buffer moves into the body and each dim shrinks to the extent of its rest. A dim with rest 0 is
removed. A buffer without dims becomes a register, and a value stored and then loaded in one body is forwarded. The pass
runs after `fuse-loops`, and again after tiling, because it makes new bodies.

A buffer with the hint `depth` moves into the body of exactly `depth` loops, and into the `memory` of its hint. If it
cannot, it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import ranges_at, tile_ranges, vector_width
from igniter.dialects.loop import AccumulateOp, AllocOp, ForOp, FuncOp, LoadOp, MemoryOp, StoreOp, TileProductOp, ViewOp
from igniter.dialects.loop.dead_values import erase_dead_values
from igniter.dialects.loop.storage import Storage, StorageAttr
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, delinearize, linearize, maximum
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify
from igniter.errors import IgniterError
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.scheduled.loop_rewrites import nested_blocks, replace_alloc


@dataclass(frozen=True)
class PromoteBuffers(ModulePass):
    """Moves buffers into their loops, shrinks them, and forwards stores to loads."""

    name = "promote-buffers"
    one_rewrite = "a view resolved, a buffer moved, a load forwarded from a store, or an unread buffer dropped"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp):
                promote_in(func, budget(ctx, self.name))


def promote_in(func: FuncOp, rewrites: Budget) -> None:
    """Promotes every buffer of `func` as far as possible."""
    resolve_views(func, rewrites)
    for alloc in [op for op in func.walk() if isinstance(op, AllocOp)]:
        if alloc.storage is not None and alloc.storage.depth is not None:
            if rewrites.take(func.sym_name.data, f"buffer '{alloc.label.data}' is placed as scheduled"):
                _put(alloc, func)
        elif not rewrites.is_spent and promote(alloc):
            rewrites.count(func.sym_name.data, f"buffer '{alloc.label.data}' is moved")
    for block in nested_blocks(func.block):
        forward_stores(block, rewrites, func.sym_name.data)
    for alloc in [op for op in func.walk() if isinstance(op, AllocOp)]:
        _drop_if_unread(alloc, rewrites, func.sym_name.data)
    erase_dead_values(func.block)


def resolve_views(func: FuncOp, rewrites: Budget) -> None:
    """Replaces accesses through a view by accesses to its source, if this adds no division."""
    for view in reversed([op for op in func.walk() if isinstance(op, ViewOp)]):
        source_dims, dims = dims_of(view.source.type), dims_of(view.result.type)
        users = [use.operation for use in view.result.uses]
        if not all(isinstance(u, MemoryOp) for u in users):
            continue
        rewritten: list[tuple[MemoryOp, list[Expr]]] = []
        for user in users:
            assert isinstance(user, MemoryOp)
            ranges = _ranges_with_lane(user)
            offset = linearize(user.subscripts, dims)
            subscripts = [simplify(e, ranges) for e in delinearize(offset, source_dims)]
            if sum(str(e).count("floordiv") + str(e).count("mod") for e in subscripts) > sum(
                str(e).count("floordiv") + str(e).count("mod") for e in user.subscripts
            ):
                break
            rewritten.append((user, subscripts))
        else:
            if not rewrites.take(func.sym_name.data, "a view is resolved"):
                return
            for user, subscripts in rewritten:
                user.subscripts_attr = DimsAttr(subscripts)
            view.result.replace_all_uses_with(view.source)
            view.detach()
            view.erase()


@dataclass(frozen=True)
class Place:
    """One access to a buffer: an op, and the key of its property with the subscripts."""

    op: Operation
    key: str

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        found = self.op.properties[self.key]
        assert isinstance(found, DimsAttr)
        return found.data

    @property
    def is_indirect(self) -> bool:
        return isinstance(self.op, MemoryOp) and bool(self.op.indices)

    @property
    def ranges(self) -> Ranges:
        return tile_ranges(self.op) if isinstance(self.op, TileProductOp) else _ranges_with_lane(self.op)


def places_of(buffer: SSAValue) -> list[Place] | None:
    """Returns every access to a buffer; None if it has other users."""
    found: list[Place] = []
    for op in dict.fromkeys(use.operation for use in buffer.uses):
        if isinstance(op, MemoryOp):
            found.append(Place(op, "subscripts"))
        elif isinstance(op, TileProductOp) and (op.next_at is None or buffer is not op.b):
            found += [Place(op, key) for value, key, _ in op.accesses if value is buffer]
        else:
            return None
    return found


def promote(alloc: AllocOp) -> bool:
    """Moves and shrinks one buffer. False if nothing is gained."""
    accesses = places_of(alloc.result)
    if not accesses:
        return False
    block = _common_block([place.op for place in accesses])
    home = alloc.parent_block()
    if block is None or home is None or block is home or not _is_inside(block, home):
        return False
    return _move(alloc, accesses, block)


def _put(alloc: AllocOp, func: FuncOp) -> None:
    """Moves a buffer to the depth of its schedule."""
    assert alloc.storage is not None and alloc.storage.depth is not None
    depth, memory = alloc.storage.depth, alloc.storage.memory
    space = {"registers": "register", "stack": "local", "arena": "local" if depth else "scratch"}.get(memory)
    # `plan-buffers` chooses between a task's stack and the arena.
    alloc.storage_attr = StorageAttr(Storage(None, memory)) if memory and space == "local" else None
    where = (
        f"{PromoteBuffers.name}: func '{func.sym_name.data}': the result of nest '{alloc.label.data}' cannot be stored"
    )
    if depth == 0:
        if space == "register" and any(d.constant is None for d in dims_of(alloc.result.type)):
            raise IgniterError(f"{where} in registers: its dims are not constant")
        replace_alloc(alloc, alloc.like(dims_of(alloc.result.type), space))
        return
    accesses = places_of(alloc.result)
    if not accesses:
        raise IgniterError(f"{where} inside loops: a user takes it as a whole")
    bodies = {_body_at(place.op, depth) for place in accesses}
    (block,) = bodies if len(bodies) == 1 else (None,)
    if block is None:
        raise IgniterError(
            f"{where} at the scheduled place: its writers and readers are not in one loop there (give the loops "
            "around it 'fuse', where that is legal)"
        )
    if not _move(alloc, accesses, block, space):
        raise IgniterError(
            f"{where} at the scheduled place: an iteration reads a part that it does not write, or one of "
            "unbounded size"
        )


def _body_at(op: Operation, depth: int) -> Block | None:
    """Returns the body of the `depth`-th loop around `op`, from the outside, if a buffer may move into it."""
    bodies = [b for b in _chain(op) if isinstance(b.parent_op(), ForOp)]
    return bodies[depth - 1] if len(bodies) >= depth else None


def _move(alloc: AllocOp, accesses: list[Place], block: Block, wanted: str | None = None) -> bool:
    """Moves a buffer into `block` and shrinks it to the part used there. False if nothing is gained or the part is
    unknown. `wanted`: the required memory space."""
    owner = block.parent_op()
    outer = frozenset(ranges_at(next(iter(block.ops))).axes) if isinstance(owner, ForOp) else frozenset[str]()
    layout = _split(accesses, dims_of(alloc.result.type), outer)
    if layout is None:
        return False
    rests, dims = layout
    kept = [k for k, d in enumerate(dims) if d != ONE]
    if isinstance(owner, ForOp) and len(kept) == len(dims) and alloc.space == "scratch" and not kept:
        return False
    new_dims = [dims[k] for k in kept]
    if wanted == "register" and any(d.constant is None for d in new_dims):
        return False
    in_registers = alloc.space == "register" or (
        not kept and not any(isinstance(place.op, TileProductOp) for place in accesses)
    )
    fresh = alloc.like(new_dims, wanted or ("register" if in_registers else "local"))
    first = block.first_op
    assert first is not None
    block.insert_op_before(fresh, first)
    for place, rest in zip(accesses, rests, strict=True):
        place.op.properties[place.key] = DimsAttr(rest[k] for k in kept)
    alloc.result.replace_all_uses_with(fresh.result)
    alloc.detach()
    alloc.erase()
    return True


def _split(
    accesses: list[Place], full: tuple[Expr, ...], outer: frozenset[str]
) -> tuple[list[list[Expr]], list[Expr]] | None:
    """Splits every subscript into a base of `outer` axes and a rest. Returns the rests and the dims for them."""
    rests: list[list[Expr]] = [[] for _ in accesses]
    dims: list[Expr] = []
    if any(place.is_indirect for place in accesses):
        return None
    for k in range(len(full)):
        bases = {_terms_in(place.subscripts[k], outer) for place in accesses}
        if len(bases) != 1:
            return None
        (base,) = bases
        extent = ZERO
        for place, rest in zip(accesses, rests, strict=True):
            inner = place.subscripts[k] - base
            rest.append(inner)
            upper = _upper(inner, place.ranges, outer)
            if upper is None:
                extent = full[k]
                if base != ZERO:
                    return None
                break
            extent = upper if extent == ZERO else maximum(extent, upper)
        else:
            dims.append(extent)
            continue
        rests = [[*r[:k], place.subscripts[k]] for r, place in zip(rests, accesses, strict=True)]
        dims.append(extent)
    return rests, dims


def _terms_in(e: Expr, names: frozenset[str]) -> Expr:
    """Returns the terms of `e` with some of `names`."""
    return Expr({m: c for m, c in e.terms if Expr({m: c}).symbols & names})


def _upper(rest: Expr, ranges: Ranges, outer: frozenset[str]) -> Expr | None:
    """Returns an upper bound of `rest` plus one, without axes; None if it is not known to be >= 0."""
    if not is_nonneg(rest, ranges):
        return None
    bound = rest
    for _ in range(8):
        axes = sorted(bound.symbols & ranges.axes.keys() - outer)
        if not axes:
            return bound + 1 if not bound.symbols & outer else None
        coefficient = bound.coefficient(axes[0])
        if coefficient is None or not is_nonneg(coefficient, ranges):
            return None
        end = _free_of(ranges.axes[axes[0]][1], outer, ranges)
        if end is None:
            return None
        bound = bound.without(axes[0]) + coefficient * (end - 1)
    return None


def _free_of(end: Expr, outer: frozenset[str], ranges: Ranges) -> Expr | None:
    """Returns an upper bound of a loop's end without outer axes; for `min(8, n - i)`, 8."""
    if not end.symbols & outer:
        return end
    if end.call is None or end.call.fn != "min":
        return None
    return next((a for a in end.call.args if not a.symbols & outer), None)


def _ranges_with_lane(op: Operation) -> Ranges:
    ranges = ranges_at(op)
    if not isinstance(op, MemoryOp) or op.lane is None:
        return ranges
    return Ranges({**ranges.axes, op.lane: (ZERO, Expr.of(vector_width(op)))})


def _common_block(ops: list[Operation]) -> Block | None:
    """Returns the innermost block that contains all of `ops`, directly or in regions."""
    chains = [_chain(op) for op in ops]
    common: Block | None = None
    for blocks in zip(*chains, strict=False):
        if any(b is not blocks[0] for b in blocks):
            break
        common = blocks[0]
    return common


def _chain(op: Operation) -> list[Block]:
    """Returns the blocks around `op`, outermost first, into which a buffer may move. A buffer must stay outside a
    sequential loop, because it carries values between the iterations."""
    blocks: list[Block] = []
    parent = op.parent_block()
    while parent is not None:
        blocks.append(parent)
        owner = parent.parent_op()
        if isinstance(owner, ForOp) and owner.is_sequential:
            blocks.clear()
        parent = owner.parent_block() if owner is not None and not isinstance(owner, FuncOp) else None
    return blocks[::-1]


def _is_inside(block: Block, outer: Block) -> bool:
    parent: Block | None = block
    while parent is not None and parent is not outer:
        owner = parent.parent_op()
        parent = owner.parent_block() if owner is not None else None
    return parent is outer


def forward_stores(block: Block, rewrites: Budget, func: str) -> None:
    """Replaces a load by the value of an earlier store to the same element in the same block."""
    known: dict[SSAValue, dict[tuple[tuple[Expr, ...], str | None], SSAValue]] = {}
    for op in list(block.ops):
        if isinstance(op, LoadOp):
            value = known[op.buffer].get(_key(op)) if op.buffer in known else None
            plain = not op.indices and not op.guards
            if value is None or not plain or value.type != op.result.type:
                continue
            if rewrites.take(func, f"a load of {op.result.type} is forwarded"):
                op.result.replace_all_uses_with(value)
                op.detach()
                op.erase()
            continue
        if isinstance(op, StoreOp):
            known.pop(op.buffer, None)
            if not op.indices and not op.guards and isinstance(op.buffer.owner, AllocOp):
                known[op.buffer] = {_key(op): op.value}
            continue
        if not known or not (op.regions or isinstance(op, (AccumulateOp, TileProductOp))):
            continue
        for inner in op.walk():
            if isinstance(inner, (StoreOp, AccumulateOp)):
                known.pop(inner.accessed, None)
            elif isinstance(inner, TileProductOp):
                known.pop(inner.c, None)


def _key(op: MemoryOp) -> tuple[tuple[Expr, ...], str | None]:
    """Returns the subscripts with a canonical lane name."""
    if op.lane is None:
        return op.subscripts, None
    return tuple(s.substitute({op.lane: Expr.of("$lane")}) for s in op.subscripts), "$lane"


def _drop_if_unread(alloc: AllocOp, rewrites: Budget, func: str) -> None:
    users = [use.operation for use in alloc.result.uses]
    if any(not isinstance(u, (StoreOp, AccumulateOp)) for u in users):  # A load, a view, or the condition of a loop.
        return
    if not rewrites.take(func, f"buffer '{alloc.label.data}' is dropped"):
        return
    for user in users:
        user.detach()
        user.erase()
    alloc.detach()
    alloc.erase()
