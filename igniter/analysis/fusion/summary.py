"""The results of `form-fusion-regions`, as data: for `igniter compile --explain`, its JSON, and an artifact's
report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.fusion.graph import FusionGraph
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.selection import Selection
from igniter.analysis.fusion.symbols import region_operands
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import VIEWS, op_name
from igniter.dialects.sym.expr import Expr

MISSED = 20
"""The most missed fusions in a summary."""


@dataclass(frozen=True)
class RegionSummary:
    """One region."""

    name: str
    ops: tuple[str, ...]
    """The op of each node, in order."""
    inputs: int
    outputs: int
    bytes_in: int
    bytes_out: int
    bytes_saved: int
    """The traffic between its nodes without fusion, at typical sizes."""
    microseconds_saved: float
    formula: str = ""
    """`bytes_saved` as an expression in the symbols of dims; "" where it is long."""

    def __str__(self) -> str:
        counts = Counter(name.rpartition(".")[2] for name in self.ops)
        held = ", ".join(f"{n} {name}" if n > 1 else name for name, n in counts.most_common(6))
        more = f", and {len(counts) - 6} other ops" if len(counts) > 6 else ""
        return f"@{self.name}: {len(self.ops)} nodes ({held}{more}), {self.inputs} inputs, {self.outputs} outputs"


@dataclass(frozen=True)
class MissedFusion:
    """A tensor written and read again because its two nodes are not in one region."""

    value: str
    bytes: int
    producer: str
    consumer: str
    kind: str
    reason: str
    formula: str = ""
    """`bytes` as an expression in the symbols of dims; "" where it is long."""

    def __str__(self) -> str:
        return f"{self.value} ({self.bytes:,} bytes) from {self.producer} to {self.consumer}: {self.reason}"


@dataclass(frozen=True)
class FusionSummary:
    """The fusion results of one graph."""

    graph: str
    nodes_before: int
    nodes_after: int
    regions: tuple[RegionSummary, ...]
    missed: tuple[MissedFusion, ...]
    """The largest ones, largest first."""
    left: dict[str, int]
    """The number of nodes in no region, by the kind of the reason."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes of symbols in the figures."""
    assumed: tuple[str, ...] = ()
    """The symbols whose size is a default, because none was given."""

    def to_dict(self) -> dict[str, Any]:
        """Converts the summary to JSON's types."""
        return asdict(self)

    def at(self, sizes: Mapping[str, int]) -> FusionSummary:
        """Returns the summary with its bytes at these sizes of symbols; other figures keep their typical values."""
        regions = [replace(r, bytes_saved=_bytes_at(r.formula, sizes, r.bytes_saved)) for r in self.regions]
        missed = [replace(m, bytes=_bytes_at(m.formula, sizes, m.bytes)) for m in self.missed]
        missed.sort(key=lambda m: -m.bytes)
        known = {name: sizes.get(name, size) for name, size in {**dict.fromkeys(self.symbols, 0), **self.sizes}.items()}
        assumed = tuple(name for name in self.assumed if name not in sizes)
        return replace(self, regions=tuple(regions), missed=tuple(missed), sizes=known, assumed=assumed)

    @property
    def bytes_saved(self) -> int:
        """The traffic that all regions save."""
        return sum(r.bytes_saved for r in self.regions)

    @property
    def formula(self) -> str:
        """`bytes_saved` as an expression in the symbols of dims; "" where that of a region is not known, or where it is
        long."""
        texts = [r.formula for r in self.regions]
        return _formula(_sum(Expr.parse(t) for t in texts)) if all(texts) else ""

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the figures."""
        texts = [r.formula for r in self.regions] + [m.formula for m in self.missed]
        return frozenset[str]().union(*(Expr.parse(t).symbols for t in texts if t))

    @staticmethod
    def from_dict(data: dict[str, Any]) -> FusionSummary:
        """Returns the inverse of `to_dict`, also after a round trip through JSON."""

        fields: dict[str, Any] = dict(data)
        regions: list[dict[str, Any]] = data["regions"]
        fields["regions"] = tuple(RegionSummary(**dict(r, ops=tuple(r["ops"]))) for r in regions)
        fields["missed"] = tuple(MissedFusion(**m) for m in data["missed"])
        fields["assumed"] = tuple(data.get("assumed", ()))
        return FusionSummary(**fields)

    def _where(self) -> str:
        """Returns the formula of the bytes with the sizes of its symbols; "" where there is none."""
        names = sorted(Expr.parse(self.formula).symbols) if self.formula else []
        if not names or not set(names) <= self.sizes.keys():
            return ""
        given = ", ".join(f"{name}={self.sizes[name]}" for name in names if name not in self.assumed)
        assumed = ", ".join(f"{name}={self.sizes[name]}" for name in names if name in self.assumed)
        parts = [*([f"at {given}"] if given else []), *([f"assuming {assumed}"] if assumed else [])]
        return f": {self.formula} {', '.join(parts)}"

    def __str__(self) -> str:
        saved = self.bytes_saved
        lines = [
            f"{self.graph}: {self.nodes_before} nodes before, {self.nodes_after} after, {len(self.regions)} of them "
            f"regions, which save {saved:,} bytes of memory traffic{self._where()}",
            *(f"  {region}" for region in self.regions),
        ]
        if self.left:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.left.items()))
            lines.append(f"  nodes outside regions, by reason: {kinds}")
        if self.missed:
            lines.append("  largest missed fusions:")
            lines.extend(f"    {missed}" for missed in self.missed)
        return "\n".join(lines)


def summarize_regions(graph: FusionGraph, selection: Selection, names: Sequence[str]) -> tuple[RegionSummary, ...]:
    """Returns one summary a region; must run before the nodes are moved."""
    cost = graph.cost
    found: list[RegionSummary] = []
    for name, group in zip(names, selection.groups, strict=True):
        members = [graph.nodes[n] for n in group]
        inside = set(members)
        reads = region_operands(members)
        results = [result for op in members for result in op.results if result.first_use is not None]
        writes = [r for r in results if any(use.operation not in inside for use in r.uses)]
        traffic = [size for op in members for size in _traffic(op, inside, cost)]
        saved = sum(max(0, cost.estimate(size)) for size in traffic)
        found.append(
            RegionSummary(
                name,
                tuple(op_name(op) for op in members),
                len(reads),
                len(writes),
                sum(cost.bytes(v) for v in reads),
                sum(cost.bytes(v) for v in writes),
                saved,
                round(cost.saved(len(members) - 1, saved), 1),
                _formula(_sum(traffic)),
            )
        )
    return tuple(found)


def _traffic(op: Operation, inside: set[Operation], cost: CostModel) -> list[Expr]:
    """Returns the avoided traffic of each of `op`'s results: its write, and the reads by members of its region."""
    if op_name(op) in VIEWS:
        return []
    return [cost.size(result) * _transfers(result, inside) for result in op.results]


def _transfers(result: SSAValue, inside: set[Operation]) -> int:
    """Returns the number of transfers of a value between members of its region without fusion: one write, and the
    reads."""
    readers = sum(use.operation in inside for use in result.uses)
    kept = readers == sum(1 for _ in result.uses)
    return readers + (kept and readers > 0)


def _sum(sizes: Iterable[Expr]) -> Expr:
    """Returns the sum, cut off once it gets long."""
    total = Expr.of(0)
    for size in sizes:
        total = total + size
        if not total.is_small:
            break
    return total


def _formula(size: Expr) -> str:
    return str(size) if size.is_small else ""


def _bytes_at(formula: str, sizes: Mapping[str, int], typical: int) -> int:
    """Returns the value of a formula; `typical` without a formula, or if one of its symbols has no size."""
    if not formula:
        return typical
    found = Expr.parse(formula)
    return max(0, found.evaluate(sizes)) if found.symbols <= sizes.keys() else typical


def missed_fusions(graph: FusionGraph, selection: Selection) -> tuple[MissedFusion, ...]:
    """Returns the largest tensors between a fusible node and a node outside of its region."""
    region = {n: k for k, group in enumerate(selection.groups) for n in group}
    found: list[tuple[int, int, int]] = []
    for source, target in graph.edges:
        if region.get(source, -1) == region.get(target, -2) or not (source in region or target in region):
            continue
        found.append((-graph.bytes_between(source, target), source, target))
    found.sort()
    return tuple(
        MissedFusion(
            _value_name(graph, source, target),
            -size,
            graph.labels[source],
            graph.labels[target],
            reason.kind,
            str(reason),
            _formula(_shared_size(graph, source, target)),
        )
        for size, source, target in found[:MISSED]
        for reason in (selection.reason_between(graph, source, target),)
    )


def _shared_size(graph: FusionGraph, source: int, target: int) -> Expr:
    return _sum(graph.cost.size(v) for v in set(graph.nodes[target].operands) if v.owner is graph.nodes[source])


def _value_name(graph: FusionGraph, source: int, target: int) -> str:
    op = graph.nodes[source]
    names = op.output_names if isinstance(op, OnnxOp) else []
    for result in op.results:
        if any(use.operation is graph.nodes[target] for use in result.uses):
            named = names[result.index] if result.index < len(names) else ""
            return named or result.name_hint or graph.labels[source]
    return graph.labels[source]


def count_kinds(reasons: Iterable[Reason]) -> dict[str, int]:
    """Counts the reasons of each kind."""
    return dict(sorted(Counter(reason.kind for reason in reasons).items()))
