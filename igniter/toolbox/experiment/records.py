"""The result of a run from its records, in a folder or in an archive: tables are functions of these files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from igniter.errors import IgniterError
from igniter.toolbox.experiment.comparison import LOCAL, is_unchanged
from igniter.toolbox.experiment.results import ExperimentResult, Mean, Row, Status
from igniter.toolbox.experiment.spec import Spec
from igniter.toolbox.experiment.spec_reading import spec_of
from igniter.toolbox.experiment.statistics import ONE, Compared, Copies, Launches, combine, compare, verdict
from igniter.toolbox.experiment.store import EXPERIMENT, Files, read_record

FORMAT = 1
"""The version of the layout of records."""


@dataclass(frozen=True)
class CaseRecords:
    """The records of one comparison."""

    about: Mapping[str, Any]
    builds: Mapping[str, Mapping[str, Any]]
    checks: Mapping[str, Mapping[str, Any]]
    launches: Sequence[Mapping[str, Any]]

    def failure(self, name: str) -> str:
        """Returns the reason why a variant has no times, or ""."""
        if "error" in self.about:
            return str(self.about["error"])
        for found in (self.builds.get(name, {}), self.checks.get(name, {})):
            if "error" in found:
                return str(found["error"])
        reasons = [launch["failed"][name] for launch in self.launches if name in launch["failed"]]
        return str(reasons[0]) if reasons else ""

    @property
    def times(self) -> Launches:
        """The raw times."""
        return [
            {name: Copies(t["first"], t["second"]) for name, t in launch["times"].items()} for launch in self.launches
        ]


def read_index(root: Files) -> dict[str, Any]:
    """Returns the index of a run; raises `IgniterError` if there is none, or one of another version."""
    index = read_record(root, EXPERIMENT)
    if index is None:
        raise IgniterError(f"{root} is no experiment: it has no {EXPERIMENT}")
    if index.get("format") != FORMAT:
        raise IgniterError(f"{root} was written by another version of Igniter (format {index.get('format')})")
    return index


def result_of(root: Files) -> ExperimentResult:
    """Returns the result of a run, from its records alone."""
    index = read_index(root)
    spec = spec_of(index["spec"], "the experiment")
    rows: list[Row] = []
    pairs: dict[str, list[tuple[Launches, str, str] | None]] = {}
    machines: list[Mapping[str, Any]] = []
    for case in index["cases"]:
        records = _records(root, case, spec)
        if records is None:
            continue
        if (here := records.about.get("machine")) not in (None, *machines):
            machines.append(cast("Mapping[str, Any]", here))
        for row in _rows(spec, records):
            rows.append(row)
            if row.ratio is not None and row.variant != spec.base:
                timed = row.status != "unchanged"
                pairs.setdefault(row.variant, []).append((records.times, row.variant, spec.base) if timed else None)
    means = _means(spec, pairs) if len(index["cases"]) > 1 else ()
    return ExperimentResult(
        spec.title, spec.base, spec.metrics, tuple(rows), means, tuple(machines), index["versions"], str(root)
    )


def _records(root: Files, case: str, spec: Spec) -> CaseRecords | None:
    """Returns the records of a comparison; `None` if it has not begun."""
    about = read_record(root, f"cases/{case}/case.json")
    if about is None:
        return None
    checks = read_record(root, f"cases/{case}/checks.json") or {}
    found = [read_record(root, f"cases/{case}/launch-{k}.json") for k in range(spec.measure.launches)]
    builds: dict[str, Mapping[str, Any]] = checks.get("builds", {})
    return CaseRecords(about, builds, checks.get("checks", {}), [launch for launch in found if launch is not None])


def _rows(spec: Spec, records: CaseRecords) -> list[Row]:
    measure = spec.measure
    compared: dict[str, Compared] = {}
    times = records.times
    for variant in spec.variants:
        if times and all(variant.name in launch and spec.base in launch for launch in times):
            compared[variant.name] = compare(
                times,
                variant.name,
                spec.base,
                seed=measure.seed,
                resamples=measure.resamples,
                confidence=measure.confidence,
            )
    return [_row(spec, records, variant.name, compared) for variant in spec.variants]


def _row(spec: Spec, records: CaseRecords, name: str, compared: Mapping[str, Compared]) -> Row:
    build, check, about = records.builds.get(name, {}), records.checks.get(name, {}), records.about
    figures: dict[str, Any] = {
        k: build.get(k) for k in ("kernels", "regions", "left", "compile_seconds", "compile_memory", "code_bytes")
    }
    memory = [launch["memory"][name] for launch in records.launches if launch["memory"].get(name)]
    figures |= {"peak_memory": int(median(memory)) if memory else None, "bytes_saved": check.get("bytes_saved")}
    figures |= {"bytes_formula": check.get("bytes_formula", ""), "bytes_exact": check.get("bytes_exact")}
    place = (about["model"], about.get("sizes", about["asked"]), about["threads"], name)
    found = compared.get(name)
    if "unavailable" in build:
        return Row(*place, "unavailable", str(build["unavailable"]))
    reason = records.failure(name)
    if reason:
        # A peer that does not take a model is no failure of the experiment.
        is_peer = spec.variant(name).system not in LOCAL and "error" not in about
        return Row(*place, "unavailable" if is_peer else "failed", reason, **figures)
    if is_unchanged(spec, spec.variant(name), records.builds):
        why = f"its kernels are those of '{spec.base}', to the byte"
        return Row(*place, "unchanged", why, ratio=ONE, **figures)
    if found is None:
        return Row(*place, "failed", _without_times(spec, records), **figures)
    status: Status = "base" if name == spec.base else found.verdict
    ratio = ONE if name == spec.base else found.ratio
    return Row(*place, status, "", 1000 * found.seconds, ratio, found.control, **figures)


def _without_times(spec: Spec, records: CaseRecords) -> str:
    """Returns the reason why a variant that works has no figure."""
    failed = records.failure(spec.base)
    if failed or "unavailable" in records.builds.get(spec.base, {}):
        return f"the base '{spec.base}' has no times: {failed or records.builds[spec.base]['unavailable']}"
    return "it was not timed: the run was interrupted; run it again to continue"


def _means(spec: Spec, pairs: Mapping[str, list[tuple[Launches, str, str] | None]]) -> tuple[Mean, ...]:
    measure = spec.measure
    found: list[Mean] = []
    for variant in spec.variants:
        if variant.name in pairs:
            these = pairs[variant.name]
            ratio = combine(these, seed=measure.seed, resamples=measure.resamples, confidence=measure.confidence)
            said: Status = "unchanged" if all(each is None for each in these) else verdict(ratio, ())
            found.append(Mean(variant.name, ratio, len(these), said))
    return tuple(found)
