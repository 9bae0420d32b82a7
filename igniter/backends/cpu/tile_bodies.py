"""The bodies of micro-kernels: one number of rows and panels each, with the sums in registers.

A body is a loop over the depth. One step loads a row of panels, prepares each of its vectors, and multiplies each row's
factor with all of them; kinds differ in these three operations (`prepare`, `factor`, `multiply`, and `step` for kinds
with the same operation for every pair of vectors). A micro-kernel of another package overrides them in its own class.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from igniter.backends.cpu import arithmetic, signed_bytes
from igniter.backends.cpu.builder import Builder, LlvmModule, Value, flatten
from igniter.backends.cpu.llvm_types import F32, I32, I64, PTR, Type, llvm_type
from igniter.backends.cpu.tile_assembly import STEPS, Instructions, Shape, assembled_loop, instructions_for
from igniter.backends.cpu.tile_calls import (
    NEAREST,
    PARAMETERS,
    ROUND_PARAMETERS,
    SECOND,
    parameter_type,
    prefetch,
    signature,
)
from igniter.backends.cpu.vmath import extend
from igniter.dialects.loop.attrs import element_bytes, is_unsigned, scalar_type
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.instructions import MicroKernel
from igniter.dialects.loop.panels import turns_of

UNROLL = 4
"""The steps of depth an iteration if sums leave most registers free. LLVM moves the loads of all steps to the front,
and spills the rest: full tiles run at the rate of multiply-adds with one step, and at half of it with four. So this is
a property of LLVM, not of a machine."""

AHEAD = 8
"""The prefetch distance of a panel's lines in steps of depth: panels come from the second-level cache. It saves 7 to
10% of the time for 8 rows of AVX-512, and about 4% for 6 of AVX2. It is not a figure of a machine, because any
sufficient distance works: a second-level cache answers in 12 to 20 cycles, a step takes two or more, and eight lines of
three panels are a small part of any first-level cache."""


@dataclass(frozen=True)
class TileKind:
    """A micro-kernel for code generation: types of registers, and bytes."""

    kernel: MicroKernel

    @property
    def name(self) -> str:
        """The name of the micro-kernel."""
        return self.kernel.name

    @property
    def sums(self) -> Type:
        """The type of a sum."""
        return self._type(2)

    @property
    def left(self) -> Type:
        """The type of an element of `a`."""
        return self._type(0)

    @property
    def panel(self) -> Type | None:
        """The type of an element of a panel, for kinds without groups; None if it is the type of the sums."""
        right = self._type(1)
        return None if self.group > 1 or right == self.sums else right

    @property
    def group(self) -> int:
        """The number of contiguous steps of depth."""
        return self.kernel.group

    @property
    def lanes(self) -> int:
        """The columns of a panel."""
        return self.kernel.lanes

    @property
    def sum_bytes(self) -> int:
        """The bytes of a sum."""
        return self.sums.bits // 8

    @property
    def step_bytes(self) -> int:
        """The bytes of one step of depth of one row."""
        return element_bytes(self.kernel.facts.elements[0]) * self.group

    @property
    def panel_bytes(self) -> int:
        """The bytes of one step of depth of one column."""
        return element_bytes(self.kernel.facts.elements[1]) * self.group

    def _type(self, which: int) -> Type:
        return llvm_type(scalar_type(self.kernel.facts.elements[which]))


@dataclass(frozen=True)
class TileSize:
    """The tile of a micro-kernel: its largest number of rows, and its number of panels."""

    rows: int
    panels: int
    rounds: bool = False
    """True if there is an outer sum."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of its calls."""
        return ROUND_PARAMETERS if self.rounds else PARAMETERS


def add_bodies(module: LlvmModule, name: str, kind: TileKind, size: TileSize, body: type[Body] | None = None) -> None:
    """Defines `@name` and the body for each number of rows."""
    module.functions.append(_dispatcher(module, name, size))
    for rows in range(1, size.rows + 1):
        module.functions.append((body or Body)(module, kind, rows, size.panels, size.rounds).text(name))


def _dispatcher(module: LlvmModule, name: str, size: TileSize) -> str:
    f = Builder(module)
    own = signature(size.parameters)
    cases = " ".join(f"i64 {r}, label %rows{r}" for r in range(1, size.rows + 1))
    f.raw(f"switch i64 %rows, label %none [ {cases} ]")
    for r in range(1, size.rows + 1):
        f.start(f"rows{r}")
        f.raw(f"tail call void @{name}.{r}({own})")
        f.raw("ret void")
    f.start("none")
    f.raw("ret void")
    text = [f"define hidden void @{name}({own}) #0 {{", "entry:", *flatten(f.lines), "}", ""]
    return "\n".join(text)


class Body(Builder):
    """The code for one number of rows and panels: sums in registers, a loop over the depth, one over rounds of it with
    `rounds`, and the stores of the sums."""

    def __init__(self, module: LlvmModule, kind: TileKind, rows: int, panels: int, rounds: bool = False):
        super().__init__(module)
        self.kind = kind
        self.rows = rows
        self.vector = Type(kind.sums.element, module.target.vector_bytes * 8 // kind.sums.bits)
        self.parts = max(1, kind.lanes // self.vector.lanes)
        if self.vector.lanes > kind.lanes:
            self.vector = kind.sums.with_lanes(kind.lanes)
        self.panels = panels
        columns = panels * self.parts
        self.turns = turns_of(rows * columns)
        roomy = module.target.vector_bytes == 64 and rows <= 4
        self.unroll = max(self.turns, UNROLL if roomy else 1)
        # The body of another package has steps of its own.
        self.assembly = None
        if type(self) is Body and self.turns == 1:
            self.assembly = instructions_for(kind.name, self._shape(near=False), module.target)
        if self.assembly is not None:
            self.unroll = STEPS
        self.parameters = TileSize(rows, panels, rounds).parameters
        self.args = {p: Value(parameter_type(p), f"%{p}") for p in self.parameters}

    def text(self, name: str) -> str:
        self._run()
        head = f"define internal void @{name}.{self.rows}({signature(self.parameters)}) noinline #0 {{"
        return "\n".join([head, "entry:", *flatten(self.lines), "}", ""])

    @property
    def sums(self) -> int:
        return self.rows * self.panels * self.parts

    def _run(self) -> None:
        start = self.start_sums() * self.turns
        sums = self._rounds(start) if "rounds" in self.args else self._round(start)
        self._store(self._meet(sums))
        self.raw("ret void")

    def _rounds(self, start: list[Value]) -> list[Value]:
        """Returns the sums after all rounds; each round begins a fixed distance further in both operands."""
        args = dict(self.args)
        before, none = self.block, self.const(I64, 0)
        moved = ("a", "b", "next")
        self.branch(self.icmp("sgt", args["rounds"], none), "round", "over")
        self.start("round")
        places = len(self.lines)
        carried = [args["rounds"], *(args[n] for n in moved), *start]
        phis = [Value(v.type, self.name("o")) for v in carried]
        self.lines.extend("" for _ in carried)
        left, *pointers = phis[:4]
        self.args.update(zip(moved, pointers, strict=True))
        sums = self._round(phis[4:])
        steps = (args["a_round"], args["b_round"], args["b_round"])
        further = [self._at(p, step) for p, step in zip(pointers, steps, strict=True)]
        after = [self.binary("sub nsw", left, self.const(I64, 1)), *further, *sums]
        end = self.block
        for n, (phi, initial, last) in enumerate(zip(phis, carried, after, strict=True)):
            text = f"phi {phi.type} [ {initial.text}, %{before} ], [ {last.text}, %{end} ]"
            self.lines[places + n] = f"  {phi.text} = {text}"
        self.branch(self.icmp("sgt", after[0], none), "round", "over")
        self.start("over")
        self.args = args
        return [self.phi(a.type, [(a, before), (b, end)]) for a, b in zip(start, sums, strict=True)]

    def _round(self, start: list[Value]) -> list[Value]:
        """Returns the sums after the whole depth."""
        args = self.args
        rows = self._steps(args["a"], args["a_row"], self.rows)
        panels = self._steps(args["b"], args["b_panel"], self.panels)
        if self._is_biased():
            first = signed_bytes.biases(self, rows, args["a_depth"], args["depth"], self.vector)
            biases = [bias for bias in first for _ in range(self.panels * self.parts)]
            added = [self.binary("add", total, bias) for total, bias in zip(start, biases, strict=False)]
            start = [*added, *start[self.sums :]]
        whole = self.binary("and", args["depth"], self.const(I64, -self.unroll))
        none = self.const(I64, 0)
        side_by_side = self.const(I64, self.kind.step_bytes)
        # If the factors of a row are contiguous, steps are displacements in the instructions: with the largest number
        # of rows, no registers are left for addresses.
        near, far, met = "near", "far", "met"
        self.branch(self.icmp("eq", args["a_depth"], side_by_side), near, far)
        found: list[tuple[list[Value], str]] = []
        for label, step in ((near, side_by_side), (far, args["a_depth"])):
            self.start(label)
            if self.assembly is not None:
                offsets, sums = self._assembled(label, self.assembly, label == near, whole, start)
            else:
                turns = self._turns(rows, panels, step, whole)
                _, sums = self._loop(f"{label}.wide", none, whole, self.unroll, step, [none, none], start, turns)
                offsets = [self.binary("mul nsw", whole, s) for s in (step, args["b_depth"])]
            found.append(([*offsets, *sums], self.block))
            self.jump(met)
        self.start(met)
        (one, here), (other, there) = found
        joined = [self.phi(a.type, [(a, here), (b, there)]) for a, b in zip(one, other, strict=True)]
        depth = args["depth"]
        step = args["a_depth"]
        return self._loop("rest", whole, depth, 1, step, joined[:2], joined[2:], [(rows, panels)])[1]

    def _turns(
        self, rows: list[Value], panels: list[Value], step: Value, whole: Value
    ) -> list[tuple[list[Value], list[Value]]]:
        """Returns the starts of the turns: each turn has a part of a `whole` depth, so that several places of the
        panels are read at once. A single row is limited by memory latency alone."""
        part = self.binary("sdiv", whole, self.const(I64, self.turns)) if self.turns > 1 else whole
        found = [(rows, panels)]
        for _ in range(1, self.turns):
            places: list[list[Value]] = []
            for of, depth in zip(found[-1], (step, self.args["b_depth"]), strict=True):
                offset = self.binary("mul nsw", part, depth)
                places.append([self._at(place, offset) for place in of])
            found.append((places[0], places[1]))
        return found

    def _shape(self, near: bool) -> Shape:
        """Returns the shape of the loop in assembly; `near` if the factors of a row are contiguous."""
        line = self.kind.panel_bytes * self.kind.lanes
        step = self.kind.step_bytes if near else 0
        return Shape(self.rows, self.panels, self.parts, self.vector, line // self.parts, line, step, AHEAD)

    def _assembled(
        self, label: str, instructions: Instructions, near: bool, whole: Value, start: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Emits the loop in assembly over a `whole` number of its iterations; returns the offsets and the sums after
        it."""
        before, none = self.block, self.const(I64, 0)
        count = self.binary("lshr", whole, self.const(I64, STEPS.bit_length() - 1))
        body, done = f"{label}.wide.body", f"{label}.wide.done"
        self.branch(self.icmp("ne", count, none), body, done)
        self.start(body)
        sums = assembled_loop(self, instructions, self._shape(near), self.args, count, start)
        offsets = [self.binary("mul nsw", whole, self.args[n]) for n in ("a_depth", "b_depth")]
        self.jump(done)
        self.start(done)
        ends = zip([none, none, *start], [*offsets, *sums], strict=True)
        met = [self.phi(after.type, [(first, before), (after, body)]) for first, after in ends]
        return met[:2], met[2:]

    def _steps(self, base: Value, step: Value, count: int) -> list[Value]:
        """Returns `base`, `base + step`, ... as addresses."""
        found = [base]
        for k in range(1, count):
            offset = self.binary("mul nsw", step, self.const(I64, k)) if k > 1 else step
            found.append(self._at(base, offset))
        return found

    def _at(self, base: Value, offset: Value) -> Value:
        return base if offset.text == "0" else self.emit(PTR, f"getelementptr i8, ptr {base.text}, {offset.typed}", "p")

    def _loop(
        self,
        label: str,
        first: Value,
        end: Value,
        step: int,
        a_depth: Value,
        offsets: list[Value],
        start: list[Value],
        turns: list[tuple[list[Value], list[Value]]],
    ) -> tuple[list[Value], list[Value]]:
        """Emits steps `first` to `end`, `step` an iteration, over the rows and panels of each turn; returns the offsets
        of both operands in each turn and the sums after it."""
        before = self.block
        body, done = f"{label}.body", f"{label}.done"
        self.branch(self.icmp("slt", first, end), body, done)
        self.start(body)
        places = len(self.lines)
        carried = [first, *offsets, *start]
        phis = [Value(v.type, self.name("c")) for v in carried]
        self.lines.extend("" for _ in carried)
        index, a_at, b_at, *sums = phis
        for k in range(step):
            sums = self._step(sums, a_at, b_at, *turns[k % len(turns)], k)
            if self.rows > 1:
                self._fetch(index, k)
            if (k + 1) % len(turns) == 0:
                a_at = self.binary("add nsw", a_at, a_depth)
                b_at = self.binary("add nsw", b_at, self.args["b_depth"])
        following = self.binary("add nsw", index, self.const(I64, step))
        after = [following, a_at, b_at, *sums]
        for n, (phi, initial, last) in enumerate(zip(phis, carried, after, strict=True)):
            text = f"phi {phi.type} [ {initial.text}, %{before} ], [ {last.text}, %{self.block} ]"
            self.lines[places + n] = f"  {phi.text} = {text}"
        end_block = self.block
        self.branch(self.icmp("slt", following, end), body, done, self.module.loop_metadata())
        self.start(done)
        met = [self.phi(v.type, [(a, before), (b, end_block)]) for v, a, b in zip(phis, carried, after, strict=True)]
        return met[1:3], met[3:]

    def _step(
        self, sums: list[Value], a_at: Value, b_at: Value, rows: list[Value], panels: list[Value], k: int
    ) -> list[Value]:
        """Emits one step of depth: loads a row of panels, then multiplies each row's factor with all of it."""
        columns: list[Value] = []
        stored = self.vector.with_element(self.kind.panel.element) if self.kind.panel is not None else self.vector
        for panel in panels:
            at = self._at(panel, b_at)
            prefetch(self, self._at(at, self.const(I64, AHEAD * self.kind.lanes * self.kind.panel_bytes)), NEAREST)
            for part in range(self.parts):
                place = at if not part else self._at(at, self.const(I64, part * stored.lanes * stored.bits // 8))
                columns.append(self.emit(stored, f"load {stored}, ptr {place.text}, align {min(4, stored.bits // 8)}"))
        prepared = [self.prepare(c) for c in columns]
        result = list(sums)
        turn = k % self.turns * self.sums
        for r, row in enumerate(rows):
            factor = self.factor(self._at(row, a_at))
            for n, column in enumerate(prepared):
                at = turn + r * len(columns) + n
                result[at] = self.multiply(factor, column, result[at])
        return result

    def _fetch(self, index: Value, k: int) -> None:
        """Prefetches the line of `next` for a step. A single row does not: it is limited by memory bandwidth, and
        without the prefetch takes 0.9 of the time."""
        size = self.kind.panel_bytes * self.kind.lanes
        at = self.binary("mul nsw", index, self.const(I64, size))
        prefetch(self, self._at(self._at(self.args["next"], at), self.const(I64, k * size)), SECOND)

    # -- arithmetic of each kind --------------------------------------------------------------------------------------

    def prepare(self, column: Value) -> list[Value]:
        """Returns a vector of panels in the form for the multiplication: one vector, or several that are multiplied
        separately."""
        if self.kind.panel is not None:
            return [self._widened(column, 1)]
        if self.kind.name == "bf16" and not self._has_bf16():
            return self._halves(self.bitcast(column, self._integers()))
        if self.kind.name in ("u8i8", "i8i8"):
            bits = self.bitcast(column, self._integers())
            if self._is_biased():
                return [signed_bytes.flipped(self, bits)]
            return [bits] if self._has_bytes() else self._words(bits, signed=True)
        return [column]

    def factor(self, at: Value) -> list[Value]:
        """Returns one row's factor in every lane."""
        if self.kind.group == 1:
            left = self.kind.left
            scalar = self.emit(left, f"load {left}, ptr {at.text}, align {self.kind.step_bytes}")
            if self.target.arch == "aarch64" and left == self.kind.sums:
                # The multiply-adds then take it from a lane. LLVM makes one instruction of a load and a splat
                # (`ld1r`), which occupies a unit for multiply-adds.
                scalar = self.emit(left, f"freeze {scalar.typed}", "f")
            factor = self.splat(scalar, self.vector.lanes)
            return [factor if left == self.kind.sums else self._widened(factor, 0)]
        bits = self._group(at)
        if self.kind.name == "bf16":
            return [self.bitcast(bits, self.vector)] if self._has_bf16() else self._halves(bits)
        if self.kind.name not in ("u8i8", "i8i8") or self._has_bytes():
            return [bits]
        return self._words(bits, signed=self.kind.name == "i8i8")

    def _group(self, at: Value) -> Value:
        """Returns one row's group of steps in every lane."""
        lanes = self.vector.lanes
        if self.target.arch != "aarch64":
            return self.splat(self.emit(I32, f"load i32, ptr {at.text}, align 1"), lanes)
        # As in `factor`, the products take it from a lane, which must be one of a vector register.
        scalar = self.emit(F32, f"load float, ptr {at.text}, align 1")
        first = self.insert(self.zero(F32.with_lanes(lanes)), self.emit(F32, f"freeze {scalar.typed}", "f"), 0)
        bits = self.bitcast(first, self._integers())
        return self.shuffle(bits, bits, [0] * lanes)

    def _widened(self, narrow: Value, which: int) -> Value:
        """Converts a vector of elements of one of the operands to elements of the sums."""
        if self.vector.is_float and narrow.type.is_float:
            return extend(self, narrow, self.vector)
        unsigned = is_unsigned(self.kind.kernel.facts.elements[which])
        return self.cast("zext" if unsigned else "sext", narrow, self.vector)

    def step(self, a: Value, b: Value, total: Value) -> Value:
        """Emits one step of depth for a vector of sums, for kinds without groups: a row's factor in every lane, a
        vector of a panel, and the sums so far."""
        return self.muladd(a, b, total) if total.type.is_float else self.binary("add", total, self.binary("mul", a, b))

    def multiply(self, a: list[Value], b: list[Value], total: Value) -> Value:
        """Emits one step of depth, or a group, for a vector of sums: a prepared factor and a prepared vector."""
        if self.kind.group == 1 or (self.kind.name == "bf16" and not self._has_bf16()):
            for x, y in zip(a, b, strict=True):
                total = self.step(x, y, total)
            return total
        lanes = self.vector.lanes
        if self.kind.name == "bf16":
            pairs = f"<{2 * lanes} x bfloat>"
            # The last operand of x86's instruction can be in memory: best for a value used once, here a factor of one
            # vector. Arm's can be a lane.
            last = self.target.arch == "aarch64" or self.panels * self.parts == 1
            order = (b[0], a[0]) if last else (a[0], b[0])
            x, y = (self._raw_cast(v, pairs) for v in order)
            intrinsic = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}"
            if self.target.arch == "aarch64":
                intrinsic = f"llvm.aarch64.neon.bfdot.v{lanes}f32.v{2 * lanes}bf16"
            declared = f"declare {self.vector} @{intrinsic}({self.vector}, {pairs}, {pairs})"
            self.module.declarations.setdefault(intrinsic, declared)
            return self.emit(self.vector, f"call {self.vector} @{intrinsic}({total.typed}, {x}, {y})")
        if self._has_bytes():
            return self._dot_bytes(a[0], b[0], total)
        for x, y in zip(a, b, strict=True):
            total = self._dot_words(x, y, total)
        return total

    def _raw_cast(self, value: Value, to: str) -> str:
        name = self.name("x")
        self.lines.append(f"  {name} = bitcast {value.typed} to {to}")
        return f"{to} {name}"

    def _integers(self) -> Type:
        return Type("i32", self.vector.lanes)

    def _halves(self, bits: Value) -> list[Value]:
        """Returns both bf16 of every lane as f32: a bf16 is the upper 16 bits of an f32."""
        t = bits.type
        low = self.binary("shl", bits, self.splat(self.const(I32, 16), t.lanes))
        high = self.binary("and", bits, self.splat(self.const(I32, -65536), t.lanes))
        return [self.bitcast(low, self.vector), self.bitcast(high, self.vector)]

    def _words(self, bits: Value, signed: bool) -> list[Value]:
        """Returns the even and the odd bytes of every lane as two vectors of i16."""
        words = Type("i16", bits.type.lanes * 2)
        shift = self.splat(self.const(Type("i16"), 8), words.lanes)
        right = "ashr" if signed else "lshr"
        both = self.bitcast(bits, words)
        return [self.binary(right, self.binary("shl", both, shift), shift), self.binary(right, both, shift)]

    def _multiply_words(self, a: Value, b: Value) -> Value:
        """Returns products of i16, with neighbours added: one i32 a lane."""
        lanes = self.vector.lanes
        if self.target.arch == "x86_64":
            intrinsic = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[lanes]
            return self.call(f"llvm.x86.{intrinsic}", self._integers(), [a, b])
        wide = Type("i32", 2 * lanes)
        product = self.binary("mul", self.cast("sext", a, wide), self.cast("sext", b, wide))
        even = self.shuffle(product, product, range(0, 2 * lanes, 2))
        return self.binary("add", even, self.shuffle(product, product, range(1, 2 * lanes, 2)))

    def _dot_bytes(self, a: Value, b: Value, total: Value) -> Value:
        lanes, t = self.vector.lanes, self._integers()
        if self._is_biased():
            return signed_bytes.dot(self, total, b, a)
        if self.kind.name == "i8i8" and signed_bytes.has_signed(self.target):
            return signed_bytes.dot_signed(self, total, a, b)
        if self.target.arch == "x86_64":
            intrinsic = f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"
            kind = Type("i8", lanes * 4)
            return self.call(intrinsic, t, [total, self.bitcast(a, kind), self.bitcast(b, kind)])
        name = "usdot" if self.kind.name == "u8i8" else "sdot"
        bytes_ = Type("i8", lanes * 4)
        intrinsic = f"llvm.aarch64.neon.{name}.v{lanes}i32.v{lanes * 4}i8"
        # LLVM takes the last operand from a lane (`sdot`), or the unsigned one (`sudot`).
        x, y = (self.bitcast(v, bytes_) for v in ((a, b) if name == "usdot" else (b, a)))
        return self.call(intrinsic, t, [total, x, y])

    def _dot_words(self, a: Value, b: Value, total: Value) -> Value:
        """Returns products of i16, with neighbours added, plus the sums."""
        lanes = self.vector.lanes
        words = Type("i16", 2 * lanes)
        x, y = self.bitcast(a, words), self.bitcast(b, words)
        if self._has_words():
            return self.call(f"llvm.x86.avx512.vpdpwssd.{lanes * 32}", self._integers(), [total, x, y])
        return self.binary("add", total, self._multiply_words(x, y))

    def _has_words(self) -> bool:
        """True if one instruction adds the products of two words to a sum."""
        return self.target.arch == "x86_64" and self.target.has_feature("avx512vnni") and self.target.vector_bytes == 64

    def _has_bf16(self) -> bool:
        if self.target.arch == "aarch64":
            return self.target.has_feature("bf16")
        return self.target.has_feature("avx512bf16") and self.target.vector_bytes == 64

    def _has_bytes(self) -> bool:
        """True if one instruction adds the products of four bytes; x86's multiplies unsigned by signed ones only,
        except through `signed_bytes.py`."""
        if self.kind.name == "i16":
            return False
        if self.target.arch == "x86_64":
            if self.kind.name == "i8i8":
                return signed_bytes.has_signed(self.target) or signed_bytes.has_biased(self.target)
            return self.kind.name == "u8i8" and self.target.has_feature("avx512vnni") and self.target.vector_bytes == 64
        return self.target.has_feature("i8mm" if self.kind.name == "u8i8" else "dotprod")

    def _is_biased(self) -> bool:
        return self.kind.name == "i8i8" and signed_bytes.has_biased(self.target)

    # -- the end ------------------------------------------------------------------------------------------------------

    def combine(self, a: Value, b: Value) -> Value:
        """Combines two vectors of sums."""
        facts = self.kind.kernel.facts
        return arithmetic.combine(self, facts.combiner, a, b, is_unsigned(facts.elements[2]))

    def start_sums(self) -> list[Value]:
        """Returns the initial sums: one vector for each row, panel and part of it."""
        facts = self.kind.kernel.facts
        if facts.combiner == "add":
            return [self.zero(self.vector)] * self.sums
        first = identity(facts.combiner, facts.elements[2]).value
        assert isinstance(first, (FloatAttr, IntegerAttr))
        return [self.splat(self.const(self.kind.sums, first.value.data), self.vector.lanes)] * self.sums

    def _meet(self, sums: list[Value]) -> list[Value]:
        """Adds up the sums of the turns."""
        total = sums[: self.sums]
        for turn in range(1, self.turns):
            other = sums[turn * self.sums : (turn + 1) * self.sums]
            total = [self.combine(a, b) for a, b in zip(total, other, strict=True)]
        return total

    def _store(self, sums: list[Value]) -> None:
        add, plain, done = "sums.add", "sums.set", "sums.done"
        self.branch(self.icmp("ne", self.args["add"], self.const(I64, 0)), add, plain)
        rows = None
        for label in (add, plain):
            self.start(label)
            rows = self._steps(self.args["c"], self.args["c_row"], self.rows)
            for r, row in enumerate(rows):
                for n in range(self.panels * self.parts):
                    value = sums[r * self.panels * self.parts + n]
                    place = self._at(row, self.const(I64, n * self.target.vector_bytes))
                    if label == add:
                        value = self.combine(
                            value, self.emit(self.vector, f"load {self.vector}, ptr {place.text}, align 4")
                        )
                    self.raw(f"store {value.typed}, ptr {place.text}, align 4")
            self.jump(done)
        self.start(done)
