"""The features of a region by which measurements apply to it: its kind, and its sizes.

Two regions of one kind have the same nodes with the same discrete properties, and differ only in sizes:

    Conv depthwise window=3x3 strides=2x2 (f32[?...], const f32[....]) -> f32[?...]

`.` is a fixed dim and `?` a symbolic one: kernels for the two differ. Sizes are the dims of the tensors that enter the
region, in order: weights included, constant vectors and scalars not. The sweep's calibration reads its graphs by
this function, and fusion reads a model by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import NoneType
from xdsl.ir import SSAValue

from igniter.analysis.fusion.cost import is_constant
from igniter.analysis.onnx.op_counts import flops_or_elements
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element

Known = Callable[[Expr], int | None]
"""The value of a dim; `None` where a symbol has no size."""

WINDOW = frozenset(("kernel_shape", "strides", "dilations", "group", "pads", "auto_pad", "output_padding"))
"""Attributes of windows. The kind has them in words, and without the defaults; padding shows in the sizes."""


@dataclass(frozen=True)
class RegionFeatures:
    """A region for comparisons with measured ones."""

    kind: str
    sizes: tuple[int | None, ...]
    """`None` for unknown sizes."""
    work: int
    """The scalar operations; 0 where they are unknown."""

    @property
    def is_known(self) -> bool:
        """True if all sizes are known."""
        return None not in self.sizes and self.work > 0


def region_features(ops: Sequence[OnnxOp], known: Known) -> RegionFeatures | None:
    """Returns the features of a region's nodes, in the order of the graph; `None` where a rank is unknown."""
    inside = set(ops)
    words: list[str] = []
    sizes: list[int | None] = []
    for op in ops:
        operands = [word for value in op.operands if (word := _operand(value, inside)) != ""]
        left = [r for r in op.results if type(r.type) is not NoneType and not _stays(r, inside)]
        results = [_shape(r) for r in left]
        if None in operands or None in results:
            return None
        words.append(" ".join([op.qualified_name, *_properties(op), f"({', '.join(map(str, operands))})"]))
        if results:
            words[-1] += f" -> {', '.join(map(str, results))}"
        entering = [v for v in op.operands if v.owner not in inside and _has_sizes(v)]
        sizes += [known(d) for value in entering for d in known_dims_of(value.type) or ()]
        sizes += [d for d in _ints(op, "dilations") if d != 1]
    return RegionFeatures("; ".join(words), tuple(sizes), _work(ops, known))


def _work(ops: Sequence[OnnxOp], known: Known) -> int:
    counts = [flops_or_elements(op) for op in ops]
    values = [None if count is None else known(count) for count in counts]
    return 0 if None in values else sum(v for v in values if v is not None)


def _operand(value: SSAValue, inside: set[OnnxOp]) -> str | None:
    """Returns the source of an operand in words: constant integers by their values, and nothing for other constant
    scalars and vectors and for an omitted operand; `None` where its rank is unknown."""
    if type(value.type) is NoneType:
        return ""
    if value.owner in inside:
        return "%"
    shape = _shape(value)
    if shape is None or not is_constant(value):
        return shape
    if _has_sizes(value):
        return f"const {shape}"
    numbers = constant_value(value)
    return str(numbers.flatten().tolist()) if numbers is not None and numbers.dtype.kind in "iu" else ""


def _shape(value: SSAValue) -> str | None:
    element, dims = tensor_element(value.type), known_dims_of(value.type)
    if element is None or dims is None:
        return None
    return f"{element}[{''.join('.' if d.constant is not None else '?' for d in dims)}]"


def _has_sizes(value: SSAValue) -> bool:
    dims = known_dims_of(value.type)
    return dims is not None and len(dims) > (1 if is_constant(value) else 0)


def _stays(value: SSAValue, inside: set[OnnxOp]) -> bool:
    """True if only the region reads a result."""
    uses = list(value.uses)
    return bool(uses) and all(use.operation in inside for use in uses)


# -- attributes -------------------------------------------------------------------------------------------------------


def _properties(op: OnnxOp) -> Iterator[str]:
    """Yields the discrete properties of a node. Numbers with a point, texts of Igniter's own notes and tensors do not
    choose a kernel."""
    window = _window(op)
    if window:
        yield _grouping(op)
        yield f"window={_times(window)}"
        strides = _ints(op, "strides")
        if prod(strides) != 1:
            yield f"strides={_times(strides)}"
        if any(d != 1 for d in _ints(op, "dilations")):
            yield "dilated"
    for name in sorted(op.attributes):
        if window and name in WINDOW:
            continue
        value = op.attr(name)
        if name.startswith("igniter."):
            yield name
        elif isinstance(value, (int, str)):
            yield f"{name}={value}"
        elif numbers := _ints(op, name):
            yield f"{name}={','.join(map(str, numbers))}"


def _window(op: OnnxOp) -> tuple[int, ...]:
    """Returns the window of a convolution or a pool; empty for other ops."""
    given = _ints(op, "kernel_shape")
    if given or op.op_type not in ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "FusedConv"):
        return given
    dims = known_dims_of(op.operands[3 if op.op_type == "QLinearConv" else 1].type) or ()
    sizes = [d.constant for d in dims[2:]]
    return tuple(s for s in sizes if s is not None) if None not in sizes else ()


def _grouping(op: OnnxOp) -> str:
    groups = op.attr("group")
    if not isinstance(groups, int) or groups == 1:
        return "dense"
    channels = (known_dims_of(op.operands[0].type) or ())[1:2]
    return "depthwise" if [c.constant for c in channels] == [groups] else "grouped"


def _ints(op: OnnxOp, name: str) -> tuple[int, ...]:
    value = op.attr(name)
    values = cast("list[Any]", value) if isinstance(value, list) else []
    return tuple(values) if all(isinstance(v, int) for v in values) else ()


def _times(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
