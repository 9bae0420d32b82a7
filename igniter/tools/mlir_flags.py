"""The flags of `mlir-opt`, with the flag of `igniter-opt` for each, or the reason why there is none.

`docs/how-to/for-mlir-users.md` has the same table; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from igniter.errors import IgniterError


@dataclass(frozen=True)
class Flag:
    """Igniter's answer to a flag of `mlir-opt`."""

    use: str = ""
    """The flag of `igniter-opt` with the same meaning; a value is handed on. Empty: accepted, with a note."""
    note: str = ""
    """The reason why an accepted flag has no effect."""
    refused: str = ""
    """The reason why a flag is refused, and the remedy."""


def _same(*names: str) -> dict[str, Flag]:
    """Returns the flags that only lose their prefix `mlir-`."""
    return {f"--mlir-{name}": Flag(f"--{name}") for name in names}


FLAGS: dict[str, Flag] = {
    **_same(
        "print-ir-before",
        "print-ir-after",
        "print-ir-before-all",
        "print-ir-after-all",
        "print-ir-after-change",
        "print-ir-after-failure",
        "print-ir-tree-dir",
        "print-op-generic",
        "timing",
        "pass-statistics",
    ),
    "--mlir-timing-display": Flag("--timing"),
    "--mlir-output-format": Flag("--timing"),
    "--mlir-pass-statistics-display": Flag("--pass-statistics"),
    "--mlir-print-stacktrace-on-diagnostic": Flag("--debug"),
    "--mlir-disable-threading": Flag(note="passes run on one thread in igniter-opt"),
    "--mlir-print-local-scope": Flag(note="the printer uses no aliases and no state outside of the printed op"),
    "--mlir-print-op-on-diagnostic": Flag(note="an error of the verifier always shows the op"),
    "--mlir-print-ir-module-scope": Flag(
        refused="a nested pass works on a copy of its kernel in a module of its own, and this module is printed"
    ),
    "--mlir-elide-elementsattrs-if-larger": Flag(
        refused="the pass does it: -p elide-weights{limit=N}, or --elide-weights=limit=N, as the last pass"
    ),
    "--mlir-elide-resource-strings-if-larger": Flag(refused="printed IR has no resources: weights are handles"),
    "--mlir-print-elementsattrs-with-hex-if-larger": Flag(refused="elements are printed as numbers"),
    "--mlir-print-skip-regions": Flag(refused="--filter-kernel=NAME restricts printed IR to some kernels"),
    "--mlir-print-unique-ssa-ids": Flag(refused="names are unique within a graph or a kernel; print one kernel"),
    "--mlir-print-value-users": Flag(refused="'igniter view' shows the users of values"),
    "--mlir-debug-counter": Flag(refused="--stop-after=N limits the rewrites of the passes"),
    "--mlir-print-debug-counter": Flag(refused="--pass-statistics prints the rewrites of each pass"),
    "--mlir-enable-debugger-hook": Flag(refused="run 'python -m pdb -m igniter.tools.igniter_opt'"),
    "--log-actions-to": Flag(refused="--debug-only=PASS prints the runs, rewrites and remarks of a pass"),
    "--log-mlir-actions-filter": Flag(refused="--debug-only=PASS selects the passes of the log"),
    "--profile-actions-to": Flag(refused="--timing=json with --info-output-file=FILE writes the times of passes"),
    "--emit-bytecode": Flag(refused="Igniter reads and writes text; mlir-opt --emit-bytecode reads --emit=generic"),
    "--emit-bytecode-version": Flag(refused="Igniter reads and writes text"),
    "--elide-resource-data-from-bytecode": Flag(refused="Igniter reads and writes text"),
    "--irdl-file": Flag(refused="install a package with the entry point igniter.dialects"),
    "--load-dialect-plugin": Flag("--load"),
    "--load-pass-plugin": Flag("--load"),
    "--color": Flag(refused="the output has no colours"),
    "--stats": Flag("--pass-statistics"),
    "--stats-json": Flag("--pass-statistics=json"),
    "--time-passes": Flag("--timing"),
    "--list-passes-json": Flag("--list-passes=json"),
}
"""The flags by name."""

VALUES = {
    "--mlir-timing-display": {"list": "list", "tree": "tree"},
    "--mlir-output-format": {"text": "tree", "json": "json"},
    "--mlir-pass-statistics-display": {"list": "list", "pipeline": "kernels"},
}
"""The values of flags whose values differ here."""


def translated(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the arguments with Igniter's flags in place of `mlir-opt`'s, and notes about flags without effect. Raises
    `IgniterError` for a flag without a counterpart."""
    found: list[str] = []
    notes: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        flag = FLAGS.get(name)
        if flag is None:
            found.append(argument)
        elif flag.refused:
            raise IgniterError(f"{name} is a flag of mlir-opt, not of igniter-opt: {flag.refused}")
        elif not flag.use:
            notes.append(f"{name} has no effect: {flag.note}")
        elif value not in ("false", "0"):
            found.append(flag.use if value in ("true", "1") else f"{flag.use}{equals}{_value(name, value)}")
    return found, notes


def _value(name: str, value: str) -> str:
    values = VALUES.get(name)
    if values is None:
        return value
    if value not in values:
        raise IgniterError(f"{name} is one of {', '.join(values)}, not '{value}'")
    return values[value]
