"""Remarks: the actions and refusals of passes on nodes, with the reasons.

A pass calls `remark(ctx, ...)`. The remark is recorded if the context is an `IgniterContext` with collection enabled;
otherwise the call has no effect, so passes work in any context.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from igniter.observation.logs import log_debug
from igniter.observation.statistics import count, unit_name

if TYPE_CHECKING:
    from xdsl.context import Context

RemarkKind = Literal["applied", "missed", "note"]


@dataclass(frozen=True)
class Remark:
    """One remark of a pass about one node."""

    pass_name: str
    node: str
    """The name of the subject: an ONNX node, nest or region; "" for the module."""
    kind: RemarkKind
    message: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """The facts of the message, in JSON's types."""
    unit: str = ""
    """The kernel of the nested run of passes that made the remark; "" for a pass over the whole module."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(RemarkKind):
            raise ValueError(f"a remark is one of {', '.join(get_args(RemarkKind))}, not '{self.kind}'")

    def __str__(self) -> str:
        about = f" '{self.node}'" if self.node else ""
        # A line omits lists and tables; they are for the JSON form.
        short = {key: value for key, value in self.details.items() if not isinstance(value, (dict, list, tuple))}
        details = "".join(f" [{key}={value}]" for key, value in short.items())
        return f"remark: {self.pass_name}:{about} {self.kind}: {self.message}{details}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "pass": self.pass_name,
            "node": self.node,
            "kind": self.kind,
            "message": self.message,
            "details": self.details,
            **({"kernel": self.unit} if self.unit else {}),
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Remark:
        """Restores an object from the result of `to_dict`."""
        return Remark(
            data["pass"], data["node"], data["kind"], data["message"], data["details"], data.get("kernel", "")
        )


@dataclass
class Remarks:
    """The remarks of one compilation, in order of creation."""

    enabled: bool = True
    items: list[Remark] = field(default_factory=list[Remark])

    def add(self, made: Remark) -> None:
        if self.enabled:
            self.items.append(made)

    def of(self, pass_name: str | None = None, kind: RemarkKind | None = None) -> list[Remark]:
        """Returns the remarks of one pass, of one kind, or of both."""
        return [r for r in self.items if pass_name in (None, r.pass_name) and kind in (None, r.kind)]

    def clear(self) -> None:
        self.items.clear()

    def to_json(self) -> str:
        return json.dumps([r.to_dict() for r in self.items], indent=2, default=str)

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def remarks_of(ctx: Context) -> Remarks | None:
    """Returns the collector of a context, or `None` if it does not collect."""
    found = getattr(ctx, "remarks", None)
    return found if isinstance(found, Remarks) and found.enabled else None


def remark(ctx: Context, pass_name: str, node: str, kind: RemarkKind, message: str, **details: Any) -> None:
    """Records a remark in the context, if it collects them; counts it, unless it is a note."""
    if kind != "note":
        count(ctx, pass_name, f"remarks: {kind}")
    log_debug(pass_name, "'%s' %s: %s", node, kind, message)
    collector = remarks_of(ctx)
    if collector is not None:
        collector.add(Remark(pass_name, node, kind, message, details, unit_name(ctx)))
