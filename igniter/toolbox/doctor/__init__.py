"""Checks of the installation on this machine; `igniter doctor` prints them. `folder.py` has those of a compiled folder.

    for finding in examine():
        print(finding.status, finding.name, finding.says, finding.do)

Each check is a function that yields findings. An exception in a check is a finding too: nothing here fails. Code with a
risk of crashes (ONNX Runtime, compiled code) runs in processes of its own (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from igniter.distribution import DISTRIBUTION

Status = Literal["ok", "optional", "warning", "problem"]
"""`optional` is a missing part without need; a `problem` causes a failure."""

STATUSES: tuple[Status, ...] = ("ok", "optional", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    group: str
    name: str
    status: Status
    says: str
    do: str = ""
    """The user's remedy; "" if none is needed."""

    def to_dict(self) -> dict[str, str]:
        return {"group": self.group, "name": self.name, "status": self.status, "says": self.says, "do": self.do}


Check = Callable[[], Iterator[Finding]]


def checks() -> dict[str, Check]:
    """Returns every check by its group, in order."""
    from igniter.toolbox.doctor import building, gpu, machine, packages, trial

    return {
        "versions": packages.versions,
        "extras": packages.extras,
        "machine": machine.cpu,
        "linker": building.linker,
        "cache": building.cache,
        "onnxruntime": building.providers,
        "gpu": gpu.gpus,
        "end to end": trial.end_to_end,
    }


def examine(step: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Runs every check; calls `step` before each with its group. Raises nothing."""
    found: list[Finding] = []
    for group, check in checks().items():
        step(group)
        found += guarded(group, check)
    return found


def guarded(group: str, check: Check) -> list[Finding]:
    """Runs a check; an exception in it is a finding."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # a check that fails is a finding
        reason = str(error).strip() or "it does not say why"
        do = f"reinstall Igniter, which brings it: pip install --force-reinstall {DISTRIBUTION}"
        found.append(
            Finding(
                group,
                group,
                "problem",
                f"{type(error).__name__}: {reason}",
                do if isinstance(error, ImportError) else "",
            )
        )
    return found


def worst(findings: Sequence[Finding]) -> Status:
    """Returns the status of all findings together."""
    return STATUSES[max((STATUSES.index(f.status) for f in findings), default=0)]
