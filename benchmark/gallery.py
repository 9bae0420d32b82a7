"""The schedules of `docs/gallery` beside the default author's, on the same kernels.

    python -m benchmark.gallery                    all ten, as a table
    python -m benchmark.gallery --only blis        one of them
    python -m benchmark.gallery --write            the table into docs/gallery/README.md

Both versions of a kernel and a second run of the default take turns; a figure is the median of ratios over the rounds.
Results are compared with the interpreter of the structured level before anything is timed. One thread. The schedules
are written for AVX2: panels of 16 columns, tiles of 6 rows, vectors of 8.
"""

from __future__ import annotations

import argparse
import platform
from dataclasses import dataclass
from pathlib import Path

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import KernelOp
from igniter.schedules.citation import cite_schedule
from igniter.targets import Target, backend_for
from igniter.toolbox.kernel.workbench import Study, find_kernel, schedule, study
from igniter.toolbox.roofs import roof_text

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "gallery"
PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"

SIZES: dict[str, dict[str, int]] = {
    "blis": {"m": 192},
    "direct_convolution": {},
    "flash_attention": {"s": 120, "t": 4096},
    "gotoblas_small_cache": {"m": 192},
    "halide_blur": {"h": 1024, "w": 1536},
    "online_softmax": {"n": 16},
    "persistent_rows": {"n": 512},
    "split_k": {},
    "systolic_tile": {"m": 512},
    "winograd": {},
}
"""The schedules, by file, with the sizes of symbols."""


@dataclass(frozen=True)
class Figure:
    """One row: a schedule by hand beside the default author's."""

    name: str
    source: str
    digest: str
    sizes: dict[str, int]
    result: Study

    def row(self) -> str:
        """Returns the row of the page's table."""
        default, own = self.result.versions
        sizes = ", ".join(f"{n} = {s:,}" for n, s in self.sizes.items()) or "fixed"
        peak = roof_text(own.peak_share)
        link = f"[{self.name}]({self.name.replace('-', '_')}.mlir)"
        return (
            f"| {link} | `{self.digest}` | {sizes} | {own.seconds * 1e6:,.1f} | {own.seconds / default.seconds:.2f} | "
            f"{self.result.noise:.1%} | {peak} |"
        )


HEAD = (
    "| schedule | hash | sizes | us | of the default's time | noise | of peak |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def without_schedules(kernel: KernelOp) -> KernelOp:
    """Returns a copy of a kernel without schedules, for the default author."""
    copy = kernel.clone()
    for op in copy.computations:
        op.schedule = None
    return copy


def measure(name: str, target: Target, machine: MachineModel, rounds: int) -> Figure:
    """Compares and times one schedule of the gallery."""
    kernel = find_kernel(FOLDER / f"{name}.mlir", "", machine)
    versions = [schedule("default", without_schedules(kernel), target), schedule("by hand", kernel, target)]
    citation = cite_schedule(kernel)
    result = study(kernel, versions, target, sizes=SIZES[name], rounds=rounds)
    return Figure(citation.name, citation.source, citation.hash, SIZES[name], result)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(SIZES), help="one schedule; may be repeated")
    parser.add_argument("--rounds", type=int, default=15, help="how often each version gets its turn")
    parser.add_argument("--target", default="native", help="the CPU to compile for (default: this machine)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/gallery/README.md")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write writes the whole table; leave out --only")
    backend = backend_for(given.target)
    target = backend.target_of(given.target)
    machine = backend.machine_for(target)
    lines = [HEAD]
    for name in given.only or SIZES:
        lines.append(measure(name, target, machine, given.rounds).row())
        print(lines[-1], flush=True)
    if given.write:
        where = f"On {target.key} ({platform.machine()}), one thread, {given.rounds} rounds:"
        text = PAGE.read_text()
        before, rest = text.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{where}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
