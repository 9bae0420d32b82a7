"""AMX: registers of 16 rows of 64 bytes, and the permission of the process to use them.

Linux gives a process tiles on request (`ARCH_REQ_XCOMP_PERM`). The first call of a micro-kernel requests them, and
`@igniter_tiles` stores the answer: the only cell that kernels write, and all writers write the same value.

A configuration takes as long as twelve tile products, so a micro-kernel keeps the one that it finds (`sttilecfg`, a
tenth of the time) if its heights are the wanted ones. The task that called it releases the tiles at its end
(`@igniter_release_tiles`): until then every thread switch saves and restores them.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import Builder, LlvmModule, Value
from igniter.backends.cpu.llvm_types import I32, I64, PTR
from igniter.backends.cpu.tile_calls import function, offset

HIGH, BYTES = 16, 64
"""The rows of a tile, and the bytes of each."""

STATE = "igniter_tiles"
UNKNOWN, GRANTED, REFUSED = 0, 1, 2

RELEASE = "igniter_release_tiles"
"""The function that a task calls at its end."""

I8 = I32.with_element("i8")

_REQUEST = bytes.fromhex("b89e000000 bf23100000 be12000000 0f05 c3")
"""`i64 ()`: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); 0 if it is granted. In machine code, as llvmlite has
no parser for inline assembly of other machines."""


def add_request(module: LlvmModule) -> None:
    """Defines the request and the cell for its answer."""
    code = "".join(f"\\{b:02X}" for b in _REQUEST)
    module.globals[STATE] = f"@{STATE} = weak hidden global i32 {UNKNOWN}, align 4"
    # `weak` keeps LLVM from drawing conclusions from the body.
    head = "define weak hidden i64 @igniter_request_tiles() noinline optnone nounwind"
    module.functions.append(f'{head} prologue [{len(_REQUEST)} x i8] c"{code}" {{\n  ret i64 0\n}}\n')
    f = Builder(module)
    state = f.emit(I32, f"load atomic i32, ptr @{STATE} monotonic, align 4")
    f.branch(f.icmp("eq", state, f.const(I32, GRANTED)), "release", "done")
    f.start("release")
    f.call_void("llvm.x86.tilerelease", [])
    f.jump("done")
    f.start("done")
    f.raw("ret void")
    module.functions.append(function(f, f"define weak hidden void @{RELEASE}() noinline nounwind #0 {{"))


def release_at_end(f: Builder) -> None:
    """Emits the release of the tiles, for the end of a task that called micro-kernels on tiles."""
    f.module.declarations.setdefault(RELEASE, f"declare hidden void @{RELEASE}()")
    f.raw(f"call void @{RELEASE}()")


def branch_on_permission(f: Builder, granted: str, refused: str) -> None:
    """Ends a block with a branch on the permission of the process to use tiles."""
    state = f.emit(I32, f"load atomic i32, ptr @{STATE} monotonic, align 4")
    cases = f"i32 {GRANTED}, label %{granted} i32 {REFUSED}, label %{refused}"
    f.raw(f"switch i32 {state.text}, label %ask [ {cases} ]")
    f.start("ask")
    answer = f.emit(I64, "call i64 @igniter_request_tiles()")
    may = f.icmp("eq", answer, f.const(I64, 0))
    found = f.select(may, f.const(I32, GRANTED), f.const(I32, REFUSED))
    f.raw(f"store atomic {found.typed}, ptr @{STATE} monotonic, align 4")
    f.branch(may, granted, refused)


def configuration(f: Builder) -> Value:
    """Returns memory for `configure`; it belongs into the entry block."""
    return f.emit(PTR, "alloca [64 x i8], align 64", "config")


def configure(f: Builder, place: Value, upper: Value, lower: Value) -> None:
    """Sets up the tiles, unless they are: sums 0 and 1 of the upper rows, 2 and 3 of the lower; 4 and 5 left factors; 6
    and 7 right. All tiles have the full width, so their heights tell one configuration from another. Continues in a new
    block, "configured"."""
    # A byte for the palette, at 16 two bytes of width for each tile, at 48 a byte of height.
    heights = f.binary("mul", upper, f.const(I64, 0x0000000100000101))
    more = f.binary("mul", lower, f.const(I64, 0x0000010001010000))
    total = f.binary("add", f.binary("add", heights, more), f.const(I64, HIGH * 0x0101000000000000))
    f.call_void("llvm.x86.sttilecfg", [place])
    found = f.emit(I64, f"load i64, ptr {offset(f, place, 48).text}, align 8")
    f.branch(f.icmp("eq", found, total), "configured", "configure")
    f.start("configure")
    f.raw(f"store <64 x i8> zeroinitializer, ptr {place.text}, align 64")
    f.raw(f"store i8 1, ptr {place.text}, align 64")
    for at in (16, 24):
        f.raw(f"store i64 {BYTES * 0x0001000100010001}, ptr {offset(f, place, at).text}, align 8")
    f.raw(f"store {total.typed}, ptr {offset(f, place, 48).text}, align 8")
    f.call_void("llvm.x86.ldtilecfg", [place])
    f.jump("configured")
    f.start("configured")


def halves_of(f: Builder, rows: Value) -> tuple[Value, Value, Value]:
    """Splits the rows into up to two tiles: returns the height of the upper one, the height of the lower one (a full
    height if it has no rows), and a bit for this case."""
    upper = f.call("llvm.smin.i64", I64, [rows, f.const(I64, HIGH)])
    lower = f.binary("sub", rows, upper)
    alone = f.icmp("eq", lower, f.const(I64, 0))
    return upper, f.select(alone, f.const(I64, HIGH), lower), alone
