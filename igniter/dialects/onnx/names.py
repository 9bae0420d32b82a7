"""Classification of nodes by name."""

from __future__ import annotations

from xdsl.ir import Operation

from igniter.dialects.onnx.base import OnnxOp

VIEWS = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
"""The ops that only rename elements: ORT and regions run them without moving data."""


def op_name(op: Operation) -> str:
    """Returns the qualified ONNX name of a node; for another op, its own name."""
    return op.qualified_name if isinstance(op, OnnxOp) else op.name


def is_loop(op: Operation) -> bool:
    """True if an op is a Loop or a Scan."""
    return op.name in ("onnx.Loop", "onnx.Scan")
