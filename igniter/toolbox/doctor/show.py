"""`igniter doctor`: checks the installation, or a compiled folder.

It prints without third-party packages, because one of them may be missing.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from igniter.registry import load
from igniter.toolbox.doctor import STATUSES, Finding, Status, examine, worst
from igniter.toolbox.output import print_json, printable

if TYPE_CHECKING:
    from igniter.toolbox.doctor.request import DoctorRequest

MARKS: dict[Status, str] = {"ok": "ok", "optional": "-", "warning": "warning", "problem": "PROBLEM"}
COLOURS: dict[Status, str] = {"ok": "32", "optional": "2", "warning": "33", "problem": "31;1"}


def run(asked: DoctorRequest) -> int:
    """Examines and prints; returns the exit status, 1 if a required part is broken."""
    findings = load("igniter.toolbox.doctor.folder:examine_folder")(asked.folder) if asked.folder else examine()
    if asked.json:
        counts = {status: sum(f.status == status for f in findings) for status in STATUSES}
        print_json({"status": worst(findings), "counts": counts, "findings": [f.to_dict() for f in findings]})
    else:
        print(text(findings, colours=sys.stdout.isatty(), width=shutil.get_terminal_size((100, 24)).columns))
    return 1 if worst(findings) == "problem" else 0


def text(findings: Sequence[Finding], *, colours: bool, width: int) -> str:
    """Returns a line for each finding, with the remedy below it if one is needed, and the outcome."""
    lines: list[str] = []
    names = max((len(f.name) for f in findings), default=0)
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            lines += ["", group] if lines else [group]
        lines += _lines(finding, names, colours, width)
    return "\n".join([*lines, "", _outcome(findings)])


def _lines(finding: Finding, names: int, colours: bool, width: int) -> list[str]:
    mark = f"{MARKS[finding.status]:7}"
    if colours:
        mark = f"\x1b[{COLOURS[finding.status]}m{mark}\x1b[0m"
    indent = " " * (2 + 7 + 2 + names + 2)
    room = max(40, width - len(indent))
    says = textwrap.wrap(printable(finding.says), room, break_long_words=False, break_on_hyphens=False) or [""]
    do = textwrap.wrap(finding.do, room - 3, break_long_words=False, break_on_hyphens=False)
    first = f"  {mark}  {finding.name:{names}}  {says[0]}".rstrip()
    rest = [*says[1:], *(f"{'-> ' if i == 0 else '   '}{line}" for i, line in enumerate(do))]
    return [first, *(f"{indent}{line}" for line in rest)]


def _outcome(findings: Sequence[Finding]) -> str:
    counts = {status: sum(f.status == status for f in findings) for status in STATUSES}
    if not counts["problem"] and not counts["warning"]:
        return "everything works"
    found = [f"{n} {name}{'s' * (n != 1)}" for name in ("problem", "warning") if (n := counts[name])]
    works = "what is needed is broken" if counts["problem"] else "what is needed works"
    return f"{works}: {', '.join(found)}"
