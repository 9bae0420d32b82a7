"""Products of signed bytes on x86, whose VNNI instruction `vpdpbusd` multiplies unsigned bytes by signed ones.

The sign bits of the panels are flipped: as unsigned bytes they are then 128 larger. Multiplied by the signed factors of
a row they give

    sum over k of (b + 128) * a  =  sum over k of a * b  +  128 * (sum over k of a)

so the sums of a row begin with -128 times the sum of its factors. All of it is wrapping integer arithmetic: the result
is exact. Flipping costs one instruction for each vector of panels in a step, shared by all rows. The sum of a row costs
one for each vector of its bytes if those are contiguous, otherwise one for each group of four; all panels of a tile
share it. AVX-VNNI-INT8 has an instruction for signed bytes and needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import I8, I32, I64, PTR, Type
from igniter.backends.cpu.target import Target

FLIPS = 0x80808080
"""The sign bits of four bytes; each is 128 as an unsigned byte."""

GROUP = 4
"""The bytes multiplied and added by an instruction."""

Take = Callable[[Value, Value], Value]
"""A function that loads a vector of a row at an address, from a group on."""


def has_signed(target: Target) -> bool:
    """True if the target multiplies signed bytes by signed ones: on AVX vectors, the vector width of CPUs with
    AVX-VNNI-INT8."""
    return target.arch == "x86_64" and target.vector_bytes == 32 and target.has_feature("avxvnniint8")


def has_biased(target: Target) -> bool:
    """True if signed bytes are multiplied as unsigned ones, less the bias."""
    if target.arch != "x86_64" or has_signed(target):
        return False
    return target.has_feature({64: "avx512vnni", 32: "avxvnni"}.get(target.vector_bytes, "none"))


def flipped(f: Builder, column: Value) -> Value:
    """Returns a vector of panels with its sign bits flipped."""
    return f.binary("xor", column, f.splat(f.const(I32, FLIPS), column.type.lanes))


def dot(f: Builder, total: Value, unsigned: Value, signed: Value) -> Value:
    """Adds products of unsigned and signed bytes, four neighbours at a time, to the sums."""
    return _call(f, f"avx512.vpdpbusd.{total.type.lanes * 32}", total, unsigned, signed)


def dot_signed(f: Builder, total: Value, a: Value, b: Value) -> Value:
    """Adds products of signed bytes, four neighbours at a time, to the sums."""
    return _call(f, f"avx2.vpdpbssd.{total.type.lanes * 32}", total, a, b)


def _call(f: Builder, intrinsic: str, total: Value, a: Value, b: Value) -> Value:
    kind = Type("i8", total.type.lanes * GROUP)
    return f.call(f"llvm.x86.{intrinsic}", total.type, [total, f.bitcast(a, kind), f.bitcast(b, kind)])


def biases(f: Builder, rows: Sequence[Value], step: Value, groups: Value, vector: Type) -> list[Value]:
    """Returns the initial sums of each row that starts at an address, in every lane; `step` is from group to group in
    bytes."""
    none, zero = f.const(I64, 0), f.zero(vector)
    # Two loops in sequence, one of them with zero trips: with each in a branch of its own LLVM 22 fails an assertion
    # while it simplifies the control flow of both.
    dense = f.select(f.icmp("eq", step, f.const(I64, GROUP)), groups, none)
    sums = [zero] * len(rows)
    for label, take, first, end, count in (
        ("bias.dense", _dense, none, dense, vector.lanes),
        ("bias.apart", _alone, dense, groups, 1),
    ):
        sums = _loop(f, label, rows, sums, first, end, count, partial(take, f, step, groups, vector))
    result: list[Value] = []
    for total in sums:
        bias = f.call(f"llvm.vector.reduce.add.{vector.mangled}", I32, [total])
        result.append(f.splat(f.binary("sub", f.const(I32, 0), bias), vector.lanes))
    return result


def _loop(
    f: Builder,
    label: str,
    rows: Sequence[Value],
    start: Sequence[Value],
    first: Value,
    end: Value,
    count: int,
    take: Take,
) -> list[Value]:
    """Returns `start` and 128 times the sum of the bytes of each row, spread over lanes: `count` groups an
    iteration."""
    vector = start[0].type
    before, body, done = f.block, f"{label}.body", f"{label}.done"
    f.branch(f.icmp("slt", first, end), body, done)
    f.start(body)
    following = Value(I64, f.name("next"))
    index = f.phi(I64, [(first, before), (following, body)])
    place = len(f.lines)
    f.lines.extend("" for _ in rows)
    sums = [Value(vector, f.name("sum")) for _ in rows]
    unsigned = f.splat(f.const(I32, FLIPS), vector.lanes)
    after = [dot(f, total, unsigned, take(row, index)) for row, total in zip(rows, sums, strict=True)]
    for n, (total, initial, last) in enumerate(zip(sums, start, after, strict=True)):
        ways = f"[ {initial.text}, %{before} ], [ {last.text}, %{body} ]"
        f.lines[place + n] = f"  {total.text} = phi {vector} {ways}"
    f.raw(f"{following.text} = add nsw i64 {index.text}, {count}")
    f.branch(f.icmp("slt", following, end), body, done, f.module.loop_metadata())
    f.start(done)
    return [f.phi(vector, [(initial, before), (last, body)]) for initial, last in zip(start, after, strict=True)]


def _dense(f: Builder, step: Value, groups: Value, vector: Type, row: Value, at: Value) -> Value:
    """Returns the groups of a row from number `at` on, one for each lane of a vector, with zeros after the last."""
    del step
    left = f.cast("trunc", f.binary("sub", groups, at), I32)
    mask = f.icmp("slt", f.iota(vector), f.splat(left, vector.lanes))
    place = f.gep(I8, row, f.binary("mul", at, f.const(I64, GROUP)))
    name = f"llvm.masked.load.{vector.mangled}.p0"
    f.module.declare(name, vector, [PTR, mask.type, vector])
    return f.emit(vector, f"call {vector} @{name}(ptr align 1 {place.text}, {mask.typed}, {f.zero(vector).typed})")


def _alone(f: Builder, step: Value, groups: Value, vector: Type, row: Value, at: Value) -> Value:
    """Returns one group of a row in the first lane."""
    del groups
    bits = f.emit(I32, f"load i32, ptr {f.gep(I8, row, f.binary('mul', at, step)).text}, align 1")
    return f.insert(f.zero(vector), bits, 0)
