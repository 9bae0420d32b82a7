"""Micro-kernels by LLVM's cycle models of Arm's and Apple's cores (`llvm-mca`): no such machine is needed.

    python -m benchmark.cycle_models [--cpu neoverse-n1 ...] [--kind f32 ...] [--markdown]

The loop of a full register tile is simulated, as compiled for the core. `rate` is the time of the loop's multiply-adds
alone as a share of the time of the whole loop: 100% if nothing but the core's units for them limits the loop.
`fma/cycle` are the multiply-adds that start in a cycle.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from igniter.analysis.structured.contractions import tile_size
from igniter.backends.cpu.assembly import AssemblyLoop, Listing, _is_instruction
from igniter.backends.cpu.codegen import compile_assembly
from igniter.backends.cpu.target import Target, target_of
from igniter.backends.cpu.tile_bodies import TileSize
from igniter.backends.cpu.tile_kernels import emit_tile_kernel, tile_name

CPUS = ("neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1")
"""Graviton 2, 3 and 4 have the cores Neoverse N1, V1 and V2."""
KINDS = {"f32": "", "f64": "", "f32f16": "", "f32bf16": "", "i8i8": "dotprod", "u8i8": "i8mm", "bf16": "bf16"}
"""The micro-kernels, with the feature of cores that have their instruction."""
PROGRAMS = (*(f"llvm-mca-{n}" for n in range(25, 16, -1)), "llvm-mca")
ITERATIONS = 400
GOAL = 0.85

_MULTIPLY_ADD = re.compile(r"^\s+(?:f?mla|fmls|(?:[su]|us|su|bf)(?:dot|mmla))\b")


@dataclass(frozen=True)
class Row:
    """The figures of one micro-kernel on one core."""

    cpu: str
    kind: str
    size: TileSize
    instructions: int
    multiply_adds: int
    cycles: float
    limit: float
    """The cycles of the multiply-adds alone."""

    @property
    def rate(self) -> float:
        """The share of the time that the multiply-adds need."""
        return self.limit / self.cycles

    def cells(self) -> list[str]:
        """The row of a table."""
        tile = f"{self.size.rows}x{self.size.panels}"
        speed = f"{self.multiply_adds / self.cycles:.2f}"
        return [self.cpu, self.kind, tile, str(self.instructions), str(self.multiply_adds), speed, f"{self.rate:.0%}"]


HEAD = ["core", "kind", "tile", "instructions", "multiply-adds", "fma/cycle", "rate"]


def program() -> str | None:
    """The simulator; None without one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def loop_of(kind: str, target: Target) -> tuple[AssemblyLoop, TileSize]:
    """The loop of a full tile: the one with the most multiply-adds."""
    size = TileSize(*tile_size(target.vector_bytes, target.vector_registers, None, kind))
    listing = Listing(compile_assembly(emit_tile_kernel(tile_name(kind, size, target), target), target))
    return max(listing.loops(), key=lambda loop: (loop.multiply_adds, loop.instructions)), size


def row(cpu: str, kind: str) -> Row:
    """Simulates a micro-kernel."""
    loop, size = loop_of(kind, target_of(cpu))
    lines = [line for line in loop.lines if _is_instruction(line)]
    adds = [line for line in lines if _MULTIPLY_ADD.match(line)]
    return Row(cpu, kind, size, len(lines), len(adds), cycles(loop.lines, cpu), cycles(adds, cpu))


def cycles(lines: Sequence[str], cpu: str) -> float:
    """The cycles of an iteration."""
    simulator = program()
    assert simulator is not None
    arguments = ["-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-resource-pressure=0"]
    # The assembler of an older LLVM may know fewer features by the name of a core.
    arguments += ["-mattr=+dotprod,+i8mm,+bf16,+fullfp16", "-instruction-info=0"]
    text = "\n".join(line for line in lines if not line.strip().startswith(("//", ".")) or line.strip().endswith(":"))
    done = subprocess.run([simulator, *arguments], input=text + "\n", capture_output=True, text=True, check=True)
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    assert total is not None, done.stdout
    return int(total[1]) / ITERATIONS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", nargs="+", default=CPUS)
    parser.add_argument("--kind", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    if program() is None:
        print("skipped: there is no llvm-mca (apt-get install llvm)")
        return 0
    pairs = [(cpu, kind) for cpu in args.cpu for kind in args.kind]
    rows = [row(cpu, kind) for cpu, kind in pairs if not KINDS[kind] or target_of(cpu).has_feature(KINDS[kind])]
    if args.markdown:
        print(
            "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ["---"] * len(HEAD), *(r.cells() for r in rows)))
        )
    else:
        for cells in (HEAD, *(r.cells() for r in rows)):
            print("".join(f"{cell:<14}" for cell in cells))
    return int(any(r.rate < GOAL for r in rows))


if __name__ == "__main__":
    sys.exit(main())
