"""Compiles the text of kernels with Triton to PTX, and to machine code (cubins) by the assembler in its package.

Triton is an optional package (`pip install 'onnx-igniter[triton]'`) for Linux. It needs no GPU to compile. The output
does not depend on the place of the text: source lines are omitted, and Python compiles from a file in memory.

The PTX is for sm_80, and runs on every later GPU: Triton's code for sm_90 and later runs on that GPU alone.

A descriptor is an argument of type `tensordesc<fp16[128,64]>`. In PTX it is 128 bytes, the sizes of the tensor (32 bits
each) and its strides (64 bits each). Triton chooses the swizzle, and divides the block into boxes for it: the innermost
dim of a box has as many bytes as the swizzle spans.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.backends.triton.python_source import type_name
from igniter.backends.triton.target import PORTABLE
from igniter.dialects.triton import ALIGNMENT, DescriptorType, FuncOp, PointerType
from igniter.distribution import install_command
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.ir import Attribute

PTX_VERSION = 80
"""The PTX version for most GPUs; drivers since CUDA 12.0 accept it."""

PTX_VERSIONS = {90: 84, 100: 87, 120: 87}
"""The PTX versions for newer GPUs; drivers since CUDA 12.4 and 12.8 accept them."""

MAP_PTX_VERSION = 86
"""The least PTX version of copies by descriptors on sm_90; drivers since CUDA 12.7 accept it."""

DESCRIPTORS_SINCE = 90
"""The first capability with descriptors."""

WARP = 32
"""The threads of a warp."""

_LIBRARY = "triton._C.libtriton"

MakeModule = Callable[[Any, Any, Any], Any]
"""Makes a module in Triton's IR, given a backend of Triton, its options and a context."""

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


_MAP_TYPES = {"i8": 0, "fp16": 6, "fp32": 7, "bf16": 9}
"""CUDA's numbers of the types of elements of tensor maps (`CUtensorMapDataType`), by Triton's names; i8 is u8 there."""


@dataclass(frozen=True)
class TensorMap:
    """The tensor map of a descriptor, as a kernel reads it."""

    parameter: int
    """The first of the descriptor's parameters."""
    rank: int
    type: int
    """CUDA's number of the type of elements."""
    swizzle: int
    """CUDA's number of the swizzle: 0 to 3 for 0, 32, 64 and 128 bytes."""
    bytes: int
    """The bytes of an element."""
    box: tuple[int, ...]
    """The elements that one copy loads, by dim."""


@dataclass(frozen=True)
class Kernel:
    """A kernel compiled by Triton."""

    ptx: str
    machine_code: bytes
    """The PTX assembled for the one GPU that it was compiled for (a cubin)."""
    entry: str
    """The name of the function in both."""
    parameters: int
    """The number of parameters: those of the func, several for a descriptor, and two null pointers."""
    threads: int
    """The threads of a program."""
    shared: int
    """The shared memory of a program, in bytes."""
    maps: tuple[TensorMap, ...] = ()
    """The tensor maps of the descriptors, in order."""


@dataclass(frozen=True)
class Resources:
    """The assembler's report on a kernel for one GPU."""

    registers: int
    """The registers of a thread."""
    spills: int
    """The spilled bytes of a thread, stored and loaded."""
    stack: int
    """The frame of a thread, in bytes."""
    shared: int
    """The static shared memory, in bytes; a launch may request more."""
    serialized: bool = False
    """True if a product of tensor cores waits for the one before it, which the assembler says (its message C7514)."""


def find_triton() -> Any:
    """Returns the package; `IgniterError` says how to install it."""
    return part_of_triton("triton")


def part_of_triton(name: str) -> Any:
    """Returns a module of the package; `IgniterError` says how to install it."""
    os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
    try:
        return import_module(name)
    except ImportError as error:
        raise IgniterError(
            f"kernels for GPUs are compiled by Triton, which is not installed: {install_command('triton')} (Linux)"
        ) from error


def signature_of(func: FuncOp) -> tuple[str, ...]:
    """Returns the types of the arguments, in Triton's names."""
    return tuple(_signature(a.type) for a in func.body.block.args)


def _signature(t: Attribute) -> str:
    if isinstance(t, PointerType):
        return f"*{_SIGNATURES[type_name(t.pointee)]}"
    if isinstance(t, DescriptorType):
        return f"tensordesc<{_SIGNATURES[type_name(t.element)]}[{','.join(map(str, t.shape))}]>"
    return _SIGNATURES[type_name(t)]


def load_source(text: str, **names: Any) -> Any:
    """Returns the function `kernel` of a text, with `names` beside Triton's own in its module."""
    triton, tl = find_triton(), part_of_triton("triton.language")
    libdevice = part_of_triton("triton.language.extra.cuda.libdevice")
    file = f"<igniter {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    # Triton rereads the source of a function from its file.
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": "igniter_kernel", **names}
    exec(compile(text, file, "exec"), module)
    return module["kernel"]


def compile_source(
    text: str, signature: Sequence[str], warps: int = 4, stages: int = 3, arch: int = PORTABLE
) -> Kernel:
    """Compiles the text of a kernel with arguments of these types; raises `IgniterError` if Triton refuses it."""
    function = load_source(text)
    names: list[str] = function.arg_names
    assert len(names) == len(signature), f"the kernel takes {len(names)} arguments, not {len(signature)}"
    types = dict(zip(names, signature, strict=True))
    aligned = {(k,): [["tt.divisibility", ALIGNMENT]] for k, kind in enumerate(signature) if kind.startswith("*")}
    maps = maps_of(signature)
    if maps and arch < DESCRIPTORS_SINCE:
        raise IgniterError(
            f"a kernel with descriptors cannot run on sm_{arch}: they exist since sm_{DESCRIPTORS_SINCE}; remove "
            "'descriptors' from its schedule, or compile for later GPUs alone"
        )
    arguments = len(signature) + sum(2 * each.rank for each in maps)
    return _compiled(from_source(function, types, aligned), arguments, (warps, stages, arch), bool(maps), maps)


def from_source(function: Any, types: Mapping[str, str], attributes: Mapping[tuple[int], Any]) -> MakeModule:
    """Returns what makes the module of a function with arguments of these types."""
    source = part_of_triton("triton.compiler").ASTSource(function, types, {}, attributes)

    def module(backend: Any, options: Any, context: Any) -> Any:
        functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        return source.make_ir(backend.target, options, functions, modules, context)

    return module


def compile_ttir(
    text: str, arguments: int, warps: int = 4, stages: int = 3, arch: int = PORTABLE, *, descriptors: bool = False
) -> Kernel:
    """Compiles a module in Triton's IR, given as a func in generic form. Here `descriptors` are tensor maps alone,
    without the sizes and strides that Triton adds to the arguments of a Python function."""

    def module(backend: Any, options: Any, context: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.ttir"
            path.write_text(text, encoding="utf-8")
            made = part_of_triton(_LIBRARY).ir.parse_mlir_module(str(path), context)
        # Triton's modules keep their context alive.
        made.context = context
        return made

    return _compiled(module, arguments, (warps, stages, arch), descriptors)


def maps_of(signature: Sequence[str]) -> tuple[TensorMap, ...]:
    """Returns the tensor maps of arguments of these types, each with its whole block as a box."""
    found: list[TensorMap] = []
    for k, kind in enumerate(signature):
        if kind.startswith("tensordesc<"):
            element, _, dims = kind.removeprefix("tensordesc<").removesuffix("]>").partition("[")
            box = tuple(map(int, dims.split(",")))
            place = k + sum(2 * each.rank for each in found)
            bits = int(re.sub(r"\D", "", element))
            found.append(TensorMap(place, len(box), _MAP_TYPES[element], 0, bits // 8, box))
    return tuple(found)


def _placed(maps: Sequence[TensorMap], described: Sequence[Mapping[str, Any]]) -> tuple[TensorMap, ...]:
    """Returns tensor maps with the swizzles and the boxes of a compiled kernel."""
    if len(maps) != len(described):
        raise IgniterError(f"a kernel of {len(maps)} descriptors has {len(described)} tensor maps")
    return tuple(
        replace(each, swizzle=int(given["swizzle"]), box=tuple(map(int, given["block_size"])))
        for each, given in zip(maps, described, strict=True)
    )


def _compiled(
    module: MakeModule,
    arguments: int,
    launch: tuple[int, int, int],
    descriptors: bool,
    maps: Sequence[TensorMap] = (),
) -> Kernel:
    """Compiles for a launch: warps, stages and the capability of the GPU."""
    warps, stages, arch = launch
    options: dict[str, Any] = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    # Triton's default is the newest version known to its assembler; most drivers do not accept it.
    version = PTX_VERSIONS.get(arch, PTX_VERSION)
    options["ptx_version"] = max(version, MAP_PTX_VERSION) if descriptors else version
    try:
        codes, facts = run_stages(module, ("cuda", arch, WARP), options, "cubin")
    except Exception as error:  # Triton's errors have no common base
        raise IgniterError(f"Triton refuses a kernel: {type(error).__name__}: {error}") from error
    if facts["global_scratch_size"] or facts["profile_scratch_size"]:
        raise IgniterError("Triton wants memory for a kernel that launches do not give")
    placed = _placed(maps, facts["tensordesc_meta"]) if maps else ()
    ptx: str = codes["ptx"]
    # Specialised warps are more than the schedule's.
    threads = WARP * int(facts["num_warps"])
    kernel = Kernel(ptx, codes["cubin"], facts["name"], len(_parameters(ptx)), threads, facts["shared"], placed)
    if kernel.parameters != arguments + 2:
        raise IgniterError(f"a kernel of {arguments} arguments has {kernel.parameters} parameters in PTX")
    return kernel


def run_stages(
    module: MakeModule, target: tuple[str, int | str, int], options: Mapping[str, Any], last: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs the stages of Triton's compiler, up to the one called `last`, on a module in Triton's IR. The target is a
    kind of GPU, its architecture and the threads of its warps. Returns the output of each stage by its name, and
    Triton's facts about the kernel.

    `triton.compile` does the same with a cache of files around it. Its keys cover all files of the package, which takes
    two seconds in each process, and a compilation uses several processes.
    """
    library, backends = part_of_triton(_LIBRARY), part_of_triton("triton.backends.compiler")
    backend = part_of_triton("triton.compiler.compiler").make_backend(backends.GPUTarget(*target))
    parsed: Any = backend.parse_options(dict(options))
    context = library.ir.context()
    library.ir.load_dialects(context)
    backend.load_dialects(context)
    steps: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}
    backend.add_stages(steps, parsed, backends.Language.TRITON)
    code, codes = module(backend, parsed, context), dict[str, Any]()
    # The stages read the options here, too.
    given: Mapping[str, Any] = parsed.__dict__
    facts = dict(given)
    for name, step in steps.items():
        codes[name] = code = step(code, facts)
        if name == last:
            break
    return codes, facts


def _parameters(ptx: str) -> list[str]:
    """Returns the declarations of the parameters of the one entry of a module."""
    entry = re.search(r"\.entry\s+[\w$]+\((.*?)\)", ptx, re.DOTALL)
    return re.findall(r"\.param [^,\n]+", entry.group(1)) if entry else []


def resources_of(kernel: Kernel, arch: int) -> Resources:
    """Returns the assembler's report on a kernel for `sm_<arch>`; raises `IgniterError` if the assembler refuses it."""
    found = find_triton().knobs.nvidia
    # Code for a single kind of GPU, since sm_90, runs on it alone: its target, and its name, end in a letter.
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
    return read_resources(done.stderr)


def read_resources(text: str) -> Resources:
    """Reads the assembler's report."""

    def number(pattern: str) -> int:
        return sum(int(found) for found in re.findall(pattern, text))

    return Resources(
        registers=number(r"Used (\d+) registers"),
        spills=number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        stack=number(r"(\d+) bytes stack frame"),
        shared=number(r"(\d+) bytes smem"),
        serialized="wgmma.mma_async instructions are serialized" in text,
    )


def identity() -> Mapping[str, str]:
    """Returns the versions that determine the output for a text."""
    return {"triton": str(find_triton().__version__), "ptx": str((PTX_VERSION, PTX_VERSIONS, MAP_PTX_VERSION))}
