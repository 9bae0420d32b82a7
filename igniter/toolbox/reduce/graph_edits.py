"""Edits of graphs and regions: remove or bypass nodes, inline regions, drop inputs and outputs, simplify weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.fusion import GroupOp
from igniter.dialects.loop import ComputeOp, FuncOp, KernelOp, ViewOp
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.toolbox.reduce.case import weight_elements
from igniter.toolbox.reduce.edits import CannotEdit, Edit, Reduction
from igniter.toolbox.reduce.frames import Frame, take_out
from igniter.transforms.fusion.inline_regions import inline_group


def is_node(op: Operation) -> bool:
    """True for a node with a computation, or a group of such nodes."""
    return isinstance(op, GroupOp) or (isinstance(op, OnnxOp) and op.op_type != "Constant")


def parts(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a graph, function or kernel."""
    tops = [op for op in module.ops if isinstance(op, (GraphOp, FunctionOp, KernelOp, FuncOp))]
    if len(tops) > 1:
        for op in tops:
            yield Edit(op, f"drop {op.name}", _erase)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def nodes(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to remove an op from a graph, a region or a kernel: its results become inputs, its operands
    outputs."""
    for op in module.walk():
        inside = op.parent is not None and Frame.of(op.parent) is not None
        if inside and (is_node(op) or isinstance(op, (ComputeOp, ViewOp))):
            yield Edit(op, "take out", take_out)


def regions(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to inline a region or a program."""
    for op in module.walk():
        if isinstance(op, GroupOp):
            yield Edit(op, "take apart", _inline)


def _inline(op: Operation) -> None:
    assert isinstance(op, GroupOp)
    inline_group(op)


def bypasses(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a node by an operand, also inside subgraphs."""
    for op in module.walk():
        if not is_node(op) or len(op.results) != 1:
            continue
        for place, value in enumerate(op.operands):
            if _fits(value, op.results[0]):
                yield Edit(op, f"use operand {place} instead", partial(_bypass, place=place))


def _fits(value: SSAValue, result: SSAValue) -> bool:
    given: Attribute = value.type
    wanted: Attribute = result.type
    loose = UnrankedTensorType.name in (given.name, wanted.name)
    return given == wanted or (loose and tensor_element(given) == tensor_element(wanted))


def _bypass(op: Operation, place: int) -> None:
    if len(op.results) != 1:
        raise CannotEdit("it has several results by now")
    op.results[0].replace_all_uses_with(op.operands[place])
    op.detach()
    op.erase()


def outputs(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop an output of a graph, region or kernel; one output must stay."""
    for op in module.walk():
        if isinstance(op, (GraphOp, GroupOp, KernelOp)):
            frame = Frame.of(op.regions[0].block)
            count = len(frame.outputs) if frame is not None else 0
            # From the last on: an output keeps its index while later ones are removed.
            for place in reversed(range(count)) if count > 1 else ():
                yield Edit(
                    op.regions[0].block.last_op or op, f"drop output {place}", partial(_drop_output, place=place)
                )


def _drop_output(end: Operation, place: int) -> None:
    frame = Frame.of(end.parent) if end.parent is not None else None
    if frame is None or place >= len(frame.outputs):
        raise CannotEdit("there are fewer outputs by now")
    frame.set_outputs([v for k, v in enumerate(frame.outputs) if k != place])


def inputs(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop an unused input."""
    for op in module.walk():
        if isinstance(op, (GraphOp, GroupOp, KernelOp)):
            args = op.regions[0].block.args
            for place in reversed(range(len(args))):
                if args[place].first_use is None:
                    yield Edit(op, f"drop input {place}", partial(_drop_input, place=place))


def _drop_input(op: Operation, place: int) -> None:
    frame = Frame.of(op.regions[0].block)
    if frame is None or frame.block.args[place].first_use is not None:
        raise CannotEdit("the input is used")
    frame.drop_input(place)


def attributes(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop an optional attribute of a node; the node then has the default."""
    for op in module.walk():
        if isinstance(op, OnnxOp) and op.op_type != "Constant":
            for name in op.attributes:
                yield Edit(op, f"drop the attribute {name}", partial(_drop_attribute, name=name))


def _drop_attribute(op: Operation, name: str) -> None:
    op.attributes.pop(name, None)


def weights(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to make all elements of a constant one."""
    for op in module.walk():
        if weight_elements(op):
            yield Edit(op, "all elements one", _fill)


def _fill(op: Operation) -> None:
    weight = constant_weight(op.results[0])
    assert weight is not None
    array = weight.array()
    _replace_constant(op, np.ones_like(array) if array.dtype.kind == "f" else np.full_like(array, array.reshape(-1)[0]))


def _replace_constant(op: Operation, array: object) -> None:
    made = make_constant(array)  # pyright: ignore[reportArgumentType]
    if made.results[0].type != op.results[0].type:
        raise CannotEdit("a constant of another type")
    op.attributes["value"] = made.attributes["value"]


REDUCTIONS = (
    Reduction("drop graphs and kernels", parts),
    Reduction("take out", nodes),
    Reduction("drop outputs", outputs),
    Reduction("drop inputs", inputs),
    Reduction("bypass nodes", bypasses),
    Reduction("take regions apart", regions),
    Reduction("drop attributes", attributes),
    Reduction("simplify weights", weights),
)
