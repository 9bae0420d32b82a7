"""Scheduled kernels as functions of `scf`, `memref` and `vector`: `igniter-opt --emit=scf`.

    loop.func @r0 symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: ...) outputs 1 scratch(4*n)
    func.func @r0(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %n: index, %scratch: memref<?xi8>)

The arguments are the buffers, the symbols in their order, and the arena if the kernel has one. Buffers are dense, and
the kernel writes the last ones. Requirements are `cf.assert`.

| scheduled level | as |
| --- | --- |
| a loop with threads | `scf.parallel`; its grain is a comment; with buffers on the stack, its body is a function |
| any other loop; with `while` | `scf.for`; `scf.while` |
| a buffer in registers, or a small local one | `memref.alloca` at the head of the function |
| a larger local buffer, or one that is not planned | `memref.alloc` and `memref.dealloc` |
| a planned buffer | `memref.view` of the arena |
| a view; a slice | `memref.reinterpret_cast`; `memref.subview` |
| a call | `func.call` |

A prefetch is a comment. Nothing is said of what MLIR has no words for: alignment, aliasing, teams, typical sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.backends.mlir.arithmetic import Operand, write_op
from igniter.backends.mlir.kinds import INDEX, kind_of, literal
from igniter.backends.mlir.lanes import Lanes, Scalars, iota
from igniter.backends.mlir.memory import Buffer, buffer_text, reduce_lanes, stored_kind, when, write_memory_op
from igniter.backends.mlir.text import MlirRefusal, Writer, string, symbol_name
from igniter.backends.mlir.tiles import write_tile
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
)
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ZERO, Expr, product

MAX_STACK_BYTES = 64 << 10
"""The largest buffer on the stack, in bytes; larger ones, and those of symbolic size, are allocated."""


def emit_scf(module: ModuleOp) -> str:
    """Returns the scheduled kernels of a module as text of MLIR; raises `MlirRefusal` if it has none."""
    funcs = [op for op in module.walk() if isinstance(op, FuncOp)]
    if not funcs:
        raise MlirRefusal(
            "--emit=scf writes scheduled kernels, and the module has none: lower it first, with the pipeline 'cpu' for "
            "instance"
        )
    return func_module(funcs)


def func_module(funcs: Sequence[FuncOp]) -> str:
    """Returns a module of scheduled kernels as text of MLIR."""
    calls = [op for func in funcs for op in func.walk() if isinstance(op, CallOp)]
    defined = {func.sym_name.data for func in funcs}
    strided = {op.callee for op in calls if any(isinstance(b.owner, SliceOp | ViewOp) for b in op.buffers)}
    lines = [line for func in funcs for line in _Function(func, func.sym_name.data in strided, strided).write()]
    declared = {op.callee: op for op in calls if op.callee not in defined}
    lines += [_declaration(op, op.callee in strided) for op in declared.values()]
    return "\n".join(("module {", *lines, "}", ""))


def has_arena(func: FuncOp) -> bool:
    """True if the function of a kernel has an arena as its last argument."""
    return func.scratch_bytes is not None and func.scratch_bytes != ZERO


def _is_on_stack(op: AllocOp) -> bool:
    """True for a buffer in registers, or a small local one."""
    count = product(dims_of(op.result.type)).constant
    if count is None or op.space == "scratch":
        return False
    return count * max(1, stored_kind(op.result.type).bits // 8) <= MAX_STACK_BYTES


def _argument_text(shaped: Attribute, strided: bool) -> str:
    """Returns the type of a buffer argument; of a kernel that gets slices, it has an offset."""
    text = buffer_text(shaped)
    if not strided or not dims_of(shaped):
        return text if not strided else f"{text[:-1]}, strided<[], offset: ?>>"
    return f"{text[:-1]}, strided<[{', '.join(_strides(dims_of(shaped)))}], offset: ?>>"


def _strides(dims: Sequence[Expr]) -> list[str]:
    """Returns the strides of a dense buffer in its type."""
    steps = [product(dims[k + 1 :]).constant for k in range(len(dims))]
    return ["?" if s is None else str(s) for s in steps]


def _declaration(op: CallOp, strided: bool) -> str:
    types = [_argument_text(b.type, strided) for b in op.buffers] + ["index"] * len(op.symbols)
    if op.scratch is not None:
        types.append("memref<?xi8>")
    return f"  func.func private {symbol_name(op.callee)}({', '.join(types)})"


class _Function:
    """The text of one kernel."""

    def __init__(self, func: FuncOp, strided: bool, strided_callees: set[str]):
        self.func = func
        self.strided = strided
        self.strided_callees = strided_callees
        self.writer = Writer(func.sym_name.data)
        self.names: dict[str, str] = {}
        self.values: dict[SSAValue, Operand] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.freed: list[Buffer] = []
        """The allocated buffers of the block that is being written."""
        self.tasks: list[str] = []
        """The functions of the bodies of loops with threads."""
        self.in_task = False
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            AllocOp: self._alloc,
            ForOp: self._for,
            IfOp: self._if,
            IfSharedOp: self._if_shared,
            ViewOp: self._view,
            SliceOp: self._slice,
            LoadOp: self._access,
            StoreOp: self._access,
            AccumulateOp: self._access,
            PrefetchOp: self._prefetch,
            ReduceLanesOp: self._reduce_lanes,
            TransposeOp: self._transpose,
            TileProductOp: self._tile_product,
            IndexOp: self._index,
            CallOp: self._call,
            ClockOp: self._no_clock,
            LaunchOp: self._no_launch,
        }

    @property
    def scalars(self) -> Scalars:
        return Scalars(self.writer, self.names)

    def write(self) -> list[str]:
        func, given = self.func, list[str]()
        for k, arg in enumerate(func.block.args):
            buffer = Buffer(self.writer.fresh(f"arg{k}"), _argument_text(arg.type, self.strided), arg.type)
            self.buffers[arg] = buffer
            given.append(f"{buffer.name}: {buffer.text}")
        for symbol in func.symbol_names:
            self.names[symbol] = self.writer.fresh(symbol)
            given.append(f"{self.names[symbol]}: index")
        self.arena = self.writer.fresh("scratch")
        if has_arena(func):
            given.append(f"{self.arena}: memref<?xi8>")
        for requirement in func.requires:
            holds = self.scalars.relation(requirement.left, requirement.relation, requirement.right)
            self.writer.line(f"cf.assert {holds}, {string(requirement.text)}")
        self._block(func.block)
        self.writer.line("return")
        head = f"  func.func {symbol_name(func.sym_name.data)}({', '.join(given)})"
        return [f"{head} attributes {{llvm.emit_c_interface}} {{", *self.writer.lines, "  }", *self.tasks]

    def _block(self, block: Block) -> None:
        outer, self.freed = self.freed, []
        for op in block.ops:
            self._statement(op)
        for buffer in reversed(self.freed):
            self.writer.line(f"memref.dealloc {buffer.name} : {buffer.text}")
        self.freed = outer

    def _statement(self, op: Operation) -> None:
        handler = self.handlers.get(type(op))
        if handler is not None:
            handler(op)
            return
        self.values[op.results[0]] = write_op(self.writer, op, [self.values[v] for v in op.operands])

    # -- control ------------------------------------------------------------------------------------------------------

    def _within(self, names: Mapping[str, str], block: Block) -> None:
        """Writes a block in which more names are known."""
        outer, self.names = self.names, {**self.names, **names}
        self._block(block)
        self.names = outer

    def _with_indirect(self, indices: Iterable[SSAValue]) -> Scalars:
        names = dict(self.names)
        for k, index in enumerate(indices):
            value = self.values[index]
            names[f"{INDIRECT_PREFIX}{k}"] = self.writer.let(
                "at", f"arith.index_cast {value.name} : {value.kind} to index"
            )
        return Scalars(self.writer, names)

    def _for(self, op: ForOp) -> None:
        writer, local = self.writer, self._with_indirect(op.indices)
        if op.going is not None:
            self._while(op, op.going, local)
            return
        counter = writer.fresh(op.axis)
        first, end, step = local.value(op.first), local.value(op.end), writer.index(op.step)
        threads = op.grain is not None and not self.in_task
        if threads:
            writer.line(f"// {op.grain} iterations per task")
            writer.line(f"scf.parallel ({counter}) = ({first}) to ({end}) step ({step}) {{")
        else:
            writer.line(f"scf.for {counter} = {first} to {end} step {step} {{")
        with writer.deeper():
            if threads and any(isinstance(o, AllocOp) and _is_on_stack(o) for o in op.walk()):
                self._task(op, counter)
            else:
                self._within({op.axis: counter}, op.block)
            if threads:
                writer.line("scf.reduce")
        writer.line("}")

    def _task(self, op: ForOp, counter: str) -> None:
        """Writes the body of a loop with threads as a function, which has the buffers on the stack of an iteration, and
        the call of it."""
        used = dict.fromkeys(v for inner in op.walk() for v in inner.operands)
        given = {**self.names, op.axis: counter}
        outer = (self.writer, self.names, self.values, self.buffers, self.arena, self.freed)
        name = symbol_name(f"{self.func.sym_name.data}.task{len(self.tasks) + 1}")
        task = self.writer = Writer(self.func.sym_name.data)
        self.names = {n: task.fresh(n) for n in given}
        self.values = {v: Operand(task.fresh("v"), outer[2][v].kind) for v in used if v in outer[2]}
        buffers = {v: outer[3][v] for v in used if v in outer[3]}
        self.buffers = {v: replace(b, name=task.fresh("b")) for v, b in buffers.items()}
        passed = [(given[n], self.names[n], "index") for n in given]
        passed += [(outer[2][v].name, here.name, str(here.kind)) for v, here in self.values.items()]
        passed += [(b.name, self.buffers[v].name, b.text) for v, b in buffers.items()]
        if has_arena(self.func):
            self.arena = task.fresh("scratch")
            passed.append((outer[4], self.arena, "memref<?xi8>"))
        self.freed, self.in_task = [], True
        self._block(op.block)
        task.line("return")
        head = ", ".join(f"{here}: {kind}" for _, here, kind in passed)
        self.tasks += [f"  func.func private {name}({head}) {{", *task.lines, "  }"]
        self.writer, self.names, self.values, self.buffers, self.arena, self.freed = outer
        self.in_task = False
        args, kinds = ", ".join(a for a, _, _ in passed), ", ".join(kind for _, _, kind in passed)
        self.writer.line(f"func.call {name}({args}) : ({kinds}) -> ()")

    def _while(self, op: ForOp, going: SSAValue, local: Scalars) -> None:
        """Writes a loop that ends before an iteration where the element of `going` is 0."""
        writer, buffer = self.writer, self.buffers[going]
        first, end, kind = local.value(op.first), local.value(op.end), buffer.stored
        test, counter, zero = writer.fresh(op.axis), writer.fresh(op.axis), writer.fresh("zero")
        writer.line(f"{zero} = arith.constant 0 : {kind}")
        writer.line(f"scf.while ({test} = {first}) : (index) -> (index) {{")
        with writer.deeper():
            more = writer.let("in", f"arith.cmpi slt, {test}, {end} : index")
            flag = writer.let("v", f"memref.load {buffer.name}[] : {buffer.text}")
            goes = writer.let("in", f"arith.cmpi ne, {flag}, {zero} : {kind}")
            writer.line(f"scf.condition({writer.let('in', f'arith.andi {more}, {goes} : i1')}) {test} : index")
        writer.line("} do {")
        writer.line(f"^bb0({counter}: index):")
        with writer.deeper():
            self._within({op.axis: counter}, op.block)
            writer.line(
                f"scf.yield {writer.let(op.axis, f'arith.addi {counter}, {writer.index(op.step)} : index')} : index"
            )
        writer.line("}")

    def _if(self, op: IfOp) -> None:
        holds = self._with_indirect(op.indices).holds(op.guards)
        when(self.writer, holds, lambda: self._block(op.block))

    def _if_shared(self, op: IfSharedOp) -> None:
        writer = self.writer
        addresses = [
            writer.let("address", f"memref.extract_aligned_pointer_as_index {b.name} : {b.text} -> index")
            for b in (self.buffers[op.first], self.buffers[op.second])
        ]
        same = writer.let("same", f"arith.cmpi eq, {addresses[0]}, {addresses[1]} : index")
        for difference in op.differences:
            none = self.scalars.relation(difference, "==", ZERO)
            same = writer.let("same", f"arith.andi {same}, {none} : i1")
        writer.line(f"scf.if {same} {{")
        with writer.deeper():
            self._block(op.shared.block)
        writer.line("} else {")
        with writer.deeper():
            self._block(op.apart.block)
        writer.line("}")

    # -- buffers ------------------------------------------------------------------------------------------------------

    def _dynamic(self, dims: Iterable[Expr]) -> str:
        return self.scalars.values([d for d in dims if d.constant is None])

    def _alloc(self, op: AllocOp) -> None:
        kind, text, writer, label = op.result.type, buffer_text(op.result.type), self.writer, op.label.data
        if op.offset is not None:
            offset, sizes = self.scalars.value(op.offset), self._dynamic(dims_of(kind))
            name = writer.let(label, f"memref.view {self.arena}[{offset}][{sizes}] : memref<?xi8> to {text}")
            self.buffers[op.result] = Buffer(name, text, kind)
        elif _is_on_stack(op):
            name = writer.let_first(label, f"memref.alloca() {{alignment = 64 : i64}} : {text}")
            self.buffers[op.result] = Buffer(name, text, kind)
        else:
            sizes = self._dynamic(dims_of(kind))
            name = writer.let(label, f"memref.alloc({sizes}) {{alignment = 64 : i64}} : {text}")
            self.buffers[op.result] = Buffer(name, text, kind)
            self.freed.append(self.buffers[op.result])

    def _view(self, op: ViewOp) -> None:
        source, dims = self.buffers[op.source], dims_of(op.result.type)
        strided = source.text.endswith("offset: ?>>")
        text = _argument_text(op.result.type, strided)
        offset, base, have = "0", source.name, source.text
        if strided:
            base, offset = self.writer.fresh("base"), self.writer.fresh("offset")
            rank = len(source.dims)
            rest = [f"{self.writer.fresh(n)}:{rank}" for n in ("sizes", "strides") if rank]
            have = f"memref<{source.stored}>"
            types = ", ".join([have, *["index"] * (1 + 2 * rank)])
            left = ", ".join([base, offset, *rest])
            self.writer.line(f"{left} = memref.extract_strided_metadata {source.name} : {source.text} -> {types}")
        sizes = self._mixed(dims)
        strides = self._mixed([product(dims[k + 1 :]) for k in range(len(dims))])
        cast = f"memref.reinterpret_cast {base} to offset: [{offset}], sizes: [{sizes}], strides: [{strides}]"
        self.buffers[op.result] = Buffer(self.writer.let("m", f"{cast} : {have} to {text}"), text, op.result.type)

    def _mixed(self, exprs: Sequence[Expr]) -> str:
        """Returns sizes or strides: constants, and values."""
        return ", ".join([self.scalars.value(e) if e.constant is None else str(e.constant) for e in exprs])

    def _slice(self, op: SliceOp) -> None:
        source, fixed = self.buffers[op.source], len(op.subscripts)
        text = _argument_text(op.result.type, True)
        offsets = self._mixed([*op.subscripts, *[ZERO] * (len(source.dims) - fixed)])
        sizes = self._mixed([*[Expr.of(1)] * fixed, *source.dims[fixed:]])
        ones = ", ".join(["1"] * len(source.dims))
        name = self.writer.let(
            "m", f"memref.subview {source.name}[{offsets}] [{sizes}] [{ones}] : {source.text} to {text}"
        )
        self.buffers[op.result] = Buffer(name, text, op.result.type)

    def _access(self, op: LoadOp | StoreOp | AccumulateOp) -> None:
        write_memory_op(self.scalars, op, self.buffers[op.accessed], self.values)

    def _prefetch(self, op: PrefetchOp) -> None:
        buffer = self.buffers[op.buffer].name
        self.writer.line(
            f"// prefetch {buffer}[{', '.join(map(str, op.subscripts))}]{' to write' if op.writes else ''}"
        )

    # -- values -------------------------------------------------------------------------------------------------------

    def _index(self, op: IndexOp) -> None:
        kind = kind_of(op.result.type)
        if op.lane is None:
            value = self.scalars.value(op.value)
        else:
            vectors = {op.lane: iota(self.writer, kind.lanes)}
            value = Lanes(self.scalars, vectors, kind.lanes).value(op.value)
        made = self.writer.let("i", f"arith.index_cast {value} : {INDEX.with_lanes(kind.lanes)} to {kind}")
        self.values[op.result] = Operand(made, kind)

    def _reduce_lanes(self, op: ReduceLanesOp) -> None:
        value = self.values[op.vector]
        total = reduce_lanes(self.writer, op.combiner, op.element, value.name, value.kind.lanes)
        self.values[op.result] = Operand(total, value.kind.scalar)

    def _transpose(self, op: TransposeOp) -> None:
        """Writes a transposition: the vectors form a matrix, whose transpose is taken apart again."""
        writer, count, lanes = self.writer, len(op.vectors), op.lanes
        one = kind_of(op.vectors[0].type)
        element, columns = one.element, count * lanes // op.rows
        flat = f"vector<{count}x{lanes}x{element}>"
        shaped, turned = f"vector<{op.rows}x{columns}x{element}>", f"vector<{columns}x{op.rows}x{element}>"
        whole = writer.let("c", f"arith.constant dense<{literal(one, 0)}> : {flat}")
        for k, vector in enumerate(op.vectors):
            whole = writer.let("t", f"vector.insert {self.values[vector].name}, {whole} [{k}] : {one} into {flat}")
        matrix = _cast(writer, whole, flat, shaped)
        matrix = writer.let("t", f"vector.transpose {matrix}, [1, 0] : {shaped} to {turned}")
        made = _cast(writer, matrix, turned, flat)
        for k, column in enumerate(op.columns):
            name = writer.let("t", f"vector.extract {made}[{k}] : {one} from {flat}")
            self.values[column] = Operand(name, one)

    def _tile_product(self, op: TileProductOp) -> None:
        write_tile(self.scalars, op, self.buffers)

    # -- programs -----------------------------------------------------------------------------------------------------

    def _call(self, op: CallOp) -> None:
        strided = op.callee in self.strided_callees
        args, types = list[str](), list[str]()
        for value in op.buffers:
            buffer, text = self.buffers[value], _argument_text(value.type, strided)
            name = buffer.name
            if text != buffer.text:
                name = self.writer.let("m", f"memref.cast {name} : {buffer.text} to {text}")
            args.append(name)
            types.append(text)
        for symbol in op.symbols:
            args.append(self.scalars.value(symbol))
            types.append("index")
        callee = op.find_callee()
        needs = op.scratch is not None if callee is None else isinstance(callee, FuncOp) and has_arena(callee)
        if needs and op.scratch is not None:
            args.append(self._bytes(op.scratch))
            types.append("memref<?xi8>")
        self.writer.line(f"func.call {symbol_name(op.callee)}({', '.join(args)}) : ({', '.join(types)}) -> ()")

    def _bytes(self, scratch: SSAValue) -> str:
        """Writes the arena of a call as bytes of dynamic size."""
        buffer = self.buffers[scratch]
        if buffer.text == "memref<?xi8>":
            return buffer.name
        if buffer.stored.element != "i8" or len(buffer.dims) != 1:
            raise self.writer.refuse("'loop.call'", f"its scratch is a {buffer.type}, not one row of bytes")
        return self.writer.let("m", f"memref.cast {buffer.name} : {buffer.text} to memref<?xi8>")

    def _no_clock(self, op: ClockOp) -> None:
        raise self.writer.refuse("'loop.clock'", "MLIR's dialects have no time stamp counter; emit without the profile")

    def _no_launch(self, op: LaunchOp) -> None:
        raise self.writer.refuse("'loop.launch'", "it starts a kernel of a GPU; lower for a CPU")


def _cast(writer: Writer, value: str, have: str, to: str) -> str:
    return value if have == to else writer.let("t", f"vector.shape_cast {value} : {have} to {to}")
