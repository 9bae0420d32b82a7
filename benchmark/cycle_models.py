"""Micro-kernels by LLVM's cycle models of Arm's and Apple's cores (`llvm-mca`): no such machine is needed.

    python -m benchmark.cycle_models [--cpu neoverse-n1 ...] [--kind f32 ...] [--markdown]
    python -m benchmark.cycle_models --sve

The loop of a full register tile is simulated, as compiled for the core and for contiguous factors of a row; a tile in
stripes of rows is the loop that converts or interleaves its panel, and a loop for each stripe. `rate` is the time of
the loop's multiply-adds alone as a share of the time of the whole loop: 100% if nothing but the core's units for them
limits the loop. `fma/cycle` are the multiply-adds that start in a cycle.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from igniter.analysis.structured.contractions import PAIRED, WIDENED_STRIPE, tile_size
from igniter.backends.cpu.assembly import AssemblyLoop, Listing, _is_instruction
from igniter.backends.cpu.codegen import compile_assembly
from igniter.backends.cpu.matrix_products import has_matrix_products
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.tile_bodies import TileSize
from igniter.backends.cpu.tile_kernels import KINDS as TILE_KINDS
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


@dataclass(frozen=True)
class Assembly:
    """The code of a micro-kernel for a core."""

    cpu: str
    kind: str
    size: TileSize
    name: str
    text: str

    def loop(self, part: str) -> AssemblyLoop:
        """The loop of one of its functions: the one with the most multiply-adds. Of the loops for contiguous factors of
        a row and for others, the first one is shorter."""
        start = self.text.index(f"\n{self.name}.{part}:\n")
        body = self.text[start : self.text.index("\n.Lfunc_end", start)]
        return max(Listing(body).loops(), key=lambda loop: (loop.multiply_adds, -loop.instructions))

    def row(self, part: str) -> Row:
        """The figures of the loop of one of its functions."""
        loop = self.loop(part)
        lines = [line for line in loop.lines if _is_instruction(line)]
        adds = [line for line in lines if _MULTIPLY_ADD.match(line)]
        limit = cycles(adds, self.cpu) if adds else 0.0
        return Row(self.cpu, self.kind, self.size, len(lines), len(adds), cycles(loop.lines, self.cpu), limit)


def assembly(cpu: str, kind: str) -> Assembly:
    """Compiles the micro-kernel of a full tile."""
    target = target_of(cpu)
    pairs = kind in PAIRED and has_matrix_products(TILE_KINDS[kind], target)
    size = TileSize(*tile_size(target.vector_bytes, target.vector_registers, None, kind, pairs=pairs))
    name = tile_name(kind, size, target)
    return Assembly(cpu, kind, size, name, compile_assembly(emit_tile_kernel(name, target), target))


SVE_BYTES = {"neoverse-v1": 32, "neoverse-v2": 16, "a64fx": 64}
"""The bytes of a vector register of SVE in cores that have it."""

_SAME = (
    ("f32", "", 4, "fmla v{0}.4s, v30.4s, v31.s[0]", "fmla z{0}.s, z30.s, z7.s[0]"),
    ("i8i8", "dotprod", 16, "sdot v{0}.4s, v30.16b, v31.4b[0]", "sdot z{0}.s, z30.b, z7.b[0]"),
    ("i8i8", "i8mm", 32, "smmla v{0}.4s, v30.16b, v31.16b", "smmla z{0}.s, z30.b, z31.b"),
    ("bf16", "bf16", 16, "bfmmla v{0}.4s, v30.8h, v31.8h", "bfmmla z{0}.s, z30.h, z31.h"),
)
"""The instructions of products on NEON and on SVE: the kind, the feature, the multiply-adds in 16 bytes, and both."""


def vector_rates(cpu: str) -> list[tuple[str, str, float, float]]:
    """Returns the kind, the instruction, and the multiply-adds of elements in a cycle on NEON and on SVE: independent
    instructions without a load."""
    found: list[tuple[str, str, float, float]] = []
    sums = range(8, 28)
    for kind, feature, adds, neon, sve in _SAME:
        if feature and not target_of(cpu).has_feature(feature):
            continue
        narrow, wide = (cycles([f"  {text.format(n)}" for n in sums], cpu) for text in (neon, sve))
        lanes = adds * len(sums)
        found.append((kind, neon.split()[0], lanes / narrow, lanes * SVE_BYTES[cpu] / 16 / wide))
    return found


def row(cpu: str, kind: str) -> Row:
    """Simulates a micro-kernel; if its tile is in stripes, a step of the loop that converts a panel, and one of the
    loop of each stripe."""
    code = assembly(cpu, kind)
    part = next((p for p in ("widen", "pair") if f"\n{code.name}.{p}:\n" in code.text), None)
    if part is None:
        return code.row(str(code.size.rows))
    convert, stripe = code.row(part), code.row(f"wide.{WIDENED_STRIPE}")
    count = code.size.rows // WIDENED_STRIPE
    return Row(
        cpu,
        kind,
        code.size,
        convert.instructions + count * stripe.instructions,
        count * stripe.multiply_adds,
        convert.cycles + count * stripe.cycles,
        count * stripe.limit,
    )


def cycles(lines: Sequence[str], cpu: str) -> float:
    """The cycles of an iteration."""
    simulator = program()
    assert simulator is not None
    arguments = ["-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-resource-pressure=0"]
    # The assembler of an older LLVM may know fewer features by the name of a core.
    arguments += ["-mattr=+sve,+dotprod,+i8mm,+bf16,+fullfp16", "-instruction-info=0"]
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
    parser.add_argument("--sve", action="store_true", help="compare the instructions of NEON and SVE instead")
    args = parser.parse_args()
    if program() is None:
        print("skipped: there is no llvm-mca (apt-get install llvm)")
        return 0
    if args.sve:
        for cpu in SVE_BYTES:
            for kind, name, neon, sve in vector_rates(cpu):
                print(f"{cpu:<14}{kind:<6}{name:<8}NEON {neon:>6.1f}  SVE of {8 * SVE_BYTES[cpu]} bits {sve:>6.1f}")
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
