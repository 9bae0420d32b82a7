"""Shape inference for ORT's graph: an `InferOutputShapeFn` for every op, as LLVM IR.

A symbol is known by its value, if the model has an integer there, or by the model's name for it. An output dim is an
integer if all its symbols are; otherwise it is text made of the values and names (`(batch)*64` from `batch*64`), so
that two dims known to be equal have one name. An output with an unknown dim is left alone.

ORT reads the types of all inputs before it calls the function and follows a null pointer for an omitted one, so an op
with optional inputs has no such function. Most ops share `@igniter_infer`, driven by their tables; an op with dims that
are neither integers nor symbols has a function of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from igniter.backends.ort.expressions import FunctionBuilder, fits
from igniter.backends.ort.messages import StringPool
from igniter.backends.ort.shapes import symbol_slots
from igniter.dialects.onnx.types import element_type
from igniter.dialects.ort import OPTIONAL, VARIADIC, OpOp, Port
from igniter.dialects.sym.bind_symbols import Solve
from igniter.dialects.sym.expr import Expr

TEXT_CAPACITY = 256


@dataclass(frozen=True)
class Inference:
    """The name of an op's `InferOutputShapeFn`, with its text unless it is shared."""

    name: str
    text: str = ""


def emit_infer(op: OpOp, name: str, c_string: StringPool) -> Inference | None:
    """Returns the shape inference of an op, defined as `@name` if it is not shared; None for an op with optional
    inputs."""
    if any(p.mode == OPTIONAL for p in op.inputs):
        return None
    if all(_is_plain(p) for p in (*op.inputs, *op.outputs)):
        return Inference("igniter_infer")
    return Inference(name, _Infer(op, name, c_string).emit())


def _is_plain(p: Port) -> bool:
    return all(d.constant is not None or d.symbol is not None for d in p.dims)


class _Infer:
    def __init__(self, op: OpOp, name: str, c_string: StringPool):
        self.op = op
        self.c_string = c_string
        self.f = FunctionBuilder(f"define internal ptr @{name}(ptr %op, ptr %ctx)")
        self.slot = symbol_slots(op)

    def emit(self) -> str:
        f = self.f
        rank = max(1, *(len(p.dims) for p in (*self.op.inputs, *self.op.outputs)))
        for what, element in (("dims", "i64"), ("names", "ptr")):
            f.line(f"%{what} = alloca {element}, i64 {rank}")
        for what, element in (("values", "i64"), ("known", "ptr")):
            f.line(f"%{what} = alloca {element}, i64 {len(self.slot)}")
            for i in self.slot.values():
                f.line(f"%{what}.{i} = getelementptr {element}, ptr %{what}, i64 {i}")
        self._text_buffers()
        f.line("%api = load atomic ptr, ptr @igniter_api acquire, align 8")
        f.line("call void @igniter_infer_inputs(ptr %op, ptr %ctx, ptr %values, ptr %known)")
        self._equations()
        for i, p in enumerate(self.op.outputs):
            if p.mode == VARIADIC:
                continue
            if _is_plain(p):
                f.line(f"call void @igniter_infer_plain(ptr %op, ptr %ctx, i64 {i}, ptr %values, ptr %known)")
            else:
                self._output(i, p)
        f.line("ret ptr null")
        return f.text()

    def _text_buffers(self) -> None:
        """Allocates one buffer for each axis that may need a made-up name; an output is reported before the next one
        begins."""
        f = self.f
        for axis in range(max((len(p.dims) for p in self.op.outputs if not _is_plain(p)), default=0)):
            f.line(f"%buffer.{axis} = alloca [{TEXT_CAPACITY} x i8]")
            f.line(f"%text.{axis} = alloca %Text")
            f.line(f"store ptr %buffer.{axis}, ptr %text.{axis}")
            f.line(f"%capacity.{axis} = getelementptr %Text, ptr %text.{axis}, i64 0, i32 1")
            f.line(f"store i64 {TEXT_CAPACITY}, ptr %capacity.{axis}")

    def _equations(self) -> None:
        f = self.f
        for step in self.op.binding.steps:
            if not isinstance(step, Solve):
                continue
            known, after = f.fresh_label("known"), f.fresh_label("after")
            got = f.fresh("got")
            f.line(
                f"{got} = call i1 @igniter_infer_input(ptr %api, ptr %ctx, i64 {step.input},"
                f" i64 {len(self.op.inputs[step.input].dims)}, ptr %dims, ptr %names)"
            )
            f.line(f"br i1 {got}, label %{known}, label %{after}")
            f.label(known)
            self._solve(step, f.load("i64", f.element("i64", "%dims", step.axis)))
            f.line(f"br label %{after}")
            f.label(after)

    def _solve(self, step: Solve, dim: str) -> None:
        """Computes the symbol's value, if the dim and the other symbols have values."""
        f = self.f
        slot = f"%values.{self.slot[step.symbol]}"
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
        return {s: self.f.load("i64", f"%values.{self.slot[s]}") for s in sorted(expr.symbols)}

    def _all_known(self, expr: Expr, more: list[str]) -> str:
        conditions = [self.f.compare("sge", value, "0") for value in self._values(expr).values()]
        return self.f.all_of([*conditions, *more])

    def _output(self, index: int, p: Port) -> None:
        f = self.f
        skip = f.fresh_label("skip")
        for axis, dim in enumerate(p.dims):
            dim_at, name_at = f.element("i64", "%dims", axis), f.element("ptr", "%names", axis)
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
            f"call void @igniter_infer_output(ptr %api, ptr %ctx, i64 {index}, i32 {element_type(p.element).ort_code},"
            f" i64 {len(p.dims)}, ptr %dims, ptr %names)"
        )
        f.line(f"br label %{skip}")
        f.label(skip)

    def _named(self, dim: Expr, axis: int) -> tuple[str, str]:
        """Returns an i1, true if the dim has a name, and the name."""
        f = self.f
        if dim.symbol is not None:
            name = f.load("ptr", f"%known.{self.slot[dim.symbol]}")
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
            value, name = f.load("i64", f"%values.{piece}"), f.load("ptr", f"%known.{piece}")
            known = f.fresh("known")
            f.line(f"{known} = call i1 @igniter_infer_text(ptr %text.{axis}, i64 {value}, ptr {name})")
            conditions.append(known)
        whole = f.fresh("whole")
        f.line(f"{whole} = call i1 @igniter_text_fits(ptr %text.{axis})")
        return f.all_of([*conditions, whole]), f"%buffer.{axis}"
