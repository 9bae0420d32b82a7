"""`inline-regions`: inlines fusion regions.

    %y = fusion.region @r0 (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) {
      %0 = onnx.Relu(%a) : ...
      fusion.yield %0 : tensor<8xf32>
    }

becomes

    %y = onnx.Relu(%x) : ...

The inverse of `form-fusion-regions`; programs are inlined first. The resulting module runs in ONNX Runtime; the fusion
level is checked in this way. `igniter-opt model.mlir -p inline-regions --emit=onnx` shows the contents of a region in
any viewer.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.dialects.fusion import GroupOp, PackOp, ProgramOp, RegionOp, TablesOp, UnpackOp
from igniter.dialects.made import MakeOp
from igniter.dialects.onnx import building
from igniter.dialects.onnx.base import OnnxOp
from igniter.transforms.fusion.expand_dims import expand_dims
from igniter.transforms.fusion.expand_packs import expand_unpack
from igniter.transforms.fusion.narrow_convolutions import widen


@dataclass(frozen=True)
class InlineRegions(ModulePass):
    """Replaces every `fusion.program` and `fusion.region` by its nodes."""

    name = "inline-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_all(op)


def onnx_level(module: ModuleOp) -> ModuleOp:
    """Returns a copy of the module with only its ONNX graph and functions, ready to export and run."""
    clone = building.clone(module)
    inline_all(clone)
    for op in list(clone.ops):
        if not op.name.startswith("onnx."):
            op.detach()
            op.erase()
    return clone


def inline_all(module: ModuleOp) -> None:
    """Inlines every program, and then every region. Constants that kernels compute are the stored ones again."""
    for make in [op for op in building.ops_inside(module) if isinstance(op, MakeOp)]:
        drop_make(make)
    for kind in (ProgramOp, RegionOp):
        for group in [op for op in building.ops_inside(module) if isinstance(op, kind)]:
            inline_group(group)


def inline_group(group: GroupOp) -> None:
    """Moves the contents of a region or a program to its place, and erases it."""
    outer = group.parent
    assert outer is not None
    expand_dims(group)
    for argument, operand in zip(group.block.args, group.inputs, strict=True):
        argument.replace_all_uses_with(operand)
    terminator = group.yield_op
    yielded = tuple(terminator.values)
    terminator.detach()
    terminator.erase()
    nodes = list(group.block.ops)
    for node in nodes:
        node.detach()
        outer.insert_op_before(node, group)
    for result, value in zip(group.results, yielded, strict=True):
        result.replace_all_uses_with(value)
    group.detach()
    group.erase()
    for node in nodes:
        if isinstance(node, UnpackOp):
            unpack(node)
        elif isinstance(node, TablesOp):
            drop_tables(node)
        elif isinstance(node, OnnxOp):
            widen(node)


def drop_make(op: MakeOp) -> None:
    """Has readers take the stored constant in place of the computed one."""
    op.result.replace_all_uses_with(op.constant)
    op.detach()
    op.erase()


def drop_tables(op: TablesOp) -> None:
    """Erases the tables of a node; only its kernel reads them."""
    tables = list(op.tables)
    op.detach()
    op.erase()
    for table in tables:
        constant = table.owner
        if isinstance(constant, Operation) and table.first_use is None:
            constant.detach()
            constant.erase()


def unpack(op: UnpackOp) -> None:
    """Makes the users of an unpacked weight use the plain weight, and erases the pack if it is now unused. If the
    packed weight comes from outside, nodes unpack it."""
    pack = op.source.owner
    if not isinstance(pack, PackOp):
        expand_unpack(op)
        return
    op.result.replace_all_uses_with(pack.source)
    op.detach()
    op.erase()
    if not any(r.uses for r in pack.results):
        pack.detach()
        pack.erase()
