"""Removing code left dead by an edit: unused nodes, nests, values, symbols and functions."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Block
from xdsl.traits import IsTerminator

from igniter.dialects.fusion import DimsOp, GroupOp, PackOp, UnpackOp
from igniter.dialects.loop import AllocOp, FuncOp, KernelOp, NestOp
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.loop.dead_values import erase_dead_values
from igniter.dialects.loop.structured import symbols_attr
from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.transforms.structured.nest_rewriting import erase_dead_nests, erase_dead_ops


def clean(module: ModuleOp) -> None:
    """Removes everything dead."""
    for op in list(module.ops):
        if isinstance(op, (GraphOp, FunctionOp)):
            _sweep(op.regions[0].block)
        elif isinstance(op, KernelOp):
            for nest in [n for n in op.block.ops if isinstance(n, NestOp)]:
                erase_dead_ops(nest.block)
            erase_dead_nests(op)
        elif isinstance(op, FuncOp):
            erase_dead_values(op.block)
            _drop_empty_loops(op.block)
            _drop_unused_buffers(op)
        if isinstance(op, (KernelOp, FuncOp)):
            _drop_symbols(op)
    _drop_uncalled(module)
    if not any(isinstance(op, (GraphOp, FunctionOp)) for op in module.ops):
        # The assumptions are about the model, whose graph is gone.
        module.attributes.pop("onnx.model", None)


def _sweep(block: Block) -> None:
    op = block.last_op
    while op is not None:
        before = op.prev_op
        pure = isinstance(op, (OnnxOp, NoValueOp, GroupOp, DimsOp, PackOp, UnpackOp))
        if pure and not op.has_trait(IsTerminator) and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _sweep(inner)
        op = before


def _drop_empty_loops(block: Block) -> None:
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                _drop_empty_loops(inner)
        if op.name == "loop.for" and op.regions[0].block.first_op is None:
            op.detach()
            op.erase()


def _drop_unused_buffers(func: FuncOp) -> None:
    for op in list(func.walk()):
        if isinstance(op, AllocOp) and op.result.first_use is None:
            op.detach()
            op.erase()
    # Only its inputs: the last arguments are its outputs, even if unwritten.
    for arg in func.block.args[: len(func.block.args) - func.output_count][::-1]:
        if arg.first_use is None:
            func.block.erase_arg(arg)


def _drop_symbols(kernel: KernelOp | FuncOp) -> None:
    """Removes the unused symbols of a kernel."""
    used: set[str] = set()
    for op in kernel.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            try:
                used.update(*(d.symbols for d in dims_of(value.type)))
            except ValueError:
                continue
        for attr in op.properties.values():
            if isinstance(attr, DimsAttr):
                used.update(*(e.symbols for e in attr.data))
            elif isinstance(attr, AxesAttr):
                used.update(*(a.extent.symbols for a in attr.data))
    for need in kernel.requires:
        used |= need.symbols
    kept = [name for name in kernel.symbol_names if name in used]
    if len(kept) < len(kernel.symbol_names):
        kernel.symbols = symbols_attr(kept)


def _drop_uncalled(module: ModuleOp) -> None:
    """Removes uncalled functions, and regions' names of missing kernels."""
    kernels = {op.sym_name.data for op in module.ops if isinstance(op, (KernelOp, FuncOp))}
    called: set[tuple[str, str, str]] = set()
    for op in module.walk():
        if isinstance(op, OnnxOp):
            called.add((op.domain, op.op_type, op.overload))
        kernel = op.properties.get("kernel") if isinstance(op, GroupOp) else None
        if isinstance(kernel, SymbolRefAttr) and kernel.root_reference.data not in kernels:
            del op.properties["kernel"]
    for op in list(module.ops):
        if isinstance(op, FunctionOp) and op.key not in called:
            op.detach()
            op.erase()
