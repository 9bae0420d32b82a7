"""Micro-kernels: the product of a few rows with a few panels of columns, the innermost part of every contraction.

    void @igniter.tile.f32.8x3.TARGET(ptr a, i64 a_row, i64 a_depth, ptr b, i64 b_panel, i64 b_depth,
                                      ptr c, i64 c_row, i64 rows, i64 depth, i64 add, ptr next)

    c[r, p*L + l] (+)= sum over k < depth of a[r, k] * b[p, k, l]      for r < rows, p < 3, l < L

A panel is `L` columns, 64 bytes of sums (16 of f32 or i32, 8 of f64), whatever the width of the target's vectors, so
that packed operands do not depend on it. `a_row`, `a_depth`, `b_panel`, `b_depth` and `c_row` are steps in bytes; the
lanes of a panel are contiguous. `rows` is at most the 8 of the name. Sums stay in registers over the whole depth: there
is a loop for each number of rows, and the call branches to it. As many lines as there are steps of depth are fetched
from `next` on into the second-level cache: panels that will be wanted soon. Operands that are narrower than the sums
come in groups of as many steps of depth as fill four bytes (2 of bf16, 4 of i8): `b[p, k, l]` is then such a group, and
so is `a[r, k]`. Bytes have tiles of more rows where there is AMX (`byte_tiles.py`).
Panels of 16-bit floats beside an `a` of f32 are widened as they are read, and come one step a time; those of f16 go to
AMX, too (`half_tiles.py`).

Every kind and size is an LLVM module of its own (`emit_tile_kernel`), with nothing of one model in it: it is compiled
once and kept in the cache. Kernels declare it by its name, from which `required` and `parse_name` find it again.
The scheme is that of Goto and van de Geijn, *Anatomy of High-Performance Matrix Multiplication* (2008), less the
blocking of depth: a panel of the depths that models have fits the second-level cache.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

from igniter.backends.cpu import byte_tiles, half_tiles
from igniter.backends.cpu.builder import Builder, Module, Value, flatten
from igniter.backends.cpu.llvm_types import I32, I64, PTR, Type
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_calls import NEAREST, PARAMETERS, SECOND, SIGNATURE, parameter_type, prefetch
from igniter.backends.cpu.vmath import extend
from igniter.dialects.loop.panels import PANEL_BYTES, group_of
from igniter.errors import IgniterError

UNROLL = 4
"""Steps of depth an iteration where sums leave most registers free. LLVM moves the loads of all steps to the front, and
spills what no register is left for: full tiles run at the rate of multiply-adds with one step, and at half of it with
four."""

AHEAD = 8
"""Steps of depth before a line of a panel is multiplied, it is asked for: panels come from the second-level cache. With
this 8 rows of AVX-512 take 7 to 10% less time, and 6 of AVX2 about 4%."""


@dataclass(frozen=True)
class TileKind:
    """What is multiplied and added up. `panel`: the elements of panels, where they are not those of `a` in kinds
    without groups."""

    name: str
    sums: Type
    panel: Type | None = None

    @property
    def group(self) -> int:
        """The steps of depth that are stored side by side."""
        return group_of(self.name)

    @property
    def lanes(self) -> int:
        """The columns of a panel."""
        return PANEL_BYTES * 8 // self.sums.bits

    @property
    def step_bytes(self) -> int:
        """The bytes of one step of depth of one row, and of a sum."""
        return self.sums.bits // 8

    @property
    def panel_bytes(self) -> int:
        """The bytes of one step of depth of one column."""
        return (self.panel or self.sums).bits // 8


KINDS = {
    kind.name: kind
    for kind in (
        TileKind("f32", Type("float")),
        TileKind("f64", Type("double")),
        TileKind("f32f16", Type("float"), Type("half")),
        TileKind("f32bf16", Type("float"), Type("bfloat")),
        TileKind("bf16", Type("float")),
        TileKind("u8i8", I32),
        TileKind("i8i8", I32),
        TileKind("i16", I32),
    )
}


@dataclass(frozen=True)
class TileSize:
    """The tile of a micro-kernel: up to so many rows, and so many panels."""

    rows: int
    panels: int


def tile_name(kind: str, size: TileSize, target: Target) -> str:
    """The symbol of a micro-kernel; a library for several CPUs has one for each."""
    identity = hashlib.sha256(f"{target.cpu} {target.features}".encode()).hexdigest()[:8]
    return f"igniter.tile.{kind}.{size.rows}x{size.panels}.{identity}"


_NAME = re.compile(r"igniter\.tile\.(\w+)\.(\d+)x(\d+)\.[0-9a-f]{8}")


def parse_name(name: str) -> tuple[TileKind, TileSize] | None:
    """What the symbol of a micro-kernel says, or `None` if it is none."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] not in KINDS:
        return None
    return KINDS[match[1]], TileSize(int(match[2]), int(match[3]))


def required(ir: str) -> list[str]:
    """The micro-kernels that an LLVM module declares."""
    return sorted({m[0] for line in ir.splitlines() if line.startswith("declare") for m in _NAME.finditer(line)})


def declaration(name: str) -> str:
    """The declaration of a micro-kernel."""
    types = ", ".join(str(parameter_type(p)) for p in PARAMETERS)
    return f"declare hidden void @{name}({types})"


def with_tile_kernels(ir: str, target: Target) -> str:
    """The module with the micro-kernels that it declares: for where there is no linker."""
    names = required(ir)
    if not names:
        return ir
    from igniter.backends.cpu.codegen import link_modules

    return link_modules([ir, *(emit_tile_kernel(name, target) for name in names)])


@lru_cache(maxsize=64)
def emit_tile_kernel(name: str, target: Target) -> str:
    """The LLVM module, as text, that defines the micro-kernel of that name."""
    parsed = parse_name(name)
    if parsed is None:
        raise IgniterError(f"'{name}' is not the name of a micro-kernel; known kinds: {', '.join(KINDS)}")
    kind, size = parsed
    module = Module(target)
    if kind.name == "u8i8" and target.byte_tiles and size.rows == byte_tiles.ROWS:
        byte_tiles.add_byte_tiles(module, name, size.panels)
        name, size = f"{name}.stripe", TileSize(byte_tiles.STRIPE, size.panels)
    if kind.name == "f32f16" and target.half_tiles and size.rows == half_tiles.ROWS:
        half_tiles.add_half_tiles(module, name, size.panels)
        for width in half_tiles.widths_of(size.panels):
            _add_bodies(module, f"{name}.vectors.{width}", kind, TileSize(half_tiles.STRIPE, width))
    else:
        _add_bodies(module, name, kind, size)
    return module.text()


def _add_bodies(module: Module, name: str, kind: TileKind, size: TileSize) -> None:
    """Defines `@name` and the body for each number of rows."""
    module.functions.append(_dispatcher(module, name, size))
    for rows in range(1, size.rows + 1):
        module.functions.append(_Body(module, kind, rows, size.panels).text(name))


def _dispatcher(module: Module, name: str, size: TileSize) -> str:
    f = Builder(module)
    cases = " ".join(f"i64 {r}, label %rows{r}" for r in range(1, size.rows + 1))
    f.raw(f"switch i64 %rows, label %none [ {cases} ]")
    for r in range(1, size.rows + 1):
        f.start(f"rows{r}")
        f.raw(f"tail call void @{name}.{r}({SIGNATURE})")
        f.raw("ret void")
    f.start("none")
    f.raw("ret void")
    text = [f"define hidden void @{name}({SIGNATURE}) #0 {{", "entry:", *flatten(f.lines), "}", ""]
    return "\n".join(text)


class _Body(Builder):
    """One number of rows and panels: sums in registers, a loop over the depth, and the sums to memory."""

    def __init__(self, module: Module, kind: TileKind, rows: int, panels: int):
        super().__init__(module)
        self.kind = kind
        self.rows = rows
        self.vector = Type(kind.sums.element, module.target.vector_bytes * 8 // kind.sums.bits)
        self.parts = max(1, kind.lanes // self.vector.lanes)
        if self.vector.lanes > kind.lanes:
            self.vector = kind.sums.with_lanes(kind.lanes)
        self.panels = panels
        # With few sums each would wait for itself: more of them take turns.
        columns = panels * self.parts
        self.turns = 4 if rows * columns <= 2 else 2 if rows * columns <= 5 else 1
        roomy = module.target.vector_bytes == 64 and rows <= 4
        self.unroll = max(self.turns, UNROLL if roomy else 1)
        self.args = {p: Value(parameter_type(p), f"%{p}") for p in PARAMETERS}

    def text(self, name: str) -> str:
        self._run()
        head = f"define internal void @{name}.{self.rows}({SIGNATURE}) noinline #0 {{"
        return "\n".join([head, "entry:", *flatten(self.lines), "}", ""])

    @property
    def sums(self) -> int:
        return self.rows * self.panels * self.parts

    def _run(self) -> None:
        args = self.args
        rows = self._steps(args["a"], args["a_row"], self.rows)
        panels = self._steps(args["b"], args["b_panel"], self.panels)
        zero = self.zero(self.vector)
        start = [zero] * (self.sums * self.turns)
        whole = self.binary("and", args["depth"], self.const(I64, -self.unroll))
        none = self.const(I64, 0)
        side_by_side = self.const(I64, self.kind.step_bytes)
        # Where the factors of a row lie side by side, steps are displacements in the instructions: with as many rows as
        # registers allow, there are none left for addresses.
        near, far, met = "near", "far", "met"
        self.branch(self.icmp("eq", args["a_depth"], side_by_side), near, far)
        found: list[tuple[list[Value], str]] = []
        for label, step in ((near, side_by_side), (far, args["a_depth"])):
            self.start(label)
            offsets, sums = self._loop(
                f"{label}.wide", none, whole, self.unroll, step, [none, none], start, rows, panels
            )
            found.append(([*offsets, *sums], self.block))
            self.jump(met)
        self.start(met)
        (one, here), (other, there) = found
        joined = [self.phi(a.type, [(a, here), (b, there)]) for a, b in zip(one, other, strict=True)]
        depth = args["depth"]
        step = args["a_depth"]
        sums = self._loop("rest", whole, depth, 1, step, joined[:2], joined[2:], rows, panels)[1]
        self._store(self._meet(sums))
        self.raw("ret void")

    def _steps(self, base: Value, step: Value, count: int) -> list[Value]:
        """`base`, `base + step`, ... as addresses."""
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
        rows: list[Value],
        panels: list[Value],
    ) -> tuple[list[Value], list[Value]]:
        """Steps `first` to `end`, `step` an iteration; the offsets of both operands and the sums after it."""
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
            sums = self._step(sums, a_at, b_at, rows, panels, k)
            self._fetch(index, k)
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
        """One step of depth: a row of panels in registers, then each row's factor on all of it."""
        columns: list[Value] = []
        stored = self.vector.with_element(self.kind.panel.element) if self.kind.panel is not None else self.vector
        for panel in panels:
            at = self._at(panel, b_at)
            prefetch(self, self._at(at, self.const(I64, AHEAD * self.kind.lanes * self.kind.panel_bytes)), NEAREST)
            for part in range(self.parts):
                place = at if not part else self._at(at, self.const(I64, part * stored.lanes * stored.bits // 8))
                columns.append(self.emit(stored, f"load {stored}, ptr {place.text}, align {min(4, stored.bits // 8)}"))
        prepared = [self._prepare(c) for c in columns]
        result = list(sums)
        turn = k % self.turns * self.sums
        for r, row in enumerate(rows):
            factor = self._factor(self._at(row, a_at))
            for n, column in enumerate(prepared):
                at = turn + r * len(columns) + n
                result[at] = self._multiply(factor, column, result[at])
        return result

    def _fetch(self, index: Value, k: int) -> None:
        """Asks for the line of `next` that belongs to a step."""
        size = self.kind.panel_bytes * self.kind.lanes
        at = self.binary("mul nsw", index, self.const(I64, size))
        prefetch(self, self._at(self._at(self.args["next"], at), self.const(I64, k * size)), SECOND)

    # -- arithmetic of each kind --------------------------------------------------------------------------------------

    def _prepare(self, column: Value) -> list[Value]:
        """A vector of panels as the multiplication takes it."""
        if self.kind.panel is not None:
            return [extend(self, column, self.vector)]
        if self.kind.name == "bf16" and not self._has_bf16():
            return self._halves(self.bitcast(column, self._integers()))
        if self.kind.name in ("u8i8", "i8i8"):
            bits = self.bitcast(column, self._integers())
            return [bits] if self._has_bytes() else self._words(bits, signed=True)
        return [column]

    def _factor(self, at: Value) -> list[Value]:
        """One row's factor in every lane."""
        if self.kind.group == 1:
            scalar = self.emit(self.kind.sums, f"load {self.kind.sums}, ptr {at.text}, align {self.kind.step_bytes}")
            return [self.splat(scalar, self.vector.lanes)]
        bits = self.splat(self.emit(I32, f"load i32, ptr {at.text}, align 1"), self.vector.lanes)
        if self.kind.name == "bf16":
            return [self.bitcast(bits, self.vector)] if self._has_bf16() else self._halves(bits)
        if self.kind.name == "i16":
            return [bits]
        return [bits] if self._has_bytes() else self._words(bits, signed=self.kind.name == "i8i8")

    def _multiply(self, a: list[Value], b: list[Value], total: Value) -> Value:
        if self.kind.group == 1 or (self.kind.name == "bf16" and not self._has_bf16()):
            for x, y in zip(a, b, strict=True):
                total = self.muladd(x, y, total)
            return total
        lanes = self.vector.lanes
        if self.kind.name == "bf16":
            pairs = f"<{2 * lanes} x bfloat>"
            x, y = (self._raw_cast(v, pairs) for v in (a[0], b[0]))
            intrinsic = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}"
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
        """Both bf16 of every lane as f32: the upper 16 bits of an f32 are one."""
        t = bits.type
        low = self.binary("shl", bits, self.splat(self.const(I32, 16), t.lanes))
        high = self.binary("and", bits, self.splat(self.const(I32, -65536), t.lanes))
        return [self.bitcast(low, self.vector), self.bitcast(high, self.vector)]

    def _words(self, bits: Value, signed: bool) -> list[Value]:
        """The even and the odd bytes of every lane as two vectors of i16."""
        words = Type("i16", bits.type.lanes * 2)
        shift = self.splat(self.const(Type("i16"), 8), words.lanes)
        right = "ashr" if signed else "lshr"
        both = self.bitcast(bits, words)
        return [self.binary(right, self.binary("shl", both, shift), shift), self.binary(right, both, shift)]

    def _multiply_words(self, a: Value, b: Value) -> Value:
        """Products of i16, neighbours added: one i32 a lane."""
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
        if self.target.arch == "x86_64":
            intrinsic = f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"
            kind = Type("i8", lanes * 4)
            return self.call(intrinsic, t, [total, self.bitcast(a, kind), self.bitcast(b, kind)])
        name = "usdot" if self.kind.name == "u8i8" else "sdot"
        bytes_ = Type("i8", lanes * 4)
        intrinsic = f"llvm.aarch64.neon.{name}.v{lanes}i32.v{lanes * 4}i8"
        return self.call(intrinsic, t, [total, self.bitcast(a, bytes_), self.bitcast(b, bytes_)])

    def _dot_words(self, a: Value, b: Value, total: Value) -> Value:
        """Products of i16, neighbours added, and to the sums."""
        lanes = self.vector.lanes
        words = Type("i16", 2 * lanes)
        x, y = self.bitcast(a, words), self.bitcast(b, words)
        if self._has_words():
            return self.call(f"llvm.x86.avx512.vpdpwssd.{lanes * 32}", self._integers(), [total, x, y])
        return self.binary("add", total, self._multiply_words(x, y))

    def _has_words(self) -> bool:
        """Whether the products of two words are added to a sum in one instruction."""
        return self.target.arch == "x86_64" and self.target.has_feature("avx512vnni") and self.target.vector_bytes == 64

    def _has_bf16(self) -> bool:
        return self.target.has_feature("avx512bf16") and self.target.vector_bytes == 64

    def _has_bytes(self) -> bool:
        """Whether the products of four bytes are added in one instruction; x86's takes unsigned by signed only."""
        if self.kind.name == "i16":
            return False
        if self.target.arch == "x86_64":
            return self.kind.name == "u8i8" and self.target.has_feature("avx512vnni") and self.target.vector_bytes == 64
        return self.target.has_feature("i8mm" if self.kind.name == "u8i8" else "dotprod")

    # -- the end ------------------------------------------------------------------------------------------------------

    def _add(self, a: Value, b: Value) -> Value:
        return self.binary("fadd" if self.kind.sums.is_float else "add", a, b)

    def _meet(self, sums: list[Value]) -> list[Value]:
        """What took turns, added up."""
        total = sums[: self.sums]
        for turn in range(1, self.turns):
            other = sums[turn * self.sums : (turn + 1) * self.sums]
            total = [self._add(a, b) for a, b in zip(total, other, strict=True)]
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
                        value = self._add(
                            value, self.emit(self.vector, f"load {self.vector}, ptr {place.text}, align 4")
                        )
                    self.raw(f"store {value.typed}, ptr {place.text}, align 4")
            self.jump(done)
        self.start(done)
