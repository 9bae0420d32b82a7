"""The tools of a stock MLIR installation: found, and run on text.

Igniter links no MLIR library; it runs `mlir-opt`, `mlir-translate` and MLIR's runner as programs. Searched in order:
the folder that `$IGNITER_MLIR` names; `mlir-opt` on the path, if its version is at least 19; `mlir-opt-N` for the
newest N down to 19; `bin` of Debian's `/usr/lib/llvm-N`. The other tools come from the same installation.

The runner is `mlir-cpu-runner` in LLVM 19 and `mlir-runner` later. Debian has its libraries in `libmlir-N`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from igniter.errors import IgniterError

VARIABLE = "IGNITER_MLIR"
"""The environment variable that names the folder of the tools."""

OLDEST = 19
NEWEST = 40
"""The range of major versions for which `mlir-opt-N` is searched."""

TIMEOUT = 120

TO_LLVM = (
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-math-to-funcs",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-vector-to-llvm",
    "--convert-index-to-llvm",
    "--arith-expand=include-bf16=true",
    "--convert-arith-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-cf-to-llvm",
    "--reconcile-unrealized-casts",
)
"""From `scf`, `memref`, `arith`, `math` and `vector` to the LLVM dialect. Functions of `math` are converted before
vectors, because `convert-math-to-libm` unrolls vectors with ops of `vector`."""

LINALG_PASSES = (
    "--llvm-request-c-wrappers",
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    "--buffer-deallocation-pipeline",
    "--convert-linalg-to-loops",
    "--convert-bufferization-to-memref",
    *TO_LLVM,
)
"""From `linalg` on tensors to the LLVM dialect. The caller owns the results and frees them."""

SCF_PASSES = (
    "--llvm-request-c-wrappers",
    "--canonicalize",
    "--convert-vector-to-scf",
    *TO_LLVM,
)
"""From `scf`, `memref` and `vector` to the LLVM dialect."""


class MlirError(IgniterError):
    """Raised if a tool of MLIR refuses a text, or if a call of its code fails."""

    code = "IGN0507"


class MlirMissing(MlirError):
    """Raised if no stock MLIR is installed."""

    code = "IGN0508"


@dataclass(frozen=True)
class MlirTools:
    """The programs of one installation; `runner` is None if it has none."""

    opt: str
    translate: str
    runner: str | None
    version: tuple[int, ...]

    @property
    def major(self) -> int:
        return self.version[0]


def find_tools() -> MlirTools:
    """Returns the tools of the installed MLIR; `MlirMissing` says what to install."""
    found = _find(os.environ.get(VARIABLE, ""), os.environ.get("PATH", ""))
    if isinstance(found, str):
        raise MlirMissing(found)
    return found


def missing_tools() -> str | None:
    """Returns why there are no tools, in one sentence for a test that skips; None if there are."""
    found = _find(os.environ.get(VARIABLE, ""), os.environ.get("PATH", ""))
    return found if isinstance(found, str) else None


@lru_cache(maxsize=8)
def _find(wanted: str, path: str) -> MlirTools | str:
    if wanted:
        folder = Path(wanted)
        candidates = [(str(folder), name) for name in _names("mlir-opt")]
        candidates += [(str(folder / "bin"), name) for name in _names("mlir-opt")]
    else:
        candidates = [(path, name) for name in _names("mlir-opt")]
        candidates += [(f"/usr/lib/llvm-{n}/bin", "mlir-opt") for n in range(NEWEST, OLDEST - 1, -1)]
    rejected = ""
    for where, name in candidates:
        opt = shutil.which(name, path=where)
        if opt is None:
            continue
        version = _version(opt)
        if not version or version[0] < OLDEST:
            rejected = f" ({opt} is of version {'.'.join(map(str, version)) or 'unknown'})"
            continue
        suffix = name.removeprefix("mlir-opt")
        translate = shutil.which(f"mlir-translate{suffix}", path=where)
        if translate is None:
            rejected = f" ({opt} has no mlir-translate{suffix} beside it)"
            continue
        runners = (shutil.which(f"{r}{suffix}", path=where) for r in ("mlir-runner", "mlir-cpu-runner"))
        return MlirTools(opt, translate, next((r for r in runners if r is not None), None), version)
    searched = f"in {wanted}, which {VARIABLE} names" if wanted else "on the path"
    return (
        f"no mlir-opt and mlir-translate of LLVM {OLDEST} or later {searched}{rejected}. Install Debian's "
        f"mlir-{OLDEST}-tools, or set the environment variable {VARIABLE} to the folder of the tools."
    )


def _names(tool: str) -> list[str]:
    return [tool, *(f"{tool}-{n}" for n in range(NEWEST, OLDEST - 1, -1))]


def _version(opt: str) -> tuple[int, ...]:
    """Returns the version that a tool prints; () if it prints none."""
    try:
        text = subprocess.run([opt, "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"version (\d+(?:\.\d+)*)", text)
    return tuple(map(int, found[1].split("."))) if found else ()


def run_tool(program: str, arguments: Sequence[str], text: str, timeout: float = TIMEOUT) -> str:
    """Returns the standard output of a tool for `text` as its standard input; raises `MlirError` with its message."""
    name = Path(program).name
    try:
        done = subprocess.run(
            [program, *arguments], input=text, capture_output=True, text=True, timeout=timeout, check=False
        )
    except OSError as error:
        raise MlirError(f"{program} does not start: {error.strerror}")
    except subprocess.TimeoutExpired:
        raise MlirError(f"{name} {' '.join(arguments)} did not end within {timeout:.0f} s")
    if done.returncode:
        how = f"status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        message = done.stderr.strip()[:4000] or done.stdout.strip()[-4000:] or "it printed no message"
        raise MlirError(f"{name} {' '.join(arguments)} failed with {how}:\n{message}")
    return done.stdout


def run_opt(text: str, passes: Sequence[str] = (), tools: MlirTools | None = None) -> str:
    """Returns `text` after `mlir-opt` with `passes`, each a flag (`--canonicalize`); no passes only parse, verify and
    print."""
    return run_tool((tools or find_tools()).opt, passes, text)


def to_llvm_ir(text: str, passes: Sequence[str] = LINALG_PASSES, tools: MlirTools | None = None) -> str:
    """Returns LLVM IR for a text that `passes` lower to the LLVM dialect."""
    tools = tools or find_tools()
    return run_tool(tools.translate, ["--mlir-to-llvmir"], run_opt(text, passes, tools))


def runner_libraries(tools: MlirTools) -> list[str]:
    """Returns the libraries of MLIR's runner: printing, copies of memrefs; raises `MlirError` if they are missing."""
    if tools.runner is None:
        raise MlirError(f"{tools.opt} has no mlir-runner or mlir-cpu-runner beside it")
    root = Path(tools.runner).resolve().parent.parent
    folders = [root / "lib", Path(f"/usr/lib/llvm-{tools.major}/lib")]
    found: list[str] = []
    for name in ("libmlir_runner_utils", "libmlir_c_runner_utils"):
        files = [f for folder in folders for f in sorted(folder.glob(f"{name}.so*"))]
        if not files:
            raise MlirError(f"MLIR's runner has no {name}.so in {folders[0]}; Debian has it in libmlir-{tools.major}")
        found.append(str(files[0]))
    return found


def run_main(text: str, passes: Sequence[str] = LINALG_PASSES, tools: MlirTools | None = None) -> str:
    """Returns what MLIR's own runner prints for the function `main` of `text`, after `passes`. It has no arguments and
    no results."""
    tools = tools or find_tools()
    libraries = runner_libraries(tools)
    lowered = run_opt(text, passes, tools)
    arguments = ["-e", "main", "--entry-point-result=void", f"--shared-libs={','.join(libraries)}"]
    assert tools.runner is not None
    return run_tool(tools.runner, arguments, lowered)
