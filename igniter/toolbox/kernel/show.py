"""`igniter kernel`: one kernel, checked, timed against other schedules of it, and analysed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from igniter.runtime.files import write_whole
from igniter.targets import backend_for, read_machine
from igniter.toolbox.ir_text import module_text
from igniter.toolbox.kernel.workbench import expected_seconds, find_kernel, loop_tree, schedule, study
from igniter.toolbox.output import console, parse_sizes, print_json, progress
from igniter.toolbox.roofs import CACHED, DISTURBED, is_passed, roof_text

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.toolbox.kernel.request import KernelRequest
    from igniter.toolbox.kernel.workbench import Study, Version

AUTHOR = "default author"


def run(asked: KernelRequest) -> None:
    """Analyses the kernel and prints."""
    backend = backend_for(asked.target)
    own_target = backend.target_of(asked.target)
    model = backend.machine_for(own_target, read_machine(asked.machine) if asked.machine else ())
    found = find_kernel(asked.model, asked.name, model)
    given = parse_sizes(asked.sizes)
    own = "as scheduled" if all(op.schedule is not None for op in found.computations) else AUTHOR
    with progress("scheduling", asked.json) as step:
        versions = [schedule(own, found, own_target, model)]
        for file in asked.schedule:
            step(file)
            versions.append(
                schedule(file, find_kernel(file, found.sym_name.data, model, or_only=True), own_target, model)
            )
    if asked.output:
        _write(asked.output, versions[0])
    with progress("timing", asked.json):
        result = study(
            found, versions, own_target, sizes=given, threads=asked.threads, rounds=asked.rounds, seed=asked.seed
        )
    if asked.json:
        print_json(_described(found.sym_name.data, result, versions, asked.asm, model))
    else:
        _print(found.sym_name.data, result, versions, asked.asm, model)


def _write(output: str, version: Version) -> None:
    """Writes the kernel with its schedule, for changes by hand."""
    write_whole(output, module_text(ModuleOp([version.kernel.clone()])))


def _described(
    name: str, study: Study, versions: Sequence[Version], assembly: bool, machine: MachineModel
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for version, result in zip(versions, study.versions, strict=True):
        hot = version.listing.loops()[:1]
        expected = expected_seconds(version, study.sizes, machine)
        rows.append(
            {
                **asdict(result),
                "gflops": study.operations / result.seconds / 1e9,
                "gbytes_per_second": study.bytes / result.seconds / 1e9,
                "expected_seconds": expected and expected[0],
                "bound_by": expected and expected[1],
                "spills": version.listing.spills,
                "stack_bytes": version.listing.bytes_of_stack,
                "loops": [asdict(loop) for loop in loop_tree(version.func, study.sizes, machine)],
                "inner_loop": [_loop_facts(loop, assembly) for loop in hot],
            }
        )
    facts = {"sizes": study.sizes, "operations": study.operations, "bytes": study.bytes, "noise": study.noise}
    return {"kernel": name, **facts, "disturbed": study.is_disturbed, "versions": rows}


def _loop_facts(loop: Any, assembly: bool) -> dict[str, Any]:
    facts = {
        "label": loop.label,
        "instructions": loop.instructions,
        "multiply_adds": loop.multiply_adds,
        "vector_registers": loop.vector_registers,
        "spills": loop.spills,
    }
    return {**facts, "lines": list(loop.lines)} if assembly else facts


def _print(name: str, study: Study, versions: Sequence[Version], assembly: bool, machine: MachineModel) -> None:
    shown = console()
    sizes = ", ".join(f"{n}={s}" for n, s in study.sizes.items())
    shown.print(
        f"@{name}{f' at {sizes}' if sizes else ''}: {study.operations / 1e6:.4g} million operations, "
        f"{study.bytes / 1e6:.4g} MB of inputs and results"
    )
    table = Table(
        "schedule", "error", "us", "expected us", "ratio", "GFLOP/s", "of peak", "GB/s", "of reading", "spills"
    )
    for version, row in zip(versions, study.versions, strict=True):
        expected = expected_seconds(version, study.sizes, machine)
        table.add_row(
            escape(row.name),
            f"{row.error:.1e}",
            f"{row.seconds * 1e6:.4g}",
            "" if expected is None else f"{expected[0] * 1e6:.4g}, {expected[1]}",
            f"{row.ratio:.2f}",
            f"{study.operations / row.seconds / 1e9:.4g}",
            roof_text(row.peak_share),
            f"{study.bytes / row.seconds / 1e9:.4g}",
            CACHED if is_passed(row.read_share) else f"{row.read_share:.0%}",
            str(version.listing.spills),
        )
    shown.print(table)
    told = f": {DISTURBED}, so times and ratios say little" if study.is_noisy else ""
    shown.print(f"noise: the first against itself {study.noise:.1%}{told}")
    for version in versions:
        shown.print(f"\n{escape(version.name)}: loops, and their part of the time by the cost model")
        for loop in loop_tree(version.func, study.sizes, machine):
            shown.print(f"{loop.share:5.0%}  {'  ' * loop.depth}{escape(loop.text)}")
        for loop in version.listing.loops()[:1]:
            facts = f"{loop.instructions} instructions, {loop.multiply_adds} of them multiply-adds"
            shown.print(
                f"inner loop {loop.label}: {facts}, {loop.vector_registers} vector registers, {loop.spills} spills"
            )
            if assembly:
                for line in loop.lines:
                    shown.print(escape(line.expandtabs(8)), soft_wrap=True)
