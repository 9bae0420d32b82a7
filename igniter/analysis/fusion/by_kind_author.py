"""`by-kind`: a fusion author for ablations, which fuses more kinds of nodes from rung to rung.

    none          every node is a kernel of its own
    elementwise   elementwise nodes are fused with each other
    reductions    so are reductions and normalisations
    contractions  so are contractions, at most one in a region
    all           so are the rest: data movement, recurrent nodes, several contractions (attention)

A rung decides merges only. With `singletons=all`, its default, the same nodes are compiled at every rung, so two rungs
differ in fusion and in nothing else. Views (Reshape and similar ops) move no data, so every rung but `none` fuses them.
Within its rung the author decides like `default`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from igniter.analysis.fusion.cost import Singletons, op_kind
from igniter.analysis.fusion.default_author import DefaultAuthor
from igniter.analysis.fusion.region_growing import Refusal
from igniter.dialects.onnx.names import VIEWS, op_name

if TYPE_CHECKING:
    from igniter.analysis.fusion.region_policy import Group

Rung = Literal["none", "elementwise", "reductions", "contractions", "all"]

ELEMENTWISE = frozenset(("elementwise",))
REDUCTIONS = ELEMENTWISE | {"reduction", "normalization"}
KINDS: dict[str, frozenset[str]] = {
    "none": frozenset(),
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "contractions": REDUCTIONS | {"contraction"},
}
"""The kinds of nodes that may share a region, by rung; `all` has no limit."""


@dataclass(frozen=True)
class ByKindAuthor(DefaultAuthor):
    """Fuses the kinds of nodes up to a rung, for ablations; else it decides like default"""

    name = "by-kind"

    fuse: Rung = "all"
    """The rung: none, elementwise, reductions, contractions or all."""
    singletons: Singletons = "all"
    """The single nodes with a region: all, so that rungs compile the same nodes, or those of `default`."""

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Refuses merges of kinds above the rung."""
        if self.fuse == "none":
            return Refusal("rung", "nothing is fused (fuse=none)")
        if self.fuse != "all":
            kinds = KINDS[self.fuse]
            for group in (a, b):
                # A group of several nodes has passed this check before.
                other = None if len(group) > 1 else _other_kind(group, kinds)
                if other is not None:
                    return Refusal(
                        "rung", f"'{group.label}' ({other}) is not of the kinds that are fused ({self._rung})"
                    )
            if a.classes and b.classes:
                return Refusal("rung", f"both contain a contraction ({self._rung})")
        return super().refuse_merge(a, b)

    @property
    def _rung(self) -> str:
        return f"fuse={self.fuse}"


def _other_kind(group: Group, kinds: frozenset[str]) -> str | None:
    """Returns the kind of the node of a group, if it is not one of `kinds`."""
    op = group.graph.nodes[group.first]
    kind = op_kind(op)
    return None if kind in kinds or op_name(op) in VIEWS else kind
