"""The emitter's error."""

from __future__ import annotations

from xdsl.ir import Operation

from igniter.errors import IgniterError


class EmitError(IgniterError):
    """Raised for a `loop.func` without a translation on the CPU backend; names the func and the op."""

    code = "IGN0302"

    def __init__(self, func: str, op: Operation, reason: str):
        super().__init__(f"cannot emit '{func}' for the CPU: {op.name}: {reason}\n  in: {_one_line(op)}")
        self.op = op


def _one_line(op: Operation) -> str:
    return str(op).strip().splitlines()[0]
