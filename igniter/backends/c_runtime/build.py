"""Compiles the run time: `python -m igniter.backends.c_runtime.build` writes `ir/ARCH/UNIT.ll` from `src/UNIT.c`.

Only a change of the C sources needs it, and for it the `ziglang` wheel of the version in pyproject.toml's extra `dev`:
its clang is of the LLVM of llvmlite. Everything that would bind the IR to a CPU or to a place is removed, so every
build gives the same text.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from igniter.backends.c_runtime.units import SYSTEM_UNITS, UNITS
from igniter.errors import IgniterError

HERE = Path(__file__).parent
SOURCES = HERE / "src"
TRIPLES = {"aarch64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
FLAGS = (
    "-std=c11",
    "-ffreestanding",
    "-O1",
    # Type-based alias analysis gains nothing here, and its metadata is half of the text.
    "-relaxed-aliasing",
    "-fvisibility=hidden",
    "-mrelocation-model",
    "pic",
    "-pic-level",
    "2",
    "-Qn",
    "-Wall",
    "-Wextra",
    # Callbacks have the parameters of their types.
    "-Wno-unused-parameter",
    "-Werror",
    "-emit-llvm",
)

# The layout and the flags would become those of every kernel that the unit is linked into; function attributes for a
# CPU would keep LLVM from inlining a function into code for another one.
_MODULE_LINES = re.compile(
    r"^(?:; ModuleID|source_filename|target datalayout|!llvm\.module\.flags|!llvm\.errno).*\n", re.M
)
_CPU_ATTRIBUTES = re.compile(
    r' "(?:target-cpu|target-features|tune-cpu|min-legal-vector-width|no-trapping-math|stack-protector-buffer-size)"'
    r'="[^"]*"'
)


def compile_unit(name: str, arch: str, sources: Path = SOURCES, defines: Sequence[str] = ()) -> str:
    """Returns the IR of a unit as it is shipped; raises `IgniterError` without `ziglang`, or with clang's messages."""
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise IgniterError("the run time is compiled by the ziglang package: pip install '.[dev]'")
    headers = Path(spec.origin).parent / "lib" / "include"
    command = [sys.executable, "-m", "ziglang", "clang", "-cc1", "-triple", TRIPLES[arch], *FLAGS]
    command += ["-internal-isystem", str(headers), *(f"-D{d}" for d in defines), "-o", "-", f"{name}.c"]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise IgniterError(f"clang refuses {name}.c for {arch}:\n{done.stderr.strip()}")
    return _normalized(done.stdout)


def _normalized(text: str) -> str:
    """Returns the text as llvmlite prints it, without what would bind it to a CPU or a place."""
    text = _CPU_ATTRIBUTES.sub("", _MODULE_LINES.sub("", text))
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return _MODULE_LINES.sub("", str(module)).strip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the IR of all units."""
    parser = argparse.ArgumentParser(prog="python -m igniter.backends.c_runtime.build", description=__doc__)
    parser.parse_args(arguments)
    for arch in TRIPLES:
        folder = HERE / "ir" / arch
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*UNITS, *SYSTEM_UNITS):
            text = compile_unit(name, arch)
            (folder / f"{name}.ll").write_text(text, "utf-8")
            print(f"{folder.relative_to(HERE)}/{name}.ll: {len(text):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
