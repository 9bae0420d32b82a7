"""`drop-shape-nodes`: replaces computed shapes by constants, and removes their nodes.

    %s = onnx.Shape(%x)  ...  %t = onnx.Concat(%b, %n, ...)
    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<batch, seq, 12, 64>}}

    ->  %t = onnx.Constant() {value = #onnx.tensor<i64, [0, 0, 12, 64]>}
        %y = onnx.Reshape(%x, %t)

The result is the *compute graph*: the nodes outside shape arithmetic. ONNX expresses the value of an operand as
follows:

    Reshape   0 for a dim kept at its place, -1 for one dim neither kept nor an integer
    Expand    1 for a dim of the operand itself
    Slice     the largest integer for the end of an axis, -k for k before it
    Resize    scales in place of sizes if these are multiples of the operand's
    Constant  if all elements are integers

A shape without such a form (an Expand of a single element to `[batch, seq]`, a Range up to `seq`) stays computed, each
symbol once and from the inputs (`shape_arithmetic`), with a remark. -1 is correct only for a tensor with elements: if
another dim of such a target is 0, ONNX Runtime refuses it. Constants become initializers.

The pass runs after `infer-shapes`, to have the recorded shapes, and after `fold-constants`, to have those without
symbols as constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from igniter.dialects.onnx.attributes import TensorAttr, text_attr
from igniter.dialects.onnx.base import OnnxOp, make_constant, no_value_near
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.remarks import remark
from igniter.rewrite_budget import Budget, budget
from igniter.toolbox.shapes.shape_arithmetic import ShapeArithmetic
from igniter.transforms.onnx.canonicalization.movement import known_values
from igniter.transforms.onnx.canonicalization.views import constant_target
from igniter.transforms.onnx.fold_constants import erase_dead
from igniter.transforms.onnx.onnx_rewriting import element, ints_of, known_dims, operand

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

END = (1 << 63) - 1
"""The end of an axis of any size."""


@dataclass(frozen=True)
class DropShapeNodes(ModulePass):
    """Replaces computed shapes by constants, if ONNX can express them."""

    name = "drop-shape-nodes"
    one_rewrite = "an operand replaced by a constant, or by what the inputs' shapes say"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            if isinstance(graph, GraphOp):
                _Dropper(self.name, ctx, budget(ctx, self.name), ShapeArithmetic(graph)).block(graph.body)


@dataclass
class _Dropper:
    name: str
    ctx: Context
    rewrites: Budget
    arithmetic: ShapeArithmetic

    def block(self, block: Block) -> None:
        """Processes the nodes of a block and of the graphs in it."""
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
            # A node erased together with its readers is in no block.
            if isinstance(op, OnnxOp) and op.parent is not None:
                self._node(op)
        for op in block.ops:
            _name_constant(op)

    def _node(self, op: OnnxOp) -> None:
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if op.qualified_name == "Resize":
            self._resize(op)
        elif isinstance(noted, DictionaryAttr):
            for key, dims in noted.data.items():
                if isinstance(dims, DimsAttr):
                    self._operand(op, int(key), dims.data)

    def _operand(self, op: OnnxOp, index: int, elements: Dims) -> None:
        ints = [e.constant for e in elements]
        said: list[int] | None = [i for i in ints if i is not None]
        if len(said) < len(ints):
            rule = RULES.get((op.qualified_name, index))
            said = rule(op, elements) if rule is not None else None
        if said is None:
            shape = ", ".join(map(str, elements))
            text = f"operand {index} of {op.qualified_name} stays computed: no constant says [{shape}]"
            remark(self.ctx, self.name, op.node_name, "missed", text)
            self._compute(op, index, elements)
            return
        if self.rewrites.take(op.node_name, f"operand {index} of {op.qualified_name} is constant"):
            if op.qualified_name == "Reshape":
                op.attributes.pop("allowzero", None)
            _replace(op, index, said)

    def _compute(self, op: OnnxOp, index: int, elements: Dims) -> None:
        """Computes an operand from the inputs' shapes, with the fewest nodes."""
        old = op.operands[index]
        kind, dims = element(old), known_dims(old)
        if kind is None or dims is None or len(dims) > 1 or self.rewrites.is_spent:
            return
        made = self.arithmetic.of(elements, len(dims), kind)
        if made is None or made is old:
            return
        self.rewrites.count(op.node_name, f"operand {index} of {op.qualified_name} is computed from the inputs")
        op.operands[index] = made
        erase_dead([old])

    def _resize(self, op: OnnxOp) -> None:
        elements, scales = known_values(op, 3), _scales(op)
        if elements is None or ints_of(operand(op, 3)) is not None:
            return
        if all(e.constant is not None for e in elements):
            self._operand(op, 3, elements)
        elif scales is None:
            text = (
                f"operand 3 of Resize stays computed: [{', '.join(map(str, elements))}] is no multiple of the operand"
            )
            remark(self.ctx, self.name, op.node_name, "missed", text)
            self._compute(op, 3, elements)
        elif self.rewrites.take(op.node_name, "the sizes of Resize are scales"):
            old, constant = op.operands[3], make_constant(np.array(scales, np.float32), f"{op.node_name}_scales")
            assert op.parent is not None
            op.parent.insert_op_before(constant, op)
            op.operands = [op.operands[0], no_value_near(op.operands[0]), constant.results[0]]
            _forget_noted(op, 3)
            erase_dead([old])


def _replace(op: OnnxOp, index: int, ints: Sequence[int]) -> None:
    old = op.operands[index]
    kind, dims = element(old), known_dims(old)
    shape = [d.constant for d in dims] if dims is not None else [len(ints)]
    array: Array = np.array(ints, dtype=BY_ATTR[kind].dtype if kind in BY_ATTR else np.int64)
    name = f"{op.node_name or op.op_type}_{index}"
    constant = make_constant(array.reshape([len(ints) if s is None else s for s in shape]), name)
    assert op.parent is not None
    op.parent.insert_op_before(constant, op)
    op.operands[index] = constant.results[0]
    _forget_noted(op, index)
    erase_dead([old])


def _forget_noted(op: OnnxOp, index: int) -> None:
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    if not isinstance(noted, DictionaryAttr):
        return
    kept = {k: v for k, v in noted.data.items() if k != str(index)}
    if kept:
        op.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(kept)
    else:
        del op.attributes[VALUES_ATTRIBUTE]


def _name_constant(op: object) -> None:
    """Stores a constant as an initializer: it is no node of a compute graph."""
    if not isinstance(op, OnnxOp) or op.name != "onnx.Constant" or "initializer_name" in op.properties:
        return
    if not isinstance(op.attributes.get("value"), TensorAttr):
        return
    names = op.output_names
    op.properties["initializer_name"] = text_attr((names[0] if names else "") or op.node_name or "constant")


# -- the values of operands in ONNX -----------------------------------------------------------------------------------


def _reshape_target(op: OnnxOp, elements: Dims) -> list[int] | None:
    source, result = known_dims(operand(op, 0)), known_dims(op.results[0])
    if source is None or result is None or not result or op.opset < 5:
        return None
    return constant_target(source, result, [True] * len(result))


def _expand_target(op: OnnxOp, elements: Dims) -> list[int] | None:
    source = known_dims(operand(op, 0))
    if source is None:
        return None
    said: list[int] = []
    for back in range(len(elements), 0, -1):
        wanted = elements[len(elements) - back]
        own = source[len(source) - back] if back <= len(source) else None
        if wanted.constant is not None:
            said.append(wanted.constant)
        elif own == wanted:
            said.append(1)
        else:
            return None
    return said


def _slice_bounds(op: OnnxOp, elements: Dims) -> list[int] | None:
    dims, axes, steps = known_dims(operand(op, 0)), _axes_of(op, len(elements)), ints_of(operand(op, 4))
    if dims is None or axes is None or (operand(op, 4) is not None and steps is None):
        return None
    said: list[int] = []
    for k, (axis, e) in enumerate(zip(axes, elements, strict=True)):
        if e.constant is not None:
            said.append(e.constant)
            continue
        before = (dims[axis % len(dims)] - e).constant
        if before is None or before < 0 or (steps is not None and steps[k] < 0):
            return None
        if before == 0:
            said.append(END)
        elif before == 1 or is_nonneg(e):
            said.append(-before)
        else:
            # A negative value counts from the end, and its -k would have another meaning.
            return None
    return said


def _axes_of(op: OnnxOp, count: int) -> list[int] | None:
    given = operand(op, 3)
    return list(range(count)) if given is None else ints_of(given)


def _scales(op: OnnxOp) -> list[float] | None:
    """Returns scales equivalent to the sizes of a Resize, as integers, to be exact; else None."""
    dims, elements = known_dims(operand(op, 0)), known_values(op, 3)
    plain = op.opset >= 13 and op.attr("keep_aspect_ratio_policy") in (None, "stretch")
    plain = plain and op.attr("coordinate_transformation_mode") != "tf_crop_and_resize"
    if dims is None or elements is None or not plain or operand(op, 2) is not None:
        return None
    axes: list[int] = op.attr("axes") or list(range(len(dims)))
    scales: list[float] = []
    for axis, e in zip(axes, elements, strict=True):
        factor = _factor(e, dims[axis % len(dims)])
        if factor is None:
            return None
        scales.append(float(factor))
    return scales


def _factor(e: Expr, dim: Expr) -> int | None:
    """Returns the positive integer k with `e == k*dim`, or None."""
    if not e.terms or not dim.terms or e.terms[0][1] % dim.terms[0][1]:
        return None
    k = e.terms[0][1] // dim.terms[0][1]
    return k if k > 0 and dim * k == e else None


Rule = Callable[[OnnxOp, Dims], "list[int] | None"]

RULES: dict[tuple[str, int], Rule] = {
    ("Reshape", 1): _reshape_target,
    ("Expand", 1): _expand_target,
    ("Slice", 1): _slice_bounds,
    ("Slice", 2): _slice_bounds,
}
