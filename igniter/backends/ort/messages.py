"""The failures that generated code reports to the run time, and the strings of a library.

The run time makes the messages (`igniter/backends/c_runtime/src/messages.c`).
"""

from __future__ import annotations

from igniter.dialects.onnx.types import ELEMENT_TYPES

WRONG_SYMBOL, BAD_OUTPUT, BAD_SCRATCH, UNSOLVABLE, BROKEN_REQUIREMENT = 6, 7, 8, 12, 13
"""The numbers of failures, as in `library.h` of the run time; a test compares them."""

MESSAGE_NUMBERS = 8
"""The number of slots for numbers in a `%Failure`."""


def emit_type_names(c_string: StringPool) -> str:
    """Returns the table of element types by ONNX's number."""
    names = {t.ort_code: t.onnx_name for t in ELEMENT_TYPES}
    count = max(names) + 1
    table = ", ".join(f"ptr {c_string(names.get(i, 'of an unknown kind'))}" for i in range(count))
    return (
        f"@igniter_type_names = hidden constant [{count} x ptr] [{table}]\n"
        f"@igniter_type_count = hidden constant i64 {count}\n"
    )


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


_CHARACTERS = [chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in range(256)]
"""The characters of each byte in an LLVM string literal."""


def c_literal(data: bytes) -> str:
    """Returns `data` and a terminating zero as an LLVM string literal."""
    return f'c"{"".join(map(_CHARACTERS.__getitem__, data))}\\00"'
