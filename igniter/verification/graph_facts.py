"""Facts of a model's graph for its inputs: bounds of indices, signs, inferred dims, and more."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, TensorType

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.attributes import entries_of, pairs_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.structure import ReturnOp, main_graph
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import product
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.verification.cache_facts import CacheFacts, cache_facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

    from igniter.dialects.onnx.structure import GraphOp
    from igniter.dialects.sym.expr import Expr

    Types = Mapping[SSAValue, Attribute]


@dataclass(frozen=True)
class GraphFacts:
    """Facts of the main graph's inputs by name, and of the graph itself."""

    limits: dict[str, int] = field(default_factory=dict[str, int])
    """For each input used as indices: the smallest length of an indexed axis."""
    positive: frozenset[str] = frozenset()
    """Operands of logarithms and square roots, divisors, bases of powers, and trip counts of loops."""
    large: frozenset[str] = frozenset()
    """Integer inputs used only in arithmetic: never as indices or sizes, and never converted to floats."""
    sound: bool = False
    """True if the graph has a convolution over one axis, or a Fourier transform over time."""
    stride: int = 1
    """The largest product of strides along a path from the inputs."""
    image_size: tuple[int, int] | None = None
    """Height and width from the metadata."""
    dims: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The inferred dims of the inputs: equal texts are equal dims."""
    likely_dims: Callable[[], dict[str, list[str]]] = dict[str, list[str]]
    """The same under the assumption that broadcast dims are equal: not facts, but sizes worth trying."""
    caches: CacheFacts | None = None
    """The dims that an attention over a cache ties to each other."""
    bytes_of: tuple[tuple[str, Expr], ...] = ()
    """Values of the main graph by name, with their bytes; only the first of several values of the same shape."""

    def too_large(self, sizes: Mapping[str, int], limit: int) -> str | None:
        """Returns a message if a value has more bytes than `limit` at these sizes of dims, otherwise `None`."""
        for name, size in self.bytes_of:
            if size.symbols <= sizes.keys() and (found := size.evaluate(sizes)) > limit:
                return f"the value '{name}' takes {_amount(found)}, more than the limit of {limit >> 20} MB for a run"
        return None


def model_facts(model: str | Path | bytes) -> GraphFacts:
    """Returns the facts about a model's inputs in its graph; empty if Igniter cannot read the model."""
    try:
        return facts_of(import_model(model))
    except IgniterError:
        # ORT reads more models than Igniter; for them the names of the inputs suffice.
        return GraphFacts()


def facts_of(module: ModuleOp) -> GraphFacts:
    """Returns the facts of an imported module."""
    graph = main_graph(module)
    shapes = infer_shapes(module)
    types: Types = shapes.types
    named = list(zip(graph.input_names, graph.body.args, strict=True))
    return GraphFacts(
        index_limits(module),
        frozenset(name for name, value in named if _must_be_positive(value)),
        frozenset(name for name, value in named if _only_computed_with(value, types)),
        any(_is_over_time(op) for op in _nodes(graph)),
        _largest_stride(graph),
        _stated_size(module),
        _inferred_dims(graph, types),
        lambda: _inferred_dims(graph, infer_shapes(module, optimistic=True).types),
        cache_facts(graph, shapes),
        tuple(_sizes(graph, types)),
    )


def _sizes(graph: GraphOp, types: Types) -> Iterator[tuple[str, Expr]]:
    """Yields the values of the main graph's nodes with their bytes, each shape once."""
    seen: set[tuple[Expr, ...]] = set()
    for op in graph.body.ops:
        if not isinstance(op, OnnxOp):
            continue
        for name, result in zip(op.output_names, op.results, strict=False):
            found = types.get(result)
            if not isinstance(found, TensorType):
                continue
            tensor = cast("TensorType[Attribute]", found)
            kind, dims = element_of(tensor), dims_of(tensor)
            if kind not in BY_ATTR or dims in seen:
                continue
            seen.add(dims)
            yield name, product(dims) * max(1, BY_ATTR[kind].bits // 8)


def _amount(size: int) -> str:
    """Returns a number of bytes as text, rounded down to a power of two from 2^40."""
    return f"2^{size.bit_length() - 1} bytes" if size >> 40 else f"{size >> 20} MB"


def _nodes(graph: GraphOp) -> Iterator[OnnxOp]:
    return (op for op in graph.walk() if isinstance(op, OnnxOp))


# -- indices ----------------------------------------------------------------------------------------------------------

_KEEPS_VALUES = frozenset(
    ("Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
)
_INDEXED = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1}


def index_limits(module: ModuleOp) -> dict[str, int]:
    """Returns the smallest length of an indexed axis for each input of the main graph used as indices."""
    graph = main_graph(module)
    limits: dict[str, int] = {}
    for name, value in zip(graph.input_names, graph.body.args, strict=True):
        found = [limit for limit in _limits(value) if limit > 0]
        if found:
            limits[name] = min(found)
    return limits


def _limits(value: SSAValue) -> Iterator[int]:
    """Yields the lengths of the axes indexed by `value`, directly or after data movement."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            op = use.operation
            if not isinstance(op, OnnxOp) or op.domain not in ("", "ai.onnx"):
                continue
            if op.op_type == "OneHot" and use.index == 0:
                yield from _largest(op.operands[1])
            elif op.op_type == "Equal":
                # A comparison with 0, 1, 2, ... is a decomposed one-hot.
                yield from (n + 1 for n in _largest(op.operands[1 - use.index]) if n >= _ONE_HOT)
            elif _INDEXED.get(op.op_type) == use.index:
                limit = _length(op.operands[0], int(op.attr("axis", 0)))
                if limit is not None:
                    yield limit
            elif op.op_type in _KEEPS_VALUES and use.index == 0:
                todo.extend(op.results)


_ONE_HOT = 8
"""The minimum largest element of a constant list for an integer compared with it to be an index, not a flag."""


def _largest(value: SSAValue) -> Iterator[int]:
    """Yields the largest element of a constant."""
    weight = constant_weight(value)
    if weight is not None and weight.size and weight.strings is None:
        yield int(np.max(weight.array()))


def _length(data: SSAValue, axis: int) -> int | None:
    if not isinstance(data.type, TensorType):
        return None
    shape = data.type.get_shape()
    if not -len(shape) <= axis < len(shape) or shape[axis] < 0:
        return None
    return shape[axis]


# -- uses of a value --------------------------------------------------------------------------------------------------

# fmt: off
_COMPUTES = frozenset((
    "Abs", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CumSum", "Einsum",
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "MatMul", "Max", "Min", "Mul", "Neg", "Not", "Or",
    "Pow", "ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Sign",
    "Sub", "Sum", "Where", "Xor",
))
# fmt: on
# fmt: off
_MOVES = frozenset((
    "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze", "Pad",
))
# fmt: on


def _only_computed_with(value: SSAValue, types: Types) -> bool:
    """True if every transitive use of an integer value is arithmetic on integers, correct for any magnitude."""
    seen: set[SSAValue] = set()
    todo: list[SSAValue] = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        known = types.get(current, current.type)
        try:
            element = element_of(known)
        except ValueError:
            return False
        if not isinstance(element, IntegerType):
            return False
        if element.width.data == 1:
            continue
        for use in current.uses:
            op = use.operation
            if isinstance(op, ReturnOp):
                continue
            if not isinstance(op, OnnxOp) or op.domain not in ("", "ai.onnx"):
                return False
            if _bounds(op, use.index):
                continue
            moved = op.op_type in _MOVES and (use.index == 0 or op.op_type == "Concat")
            if not moved and op.op_type not in _COMPUTES:
                return False
            todo.extend(op.results)
    return True


def _bounds(op: OnnxOp, index: int) -> bool:
    """True if the results are bounded for any operand at `index`, such as a hash before a Gather."""
    if op.op_type not in ("BitwiseAnd", "Mod") or len(op.operands) != 2:
        return False
    if op.op_type == "Mod" and (index != 0 or int(op.attr("fmod", 0))):
        return False
    weight = constant_weight(op.operands[1 - index])
    if weight is None or not weight.size:
        return False
    least = int(weight.array().min())
    return least > 0 if op.op_type == "Mod" else least >= 0


def _must_be_positive(value: SSAValue) -> bool:
    for use in value.uses:
        op = use.operation
        if isinstance(op, OnnxOp) and (
            op.op_type in ("Log", "Sqrt")
            or (op.op_type in ("Div", "Mod", "Pow") and use.index == (op.op_type != "Pow"))
            # A loop without a trip has unknown outputs.
            or (op.op_type == "Loop" and use.index == 0)
        ):
            return True
    return False


# -- the graph --------------------------------------------------------------------------------------------------------


def _is_over_time(op: OnnxOp) -> bool:
    if op.op_type in ("STFT", "DFT"):
        return True
    if op.op_type != "Conv" or len(op.operands) < 2:
        return False
    weight = op.operands[1].type
    return isinstance(weight, TensorType) and len(weight.get_shape()) == 3


_STRIDED = ("Conv", "MaxPool", "AveragePool", "LpPool", "QLinearConv", "ConvInteger")


def _largest_stride(graph: GraphOp) -> int:
    """Returns the largest factor by which a height or width shrinks: the largest product of strides along a path."""
    strides: dict[Any, int] = {}
    largest = 1
    for op in graph.body.ops:
        before = max((strides.get(operand, 1) for operand in op.operands), default=1)
        own: Sequence[int] = ()
        if isinstance(op, OnnxOp) and op.op_type in _STRIDED:
            own = [int(s) for s in op.attr("strides") or ()]
        after = before * max(own, default=1)
        if prod(own) > 1 and after > 4096:
            after = before
        largest = max(largest, after)
        for result in op.results:
            strides[result] = after
    return largest


def _stated_size(module: ModuleOp) -> tuple[int, int] | None:
    """Returns height and width from `imgsz` in the metadata, one number or two as written by Ultralytics."""
    metadata = dict(pairs_of(entries_of(module.attributes.get("onnx.model")).get("metadata")))
    try:
        found: Any = ast.literal_eval(metadata.get("imgsz", "None"))
    except (ValueError, SyntaxError):
        return None
    sizes = [found, found] if isinstance(found, int) else found
    if isinstance(sizes, (list, tuple)) and len(sizes) == 2 and all(isinstance(s, int) and s > 0 for s in sizes):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return int(sizes[0]), int(sizes[1])  # pyright: ignore[reportUnknownArgumentType]
    return None


def _inferred_dims(graph: GraphOp, types: Types) -> dict[str, list[str]]:
    """Returns the dims of the inputs as text, without inputs of unknown rank."""
    found: dict[str, list[str]] = {}
    for name, value in zip(graph.input_names, graph.body.args, strict=True):
        try:
            found[name] = [str(d) for d in dims_of(types.get(value, value.type))]
        except ValueError:
            continue
    return found
