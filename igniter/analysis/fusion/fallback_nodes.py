"""The fallback nodes of a compiled model, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from igniter.analysis.fusion.graph import is_node, node_label
from igniter.dialects.fusion import GroupOp
from igniter.dialects.library_names import is_library_domain
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import base_name, is_exported
from igniter.dialects.onnx.structure import GraphOp
from igniter.remarks import Remarks

CHOICES = frozenset(("cost", "measured", "view", "shape", "request"))
"""Reasons to leave a compilable node: ONNX Runtime runs it as fast, or at no cost, or the caller names it."""
FAILED = "failed"
"""The kind of the reason where a region was formed and its kernel could not be compiled."""


@dataclass(frozen=True)
class FallbackNode:
    """One fallback node: its name (or its first output's), its op, and the reason, with `kind` being `Reason.kind`,
    `failed`, or `unknown` where no pass gave a reason."""

    node: str
    op: str
    kind: str
    reason: str

    @property
    def is_choice(self) -> bool:
        """True if it was left for profit, and could be compiled."""
        return self.kind in CHOICES

    def to_dict(self) -> dict[str, Any]:
        """Converts the node to JSON's types; `choice` is `is_choice`."""
        return {**asdict(self), "choice": self.is_choice}

    def __str__(self) -> str:
        return f"'{self.node}' ({self.op}): {self.reason}"


def fallback_nodes(module: ModuleOp, remarks: Remarks, failed: Mapping[str, str]) -> list[FallbackNode]:
    """Returns the nodes of the module's graphs other than constants, regions and Igniter's own ops, in order.

    The reasons are the remarks of `form-fusion-regions`; `failed` has those of nodes whose regions were dissolved.
    """
    reasons: dict[str, list[tuple[str, str]]] = {}
    for remark in remarks.of("form-fusion-regions", "missed"):
        reasons.setdefault(remark.node, []).append((str(remark.details.get("reason", "unknown")), remark.message))
    no_program = {r.node: r.message for r in remarks.of("form-programs", "missed")}
    found: list[FallbackNode] = []
    for graph in (op for op in module.ops if isinstance(op, GraphOp)):
        for node, outer in _nodes(graph.body, ""):
            label, op = node_label(node), base_name(node)
            if label in failed:
                kind, reason = FAILED, failed[label]
            else:
                inside = ("subgraph", f"it is in a subgraph of '{outer}', which runs in ONNX Runtime")
                given = reasons.get(label, [inside if outer else ("unknown", "no pass gives a reason")])
                # Nodes may share a label: each takes the next reason.
                kind, reason = given.pop(0) if len(given) > 1 else given[0]
                if kind == "loop":
                    reason = no_program.get(label, "it is not in a program")
            found.append(FallbackNode(label, op, kind, reason))
    return found


def _is_own(op: OnnxOp) -> bool:
    return is_library_domain(op.domain) or (op.domain.startswith("igniter.") and not is_exported(op))


def _nodes(block: Block, outer: str) -> Iterator[tuple[OnnxOp, str]]:
    """Yields the nodes of a block and of the graphs inside them, with the node around each."""
    for op in block.ops:
        if not isinstance(op, OnnxOp) or isinstance(op, GroupOp) or not is_node(op) or _is_own(op):
            continue
        yield op, outer
        for region in op.regions:
            for inner in region.blocks:
                yield from _nodes(inner, node_label(op))
