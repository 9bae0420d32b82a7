"""The options of `igniter-opt` for watching passes: dumps, times, counts, remarks and debug logs (`opt_watching`).

This is command line only, and imports nothing slow.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

DISPLAYS = ("tree", "kernels", "list", "json")
"""The values of `--timing`: those of `igniter.observation.times`."""

FORMS = ("list", "kernels", "json")
"""The values of `--pass-statistics`: those of `igniter.observation.statistics`."""


@dataclass(frozen=True)
class WatchOptions:
    """The options of this group, parsed."""

    print_before: tuple[str, ...] = ()
    print_after: tuple[str, ...] = ()
    print_before_all: bool = False
    print_after_all: bool = False
    print_after_change: bool = False
    print_after_failure: bool = False
    print_tree: str = ""
    print_generic: bool = False
    filter_kernel: tuple[str, ...] = ()
    timing: str = ""
    pass_statistics: str = ""
    info_output: str = ""
    remarks: str = ""
    remarks_output: str = ""
    debug_only: tuple[str, ...] = ()

    @property
    def prints(self) -> bool:
        """True if any IR is to be printed around passes."""
        return bool(self.print_before or self.print_after) or any(
            (self.print_before_all, self.print_after_all, self.print_after_change, self.print_after_failure)
        )

    @property
    def is_seen(self) -> bool:
        """True if an option has output that `--filter-kernel` selects from."""
        return self.prints or bool(self.timing or self.pass_statistics or self.remarks)

    @property
    def wants_runs(self) -> str:
        """The option without effect unless passes run on single kernels, with a verb; "" if there is none."""
        shown = bool(self.timing or self.pass_statistics)
        if self.filter_kernel and shown and not (self.prints or self.remarks):
            return "--filter-kernel selects from"
        for option, form in (("--timing", self.timing), ("--pass-statistics", self.pass_statistics)):
            if form == "kernels":
                return f"{option}=kernels shows"
        return ""


class _Names(argparse.Action):
    """Collects comma-separated names."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        given = [name.strip() for name in str(values).split(",")]
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), *filter(None, given)))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the group to the parser."""
    add = parser.add_argument_group("watching the passes").add_argument
    names: dict[str, Any] = {"action": _Names, "default": (), "metavar": "PASS"}
    add("--print-ir-before", dest="print_before", help="print the IR before PASS (to standard error)", **names)
    add("--print-ir-after", dest="print_after", help="print the IR after PASS", **names)
    for flag, text in (
        ("before-all", "print the IR before every pass"),
        ("after-all", "print the IR after every pass"),
        ("after-change", "print the IR after every pass that changed it"),
        ("after-failure", "print the IR that a failed pass left"),
    ):
        add(f"--print-ir-{flag}", dest=f"print_{flag.replace('-', '_')}", action="store_true", help=text)
    add(
        "--print-ir-tree-dir",
        dest="print_tree",
        default="",
        metavar="FOLDER",
        help="write the printed IR to files in FOLDER, with a folder for each kernel",
    )
    add(
        "--print-op-generic",
        dest="print_generic",
        action="store_true",
        help="print the generic syntax, in the result and around passes",
    )
    add(
        "--filter-kernel",
        action=_Names,
        default=(),
        metavar="NAME",
        help="restrict printed IR, times, counts and remarks to the kernels called NAME (r3), or like it ('r1*')",
    )
    add(
        "--timing",
        nargs="?",
        const="tree",
        default="",
        choices=DISPLAYS,
        help="how long each pass took: in order, kernel by kernel, by pass, or as JSON (default: tree)",
    )
    add(
        "--pass-statistics",
        nargs="?",
        const="list",
        default="",
        choices=FORMS,
        help="what each pass counted: over all kernels, kernel by kernel, or as JSON (default: list)",
    )
    add(
        "--info-output-file",
        dest="info_output",
        default="",
        metavar="FILE",
        help="where times and counts go (default: standard error; '-': output)",
    )
    add(
        "--remarks",
        nargs="?",
        const="text",
        default="",
        choices=("text", "json"),
        help="what the passes did to each node, or why they did not",
    )
    add("--remarks-output", default="", metavar="FILE", help="where remarks go (default: standard error; '-': output)")
    add("--debug-only", help="print the debug log of PASS: its runs, rewrites and remarks, in order", **names)
