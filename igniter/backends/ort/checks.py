"""The messages of broken requirements, and the tests of checks on data, as LLVM IR.

    i32 checks(ptr found, ptr symbols, ptr failure)

`found` holds the kernel's findings, one i64 for each check of the op. The result is 0, or `BROKEN_REQUIREMENT` with the
message in `failure`.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.backends.ort.expressions import FunctionBuilder
from igniter.backends.ort.messages import BROKEN_REQUIREMENT, MESSAGE_NUMBERS, StringPool
from igniter.dialects.ort import OpOp
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import FINE


class Message:
    """A text with numbers in it: pieces of text, and i64 values between them."""

    def __init__(self, node: int | str | None, text: str):
        self.pieces = [("" if node is None else f"node '{node}': ") + text]
        self.numbers: list[str] = []

    @property
    def room(self) -> int:
        """The number of free slots for numbers."""
        return MESSAGE_NUMBERS - len(self.numbers)

    def text(self, text: str) -> None:
        self.pieces[-1] += text

    def number(self, value: str) -> None:
        self.numbers.append(value)
        self.pieces.append("")


class Messages:
    """The constants of one function's messages."""

    def __init__(self, function: str, c_string: StringPool):
        self.function = function
        self.c_string = c_string
        self._constants: list[str] = []

    def fail(self, f: FunctionBuilder, message: Message) -> None:
        """Writes the message to `%failure` and returns its kind."""
        for i, value in enumerate(message.numbers):
            at = f.fresh("number")
            f.line(f"{at} = getelementptr %Failure, ptr %failure, i64 0, i32 6, i64 {i}")
            f.line(f"store i64 {value}, ptr {at}")
        at = f.fresh("message")
        f.line(f"{at} = getelementptr %Failure, ptr %failure, i64 0, i32 5")
        f.line(f"store ptr {self._constant(message.pieces)}, ptr {at}")
        f.line("store i64 0, ptr %failure")
        f.line(f"ret i32 {BROKEN_REQUIREMENT}")

    def _constant(self, pieces: Sequence[str]) -> str:
        name = f"@message.{self.function}.{len(self._constants)}"
        table = ", ".join(f"ptr {self.c_string(p)}" for p in pieces)
        self._constants.append(
            f"{name}.pieces = internal constant [{len(pieces)} x ptr] [{table}]\n"
            f"{name} = internal constant %Message {{ i64 {len(pieces) - 1}, ptr {name}.pieces }}\n"
        )
        return name

    def emit(self) -> str:
        """Returns their definitions."""
        return "".join(self._constants)


def emit_checks(op: OpOp, name: str, c_string: StringPool) -> str:
    """Returns the function that tests the findings of the kernel of `op`."""
    from igniter.backends.ort.shapes import symbol_slots

    f = FunctionBuilder(f"define internal i32 @{name}(ptr %found, ptr %symbols, ptr %failure)")
    messages, slot = Messages(name, c_string), symbol_slots(op)

    def number(message: Message, e: Expr) -> None:
        values = {s: f.load("i64", f.element("i64", "%symbols", slot[s])) for s in sorted(e.symbols)}
        message.number(f.expression(e, values)[0])

    for i, check in enumerate(op.checks):
        value = f.load("i64", f.element("i64", "%found", i))
        fine, bad = f.fresh_label("fine"), f.fresh_label("bad")
        f.line(f"br i1 {f.compare('eq', value, str(FINE))}, label %{fine}, label %{bad}")
        f.label(bad)
        message = Message(check.node, f"{check.text} " if check.bounds is None else f"{check.text}, idx=")
        message.number(value)
        if check.bounds is not None:
            message.text(" must be within the inclusive range [")
            number(message, check.bounds[0])
            message.text(",")
            number(message, check.bounds[1])
            message.text("]")
        messages.fail(f, message)
        f.label(fine)
    f.line("ret i32 0")
    return messages.emit() + f.text()
