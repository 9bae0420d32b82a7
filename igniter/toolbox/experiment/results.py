"""The result of an experiment: frozen rows, one for each variant of each comparison, and means over comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from igniter.toolbox.experiment import outputs
from igniter.toolbox.experiment.statistics import Interval

Status = Literal["base", "faster", "slower", "inconclusive", "unchanged", "failed", "unavailable"]
"""The outcome of a variant. `unchanged`: it has the base's kernels, to the byte. `unavailable`: a peer is not
installed, or does not take the model. The verdicts are those of `statistics.py`."""


@dataclass(frozen=True)
class Row:
    """One variant of one comparison."""

    model: str
    sizes: Mapping[str, int]
    threads: int
    variant: str
    status: Status
    reason: str = ""
    """Why there is no time, or what to know of it."""
    ms: float | None = None
    """The median run in milliseconds."""
    ratio: Interval | None = None
    """The time relative to the base's, with its interval."""
    control: float | None = None
    """The ratio of the variant to itself (A/A)."""
    kernels: int | None = None
    regions: int | None = None
    left: int | None = None
    """Nodes left to ONNX Runtime."""
    bytes_saved: int | None = None
    """Bytes that fusion keeps out of memory, at the sizes of the run."""
    bytes_formula: str = ""
    """The same in the model's symbols."""
    bytes_exact: bool | None = None
    """False if a size that depends on data was assumed."""
    compile_seconds: float | None = None
    compile_memory: int | None = None
    """The peak resident memory of the compilation, in bytes."""
    code_bytes: int | None = None
    peak_memory: int | None = None
    """The peak resident memory of the process that ran the model, in bytes."""

    @property
    def case(self) -> tuple[str, str, int]:
        """The comparison that the row belongs to."""
        return self.model, outputs.sizes_text(self.sizes), self.threads


@dataclass(frozen=True)
class Mean:
    """A variant over all comparisons in which it and the base have times: the geometric mean of the ratios."""

    variant: str
    ratio: Interval
    comparisons: int
    verdict: Status


@dataclass(frozen=True)
class ExperimentResult:
    """The rows of an experiment. In a notebook it shows as a table; `figure` has its plot as data."""

    title: str
    base: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    means: tuple[Mean, ...]
    machines: tuple[Mapping[str, Any], ...]
    """The machines that the comparisons ran on."""
    versions: Mapping[str, str]
    folder: str = ""
    """The folder of the run, or the archive."""

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows of variants that failed."""
        return tuple(row for row in self.rows if row.status == "failed")

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants, in the order of the specification."""
        return tuple(dict.fromkeys(row.variant for row in self.rows))

    def of(self, variant: str, model: str | None = None) -> tuple[Row, ...]:
        """Returns the rows of a variant, of all models or of one."""
        return tuple(r for r in self.rows if r.variant == variant and model in (None, r.model))

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return asdict(self)

    def to_csv(self) -> str:
        """Returns the rows as CSV."""
        return outputs.csv_of(self)

    def to_latex(self) -> str:
        """Returns the rows as a LaTeX table (package booktabs)."""
        return outputs.latex_of(self)

    def figure(self) -> dict[str, Any]:
        """Returns the plot as data: the comparisons, and for each variant its ratios with their intervals."""
        return outputs.figure_of(self)

    def __str__(self) -> str:
        return outputs.summary_of(self)

    def __repr__(self) -> str:
        return f"<igniter experiment '{self.title}': {len(self.variants)} variants, {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        return outputs.html_of(self)


def verdicts(rows: Sequence[Row]) -> dict[str, int]:
    """Counts the rows of each status."""
    found: dict[str, int] = {}
    for row in rows:
        found[row.status] = found.get(row.status, 0) + 1
    return found
