"""Thirteen public miscompiles of MLIR 19: found by the check and shrunk, as a table.

`python -m tests.verification.miscompiles [NUMBER...]` prints it. The files are small already, so each one is first made
larger: a function beside it, and ops that do not matter inside of it.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from igniter.runtime.mlir_tools import find_tools, run_tool
from igniter.toolbox.reduce.mlir_case import MlirCase
from igniter.toolbox.reduce.reducer import reduce
from igniter.toolbox.reduce.request import ReduceOptions
from igniter.verification.external_passes import Command, check_text
from igniter.verification.mlir.machine import name_of
from igniter.verification.mlir.reading import GENERIC, parse_module, print_module

FOLDER = Path(__file__).parent / "mlir_miscompiles"
FILES = sorted(FOLDER.glob("*.mlir"))

UNRELATED = """
func.func @unrelated(%a: memref<6xi32>, %n: index) -> i32 {
  %zero = arith.constant 0 : i32
  %five = arith.constant 5 : i32
  %start = arith.constant 0 : index
  %three = arith.constant 3 : index
  %one = arith.constant 1 : index
  %local = memref.alloca() : memref<3xi32>
  scf.for %i = %start to %three step %one {
    %wide = arith.index_cast %i : index to i32
    %scaled = arith.muli %wide, %five : i32
    memref.store %scaled, %local[%i] : memref<3xi32>
  }
  %sum = scf.for %i = %start to %three step %one iter_args(%part = %zero) -> i32 {
    %value = memref.load %local[%i] : memref<3xi32>
    %next = arith.addi %part, %value : i32
    scf.yield %next : i32
  }
  %large = arith.cmpi sgt, %sum, %five : i32
  %chosen = arith.select %large, %sum, %five : i32
  memref.store %chosen, %a[%one] : memref<6xi32>
  return %chosen : i32
}
"""


@dataclass(frozen=True)
class Row:
    """One miscompile: what was found, and what is left of it."""

    number: str
    passes: str
    found: str
    original: int
    """The ops of the file."""
    before: int
    """The ops of the larger variant."""
    after: int
    seconds: float
    text: str
    """The reduced module."""

    def __str__(self) -> str:
        sizes = f"{self.original:>3} {self.before:>4} -> {self.after:<3}"
        return f"{self.number:>7} {self.passes:<45.45} {sizes} {self.seconds:>6.1f}  {self.found:.60}"


def command_for(path: Path) -> str:
    """Returns the command with the pass that the first line of a file names."""
    passes = path.read_text().splitlines()[0].removeprefix("// pass: ")
    return f"{shlex.quote(find_tools().opt)} {passes}"


def enlarged(text: str) -> str:
    """Returns a module with an unrelated function, and with its ops at the end of every other function.

    One of the passes looks only at the first op of a function.
    """
    opt = find_tools().opt
    module, other = (parse_module(run_tool(opt, GENERIC, t)) for t in (text, UNRELATED))
    (unrelated,) = other.ops
    for func in module.ops:
        if not func.regions[0].blocks:
            continue
        block = func.regions[0].blocks[0]
        end = block.last_op
        assert end is not None
        inner = unrelated.clone().regions[0].blocks[0]
        # The last two write to an argument, which the function does not have, and return.
        for op in list(inner.ops)[:-2]:
            op.detach()
            block.insert_ops_before([op], end)
    unrelated.detach()
    module.body.block.add_op(unrelated)
    return run_tool(opt, (), print_module(module))


def size_of(text: str) -> int:
    """Returns the number of ops, constants, terminators and functions left out."""
    module = parse_module(run_tool(find_tools().opt, GENERIC, text))
    return MlirCase(module, ".mlir").size.ops - sum(name_of(op) == "func.func" for op in module.ops)


def shrink(path: Path, folder: Path) -> Row:
    """Enlarges a miscompile, finds it and reduces it."""
    began = time.monotonic()
    text = path.read_text()
    larger, output = folder / f"{path.stem}.mlir", folder / f"{path.stem}.reduced.mlir"
    larger.write_text(enlarged(text))
    command = command_for(path)
    found = reduce(larger, output, ReduceOptions(check_with=command))
    left = output.read_text()
    again = check_text(left, Command.parse(command)).finding
    assert again is not None and again.kind == "wrong", f"{path.stem} does not fail any more:\n{left}"
    seconds = time.monotonic() - began
    passes = " ".join(shlex.split(command)[1:])
    sizes = (size_of(text), size_of(larger.read_text()), size_of(left))
    return Row(path.stem.removeprefix("llvm_"), passes, found.outcome.message, *sizes, seconds, left)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        for path in FILES:
            if not sys.argv[1:] or any(number in path.stem for number in sys.argv[1:]):
                row = shrink(path, Path(folder))
                print(row, flush=True)
                if sys.argv[1:]:
                    print(row.text)


if __name__ == "__main__":
    main()
