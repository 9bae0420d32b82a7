"""Micro-kernels of bytes on AMX: tiles of 16 rows by 64 bytes, two by two of which one instruction multiplies.

A panel of bytes is what the right factor of `tdpbusd` is, 16 groups of four steps of depth at a time, and the rows of
the left factor lie as it takes them: nothing is packed another way. The sums of 32 rows and two panels are four tiles,
the factors two each. What is left over of the depth, a few rows, and calls in a process that may not use tiles, go to
the bodies with vectors, eight rows at a time.

Linux gives a process tiles when it asks (`ARCH_REQ_XCOMP_PERM`). The first call does, and `@igniter_tiles` remembers
the answer: the only cell that kernels write, and whoever writes it writes the same.
"""

from __future__ import annotations

from igniter.analysis.contractions import BYTE_TILE
from igniter.backends.cpu.builder import Builder, Module, Value, flatten
from igniter.backends.cpu.llvm_types import I32, I64, PTR

ROWS = BYTE_TILE[0]
"""Of a micro-kernel: two tiles."""

STRIPE = 8
"""The rows that the bodies with vectors take at a time."""

HIGH, BYTES, GROUPS = 16, 64, 16
"""The rows of a tile, the bytes of each, and the groups of four bytes that these are."""

FEWEST = 4
"""Rows from which on tiles are faster than vectors: up to 16 take as long as one."""

_REQUEST = bytes.fromhex("b89e000000 bf23100000 be12000000 0f05 c3")
"""`i64 ()`: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); 0 if it is granted. In machine code, as llvmlite has
no parser for inline assembly of other machines."""

STATE = "igniter_tiles"
UNKNOWN, GRANTED, REFUSED = 0, 1, 2

I8 = I32.with_element("i8")


def add_byte_tiles(module: Module, name: str, signature: str, panels: int) -> None:
    """Defines `@name`, which calls `@name.stripe` for what is not for tiles, up to `STRIPE` rows at a time."""
    code = "".join(f"\\{b:02X}" for b in _REQUEST)
    module.globals[STATE] = f"@{STATE} = weak hidden global i32 {UNKNOWN}, align 4"
    # `weak`, so that LLVM concludes nothing from the body.
    head = "define weak hidden i64 @igniter_request_tiles() noinline optnone nounwind"
    module.functions += [
        f'{head} prologue [{len(_REQUEST)} x i8] c"{code}" {{\n  ret i64 0\n}}\n',
        _choice(module, name, signature),
        _stripes(module, name, signature),
        _tiles(module, name, signature, panels),
    ]


def _text(f: Builder, head: str) -> str:
    return "\n".join([head, "entry:", *flatten(f.lines), "}", ""])


def _argument(name: str) -> Value:
    return Value(PTR if name in ("a", "b", "c", "next") else I64, f"%{name}")


def _call(f: Builder, name: str, signature: str, other: dict[str, Value]) -> None:
    """A call with the function's own arguments, but for those in `other`."""
    names = [part.split("%")[1] for part in signature.split(", ")]
    f.raw(f"call void @{name}({', '.join(other.get(n, _argument(n)).typed for n in names)})")


def _at(f: Builder, base: Value, offset: Value) -> Value:
    return f.emit(PTR, f"getelementptr i8, ptr {base.text}, {offset.typed}", "p")


def _choice(module: Module, name: str, signature: str) -> str:
    """Tiles or vectors."""
    f = Builder(module)
    few = f.icmp("slt", _argument("rows"), f.const(I64, FEWEST))
    flat = f.icmp("slt", _argument("depth"), f.const(I64, GROUPS))
    apart = f.icmp("ne", _argument("a_depth"), f.const(I64, 4))
    unfit = f.binary("or", f.binary("or", few, flat), apart)
    f.branch(unfit, "vectors", "look")
    f.start("look")
    state = f.emit(I32, f"load atomic i32, ptr @{STATE} monotonic, align 4")
    f.raw(f"switch i32 {state.text}, label %ask [ i32 {GRANTED}, label %tiles i32 {REFUSED}, label %vectors ]")
    f.start("ask")
    answer = f.emit(I64, "call i64 @igniter_request_tiles()")
    granted = f.icmp("eq", answer, f.const(I64, 0))
    found = f.select(granted, f.const(I32, GRANTED), f.const(I32, REFUSED))
    f.raw(f"store atomic {found.typed}, ptr @{STATE} monotonic, align 4")
    f.branch(granted, "tiles", "vectors")
    f.start("tiles")
    _call(f, f"{name}.tiles", signature, {})
    rest = f.binary("and", _argument("depth"), f.const(I64, GROUPS - 1))
    f.branch(f.icmp("eq", rest, f.const(I64, 0)), "done", "rest")
    f.start("rest")
    whole = f.binary("sub", _argument("depth"), rest)
    moved = {
        "a": _at(f, _argument("a"), f.binary("mul", whole, f.const(I64, 4))),
        "b": _at(f, _argument("b"), f.binary("mul", whole, _argument("b_depth"))),
        "next": _at(f, _argument("next"), f.binary("mul", whole, f.const(I64, BYTES))),
    }
    _call(f, f"{name}.stripes", signature, {**moved, "depth": rest, "add": f.const(I64, 1)})
    f.jump("done")
    f.start("vectors")
    _call(f, f"{name}.stripes", signature, {})
    f.jump("done")
    f.start("done")
    f.raw("ret void")
    return _text(f, f"define hidden void @{name}({signature}) #0 {{")


def _stripes(module: Module, name: str, signature: str) -> str:
    """The bodies with vectors, over all rows."""
    f = Builder(module)
    rows, none = _argument("rows"), f.const(I64, 0)
    f.branch(f.icmp("sgt", rows, none), "stripe", "done")
    f.start("stripe")
    following = Value(I64, "%following")
    row = f.phi(I64, [(none, "entry"), (following, "stripe")])
    left = f.binary("sub", rows, row)
    count = f.call("llvm.smin.i64", I64, [left, f.const(I64, STRIPE)])
    moved = {p: _at(f, _argument(p), f.binary("mul", row, _argument(f"{p}_row"))) for p in ("a", "c")}
    _call(f, f"{name}.stripe", signature, {**moved, "rows": count})
    f.raw(f"{following.text} = add i64 {row.text}, {STRIPE}")
    f.branch(f.icmp("slt", following, rows), "stripe", "done")
    f.start("done")
    f.raw("ret void")
    return _text(f, f"define internal void @{name}.stripes({signature}) noinline #0 {{")


def _tiles(module: Module, name: str, signature: str, panels: int) -> str:
    """All rows and panels, for as much of the depth as fills tiles."""
    f = Builder(module)
    rows = _argument("rows")
    upper = f.call("llvm.smin.i64", I64, [rows, f.const(I64, HIGH)])
    lower = f.binary("sub", rows, upper)
    alone = f.icmp("eq", lower, f.const(I64, 0))
    _configure(f, upper, f.select(alone, f.const(I64, HIGH), lower))
    groups = f.binary("and", _argument("depth"), f.const(I64, -GROUPS))
    f.branch(alone, "one", "two")
    for label, count in (("one", 1), ("two", 2)):
        f.start(label)
        _Block(f, label, count, panels).run(groups)
        f.jump("done")
    f.start("done")
    # What is left set up would be saved and restored whenever the thread is switched.
    f.call_void("llvm.x86.tilerelease", [])
    f.raw("ret void")
    return _text(f, f"define internal void @{name}.tiles({signature}) noinline #0 {{")


def _configure(f: Builder, upper: Value, lower: Value) -> None:
    """Sets up the tiles: sums 0 and 1 of the upper rows, 2 and 3 of the lower; 4 and 5 left factors; 6 and 7 right."""
    # A byte for the palette, at 16 two bytes of width for each tile, at 48 a byte of height.
    place = f.emit(PTR, "alloca [64 x i8], align 64", "config")
    f.raw(f"store <64 x i8> zeroinitializer, ptr {place.text}, align 64")
    f.raw(f"store i8 1, ptr {place.text}, align 64")
    for at in (16, 24):
        f.raw(f"store i64 {BYTES * 0x0001000100010001}, ptr {_at(f, place, f.const(I64, at)).text}, align 8")
    heights = f.binary("mul", upper, f.const(I64, 0x0000000100000101))
    more = f.binary("mul", lower, f.const(I64, 0x0000010001010000))
    total = f.binary("add", f.binary("add", heights, more), f.const(I64, HIGH * 0x0101000000000000))
    f.raw(f"store {total.typed}, ptr {_at(f, place, f.const(I64, 48)).text}, align 8")
    f.call_void("llvm.x86.ldtilecfg", [place])


class _Block:
    """One or two tiles of rows by the panels."""

    def __init__(self, f: Builder, label: str, high: int, panels: int):
        self.f = f
        self.label = label
        self.high = high
        self.panels = panels

    def run(self, groups: Value) -> None:
        """Sums over `groups` of the depth, a multiple of what a tile has and more than none."""
        f, label = self.f, self.label
        add, plain, loop, done = (f"{label}.{part}" for part in ("add", "plain", "loop", "sums"))
        f.branch(f.icmp("ne", _argument("add"), f.const(I64, 0)), add, plain)
        f.start(add)
        self._sums("llvm.x86.tileloadd64")
        f.jump(loop)
        f.start(plain)
        for r in range(self.high):
            for p in range(self.panels):
                f.call_void("llvm.x86.tilezero", [f.const(I8, 2 * r + p)])
        f.jump(loop)
        f.start(loop)
        following = Value(I64, f"%{label}.following")
        none = f.const(I64, 0)
        group = f.phi(I64, [(none, add), (none, plain), (following, loop)])
        self._step(group)
        f.raw(f"{following.text} = add i64 {group.text}, {GROUPS}")
        f.branch(f.icmp("slt", following, groups), loop, done)
        f.start(done)
        self._sums("llvm.x86.tilestored64")

    def _sums(self, intrinsic: str) -> None:
        """Every tile of sums, from or to memory."""
        f, step = self.f, _argument("c_row")
        for r in range(self.high):
            row = _at(f, _argument("c"), f.binary("mul", step, f.const(I64, HIGH * r)))
            for p in range(self.panels):
                place = _at(f, row, f.const(I64, BYTES * p))
                f.call_void(intrinsic, [f.const(I8, 2 * r + p), place, step])

    def _step(self, group: Value) -> None:
        f = self.f
        lines = f.binary("mul", group, f.const(I64, BYTES))
        for k in range(GROUPS):
            place = _at(f, _argument("next"), f.binary("add", lines, f.const(I64, BYTES * k)))
            f.module.declarations.setdefault("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            f.raw(f"call void @llvm.prefetch.p0(ptr {place.text}, i32 0, i32 2, i32 1)")
        along = f.binary("mul", group, f.const(I64, 4))
        down = f.binary("mul", group, _argument("b_depth"))
        for r in range(self.high):
            row = _at(f, _argument("a"), f.binary("mul", _argument("a_row"), f.const(I64, HIGH * r)))
            f.call_void("llvm.x86.tileloadd64", [f.const(I8, 4 + r), _at(f, row, along), _argument("a_row")])
            for p in range(self.panels):
                if not r:
                    panel = _at(f, _argument("b"), f.binary("mul", _argument("b_panel"), f.const(I64, p)))
                    f.call_void("llvm.x86.tileloadd64", [f.const(I8, 6 + p), _at(f, panel, down), _argument("b_depth")])
                f.call_void("llvm.x86.tdpbusd", [f.const(I8, 2 * r + p), f.const(I8, 4 + r), f.const(I8, 6 + p)])
