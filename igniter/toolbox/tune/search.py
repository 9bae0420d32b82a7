"""The search for a kernel's best schedule.

    tuner = Tuner(subject_of("gemm.mlir"), executor, database, Limits(seconds=60))
    print(tuner.run())

Candidates come from a `ScheduleSpace`. The first ones are enumerated, ordered by a cost model and handed to Optuna,
whose sampler (TPE, with a seed) learns from their times and suggests the rest. A candidate faster than the best by more
than the noise is compared once more, with the default and in more rounds, and becomes the best if that confirms it; it
is in the database from then on. So a search can be ended at any time and keeps its results, and a later one continues
from its trials.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.schedules.citation import schedule_texts, structure_hash
from igniter.schedules.learned_costs import beside
from igniter.schedules.space import AUTHOR, ScheduleSpace
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import choose_sizes, find_kernel
from igniter.toolbox.tune.executors import Executor, LocalExecutor
from igniter.toolbox.tune.measure import Job, Measurement, expected_of, parsed, run_for
from igniter.transforms.structured.apply_tuned_schedules import set_schedules
from igniter.transforms.structured.schedule_database import (
    Entry,
    ScheduleDatabase,
    Subject,
    Trial,
    bucket_of,
)

if TYPE_CHECKING:
    from igniter.dialects.loop.schedule import ScheduleAttr
    from igniter.schedules.learned_costs import LearnedCosts
    from igniter.targets import SearchSpace, Target

RANKED = 48
"""The candidates ranked by the cost model before the first is timed; at most four times the limit of trials."""

LEAST_GAIN = 0.02
"""The least gain of a faster schedule, even on a quiet machine."""

NOISES = 2.0
"""The least confirmed gain, in multiples of the noise: among many candidates, some are lucky once."""

CONFIRMING = 4
"""The factor of rounds, and of seconds for them, in the comparison that confirms a schedule."""

REPEATS = 64
"""The number of consecutive repeated suggestions after which the space counts as exhausted."""


@dataclass(frozen=True)
class Limits:
    """The limits of a search; the first one reached ends it."""

    seconds: float = 120.0
    trials: int = 0
    """The limit of candidates in this run; 0: no limit."""
    patience: int = 32
    """Stop after this number of candidates without improvement; 0: no limit."""
    candidate: float = 60.0
    """The seconds for one candidate."""


@dataclass(frozen=True)
class Tunable:
    """A kernel ready to be tuned: `kernel` has the default author's schedules, `default` is the kernel as given."""

    name: str
    kernel: KernelOp
    default: str
    """The IR with all schedules: the baseline of the candidates."""
    target: Target
    sizes: dict[str, int]
    threads: int = 1
    device: str = ""
    """The GPU that times it; "" for a CPU, whose target is the key."""
    subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        bucket = bucket_of(self.sizes, self.threads, self.device)
        subject = Subject(structure_hash(self.kernel), self.target.key, bucket)
        object.__setattr__(self, "subject", subject)


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    name: str
    default_seconds: float
    seconds: float
    """The time of the best schedule, in the comparison that confirmed it; the default's without a better one."""
    ratio: float
    """The ratio of its time to the default's; 1 without a better one."""
    noise: float
    trials: int
    """The candidates of this run."""
    earlier: int
    """The candidates of earlier runs."""
    outcomes: dict[str, int]
    """The number of candidates of all runs by outcome."""
    stopped: str
    """The reason for the end of this run."""
    took: float
    """The duration of this run in seconds."""
    schedules: dict[str, str]
    """The best schedule of each nest; empty if it is the default."""
    order: str
    """The cost model that ordered the first candidates, in words."""
    interrupted: bool = False

    @property
    def gain(self) -> float:
        """The speedup over the default."""
        return 1 / self.ratio


# -- what is tuned ----------------------------------------------------------------------------------------------------


def tunable(
    name: str,
    kernel: KernelOp,
    target: Target,
    sizes: Mapping[str, int] | None = None,
    threads: int = 1,
    device: str = "",
) -> Tunable:
    """Returns a structured kernel in the form of the backend's pipeline before schedules are chosen; its default
    schedules are its own, or those of the backend's author."""
    given = any(op.schedule is not None for op in kernel.computations)
    plain = kernel.clone()
    for op in plain.computations:
        op.schedule = None
    made = _chosen(plain, target)
    default = _chosen(kernel.clone(), target) if given else made
    return Tunable(name, made, _text(default), target, choose_sizes(kernel, sizes or {}), threads, device)


def space_of(what: Tunable) -> SearchSpace:
    """Returns the schedules to search among."""
    backend = backend_for(what.target.name)
    machine = backend.machine_for(what.target)
    own = backend.schedule_space(what.kernel, what.target, what.threads)
    return own or ScheduleSpace(what.kernel, machine.vector_bytes, machine.registers, what.threads)


def subject_of(
    path: str | PathLike[str], kernel: str = "", target: str = "native", threads: int = 1, **sizes: int
) -> Tunable:
    """Returns a kernel of a file, ready to be tuned."""
    backend = backend_for(target)
    own = backend.target_of(target)
    found = find_kernel(path, kernel, backend.machine_for(own))
    return tunable(found.sym_name.data, found, own, sizes, threads, backend.timed_on(own))


def cost_of(space: SearchSpace, point: Mapping[str, str], found: Measurement) -> float:
    """Returns the cost of a ranked candidate: the space's own, if it has one."""
    seconds = space.seconds(point)
    return found.cost if seconds is None else seconds


def with_schedules(kernel: KernelOp, chosen: Mapping[str, ScheduleAttr]) -> str:
    """Returns the IR of a kernel with schedules by the labels of its nests."""
    copy = kernel.clone()
    for nest in copy.nests:
        nest.schedule = chosen[nest.label]
    return _text(copy)


def _chosen(kernel: KernelOp, target: Target) -> KernelOp:
    """Returns a kernel with a schedule on every nest, the result of `choose-schedule`."""
    module = ModuleOp([kernel])
    run_for(module, backend_for(target.name).around_schedules()[0], target)
    made = next(op for op in module.ops if isinstance(op, KernelOp))
    made.detach()
    made.set_variants([])  # Only one schedule is tuned, for about these sizes.
    return made


def _text(kernel: KernelOp) -> str:
    return str(ModuleOp([kernel.clone()]))


# -- the search -------------------------------------------------------------------------------------------------------


class Tuner:
    """One search. `space` is by default that of the kernel; `learned` orders its first candidates, without it the
    counted cycles do; `progress` gets messages."""

    def __init__(
        self,
        what: Tunable,
        database: ScheduleDatabase,
        limits: Limits | None = None,
        executor: Executor | None = None,
        *,
        space: SearchSpace | None = None,
        learned: LearnedCosts | None = None,
        rounds: int = 9,
        seed: int = 0,
        progress: Callable[[str], None] = lambda _: None,
    ):
        if find_spec("optuna") is None:
            raise IgniterError(f"tuning needs Optuna: {install_command('tune')}")
        self.what = what
        self.database = database
        self.limits = limits or Limits()
        self.executor = executor or LocalExecutor()
        # Confirmation times candidates here and alone, independently of the executor.
        local = isinstance(self.executor, LocalExecutor)
        self._alone = self.executor if local else LocalExecutor(getattr(self.executor, "work", LocalExecutor().work))
        self.space: SearchSpace = space or space_of(what)
        self.learned = learned
        self.rounds = rounds
        self.seed = seed
        self.progress = progress
        self._start = time.monotonic()
        self._expected: Sequence[Any] | None = None
        self._baseline = ""
        self._best: Entry | None = None
        self._tried: dict[tuple[tuple[str, str], ...], Trial] = {}
        self._known: dict[str, float | None] = {}
        self._since = 0
        self._own = 0
        self._default_seconds = 0.0
        self._features: Mapping[str, float] = {}
        self._noise = 0.0

    def run(self) -> Tuned:
        """Searches until a limit is reached, or Ctrl-C."""
        self._start = time.monotonic()
        self._take_up()
        earlier = len(self._tried)
        interrupted = False
        try:
            self._expected = expected_of(self.what.kernel, self.what.sizes, self.seed)
            self._time_default()
            stopped = self._search()
        except KeyboardInterrupt:
            stopped, interrupted = "interrupted", True
        best = self._best
        labels = [op.label for op in self.what.kernel.computations]
        return Tuned(
            self.what.name,
            self._default_seconds if best is None else best.default_seconds,
            self._default_seconds if best is None else best.seconds,
            1.0 if best is None else best.ratio,
            self._noise if best is None else best.noise,
            self._own,
            earlier,
            dict(Counter(t.outcome for t in self._tried.values())),
            stopped,
            time.monotonic() - self._start,
            {} if best is None else dict(zip(labels, best.schedules, strict=True)),
            "counted cycles" if self.learned is None else str(self.learned),
            interrupted,
        )

    # -- beginning ----------------------------------------------------------------------------------------------------

    def _take_up(self) -> None:
        """Loads the trials of earlier runs, and the best schedule."""
        names = {p.name: p.values for p in self.space.parameters}
        for trial in self.database.trials(self.what.subject):
            if trial.point.keys() == names.keys() and all(v in names[n] for n, v in trial.point.items()):
                self._tried[_point_key(trial.point)] = trial
                if trial.digest:
                    self._known.setdefault(trial.digest, trial.ratio)
        subject = self.what.subject
        stored = self.database.entries(subject.kernel, subject.target)
        timed = (e for e in stored if e.is_timed and e.subject.bucket == subject.bucket)
        self._best = next((e for e in timed if self._fits(e)), None)

    def _fits(self, entry: Entry) -> bool:
        """True if a stored schedule is still legal; a new version may have changed the rules."""
        try:
            self._baseline = self._with(entry.schedules)
        except IgniterError:
            return False
        job = self._job(self._baseline, "", 1)
        if self._alone.run([job])[0].outcome == "ranked":
            return True
        self._baseline = ""
        self.database.forget(entry.subject)
        return False

    def _with(self, schedules: Sequence[str]) -> str:
        kernel = self.what.kernel.clone()
        for each in kernel.computations:
            each.schedule = None
        reason = set_schedules(IgniterContext(), kernel, tuple(schedules))
        if reason is not None:
            raise IgniterError(reason)
        return _text(kernel)

    def _time_default(self) -> None:
        """Times the default against itself: its time, the noise, and the correctness of its results."""
        self.progress("timing the default")
        found = self._alone.run([self._job(self.what.default, self.what.default, 2 * self.rounds)])[0]
        if found.outcome != "timed":
            raise IgniterError(f"the default schedule of @{self.what.name} cannot be timed: {found.reason}")
        self._features = found.features
        self._default_seconds, self._noise = found.seconds, max(found.noise, abs(found.ratio - 1))
        self._known.setdefault(found.digest, 1.0)
        self._baseline = self._baseline or self.what.default

    # -- going on -----------------------------------------------------------------------------------------------------

    def _search(self) -> str:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=self.seed, n_startup_trials=8, constant_liar=self.executor.width > 1)
        study = optuna.create_study(sampler=sampler)
        choices: dict[str, Any] = {
            p.name: optuna.distributions.CategoricalDistribution(p.values) for p in self.space.parameters
        }
        for trial in self._tried.values():
            self._tell_earlier(study, choices, trial)
        for point in self._ranked():
            study.enqueue_trial(point, skip_if_exists=True)
        repeats = 0
        while True:
            reason = self._stop()
            if reason is not None:
                return reason
            asked: list[tuple[Any, dict[str, str]]] = []
            while len(asked) < self.executor.width and repeats < REPEATS:
                trial = study.ask(choices)
                point: dict[str, str] = dict(trial.params)
                before = self._tried.get(_point_key(point))
                if before is None and all(point != other for _, other in asked):
                    asked.append((trial, point))
                    repeats = 0
                else:
                    repeats += 1
                    _tell(study, trial, before)
            if not asked:
                return "the space is searched"
            for (trial, _), tried in zip(asked, self._try([point for _, point in asked]), strict=True):
                _tell(study, trial, tried)

    def _tell_earlier(self, study: Any, choices: dict[str, Any], trial: Trial) -> None:
        import optuna

        state = optuna.trial.TrialState.COMPLETE if trial.ratio else optuna.trial.TrialState.FAIL
        params: dict[str, Any] = dict(trial.point)
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=choices, value=trial.ratio or None, state=state)
        )

    def _ranked(self) -> list[dict[str, str]]:
        """Returns the first untried points of the space, ordered by the cost model; point 0 is first. Refused points
        and points with equal code are recorded here."""
        count = min(RANKED, 4 * self.limits.trials or RANKED)
        points = [p for p in islice(self.space.points(self.seed), count) if _point_key(p) not in self._tried]
        ranked: list[tuple[dict[str, str], Measurement]] = []
        rest: list[dict[str, str]] = []
        step = max(1, self.executor.width)
        for k in range(0, len(points), step):
            # At most a part of the time: on a slow machine the cost model has a cost.
            if self._spent() > self.limits.seconds / 4:
                rest = points[k:]
                break
            batch = points[k : k + step]
            self.progress(f"ranking {k + 1} of {len(points)}")
            found = self.executor.run([self._job(self._candidate(p), "", self.rounds) for p in batch])
            for point, each in zip(batch, found, strict=True):
                if each.outcome == "ranked":
                    ranked.append((point, each))
                elif each.outcome == "refused":
                    self._note(point, Trial(point, "refused", each.reason))
        return [*self._ordered(ranked), *rest]

    def _ordered(self, ranked: Sequence[tuple[dict[str, str], Measurement]]) -> list[dict[str, str]]:
        """Returns candidates by the learned ratio to the default, or by their counted cost; point 0 is first."""
        if self.learned is None:
            costs = [cost_of(self.space, point, each) for point, each in ranked]
        else:
            costs = self.learned.ratios([beside(each.features, self._features) for _, each in ranked])
        first = self.space.first()
        order = sorted(range(len(ranked)), key=lambda k: (ranked[k][0] != first, costs[k]))
        return [ranked[k][0] for k in order]

    def _candidate(self, point: Mapping[str, str]) -> str:
        """Returns the IR of the kernel with the schedule of a point."""
        return with_schedules(self.what.kernel, self.space.schedules(point))

    def _job(self, candidate: str, baseline: str, rounds: int, seconds: float = 2.0) -> Job:
        what = self.what
        return Job(
            candidate,
            baseline,
            what.target.name,
            what.target.key,
            what.sizes,
            what.threads,
            self.seed,
            rounds,
            seconds,
            self.limits.candidate,
            self._expected if baseline else None,
            device=what.device,
        )

    def _try(self, points: Sequence[dict[str, str]]) -> list[Trial]:
        """Times candidates beside the best, and confirms faster ones."""
        texts = [self._candidate(p) for p in points]
        known = frozenset(self._known)
        ratio = 1.0 if self._best is None else self._best.ratio
        jobs = [replace(self._job(t, self._baseline, self.rounds), known=known) for t in texts]
        trials: list[Trial] = []
        for point, text, found in zip(points, texts, self.executor.run(jobs), strict=True):
            self._own += 1
            self._since += 1
            against = ratio * found.ratio if found.outcome == "timed" else self._known.get(found.digest)
            features = beside(found.features, self._features) if found.features and self._features else {}
            trial = Trial(point, found.outcome, found.reason, against, found.seconds or None, found.digest, features)
            self._note(point, trial)
            if found.digest and found.outcome != "same":
                self._known[found.digest] = against
            if found.outcome == "timed" and found.ratio < 1 - max(LEAST_GAIN, found.noise):
                self._confirm(text, found)
            best = 1.0 if self._best is None else self._best.ratio
            self.progress(f"{self._own} tried, best {1 / best:.2f} times as fast; {found.outcome} {_changes(point)}")
            trials.append(trial)
        return trials

    def _confirm(self, text: str, found: Measurement) -> None:
        """Compares again, longer, with the default; a confirmed schedule becomes the best and is stored in the
        database."""
        self.progress("confirming")
        job = self._job(text, self.what.default, CONFIRMING * self.rounds, CONFIRMING * 2.0)
        again = self._alone.run([job])[0]
        best = 1.0 if self._best is None else self._best.ratio
        if again.outcome != "timed" or again.ratio >= best * (1 - max(LEAST_GAIN, NOISES * again.noise)):
            return
        kernel = next(iter(parsed(text).ops))
        assert isinstance(kernel, KernelOp)
        self._best = Entry(
            self.what.subject,
            schedule_texts(kernel),
            again.seconds,
            again.baseline_seconds,
            again.ratio,
            again.noise,
            len(self._tried),
        )
        self._baseline = text
        self._since = 0
        self.database.record(self._best)

    def _note(self, point: Mapping[str, str], trial: Trial) -> None:
        self._tried[_point_key(point)] = trial
        self.database.note(self.what.subject, trial)

    # -- ending -------------------------------------------------------------------------------------------------------

    def _spent(self) -> float:
        return time.monotonic() - self._start

    def _stop(self) -> str | None:
        if self._spent() >= self.limits.seconds:
            return f"{self.limits.seconds:.0f} seconds are over"
        if self.limits.trials and self._own >= self.limits.trials:
            return f"{self._own} candidates are tried"
        if self.limits.patience and self._since >= self.limits.patience:
            return f"{self._since} candidates without a gain"
        return None


def _tell(study: Any, trial: Any, tried: Trial | None) -> None:
    """Reports a suggestion's result to Optuna: the ratio to the default, or a failure."""
    import optuna

    if tried is None or not tried.ratio:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, tried.ratio)


def _point_key(point: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(point.items()))


def _changes(point: Mapping[str, str]) -> str:
    """Returns a point's changes of the author's schedule."""
    return ", ".join(f"{n}={v}" for n, v in point.items() if v != AUTHOR) or "the author's"
