"""The compile driver: an ONNX model through every level to a library that ONNX Runtime loads.

    make_onnx -> make_fusion -> make_loop -> make_scheduled -> make_llvm -> make_object / make_assembly
                                                                       \\-> make_library

Each function takes a `Compilation` to one level and says so in its name; what each level's passes are is in
`pipelines.py`. From `make_loop` on every kernel goes its own way: one that cannot be lowered, scheduled or emitted
gives its nodes back to ONNX Runtime, with a remark that says why, and costs nothing but speed. What a kernel became is
cached under its text, the passes, the target and the versions. Once all kernels are known to be good, `make_llvm` joins
the regions to programs, which call them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from igniter._version import build_id
from igniter.compilation import Compilation, CompiledKernel
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block
    from xdsl.passes import ModulePass

    from igniter.analysis.fusion.left_nodes import LeftNode
    from igniter.analysis.machine import MachineModel
    from igniter.dialects.fusion import ProgramOp, RegionOp
    from igniter.dialects.loop import FuncOp, KernelOp
    from igniter.dialects.ort import OpOp
    from igniter.runtime.library import Library

STAGES = ("onnx", "fusion", "loop", "scheduled", "llvm", "asm", "obj", "library")


# -- whole-model stages -----------------------------------------------------------------------------------------------


def make_onnx(c: Compilation) -> ModuleOp:
    """Shapes inferred, constants folded, patterns recomposed: what fusion works on."""
    c.nodes_before = count_nodes(c.module)
    if c.options.fusion_author:
        # A wrong name is said before the work, not after it.
        from igniter.analysis.fusion.author import make_author

        make_author(c.options.fusion_author)
    with c.stage("onnx"):
        _run(c, c.module, c.options.onnx_passes)
        if c.options.precision != "f32":
            _run(c, c.module, f"lower-precision{{to={c.options.precision}}}")
    return c.module


def make_fusion(c: Compilation) -> ModuleOp:
    """Nodes grouped into regions."""
    with c.stage("fusion"):
        _run(c, c.module, c.options.fusion_passes, author=c.options.fusion_author)
    return c.module


def make_loop(c: Compilation) -> ModuleOp:
    """A structured kernel for every region that has a lowering; the others taken apart again."""
    from igniter.analysis.fusion.region_signature import region_signature
    from igniter.dialects.fusion import RegionOp
    from igniter.transforms.conversion.lower_onnx_to_loop import lower_region

    with c.stage("loop"):
        # Region by region, so that one without a lowering costs itself alone, and equal ones once; the pass then
        # finds nothing left to do.
        equal: dict[Hashable, list[RegionOp]] = {}
        for region in [r for r in c.module.walk() if isinstance(r, RegionOp) and r.kernel_name is None]:
            equal.setdefault(region_signature(region), []).append(region)
        for regions in equal.values():
            kernel = _attempt(c, regions, lambda r=regions[0]: lower_region(r))
            if kernel is not None:
                c.module.body.block.add_op(kernel)
                for region in regions:
                    region.kernel_name = regions[0].label
        _run(c, c.module, c.options.loop_passes)
    return c.module


def make_scheduled(c: Compilation) -> ModuleOp:
    """Every kernel scheduled, and the programs that call them; for looking at, since `make_llvm` goes one by one."""
    c.one_target()
    (machine,) = c.machines
    with c.stage("scheduled"):
        for kernel in _kernels(c.module):
            scheduled = _attempt(c, _users(c.module, kernel), lambda k=kernel: schedule_kernel(c, k, machine))
            if scheduled is not None:
                func, _ = scheduled
                func.detach()
                c.module.body.block.add_op(func)
            _erase(kernel)
        _form_programs(c)
        _run(c, c.module, "lower-programs{profile=true}" if c.options.profile else "lower-programs")
        _run(c, c.module, "plan-buffers")
    return c.module


# -- kernel by kernel -------------------------------------------------------------------------------------------------


def schedule_kernel(c: Compilation, kernel: KernelOp, machine: MachineModel) -> tuple[FuncOp, OpOp]:
    """One kernel scheduled for a machine, and the custom op around it."""
    from xdsl.dialects.builtin import ModuleOp

    from igniter.dialects.loop import FuncOp
    from igniter.passes import PassError
    from igniter.remarks import remark
    from igniter.transforms.scheduled.form_ort_library import describe

    alone = ModuleOp([kernel.clone()])
    try:
        _run(c, alone, c.options.schedule_passes, machine, tuned=c.options.tuned)
    except PassError as error:
        if not c.options.tuned:
            raise
        # A schedule of the database may ask for what passes no longer do. Others in it are as good as before.
        name = kernel.sym_name.data
        remark(c.ctx, "driver", name, "missed", f"compiled with no schedule of {c.options.tuned}: {_reason(error)}")
        alone = ModuleOp([kernel.clone()])
        _run(c, alone, c.options.schedule_passes, machine)
    func = next((op for op in alone.ops if isinstance(op, FuncOp)), None)
    if func is None:
        raise IgniterError(f"the passes '{c.options.schedule_passes}' leave kernel @{kernel.sym_name.data} unscheduled")
    return func, describe(func)


def compile_kernel(c: Compilation, kernel: KernelOp) -> CompiledKernel:
    """One kernel as LLVM IR, from the cache if it has been compiled before; what passes said of it comes with it."""
    from igniter.remarks import Remark
    from igniter.runtime.cache import cache_key

    remarks = c.ctx.remarks
    key = cache_key("kernel", c.kernel_settings, str(remarks.enabled), str(kernel))
    found = c.cache.get(key) if c.cache is not None else None
    if found is None:
        before = len(remarks)
        compiled = _compile_variants(c, kernel)
        said = [r.to_dict() for r in remarks.items[before:]]
        del remarks.items[before:]
        found = json.dumps([compiled.name, compiled.variants, compiled.op, said], default=str).encode()
        if c.cache is not None:
            c.cache.put(key, found)
    name, variants, op, said = json.loads(found)
    for entry in said:
        remarks.add(Remark.from_dict(entry))
    return CompiledKernel(name, tuple(variants), op)


def _compile_variants(c: Compilation, kernel: KernelOp) -> CompiledKernel:
    from xdsl.dialects.builtin import StringAttr

    from igniter.runtime.library import variant_suffix
    from igniter.transforms.scheduled.form_ort_library import with_scratch

    name = kernel.sym_name.data
    texts: list[str] = []
    op: OpOp | None = None
    for k, (target, machine) in enumerate(zip(c.targets, c.machines, strict=True)):
        func, described = schedule_kernel(c, kernel, machine)
        func.sym_name = StringAttr(name + variant_suffix(k, len(c.targets)))
        texts.append(c.backend.emit_func(func, target, c.options.sanitize))
        op = described if op is None else with_scratch(op, described.scratch)
    return CompiledKernel(name, tuple(texts), str(op))


def make_llvm(c: Compilation) -> list[CompiledKernel]:
    """LLVM IR for every kernel, those that cannot be emitted giving their nodes back, and then for every program."""
    with c.stage("llvm"):
        for kernel in _kernels(c.module):
            compiled = _attempt(c, _users(c.module, kernel), lambda k=kernel: compile_kernel(c, k))
            if compiled is not None:
                c.kernels.append(compiled)
            _erase(kernel)
    with c.stage("programs"):
        _make_programs(c)
    return c.kernels


# -- programs ---------------------------------------------------------------------------------------------------------


def _form_programs(c: Compilation) -> list[ProgramOp]:
    """Joins regions to programs. For a profile a region alone becomes one too: only programs note the time."""
    from igniter.dialects.fusion import ProgramOp

    _run(c, c.module, c.options.program_passes)
    if c.options.profile:
        _run(c, c.module, "form-programs{alone=true}")
    return [op for op in c.module.walk() if isinstance(op, ProgramOp)]


def _make_programs(c: Compilation) -> None:
    """LLVM IR for every program; one that cannot be emitted leaves its regions custom ops of their own."""
    from igniter.analysis.fusion.program_steps import program_steps
    from igniter.remarks import remark
    from igniter.transforms.fusion.inline_regions import inline_group

    ops = {k.name: _parse_op(c, k.op) for k in c.kernels}
    for program in _form_programs(c):
        try:
            c.programs.append(_compile_program(c, program, ops))
            c.steps.append(program_steps(program))
        except Exception as error:
            if c.strict:
                raise
            remark(c.ctx, "driver", program.label, "missed", f"its regions stay ops of their own: {_reason(error)}")
            inline_group(program)


def _compile_program(c: Compilation, program: ProgramOp, kernels: Mapping[str, OpOp]) -> CompiledKernel:
    """One program as LLVM IR, from the cache if it has been compiled before."""
    from igniter.runtime.cache import cache_key
    from igniter.transforms.conversion.lower_programs import lower_program
    from igniter.transforms.scheduled.form_ort_library import describe
    from igniter.transforms.scheduled.plan_buffers import plan_func

    func = lower_program(program, kernels, c.options.profile)
    plan_func(func)
    func.verify()
    op = str(describe(func))
    key = cache_key("program", build_id(), repr(c.targets), str(c.options.sanitize), str(func))
    found = c.cache.get(key) if c.cache is not None else None
    texts = _emit_program(c, func) if found is None else tuple(json.loads(found))
    if c.cache is not None and found is None:
        c.cache.put(key, json.dumps(texts).encode())
    return CompiledKernel(program.label, texts, op)


def _emit_program(c: Compilation, func: FuncOp) -> tuple[str, ...]:
    """The program for every target; it calls the kernels for that target."""
    from xdsl.dialects.builtin import StringAttr

    from igniter.dialects.loop import CallOp
    from igniter.runtime.library import variant_suffix

    texts: list[str] = []
    for k, target in enumerate(c.targets):
        suffix = variant_suffix(k, len(c.targets))
        variant = func.clone()
        variant.sym_name = StringAttr(func.sym_name.data + suffix)
        for call in variant.walk():
            if isinstance(call, CallOp):
                call.callee += suffix
        texts.append(c.backend.emit_func(variant, target, c.options.sanitize))
    return tuple(texts)


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
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.ort import LibraryOp
    from igniter.runtime.library import build_library
    from igniter.transforms.fusion.pack_weights import fold_packs
    from igniter.transforms.scheduled.form_ort_library import (
        name_carriers,
        name_nodes,
        name_ports,
        replace_carriers,
        replace_regions,
    )

    with c.stage("library"):
        fold_packs(c.module)
        if not c.kernels:
            return None
        alone = {region.kernel_name for region in _regions_alone(c.module)}
        code = (*c.kernels, *c.programs)
        groups = {op.label: op for op in c.module.walk() if isinstance(op, ProgramOp)}
        ops = [name_ports(_parse_op(c, p.op), groups[p.name]) for p in c.programs]
        named: dict[str, OpOp] = {}
        for kernel in (k for k in c.kernels if k.name in alone):
            users = [region for region in _regions_alone(c.module) if region.kernel_name == kernel.name]
            own = name_nodes(_parse_op(c, kernel.op), users)
            named.update(own)
            ops += dict.fromkeys(own.values())
        info = {
            "options": c.options.to_dict(),
            "target_name": c.options.target,
            "machines": [m.values() for m in c.machines],
        }
        first, *others = ((t, [k.variants[i] for k in code]) for i, t in enumerate(c.targets))
        carriers = name_carriers(c.module)
        library = build_library(
            LibraryOp("igniter", [*ops, *carriers.values()]),
            first[1],
            first[0],
            more=dict(others),
            info=info,
            cache=c.cache,
            sanitize=c.options.sanitize,
        )
        replace_regions(c.module, library.domain, c.options.profile, named)
        replace_carriers(carriers, library.domain)
    return library


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
    module: ModuleOp,
    pipeline: str,
    machine: MachineModel | None = None,
    *,
    author: str = "",
    tuned: str = "",
) -> None:
    """Runs passes for one machine, or for all that are compiled for: what is asked of a single one is the first's."""
    from igniter.analysis.machine import pass_figures
    from igniter.passes import parse_passes, run_passes

    machines = [machine] if machine is not None else c.machines
    passes = parse_passes(pipeline, pass_figures(machines))
    if author:
        passes = _with_author(passes, pipeline, author)
    if tuned:
        passes = _with_database(passes, pipeline, tuned)
    run_passes(c.ctx.on(machines[0]), module, passes, verify_each=c.verify_each)


def _with_author(passes: Sequence[ModulePass], pipeline: str, author: str) -> tuple[ModulePass, ...]:
    """The passes with a fusion author for `form-fusion-regions`; `IgniterError` where that has one, or is not there."""
    from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions

    forming = [this for this in passes if isinstance(this, FormFusionRegions)]
    if not forming:
        raise IgniterError(f"no pass asks the fusion author '{author}': '{pipeline}' has no form-fusion-regions")
    for this in forming:
        if this.author not in (FormFusionRegions.author, author):
            raise IgniterError(f"'{pipeline}' names the fusion author '{this.author}', and the options '{author}'")
    return tuple(
        dataclasses.replace(this, author=author) if isinstance(this, FormFusionRegions) else this for this in passes
    )


def _with_database(passes: Sequence[ModulePass], pipeline: str, path: str) -> tuple[ModulePass, ...]:
    """The passes with a database for `apply-tuned-schedules`; `IgniterError` where that is not there."""
    from igniter.transforms.structured.apply_tuned_schedules import ApplyTunedSchedules

    if not any(isinstance(this, ApplyTunedSchedules) for this in passes):
        raise IgniterError(f"nothing asks the database of schedules {path}: '{pipeline}' has no apply-tuned-schedules")
    return tuple(
        dataclasses.replace(this, db=path) if isinstance(this, ApplyTunedSchedules) and not this.db else this
        for this in passes
    )


T = TypeVar("T")


def _attempt(c: Compilation, regions: Sequence[RegionOp], step: Callable[[], T]) -> T | None:
    """What `step` makes of `regions`; where it cannot, they go back to ONNX Runtime, and the reason is a remark."""
    try:
        return step()
    except Exception as error:
        if c.strict:
            raise
        # Whatever went wrong with one kernel, the model still compiles: that is what the original nodes are kept for.
        _drop(c, regions, _reason(error))
        return None


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, IgniterError) else f"{type(error).__name__}: {error}"


def nodes_left(c: Compilation) -> list[LeftNode]:
    """The nodes that ONNX Runtime will run, each with the reason."""
    from igniter.analysis.fusion.left_nodes import left_nodes

    return left_nodes(c.module, c.ctx.remarks, c.failed_nodes)


def require_no_author(c: Compilation) -> None:
    """`IgniterError` where a fusion author was asked for, and the module's regions have been formed already."""
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


def _drop(c: Compilation, regions: Sequence[RegionOp], reason: str) -> None:
    from igniter.analysis.fusion.graph import is_node, node_label
    from igniter.dialects.fusion import program_around
    from igniter.remarks import remark
    from igniter.transforms.fusion.inline_regions import inline_group

    for region in regions:
        if (program := program_around(region)) is not None:
            inline_group(program)
        c.dropped.append((region.label, reason))
        c.failed_nodes.update((node_label(op), reason) for op in region.block.ops if is_node(op))
        remark(c.ctx, "driver", region.label, "missed", f"left to ONNX Runtime: {reason}")
        inline_group(region)


def _users(module: ModuleOp, kernel: KernelOp) -> list[RegionOp]:
    """The regions that a kernel computes."""
    from igniter.dialects.fusion import RegionOp

    name = kernel.sym_name.data
    return [op for op in module.walk() if isinstance(op, RegionOp) and op.kernel_name == name]


def _regions_alone(module: ModuleOp) -> list[RegionOp]:
    """The regions that are in no program."""
    from igniter.dialects.fusion import RegionOp, program_around

    return [op for op in module.walk() if isinstance(op, RegionOp) and program_around(op) is None]


def _kernels(module: ModuleOp) -> list[KernelOp]:
    from igniter.dialects.loop import KernelOp

    return [op for op in module.ops if isinstance(op, KernelOp)]


def _erase(kernel: KernelOp) -> None:
    kernel.detach()
    kernel.erase()


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
