r"""The compile driver: an ONNX model through every level to a library for ONNX Runtime.

    make_onnx -> make_fusion -> make_loop -> make_scheduled -> make_llvm -> make_object / make_assembly
                                                                       \-> make_library

Each function takes a `Compilation` to the level in its name. It runs the pipelines of the target's backend, listed in
`pipelines.py`; after the last one it asks the backend for text and for a library.

From `make_loop` on every kernel is a unit of its own: if it cannot be lowered, scheduled or emitted, its nodes return
to ONNX Runtime, with the reason as a remark; the only cost is speed (`igniter.isolation`). The cache key of a kernel's
code is made of its text, the passes, the target and the versions. After all kernels have compiled, `make_llvm` joins
the regions to programs, which call the kernels.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser

from igniter._version import build_id
from igniter.analysis.fusion.fallback_nodes import fallback_nodes
from igniter.analysis.fusion.program_steps import program_steps
from igniter.analysis.machine import pass_figures
from igniter.analysis.onnx.input_places import by_symbol, shown_dims
from igniter.analysis.typical_sizes import give_module_sizes, module_symbols, require_known
from igniter.compiler.assembling import assembling
from igniter.compiler.compilation import Compilation, CompiledKernel
from igniter.compiler.compile_helpers import CompileHelpers
from igniter.dialects.fusion import GroupOp, ProgramOp, RegionOp, program_around
from igniter.dialects.loop import CallOp, FuncOp, KernelOp
from igniter.dialects.made import MakeOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.ort import LibraryOp
from igniter.errors import IgniterError, is_crash
from igniter.isolation import attempt
from igniter.passes import flat_passes, parse_passes, run_passes, with_options
from igniter.remarks import Remark, remark
from igniter.reproducers import leave_emission
from igniter.runtime.cache import cache_key
from igniter.runtime.library import LibraryPart, build_library
from igniter.transforms.conversion.schedule_kernels import schedule_kernel
from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions
from igniter.transforms.fusion.inline_failed_regions import mark_failed
from igniter.transforms.fusion.inline_regions import drop_make
from igniter.transforms.fusion.make_at_load import with_made
from igniter.transforms.scheduled.form_ort_library import (
    describe,
    name_carriers,
    name_nodes,
    name_ports,
    replace_carriers,
    replace_regions,
    with_scratch,
)

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation
    from xdsl.passes import ModulePass

    from igniter.analysis.fusion.fallback_nodes import FallbackNode
    from igniter.context import IgniterContext
    from igniter.dialects.ort import OpOp
    from igniter.runtime.library import Library
    from igniter.targets import Backend, Part, Target

_log = logging.getLogger(__name__)

EXPECTED = "expected"
"""The pass name of remarks about the expected duration of launches."""

STAGES = ("onnx", "fusion", "loop", "scheduled", "llvm", "asm", "obj", "library")


# -- stages -----------------------------------------------------------------------------------------------------------


def lower_to_kernels(c: Compilation) -> None:
    """Lowers a module from its current level to compiled kernels; levels above the current one are skipped."""
    if not is_fused(c.module):
        make_onnx(c)
        make_fusion(c)
    else:
        require_no_author(c)
        give_module_sizes(c.module, dict(c.options.sizes))
    c.nodes_before = c.nodes_before or count_nodes(c.module)
    make_loop(c)
    make_llvm(c)
    if c.strict:
        require_all_compiled(c)


def make_onnx(c: Compilation) -> ModuleOp:
    """Simplifies the graph for fusion: infers shapes, folds constants, recomposes patterns."""
    c.nodes_before = count_nodes(c.module)
    if c.options.fusion_author:
        # Reports a wrong name before the work.
        from igniter.analysis.fusion.author import make_author

        make_author(c.options.fusion_author)
    precision = c.options.precision
    if c.options.sizes:
        given = by_symbol(c.module, dict(c.options.sizes))
        c.options = dataclasses.replace(c.options, sizes=tuple(sorted(given.items())))
    with c.stage("onnx"):
        _run(
            c,
            c.pipelines.onnx,
            _subnormals(c),
            f"lower-precision{{to={precision}}}" if precision != "f32" else "",
            _tiles(c),
        )
    if c.options.sizes:
        # After shape inference: the symbols created there can have sizes too.
        require_known(dict(c.options.sizes), module_symbols(c.module), partial(shown_dims, c.module))
    return c.module


def _subnormals(c: Compilation) -> str:
    """Returns the pass over subnormal weights, as the options select it. An explicit pipeline of this level decides
    about them itself."""
    if c.options.onnx_passes is not None:
        return ""
    keeps = c.options.subnormals == "keep"
    return _edited(c, c.pipelines.subnormals, "flush-subnormals{keep=true}") if keeps else c.pipelines.subnormals


def _tiles(c: Compilation) -> str:
    """Returns the pass for convolutions in tiles, as the options select it; "" for none. An explicit pipeline of this
    level decides about tiles itself."""
    asked = c.options.winograd
    if asked == "auto":
        return c.pipelines.tiles if c.options.onnx_passes is None else ""
    if asked == "on":
        return _edited(c, c.pipelines.tiles, "winograd{force=true}")
    return _edited(c, c.pipelines.tiles, f"winograd{{tile={asked}}}" if asked else "winograd", drop=not asked)


def _edited(c: Compilation, pipeline: str, chosen: str, *, drop: bool = False) -> str:
    """Returns the pass `chosen` by an option, with the passes that edits put around it in its `pipeline`; without the
    pass itself if `drop` is true. Raises `IgniterError` if the edits remove it."""
    found = "" if drop else chosen
    if not c.options.passes:
        return found
    name = chosen.partition("{")[0]
    passes = flat_passes(pipeline)
    if found and not any(each.partition("{")[0] == name for each in passes):
        raise IgniterError(f"'{c.options.passes}' removes {name}, which another option asks for: leave one of them out")
    return ",".join(filter(None, (found if each.partition("{")[0] == name else each for each in passes)))


def make_fusion(c: Compilation) -> ModuleOp:
    """Groups nodes into regions."""
    with c.stage("fusion"):
        _run(c, c.pipelines.fusion, author=c.options.fusion_author)
    return c.module


def make_loop(c: Compilation) -> ModuleOp:
    """Lowers every region to a structured kernel, and inlines regions without a lowering."""
    with c.stage("loop"):
        _run(c, c.pipelines.loop)
    return c.module


def make_scheduled(c: Compilation) -> ModuleOp:
    """Schedules every kernel and its programs; for inspection, since `make_llvm` works kernel by kernel."""
    c.one_target()
    with c.stage("scheduled"):
        _run(c, c.pipelines.kernels, kernels=c.pipelines.schedule, tuned=c.options.tuned)
        _run(c, *_program_passes(c))
        _run(c, c.pipelines.calls, profile=c.options.profile)
    return c.module


def make_llvm(c: Compilation) -> list[CompiledKernel]:
    """Emits LLVM IR for every kernel, then for every program; nodes of failed kernels return to ONNX Runtime."""
    with c.stage("llvm"):
        emit_kernels(c)
        _run(c, "inline-failed-regions")
    with c.stage("programs"):
        _run(c, *_program_passes(c))
        emit_programs(c)
    return c.kernels


def make_programs(c: Compilation) -> list[tuple[ProgramOp, FuncOp]]:
    """Returns the programs, including those of a single region, each with its calls and its arena for the first
    backend; for inspection, with kernels from the cache. Raises `IgniterError` for several targets."""
    c.one_target()
    with c.stage("llvm"):
        emit_kernels(c)
        _run(c, "inline-failed-regions")
    with c.stage("programs"):
        _run(c, c.pipelines.programs, "form-programs{alone=true}")
        with _described(c, 0):
            _run(c, c.pipelines.calls, part=c.parts[0])
    funcs = {f.sym_name.data: f for f in c.module.ops if isinstance(f, FuncOp)}
    return [(p, funcs[p.label]) for p in c.module.walk() if isinstance(p, ProgramOp)]


def _program_passes(c: Compilation) -> tuple[str, str]:
    """Returns the pipelines from regions to programs. For a profile also a single region becomes a program, because
    only programs record times."""
    return c.pipelines.programs, "form-programs{alone=true}" if c.options.profile else ""


# -- emission ---------------------------------------------------------------------------------------------------------


def emit_kernels(c: Compilation) -> None:
    """Emits the text of every kernel and removes it from the module; the regions of a failed kernel are marked."""
    kernels = [(kernel, str(kernel)) for kernel in _kernels(c.module)]
    cache = c.cache
    missing = {} if cache is None else {text: None for _, text in kernels if not cache.has(kernel_key(c, text))}
    with CompileHelpers(c, () if c.observers else tuple(missing)) as helpers:
        for kernel, text in kernels:
            helpers.wait_for(text)
            step, fail = partial(compile_kernel, c, kernel, text), partial(mark_failed, c.module, kernel.sym_name.data)
            compiled = attempt(c.context(), step, fail)
            if compiled is not None:
                if text in missing and helpers:
                    assemble(c, compiled)
                c.kernels.append(compiled)
                _erase(kernel)


def assemble(c: Compilation, kernel: CompiledKernel) -> None:
    """Makes the objects of a kernel, for the cache."""
    from igniter.runtime.library import compile_object

    for target, text in zip(c.targets, kernel.variants, strict=True):
        compile_object(text, target, c.cache)


def kernel_key(c: Compilation, text: str) -> str:
    """Returns the cache key of a kernel with this text."""
    return cache_key("kernel", c.kernel_settings, str(c.ctx.remarks.enabled), text)


def compile_kernel(c: Compilation, kernel: KernelOp, text: str) -> CompiledKernel:
    """Returns one kernel as LLVM IR, from the cache if it was compiled before; the remarks of its passes come with it.
    `text` is the kernel's own."""
    remarks = c.ctx.remarks
    key = kernel_key(c, text)
    found = c.cache.get(key) if c.cache is not None else None
    _log.debug("kernel %s: %s", kernel.sym_name.data, "compiled" if found is None else "from the cache")
    if found is None:
        before = len(remarks)
        compiled = _compile_variants(c, kernel)
        said = [r.to_dict() for r in remarks.items[before:]]
        del remarks.items[before:]
        found = json.dumps([compiled.name, compiled.variants, compiled.ops, said, compiled.tasks], default=str).encode()
        if c.cache is not None:
            c.cache.put(key, found)
    else:
        c.cached_kernels += 1
    name, variants, ops, said, tasks = json.loads(found)
    for entry in said:
        remarks.add(Remark.from_dict(entry))
    return CompiledKernel(name, tuple(variants), tuple(ops), tasks)


def _compile_variants(c: Compilation, kernel: KernelOp) -> CompiledKernel:
    name, options = kernel.sym_name.data, c.options
    machines = iter(c.machines)
    texts: list[str] = []
    ops: list[str] = []
    tasks: Mapping[str, Any] | None = None
    for number, part in enumerate(c.parts):
        op: OpOp | None = None
        backend = part.backend
        passes = c.pipelines.schedule if number == 0 else backend.pipelines.schedule
        for target, suffix in zip(part.targets, part.suffixes, strict=True):
            ctx = c.context(next(machines))
            scheduled = schedule_kernel(ctx, kernel, passes, options.tuned, verify_each=c.verifies_each)
            func = scheduled.func
            described = describe(func)
            if not texts:
                tasks = None if (shared := scheduled.tasks) is None else shared.to_dict()
            func.sym_name = StringAttr(name + suffix)
            texts.append(_emitted(c, ctx, backend, func, target))
            for each in backend.expected(func, texts[-1], target):
                remark(ctx, EXPECTED, name, "note", str(each), **asdict(each))
            op = described if op is None else with_scratch(op, described.scratch)
        ops.append(str(op))
    return CompiledKernel(name, tuple(texts), tuple(ops), tasks)


def _emitted(c: Compilation, ctx: IgniterContext, backend: Backend, func: FuncOp, target: Target) -> str:
    """Returns the text of a kernel; an emission that crashes leaves a reproducer."""
    try:
        text = backend.emit_func(func, target, c.options.sanitize)
        backend.vouch(text, target)
    except Exception as error:  # a crash leaves a reproducer; raised again
        if is_crash(error):
            leave_emission(ctx, ModuleOp([func.clone()]), error)
        raise
    return text


def emit_programs(c: Compilation) -> None:
    """Emits the text of every program, for all targets; if one of them fails, the program is inlined."""
    programs = [p for p in c.module.walk() if isinstance(p, ProgramOp)]
    made: dict[ProgramOp, list[tuple[tuple[str, ...], str]]] = {program: [] for program in programs}
    for number, part in enumerate(c.parts):
        with _described(c, number):
            calls = c.pipelines.calls if number == 0 else part.backend.pipelines.calls
            _run(c, calls, profile=c.options.profile, part=part)
        funcs = {f.sym_name.data: f for f in c.module.ops if isinstance(f, FuncOp)}
        for program in [p for p in programs if p.parent is not None]:
            func = funcs[program.label]
            step, fail = partial(_compile_program, c, func, part), partial(mark_failed, c.module, program.label)
            compiled = attempt(c.context(), step, fail)
            if compiled is not None:
                made[program].append(compiled)
                _erase(func)
        _run(c, "inline-failed-regions")
    for program, compiled in made.items():
        if program.parent is not None:
            texts = tuple(text for found, _ in compiled for text in found)
            c.programs.append(CompiledKernel(program.label, texts, tuple(op for _, op in compiled)))
            c.steps.append(program_steps(program))


def emit_makers(c: Compilation) -> None:
    """Has constants computed by kernels when a session is created, unless an option or a backend forbids it, and emits
    these kernels. The constants of a failed kernel are stored."""
    if c.options.tile_weights != "load" or len(c.parts) > 1 or not c.pipelines.made:
        return
    _run(c, c.pipelines.made)
    for kernel in _kernels(c.module):
        name, failures = kernel.sym_name.data, list[str]()
        compiled = attempt(c.context(), partial(compile_kernel, c, kernel, str(kernel)), failures.append)
        _erase(kernel)
        if compiled is not None:
            c.makers.append(compiled)
            continue
        for reason in failures:
            remark(c.context(), "driver", name, "missed", f"its constants are stored: {reason}")
        for make in [op for op in c.module.walk() if isinstance(op, MakeOp) and op.kernel_name == name]:
            drop_make(make)


def _compile_program(c: Compilation, func: FuncOp, part: Part) -> tuple[tuple[str, ...], str]:
    """Compiles one program for the targets of a backend, or takes it from the cache; returns its texts and its op."""
    func.verify()
    op = str(describe(func))
    names = repr(part.targets), " ".join(part.suffixes)
    key = cache_key("program", build_id(), *names, str(c.options.sanitize), str(func))
    found = c.cache.get(key) if c.cache is not None else None
    texts = _emit_program(c, func, part) if found is None else tuple(json.loads(found))
    if c.cache is not None and found is None:
        c.cache.put(key, json.dumps(texts).encode())
    return texts, op


def _emit_program(c: Compilation, func: FuncOp, part: Part) -> tuple[str, ...]:
    """Emits the program for every target of a backend; each version calls the kernels of its target."""
    texts: list[str] = []
    for target, suffix in zip(part.targets, part.suffixes, strict=True):
        variant = func.clone()
        variant.sym_name = StringAttr(func.sym_name.data + suffix)
        for call in variant.walk():
            if isinstance(call, CallOp):
                call.callee += suffix
        texts.append(part.backend.emit_func(variant, target, c.options.sanitize))
    return tuple(texts)


@contextmanager
def _described(c: Compilation, part: int) -> Generator[None]:
    """Adds the ops of the emitted kernels to the module, for one backend: programs call them by these ops."""
    library = LibraryOp("igniter", [_parse_op(c, k.ops[part]) for k in c.kernels])
    c.module.body.block.add_op(library)
    try:
        yield
    finally:
        _erase(library)


# -- what comes out ---------------------------------------------------------------------------------------------------


def _name_nodes(c: Compilation) -> None:
    """Adds debug information to the texts of kernels and programs, while the module has their nodes."""
    if not c.options.debug_info:
        return
    places = [(part.backend, suffix) for part in c.parts for suffix in part.suffixes]
    for code in (c.kernels, c.programs):
        variants = [
            backend.with_nodes([each.variants[k] for each in code], c.module, suffix)
            for k, (backend, suffix) in enumerate(places)
        ]
        code[:] = [replace(each, variants=texts) for each, texts in zip(code, zip(*variants, strict=True), strict=True)]


def make_module(c: Compilation) -> str:
    """Returns one LLVM module with every kernel in it, as text."""
    target = c.one_target()
    _name_nodes(c)
    if not c.kernels:
        raise IgniterError("no node of the model compiles, so there is no code; see --explain for the reasons")
    texts = [text for k in (*c.kernels, *c.programs) for text in k.variants]
    return c.backend.merged(texts, target)


def make_assembly(c: Compilation) -> str:
    """Returns assembly for the target, every kernel in one file."""
    with c.stage("asm"):
        return c.backend.assembly(make_module(c), c.one_target())


def make_object(c: Compilation) -> bytes:
    """Returns one relocatable object with every kernel in it."""
    with c.stage("obj"):
        return c.backend.object_code(make_module(c), c.one_target())


def make_library(c: Compilation) -> Library | None:
    """Builds the shared library, and replaces each program, and each region outside programs, in `module` by a custom
    op; returns `None` if no region compiled."""
    _name_nodes(c)
    with c.stage("library"), assembling(texts_of(c), c.cache):
        if c.kernels:
            emit_makers(c)
        _run(c, c.pipelines.weights)
        if not c.kernels:
            return None
        code = (*c.kernels, *c.programs, *c.makers)
        info = {
            "options": c.options.to_dict(),
            "target_name": c.options.target,
            "machines": [m.values() for m in c.machines],
        }
        carriers = name_carriers(c.module)
        texts = iter([[k.variants[i] for k in code] for i in range(len(c.targets))])
        named: dict[str, OpOp] = {}
        parts: list[LibraryPart] = []
        for number, part in enumerate(c.parts):
            ops, named = _named_ops(c, number)
            # Carriers have the same source for all backends.
            shared = [] if number else list(carriers.values())
            kernels = {target: next(texts) for target in part.targets}
            parts.append(
                LibraryPart(LibraryOp("igniter", [*ops, *shared]), kernels, provider_of(c, part), part.suffixes)
            )
        library = build_library(
            *parts,
            info=info,
            cache=c.cache,
            sanitize=c.options.sanitize,
            flush=c.options.flushes_values,
            debug_info=c.options.debug_info,
        )
        replace_regions(c.module, library.domain, c.options.profile, named)
        replace_carriers(carriers, library.domain)
    return library


def provider_of(c: Compilation, part: Part) -> str:
    """Returns the execution provider of a backend's ops; "" is the provider of CPUs."""
    return c.options.provider or part.backend.provider if part.backend.provider else ""


def texts_of(c: Compilation) -> dict[Target, list[str]]:
    """Returns the texts of all kernels and programs for each target."""
    return {target: [code.variants[k] for code in (*c.kernels, *c.programs)] for k, target in enumerate(c.targets)}


def _named_ops(c: Compilation, part: int) -> tuple[list[OpOp], dict[str, OpOp]]:
    """Returns the custom ops of a library for one backend, and by its label the op of each region outside programs."""
    alone: dict[str | None, list[RegionOp]] = {}
    for region in _regions_alone(c.module):
        alone.setdefault(region.kernel_name, []).append(region)
    groups = {op.label: op for op in c.module.walk() if isinstance(op, ProgramOp)}
    makers = {k.name: _parse_op(c, k.ops[part]) for k in c.makers}
    ops = [with_made(name_ports(_parse_op(c, p.ops[part]), groups[p.name]), groups[p.name], makers) for p in c.programs]
    named: dict[str, OpOp] = {}
    for kernel in (k for k in c.kernels if k.name in alone):
        users = alone[kernel.name]
        own = name_nodes(with_made(_parse_op(c, kernel.ops[part]), users[0], makers), users)
        named.update(own)
        ops += dict.fromkeys(own.values())
    return ops, named


def _parse_op(c: Compilation, text: str) -> OpOp:
    library = Parser(c.ctx, f"ort.library @parsed {{\n{text}\n}}").parse_op()
    assert isinstance(library, LibraryOp)
    (op,) = library.ops
    op.detach()
    return op


# -- running passes ---------------------------------------------------------------------------------------------------


def _run(
    c: Compilation,
    *pipelines: str,
    author: str = "",
    kernels: str = "",
    tuned: str = "",
    profile: bool = False,
    part: Part | None = None,
) -> None:
    """Runs pipelines in sequence over the module, for the machines of one backend or for all. The other arguments are
    options of single passes: `form-fusion-regions`, `schedule-kernels` and `lower-programs`."""
    pipeline = ",".join(filter(None, pipelines))
    machine = c.machines[0] if part is None else c.machine_of(part)
    passes = parse_passes(pipeline, pass_figures(c.machines if part is None else [machine]))
    if author:
        passes = _with_author(passes, pipeline, author)
    left = tuple(f"{name}={why}" for name, why in c.options.left)
    passes = with_options(passes, "form-fusion-regions", required=c.required or None, left=left or None)
    passes = with_options(passes, "schedule-kernels", passes=kernels or None, tuned=tuned or None)
    passes = with_options(passes, "lower-programs", profile=profile or None)
    run_passes(c.context(machine), c.module, passes, verify_each=c.verifies_each, observers=c.observers)


def _with_author(passes: Sequence[ModulePass], pipeline: str, author: str) -> tuple[ModulePass, ...]:
    """Sets the fusion author of `form-fusion-regions`; raises `IgniterError` if the pass has another author or is not
    in the pipeline."""
    forming = [this for this in passes if isinstance(this, FormFusionRegions)]
    if not forming:
        raise IgniterError(f"the fusion author '{author}' is not used: '{pipeline}' has no form-fusion-regions")
    for this in forming:
        if this.author not in (FormFusionRegions.author, author):
            raise IgniterError(f"'{pipeline}' names the fusion author '{this.author}', but the options name '{author}'")
    return with_options(passes, FormFusionRegions.name, author=author)


# -- what is left -----------------------------------------------------------------------------------------------------


def nodes_left(c: Compilation) -> list[FallbackNode]:
    """Returns the nodes left to ONNX Runtime, each with the reason."""
    return fallback_nodes(c.module, c.ctx.remarks, c.isolation.nodes)


def require_no_author(c: Compilation) -> None:
    """Raises `IgniterError` if a fusion author or tiles of convolutions were requested, but the module's regions exist
    already."""
    if c.options.winograd not in (0, "auto"):
        raise IgniterError(
            "winograd has no effect: the regions are already formed. Give the model, or IR of the onnx level"
        )
    if c.options.fusion_author:
        raise IgniterError(
            f"the fusion author '{c.options.fusion_author}' has no effect: the regions are already formed. Give the "
            "model, or IR of the onnx level"
        )


def require_all_compiled(c: Compilation) -> None:
    """Raises `IgniterError` with the nodes left to ONNX Runtime for want of a kernel; unprofitable nodes are no
    error."""
    left = [node for node in nodes_left(c) if not node.is_choice]
    if left:
        shown = "; ".join(map(str, left[:5])) + ("; ..." if len(left) > 5 else "")
        raise IgniterError(f"{len(left)} nodes would be left to ONNX Runtime, which --strict forbids: {shown}")


def is_fused(module: ModuleOp) -> bool:
    """True if a module is past the ONNX level: it contains regions or kernels."""
    return any(isinstance(op, KernelOp) for op in module.ops) or any(isinstance(op, RegionOp) for op in module.walk())


def _regions_alone(module: ModuleOp) -> list[RegionOp]:
    """Returns the regions outside programs."""
    return [op for op in module.walk() if isinstance(op, RegionOp) and program_around(op) is None]


def _kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.ops if isinstance(op, KernelOp)]


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def count_nodes(module: ModuleOp) -> int:
    """Counts the ONNX nodes of the main graph and of its subgraphs, as ORT will see them.

    A region or a program counts as one, a constant as zero.
    """
    return sum(_count_nodes(graph.body) for graph in module.ops if isinstance(graph, GraphOp))


def _count_nodes(block: Block) -> int:
    total = 0
    for op in block.ops:
        if isinstance(op, GroupOp):
            total += 1
        elif isinstance(op, OnnxOp) and op.op_type != "Constant":
            total += 1 + sum(_count_nodes(inner) for region in op.regions for inner in region.blocks)
    return total
