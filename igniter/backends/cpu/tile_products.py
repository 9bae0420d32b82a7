"""`loop.tile_product` as a call of a micro-kernel: the steps of its accesses, in bytes, are the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I64, Type
from igniter.backends.cpu.micro_kernels import missing_reason
from igniter.backends.cpu.tile_bodies import TileKind, TileSize
from igniter.backends.cpu.tile_calls import PARAMETERS, offset
from igniter.backends.cpu.tile_kernels import declaration, has_rounds, tile_name, uses_tiles
from igniter.dialects.loop import TileProductOp, element_bytes
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, linearize
from igniter.dialects.sym.ranges import Ranges, simplify


@dataclass(frozen=True)
class Operand:
    """The start of an operand, and its step along each name, in bytes."""

    offset: Expr
    steps: dict[str, Expr]


def emit_tile_product(f: Function, op: TileProductOp, func: str) -> None:
    """Emits the call of the micro-kernel for `op`."""
    kernel = op.kernel
    if kernel is None:
        types = " and ".join(str(element_of(v.type)) for v in (op.a, op.b))
        raise EmitError(func, op, f"there is no micro-kernel for products of {types} in {element_of(op.c.type)}")
    missing = missing_reason(kernel.name, f.module.target)
    if missing is not None:
        raise EmitError(func, op, missing)
    kind = TileKind(kernel)
    row, panel, lane, depth = op.names[:4]
    lanes, steps = op.extents[lane], op.extents[depth]
    if lanes != Expr.of(kind.lanes):
        raise EmitError(func, op, f"a panel of {lanes} lanes; {kind.name} has {kind.lanes}")
    c, a, b = (_operand(f, op, which, kind, func) for which in range(3))
    _expect(f, op, func, "c", c.steps, lane, kind.sum_bytes)
    if op.tile[1] > 1:
        _expect(f, op, func, "c", c.steps, panel, kind.sum_bytes * kind.lanes)
    _expect(f, op, func, "b", b.steps, lane, kind.panel_bytes)
    groups = f.prepare(floordiv(steps + (kind.group - 1), Expr.of(kind.group)))
    byte = Type("i8")
    arguments: dict[str, Value] = {}
    for letter, operand, value, names in (
        ("a", a, op.a, {"row": row, "depth": depth, "round": op.round}),
        ("b", b, op.b, {"panel": panel, "depth": depth, "round": op.round}),
        ("c", c, op.c, {"row": row}),
    ):
        arguments[letter] = f.address(f.find_pointer(value), byte, f.prepare(operand.offset))
        steps_of = {f"{letter}_{what}": name for what, name in names.items() if name is not None}
        arguments.update({key: f.expr(f.prepare(operand.steps[name])) for key, name in steps_of.items()})
    arguments |= {"rows": f.expr(f.prepare(op.extents[row])), "depth": f.expr(groups), "add": f.const(I64, op.adds)}
    # Without a place to prefetch from, the present operand is fetched again.
    arguments["next"] = arguments["a"] if op.next_at is None else _place(f, op, op.next_at.data)
    if op.round is not None:
        arguments["rounds"] = f.expr(f.prepare(op.extents[op.round]))
    panels, wide = f.prepare(op.extents[panel]), kind.lanes * kind.sum_bytes
    if f.module.sanitizer is None:
        _calls(f, op, kind, panels, arguments)
        return
    rows = op.extents[row]
    rounds = [] if op.round is None else [op.extents[op.round]]
    turns = [[(o.steps[op.round], op.extents[op.round])] if op.round is not None else [] for o in (a, b)]
    inside = f.module.sanitizer.check_tile(
        f,
        op,
        func,
        (
            (
                "a",
                op.a,
                a.offset,
                kind.step_bytes,
                [(a.steps[row], rows), (a.steps[depth], groups), *turns[0]],
                [rows, groups, *rounds],
            ),
            (
                "b",
                op.b,
                b.offset,
                kind.lanes * kind.panel_bytes,
                [(b.steps[panel], panels), (b.steps[depth], groups), *turns[1]],
                [rows, panels, groups, *rounds],
            ),
            ("c", op.c, c.offset, wide, [(c.steps[row], rows), (c.steps[panel], panels)], [rows, panels]),
        ),
    )
    multiply, done = f.label("multiply"), f.label("skipped")
    f.branch(inside, multiply, done)
    f.start(multiply)
    _calls(f, op, kind, panels, arguments)
    f.jump(done)
    f.start(done)


def _calls(f: Function, op: TileProductOp, kind: TileKind, panels: Expr, arguments: Mapping[str, Value]) -> None:
    """Calls the micro-kernel for the number of panels; if this is known only at run time, branches to one of
    several."""

    def call(count: int) -> None:
        rounds = op.round is not None and has_rounds(kind, op.tile[0], f.module.target)
        size = TileSize(op.tile[0], count, rounds)
        name = tile_name(kind.name, size, f.module.target)
        f.uses_tiles |= uses_tiles(kind, op.tile[0], f.module.target)
        f.module.declarations.setdefault(name, declaration(name))
        if op.round is None or rounds:
            f.raw(f"call void @{name}({', '.join(arguments[p].typed for p in size.parameters)})")
        else:
            _one_by_one(f, name, op.adds, arguments)

    if panels.constant is not None:
        if panels.constant > 0:
            call(panels.constant)
        return
    number, done = f.expr(panels), f.label("multiplied")
    for count in range(op.tile[1], 0, -1):
        this, other = f.label(f"panels{count}."), f.label("fewer")
        f.branch(f.icmp("eq", number, f.const(I64, count)), this, other)
        f.start(this)
        call(count)
        f.jump(done)
        f.start(other)
    f.jump(done)
    f.start(done)


def _one_by_one(f: Function, name: str, adds: bool, arguments: Mapping[str, Value]) -> None:
    """Emits a call for every round, of a micro-kernel without rounds: all calls but the first add to the tile. Zero
    rounds are one call of depth 0, which stores the empty sum."""
    none, one = f.const(I64, 0), f.const(I64, 1)
    depth = f.select(f.icmp("sgt", arguments["rounds"], none), arguments["depth"], none)
    count = f.call("llvm.smax.i64", I64, [arguments["rounds"], one])
    body, done, before = f.label("round"), f.label("rounds"), f.block
    following = Value(I64, f.name("following"))
    f.jump(body)
    f.start(body)
    number = f.phi(I64, [(none, before), (following, body)])
    steps = (("a", "a_round"), ("b", "b_round"), ("next", "b_round"))
    moved = {p: offset(f, arguments[p], f.binary("mul", number, arguments[step])) for p, step in steps}
    later = f.select(f.icmp("sgt", number, none), one, f.const(I64, adds))
    own = {**arguments, **moved, "depth": depth, "add": later}
    f.raw(f"call void @{name}({', '.join(own[p].typed for p in PARAMETERS)})")
    f.raw(f"{following.text} = add i64 {number.text}, 1")
    f.branch(f.icmp("slt", following, count), body, done)
    f.start(done)


def _place(f: Function, op: TileProductOp, subscripts: tuple[Expr, ...]) -> Value:
    """Returns the address of an element of `b`."""
    offset = linearize([f.prepare(s) for s in subscripts], dims_of(op.b.type))
    size = element_bytes(element_of(op.b.type))
    return f.address(f.find_pointer(op.b), Type("i8"), f.prepare(offset * size))


def _operand(f: Function, op: TileProductOp, which: int, kind: TileKind, func: str) -> Operand:
    value, _, subscripts = op.accesses[which]
    row, panel, lane, depth = op.names[:4]
    # A step of depth is a group of contiguous elements.
    grouped = {depth: Expr.of(depth) * kind.group}
    ranges = Ranges(
        {
            **f.axes,
            lane: (ZERO, Expr.of(kind.lanes)),
            row: (ZERO, Expr.of(op.tile[0])),
            panel: (ZERO, Expr.of(op.tile[1])),
            depth: (ZERO, op.extents[depth]),
            **({} if op.round is None else {op.round: (ZERO, op.extents[op.round])}),
        }
    )
    prepared = [simplify(s.substitute(f.fixed).substitute(grouped), ranges) for s in subscripts]
    offset = simplify(linearize(prepared, dims_of(value.type)), ranges) * element_bytes(element_of(value.type))
    steps: dict[str, Expr] = {}
    for name in op.names:
        step = offset.coefficient(name)
        if step is None:
            raise EmitError(func, op, f"subscripts {[str(s) for s in subscripts]} are not affine in '{name}'")
        steps[name] = step
        offset = offset.without(name)
    return Operand(offset, steps)


def _expect(f: Function, op: TileProductOp, func: str, what: str, steps: dict[str, Expr], name: str, size: int) -> None:
    if f.prepare(steps[name]) != Expr.of(size):
        raise EmitError(func, op, f"along '{name}' the elements of {what} are {steps[name]} bytes apart, not {size}")
