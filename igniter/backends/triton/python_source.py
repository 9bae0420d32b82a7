"""Kernels of the `tt` dialect as Python: one line for each op, in the order of the ops.

    tt.func @r0(%0: !tt.ptr<f32>, %1: i64) {          @triton.jit
      %2 = tt.get_program_id x : i32                  def kernel(v0, v1):
      %3 = arith.extsi %2 : i32 to i64         ->         v2 = tl.program_id(0)
      ..                                                  v3 = v2.to(tl.int64)

Values are called `v0`, `v1` and so on, the kernel `kernel`, and the combiners of reductions `f0`, `f1`: the text
contains no name of a model, and equal kernels have equal texts. An op without a translation is an error with its name.

Implicit conversions of Python's operators are made explicit: a constant has a type (`tl.full`), unsigned ops convert
their operands, maxima propagate NaN if the op does, and only `tt.broadcast` broadcasts.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.triton.libdevice import python_name
from igniter.dialects.triton.loops import is_specialized, stages_of
from igniter.errors import IgniterError

INDENT = "    "

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "tl.float16",
    BFloat16Type: "tl.bfloat16",
    Float32Type: "tl.float32",
    Float64Type: "tl.float64",
}
_INFIX: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
    arith.DivfOp: "/",
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivSIOp: "//",
    arith.RemSIOp: "%",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
    arith.ShLIOp: "<<",
    arith.ShRSIOp: ">>",
}
_UNSIGNED: dict[type[Operation], str] = {arith.DivUIOp: "//", arith.RemUIOp: "%", arith.ShRUIOp: ">>"}
_FUNCTIONS: dict[type[Operation], str] = {
    arith.MaxSIOp: "tl.maximum",
    arith.MinSIOp: "tl.minimum",
    arith.MaxnumfOp: "tl.maximum",
    arith.MinnumfOp: "tl.minimum",
    math.ExpOp: "tl.exp",
    math.Exp2Op: "tl.exp2",
    math.LogOp: "tl.log",
    math.Log2Op: "tl.log2",
    math.SinOp: "tl.sin",
    math.CosOp: "tl.cos",
    math.SqrtOp: "tl.sqrt",
    math.RsqrtOp: "tl.rsqrt",
    math.ErfOp: "tl.erf",
    math.FloorOp: "tl.floor",
    math.CeilOp: "tl.ceil",
    math.AbsFOp: "tl.abs",
    math.AbsIOp: "tl.abs",
    math.FmaOp: "tl.fma",
    tt.PreciseDivOp: "tl.div_rn",
    tt.PreciseSqrtOp: "tl.sqrt_rn",
}
_PROPAGATING: dict[type[Operation], str] = {arith.MaximumfOp: "tl.maximum", arith.MinimumfOp: "tl.minimum"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""The predicates of `arith.cmpi` in their order; the last four are unsigned."""
_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<="}
"""The predicates of `arith.cmpf` with an operator in Python."""
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
"""The predicates that are true for NaN: each is the negation of an operator."""


class Unprintable(IgniterError):
    """Raised for an op without a translation to Python."""

    code = "IGN0304"


def type_name(element: Attribute) -> str:
    """Returns Triton's name of the type of an element."""
    if isinstance(element, IntegerType):
        return f"tl.int{element.width.data}"
    if type(element) in _FLOATS:
        return _FLOATS[type(element)]
    raise Unprintable(f"Triton has no elements of {element}")


def print_kernel(func: tt.FuncOp) -> str:
    """Returns a func as the text of a module: `@triton.jit` functions, the kernel last, called `kernel`."""
    printer = _KernelPrinter()
    arguments = ", ".join(printer.name(a) for a in func.body.block.args)
    printer.block(func.body.block, INDENT)
    main = ["@triton.jit", f"def kernel({arguments}):", *(printer.lines or [f"{INDENT}pass"])]
    return "\n".join([*(line for f in printer.functions for line in (*f, "", "")), *main]) + "\n"


class _KernelPrinter:
    """The lines of a body, and the combiners of its reductions."""

    def __init__(self, functions: list[list[str]] | None = None) -> None:
        self.lines: list[str] = []
        self.functions: list[list[str]] = [] if functions is None else functions
        self._names: dict[SSAValue, str] = {}

    def name(self, value: SSAValue) -> str:
        """Returns the variable of a value."""
        return self._names.setdefault(value, f"v{len(self._names)}")

    def block(self, block: Block, indent: str) -> None:
        """Prints the ops of a block except its terminator, one line each."""
        for op in block.ops:
            if isinstance(op, (tt.ReturnOp, tt.ReduceReturnOp, tt.ScanReturnOp, scf.YieldOp)):
                continue
            if isinstance(op, scf.ForOp):
                self._loop(op, indent)
                continue
            if isinstance(op, scf.IfOp):
                self._branch(op, indent)
                continue
            text = self._expression(op)
            names = ", ".join(self.name(r) for r in op.results)
            self.lines.append(f"{indent}{names} = {text}" if names else f"{indent}{text}")

    def _branch(self, op: scf.IfOp, indent: str) -> None:
        if op.results or op.false_region.blocks:
            raise Unprintable("'scf.if' with results or an else branch has no Python here")
        self.lines.append(f"{indent}if {self.name(op.cond)}:")
        self.block(op.true_region.block, indent + INDENT)

    def _loop(self, op: scf.ForOp, indent: str) -> None:
        """Prints a loop. Its carried variables keep their names in the body and after it."""
        index, *carried = op.body.block.args
        for argument, given, result in zip(carried, op.iter_args, op.results, strict=True):
            self.lines.append(f"{indent}{self.name(argument)} = {self.name(given)}")
            self._names[result] = self.name(argument)
        bounds = ", ".join(self.name(v) for v in (op.lb, op.ub, op.step))
        hints = [] if stages_of(op) is None else [f"num_stages={stages_of(op)}"]
        hints += ["warp_specialize=True"] if is_specialized(op) else []
        over = f"tl.range({', '.join((bounds, *hints))})" if hints else f"range({bounds})"
        self.lines.append(f"{indent}for {self.name(index)} in {over}:")
        start = len(self.lines)
        self.block(op.body.block, indent + INDENT)
        last = op.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        if carried:
            targets = ", ".join(self.name(a) for a in carried)
            self.lines.append(f"{indent}{INDENT}{targets} = {', '.join(self.name(v) for v in last.operands)}")
        elif len(self.lines) == start:
            self.lines.append(f"{indent}{INDENT}pass")

    # -- expressions --------------------------------------------------------------------------------------------------

    def _expression(self, op: Operation) -> str:
        a = [self.name(v) for v in op.operands]
        kind = type(op)
        base = next((c for c in kind.__mro__ if c in _PRINTERS or c in _INFIX or c in _UNSIGNED), kind)
        if base in _INFIX:
            return f"{a[0]} {_INFIX[base]} {a[1]}"
        if base in _UNSIGNED:
            return self._signed(
                f"{self.unsigned(op.operands[0])} {_UNSIGNED[base]} {self.unsigned(op.operands[1])}", op
            )
        if kind in _FUNCTIONS:
            return f"{_FUNCTIONS[kind]}({', '.join(a)})"
        if kind in _PROPAGATING:
            return f"{_PROPAGATING[kind]}({', '.join(a)}, propagate_nan=tl.PropagateNan.ALL)"
        if base in _PRINTERS:
            return _PRINTERS[base](self, op, a)
        raise Unprintable(f"'{op.name}' has no Python in Triton")

    def unsigned(self, value: SSAValue) -> str:
        """Returns the bits of an integer as an unsigned one."""
        return f"{self.name(value)}.to(tl.uint{tt.width_of(value.type)}, bitcast=True)"

    def _signed(self, text: str, op: Operation) -> str:
        return f"({text}).to({type_name(tt.element_type(op.results[0].type))}, bitcast=True)"

    def reduction(self, op: tt.ReduceOp, a: Sequence[str]) -> str:
        """Returns a call whose function has the reduction's body."""
        given = a[0] if len(a) == 1 else f"({', '.join(a)})"
        return f"tl.reduce({given}, {op.axis.value.data}, {self._combiner(op.body.block)})"

    def scan(self, op: tt.ScanOp, a: Sequence[str]) -> str:
        """Returns a call whose function has the scan's body."""
        reverse = ", reverse=True" if op.is_reverse else ""
        return f"tl.associative_scan({a[0]}, {op.axis.value.data}, {self._combiner(op.body.block)}{reverse})"

    def _combiner(self, body: Block) -> str:
        """Adds a function of two elements and returns its name."""
        inner = _KernelPrinter(self.functions)
        arguments = ", ".join(inner.name(x) for x in body.args)
        inner.block(body, INDENT)
        last = body.last_op
        assert last is not None
        name = f"f{len(self.functions)}"
        results = ", ".join(inner.name(v) for v in last.operands)
        self.functions.append(["@triton.jit", f"def {name}({arguments}):", *inner.lines, f"{INDENT}return {results}"])
        return name


def _shape(t: Attribute) -> str:
    dims = tt.shape_of(t)
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def _number(value: float) -> str:
    if isinstance(value, int) or numbers.isfinite(value):
        return repr(value)
    return 'float("nan")' if numbers.isnan(value) else f'float("{"-" if value < 0 else ""}inf")'


def _constant(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    value, result = cast("arith.ConstantOp", op).value, op.results[0].type
    if isinstance(value, DenseIntOrFPElementsAttr):
        values = set(cast("Sequence[float]", value.get_values()))
        if len(values) != 1:
            raise Unprintable("a block of different constants has no Python in Triton")
        number = values.pop()
    else:
        number = cast("FloatAttr[Float32Type] | IntegerAttr[IntegerType]", value).value.data
    return f"tl.full({_shape(result)}, {_number(number)}, {type_name(tt.element_type(result))})"


def _converted(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    return f"{a[0]}.to({type_name(tt.element_type(op.results[0].type))})"


def _from_unsigned(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    # Triton treats i1 as unsigned without a conversion.
    target = tt.element_type(op.results[0].type)
    text = a[0] if tt.width_of(op.operands[0].type) == 1 else printer.unsigned(op.operands[0])
    return f"{text}.to({type_name(target)})"


def _to_unsigned(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    width = tt.width_of(op.results[0].type)
    return f"{a[0]}.to(tl.uint{width}).to(tl.int{width}, bitcast=True)"


def _bits(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    return f"{a[0]}.to({type_name(tt.element_type(op.results[0].type))}, bitcast=True)"


def _truncated(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    if tt.width_of(op.results[0].type) == 1:
        # Triton converts to i1 by comparison with 0; here the lowest bit counts.
        return f"({a[0]} & 1) != 0"
    return _converted(printer, op, a)


def _compared(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    predicate = cast("arith.CmpiOp", op).predicate.value.data
    x, y = (printer.unsigned(v) for v in op.operands) if predicate > 5 else a
    return f"{x} {_COMPARISONS[predicate]} {y}"


def _compared_floats(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    predicate, (x, y) = cast("arith.CmpfOp", op).predicate.value.data, a
    if predicate in _ORDERED:
        return f"{x} {_ORDERED[predicate]} {y}"
    if predicate in _UNORDERED:
        return f"({x} {_UNORDERED[predicate]} {y}) == 0"
    written = {
        6: f"({x} < {y}) | ({x} > {y})",
        7: f"({x} == {x}) & ({y} == {y})",
        8: f"(({x} < {y}) | ({x} > {y})) == 0",
        13: f"{x} != {y}",
        14: f"({x} != {x}) | ({y} != {y})",
    }
    if predicate not in written:
        raise Unprintable("'arith.cmpf' that is always true or false has no Python in Triton")
    return written[predicate]


def _loaded(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    load = cast("tt.LoadOp", op)
    said = [printer.name(load.ptr)]
    said += [f"mask={printer.name(load.mask)}"] if load.mask is not None else []
    said += [f"other={printer.name(load.other)}"] if load.other is not None else []
    return f"tl.load({', '.join(said)})"


def _stored(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    return f"tl.store({a[0]}, {a[1]}{f', mask={a[2]}' if len(a) > 2 else ''})"


def _atomic(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    kind = cast("tt.AtomicRMWOp", op).kind.removeprefix("f").removeprefix("u")
    return f'tl.atomic_{kind}({a[0]}, {a[1]}{f", mask={a[2]}" if len(a) > 2 else ""}, sem="relaxed")'


def _product(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    dot = cast("tt.DotOp", op)
    result = type_name(tt.element_type(dot.result.type))
    return f'tl.dot({a[0]}, {a[1]}, {a[2]}, input_precision="{dot.precision}", out_dtype={result})'


def _scaled_product(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    dot = cast("tt.DotScaledOp", op)
    assert dot.a_scale is not None and dot.b_scale is not None
    left, right = (
        f'{printer.unsigned(factor)}, {printer.unsigned(scale)}, "{form}"'
        for factor, scale, form in zip((dot.a, dot.b), (dot.a_scale, dot.b_scale), dot.formats, strict=True)
    )
    return f"tl.dot_scaled({left}, {right}, {printer.name(dot.c)})"


def _extern(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    return f"libdevice.{python_name(cast('tt.ExternElementwiseOp', op).symbol.data)}({', '.join(a)})"


def _ordered(printer: _KernelPrinter, op: Operation, a: Sequence[str]) -> str:
    return f"tl.trans({a[0]}, {', '.join(map(str, cast('tt.TransOp', op).permutation))})"


_PRINTERS: dict[type[Operation], Callable[[_KernelPrinter, Operation, Sequence[str]], str]] = {
    arith.ConstantOp: _constant,
    arith.ExtFOp: _converted,
    arith.TruncFOp: _converted,
    arith.SIToFPOp: _converted,
    arith.UIToFPOp: _from_unsigned,
    arith.FPToSIOp: _converted,
    arith.FPToUIOp: _to_unsigned,
    arith.ExtSIOp: _converted,
    arith.ExtUIOp: lambda p, op, a: f"({_from_unsigned(p, op, a)})",
    arith.TruncIOp: _truncated,
    arith.BitcastOp: _bits,
    arith.CmpiOp: _compared,
    arith.CmpfOp: _compared_floats,
    arith.SelectOp: lambda p, op, a: f"tl.where({a[0]}, {a[1]}, {a[2]})",
    tt.GetProgramIdOp: lambda p, op, a: f"tl.program_id({cast('tt.GetProgramIdOp', op).axis.value.data})",
    tt.GetNumProgramsOp: lambda p, op, a: f"tl.num_programs({cast('tt.GetNumProgramsOp', op).axis.value.data})",
    tt.MakeRangeOp: lambda p, op, a: (
        f"tl.arange({cast('tt.MakeRangeOp', op).start.value.data}, {cast('tt.MakeRangeOp', op).end.value.data})"
    ),
    tt.SplatOp: lambda p, op, a: f"tl.broadcast_to({a[0]}, {_shape(op.results[0].type)})",
    tt.BroadcastOp: lambda p, op, a: f"tl.broadcast_to({a[0]}, {_shape(op.results[0].type)})",
    tt.ExpandDimsOp: lambda p, op, a: f"tl.expand_dims({a[0]}, {cast('tt.ExpandDimsOp', op).axis.value.data})",
    tt.ReshapeOp: lambda p, op, a: f"tl.reshape({a[0]}, {_shape(op.results[0].type)})",
    tt.TransOp: _ordered,
    tt.JoinOp: lambda p, op, a: f"tl.join({a[0]}, {a[1]})",
    tt.SplitOp: lambda p, op, a: f"tl.split({a[0]})",
    tt.AddPtrOp: lambda p, op, a: f"{a[0]} + {a[1]}",
    tt.LoadOp: _loaded,
    tt.DescriptorLoadOp: lambda p, op, a: f"{a[0]}.load([{', '.join(a[1:])}])",
    tt.DescriptorStoreOp: lambda p, op, a: f"{a[0]}.store([{', '.join(a[2:])}], {a[1]})",
    tt.StoreOp: _stored,
    tt.AtomicRMWOp: _atomic,
    tt.ReduceOp: lambda p, op, a: p.reduction(cast("tt.ReduceOp", op), a),
    tt.ScanOp: lambda p, op, a: p.scan(cast("tt.ScanOp", op), a),
    tt.DotOp: _product,
    tt.DotScaledOp: _scaled_product,
    tt.ExternElementwiseOp: _extern,
}
