"""The table of proofs by pass, as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from igniter.verification.prove.prove import Verdict


def at_sizes(sizes: Mapping[str, int]) -> str:
    """Returns ` at n=1, m=2`; nothing without sizes."""
    return f" at {', '.join(f'{n}={v}' for n, v in sizes.items())}" if sizes else ""


@dataclass(frozen=True)
class Proof:
    """The verdict for one pass and one kernel."""

    pass_name: str
    kernel: str
    verdict: Verdict

    def __str__(self) -> str:
        verdict = self.verdict
        why = f": {verdict.reason}" if verdict.reason and verdict.status != "unchanged" else ""
        return f"{self.pass_name}: @{self.kernel}: {verdict.status}{at_sizes(verdict.sizes)}{why}"

    def to_json(self) -> dict[str, object]:
        """Returns the proof as an object of JSON."""
        v = self.verdict
        return {
            "pass": self.pass_name,
            "kernel": self.kernel,
            "status": v.status,
            "reason": v.reason,
            "sizes": v.sizes,
            "seconds": round(v.seconds, 3),
        }


@dataclass(frozen=True)
class Row:
    """The counts of one pass."""

    pass_name: str
    proven: int
    refuted: int
    open: int
    unchanged: int

    @property
    def share(self) -> float:
        """The proven part of the changed kernels."""
        changed = self.proven + self.refuted + self.open
        return self.proven / changed if changed else 1.0

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        numbers = (self.proven, self.refuted, self.open, self.unchanged)
        changed = sum(numbers[:3])
        return (self.pass_name, *map(str, numbers), f"{100 * self.share:.1f}%" if changed else "-")


HEADER = ("pass", "proven", "refuted", "not decided", "unchanged", "proven of changed")


def rows(proofs: Iterable[Proof]) -> list[Row]:
    """Returns the counts by pass, in the order of the run, and their sum."""
    counts: dict[str, dict[str, int]] = {}
    for proof in proofs:
        for name in (proof.pass_name, "all"):
            row = counts.setdefault(name, {})
            row[proof.verdict.status] = row.get(proof.verdict.status, 0) + 1
    whole = counts.pop("all", {})
    return [_row(name, row) for name, row in [*counts.items(), ("all", whole)]]


def _row(name: str, counts: dict[str, int]) -> Row:
    return Row(name, *(counts.get(k, 0) for k in ("proven", "refuted", "not decided", "unchanged")))


def table(proofs: Sequence[Proof]) -> str:
    """Returns the counts by pass as text in columns."""
    cells = [HEADER, *(row.cells for row in rows(proofs))]
    widths = [max(len(row[k]) for row in cells) for k in range(len(HEADER))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]
    return "\n".join(lines)


def markdown(proofs: Sequence[Proof]) -> str:
    """Returns the counts by pass as a table of Markdown."""
    lines = [f"| {' | '.join(HEADER)} |", f"| --- |{' ---: |' * (len(HEADER) - 1)}"]
    lines += [
        f"| {' | '.join((f'`{r.pass_name}`' if r.pass_name != 'all' else r.pass_name, *r.cells[1:]))} |"
        for r in rows(proofs)
    ]
    return "\n".join(lines)


def to_json(proofs: Sequence[Proof]) -> str:
    """Returns every proof, and the counts by pass, as JSON."""
    table_rows = [
        dict(
            zip(
                ("pass", "proven", "refuted", "not_decided", "unchanged"),
                (r.pass_name, r.proven, r.refuted, r.open, r.unchanged),
                strict=True,
            )
        )
        for r in rows(proofs)
    ]
    return json.dumps({"passes": table_rows, "proofs": [p.to_json() for p in proofs]}, indent=1)
