"""The part of shape inference common to all ops, as LLVM IR with the shorthands of `expand_calls`.

A symbol is a value, negative if unknown, and the model's name for it, null if it has none.
"""

from __future__ import annotations

from igniter.backends.ort.glue import COMPOUND
from igniter.backends.ort.messages import StringPool

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

define internal void @igniter_infer_inputs(ptr %op, ptr %ctx, ptr %values, ptr %known) {
  ; Clears the symbols, then learns what the types of the inputs say of them.
entry:
  %count.at = alloca i64
  %index.at = alloca i64
  %axis.at = alloca i64
  %api = load atomic ptr, ptr @igniter_api acquire, align 8
  %desc = call ptr @igniter_desc(ptr %op)
  %n = call i64 @igniter_input_count(ptr %op)
  %n.symbols.at = getelementptr %Desc, ptr %desc, i64 0, i32 7
  %n.symbols = load i64, ptr %n.symbols.at
  store i64 0, ptr %index.at
  br label %clear.loop
clear.loop:
  %c = load i64, ptr %index.at
  %c.more = icmp ult i64 %c, %n.symbols
  br i1 %c.more, label %clear, label %cleared
clear:
  %c.value = getelementptr i64, ptr %values, i64 %c
  store i64 -1, ptr %c.value
  %c.name = getelementptr ptr, ptr %known, i64 %c
  store ptr null, ptr %c.name
  %c.next = add i64 %c, 1
  store i64 %c.next, ptr %index.at
  br label %clear.loop
cleared:
  store i64 0, ptr %count.at
  drop ShapeInferContext_GetInputCount(ptr %ctx, ptr %count.at) else done
  %count = load i64, ptr %count.at
  store i64 0, ptr %index.at
  br label %loop
loop:
  %i = load i64, ptr %index.at
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %i.next = add i64 %i, 1
  store i64 %i.next, ptr %index.at
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %i)
  %mode.at = getelementptr %Port, ptr %port, i64 0, i32 5
  %mode = load i32, ptr %mode.at
  %variadic = icmp eq i32 %mode, 2
  br i1 %variadic, label %members, label %first
members:
  %slot.at = getelementptr %Port, ptr %port, i64 0, i32 10
  %slot = load i64, ptr %slot.at
  %members.at = getelementptr i64, ptr %values, i64 %slot
  %members.n = sub i64 %count, %i
  store i64 %members.n, ptr %members.at
  br label %first
first:
  %given = icmp ult i64 %i, %count
  br i1 %given, label %ask, label %loop
ask:
  %rank.at = getelementptr %Port, ptr %port, i64 0, i32 8
  %rank = load i64, ptr %rank.at
  %stack = call ptr @llvm.stacksave()
  %dims = alloca i64, i64 %rank
  %names = alloca ptr, i64 %rank
  %got = call i1 @igniter_infer_input(ptr %api, ptr %ctx, i64 %i, i64 %rank, ptr %dims, ptr %names)
  store i64 0, ptr %axis.at
  br i1 %got, label %axis.loop, label %end
axis.loop:
  %axis = load i64, ptr %axis.at
  %axis.more = icmp ult i64 %axis, %rank
  br i1 %axis.more, label %axis.body, label %end
axis.body:
  %axis.next = add i64 %axis, 1
  store i64 %axis.next, ptr %axis.at
  %codes.at = getelementptr %Port, ptr %port, i64 0, i32 3
  %codes = load ptr, ptr %codes.at
  %code.at = getelementptr i64, ptr %codes, i64 %axis
  %code = load i64, ptr %code.at
  %constant = icmp sge i64 %code, 0
  %compound = icmp eq i64 %code, $COMPOUND
  %neither = or i1 %constant, %compound
  br i1 %neither, label %axis.loop, label %bind
bind:
  %symbol = xor i64 %code, -1
  %value.at = getelementptr i64, ptr %values, i64 %symbol
  %name.at = getelementptr ptr, ptr %known, i64 %symbol
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %said.at = getelementptr ptr, ptr %names, i64 %axis
  %said = load ptr, ptr %said.at
  call void @igniter_infer_bind(ptr %value.at, ptr %name.at, i64 %dim, ptr %said)
  br label %axis.loop
end:
  call void @llvm.stackrestore(ptr %stack)
  br label %loop
done:
  ret void
}

define internal void @igniter_infer_plain(ptr %op, ptr %ctx, i64 %index, ptr %values, ptr %known) {
  ; An output of which every dim is an integer or a symbol.
entry:
  %axis.at = alloca i64
  %api = load atomic ptr, ptr @igniter_api acquire, align 8
  %port = call ptr @igniter_port(ptr %op, i64 2, i64 %index)
  %type = call i32 @igniter_output_type(ptr %op, i64 %index)
  %rank.at = getelementptr %Port, ptr %port, i64 0, i32 8
  %rank = load i64, ptr %rank.at
  %dims = alloca i64, i64 %rank
  %names = alloca ptr, i64 %rank
  store i64 0, ptr %axis.at
  br label %loop
loop:
  %axis = load i64, ptr %axis.at
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %tell
body:
  %axis.next = add i64 %axis, 1
  store i64 %axis.next, ptr %axis.at
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %name.at = getelementptr ptr, ptr %names, i64 %axis
  store ptr $EMPTY, ptr %name.at
  %codes.at = getelementptr %Port, ptr %port, i64 0, i32 3
  %codes = load ptr, ptr %codes.at
  %code.at = getelementptr i64, ptr %codes, i64 %axis
  %code = load i64, ptr %code.at
  store i64 %code, ptr %dim.at
  %constant = icmp sge i64 %code, 0
  br i1 %constant, label %loop, label %symbolic
symbolic:
  %symbol = xor i64 %code, -1
  %value.at = getelementptr i64, ptr %values, i64 %symbol
  %value = load i64, ptr %value.at
  store i64 %value, ptr %dim.at
  %known.value = icmp sge i64 %value, 0
  br i1 %known.value, label %loop, label %naming
naming:
  %said.at = getelementptr ptr, ptr %known, i64 %symbol
  %said = load ptr, ptr %said.at
  store ptr %said, ptr %name.at
  %unknown = icmp eq ptr %said, null
  br i1 %unknown, label %done, label %loop
tell:
  call void @igniter_infer_output(ptr %api, ptr %ctx, i64 %index, i32 %type, i64 %rank, ptr %dims, ptr %names)
  br label %done
done:
  ret void
}

define internal ptr @igniter_infer(ptr %op, ptr %ctx) {
entry:
  %index.at = alloca i64
  %desc = call ptr @igniter_desc(ptr %op)
  %n = call i64 @igniter_output_count(ptr %op)
  %n.symbols.at = getelementptr %Desc, ptr %desc, i64 0, i32 7
  %n.symbols = load i64, ptr %n.symbols.at
  %values = alloca i64, i64 %n.symbols
  %known = alloca ptr, i64 %n.symbols
  call void @igniter_infer_inputs(ptr %op, ptr %ctx, ptr %values, ptr %known)
  store i64 0, ptr %index.at
  br label %loop
loop:
  %i = load i64, ptr %index.at
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %i.next = add i64 %i, 1
  store i64 %i.next, ptr %index.at
  %mode = call i32 @igniter_output_mode(ptr %op, i64 %i)
  %variadic = icmp eq i32 %mode, 2
  br i1 %variadic, label %loop, label %plain
plain:
  call void @igniter_infer_plain(ptr %op, ptr %ctx, i64 %i, ptr %values, ptr %known)
  br label %loop
done:
  ret ptr null
}
"""


def emit_infer_helpers(c_string: StringPool) -> str:
    """Returns `@igniter_infer`, and the functions called by it and by the functions of single ops."""
    text = HELPERS.replace("$OPEN", c_string("(")).replace("$CLOSE", c_string(")"))
    return text.replace("$EMPTY", c_string("")).replace("$COMPOUND", str(COMPOUND))
