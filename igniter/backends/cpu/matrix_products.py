"""Micro-kernels of bytes and bf16 with Arm's matrix instructions: two rows by two columns, eight bytes of depth each.

`smmla`, `usmmla` and `bfmmla` multiply two rows of eight bytes (or of four bf16) by two columns of the same size, and
add the products to four sums. A panel holds groups of four bytes, as for all targets, so two consecutive groups of the
depth are interleaved in registers:

    x = c0.k c1.k c2.k c3.k     a group of four columns, four bytes of each
    y = c0.l c1.l c2.l c3.l     the following group

    zip1 x, y = c0.k c0.l c1.k c1.l     two columns of eight bytes
    zip2 x, y = c2.k c2.l c3.k c3.l     two more
    rows      = r0.k r0.l r1.k r1.l     two loads of eight bytes, where the groups of a row lie side by side

    s += rows * zip1 = r0c0 r0c1 r1c0 r1c1
    t += rows * zip2 = r0c2 r0c3 r1c2 r1c3

All rows share the interleaved columns: six rows by a panel are eight `zip` and 24 products; dot products would be 48.
At the end halves of sums are joined to rows, the format of all other bodies:

    r0 = s.low t.low        r1 = s.high t.high

Zeros pad the rest: an odd group at the end of the depth, in both factors, because 0 times an infinity is a NaN; and an
odd row, whose sums are ignored. A single row has no other row to share columns with, and uses the body of dot products.
Sums of bytes wrap as usual. A `bfmmla` is a `bfdot` for the first two steps and another for the next two, so that sums
of bf16 equal those of dot products in every bit.

`ummla` has no kind: in all kinds of Igniter the right factor is signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I64, Type
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_bodies import AHEAD, Body, TileKind
from igniter.backends.cpu.tile_calls import NEAREST, offset, prefetch
from igniter.dialects.loop.instructions import PANEL_BYTES

PAIR = 2
"""The rows, the columns and the groups of an instruction."""

GROUP = Type("i32")
"""A group of steps of depth: four bytes."""

GROUPS = GROUP.with_lanes(4)
"""A register of groups."""

REGISTER = GROUPS.lanes * GROUP.bits // 8
"""The bytes of a register."""


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction, as LLVM has it."""

    feature: str
    """The feature that a target needs for it."""
    intrinsic: str
    factor: str
    """The type of both factors."""


INSTRUCTIONS = {
    "u8i8": Instruction("i8mm", "llvm.aarch64.neon.usmmla.v4i32.v16i8", "<16 x i8>"),
    "i8i8": Instruction("i8mm", "llvm.aarch64.neon.smmla.v4i32.v16i8", "<16 x i8>"),
    "bf16": Instruction("bf16", "llvm.aarch64.neon.bfmmla", "<8 x bfloat>"),
}
"""The matrix instructions, by kind of micro-kernel."""


def load_columns(f: Builder, lines: Sequence[Value], part: int) -> list[Value]:
    """Returns four columns of a panel, two by two: one or two groups of depth, at `lines`, interleaved. Zeros are in
    the place of a second group."""
    found = [f.emit(GROUPS, f"load {GROUPS}, ptr {offset(f, line, part * REGISTER).text}, align 4") for line in lines]
    first, second = found[0], found[1] if len(found) == PAIR else f.zero(GROUPS)
    return [f.shuffle(first, second, lanes) for lanes in ((0, 4, 1, 5), (2, 6, 3, 7))]


def has_matrix_products(kind: TileKind, target: Target) -> bool:
    """True if a target multiplies elements of a kind two rows by two columns."""
    found = INSTRUCTIONS.get(kind.name)
    return found is not None and target.arch == "aarch64" and target.has_feature(found.feature)


@dataclass(frozen=True)
class _Places:
    """The starts of the rows and the panels, and the steps in bytes from group to group in both."""

    rows: list[Value]
    panels: list[Value]
    a_depth: Value
    b_depth: Value


class MatrixBody(Body):
    """A body with sums of two rows by two columns in each register, and a loop over pairs of groups; a single row uses
    the body of dot products."""

    streams = True
    """True if panels are those in memory, and come from the second-level cache."""

    def __init__(self, module: LlvmModule, kind: TileKind, rows: int, panels: int, rounds: bool = False):
        super().__init__(module, kind, rows, panels, rounds)
        self.instruction = INSTRUCTIONS[kind.name]
        # Two rows already have eight sums of a panel, enough to hide the latency.
        self.turns = 1
        self.pairs = -(-rows // PAIR)
        # Without a barrier LLVM moves the loads of all columns to the front, and spills sums for them.
        self.crowded = self.sums + self.pairs + PAIR * self.parts >= module.target.vector_registers

    def text(self, name: str) -> str:
        if self.rows > 1 or not self.streams:
            return super().text(name)
        return Body(self.module, self.kind, self.rows, self.panels, "rounds" in self.parameters).text(name)

    @property
    def sums(self) -> int:
        return self.panels * self.parts * PAIR * self.pairs

    # -- the depth ----------------------------------------------------------------------------------------------------

    def _round(self, start: list[Value]) -> list[Value]:
        """Returns the sums after the whole depth: a loop over pairs of groups, and the rest."""
        args = self.args
        rows = self._steps(args["a"], args["a_row"], self.rows)
        panels = self._steps(args["b"], args["b_panel"], self.panels)
        depth, b_depth = args["depth"], args["b_depth"]
        whole = self.binary("and", depth, self.const(I64, -PAIR))
        side_by_side = self.const(I64, self.kind.step_bytes)
        self.branch(self.icmp("eq", args["a_depth"], side_by_side), "near", "far")
        found: list[tuple[list[Value], str]] = []
        for label, step in (("near", side_by_side), ("far", args["a_depth"])):
            self.start(label)
            found.append((self._loop_of_pairs(label, whole, _Places(rows, panels, step, b_depth), start), self.block))
            self.jump("met")
        self.start("met")
        (one, here), (other, there) = found
        sums = [self.phi(a.type, [(a, here), (b, there)]) for a, b in zip(one, other, strict=True)]
        self.branch(self.icmp("ne", whole, depth), "odd", "even")
        self.start("odd")
        last = self._groups(1, whole, _Places(rows, panels, args["a_depth"], b_depth), sums)
        self.jump("even")
        self.start("even")
        return [self.phi(a.type, [(a, "met"), (b, "odd")]) for a, b in zip(sums, last, strict=True)]

    def _loop_of_pairs(self, label: str, whole: Value, places: _Places, start: list[Value]) -> list[Value]:
        """Returns the sums after a `whole` number of pairs of groups."""
        before, body, done = self.block, f"{label}.body", f"{label}.done"
        none = self.const(I64, 0)
        self.branch(self.icmp("ne", whole, none), body, done)
        self.start(body)
        carried = [none, *start]
        phis = [Value(v.type, self.name("c")) for v in carried]
        at = len(self.lines)
        self.lines.extend("" for _ in carried)
        sums = self._groups(PAIR, phis[0], places, phis[1:])
        following = self.binary("add nsw", phis[0], self.const(I64, PAIR))
        for n, (phi, first, last) in enumerate(zip(phis, carried, [following, *sums], strict=True)):
            text = f"phi {phi.type} [ {first.text}, %{before} ], [ {last.text}, %{body} ]"
            self.lines[at + n] = f"  {phi.text} = {text}"
        self.branch(self.icmp("slt", following, whole), body, done, self.module.loop_metadata())
        self.start(done)
        return [self.phi(a.type, [(a, before), (b, body)]) for a, b in zip(start, sums, strict=True)]

    def _groups(self, count: int, index: Value, places: _Places, sums: Sequence[Value]) -> list[Value]:
        """Returns the sums after one or two groups from `index` on."""
        a_at, b_at = (self.binary("mul nsw", index, step) for step in (places.a_depth, places.b_depth))
        rows = [self._at(row, a_at) for row in places.rows]
        factors = [self._rows(count, rows[r : r + PAIR], places.a_depth) for r in range(0, self.rows, PAIR)]
        result: list[Value] = []
        for panel in places.panels:
            line = self._at(panel, b_at)
            for at in self._steps(line, places.b_depth, count) if self.streams else ():
                prefetch(self, self._at(at, self.const(I64, AHEAD * PANEL_BYTES)), NEAREST)
            for part in range(self.parts):
                columns = self._columns(self._steps(line, places.b_depth, count), part)
                pairs = list(product(columns, factors))
                before = sums[len(result) : len(result) + len(pairs)]
                after = [self._product(r, c, total) for (c, r), total in zip(pairs, before, strict=True)]
                if self.crowded:
                    line, *after = self._behind(line, after)
                result += after
        for k in range(count if self.streams else 0):
            self._fetch(index, k)
        return result

    def _behind(self, place: Value, sums: Sequence[Value]) -> list[Value]:
        """Returns an address and some sums unchanged, but LLVM assumes that the address depends on the sums. It is an
        empty inline assembly, which is no instruction and needs no parser for the target's."""
        given = [place, *sums]
        constraints = ["=r", *("=w" for _ in sums), *map(str, range(len(given)))]
        types = "{ " + ", ".join(str(v.type) for v in given) + " }"
        name = self.name("behind")
        self.raw(f'{name} = call {types} asm "", "{",".join(constraints)}"({", ".join(v.typed for v in given)})')
        return [self.emit(v.type, f"extractvalue {types} {name}, {n}") for n, v in enumerate(given)]

    def _rows(self, count: int, rows: Sequence[Value], a_depth: Value) -> Value:
        """Returns one or two groups of one or two rows, padded with zeros."""
        # Eight bytes that lie side by side are loaded as an f64: LLVM takes integers through a general register.
        whole = Type("double") if count == PAIR and a_depth.is_constant else I64
        found = self.zero(whole.with_lanes(PAIR))
        for r, row in enumerate(rows):
            if whole is I64:
                eight = self._eight_bytes(count, row, a_depth)
            else:
                eight = self.emit(whole, f"load {whole}, ptr {row.text}, align 1")
                # Without it LLVM loads the second row to a lane (`ld1`), which takes the units of products twice.
                eight = self.emit(whole, f"freeze {eight.typed}", "f") if r else eight
            found = self.insert(found, eight, r)
        return self.bitcast(found, GROUPS)

    def _eight_bytes(self, count: int, row: Value, a_depth: Value) -> Value:
        """Returns one or two groups of a row, apart from each other."""
        first, *other = [
            self.cast("zext", self.emit(GROUP, f"load {GROUP}, ptr {at.text}, align 1"), I64)
            for at in self._steps(row, a_depth, count)
        ]
        for second in other:
            first = self.binary("or", first, self.binary("shl", second, self.const(I64, GROUP.bits)))
        return first

    def _columns(self, lines: Sequence[Value], part: int) -> list[Value]:
        """Returns four columns of one or two groups, two by two."""
        return load_columns(self, lines, part)

    def _product(self, rows: Value, columns: Value, total: Value) -> Value:
        """Returns two rows by two columns, added to their four sums."""
        of = self.instruction
        x, y = (self._raw_cast(v, of.factor) for v in (rows, columns))
        self.module.declarations.setdefault(
            of.intrinsic, f"declare {total.type} @{of.intrinsic}({total.type}, {of.factor}, {of.factor})"
        )
        return self.emit(total.type, f"call {total.type} @{of.intrinsic}({total.typed}, {x}, {y})")

    # -- the end ------------------------------------------------------------------------------------------------------

    def _meet(self, sums: list[Value]) -> list[Value]:
        """Returns the sums row by row."""
        result: list[Value] = []
        for row in range(self.rows):
            pair, lower = divmod(row, PAIR)
            for first in range(pair, self.sums, PAIR * self.pairs):
                lanes = (2, 3, 6, 7) if lower else (0, 1, 4, 5)
                result.append(self.shuffle(sums[first], sums[first + self.pairs], lanes))
        return result
