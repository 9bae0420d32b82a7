"""`loop.tile_product` as a call of a micro-kernel: the steps of its accesses, in bytes, are the arguments."""

from __future__ import annotations

from dataclasses import dataclass

from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I64, Type
from igniter.backends.cpu.micro_kernels import missing_reason
from igniter.backends.cpu.tile_bodies import TileKind, TileSize
from igniter.backends.cpu.tile_kernels import declaration, tile_name
from igniter.dialects.loop import TileProductOp, element_bytes
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, linearize
from igniter.dialects.sym.ranges import Ranges, simplify


@dataclass(frozen=True)
class Operand:
    """Where an operand starts, and its step along each name, in bytes."""

    offset: Expr
    steps: dict[str, Expr]


def emit_tile_product(f: Function, op: TileProductOp, func: str) -> None:
    """The call of the micro-kernel that does `op`."""
    kernel = op.kernel
    if kernel is None:
        types = " and ".join(str(element_of(v.type)) for v in (op.a, op.b))
        raise EmitError(func, op, f"there is no micro-kernel for products of {types} in {element_of(op.c.type)}")
    missing = missing_reason(kernel.name, f.module.target)
    if missing is not None:
        raise EmitError(func, op, missing)
    kind = TileKind(kernel)
    row, panel, lane, depth = op.names
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
    arguments: list[str] = []
    for operand, value, names in ((a, op.a, (row, depth)), (b, op.b, (panel, depth)), (c, op.c, (row,))):
        arguments.append(f.address(f.find_pointer(value), byte, f.prepare(operand.offset)).typed)
        arguments += [f.expr(f.prepare(operand.steps[n])).typed for n in names]
    arguments += [f.expr(f.prepare(op.extents[row])).typed, f.expr(groups).typed, f"i64 {int(op.adds)}"]
    # Without a place to fetch from, what is there anyway is fetched again.
    arguments.append(arguments[0] if op.next_at is None else _place(f, op, op.next_at.data))
    panels, wide = f.prepare(op.extents[panel]), kind.lanes * kind.sum_bytes
    if f.module.sanitizer is None:
        _calls(f, op, kind, panels, ", ".join(arguments))
        return
    rows = op.extents[row]
    inside = f.module.sanitizer.check_tile(
        f,
        op,
        func,
        (
            ("a", op.a, a.offset, kind.step_bytes, [(a.steps[row], rows), (a.steps[depth], groups)], [rows, groups]),
            (
                "b",
                op.b,
                b.offset,
                kind.lanes * kind.panel_bytes,
                [(b.steps[panel], panels), (b.steps[depth], groups)],
                [rows, panels, groups],
            ),
            ("c", op.c, c.offset, wide, [(c.steps[row], rows), (c.steps[panel], panels)], [rows, panels]),
        ),
    )
    multiply, done = f.label("multiply"), f.label("skipped")
    f.branch(inside, multiply, done)
    f.start(multiply)
    _calls(f, op, kind, panels, ", ".join(arguments))
    f.jump(done)
    f.start(done)


def _calls(f: Function, op: TileProductOp, kind: TileKind, panels: Expr, arguments: str) -> None:
    """The micro-kernel for as many panels as there are: one of several where that is known at run time only."""

    def call(count: int) -> None:
        name = tile_name(kind.name, TileSize(op.tile[0], count), f.module.target)
        f.module.declarations.setdefault(name, declaration(name))
        f.raw(f"call void @{name}({arguments})")

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


def _place(f: Function, op: TileProductOp, subscripts: tuple[Expr, ...]) -> str:
    """The address of an element of `b`."""
    offset = linearize([f.prepare(s) for s in subscripts], dims_of(op.b.type))
    size = element_bytes(element_of(op.b.type))
    return f.address(f.find_pointer(op.b), Type("i8"), f.prepare(offset * size)).typed


def _operand(f: Function, op: TileProductOp, which: int, kind: TileKind, func: str) -> Operand:
    value, _, subscripts = op.accesses[which]
    row, panel, lane, depth = op.names
    # A step of depth is a group of elements that are stored side by side.
    grouped = {depth: Expr.of(depth) * kind.group}
    ranges = Ranges(
        {
            **f.axes,
            lane: (ZERO, Expr.of(kind.lanes)),
            row: (ZERO, Expr.of(op.tile[0])),
            panel: (ZERO, Expr.of(op.tile[1])),
            depth: (ZERO, op.extents[depth]),
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
