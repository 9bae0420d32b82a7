"""A func of launches as text: its kernels, and the host code to launch them.

    # kernel k0123456789abcdef r0.0 warps 4 stages 1 (*fp32, *fp32, i64)
    @triton.jit
    def kernel(v0, v1, v2):
        ..

    # host r0 calls r1 r2
    define void @r0(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) .. LLVM IR

A kernel's name is a hash of the rest of its text, so equal kernels of a library are merged; `r0.0` is its name in
messages. `calls` names the callees of a program: they launch as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from igniter.backends.launches import ANY_LATER, KERNEL_TYPE, MAP_TYPE, kernel_symbol
from igniter.backends.ort.messages import c_literal
from igniter.backends.triton.compiler import Kernel, TensorMap, compile_source, signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.target import ALONE
from igniter.dialects import triton as tt
from igniter.dialects.loop import AllocOp, CallOp, FuncOp, IfOp, IfSharedOp, LaunchOp, ViewOp
from igniter.dialects.sym import space_of
from igniter.dialects.triton.loops import specializes
from igniter.errors import IgniterError
from igniter.targets import backend_for

KERNEL, HOST = "# kernel ", "# host "
"""The starts of the line above a kernel, and of the line above host code."""

SPECIALIZED = "specialized"
"""The word, in the line above a kernel, for loops with warps for their loads."""
SPECIALIZED_SINCE = 100
"""The first capability with such loops: Triton 3.9 fails to compile them for sm_90."""


CODE_ALIGNMENT = 64
"""The alignment of the codes in a library, in bytes: machine code is an ELF file."""


@dataclass(frozen=True)
class KernelText:
    """A kernel's text, and the parameters of its launch."""

    name: str
    label: str
    warps: int
    stages: int
    signature: tuple[str, ...]
    source: str
    specialized: bool = False
    """True if a loop has warps for its loads."""

    def compiled(self, arch: int) -> Kernel:
        """Returns the kernel as PTX; raises `IgniterError` if Triton refuses it."""
        if self.specialized and arch < SPECIALIZED_SINCE:
            raise IgniterError(
                f"kernel {self.label}: warps for loads exist since sm_{SPECIALIZED_SINCE}, not on sm_{arch}; remove "
                "'specialized' from its schedule, or compile for later GPUs alone"
            )
        return _compiled(self.source, self.signature, self.warps, self.stages, arch)


@lru_cache(maxsize=512)
def _compiled(source: str, signature: tuple[str, ...], warps: int, stages: int, arch: int) -> Kernel:
    return compile_source(source, signature, warps, stages, arch)


# -- making it --------------------------------------------------------------------------------------------------------


def emit_func(func: FuncOp) -> str:
    """Returns the text of a func and of its kernels in its module; `IgniterError` names an op without host code."""
    module = func.parent_op()
    beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
    kernels = {op.sym_name.data: op for op in beside}
    if func.team is not None:
        raise IgniterError(f"@{func.sym_name.data} asks for a team of threads; one launches what a GPU runs")
    host = func.clone()
    texts: dict[str, str] = {}
    calls: dict[str, None] = {}
    for op in [each for each in host.walk() if each is not host]:
        if isinstance(op, LaunchOp):
            kernel = kernels[op.kernel]
            special = f" {SPECIALIZED}" if specializes(kernel) else ""
            head = f"warps {op.warps} stages {op.stages}{special} ({', '.join(signature_of(kernel))})"
            source = print_kernel(kernel)
            name = "k" + hashlib.sha256(f"{head}\n{source}".encode()).hexdigest()[:16]
            texts.setdefault(name, f"{KERNEL}{name} {op.kernel} {head}\n{source}")
            op.kernel = name
        elif isinstance(op, CallOp):
            calls[op.callee] = None
        elif isinstance(op, AllocOp) and space_of(op.result.type) == "scratch":
            continue
        elif not isinstance(op, (IfOp, IfSharedOp, ViewOp)):
            raise IgniterError(
                f"@{func.sym_name.data}: the host launches kernels and calls funcs that do; it has no way to do "
                f"{op.name} on what is on a GPU"
            )
    said = f" calls {' '.join(calls)}" if calls else ""
    cpu = backend_for("native")
    code = cpu.emit_func(host, cpu.least(cpu.target_of("native")))
    return "\n\n".join([*texts.values(), f"{HOST}{func.sym_name.data}{said}\n{code}"])


def emit_module(module: ModuleOp) -> str:
    """Returns the text of every func of a module."""
    return "\n\n".join(emit_func(op) for op in module.ops if isinstance(op, FuncOp))


# -- reading it -------------------------------------------------------------------------------------------------------


def kernels_of(text: str) -> list[KernelText]:
    """Returns the kernels of a text, in its order."""
    found: list[KernelText] = []
    for head, body in _parts(text):
        if head.startswith(KERNEL):
            said, _, types = head.removeprefix(KERNEL).removesuffix(")").partition(" (")
            name, label, _, warps, _, stages, *hints = said.split(" ")
            signature = tuple(types.split(", ")) if types else ()
            found.append(KernelText(name, label, int(warps), int(stages), signature, body, SPECIALIZED in hints))
    return found


def launched(texts: Iterable[str]) -> dict[str, list[str]]:
    """Returns the kernels launched by each func of some texts, directly or through callees."""
    own: dict[str, list[str]] = {}
    calls: dict[str, list[str]] = {}
    for text in texts:
        waiting: list[str] = []
        for head, _ in _parts(text):
            if head.startswith(KERNEL):
                waiting.append(head.removeprefix(KERNEL).split(" ")[0])
                continue
            name, *said = head.removeprefix(HOST).split(" ")
            own[name], calls[name], waiting = waiting, said[1:], []

    def of(name: str) -> list[str]:
        found = [*own[name], *(kernel for callee in calls[name] for kernel in of(callee))]
        return list(dict.fromkeys(found))

    return {name: of(name) for name in own}


def host_module(text: str, archs: Sequence[int]) -> str:
    """Returns the LLVM module of the funcs of a text, with their kernels as machine code and PTX for each of the
    GPUs."""
    codes = [body for head, body in _parts(text) if head.startswith(HOST)]
    if len(codes) > 1:
        cpu = backend_for("native")
        codes = [cpu.merged(codes, cpu.least(cpu.target_of("native")))]
    kernels = {kernel.name: kernel for kernel in kernels_of(text)}
    return "\n".join([*codes, *(_described(kernel, archs) for kernel in kernels.values())]) + "\n"


def _described(kernel: KernelText, archs: Sequence[int]) -> str:
    """Returns the globals of a kernel: every object with a launch of it defines them, and linking keeps one of each.

    A GPU gets the first code within its capability that its driver accepts. So the latest GPU comes first, and of each
    its machine code before its PTX.
    """
    label = kernel.label.encode()
    lines = [f'@"label.{kernel.name}" = private unnamed_addr constant [{len(label) + 1} x i8] {c_literal(label)}']
    codes = [code for arch in sorted(archs) for code in _codes(kernel, arch)]
    addresses = sum(kind.startswith("*") for kind in kernel.signature)
    others = "null"
    for code in codes:
        symbol = kernel_symbol(kernel.name)
        here = symbol if code is codes[-1] else f'{symbol[:-1]}.{code.name}"'
        place, entry = f'@"igniter.code.{kernel.name}.{code.name}"', f'@"entry.{kernel.name}.{code.name}"'
        lines += [f"${name[1:]} = comdat any" for name in (place, here)]
        for name, data, kind, more in (
            (entry, code.made.entry.encode(), "private unnamed_addr", ""),
            (place, code.data, "weak_odr hidden", f", comdat, align {CODE_ALIGNMENT}"),
        ):
            lines.append(f"{name} = {kind} constant [{len(data) + 1} x i8] {c_literal(data)}{more}")
        maps, count = "null", len(code.made.maps)
        if count:
            maps = f'@"maps.{kernel.name}.{code.name}"'
            items = ", ".join(_map(each) for each in code.made.maps)
            lines.append(f"{maps} = private unnamed_addr constant [{count} x {MAP_TYPE}] [{items}]")
        fields = (
            f'ptr @"label.{kernel.name}", ptr {place}, ptr {entry}, i32 {code.made.threads}, i32 {code.made.shared}, '
            f"i64 {addresses}, i32 {code.least}, i32 {code.most}, ptr {others}, i64 {count}, ptr {maps}"
        )
        lines.append(f"{here} = weak_odr hidden constant {KERNEL_TYPE} {{ {fields} }}, comdat")
        others = here
    return "\n".join(lines)


def _map(given: TensorMap) -> str:
    """Returns the constant of a tensor map; CUDA's first dim is the last one."""
    box = ", ".join(f"i32 {size}" for size in [*reversed(given.box), *[0] * (5 - given.rank)])
    numbers = ", ".join(f"i32 {n}" for n in (given.parameter, given.rank, given.type, given.swizzle, given.bytes))
    return f"{MAP_TYPE} {{ {numbers}, [5 x i32] [{box}] }}"


@dataclass(frozen=True)
class _Code:
    """One code of a kernel."""

    name: str
    """Unique among the codes of the kernel."""
    made: Kernel
    data: bytes
    least: int
    """The least compute capability of the GPUs that accept it, times ten."""
    most: int


def _codes(kernel: KernelText, arch: int) -> tuple[_Code, _Code]:
    """Returns the PTX of a kernel for a GPU, and its machine code for GPUs of exactly this capability."""
    made = kernel.compiled(arch)
    ptx = _Code(f"{arch}", made, made.ptx.encode(), *capabilities(arch))
    return ptx, _Code(f"{arch}.cubin", made, made.machine_code, arch, arch)


def capabilities(arch: int) -> tuple[int, int]:
    """Returns the least and the greatest compute capability, times ten, of the GPUs that accept PTX for `arch`."""
    return (arch, ANY_LATER) if arch < ALONE else (arch, arch)


def _parts(text: str) -> list[tuple[str, str]]:
    """Returns the line above each kernel and each host code, and the text below it."""
    parts: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith((KERNEL, HOST)):
            parts.append((line, []))
        elif parts:
            parts[-1][1].append(line)
    return [(head, "\n".join(lines).strip("\n") + "\n") for head, lines in parts]
