"""`loop.func` to LLVM IR.

    void @name(ptr buffers, ptr symbols, ptr scratch, ptr parallel_for, ptr context)

`buffers` is an array of data pointers, inputs then outputs; `symbols` an array of i64 in the order of the func's
symbols; `scratch` the arena (64-byte aligned); `parallel_for(context, task, count, data)` runs `task(data, index)` for
every index below `count`, in any order and on any thread; null requests the calling thread.

The entry loads the arguments and calls `@name.body(ptr noalias ..., i64 ...)`: LLVM accepts `noalias` only on
parameters. The body of a `threads` loop becomes `@name.taskN.body`, with its captured values as parameters and two
more, the first and the last iteration; the pool calls `@name.taskN`, which reads the parameters from a record on the
stack of the caller. A nested `threads` loop is sequential.

The emitter raises `EmitError` for unknown ops.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from igniter.backends.cpu import accesses, arithmetic, calls, lanes, team, tile_kernels
from igniter.backends.cpu.builder import LlvmModule, Value, flatten, quote
from igniter.backends.cpu.dot_tiles import Step, TileSums, steps_of
from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Arena, CaptureKey, Function, Pointer, Scope
from igniter.backends.cpu.llvm_types import I8, I64, PTR, llvm_type, memory_type
from igniter.backends.cpu.registers import RegisterFile
from igniter.backends.cpu.sanitizer import Sanitizer
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_calls import NEAREST, prefetch
from igniter.backends.cpu.tile_products import emit_tile_product
from igniter.backends.cpu.tile_registers import release_at_end
from igniter.backends.cpu.transposes import transposed
from igniter.dialects.locations import name_of
from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    CallOp,
    ClockOp,
    ForOp,
    FuncOp,
    IfOp,
    IfSharedOp,
    IndexOp,
    LaunchOp,
    LoadOp,
    PrefetchOp,
    ReduceLanesOp,
    SliceOp,
    StoreOp,
    TileProductOp,
    TransposeOp,
    ViewOp,
    element_bytes,
)
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.loop.schedule import STEPS
from igniter.dialects.loop.sharing import IN_PLACE
from igniter.dialects.loop.words import words_in
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, linearize, product
from igniter.dialects.sym.ranges import is_nonneg, simplify

MARK = "; node "
"""The begin of a comment with the node of the instructions after it."""

MAX_STACK_BYTES = 64 << 10
"""The largest `local` buffer on the stack of a task, in bytes."""


def emit_llvm(func: FuncOp, target: Target, sanitize: bool = False) -> str:
    """Emits one scheduled kernel as the text of an LLVM module; `EmitError` names an op that cannot be emitted.

    With `sanitize`, every access checks its address: see `igniter.backends.cpu.sanitizer`.
    """
    module = LlvmModule(target, sanitizer=Sanitizer() if sanitize else None)
    emit_into(module, func)
    return module.text()


def emit_module(ops: ModuleOp, target: Target, locations: bool = False) -> str:
    """Emits every `loop.func` of a module as one LLVM module, with `locations` in comments if wanted."""
    module = LlvmModule(target, locations=locations)
    for op in ops.walk():
        if isinstance(op, FuncOp):
            emit_into(module, op)
    return module.text()


def emit_whole(ops: ModuleOp, target: Target, locations: bool = False) -> str:
    """Emits every `loop.func` of a module, and the micro-kernels that they call, as `emit_module` does."""
    module = LlvmModule(target, locations=locations)
    for op in ops.walk():
        if isinstance(op, FuncOp):
            emit_into(module, op)
    for name in [n for n in module.declarations if tile_kernels.parse_name(n) is not None]:
        tile_kernels.add_tile_kernel(module, name)
    return module.text()


def emit_into(module: LlvmModule, func: FuncOp) -> None:
    """Adds one scheduled kernel to an LLVM module."""
    FuncEmitter(module, func).run()


class FuncEmitter:
    """The emitter of one `loop.func`; one instance per func."""

    def __init__(self, module: LlvmModule, func: FuncOp):
        self.module = module
        self.func = func
        self.name = func.sym_name.data
        self.tasks = 0
        self.may_share = IN_PLACE in func.attributes or any(isinstance(op, CallOp) for op in func.walk())
        self.registers = RegisterFile(self.name)
        self.in_task = False
        self.outputs = frozenset(func.block.args[len(func.block.args) - func.output_count :])
        self.handlers: dict[type[Operation], Callable[[Function, Any], None]] = {
            AllocOp: self._alloc,
            ForOp: self._for,
            IfOp: self._if,
            IfSharedOp: self._if_shared,
            ViewOp: self._view,
            SliceOp: self._slice,
            LoadOp: self._load,
            StoreOp: self._store,
            AccumulateOp: self._accumulate,
            PrefetchOp: self._prefetch,
            ReduceLanesOp: self._reduce_lanes,
            TransposeOp: self._transpose,
            TileProductOp: self._tile_product,
            IndexOp: self._index,
            CallOp: calls.emit_call,
            LaunchOp: calls.emit_launch,
            ClockOp: calls.emit_clock,
        }

    # -- functions ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.module.defined.add(self.name)
        body = Function(self.module, f"{self.name}.body")
        parameters: list[str] = []
        for arg in self.func.block.args:
            value = Value(PTR, body.name("b"))
            body.pointers[arg] = Pointer(value, 0)
            parameters.append(self._buffer_parameter(arg, value))
        for symbol in self.func.symbol_names:
            value = Value(I64, body.name("s"))
            body.scopes[0].names[symbol] = value
            parameters.append(value.typed)
        if self.module.sanitizer is not None:
            for arg in self.func.block.args:
                self.module.sanitizer.add_buffer(body, arg)
        body.arena = Value(PTR, "%scratch")
        parameters.append("ptr noalias align 64 %scratch")
        parameters += ["ptr %parallel_for", "ptr %context"]
        self._block(body, self.func.block)
        _end(body)
        self._define(body, parameters)
        self._entry(body)

    def _buffer_parameter(self, arg: SSAValue, value: Value) -> str:
        """Returns the parameter of a buffer. Inputs are never written during the call, and an output never aliases
        another buffer (unless `igniter.in_place` is set, or in a program: it may call such a func)."""
        align = element_bytes(element_of(arg.type))
        access = "" if arg in self.outputs else " readonly"
        sharing = "" if self.may_share else " noalias"
        return f"ptr{sharing}{access} align {align} {value.text}"

    def _define(self, f: Function, parameters: list[str]) -> None:
        text = [f"define internal void @{quote(f.function_name)}({', '.join(parameters)}) noinline #0 {{", "entry:"]
        self.module.functions.append("\n".join(text + flatten(f.lines) + ["}", ""]))

    def _entry(self, body: Function) -> None:
        args: list[str] = []
        lines: list[str] = []
        for i in range(len(self.func.block.args)):
            lines.append(f"  %a{i} = getelementptr ptr, ptr %buffers, i64 {i}")
            lines.append(f"  %b{i} = load ptr, ptr %a{i}, align 8")
            args.append(f"ptr %b{i}")
        for i in range(len(self.func.symbol_names)):
            lines.append(f"  %q{i} = getelementptr i64, ptr %symbols, i64 {i}")
            lines.append(f"  %s{i} = load i64, ptr %q{i}, align 8")
            args.append(f"i64 %s{i}")
        args += ["ptr %scratch", "ptr %parallel_for", "ptr %context"]
        header = calls.KERNEL_PARAMETERS
        lines.append(f"  call void @{quote(body.function_name)}({', '.join(args)})")
        together = self.func.team
        name, linkage = (self.name, "") if together is None else (f"{self.name}.alone", "internal ")
        text = [f"define {linkage}void @{quote(name)}({header}) #0 {{", "entry:", *lines, "  ret void", "}", ""]
        self.module.functions.append("\n".join(text))
        if together is not None:
            team.emit_team(self.module, self.name, together)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _block(self, f: Function, block: Block) -> None:
        sums: TileSums | None = None
        for op in steps_of(block, self.module.target):
            if isinstance(op, Step):
                sums = sums or TileSums(f, op.tile)
                sums.emit(op.pair)
                continue
            if self.module.locations and name_of(op):
                f.raw(f"{MARK}{name_of(op)}")
            handler = self.handlers.get(type(op))
            if handler is not None:
                handler(f, op)
            else:
                arithmetic.emit(f, op, self.name)

    def _prefetch(self, f: Function, op: PrefetchOp) -> None:
        if self.registers.holds(op.buffer):
            raise EmitError(self.name, op, "a register buffer has no address, so nothing of it is fetched")
        offset = f.prepare(linearize(op.subscripts, dims_of(op.buffer.type)))
        element = memory_type(llvm_type(element_of(op.buffer.type)))
        prefetch(f, f.address(f.find_pointer(op.buffer), element, offset), NEAREST, writes=op.writes)

    def _transpose(self, f: Function, op: TransposeOp) -> None:
        vectors = [f.find_value(v) for v in op.vectors]
        for result, column in zip(op.columns, transposed(f, vectors, op.lanes, op.rows), strict=True):
            f.values[result] = column

    def _view(self, f: Function, op: ViewOp) -> None:
        if self.registers.holds(op.source):
            raise EmitError(self.name, op, "a register buffer has no address, so it has no view")
        f.pointers[op.result] = f.find_pointer(op.source)

    def _slice(self, f: Function, op: SliceOp) -> None:
        if self.registers.holds(op.source):
            raise EmitError(self.name, op, "a register buffer has no address, so it has no slice")
        source, offset = f.find_pointer(op.source), f.prepare(op.offset * element_bytes(element_of(op.source.type)))
        depth = max(source.depth, f.level_of(offset))
        f.pointers[op.result] = Pointer(f.address(source, I8, offset), depth)
        if self.module.sanitizer is not None:
            self.module.sanitizer.add_slice(f, op.result, op.source, offset)

    def _alloc(self, f: Function, op: AllocOp) -> None:
        label = op.label.data
        if op.storage is not None:
            passes = " and ".join(STEPS["store"].consumers)
            raise EmitError(self.name, op, f"buffer '{label}' still has 'store {op.storage}'; run {passes}")
        if op.space == "register":
            self.registers.add(op, f)
            return
        if op.space == "scratch":
            if op.offset is None:
                raise EmitError(self.name, op, f"buffer '{label}' has no offset in the arena yet; run plan-buffers")
            f.pointers[op.result] = self._scratch_pointer(f, f.prepare(op.offset))
            if self.module.sanitizer is not None:
                self.module.sanitizer.add_scratch(f, op.result, op.offset, self.func.scratch_bytes or ZERO)
            return
        size = product(dims_of(op.result.type)).constant
        size = None if size is None else size * element_bytes(element_of(op.result.type))
        if size is None or size > MAX_STACK_BYTES:
            what = "of symbolic size" if size is None else f"of {size} bytes"
            raise EmitError(
                self.name, op, f"local buffer '{label}' {what} does not fit a stack; plan-buffers puts it in scratch"
            )
        f.pointers[op.result] = Pointer(f.alloca(f"[{max(size, 1)} x i8]", 64, "local"), 0)
        if self.module.sanitizer is not None:
            self.module.sanitizer.add_buffer(f, op.result)

    def _scratch_pointer(self, f: Function, offset: Expr) -> Pointer:
        return Pointer(f.address(f.find_arena(), I8, offset), f.level_of(offset))

    # -- control ------------------------------------------------------------------------------------------------------

    def _for(self, f: Function, op: ForOp) -> None:
        left = [f"'{word.name}' (run {word.consumers[0]})" for word in words_in(op.words)]
        if left:
            raise EmitError(self.name, op, f"loop '{op.axis}' still has {', '.join(left)}")
        if op.indices:
            here = {f"{INDIRECT_PREFIX}{k}": f.find_value(v) for k, v in enumerate(op.indices)}
            with lanes.local_ranges(f, None, 0, len(op.indices)):
                ends = [f.prepare(op.first), f.prepare(op.end)]
                low, high = (f.expr(e, here) for e in ends)
            bounds = [lanes.ANYTHING[k] if e.symbols & here.keys() else e for k, e in enumerate(ends)]
            self._loop(f, op, low, high, (bounds[0], bounds[1]))
            return
        first, end = f.prepare(op.first), f.prepare(op.end)
        extent = (end - first).constant
        if extent is not None and extent <= op.step and op.going is None:
            if extent > 0:
                # After the loop its name is free again, for another loop or for an axis of a tile.
                around = f.fixed
                f.fixed = {**around, op.axis: first}
                self._block(f, op.block)
                f.fixed = around
            return
        if op.grain is not None and not self.in_task:
            self._threads(f, op, first, end)
            return
        self._loop(f, op, f.expr(first), f.expr(end), (first, end))

    def _loop(self, f: Function, op: ForOp, first: Value, end: Value, bounds: tuple[Expr, Expr]) -> None:
        """Emits a loop. `bounds` are the known bounds of the axis; `first` and `end` may be a part of them."""
        surely = is_nonneg(bounds[1] - bounds[0] - 1, f.ranges) and end_is(f, end, bounds[1])
        nonempty = op.going is None and first.is_constant and surely
        body, done = f.label("body"), f.label("done")
        goes = None if nonempty else self._goes_on(f, op, f.icmp("slt", first, end))
        before = f.block  # The test of the condition may have created blocks of its own.
        if goes is None:
            f.jump(body)
        else:
            f.branch(goes, body, done)
        f.start(body)
        axis = f.name("i")
        phi_at = len(f.lines)
        f.lines.append("")
        scope = Scope()
        scope.names[op.axis] = Value(I64, axis)
        f.lines.append(scope.head)
        f.scopes.append(scope)
        f.axes[op.axis] = (bounds[0], last_of(bounds, op.step) + 1)
        if bounds[0].constant is not None:
            f.strides[op.axis] = gcd(bounds[0].constant, op.step)
        self._block(f, op.block)
        f.scopes.pop()
        del f.axes[op.axis]
        f.strides.pop(op.axis, None)
        following = f.emit(I64, f"add nsw i64 {axis}, {op.step}", "n")
        more = self._goes_on(f, op, f.icmp("slt", following, end))
        f.lines[phi_at] = f"  {axis} = phi i64 [ {first.text}, %{before} ], [ {following.text}, %{f.block} ]"
        f.branch(more, body, done, f.module.loop_metadata())
        f.start(done)

    def _goes_on(self, f: Function, op: ForOp, more: Value) -> Value:
        """Returns the condition for another iteration: there are `more`, and the loop's flag in memory is not 0."""
        if op.going is None:
            return more
        look = LoadOp(op.going, [])
        try:
            going = accesses.Access(f, look, self.registers, self.name).load(look)
        finally:
            look.erase()
        return f.binary("and", more, f.icmp("ne", going, f.zero(going.type)))

    def _if(self, f: Function, op: IfOp) -> None:
        here = {f"{INDIRECT_PREFIX}{k}": f.find_value(v) for k, v in enumerate(op.indices)}
        with lanes.local_ranges(f, None, 0, len(op.indices)):
            condition = lanes.scalar_guard(f, [f.prepare(g) for g in op.guards], here)
        if condition is False:
            return
        if condition is True:
            self._block(f, op.block)
            return
        then, done = f.label("then"), f.label("endif")
        f.branch(condition, then, done)
        f.start(then)
        self._block(f, op.block)
        f.jump(done)
        f.start(done)

    def _if_shared(self, f: Function, op: IfSharedOp) -> None:
        a, b = (f.find_pointer(each).value for each in (op.first, op.second))
        condition = f.icmp("eq", a, b)
        for difference in op.differences:
            same = f.icmp("eq", f.expr(f.prepare(difference)), f.const(I64, 0))
            condition = f.binary("and", condition, same)
        shared, apart, done = f.label("shared"), f.label("apart"), f.label("endif")
        f.branch(condition, shared, apart)
        for label, region in ((shared, op.shared), (apart, op.apart)):
            f.start(label)
            self._block(f, region.block)
            f.jump(done)
        f.start(done)

    def _threads(self, f: Function, op: ForOp, first: Expr, end: Expr) -> None:
        self.tasks += 1
        name = f"{self.name}.task{self.tasks}"
        iterations = simplify((end - first).ceildiv(op.step), f.ranges)
        count = f.expr(iterations)
        if not is_nonneg(iterations, f.ranges):
            count = f.binary_intrinsic("smax", count, f.const(I64, 0))
        grain_expr = f.prepare(op.grain or Expr.of(1))
        grain = f.expr(grain_expr)
        if not is_nonneg(grain_expr - 1):
            grain = f.binary_intrinsic("smax", grain, f.const(I64, 1))
        child = self._outline(f, op, name, (first, end))
        self._dispatch(f, name, child, count, grain)

    def _outline(self, f: Function, op: ForOp, name: str, bounds: tuple[Expr, Expr]) -> Function:
        child = Function(self.module, f"{name}.body", f)
        start, stop = Value(I64, "%first"), Value(I64, "%last")
        self.in_task = True
        origin = child.expr(bounds[0])
        step = child.const(I64, op.step)
        low = child.binary("add nsw", child.binary("mul nsw", start, step), origin)
        high = child.binary("add nsw", child.binary("mul nsw", stop, step), origin)
        self._loop(child, op, low, high, bounds)
        self.in_task = False
        _end(child)
        parameters = ["i64 %first", "i64 %last"]
        for key, value in child.captures:
            parameters.append(self._captured_parameter(key, value))
        self._define(child, parameters)
        return child

    def _captured_parameter(self, key: CaptureKey, value: Value) -> str:
        if isinstance(key, SSAValue) and key in self.func.block.args:
            return self._buffer_parameter(key, value)
        if key is Arena.SCRATCH:
            return f"ptr noalias align 64 {value.text}"
        return value.typed

    def _dispatch(self, f: Function, name: str, child: Function, count: Value, grain: Value) -> None:
        """Runs the tasks: inline if there is one or no pool, otherwise through `parallel_for`."""
        captured = [f.resolve(key) for key, _ in child.captures]
        tasks = f.binary("udiv", f.binary("add nsw", count, f.binary("sub nsw", grain, f.const(I64, 1))), grain)
        single = f.icmp("sle", tasks, f.const(I64, 1))
        serial_pool = f.icmp("eq", Value(PTR, "%parallel_for"), Value(PTR, "null"))
        inline, pool, done = f.label("inline"), f.label("pool"), f.label("joined")
        fields = [count, grain, *captured]
        record_type = "{ " + ", ".join(str(v.type) for v in fields) + " }"
        record = f.alloca(record_type, 64, "record")
        f.branch(f.binary("or", single, serial_pool), inline, pool)
        f.start(inline)
        arguments = ", ".join(["i64 0", count.typed, *(v.typed for v in captured)])
        f.raw(f"call void @{quote(child.function_name)}({arguments})")
        f.jump(done)
        f.start(pool)
        for i, value in enumerate(fields):
            slot = f.emit(PTR, f"getelementptr {record_type}, ptr {record.text}, i32 0, i32 {i}", "f")
            f.raw(f"store {value.typed}, ptr {slot.text}, align 8")
        f.raw(f"call void %parallel_for(ptr %context, ptr @{quote(name)}, {tasks.typed}, ptr {record.text})")
        f.jump(done)
        f.start(done)
        self._task_entry(name, child, record_type)

    def _task_entry(self, name: str, child: Function, record_type: str) -> None:
        """Emits `void task(ptr data, i64 index)`: iterations [index*grain, min((index+1)*grain, count))."""
        b = Function(self.module, name)
        fields: list[Value] = []
        for i, t in enumerate([I64, I64, *(v.type for _, v in child.captures)]):
            slot = b.emit(PTR, f"getelementptr {record_type}, ptr %data, i32 0, i32 {i}", "f")
            fields.append(b.emit(t, f"load {t}, ptr {slot.text}, align 8"))
        count, grain, *captured = fields
        first = b.binary("mul nsw", Value(I64, "%index"), grain)
        last = b.binary_intrinsic("smin", b.binary("add nsw", first, grain), count)
        arguments = ", ".join(v.typed for v in (first, last, *captured))
        b.raw(f"call void @{quote(child.function_name)}({arguments})")
        b.raw("ret void")
        text = [
            f"define internal void @{quote(name)}(ptr %data, i64 %index) #0 {{",
            "entry:",
            *flatten(b.lines),
            "}",
            "",
        ]
        self.module.functions.append("\n".join(text))

    # -- accesses -----------------------------------------------------------------------------------------------------

    def _load(self, f: Function, op: LoadOp) -> None:
        f.values[op.result] = accesses.Access(f, op, self.registers, self.name).load(op)

    def _store(self, f: Function, op: StoreOp) -> None:
        accesses.Access(f, op, self.registers, self.name).store(f.find_value(op.value))

    def _accumulate(self, f: Function, op: AccumulateOp) -> None:
        accesses.Access(f, op, self.registers, self.name).accumulate(op.combiner, f.find_value(op.value))

    def _reduce_lanes(self, f: Function, op: ReduceLanesOp) -> None:
        f.values[op.result] = arithmetic.reduce_lanes(f, op.combiner, f.find_value(op.vector), op.unsigned)

    def _tile_product(self, f: Function, op: TileProductOp) -> None:
        emit_tile_product(f, op, self.name)

    def _index(self, f: Function, op: IndexOp) -> None:
        t = llvm_type(op.result.type)
        value = f.prepare(op.value)
        f.values[op.result] = lanes.lane_values(f, value, op.lane, t.lanes, {}) if t.lanes else f.expr(value)


def _end(f: Function) -> None:
    """Ends a function or a task; one that multiplied tiles releases them."""
    if f.uses_tiles:
        release_at_end(f)
    f.raw("ret void")


def last_of(bounds: tuple[Expr, Expr], step: int) -> Expr:
    """Returns the last value of the axis if the bounds are constants, otherwise a bound of it."""
    first, end = bounds
    if first.constant is None or end.constant is None or end.constant <= first.constant:
        return end - 1
    return first + (end.constant - 1 - first.constant) // step * step


def end_is(f: Function, end: Value, expr: Expr) -> bool:
    return expr.constant is not None and end.text == str(expr.constant)
