"""The compile driver: an ONNX model through every level to a library that ONNX Runtime loads.

    make_onnx -> make_fusion -> make_loop -> make_scheduled -> make_llvm -> make_object / make_assembly
                                                                       \\-> make_library

Each function takes a `Compilation` to one level and says so in its name: it runs the pipelines that the backend of the
target names, which `pipelines.py` has as lists of passes, and behind the last of them asks that backend for text, and
for a library. From
`make_loop` on every kernel is a unit that fails alone: one that cannot be lowered, scheduled or emitted gives its nodes
back to ONNX Runtime, with a remark that says why, and costs nothing but speed (`igniter.isolation`). What a kernel
became is cached under its text, the passes, the target and the versions. Once all kernels are known to be good,
`make_llvm` joins the regions to programs, which call them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from igniter._version import build_id
from igniter.compilation import Compilation, CompiledKernel
from igniter.errors import IgniterError
from igniter.isolation import attempt

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Operation
    from xdsl.passes import ModulePass

    from igniter.analysis.fusion.left_nodes import LeftNode
    from igniter.dialects.fusion import ProgramOp, RegionOp
    from igniter.dialects.loop import FuncOp, KernelOp
    from igniter.dialects.ort import OpOp
    from igniter.runtime.library import Library
    from igniter.targets import Part

EXPECTED = "expected"
"""Whose remarks say how long a launch is expected to take."""

STAGES = ("onnx", "fusion", "loop", "scheduled", "llvm", "asm", "obj", "library")


# -- stages -----------------------------------------------------------------------------------------------------------


def make_onnx(c: Compilation) -> ModuleOp:
    """Shapes inferred, constants folded, patterns recomposed: what fusion works on."""
    c.nodes_before = count_nodes(c.module)
    if c.options.fusion_author:
        # A wrong name is said before the work, not after it.
        from igniter.analysis.fusion.author import make_author

        make_author(c.options.fusion_author)
    precision = c.options.precision
    if c.options.sizes:
        from igniter.analysis.model.input_places import by_symbol

        given = by_symbol(c.module, dict(c.options.sizes))
        c.options = dataclasses.replace(c.options, sizes=tuple(sorted(given.items())))
    with c.stage("onnx"):
        _run(
            c,
            c.pipelines.onnx,
            f"lower-precision{{to={precision}}}" if precision != "f32" else "",
            _tiles(c),
        )
    if c.options.sizes:
        from igniter.analysis.model.input_places import shown_dims
        from igniter.analysis.typical_sizes import module_symbols, require_known

        # Behind the passes that infer shapes: the symbols that they make up can be given sizes, too.
        require_known(dict(c.options.sizes), module_symbols(c.module), partial(shown_dims, c.module))
    return c.module


def _tiles(c: Compilation) -> str:
    """What makes tiles of convolutions, as a compilation is asked for it; "" for none. A pipeline of this level that
    the options give says itself whether there are any."""
    asked = c.options.winograd
    if asked == "auto":
        return c.pipelines.tiles if c.options.onnx_passes is None else ""
    if asked == "on":
        return "winograd{force=true}"
    return f"winograd{{tile={asked}}}" if asked else ""


def make_fusion(c: Compilation) -> ModuleOp:
    """Nodes grouped into regions."""
    with c.stage("fusion"):
        _run(c, c.pipelines.fusion, author=c.options.fusion_author)
    return c.module


def make_loop(c: Compilation) -> ModuleOp:
    """A structured kernel for every region that has a lowering; the others taken apart again."""
    with c.stage("loop"):
        _run(c, c.pipelines.loop)
    return c.module


def make_scheduled(c: Compilation) -> ModuleOp:
    """Every kernel scheduled, and the programs that call them; for looking at, since `make_llvm` goes one by one."""
    c.one_target()
    with c.stage("scheduled"):
        _run(c, c.pipelines.kernels, kernels=c.pipelines.schedule, tuned=c.options.tuned)
        _run(c, *_program_passes(c))
        _run(c, c.pipelines.calls, profile=c.options.profile)
    return c.module


def make_llvm(c: Compilation) -> list[CompiledKernel]:
    """LLVM IR for every kernel, those that cannot be emitted giving their nodes back, and then for every program."""
    with c.stage("llvm"):
        emit_kernels(c)
        _run(c, "inline-failed-regions")
    with c.stage("programs"):
        _run(c, *_program_passes(c))
        emit_programs(c)
    return c.kernels


def make_programs(c: Compilation) -> list[tuple[ProgramOp, FuncOp]]:
    """The programs, a region alone being one too, each with the calls and the arena that it becomes for the first
    backend: for looking at, with kernels out of the cache. `IgniterError` for several targets."""
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.loop import FuncOp

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
    """What joins regions to programs. For a profile a region alone becomes one too: only programs note the time."""
    return c.pipelines.programs, "form-programs{alone=true}" if c.options.profile else ""


# -- emission ---------------------------------------------------------------------------------------------------------


def emit_kernels(c: Compilation) -> None:
    """The text of every kernel, which leaves the module; the regions of one that fails are marked."""
    from igniter.runtime.compile_helpers import CompileHelpers
    from igniter.transforms.fusion.inline_failed_regions import mark_failed

    kernels = [(kernel, str(kernel)) for kernel in _kernels(c.module)]
    cache = c.cache
    missing = {} if cache is None else {text: None for _, text in kernels if not cache.has(kernel_key(c, text))}
    with CompileHelpers(c, tuple(missing)) as helpers:
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
    """Where the cache has what a kernel of this text became."""
    from igniter.runtime.cache import cache_key

    return cache_key("kernel", c.kernel_settings, str(c.ctx.remarks.enabled), text)


def compile_kernel(c: Compilation, kernel: KernelOp, text: str) -> CompiledKernel:
    """One kernel as LLVM IR, from the cache if it has been compiled before; what passes said of it comes with it.
    `text` is the kernel's own."""
    from igniter.remarks import Remark

    remarks = c.ctx.remarks
    key = kernel_key(c, text)
    found = c.cache.get(key) if c.cache is not None else None
    if found is None:
        before = len(remarks)
        compiled = _compile_variants(c, kernel)
        said = [r.to_dict() for r in remarks.items[before:]]
        del remarks.items[before:]
        found = json.dumps([compiled.name, compiled.variants, compiled.ops, said], default=str).encode()
        if c.cache is not None:
            c.cache.put(key, found)
    name, variants, ops, said = json.loads(found)
    for entry in said:
        remarks.add(Remark.from_dict(entry))
    return CompiledKernel(name, tuple(variants), tuple(ops))


def _compile_variants(c: Compilation, kernel: KernelOp) -> CompiledKernel:
    from dataclasses import asdict

    from xdsl.dialects.builtin import StringAttr

    from igniter.remarks import remark
    from igniter.transforms.conversion.schedule_kernels import schedule_kernel
    from igniter.transforms.scheduled.form_ort_library import describe, with_scratch

    name, options = kernel.sym_name.data, c.options
    machines = iter(c.machines)
    texts: list[str] = []
    ops: list[str] = []
    for number, part in enumerate(c.parts):
        op: OpOp | None = None
        backend = part.backend
        passes = c.pipelines.schedule if number == 0 else backend.pipelines.schedule
        for target, suffix in zip(part.targets, part.suffixes, strict=True):
            ctx = c.context(next(machines))
            func = schedule_kernel(ctx, kernel, passes, options.tuned, verify_each=c.verify_each)
            described = describe(func)
            func.sym_name = StringAttr(name + suffix)
            texts.append(backend.emit_func(func, target, options.sanitize))
            backend.vouch(texts[-1], target)
            for each in backend.expected(func, texts[-1], target):
                remark(ctx, EXPECTED, name, "note", str(each), **asdict(each))
            op = described if op is None else with_scratch(op, described.scratch)
        ops.append(str(op))
    return CompiledKernel(name, tuple(texts), tuple(ops))


def emit_programs(c: Compilation) -> None:
    """The text of every program, for all targets; one that fails for any of them is taken apart."""
    from igniter.analysis.fusion.program_steps import program_steps
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.loop import FuncOp
    from igniter.transforms.fusion.inline_failed_regions import mark_failed

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


def _compile_program(c: Compilation, func: FuncOp, part: Part) -> tuple[tuple[str, ...], str]:
    """One program as text for the targets of a backend, from the cache if it has been compiled before, and its op."""
    from igniter.runtime.cache import cache_key
    from igniter.transforms.scheduled.form_ort_library import describe

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
    """The program for every target of a backend; it calls the kernels for that target."""
    from xdsl.dialects.builtin import StringAttr

    from igniter.dialects.loop import CallOp

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
    """The kernels that have left the module stand in it as the ops around them for a backend, which programs call."""
    from igniter.dialects.ort import LibraryOp

    library = LibraryOp("igniter", [_parse_op(c, k.ops[part]) for k in c.kernels])
    c.module.body.block.add_op(library)
    try:
        yield
    finally:
        _erase(library)


# -- what comes out ---------------------------------------------------------------------------------------------------


def make_module(c: Compilation) -> str:
    """One LLVM module with every kernel in it, as text."""
    target = c.one_target()
    if not c.kernels:
        raise IgniterError("no node of the model compiles, so there is no code; --explain says why")
    texts = [text for k in (*c.kernels, *c.programs) for text in k.variants]
    return c.backend.merged(texts, target)


def make_assembly(c: Compilation) -> str:
    """Assembly for the target, every kernel in one file."""
    with c.stage("asm"):
        return c.backend.assembly(make_module(c), c.one_target())


def make_object(c: Compilation) -> bytes:
    """One relocatable object with every kernel in it."""
    with c.stage("obj"):
        return c.backend.object_code(make_module(c), c.one_target())


def make_library(c: Compilation) -> Library | None:
    """The shared library, and `module` with a custom op for each program and each region in none; `None` where no
    region compiled."""
    from igniter.dialects.ort import LibraryOp
    from igniter.runtime.library import LibraryPart, build_library
    from igniter.transforms.scheduled.form_ort_library import name_carriers, replace_carriers, replace_regions

    with c.stage("library"):
        _run(c, c.pipelines.weights)
        if not c.kernels:
            return None
        code = (*c.kernels, *c.programs)
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
            # What makes a carrier is the same for all.
            shared = [] if number else list(carriers.values())
            kernels = {target: next(texts) for target in part.targets}
            provider = c.options.provider or part.backend.provider if part.backend.provider else ""
            parts.append(LibraryPart(LibraryOp("igniter", [*ops, *shared]), kernels, provider, part.suffixes))
        library = build_library(*parts, info=info, cache=c.cache, sanitize=c.options.sanitize)
        replace_regions(c.module, library.domain, c.options.profile, named)
        replace_carriers(carriers, library.domain)
    return library


def _named_ops(c: Compilation, part: int) -> tuple[list[OpOp], dict[str, OpOp]]:
    """The custom ops of a library for one backend, and of them that of each region in no program, by its label."""
    from igniter.dialects.fusion import ProgramOp
    from igniter.transforms.scheduled.form_ort_library import name_nodes, name_ports

    alone = {region.kernel_name for region in _regions_alone(c.module)}
    groups = {op.label: op for op in c.module.walk() if isinstance(op, ProgramOp)}
    ops = [name_ports(_parse_op(c, p.ops[part]), groups[p.name]) for p in c.programs]
    named: dict[str, OpOp] = {}
    for kernel in (k for k in c.kernels if k.name in alone):
        users = [region for region in _regions_alone(c.module) if region.kernel_name == kernel.name]
        own = name_nodes(_parse_op(c, kernel.ops[part]), users)
        named.update(own)
        ops += dict.fromkeys(own.values())
    return ops, named


def _parse_op(c: Compilation, text: str) -> OpOp:
    from xdsl.parser import Parser

    from igniter.dialects.ort import LibraryOp

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
    """Runs pipelines one after the other over the module, for the machines of one backend, or for all. The others are
    what the options say to some passes: to `form-fusion-regions`, `schedule-kernels` and `lower-programs`."""
    from igniter.analysis.machine import pass_figures
    from igniter.passes import parse_passes, run_passes

    pipeline = ",".join(filter(None, pipelines))
    machine = c.machines[0] if part is None else c.machine_of(part)
    passes = parse_passes(pipeline, pass_figures(c.machines if part is None else [machine]))
    if author:
        passes = _with_author(passes, pipeline, author)
    passes = _with_options(passes, "form-fusion-regions", required=c.required or None)
    passes = _with_options(passes, "schedule-kernels", passes=kernels or None, tuned=tuned or None)
    passes = _with_options(passes, "lower-programs", profile=profile or None)
    run_passes(c.context(machine), c.module, passes, verify_each=c.verify_each)


def _with_options(passes: Sequence[ModulePass], name: str, /, **options: object) -> tuple[ModulePass, ...]:
    """The passes, those called `name` with the options that are not `None`."""
    said = {option: value for option, value in options.items() if value is not None}
    return tuple(dataclasses.replace(this, **said) if this.name == name else this for this in passes)


def _with_author(passes: Sequence[ModulePass], pipeline: str, author: str) -> tuple[ModulePass, ...]:
    """The passes with a fusion author for `form-fusion-regions`; `IgniterError` where that has one, or is not there."""
    from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions

    forming = [this for this in passes if isinstance(this, FormFusionRegions)]
    if not forming:
        raise IgniterError(f"no pass asks the fusion author '{author}': '{pipeline}' has no form-fusion-regions")
    for this in forming:
        if this.author not in (FormFusionRegions.author, author):
            raise IgniterError(f"'{pipeline}' names the fusion author '{this.author}', and the options '{author}'")
    return _with_options(passes, FormFusionRegions.name, author=author)


# -- what is left -----------------------------------------------------------------------------------------------------


def nodes_left(c: Compilation) -> list[LeftNode]:
    """The nodes that ONNX Runtime will run, each with the reason."""
    from igniter.analysis.fusion.left_nodes import left_nodes

    return left_nodes(c.module, c.ctx.remarks, c.isolation.nodes)


def require_no_author(c: Compilation) -> None:
    """`IgniterError` where a fusion author or tiles of convolutions were asked for, and the module's regions have been
    formed already."""
    if c.options.winograd not in (0, "auto"):
        raise IgniterError(
            "winograd has nothing to decide: the regions have been formed. Give the model, or IR of the onnx level"
        )
    if c.options.fusion_author:
        raise IgniterError(
            f"the fusion author '{c.options.fusion_author}' has nothing to decide: the regions have been formed. Give "
            "the model, or IR of the onnx level"
        )


def require_all_compiled(c: Compilation) -> None:
    """`IgniterError` that lists the nodes left to ONNX Runtime for want of a kernel, and not because it is as fast."""
    left = [node for node in nodes_left(c) if not node.is_choice]
    if left:
        shown = "; ".join(map(str, left[:5])) + ("; ..." if len(left) > 5 else "")
        raise IgniterError(f"{len(left)} nodes would be left to ONNX Runtime, and --strict forbids it: {shown}")


def _regions_alone(module: ModuleOp) -> list[RegionOp]:
    """The regions that are in no program."""
    from igniter.dialects.fusion import RegionOp, program_around

    return [op for op in module.walk() if isinstance(op, RegionOp) and program_around(op) is None]


def _kernels(module: ModuleOp) -> list[KernelOp]:
    from igniter.dialects.loop import KernelOp

    return [op for op in module.ops if isinstance(op, KernelOp)]


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def count_nodes(module: ModuleOp) -> int:
    """The ONNX nodes of the main graph and of the subgraphs in it, as ORT will see them.

    A region or a program counts as one, constants as none.
    """
    from igniter.dialects.onnx.structure import GraphOp

    return sum(_count_nodes(graph.body) for graph in module.ops if isinstance(graph, GraphOp))


def _count_nodes(block: Block) -> int:
    from igniter.dialects.fusion import GroupOp
    from igniter.dialects.onnx.base import OnnxOp

    total = 0
    for op in block.ops:
        if isinstance(op, GroupOp):
            total += 1
        elif isinstance(op, OnnxOp) and op.op_type != "Constant":
            total += 1 + sum(_count_nodes(inner) for region in op.regions for inner in region.blocks)
    return total
