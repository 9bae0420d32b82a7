"""The database of schedules found by `igniter tune`: an SQLite file.

`schedules` has the best schedule of each kernel, if it was confirmed to be better than the default. `trials` has every
tried candidate, to let a later run resume. The key of a kernel is `structure_hash`
(`igniter/schedules/citation.py`) at the point where schedules are chosen, with the target of the timing and the bucket
of its sizes.

A schedule is valid for one version of Igniter. The fingerprint of the code (`build_id`) is stored beside it: only the
same code resumes from a trial. A trial has the features of its schedule (`igniter/schedules/cost_features.py`) with
their version: the learned cost model learns from trials of every build with its version.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from igniter._version import __version__, build_id
from igniter.errors import IgniterError
from igniter.schedules.cost_features import FEATURES

LAYOUT = 3
"""The version of the tables, in SQLite's `user_version`."""

_TABLES = """
create table if not exists schedules (
  kernel text, target text, version text, bucket text, schedules text not null, seconds real, default_seconds real,
  ratio real, noise real, trials integer, build text, found text, citation text not null default '',
  primary key (kernel, target, version, bucket)
);
create table if not exists trials (
  kernel text, target text, build text, bucket text, point text, outcome text, reason text, ratio real, seconds real,
  digest text, tried text, features text not null default '',
  primary key (kernel, target, build, bucket, point)
);
"""


_ADDED = ((2, "schedules", "citation"), (3, "trials", "features"))
"""The columns added since the first layout: the layout that has it, its table, its name."""


@dataclass(frozen=True)
class Subject:
    """The subject of a tuning run: a kernel, a target, and a bucket of sizes."""

    kernel: str
    """`structure_hash`."""
    target: str
    """`Target.key`."""
    bucket: str
    """`bucket_of`."""


@dataclass(frozen=True)
class Entry:
    """The best schedule of a kernel: one text per computation, in their order."""

    subject: Subject
    schedules: tuple[str, ...]
    seconds: float
    """The time of one run; 0 for an imported schedule without a time on this target."""
    default_seconds: float
    ratio: float
    """The time relative to the default's, in the comparison that confirmed it; 1 without a time."""
    noise: float
    trials: int
    build: str = ""
    found: str = ""
    """The time of the entry, in ISO 8601."""
    citation: str = ""
    """The name, the version and the source of an imported schedule, in words; "" for one found by tuning."""

    @property
    def is_timed(self) -> bool:
        """True if the schedule was timed beside the default on its target."""
        return self.seconds > 0


@dataclass(frozen=True)
class Trial:
    """A tried candidate. `ratio` is its time relative to the default's, if it was timed."""

    point: Mapping[str, str]
    outcome: str
    reason: str = ""
    ratio: float | None = None
    seconds: float | None = None
    digest: str = ""
    features: Mapping[str, float] = field(default_factory=dict[str, float])
    """The features of its schedule beside those of the default; empty if they were not counted."""


def bucket_of(sizes: Mapping[str, int], threads: int = 1, device: str = "") -> str:
    """Returns the bucket of sizes: each symbol rounded up to a power of two, and the number of threads, or the GPU."""
    said = [f"{name}<={1 << max(0, size - 1).bit_length()}" for name, size in sorted(sizes.items())]
    return ", ".join([*said, f"gpu={device}" if device else f"threads={threads}"])


class ScheduleDatabase:
    """An open database. `create` creates a missing one. Raises `IgniterError` if it cannot be read."""

    def __init__(self, path: str | PathLike[str], *, create: bool = False):
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise IgniterError(
                f"there is no database of schedules at {self.path}; create one with `igniter tune MODEL`, or "
                "name another with --db"
            )
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # Several processes may tune at once: one waits for the other's write.
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            (layout,) = self._connection.execute("pragma user_version").fetchone()
            layout = self._migrated(layout)
            if layout not in (0, LAYOUT) or (layout == 0 and not create):
                raise IgniterError(
                    f"{self.path} is not a database of schedules of this version of Igniter; name another"
                )
            if create:
                self._connection.executescript(_TABLES)
                self._connection.execute(f"pragma user_version = {LAYOUT}")
        except (OSError, sqlite3.Error) as error:
            raise IgniterError(f"cannot open the database of schedules {self.path}: {error}") from error

    def _migrated(self, layout: int) -> int:
        """Adds the columns that an older layout lacks, in one transaction; returns the layout afterwards."""
        if layout not in (1, 2):
            return layout
        self._connection.execute("begin immediate")
        try:
            # Another process may have migrated the file in the meantime.
            (layout,) = self._connection.execute("pragma user_version").fetchone()
            for _, table, column in (each for each in _ADDED if layout < each[0]):
                self._connection.execute(f"alter table {table} add column {column} text not null default ''")
            self._connection.execute(f"pragma user_version = {LAYOUT}")
        except sqlite3.Error:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")
        return LAYOUT

    def close(self) -> None:
        """Releases the file."""
        self._connection.close()

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise IgniterError(f"the database of schedules {self.path}: {error}") from error

    def record(self, entry: Entry) -> None:
        """Stores the best schedule of a kernel, replacing an earlier one."""
        s = entry.subject
        row = (s.kernel, s.target, __version__, s.bucket, json.dumps(entry.schedules), entry.seconds)
        row += (entry.default_seconds, entry.ratio, entry.noise, entry.trials, build_id(), _now(), entry.citation)
        self._execute(f"insert or replace into schedules values ({', '.join('?' * len(row))})", row)

    def forget(self, subject: Subject) -> None:
        """Removes the best schedule of a kernel, after it proved not to be one."""
        self._execute(
            "delete from schedules where kernel = ? and target = ? and version = ? and bucket = ?",
            (subject.kernel, subject.target, __version__, subject.bucket),
        )

    def entries(self, kernel: str, target: str) -> list[Entry]:
        """Returns the schedules of a kernel for a target, for all sizes, newest first."""
        rows = self._execute(
            "select bucket, schedules, seconds, default_seconds, ratio, noise, trials, build, found, citation from "
            "schedules where kernel = ? and target = ? and version = ? order by found desc, bucket",
            (kernel, target, __version__),
        )
        return [Entry(Subject(kernel, target, row[0]), tuple(json.loads(row[1])), *row[2:]) for row in rows]

    def note(self, subject: Subject, trial: Trial) -> None:
        """Stores a trial."""
        row = (subject.kernel, subject.target, build_id(), subject.bucket, _text(trial.point), trial.outcome)
        features = json.dumps([FEATURES, dict(sorted(trial.features.items()))]) if trial.features else ""
        row += (trial.reason, trial.ratio, trial.seconds, trial.digest, _now(), features)
        self._execute(f"insert or replace into trials values ({', '.join('?' * len(row))})", row)

    def trials(self, subject: Subject) -> list[Trial]:
        """Returns the trials of a kernel by this code, in order."""
        rows = self._execute(
            "select point, outcome, reason, ratio, seconds, digest from trials "
            "where kernel = ? and target = ? and build = ? and bucket = ? order by rowid",
            (subject.kernel, subject.target, build_id(), subject.bucket),
        )
        return [Trial(json.loads(row[0]), *row[1:]) for row in rows]

    def examples(self, target: str) -> list[tuple[str, str, Trial]]:
        """Returns the timed trials of all kernels for a target that have features of this version, each with its kernel
        and its bucket of sizes, oldest first."""
        rows = self._execute(
            "select kernel, bucket, point, outcome, ratio, seconds, digest, features from trials "
            "where target = ? and outcome = 'timed' and ratio > 0 and features != '' order by rowid",
            (target,),
        )
        found: list[tuple[str, str, Trial]] = []
        for kernel, bucket, point, outcome, ratio, seconds, digest, text in rows:
            version, features = json.loads(text)
            if version == FEATURES:
                found.append((kernel, bucket, Trial(json.loads(point), outcome, "", ratio, seconds, digest, features)))
        return found

    def digest(self, targets: Iterable[str]) -> str:
        """Returns a hash of the schedules that compiling for `targets` may use: part of cache keys."""
        wanted = set(targets)
        rows = self._execute(
            "select target, kernel, bucket, schedules, found from schedules where version = ? order by 1, 2, 3",
            (__version__,),
        )
        return hashlib.sha256(json.dumps([r for r in rows if r[0] in wanted]).encode()).hexdigest()[:16]


@contextmanager
def opened(path: str | PathLike[str], *, create: bool = False) -> Generator[ScheduleDatabase]:
    """Opens a database and closes it afterwards."""
    database = ScheduleDatabase(path, create=create)
    try:
        yield database
    finally:
        database.close()


def _text(point: Mapping[str, str]) -> str:
    return json.dumps(dict(sorted(point.items())))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
