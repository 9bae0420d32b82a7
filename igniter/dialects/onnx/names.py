"""Nodes by what they are called."""

from __future__ import annotations

from xdsl.ir import Operation

VIEWS = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
"""Ops that only rename elements: ORT runs them without moving data, and so does a region."""


def op_name(op: Operation) -> str:
    """The qualified ONNX name of a node; of another op its own name."""
    from igniter.dialects.onnx.base import OnnxOp

    return op.qualified_name if isinstance(op, OnnxOp) else op.name


def is_loop(op: Operation) -> bool:
    """Whether an op is a Loop or a Scan."""
    return op.name in ("onnx.Loop", "onnx.Scan")
