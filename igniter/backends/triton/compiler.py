"""Text of kernels to PTX, by Triton, and to machine code, by the assembler that comes with it.

Triton is an optional package (`pip install 'onnx-igniter[triton]'`) for Linux. It needs no GPU to compile. What a text
becomes does not depend on where it is: source lines are left out, and the file that Python compiles is one in memory.

The PTX is for sm_80, and every later GPU takes it: Triton's code for sm_90 and later runs on that one alone.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.backends.triton.python_source import type_name
from igniter.backends.triton.target import PORTABLE
from igniter.dialects.triton import ALIGNMENT, FuncOp, PointerType
from igniter.distribution import install_command
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.ir import Attribute

PTX_VERSION = 80
"""Of the PTX of most GPUs: drivers since CUDA 12.0 take it."""

PTX_VERSIONS = {90: 84, 100: 87, 120: 87}
"""Of that of others: drivers since CUDA 12.4 and 12.8 take it."""

WARP = 32
"""The threads of a warp."""

_SIGNATURES = {
    "tl.int1": "i1",
    "tl.int8": "i8",
    "tl.int16": "i16",
    "tl.int32": "i32",
    "tl.int64": "i64",
    "tl.float16": "fp16",
    "tl.bfloat16": "bf16",
    "tl.float32": "fp32",
    "tl.float64": "fp64",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel that Triton compiled."""

    ptx: str
    entry: str
    """The name of the function in it."""
    parameters: int
    """How many it takes: those of the func, and two pointers, which are null."""
    threads: int
    """Of a program."""
    shared: int
    """Bytes of shared memory of a program."""


@dataclass(frozen=True)
class Resources:
    """What the assembler says of a kernel on one GPU."""

    registers: int
    """Of a thread."""
    spills: int
    """Bytes that a thread keeps in memory for want of registers, stored and loaded."""
    stack: int
    """Bytes of its frame."""
    shared: int
    """Bytes that are fixed; those that a launch asks for come on top."""


def find_triton() -> Any:
    """The package; `IgniterError` says how to get it."""
    return part_of_triton("triton")


def part_of_triton(name: str) -> Any:
    """A module of the package; `IgniterError` says how to get it."""
    os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
    try:
        return import_module(name)
    except ImportError as error:
        raise IgniterError(
            f"kernels for GPUs are compiled by Triton, which is not installed: {install_command('triton')} (Linux)"
        ) from error


def signature_of(func: FuncOp) -> tuple[str, ...]:
    """The types of the arguments, in Triton's names."""
    return tuple(_signature(a.type) for a in func.body.block.args)


def _signature(t: Attribute) -> str:
    if isinstance(t, PointerType):
        return f"*{_SIGNATURES[type_name(t.pointee)]}"
    return _SIGNATURES[type_name(t)]


def load_source(text: str, **names: Any) -> Any:
    """The function `kernel` of a text, with `names` beside Triton's own in its module."""
    triton, tl = find_triton(), part_of_triton("triton.language")
    libdevice = part_of_triton("triton.language.extra.cuda.libdevice")
    file = f"<igniter {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    # Triton reads the source of a function again from its file.
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": "igniter_kernel", **names}
    exec(compile(text, file, "exec"), module)
    return module["kernel"]


def compile_source(
    text: str, signature: Sequence[str], warps: int = 4, stages: int = 3, arch: int = PORTABLE
) -> Kernel:
    """Compiles the text of a kernel whose arguments have these types; `IgniterError` where Triton refuses it."""
    triton = find_triton()
    function = load_source(text)
    names: list[str] = function.arg_names
    assert len(names) == len(signature), f"the kernel takes {len(names)} arguments, not {len(signature)}"
    types = dict(zip(names, signature, strict=True))
    aligned = {(k,): [["tt.divisibility", ALIGNMENT]] for k, kind in enumerate(signature) if kind.startswith("*")}
    source = part_of_triton("triton.compiler").ASTSource(fn=function, signature=types, constexprs={}, attrs=aligned)
    with own_cache(triton):
        return _compiled(triton, source, len(signature), warps, stages, arch)


def compile_ttir(text: str, arguments: int, warps: int = 4, stages: int = 3, arch: int = PORTABLE) -> Kernel:
    """Compiles a module in Triton's IR, which a func's generic form is."""
    triton = find_triton()
    with own_cache(triton), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttir"
        path.write_text(text, encoding="utf-8")
        return _compiled(triton, str(path), arguments, warps, stages, arch)


def _compiled(triton: Any, source: Any, arguments: int, warps: int, stages: int, arch: int) -> Kernel:
    options: dict[str, Any] = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    # Triton's own choice is the newest that its assembler knows, which most drivers do not.
    options["ptx_version"] = PTX_VERSIONS.get(arch, PTX_VERSION)
    try:
        target = part_of_triton("triton.backends.compiler").GPUTarget("cuda", arch, WARP)
        made = triton.compile(source, target=target, options=options)
    except Exception as error:
        raise IgniterError(f"Triton refuses a kernel: {type(error).__name__}: {error}") from error
    meta, ptx = made.metadata, made.asm["ptx"]
    if meta.global_scratch_size or meta.profile_scratch_size:
        raise IgniterError("Triton wants memory for a kernel that launches do not give")
    kernel = Kernel(ptx, meta.name, len(_parameters(ptx)), WARP * warps, meta.shared)
    if kernel.parameters != arguments + 2:
        raise IgniterError(f"a kernel of {arguments} arguments has {kernel.parameters} parameters in PTX")
    return kernel


def _parameters(ptx: str) -> list[str]:
    """The declarations of the parameters of the one entry of a module."""
    entry = re.search(r"\.entry\s+[\w$]+\((.*?)\)", ptx, re.DOTALL)
    return re.findall(r"\.param [^,\n]+", entry.group(1)) if entry else []


@contextmanager
def own_cache(triton: Any) -> Generator[None]:
    """Triton's files in a folder that goes: Igniter has a cache of its own."""
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        yield


def resources_of(kernel: Kernel, arch: int) -> Resources:
    """What the assembler says of a kernel for `sm_<arch>`; `IgniterError` where it refuses it."""
    found = find_triton().knobs.nvidia
    # What is compiled for one kind of GPU since sm_90 is for that alone: its target, and its name, end in a letter.
    alone = re.search(r"^\.target (sm_\d+a)\b", kernel.ptx, re.MULTILINE)
    program = (found.ptxas_blackwell if arch >= 100 or alone else found.ptxas).path
    name = alone.group(1) if alone else f"sm_{arch}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(kernel.ptx, encoding="utf-8")
        command = [program, "-v", f"--gpu-name={name}", str(path), "-o", str(path.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise IgniterError(f"ptxas refuses a kernel for sm_{arch}: {done.stderr.strip()}")
    return _read_resources(done.stderr)


def _read_resources(text: str) -> Resources:
    def number(pattern: str) -> int:
        return sum(int(found) for found in re.findall(pattern, text))

    return Resources(
        registers=number(r"Used (\d+) registers"),
        spills=number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        stack=number(r"(\d+) bytes stack frame"),
        shared=number(r"(\d+) bytes smem"),
    )


def identity() -> Mapping[str, str]:
    """What decides what a text becomes."""
    return {"triton": str(find_triton().__version__), "ptx": str((PTX_VERSION, PTX_VERSIONS))}
