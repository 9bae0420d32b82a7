"""`form-programs`: makes one custom op of all regions that can run in sequence.

    %a = fusion.region @r0 (...) kernel @r0 -> ...     %b = fusion.program @p0 (%x_1 = %x : ...) -> (...) {
    %v = onnx.Reshape(%a, %shape) : ...                  %a = fusion.region @r0 (...) kernel @r0 -> ...
    %b = fusion.region @r1 (%v ...) kernel @r1 -> ...    %s = fusion.dims [batch*seq, 768] : tensor<2xi64>
                                                  ->     %v = onnx.Reshape(%a, %s) : ...
                                                         %b = fusion.region @r1 (...) kernel @r1 -> ...
                                                         fusion.yield %b : ...
                                                       }

ONNX Runtime spends a microsecond or more on every node besides its kernel: dispatch, output shapes, allocation. A
program is entered once, and the tensors between its kernels are in one arena with places planned at compile time. A
Loop or a Scan whose body consists of regions and views is part of a program too
(`igniter.analysis.fusion.program_loops`). Programs are as few as possible
(`igniter.analysis.fusion.program_selection`): only nodes that ONNX Runtime runs separate two programs. Views between
regions are part of a program and cost nothing. A view that only leaves the program stays outside if its source leaves
the program anyway. A single region is no program, unless `alone` is set.

Every program gets a remark; so does every region and loop outside programs, with the reason. The pass requires kernels
(`lower-onnx-to-loop`); the driver runs it when all kernels are known to compile. `lower-programs` lowers its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.graph import node_label
from igniter.analysis.fusion.program_selection import ProgramSelection, is_program_loop, select_programs
from igniter.analysis.fusion.symbols import region_operands
from igniter.dialects.fusion import GroupOp, ProgramOp
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.onnx.structure import GraphOp
from igniter.remarks import remark
from igniter.transforms.fusion.extract_regions import (
    form_region,
    hoist_constants,
    localize_bodies,
    localize_operands,
    region_results,
)
from igniter.transforms.onnx.onnx_rewriting import is_unused


@dataclass(frozen=True)
class FormPrograms(ModulePass):
    """Groups regions with kernels, and the views between them, into programs."""

    name = "form-programs"

    max_nodes: int = 100_000
    """The largest number of regions and views in a program."""
    alone: bool = False
    """Makes programs of single regions too."""
    loops: bool = True
    """Allows loops in programs."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = {group.label for group in op.walk() if isinstance(group, GroupOp)}
        names = (name for number in range(1 << 30) if (name := f"p{number}") not in taken)
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                self._form(ctx, graph.body, names)

    def _form(self, ctx: Context, block: Block, names: Iterator[str]) -> None:
        if self.loops:
            hoist_constants([op for op in block.ops if is_program_loop(op, block)])
        selection = select_programs(block, self.max_nodes, self.alone, self.loops)
        for op, reason in selection.left.items():
            label = op.label if isinstance(op, GroupOp) else node_label(op)
            remark(ctx, self.name, label, "missed", f"in no program: {reason}", reason=reason.kind)
        for program in _extract(block, selection, names):
            regions = [region.label for region in program.calls]
            loops = sum(is_loop(op) for op in program.steps)
            within = f", {loops} loops" if loops else ""
            text = f"{len(regions)} regions{within}, from @{regions[0]} to @{regions[-1]}"
            remark(ctx, self.name, program.label, "applied", text, regions=regions)


def _extract(block: Block, selection: ProgramSelection, names: Iterator[str]) -> list[ProgramOp]:
    """Moves the groups into programs, and all nodes into topological order."""
    end = block.last_op
    assert end is not None
    if not selection.groups:
        return []
    groups = [[selection.nodes[n] for n in group] for group in selection.groups]
    for group in groups:
        localize_bodies(op for op in group if is_loop(op))
    clones = [localize_operands(group) for group in groups]
    wanted = {value for values in selection.bindings for value in values}
    moved: dict[SSAValue, SSAValue] = {}
    programs: list[ProgramOp] = []
    for unit in selection.order:
        if unit >= 0:
            node = selection.nodes[unit]
            node.detach()
            block.insert_op_before(node, end)
            continue
        members = groups[-1 - unit]
        bindings = [moved.get(v, v) for v in selection.bindings[-1 - unit]]
        operands = list(dict.fromkeys([*region_operands(members), *bindings]))
        results = region_results(members, wanted)
        program = form_region(next(names), members, clones[-1 - unit], operands, results, end, ProgramOp)
        moved.update(zip(results, program.results, strict=True))
        programs.append(program)
    op = block.last_op
    while op is not None:
        before = op.prev_op
        if is_unused(op):
            block.erase_op(op)
        op = before
    return programs
