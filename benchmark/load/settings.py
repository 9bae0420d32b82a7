"""The settings: who calls how many sessions, with how many threads, on which part of the machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One setting. Its measure is the number of runs in a second, over all callers.

    A session is a list of sessions' threads; each session has `callers` threads of the program that call it without a
    pause.
    """

    name: str
    about: str
    sessions: tuple[int, ...]
    callers: int = 1
    neighbours: int = 0
    """Processes of other programs that never wait."""
    cpus: int | None = None
    """The CPUs of the process's affinity mask; `None` for all."""
    quota: float | None = None
    """The CPUs of a control group's quota."""
    parallel: bool = False
    """ONNX Runtime's `ORT_PARALLEL`: several nodes of one run at a time."""
    processes: int = 1
    """Processes that do all this side by side."""


def settings_of(cpus: int) -> tuple[Setting, ...]:
    """Returns the settings for a machine of so many CPUs, the reference of independent processes first."""
    half = max(1, cpus // 2)
    return (
        Setting("processes", "one process with one thread for each CPU", (1,), processes=cpus),
        Setting("alone", "one thread on a quiet machine", (1,)),
        Setting("quiet", "as many threads as CPUs", (cpus,)),
        Setting("neighbour", "the same beside one busy process", (cpus,), neighbours=1),
        Setting("busy", "the same beside a busy process for each CPU", (cpus,), neighbours=cpus),
        Setting("half", "the same on half of the CPUs (affinity mask)", (cpus,), cpus=half),
        Setting("quota", "the same with the quota of half of the CPUs (control group)", (cpus,), quota=half),
        Setting("twice", "twice as many threads as CPUs", (2 * cpus,)),
        Setting("sessions", "two sessions at once, each with a thread for each CPU", (cpus, cpus)),
        Setting("singles", "a session with one thread for each CPU, at once", (1,) * cpus),
        Setting("mixed", "sessions with one thread and with one for each CPU, at once", (1, cpus)),
        Setting("callers", "two callers of one session", (cpus,), callers=2),
        Setting("many", "four sessions at once, each with a thread for each CPU", (cpus,) * 4),
        Setting("parallel", "one session that runs several nodes at a time (ORT_PARALLEL)", (cpus,), parallel=True),
    )


SHARED = ("sessions", "singles", "mixed", "callers", "many")
"""The settings whose callers keep all CPUs busy: their rate is compared with that of the processes."""
