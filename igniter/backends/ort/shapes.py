"""The shape function of an op, as LLVM IR: from the dims of its inputs to its symbols, output dims and scratch size.

    i32 shapes(ptr dims, ptr there, i64 members, ptr symbols, ptr out_dims, ptr scratch, ptr failure)

`dims` holds the dims of all inputs one after the other, `there` a byte for every input, `members` the number of
values of the variadic input. The result is 0, or the number of a failure (`messages.KINDS`) with its particulars in
`failure`. Constant dims and ranks have been checked before.
"""

from __future__ import annotations

from collections.abc import Iterable

from igniter.analysis.bind_symbols import Bind, Check, Solve, Step
from igniter.analysis.expr import Expr
from igniter.backends.ort.expressions import FunctionBuilder, int64
from igniter.backends.ort.messages import BAD_OUTPUT, BAD_SCRATCH, UNSOLVABLE, WRONG_SYMBOL
from igniter.dialects.ort import OPTIONAL, VARIADIC, OpOp

SCRATCH_LIMIT = 1 << 62
UNBOUND = -1


def dim_offsets(dims: Iterable[tuple[Expr, ...]]) -> list[int]:
    """Where the dims of each port start in the array of all dims."""
    offsets: list[int] = []
    total = 0
    for of_port in dims:
        offsets.append(total)
        total += len(of_port)
    return offsets


def emit_shapes(op: OpOp, name: str) -> str:
    """The shape function of `op`."""
    return _Shapes(op, name).emit()


class _Shapes:
    def __init__(self, op: OpOp, name: str):
        self.op = op
        self.f = FunctionBuilder(
            f"define internal i32 @{name}(ptr %dims, ptr %there, i64 %members, ptr %symbols, ptr %out.dims,"
            " ptr %scratch, ptr %failure)"
        )
        self.binding = op.binding
        self.offsets = dim_offsets(p.dims for p in op.inputs)
        self.slot = {symbol: i for i, symbol in enumerate(sorted(self.binding.bound))}

    def emit(self) -> str:
        f = self.f
        for i in self.slot.values():
            f.line(f"%symbol.{i} = alloca i64")
            f.line(f"store i64 {UNBOUND}, ptr %symbol.{i}")
        f.line("%member.at = alloca i64")
        self._presence()
        for group in self._groups():
            self._guarded(group)
        self._default_unbound()
        self._outputs()
        self._scratch()
        for i, symbol in enumerate(self.op.symbol_names):
            # Those of the outputs are filled in when the outputs are there.
            value = f.load("i64", self._at(symbol)) if symbol in self.slot else "0"
            f.line(f"store i64 {value}, ptr {f.element('i64', '%symbols', i)}")
        f.line("ret i32 0")
        return f.text()

    def _at(self, symbol: str) -> str:
        return f"%symbol.{self.slot[symbol]}"

    def _presence(self) -> None:
        for i, p in enumerate(self.op.inputs):
            if p.mode == OPTIONAL:
                byte = self.f.load("i8", self.f.element("i8", "%there", i))
                wide = self.f.fresh("present")
                self.f.line(f"{wide} = zext i8 {byte} to i64")
                self.f.line(f"store i64 {wide}, ptr {self._at(p.symbol)}")
            elif p.mode == VARIADIC:
                self.f.line(f"store i64 %members, ptr {self._at(p.symbol)}")

    def _groups(self) -> list[list[Step]]:
        """The steps in order, split where the input changes: a group is skipped as one when its input is absent."""
        groups: list[list[Step]] = []
        for step in self.binding.steps:
            if not groups or groups[-1][0].input != step.input:
                groups.append([])
            groups[-1].append(step)
        return groups

    def _guarded(self, group: list[Step]) -> None:
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

    def _step(self, step: Step, member: str) -> None:
        f = self.f
        port = self.op.inputs[step.input]
        place = str(self.offsets[step.input] + step.axis)
        if member != "0":
            scaled, shifted = f.fresh("scaled"), f.fresh("place")
            f.line(f"{scaled} = mul i64 {member}, {len(port.dims)}")
            f.line(f"{shifted} = add i64 {scaled}, {place}")
            place = shifted
        dim = f.load("i64", f.element("i64", "%dims", place))
        if isinstance(step, Bind):
            self._bind(step, member, dim)
        elif isinstance(step, Check):
            value, flags = f.expression(step.expr, self._values(step.expr))
            same = f.all_of([f.compare("eq", value, dim), *(f.negate(flag) for flag in flags)])
            self._require(same, WRONG_SYMBOL, step, member, value, dim)
        else:
            self._solve(step, member, dim)

    def _bind(self, step: Bind, member: str, dim: str) -> None:
        f = self.f
        at = self._at(step.symbol)
        old = f.load("i64", at)
        unbound = f.compare("eq", old, str(UNBOUND))
        value = f.fresh("bound")
        f.line(f"{value} = select i1 {unbound}, i64 {dim}, i64 {old}")
        f.line(f"store i64 {value}, ptr {at}")
        self._require(f.compare("eq", value, dim), WRONG_SYMBOL, step, member, value, dim)

    def _solve(self, step: Solve, member: str, dim: str) -> None:
        """The equation gives the value; for a further value of a variadic input it must give the same one."""
        f = self.f
        at = self._at(step.symbol)
        rest, flags = f.expression(step.rest, self._values(step.rest))
        value, natural = f.solve(dim, rest, step.coefficient)
        good = f.all_of([natural, *(f.negate(flag) for flag in flags)])
        self._require(good, UNSOLVABLE, step, member, "0", dim)
        old = f.load("i64", at)
        unbound = f.compare("eq", old, str(UNBOUND))
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

    def _outputs(self) -> None:
        f = self.f
        offsets = dim_offsets(p.dims for p in self.op.outputs)
        for i, p in enumerate(self.op.outputs):
            for axis, dim in enumerate(p.dims):
                value, flags = f.expression(dim, self._values(dim))
                f.line(f"store i64 {value}, ptr {f.element('i64', '%out.dims', offsets[i] + axis)}")
                if dim.constant is not None:
                    continue
                good = f.all_of([f.compare("sge", value, "0"), *(f.negate(flag) for flag in flags)])
                self._fail_unless(good, BAD_OUTPUT, (str(i), str(i), str(axis), "0", value))

    def _scratch(self) -> None:
        f = self.f
        if self.op.scratch.constant is not None:
            f.line(f"store i64 {int64(max(0, self.op.scratch.constant))}, ptr %scratch")
            return
        value, flags = f.expression(self.op.scratch, self._values(self.op.scratch))
        # A kernel of which some dims are zero may be computed to need less than nothing.
        size = f.fresh("size")
        f.line(f"{size} = call i64 @llvm.smax.i64(i64 {value}, i64 0)")
        f.line(f"store i64 {size}, ptr %scratch")
        small = f.compare("slt", value, str(SCRATCH_LIMIT))
        good = f.all_of([small, *(f.negate(flag) for flag in flags)])
        self._fail_unless(good, BAD_SCRATCH, ("0", "0", "0", "0", value))

    def _values(self, expr: Expr) -> dict[str, str]:
        return {s: self.f.load("i64", self._at(s)) for s in sorted(expr.symbols)}

    def _require(self, good: str, kind: int, step: Step, member: str, want: str, got: str) -> None:
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
