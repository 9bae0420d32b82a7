"""How one ONNX op is described: everything Igniter knows of its meaning, in one `OpSpec`.

    ops/elementwise.py, ops/reduction.py, ops/movement.py, ...    one table or function an op, each an OpSpec
    spec_of(op)                                                    from a node to its spec, in one step

A spec may leave out any part. Without `infer`, the schema's own inference (from the onnx package) is used; without
`fold`, constant folding runs the reference evaluator; without `lower`, the op stays an ONNX node, which ORT runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.ir import Attribute, SSAValue

from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.weights import Weight


Dims = tuple[Expr, ...]


@dataclass(frozen=True)
class TensorInfo:
    """What is known of a tensor before it is computed.

    `dims` is None while the rank is unknown. `values` are the elements, in row-major order, of a small integer tensor
    that is a function of the model's symbols (shape arithmetic): rank 0 or 1, int32 or int64.
    """

    element: Attribute
    dims: Dims | None
    values: Dims | None = None


class InferContext(Protocol):
    """What a shape rule sees of its node."""

    op: OnnxOp
    optimistic: bool
    """Whether two symbols that broadcast with each other are taken for equal, though either may be 1."""

    def input(self, index: int) -> TensorInfo | None:
        """The operand; None when it is omitted or no tensor."""
        ...

    def values(self, index: int) -> Dims | None:
        """The elements of an integer operand: constants, or expressions of shape arithmetic."""
        ...

    def constant(self, index: int) -> np.ndarray | None:
        """The operand's value, when it is a constant tensor of any type."""
        ...

    def fresh(self, hint: str) -> Expr:
        """A dim that nothing is known of: the same symbol each time this node asks with this hint."""
        ...

    def equate(self, a: Expr, b: Expr) -> None:
        """Records that two dims are equal in every valid run (as broadcasting or MatMul require)."""
        ...


class LowerContext(Protocol):
    """What a lowering sees of its node: loop-level tensors in, a builder of nests and views out.

    The full interface, with the builder, is `igniter.transforms.conversion.lower_onnx_to_loop.Lowering`.
    """

    op: OnnxOp

    def input(self, index: int) -> SSAValue | None: ...
    def dims(self, index: int) -> Dims: ...
    def values(self, index: int) -> Dims | None: ...
    def constant(self, index: int) -> np.ndarray | None: ...
    def output_type(self, index: int) -> Attribute: ...


InferRule = Callable[[InferContext], "list[TensorInfo]"]
FoldRule = Callable[["OnnxOp", "Sequence[np.ndarray | None]"], "list[np.ndarray]"]
LowerRule = Callable[[Any], "Sequence[SSAValue | None]"]
LegalRule = Callable[["OnnxOp"], "str | None"]
RequiresRule = Callable[["OnnxOp"], "Sequence[Requirement]"]
FlopsRule = Callable[["OnnxOp"], Expr]
TablesRule = Callable[["OnnxOp"], "Mapping[str, np.ndarray[Any, Any]] | Mapping[str, Weight]"]
PackRule = Callable[["OnnxOp"], "Mapping[int, tuple[int, ...]]"]
OrderRule = Callable[["OnnxOp"], "Mapping[int, tuple[int, ...]]"]
SlowRule = Callable[["OnnxOp", Callable[[Expr], int]], "str | None"]


@dataclass(frozen=True)
class OpSpec:
    """One ONNX op, for every opset version that Igniter supports (rules look at `op.opset` where versions differ)."""

    name: str
    """`Add`, or with its domain: `com.microsoft.SkipLayerNormalization`."""
    infer: InferRule | None = None
    fold: FoldRule | None = None
    lower: LowerRule | None = None
    legal: LegalRule | None = None
    """Why this node cannot be lowered, beyond what `lower` being absent says; None when it can."""
    requires: RequiresRule | None = None
    """What the node takes for granted of its operands' dims where its shape rule does not say so (by `equate`): that a
    Reshape divides, that the sizes of a Split add up. ONNX Runtime refuses a run that breaks it, and so does the op."""
    macs: FlopsRule | None = None
    """Multiply-adds of the sums of products that a run computes, as papers count them; `None` for an op without."""
    flops: FlopsRule | None = None
    """Scalar operations a run performs, two for each of `macs` among them (`ops/counts.py`). Without a rule, an op
    whose kind is movement or shape performs none; the cost model takes one an output element for the others."""
    slow: SlowRule | None = None
    """Why ORT's kernel is faster for this node whatever it is fused with, given typical sizes; None when it is not."""
    slow_when_small: bool = False
    """Whether `slow` is asked of a contraction of few operations, too, which is else always worth a kernel."""
    packs: PackRule | None = None
    """Of a contraction: the operands that can be packed into panels, each with its dim of columns and those of the
    depth, in the order in which they are stored."""
    panels: PackRule | None = None
    """Operands that the lowering itself reads in panels of as many columns as fill 64 bytes of sums, whatever type they
    have, each with its dims of columns and of depth: constants among them are packed."""
    words: PackRule | None = None
    """The same of operands of bytes: four along the depth become one integer of 32 bits."""
    orders: OrderRule | None = None
    """Operands whose elements are wanted in another order of their dims, outermost first: constants among them are
    stored in that."""
    tables: TablesRule | None = None
    """Constants by name that the lowering reads besides the operands (`ctx.table`): what the node says in attributes
    and is too large for a kernel, or a weight in another form. A region gets them as operands, with `fusion.tables`
    before the node."""
    kind: str = "other"
    """elementwise | reduction | normalization | movement | contraction | shape | other: what the cost model asks."""


WINOGRAD_ATTRIBUTE = "igniter.winograd"
"""The pass `winograd` leaves, on a convolution, the results along each axis of the tiles that it is computed in, and
how many rows and columns of tiles are made at a time."""

PHASES_ATTRIBUTE = "igniter.phases"
"""`form-subpixel-convolutions` leaves, on a convolution whose channels become places, how many of them come side by
side along each spatial axis: its channels are these phases, and then the channels of each."""

RIM_ATTRIBUTE = "igniter.rim"
"""`choose-layouts` leaves, on a convolution in tiles, how many zeros there are beyond what a Slice cuts out for it: at
the beginning of each spatial axis, then at the end. Tiles may read them; windows do not."""

MANY_ROWS_ATTRIBUTE = "igniter.many_rows"
"""`form-block-products` leaves, on a product with weights in blocks whose rows are a symbol, that they are many."""

SIGNATURE_ATTRIBUTE = "igniter.signature"
"""`infer-shapes` leaves, on a graph, the types of its inputs as the model gives them, which an exported model has
again."""

VALUES_ATTRIBUTE = "igniter.values"
"""`infer-shapes` leaves, on a consumer, the known elements of its integer operands: a dictionary from the operand's
index to `#sym.dims`. Attributes that begin with `igniter.` are Igniter's own and are not exported."""
