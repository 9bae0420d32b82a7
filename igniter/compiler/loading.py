"""The last step of a compile: stock ONNX Runtime loads the folder, or no folder is written.

The compiler knows ONNX Runtime's kernels in advance (`igniter.analysis.fusion.ort_kernels`). An installation may have
fewer, or refuse a node for its attributes: then the model is compiled again, with kernels for the nodes of this op
(`again`). A node without any kernel is an error with its name.

A library for another machine, or for a missing execution provider, is not loaded; the report says so.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from igniter.analysis.fusion.fallback_nodes import FallbackNode
from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import Compilation
from igniter.compiler.driver import is_fused, nodes_left
from igniter.dialects.onnx import building
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.runtime.session import LibraryElsewhere, SessionError, said_by_onnxruntime

_log = logging.getLogger(__name__)

MOST_TRIES = 8
"""The limit of compilations of one model, each with kernels for one more op."""
NAMED = re.compile(
    r"Could not find an implementation for (\w+)\(|No Op registered for (\w+) |(?:^|[ :])[\w.]*:(\w+)\(-?\d+\) is not a"
)
"""The pattern of ONNX Runtime's error for a node without a kernel, or without a schema."""


class NotLoaded(IgniterError):
    """Raised if ONNX Runtime cannot load a compiled model for want of a kernel for `op`, "" if its error names none."""

    code = "IGN0504"

    def __init__(self, message: str, op: str = ""):
        super().__init__(message)
        self.op = op


def require_loads(artifact: Artifact, c: Compilation) -> None:
    """Loads a compiled model before its first use, and records the outcome in its report, or the reason for not trying;
    raises `NotLoaded` if ONNX Runtime refuses it."""
    if not artifact.loads:
        try:
            artifact.session(intra_op_num_threads=1, log_severity_level=4)
        except LibraryElsewhere as error:
            artifact.report["loads"] = {"tried": False, "reason": error.message}
            return
        except SessionError as error:
            raise not_loaded(error, c) from error
    artifact.report["loads"] = {"tried": True, "reason": ""}


def not_loaded(error: SessionError, c: Compilation) -> NotLoaded:
    """Returns the error with its node, and the reason why the node is left to ONNX Runtime."""
    said = said_by_onnxruntime(error)
    found = NAMED.search(said)
    op = next((name for name in found.groups() if name), "") if found else ""
    nodes = [node for node in nodes_left(c) if op and _base(node) == op]
    why = f"; {nodes[0]}" if nodes else ""
    return NotLoaded(
        f"ONNX Runtime does not load the compiled model: {said}{why} (--no-load writes the folder anyway, for a "
        "session with further libraries of custom ops)",
        op,
    )


def again(c: Compilation, original: ModuleOp, error: NotLoaded) -> Compilation:
    """Returns the compilation to try next: with kernels for ONNX Runtime's missing op, or, if its error names none, for
    all ops left to it by choice. Raises `error` if no further op can be compiled."""
    choices = {node.op for node in nodes_left(c) if node.is_choice}
    wanted = sorted(op for op in choices if not error.op or op.rpartition(".")[2] == error.op)
    if not set(wanted) - set(c.required) or len(c.required) >= MOST_TRIES or is_fused(original):
        raise error
    _log.info("compiled again with kernels for %s: ONNX Runtime does not load %s", ", ".join(wanted), error.op or "it")
    ctx = c.ctx.clone()
    del ctx.remarks.items[:]
    remark(ctx, "load", "", "note", f"ONNX Runtime does not load {', '.join(wanted)}, and kernels need it")
    return replace(
        c,
        module=building.clone(original),
        ctx=ctx,
        required=(*c.required, *wanted),
        kernels=[],
        programs=[],
        steps=[],
        nodes_before=0,
        isolation=type(c.isolation)(),
    )


def _base(node: FallbackNode) -> str:
    return node.op.rpartition(".")[2]
