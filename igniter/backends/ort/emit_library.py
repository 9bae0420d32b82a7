"""`ort.library` as one LLVM module: descriptors, tables and functions of single ops, around kernels defined elsewhere.
The code generator links the run time, in C, to it.

The domain is the stem of the library's file (`igniter.dialects.library_names`), with a hash of the library's IR, of its
`info` and of the kernels' code. So two libraries load into one session, and a model finds only its own library. Models
with different weights but otherwise equal have equal libraries, with one domain. ORT creates no session from options
with a domain twice; therefore a library marks the options at its registration (a session entry named like the domain),
and adds nothing if the mark exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from igniter.backends.ort import glue
from igniter.backends.ort.api import (
    API_VERSION,
    API_VERSION_INPLACE,
    CUSTOM_OP_POINTERS,
    OLDEST_ORT,
)
from igniter.backends.ort.checks import emit_checks
from igniter.backends.ort.cpu_choice import Variant, emit_choice
from igniter.backends.ort.expressions import INTRINSICS, int64
from igniter.backends.ort.infer import emit_infer
from igniter.backends.ort.launches import GpuCode, emit_launched, emit_launches
from igniter.backends.ort.messages import StringPool, c_literal, emit_type_names
from igniter.backends.ort.shapes import dim_offsets, emit_shapes, symbol_slots
from igniter.backends.violations import DEFINITION
from igniter.dialects.library_names import domain_of
from igniter.dialects.onnx.types import element_type
from igniter.dialects.ort import OPTIONAL, REQUIRED, VARIADIC, LibraryOp, OpOp, Port, ValuesOp
from igniter.dialects.sym.expr import Expr

ENTRY_POINT = "RegisterCustomOps"
INFO_SYMBOL = "igniter_library_info"
INFO_VERSION = 1
MODES = {REQUIRED: 0, OPTIONAL: 1, VARIADIC: 2}
_CALLBACKS = {
    1: "igniter_name",
    2: "igniter_provider",
    3: "igniter_input_type",
    4: "igniter_input_count",
    5: "igniter_output_type",
    6: "igniter_output_count",
    8: "igniter_destroy",
    9: "igniter_input_mode",
    10: "igniter_output_mode",
    11: "igniter_input_memory",
    12: "igniter_input_least",
    13: "igniter_homogeneous",
    14: "igniter_output_least",
    15: "igniter_homogeneous",
    16: "igniter_create",
    17: "igniter_compute",
    19: "igniter_first_version",
    20: "igniter_last_version",
}
"""The functions of every op's `OrtCustomOp`, by place."""
_GPU_CALLBACKS = {
    **_CALLBACKS,
    2: "igniter_gpu_provider",
    8: "igniter_gpu_destroy",
    11: "igniter_gpu_input_memory",
    16: "igniter_gpu_create",
}
"""The functions of an op with launches of GPU kernels."""


@dataclass(frozen=True)
class EmittedLibrary:
    """The LLVM module of a library, the domain of its ops, and the kernels to link to it."""

    text: str
    domain: str
    ops: tuple[str, ...]
    kernels: tuple[str, ...]
    api_version: int


def library_domain(library: LibraryOp, info: Mapping[str, object], code: Iterable[bytes] = ()) -> str:
    """Returns the domain of a library, with a hash of its IR, its `info` and the kernels' code."""
    digest = hashlib.sha256(str(library).encode())
    digest.update(_canonical(info).encode())
    for part in code:
        digest.update(hashlib.sha256(part).digest())
    return domain_of(digest.hexdigest())


def emit_library(
    library: LibraryOp,
    triple: str,
    info: Mapping[str, object],
    code: Iterable[bytes] = (),
    variants: Sequence[Variant] = (Variant("any", 0),),
    sanitize: bool = False,
    gpu: GpuCode | None = None,
    flush: bool = False,
) -> EmittedLibrary:
    """Emits the module for `library`, whose ops run on CPUs, and for the ops of `gpu`; both may have the same names.

    `info` describes the library's source (JSON values) and is readable in the file under `igniter_library_info`; `code`
    identifies the kernels' code (their IR), for the hash in the domain; `variants` are the CPUs with kernels; for
    sanitized kernels (`sanitize`) a call checks after the run for accesses out of bounds; with `flush`, kernels on CPUs
    run in the mode in which subnormal numbers are 0. Raises `IgniterError` if a
    size in the library does not fit in a 64-bit integer.
    """
    library.verify()
    values = library.values
    placed: list[tuple[OpOp, GpuCode | None]] = [(op, None) for op in library.ops]
    if gpu is not None:
        placed += [(op, gpu) for op in gpu.ops]
        code = (*code, *(str(op).encode() for op in gpu.ops))
    ops = [op for op, _ in placed]
    domain = library_domain(library, info, code)
    reuses = any(p.reuses is not None for op in ops for p in op.outputs)
    version = API_VERSION_INPLACE if reuses or gpu is not None else API_VERSION
    strings = StringPool()
    run = glue.RUN_SANITIZED if sanitize else glue.RUN
    functions = [_emit_op(op, f"op.{i}", version, strings, run, where, flush) for i, (op, where) in enumerate(placed)]
    functions += [_emit_values(op, f"op.{i}", version, strings) for i, op in enumerate(values, len(ops))]
    count = len(functions)
    makers = (p.made.kernel for op in library.ops for p in op.inputs if p.made is not None)
    kernels = tuple(dict.fromkeys((*(op.kernel_name for op in library.ops), *makers)))
    launching = tuple(dict.fromkeys(op.kernel_name + gpu.suffix for op in gpu.ops)) if gpu is not None else ()
    shared = [
        glue.TYPES,
        INTRINSICS,
        glue.FUNCTIONS,
        glue.DECLARE_SANITIZED + DEFINITION if sanitize else "",
        emit_launches(gpu) if gpu is not None else "",
        emit_type_names(strings),
        _emit_domain(domain, count, version),
        _emit_info(library, domain, version, gpu, info),
    ]
    table = ", ".join(f"ptr @op.{i}" for i in range(count))
    parts = [
        f'target triple = "{triple}"\n',
        *shared,
        *functions,
        f"@igniter_ops = hidden constant [{count} x ptr] [{table}]\n",
        *(f'declare hidden void @"{kernel}"(ptr, ptr, ptr, ptr, ptr)' for kernel in launching),
        emit_choice(variants, kernels, strings, triple),
        strings.emit(),
    ]
    names = tuple(dict.fromkeys(op.sym_name.data for op in (*ops, *values)))
    return EmittedLibrary("\n".join(parts), domain, names, (*kernels, *launching), version)


def _canonical(info: Mapping[str, object]) -> str:
    return json.dumps(info, sort_keys=True, separators=(",", ":"))


def _emit_info(library: LibraryOp, domain: str, version: int, gpu: GpuCode | None, info: Mapping[str, object]) -> str:
    ops = (*library.ops, *(gpu.ops if gpu is not None else ()))
    providers = [*([gpu.provider] if gpu is not None else []), *([""] if library.ops or gpu is None else [])]
    described = {
        INFO_SYMBOL: INFO_VERSION,
        "name": library.sym_name.data,
        "domain": domain,
        "ort_api_version": version,
        "providers": providers,
        "ops": {
            op.sym_name.data: {
                "kernel": op.kernel_name,
                "inputs": [f"{p.name}: {p}" for p in op.inputs],
                "outputs": [f"{p.name}: {p}" for p in op.outputs],
                "scratch": str(op.scratch),
                "requires": [str(r) for r in op.requires],
                "checks": [c.text for c in op.checks],
            }
            for op in reversed(ops)
        },
        "values": {op.sym_name.data: [op.count, op.text] for op in library.values},
        **info,
    }
    # Readers search the file for the first key, so its place is fixed; the rest is sorted.
    head = json.dumps({INFO_SYMBOL: INFO_VERSION}, separators=(",", ":"))[:-1]
    rest = _canonical({k: v for k, v in described.items() if k != INFO_SYMBOL})[1:]
    data = f"{head},{rest}".encode()
    return f"@{INFO_SYMBOL} = constant [{len(data) + 1} x i8] {c_literal(data)}\n"


# -- one op -----------------------------------------------------------------------------------------------------------


def _emit_op(op: OpOp, name: str, version: int, strings: StringPool, run: str, gpu: GpuCode | None, flush: bool) -> str:
    slots = symbol_slots(op)
    last_in = op.inputs[-1] if op.inputs else None
    spread = len(last_in.dims) if last_in is not None and last_in.mode == VARIADIC else -1
    own_dims = sum(len(p.dims) for p in op.inputs if p.mode != VARIADIC)
    infer = emit_infer(op, f"infer.{name}", strings)
    inplace = _emit_inplace(op, name)
    numbers = (
        len(op.inputs),
        len(op.outputs),
        len(slots),
        own_dims,
        sum(len(p.dims) for p in op.outputs),
        spread,
        int(op.outputs[-1].mode == VARIADIC),
        len(op.checks),
    )
    tested = f"ptr @checks.{name}" if op.checks else "ptr null"
    pointers, launched, listed, kernel = dict(_CALLBACKS), "", "null", op.kernel_name
    if gpu is not None:
        pointers, run = dict(_GPU_CALLBACKS), "igniter_gpu_run"
        kernel += gpu.suffix
        launched, listed = emit_launched(name, gpu.launched.get(kernel, ()), gpu), f"@launched.{name}"
    computed = _emit_made(op.inputs, name)
    made = f"ptr @made.{name}" if computed else "ptr null"
    if infer is not None:
        pointers[18] = infer.name
    if inplace:
        pointers[21] = f"inplace.{name}"
        pointers[22] = "igniter_release_inplace"
    return "\n".join(
        (
            _emit_ports(op.inputs, f"inputs.{name}", slots, strings),
            _emit_ports(op.outputs, f"outputs.{name}", slots, strings),
            emit_shapes(op, f"shapes.{name}", strings),
            emit_checks(op, f"checks.{name}", strings) if op.checks else "",
            infer.text if infer is not None else "",
            inplace,
            launched,
            computed,
            f"@desc.{name} = internal constant %Desc {{ ptr {strings(op.sym_name.data)}, ptr @inputs.{name},"
            f' ptr @outputs.{name}, ptr @shapes.{name}, ptr @"{kernel}",'
            f" {', '.join(f'i64 {n}' for n in numbers)}, {tested}, ptr @{run}, ptr {listed},"
            f" i64 {int(flush)}, {made}, i64 {sum(p.made is not None for p in op.inputs)} }}",
            _emit_callbacks(name, version, pointers),
        )
    )


def _emit_callbacks(name: str, version: int, pointers: Mapping[int, str]) -> str:
    """Returns the `OrtCustomOp` of an op, followed by its descriptor."""
    table = ", ".join(f"ptr @{pointers[i]}" if i in pointers else "ptr null" for i in range(CUSTOM_OP_POINTERS))
    return (
        f"@{name} = internal constant {{ i32, i32, [{CUSTOM_OP_POINTERS} x ptr], ptr }}"
        f" {{ i32 {version}, i32 0, [{CUSTOM_OP_POINTERS} x ptr] [{table}], ptr @desc.{name} }}\n"
    )


def _emit_values(op: ValuesOp, name: str, version: int, strings: StringPool) -> str:
    """Returns the op for making a carrier: it has only ports, and the second one has the message in place of a name."""
    slots = {f"v{k}": k for k in range(op.count)}
    return "\n".join(
        (
            _emit_ports(op.inputs, f"inputs.{name}", {}, strings),
            _emit_ports([replace(p, name=op.text) for p in op.outputs], f"outputs.{name}", slots, strings),
            f"@desc.{name} = internal constant %Desc {{ ptr {strings(op.sym_name.data)}, ptr @inputs.{name},"
            f" ptr @outputs.{name}, ptr null, ptr null, i64 1, i64 1, i64 0, i64 1, i64 {op.count + 1}, i64 -1, i64 0,"
            " i64 0, ptr null, ptr null, ptr null, i64 0, ptr null, i64 0 }",
            _emit_callbacks(name, version, {**_CALLBACKS, 17: "igniter_values"}),
        )
    )


def _emit_ports(ports: Sequence[Port], name: str, slots: Mapping[str, int], strings: StringPool) -> str:
    lines: list[str] = []
    rows: list[str] = []
    offsets = dim_offsets(p.dims for p in ports)
    for i, p in enumerate(ports):
        rank = len(p.dims)
        texts = ", ".join(f"ptr {strings(str(d))}" for d in p.dims)
        constants = ", ".join(f"i64 {_dim_code(d, slots)}" for d in p.dims)
        lines.append(f"@texts.{name}.{i} = internal constant [{rank} x ptr] [{texts}]")
        lines.append(f"@constants.{name}.{i} = internal constant [{rank} x i64] [{constants}]")
        # Only a required port is checked ahead of time; the others may lack a value.
        static = int(p.static and p.mode == REQUIRED)
        rows.append(
            f"%Port {{ ptr {strings(p.name)}, ptr {strings(p.shape_text)}, ptr @texts.{name}.{i},"
            f" ptr @constants.{name}.{i}, i32 {element_type(p.element).ort_code}, i32 {MODES[p.mode]}, i32 {p.least},"
            f" i32 {static}, i64 {rank}, i64 {offsets[i]}, i64 {slots.get(p.symbol, -1)} }}"
        )
    lines.append(f"@{name} = internal constant [{len(rows)} x %Port] [{', '.join(rows)}]")
    return "\n".join(lines)


def _emit_made(ports: Sequence[Port], name: str) -> str:
    """Returns the table of the inputs that kernels compute; "" if there are none."""
    lines: list[str] = []
    rows: list[str] = []
    for i, p in enumerate(ports):
        if p.made is None:
            continue
        symbols = ", ".join(f"i64 {value}" for value in p.made.symbols)
        lines.append(f"@symbols.{name}.{i} = internal constant [{len(p.made.symbols)} x i64] [{symbols}]")
        rows.append(
            f'%Made {{ ptr @"{p.made.kernel}", ptr @symbols.{name}.{i}, i64 {i}, i64 {p.bytes}, i64 {p.made.bytes},'
            f" i64 {p.made.scratch} }}"
        )
    if not rows:
        return ""
    return "\n".join((*lines, f"@made.{name} = internal constant [{len(rows)} x %Made] [{', '.join(rows)}]\n"))


def _dim_code(dim: Expr, slots: Mapping[str, int]) -> str:
    """Returns the code of a dim in a port's table."""
    if dim.constant is not None:
        return int64(dim.constant)
    return str(glue.COMPOUND if dim.symbol is None else -1 - slots[dim.symbol])


def _emit_inplace(op: OpOp, name: str) -> str:
    """Returns `size_t GetMayInplace(int** inputs, int** outputs)`; "" for an op without reuse."""
    pairs = [(p.reuses, i) for i, p in enumerate(op.outputs) if p.reuses is not None]
    if not pairs:
        return ""
    n = len(pairs)
    return f"""
@reused.{name} = internal constant [{n} x i32] [{", ".join(f"i32 {i}" for i, _ in pairs)}]
@reusing.{name} = internal constant [{n} x i32] [{", ".join(f"i32 {o}" for _, o in pairs)}]
define internal i64 @inplace.{name}(ptr %inputs, ptr %outputs) {{
  store ptr @reused.{name}, ptr %inputs
  store ptr @reusing.{name}, ptr %outputs
  ret i64 {n}
}}
"""


# -- the entry point --------------------------------------------------------------------------------------------------


def _emit_domain(domain: str, count: int, version: int) -> str:
    """Returns the constants of the entry point."""
    name = domain.encode()
    too_old = f"this library of Igniter needs ONNX Runtime {OLDEST_ORT[version]} or newer".encode()
    return f"""
@igniter_domain_name = hidden constant [{len(name) + 1} x i8] {c_literal(name)}
@igniter_too_old = hidden constant [{len(too_old) + 1} x i8] {c_literal(too_old)}
@igniter_op_count = hidden constant i64 {count}
@igniter_api_version = hidden constant i32 {version}
"""
