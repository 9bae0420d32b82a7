"""The errors that a library gives at run time, as LLVM IR: text in a buffer on the stack, then an `OrtStatus`.

`@igniter_fail` identifies every kind of failure by number; `KINDS` names the numbers and lists the pieces of each
message: literal text, properties of the port (`name`, `shape`, `dim`: the text of the failing dim) and numbers
(`index`, `axis`, `want`, `got`, and `want.type`, `got.type`: element types by name). `message` is a `%Message` with
numbers of its own; the failure points to it.
"""

from __future__ import annotations

from igniter.backends.ort.api import INVALID_ARGUMENT, RUNTIME_EXCEPTION
from igniter.dialects.onnx.types import ELEMENT_TYPES

_INPUT = ("input ", "$index", " ('", "$name", "') ")
_OUTPUT = ("output ", "$index", " ('", "$name", "') ")

TOO_MANY_INPUTS, MISSING, WRONG_TYPE, WRONG_RANK, WRONG_DIM, WRONG_SYMBOL = 1, 2, 3, 4, 5, 6
BAD_OUTPUT, BAD_SCRATCH, NO_MEMORY, TOO_MANY_OUTPUTS, MISSING_OUTPUT, UNSOLVABLE = 7, 8, 9, 10, 11, 12
BROKEN_REQUIREMENT, NEGATIVE_VALUE = 13, 14
NO_DRIVER, OLD_DRIVER, DRIVER_FAILED, BAD_GRID, BAD_ADDRESS, OTHER_GPU = 15, 16, 17, 18, 19, 20

KINDS: dict[int, tuple[str, ...]] = {
    TOO_MANY_INPUTS: ("expected at most ", "$want", " inputs, got ", "$got"),
    MISSING: (*_INPUT, "is missing"),
    WRONG_TYPE: (*_INPUT, "has element type ", "$got.type", ", expected ", "$want.type"),
    WRONG_RANK: (*_INPUT, "has rank ", "$got", ", expected ", "$want", ": ", "$shape"),
    WRONG_DIM: (*_INPUT, "has dim ", "$axis", " = ", "$got", ", expected ", "$want", ": ", "$shape"),
    WRONG_SYMBOL: (
        *_INPUT, "has dim ", "$axis", " = ", "$got", ", expected ", "$dim", " = ", "$want", ": ", "$shape",
    ),
    UNSOLVABLE: (*_INPUT, "has dim ", "$axis", " = ", "$got", ", which ", "$dim", " cannot be: ", "$shape"),
    BAD_OUTPUT: (
        *_OUTPUT, "would have dim ", "$axis", " = ", "$dim", " out of range (negative, over 63 bits, or undefined)",
    ),
    BAD_SCRATCH: ("the size of its scratch memory is out of range",),
    NO_MEMORY: ("no memory for ", "$got", " bytes of scratch"),
    TOO_MANY_OUTPUTS: ("expected at most ", "$want", " outputs, got ", "$got"),
    MISSING_OUTPUT: (*_OUTPUT, "is left out of the node, but required"),
    BROKEN_REQUIREMENT: ("$message",),
    NEGATIVE_VALUE: ("$name", " (value ", "$index", " is ", "$got", ")"),
    NO_DRIVER: ("it runs on GPUs of NVIDIA, and their driver cannot be loaded: ", "$name"),
    OLD_DRIVER: ("the driver of NVIDIA is too old: it has no ", "$name"),
    DRIVER_FAILED: ("$name", ": ", "$shape", " gives ", "$second", ": ", "$third"),
    BAD_ADDRESS: (
        "$name", ": its buffer ", "$index", " is at address ", "$got",
        ", which is no multiple of 16: give ONNX Runtime memory that is",
    ),
    OTHER_GPU: (
        "$name", ": the library has no code for a GPU of compute capability ", "$got",
        " (in tenths): compile for it, or with the target cuda for all since 80",
    ),
    BAD_GRID: ("$name", ": ", "$got", " programs are more than a GPU launches at a time"),
}  # fmt: skip

CAPACITY = 1024

MESSAGE_NUMBERS = 8
"""The number of slots for numbers in a `%Failure`."""

_TEXT = """
define internal void @igniter_text(ptr %text, ptr %piece) noinline cold {
  ; Appends a C string, as much of it as fits.
entry:
  %index.at = alloca i64
  store i64 0, ptr %index.at
  %buffer = load ptr, ptr %text
  %capacity.at = getelementptr %Text, ptr %text, i64 0, i32 1
  %capacity = load i64, ptr %capacity.at
  %length.at = getelementptr %Text, ptr %text, i64 0, i32 2
  %last = sub i64 %capacity, 1
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %length = load i64, ptr %length.at
  %from = getelementptr i8, ptr %piece, i64 %index
  %char = load i8, ptr %from
  %ended = icmp eq i8 %char, 0
  %full = icmp uge i64 %length, %last
  %stop = or i1 %ended, %full
  br i1 %stop, label %done, label %copy
copy:
  %to = getelementptr i8, ptr %buffer, i64 %length
  store i8 %char, ptr %to
  %length.next = add i64 %length, 1
  store i64 %length.next, ptr %length.at
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr %index.at
  br label %loop
done:
  %end = getelementptr i8, ptr %buffer, i64 %length
  store i8 0, ptr %end
  ret void
}

define internal void @igniter_number(ptr %text, i64 %value) noinline cold {
  ; Appends a signed decimal number; its digits are made from the last to the first.
entry:
  %digits = alloca [24 x i8]
  %place.at = alloca i64
  %rest.at = alloca i64
  %end = getelementptr i8, ptr %digits, i64 23
  store i8 0, ptr %end
  store i64 23, ptr %place.at
  %negative = icmp slt i64 %value, 0
  %flipped = sub i64 0, %value
  %magnitude = select i1 %negative, i64 %flipped, i64 %value
  store i64 %magnitude, ptr %rest.at
  br label %loop
loop:
  %rest = load i64, ptr %rest.at
  %digit = urem i64 %rest, 10
  %quotient = udiv i64 %rest, 10
  store i64 %quotient, ptr %rest.at
  %digit.8 = trunc i64 %digit to i8
  %char = add i8 %digit.8, 48
  %place = load i64, ptr %place.at
  %place.next = sub i64 %place, 1
  store i64 %place.next, ptr %place.at
  %at = getelementptr i8, ptr %digits, i64 %place.next
  store i8 %char, ptr %at
  %more = icmp ne i64 %quotient, 0
  br i1 %more, label %loop, label %sign
sign:
  br i1 %negative, label %minus, label %write
minus:
  %place.minus = sub i64 %place.next, 1
  store i64 %place.minus, ptr %place.at
  %at.minus = getelementptr i8, ptr %digits, i64 %place.minus
  store i8 45, ptr %at.minus
  br label %write
write:
  %first = load i64, ptr %place.at
  %string = getelementptr i8, ptr %digits, i64 %first
  call void @igniter_text(ptr %text, ptr %string)
  ret void
}

define internal void @igniter_message(ptr %text, ptr %failure) noinline cold {
  ; Appends the message of a failure, with its numbers between the pieces.
entry:
  %index.at = alloca i64
  store i64 0, ptr %index.at
  %message.at = getelementptr %Failure, ptr %failure, i64 0, i32 5
  %message = load ptr, ptr %message.at
  %count = load i64, ptr %message
  %pieces.at = getelementptr %Message, ptr %message, i64 0, i32 1
  %pieces = load ptr, ptr %pieces.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %piece.at = getelementptr ptr, ptr %pieces, i64 %index
  %piece = load ptr, ptr %piece.at
  call void @igniter_text(ptr %text, ptr %piece)
  %more = icmp ult i64 %index, %count
  br i1 %more, label %number, label %done
number:
  %value.at = getelementptr %Failure, ptr %failure, i64 0, i32 6, i64 %index
  %value = load i64, ptr %value.at
  call void @igniter_number(ptr %text, i64 %value)
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  br label %loop
done:
  ret void
}

define internal ptr @igniter_type_name(i64 %type) noinline cold {
  %known = icmp ult i64 %type, $TYPE_COUNT
  %safe = select i1 %known, i64 %type, i64 0
  %at = getelementptr ptr, ptr @igniter_type_names, i64 %safe
  %name = load ptr, ptr %at
  ret ptr %name
}
"""


def emit_messages(c_string: StringPool) -> str:
    """Returns `@igniter_fail` and its callees."""
    names = {t.ort_code: t.onnx_name for t in ELEMENT_TYPES}
    count = max(names) + 1
    table = ", ".join(f"ptr {c_string(names.get(i, 'of an unknown kind'))}" for i in range(count))
    lines = [
        f"@igniter_type_names = internal constant [{count} x ptr] [{table}]",
        _TEXT.replace("$TYPE_COUNT", str(count)),
        "define internal ptr @igniter_fail(ptr %api, ptr %desc, i32 %kind, ptr %port, i64 %index, i64 %axis,"
        " i64 %want, i64 %got) noinline cold {",
        "entry:",
        f"  %buffer = alloca [{CAPACITY} x i8]",
        "  %text = alloca %Text",
        "  store ptr %buffer, ptr %text",
        "  %capacity.at = getelementptr %Text, ptr %text, i64 0, i32 1",
        f"  store i64 {CAPACITY}, ptr %capacity.at",
        "  %length.at = getelementptr %Text, ptr %text, i64 0, i32 2",
        "  store i64 0, ptr %length.at",
        "  %op.name = load ptr, ptr %desc",
        f"  call void @igniter_text(ptr %text, ptr {c_string('Igniter op ')})",
        "  call void @igniter_text(ptr %text, ptr %op.name)",
        f"  call void @igniter_text(ptr %text, ptr {c_string(': ')})",
        "  switch i32 %kind, label %done [" + " ".join(f"i32 {k}, label %k{k}" for k in KINDS) + "]",
    ]
    for kind, pieces in KINDS.items():
        lines.append(f"k{kind}:")
        for i, piece in enumerate(pieces):
            lines += _append(piece, f"k{kind}.{i}", c_string)
        lines.append("  br label %done")
    lines += [
        "done:",
        "  %memory = icmp eq i32 %kind, " + str(NO_MEMORY),
        "  %device = icmp uge i32 %kind, " + str(NO_DRIVER),
        "  %resource = or i1 %memory, %device",
        f"  %code = select i1 %resource, i32 {RUNTIME_EXCEPTION}, i32 {INVALID_ARGUMENT}",
        "  %status = api CreateStatus(i32 %code, ptr %buffer)",
        "  ret ptr %status",
        "}",
        "",
    ]
    return "\n".join(lines)


def _append(piece: str, unique: str, c_string: StringPool) -> list[str]:
    if not piece.startswith("$"):
        return [f"  call void @igniter_text(ptr %text, ptr {c_string(piece)})"]
    what = piece[1:]
    if what in ("index", "axis", "want", "got"):
        return [f"  call void @igniter_number(ptr %text, i64 %{what})"]
    if what.endswith(".type"):
        source = what.removesuffix(".type")
        return [
            f"  %{unique} = call ptr @igniter_type_name(i64 %{source})",
            f"  call void @igniter_text(ptr %text, ptr %{unique})",
        ]
    if what == "message":
        # The failure itself is passed in place of the port.
        return ["  call void @igniter_message(ptr %text, ptr %port)"]
    # Without a port, the failure has four texts in its place.
    field = {"name": 0, "shape": 1, "dim": 2, "second": 2, "third": 3}[what]
    lines = [
        f"  %{unique}.at = getelementptr %Port, ptr %port, i64 0, i32 {field}",
        f"  %{unique}.f = load ptr, ptr %{unique}.at",
    ]
    text = f"%{unique}.f"
    if what == "dim":
        lines += [
            f"  %{unique}.d = getelementptr ptr, ptr %{unique}.f, i64 %axis",
            f"  %{unique}.t = load ptr, ptr %{unique}.d",
        ]
        text = f"%{unique}.t"
    return [*lines, f"  call void @igniter_text(ptr %text, ptr {text})"]


class StringPool:
    """C strings as private globals, without duplicates; `pool(text)` is the name of its global."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}

    def __call__(self, text: str) -> str:
        data = text.encode("utf-8").replace(b"\0", b"?")
        return self._names.setdefault(data, f"@igniter_string.{len(self._names)}")

    def emit(self) -> str:
        """Returns the definitions of all strings so far."""
        return "".join(
            f"{name} = private unnamed_addr constant [{len(data) + 1} x i8] {c_literal(data)}\n"
            for data, name in self._names.items()
        )


def c_literal(data: bytes) -> str:
    """Returns `data` and a terminating zero as an LLVM string literal."""
    printable = (chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
    return f'c"{"".join(printable)}\\00"'
