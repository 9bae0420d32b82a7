"""Shape inference for ORT's graph: an `InferOutputShapeFn` for every op, as LLVM IR.

A symbol is known by its value, where the model has an integer there, or by the model's name for it. An output dim is
an integer when all its symbols are; else it is text made of the values and names (`(batch)*64` from `batch*64`), so
that two dims that are equal for certain have one name. An output with a dim of which nothing is known is left alone.

ORT reads the types of all inputs before it calls the function and follows a null pointer for an omitted one, so an
op with optional inputs has none.
"""

from __future__ import annotations

import re

from igniter.analysis.bind_symbols import Bind, Solve
from igniter.analysis.expr import Expr
from igniter.backends.ort.expressions import FunctionBuilder, fits
from igniter.backends.ort.messages import StringPool
from igniter.dialects.onnx.types import element_type
from igniter.dialects.ort import OPTIONAL, VARIADIC, OpOp, Port

TEXT_CAPACITY = 256

HELPERS = """
define internal i1 @igniter_infer_input(ptr %api, ptr %ctx, i64 %index, i64 %rank, ptr %dims, ptr %names) noinline {
entry:
  %info.at = alloca ptr
  %count.at = alloca i64
  drop ShapeInferContext_GetInputTypeShape(ptr %ctx, i64 %index, ptr %info.at) else unknown
  %info = load ptr, ptr %info.at
  drop GetDimensionsCount(ptr %info, ptr %count.at) else unknown
  %count = load i64, ptr %count.at
  %same = icmp eq i64 %count, %rank
  br i1 %same, label %get, label %unknown
get:
  drop GetDimensions(ptr %info, ptr %dims, i64 %rank) else unknown
  drop GetSymbolicDimensions(ptr %info, ptr %names, i64 %rank) else unknown
  ret i1 true
unknown:
  ret i1 false
}

define internal void @igniter_infer_bind(ptr %value.at, ptr %name.at, i64 %dim, ptr %name) noinline {
entry:
  %value = load i64, ptr %value.at
  %open = icmp slt i64 %value, 0
  br i1 %open, label %take, label %naming
take:
  store i64 %dim, ptr %value.at
  br label %naming
naming:
  %old = load ptr, ptr %name.at
  %none = icmp eq ptr %old, null
  %some = icmp ne ptr %name, null
  %can = and i1 %none, %some
  br i1 %can, label %look, label %done
look:
  %char = load i8, ptr %name
  %empty = icmp eq i8 %char, 0
  br i1 %empty, label %done, label %keep
keep:
  store ptr %name, ptr %name.at
  br label %done
done:
  ret void
}

define internal i1 @igniter_infer_text(ptr %text, i64 %value, ptr %name) noinline {
  ; Appends what is known of a symbol; false when nothing is.
entry:
  %known = icmp sge i64 %value, 0
  br i1 %known, label %number, label %naming
number:
  call void @igniter_number(ptr %text, i64 %value)
  ret i1 true
naming:
  %none = icmp eq ptr %name, null
  br i1 %none, label %unknown, label %named
named:
  call void @igniter_text(ptr %text, ptr $OPEN)
  call void @igniter_text(ptr %text, ptr %name)
  call void @igniter_text(ptr %text, ptr $CLOSE)
  ret i1 true
unknown:
  ret i1 false
}

define internal i1 @igniter_text_fits(ptr %text) {
  %capacity.at = getelementptr %Text, ptr %text, i64 0, i32 1
  %capacity = load i64, ptr %capacity.at
  %length.at = getelementptr %Text, ptr %text, i64 0, i32 2
  %length = load i64, ptr %length.at
  %last = sub i64 %capacity, 1
  %fits = icmp ult i64 %length, %last
  ret i1 %fits
}

define internal void @igniter_infer_output(ptr %api, ptr %ctx, i64 %index, i32 %type, i64 %rank,
    ptr %dims, ptr %names) noinline {
entry:
  %info.at = alloca ptr
  drop CreateTensorTypeAndShapeInfo(ptr %info.at) else done
  %info = load ptr, ptr %info.at
  drop SetTensorElementType(ptr %info, i32 %type) else release
  drop SetDimensions(ptr %info, ptr %dims, i64 %rank) else release
  drop SetSymbolicDimensions(ptr %info, ptr %names, i64 %rank) else release
  drop ShapeInferContext_SetOutputTypeShape(ptr %ctx, i64 %index, ptr %info) else release
  br label %release
release:
  api ReleaseTensorTypeAndShapeInfo(ptr %info)
  br label %done
done:
  ret void
}
"""


def emit_infer_helpers(c_string: StringPool) -> str:
    """The functions that every op's shape inference calls."""
    return HELPERS.replace("$OPEN", c_string("(")).replace("$CLOSE", c_string(")"))


def emit_infer(op: OpOp, name: str, c_string: StringPool) -> str | None:
    """`ptr @name(ptr op, ptr context)`, or None for an op that can have no shape inference."""
    if any(p.mode == OPTIONAL for p in op.inputs):
        return None
    return _Infer(op, name, c_string).emit()


class _Infer:
    def __init__(self, op: OpOp, name: str, c_string: StringPool):
        self.op = op
        self.c_string = c_string
        self.f = FunctionBuilder(f"define internal ptr @{name}(ptr %op, ptr %ctx)")
        names = sorted(frozenset(s for p in (*op.inputs, *op.outputs) for d in p.dims for s in d.symbols))
        self.names = [*names, *(p.symbol for p in op.inputs if p.symbol and p.symbol not in names)]
        self.slot = {symbol: i for i, symbol in enumerate(self.names)}

    def emit(self) -> str:
        f = self.f
        rank = max(1, *(len(p.dims) for p in (*self.op.inputs, *self.op.outputs)))
        f.line("%count.at = alloca i64")
        for what, element in (("dims", "i64"), ("names", "ptr")):
            f.line(f"%{what} = alloca {element}, i64 {rank}")
            f.line(f"%out.{what} = alloca {element}, i64 {rank}")
        for i in range(len(self.names)):
            f.line(f"%value.{i} = alloca i64")
            f.line(f"store i64 -1, ptr %value.{i}")
            f.line(f"%name.{i} = alloca ptr")
            f.line(f"store ptr null, ptr %name.{i}")
        compound = any(d.symbol is None and d.constant is None for p in self.op.outputs for d in p.dims)
        for axis in range(rank if compound else 0):
            f.line(f"%buffer.{axis} = alloca [{TEXT_CAPACITY} x i8]")
            f.line(f"%text.{axis} = alloca %Text")
            f.line(f"store ptr %buffer.{axis}, ptr %text.{axis}")
            f.line(f"%capacity.{axis} = getelementptr %Text, ptr %text.{axis}, i64 0, i32 1")
            f.line(f"store i64 {TEXT_CAPACITY}, ptr %capacity.{axis}")
        f.line("%api = load atomic ptr, ptr @igniter_api acquire, align 8")
        f.line("drop ShapeInferContext_GetInputCount(ptr %ctx, ptr %count.at) else done")
        f.line("%count = load i64, ptr %count.at")
        for i, p in enumerate(self.op.inputs):
            if p.mode == VARIADIC:
                f.line(f"%members = sub i64 %count, {i}")
                f.line(f"store i64 %members, ptr %value.{self.slot[p.symbol]}")
        # An equation may need what a later input says, so all that is said comes first.
        for kind in (Bind, Solve):
            self._inputs(kind)
        for i, p in enumerate(self.op.outputs):
            if p.mode != VARIADIC:
                self._output(i, p)
        f.line("br label %done")
        f.label("done")
        f.line("ret ptr null")
        return f.text()

    def _inputs(self, kind: type[Bind] | type[Solve]) -> None:
        f = self.f
        for i, p in enumerate(self.op.inputs):
            steps = [s for s in self.op.binding.steps if s.input == i and isinstance(s, kind)]
            if not steps:
                continue
            ask, known, after = f.fresh_label("ask"), f.fresh_label("known"), f.fresh_label("after")
            given = f.compare("ugt", "%count", str(i))
            f.line(f"br i1 {given}, label %{ask}, label %{after}")
            f.label(ask)
            got = f.fresh("got")
            f.line(
                f"{got} = call i1 @igniter_infer_input(ptr %api, ptr %ctx, i64 {i}, i64 {len(p.dims)},"
                " ptr %dims, ptr %names)"
            )
            f.line(f"br i1 {got}, label %{known}, label %{after}")
            f.label(known)
            for step in steps:
                dim = f.load("i64", f.element("i64", "%dims", step.axis))
                if isinstance(step, Solve):
                    self._solve(step, dim)
                else:
                    slot, name = self.slot[step.symbol], f.load("ptr", f.element("ptr", "%names", step.axis))
                    f.line(f"call void @igniter_infer_bind(ptr %value.{slot}, ptr %name.{slot}, i64 {dim}, ptr {name})")
            f.line(f"br label %{after}")
            f.label(after)

    def _solve(self, step: Solve, dim: str) -> None:
        """The symbol's value where the dim and the other symbols have one."""
        f = self.f
        slot = f"%value.{self.slot[step.symbol]}"
        known = self._all_known(step.rest, [f.compare("sge", dim, "0"), f.compare("slt", f.load("i64", slot), "0")])
        solve, after = f.fresh_label("solve"), f.fresh_label("after")
        f.line(f"br i1 {known}, label %{solve}, label %{after}")
        f.label(solve)
        rest, flags = f.expression(step.rest, self._values(step.rest))
        value, exact = f.solve(dim, rest, step.coefficient)
        good = f.all_of([exact, *(f.negate(flag) for flag in flags)])
        kept = f.fresh("kept")
        f.line(f"{kept} = select i1 {good}, i64 {value}, i64 -1")
        f.line(f"store i64 {kept}, ptr {slot}")
        f.line(f"br label %{after}")
        f.label(after)

    def _values(self, expr: Expr) -> dict[str, str]:
        return {s: self.f.load("i64", f"%value.{self.slot[s]}") for s in sorted(expr.symbols)}

    def _all_known(self, expr: Expr, more: list[str]) -> str:
        conditions = [self.f.compare("sge", value, "0") for value in self._values(expr).values()]
        return self.f.all_of([*conditions, *more])

    def _output(self, index: int, p: Port) -> None:
        f = self.f
        skip = f.fresh_label("skip")
        for axis, dim in enumerate(p.dims):
            dim_at, name_at = f.element("i64", "%out.dims", axis), f.element("ptr", "%out.names", axis)
            if dim.constant is not None and fits(dim.constant):
                f.line(f"store i64 {dim.constant}, ptr {dim_at}")
                f.line(f"store ptr {self.c_string('')}, ptr {name_at}")
                continue
            number, naming, after = f.fresh_label("number"), f.fresh_label("naming"), f.fresh_label("after")
            f.line(f"br i1 {self._all_known(dim, [])}, label %{number}, label %{naming}")
            f.label(number)
            value, flags = f.expression(dim, self._values(dim))
            good = f.all_of([f.compare("sge", value, "0"), *(f.negate(flag) for flag in flags)])
            f.line(f"store i64 {value}, ptr {dim_at}")
            f.line(f"store ptr {self.c_string('')}, ptr {name_at}")
            f.line(f"br i1 {good}, label %{after}, label %{skip}")
            f.label(naming)
            f.line(f"store i64 -1, ptr {dim_at}")
            named, text = self._named(dim, axis)
            f.line(f"store ptr {text}, ptr {name_at}")
            f.line(f"br i1 {named}, label %{after}, label %{skip}")
            f.label(after)
        f.line(
            f"call void @igniter_infer_output(ptr %api, ptr %ctx, i64 {index}, i32 {element_type(p.element).code},"
            f" i64 {len(p.dims)}, ptr %out.dims, ptr %out.names)"
        )
        f.line(f"br label %{skip}")
        f.label(skip)

    def _named(self, dim: Expr, axis: int) -> tuple[str, str]:
        """Whether the dim has a name, and the name."""
        f = self.f
        if dim.symbol is not None:
            name = f.load("ptr", f"%name.{self.slot[dim.symbol]}")
            return f.compare("ne", name, "null", "ptr"), name
        length = f.fresh("length")
        f.line(f"{length} = getelementptr %Text, ptr %text.{axis}, i64 0, i32 2")
        f.line(f"store i64 0, ptr {length}")
        conditions: list[str] = []
        marked = str(dim.substitute({s: Expr.of(f"s${i}$") for s, i in self.slot.items()}))
        for i, piece in enumerate(re.split(r"s\$(\d+)\$", marked)):
            if i % 2 == 0:
                if piece:
                    f.line(f"call void @igniter_text(ptr %text.{axis}, ptr {self.c_string(piece)})")
                continue
            value, name = f.load("i64", f"%value.{piece}"), f.load("ptr", f"%name.{piece}")
            known = f.fresh("known")
            f.line(f"{known} = call i1 @igniter_infer_text(ptr %text.{axis}, i64 {value}, ptr {name})")
            conditions.append(known)
        whole = f.fresh("whole")
        f.line(f"{whole} = call i1 @igniter_text_fits(ptr %text.{axis})")
        return f.all_of([*conditions, whole]), f"%buffer.{axis}"
