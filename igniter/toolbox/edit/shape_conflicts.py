"""The requirements of nodes on the dims of their operands, for edits of these dims."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from xdsl.ir import Attribute, SSAValue

from igniter.analysis.onnx.shape_inference import ShapeFacts, operand_values
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.transforms.onnx.infer_shapes import set_operand_values

ONE = Expr.of(1)
# fmt: off
BROADCASTS = frozenset((
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
))
"""Ops of ai.onnx whose operands broadcast, aligned at the last dim, since opset 7."""
POINTWISE = BROADCASTS | frozenset((
    "Abs", "Cast", "Ceil", "Celu", "Clip", "Cos", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink",
    "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
))
"""Ops whose elements depend only on elements at the same place."""
POINTWISE_OF_ORT = frozenset(("BiasGelu", "FastGelu", "Gelu", "QuickGelu"))
# fmt: on


def is_pointwise(node: OnnxOp) -> bool:
    """True if a node computes each element from the elements at the same place, with operands aligned at the last
    dim."""
    if node.domain == "com.microsoft":
        return node.op_type in POINTWISE_OF_ORT
    return node.domain == "" and node.op_type in POINTWISE and (node.op_type not in BROADCASTS or node.opset >= 7)


@contextmanager
def typed_by(facts: ShapeFacts) -> Generator[None]:
    """Gives values their inferred types while the context lasts."""
    before: dict[SSAValue, Attribute] = {value: value.type for value in facts.types}
    for value, type_ in facts.types.items():
        value._type = type_
    try:
        yield
    finally:
        for value, type_ in before.items():
            value._type = type_


@contextmanager
def values_noted(facts: ShapeFacts) -> Generator[None]:
    """Notes the inferred elements of integer operands on their nodes while the context lasts."""
    readers = {use.operation for v in facts.values if constant_weight(v) is None for use in v.uses}
    before = {op: op.attributes.get(VALUES_ATTRIBUTE) for op in readers if isinstance(op, OnnxOp)}
    for op in before:
        set_operand_values(op, operand_values(op, facts))
    try:
        yield
    finally:
        for op, noted in before.items():
            op.attributes.pop(VALUES_ATTRIBUTE, None)
            if noted is not None:
                op.attributes[VALUES_ATTRIBUTE] = noted


def side_by_side(node: OnnxOp) -> Iterator[tuple[Expr, Expr]]:
    """Yields pairs of different dims, neither 1, aligned by a broadcasting node: a run with different sizes is refused,
    unless one of them is then 1."""
    if not is_pointwise(node) and (node.domain, node.op_type) != ("", "MatMul"):
        return
    shapes = [d for v in node.operands if (d := known_dims_of(v.type)) is not None]
    if node.op_type == "MatMul":
        if len(shapes) == 2 and len(shapes[0]) >= 2 and len(shapes[1]) >= 2:
            inner = (shapes[0][-1], shapes[1][-2])
            if inner[0] != inner[1]:
                yield inner
        shapes = [d[:-2] for d in shapes]
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        found = [d[-axis] for d in shapes if len(d) >= axis and d[-axis] != ONE]
        for dim in found[1:]:
            if dim != found[0]:
                yield found[0], dim


def requirements(node: OnnxOp) -> list[Requirement]:
    """Returns the other requirements of a node; none if dims are unknown."""
    spec = spec_of(node)
    if spec is None or spec.requires is None or any(known_dims_of(v.type) is None for v in node.operands):
        return []
    return list(spec.requires(node))
