"""The op's own shape function, as LLVM IR: equations, requirements, output dims and the size of the scratch memory, in
this order, so that sizes are computed only after their requirements hold.

    i32 shapes(ptr dims, i64 members, ptr symbols, ptr out_dims, ptr scratch, ptr failure)

`dims` holds the dims of all inputs in sequence, `members` the number of values of the variadic input, `symbols` the
symbols in the order of `symbol_slots`; symbols that are a dim of an input have their value already. The result is 0, or
the number of a failure (`messages.KINDS`) with its details in `failure`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from igniter.backends.ort.checks import Message, Messages
from igniter.backends.ort.expressions import FunctionBuilder, int64
from igniter.backends.ort.messages import (
    BAD_OUTPUT,
    BAD_SCRATCH,
    UNSOLVABLE,
    WRONG_SYMBOL,
    StringPool,
)
from igniter.dialects.ort import OPTIONAL, VARIADIC, OpOp
from igniter.dialects.sym.bind_symbols import Bind, Check, Solve
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement

SCRATCH_LIMIT = 1 << 62
Equation: TypeAlias = Check | Solve


def dim_offsets(dims: Iterable[tuple[Expr, ...]]) -> list[int]:
    """Returns the start of each port's dims in the array of all dims."""
    offsets: list[int] = []
    total = 0
    for of_port in dims:
        offsets.append(total)
        total += len(of_port)
    return offsets


def symbol_slots(op: OpOp) -> dict[str, int]:
    """Returns the index of each symbol in the array of symbols: those of the kernel first, in its order."""
    names = list(op.symbol_names)
    names += sorted(op.binding.bound - set(names))
    return {symbol: i for i, symbol in enumerate(names)}


def emit_shapes(op: OpOp, name: str, c_string: StringPool) -> str:
    """Returns the shape function of `op`."""
    return _Shapes(op, name, c_string).emit()


class _Shapes:
    def __init__(self, op: OpOp, name: str, c_string: StringPool):
        self.op = op
        self.messages = Messages(name, c_string)
        self.f = FunctionBuilder(
            f"define internal i32 @{name}(ptr %dims, i64 %members, ptr %symbols, ptr %out.dims, ptr %scratch,"
            " ptr %failure)"
        )
        self.offsets = dim_offsets(p.dims for p in op.inputs)
        self.slot = symbol_slots(op)

    def emit(self) -> str:
        f = self.f
        f.line("%member.at = alloca i64")
        for i in self.slot.values():
            f.line(f"%symbol.{i} = getelementptr i64, ptr %symbols, i64 {i}")
        for group in self._groups():
            self._guarded(group)
        self._default_unbound()
        for requirement in self.op.requires:
            self._requirement(requirement)
        self._outputs()
        self._scratch()
        f.line("ret i32 0")
        return self.messages.emit() + f.text()

    def _at(self, symbol: str) -> str:
        return f"%symbol.{self.slot[symbol]}"

    def _groups(self) -> list[list[Equation]]:
        """Returns the equations in order, split by input: a group is skipped as a whole if its input is absent."""
        groups: list[list[Equation]] = []
        for step in self.op.binding.steps:
            if isinstance(step, Bind):
                continue
            if not groups or groups[-1][0].input != step.input:
                groups.append([])
            groups[-1].append(step)
        return groups

    def _guarded(self, group: list[Equation]) -> None:
        f = self.f
        port = self.op.inputs[group[0].input]
        after = f.fresh_label("after")
        if port.mode == OPTIONAL:
            here = f.fresh_label("here")
            f.line(f"br i1 {f.compare('ne', f.load('i64', self._at(port.symbol)), '0')}, label %{here}, label %{after}")
            f.label(here)
        member = "0"
        if port.mode == VARIADIC:
            loop, body = f.fresh_label("loop"), f.fresh_label("body")
            f.line("store i64 0, ptr %member.at")
            f.line(f"br label %{loop}")
            f.label(loop)
            member = f.load("i64", "%member.at")
            f.line(f"br i1 {f.compare('ult', member, '%members')}, label %{body}, label %{after}")
            f.label(body)
        for step in group:
            self._step(step, member)
        if port.mode == VARIADIC:
            following = f.fresh("next")
            f.line(f"{following} = add i64 {member}, 1")
            f.line(f"store i64 {following}, ptr %member.at")
            f.line(f"br label %{loop}")  # pyright: ignore[reportPossiblyUnboundVariable]
            f.label(after)
        elif port.mode == OPTIONAL:
            f.line(f"br label %{after}")
            f.label(after)

    def _step(self, step: Equation, member: str) -> None:
        f = self.f
        port = self.op.inputs[step.input]
        place = str(self.offsets[step.input] + step.axis)
        if member != "0":
            scaled, shifted = f.fresh("scaled"), f.fresh("place")
            f.line(f"{scaled} = mul i64 {member}, {len(port.dims)}")
            f.line(f"{shifted} = add i64 {scaled}, {place}")
            place = shifted
        dim = f.load("i64", f.element("i64", "%dims", place))
        if isinstance(step, Check):
            value, flags = f.expression(step.expr, self._values(step.expr))
            same = f.all_of([f.compare("eq", value, dim), *(f.negate(flag) for flag in flags)])
            self._require(same, WRONG_SYMBOL, step, member, value, dim)
        else:
            self._solve(step, member, dim)

    def _solve(self, step: Solve, member: str, dim: str) -> None:
        """Solves for the symbol; each further value of a variadic input must give the same result."""
        f = self.f
        at = self._at(step.symbol)
        rest, flags = f.expression(step.rest, self._values(step.rest))
        value, natural = f.solve(dim, rest, step.coefficient)
        good = f.all_of([natural, *(f.negate(flag) for flag in flags)])
        self._require(good, UNSOLVABLE, step, member, "0", dim)
        old = f.load("i64", at)
        unbound = f.compare("slt", old, "0")
        kept = f.fresh("kept")
        f.line(f"{kept} = select i1 {unbound}, i64 {value}, i64 {old}")
        f.line(f"store i64 {kept}, ptr {at}")
        self._require(f.compare("eq", kept, value), UNSOLVABLE, step, member, "0", dim)

    def _default_unbound(self) -> None:
        always = {s for p in self.op.inputs if p.always for d in p.dims for s in d.symbols}
        for symbol in sorted(self.slot.keys() - always - {p.symbol for p in self.op.inputs}):
            value = self.f.load("i64", self._at(symbol))
            natural = self.f.fresh("natural")
            self.f.line(f"{natural} = call i64 @llvm.smax.i64(i64 {value}, i64 0)")
            self.f.line(f"store i64 {natural}, ptr {self._at(symbol)}")

    def _requirement(self, requirement: Requirement) -> None:
        """Fails with the requirement's message if it does not hold, or if a side of it has no value."""
        f = self.f
        sides = [f.expression(side, self._values(side)) for side in (requirement.left, requirement.right)]
        (left, left_flags), (right, right_flags) = sides
        holds = f.compare("eq" if requirement.relation == "==" else "sle", left, right)
        good = f.all_of([holds, *(f.negate(flag) for flag in (*left_flags, *right_flags))])
        fine, bad = f.fresh_label("fine"), f.fresh_label("bad")
        f.line(f"br i1 {good}, label %{fine}, label %{bad}")
        f.label(bad)
        self.messages.fail(f, self._message(requirement, left, right))
        f.label(fine)

    def _message(self, requirement: Requirement, left: str, right: str) -> Message:
        """`node 'r': text: 16*n = 48, expected 64 (n = 3)`"""
        message = Message(requirement.node, f"{requirement.text}: ")
        relation = ", expected " if requirement.relation == "==" else ", expected at most "
        sides = [(requirement.left, left), (requirement.right, right)]
        if requirement.relation == "<=" and requirement.left.constant is not None:
            # `0 <= n - 4`: the right side is the wrong one.
            sides, relation = sides[::-1], ", expected at least "
        for (side, value), lead in zip(sides, ("", relation), strict=True):
            message.text(f"{lead}{side}")
            if side.constant is None:
                message.text(" = ")
                message.number(value)
        shown = {side.symbol for side, _ in sides}
        names = [s for s in sorted(requirement.symbols) if s not in shown][: message.room]
        for k, symbol in enumerate(names):
            message.text(f"{', ' if k else ' ('}{symbol} = ")
            message.number(self.f.load("i64", self._at(symbol)))
        message.text(")" if names else "")
        return message

    def _outputs(self) -> None:
        f = self.f
        offsets = dim_offsets(p.dims for p in self.op.outputs)
        for i, p in enumerate(self.op.outputs):
            for axis, dim in enumerate(p.dims):
                value, flags = f.expression(dim, self._values(dim))
                f.line(f"store i64 {value}, ptr {f.element('i64', '%out.dims', offsets[i] + axis)}")
                if dim.constant is not None or dim.symbol is not None:
                    continue
                good = f.all_of([f.compare("sge", value, "0"), *(f.negate(flag) for flag in flags)])
                self._fail_unless(good, BAD_OUTPUT, (str(i), str(i), str(axis), "0", value))

    def _scratch(self) -> None:
        f = self.f
        if self.op.scratch.constant is not None:
            f.line(f"store i64 {int64(max(0, self.op.scratch.constant))}, ptr %scratch")
            return
        value, flags = f.expression(self.op.scratch, self._values(self.op.scratch))
        # With some dims zero, the computed size of the scratch memory may be negative.
        size = f.fresh("size")
        f.line(f"{size} = call i64 @llvm.smax.i64(i64 {value}, i64 0)")
        f.line(f"store i64 {size}, ptr %scratch")
        small = f.compare("slt", value, str(SCRATCH_LIMIT))
        good = f.all_of([small, *(f.negate(flag) for flag in flags)])
        self._fail_unless(good, BAD_SCRATCH, ("0", "0", "0", "0", value))

    def _values(self, expr: Expr) -> dict[str, str]:
        return {s: self.f.load("i64", self._at(s)) for s in sorted(expr.symbols)}

    def _require(self, good: str, kind: int, step: Equation, member: str, want: str, got: str) -> None:
        index = str(step.input)
        if member != "0":
            index = self.f.fresh("index")
            self.f.line(f"{index} = add i64 {member}, {step.input}")
        self._fail_unless(good, kind, (str(step.input), index, str(step.axis), want, got))

    def _fail_unless(self, good: str, kind: int, particulars: tuple[str, str, str, str, str]) -> None:
        f = self.f
        fine, bad = f.fresh_label("fine"), f.fresh_label("bad")
        f.line(f"br i1 {good}, label %{fine}, label %{bad}")
        f.label(bad)
        for i, value in enumerate(particulars):
            f.line(f"store i64 {value}, ptr {f.element('i64', '%failure', i)}")
        f.line(f"ret i32 {kind}")
        f.label(fine)
