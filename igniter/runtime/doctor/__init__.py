"""Whether everything that Igniter needs is there and works on this machine; `igniter doctor` prints it.

    for finding in examine():
        print(finding.status, finding.name, finding.says, finding.do)

Each check is a function that yields findings. What a check raises is a finding too: nothing here fails. What may end
the process (ONNX Runtime, the code that is compiled) is tried in processes of their own (`trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from igniter.distribution import DISTRIBUTION

Status = Literal["ok", "optional", "warning", "problem"]
"""`optional` is what is not there and need not be; a `problem` is what something will fail of."""

STATUSES: tuple[Status, ...] = ("ok", "optional", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    group: str
    name: str
    status: Status
    says: str
    do: str = ""
    """What the user can do about it; "" where there is nothing to do."""

    def to_dict(self) -> dict[str, str]:
        return {"group": self.group, "name": self.name, "status": self.status, "says": self.says, "do": self.do}


Check = Callable[[], Iterator[Finding]]


def checks() -> dict[str, Check]:
    """Every check by its group, in the order in which they are made."""
    from igniter.runtime.doctor import building, gpu, machine, packages, trial

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
    """Make every check; `step` is told which one begins. Raises nothing."""
    found: list[Finding] = []
    for group, check in checks().items():
        step(group)
        found += _guarded(group, check)
    return found


def _guarded(group: str, check: Check) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:
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
    """The status of all findings together."""
    return STATUSES[max((STATUSES.index(f.status) for f in findings), default=0)]
