"""The description of one ONNX op: everything Igniter knows about its meaning, in one `OpSpec`.

    ops/elementwise.py, ops/reduction.py, ops/movement.py, ...    one table or function an op, each an OpSpec
    spec_of(op)                                                    from a node to its spec, in one step

A spec may omit any part. Without `infer`, the schema's own inference (of the onnx package) is used; without `fold`,
constant folding runs the reference evaluator; without `lower`, the op is left to ORT.
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
    """The static knowledge about a tensor.

    `dims` is None while the rank is unknown. `values` are the elements, in row-major order, of a small integer tensor
    computed from the model's symbols (shape arithmetic): rank 0 or 1, int32 or int64.
    """

    element: Attribute
    dims: Dims | None
    values: Dims | None = None


class InferContext(Protocol):
    """The interface of a shape rule to its node."""

    op: OnnxOp
    optimistic: bool
    """True if two symbols that broadcast with each other are assumed equal, though either may be 1."""

    def input(self, index: int) -> TensorInfo | None:
        """Returns the operand; None if it is omitted or no tensor."""
        ...

    def values(self, index: int) -> Dims | None:
        """Returns the elements of an integer operand: constants, or expressions of shape arithmetic."""
        ...

    def constant(self, index: int) -> np.ndarray | None:
        """Returns the value of an operand of any type if it is constant."""
        ...

    def fresh(self, hint: str) -> Expr:
        """Returns an unknown dim: the same symbol for each call by this node with this hint."""
        ...

    def equate(self, a: Expr, b: Expr) -> None:
        """Records that two dims are equal in every valid run (as broadcasting or MatMul require)."""
        ...


InferRule = Callable[[InferContext], "list[TensorInfo]"]
FoldRule = Callable[["OnnxOp", "Sequence[np.ndarray | None]"], "list[np.ndarray] | None"]
LowerRule = Callable[[Any], "Sequence[SSAValue | None]"]
LegalRule = Callable[["OnnxOp"], "str | None"]
RequiresRule = Callable[["OnnxOp"], "Sequence[Requirement]"]
FlopsRule = Callable[["OnnxOp"], Expr]
TablesRule = Callable[["OnnxOp"], "Mapping[str, np.ndarray[Any, Any]] | Mapping[str, Weight]"]
PackRule = Callable[["OnnxOp"], "Mapping[int, tuple[int, ...]]"]
OrderRule = Callable[["OnnxOp"], "Mapping[int, tuple[int, ...]]"]
UnprofitableRule = Callable[["OnnxOp", Callable[[Expr], int]], "str | None"]


@dataclass(frozen=True)
class OpSpec:
    """One ONNX op, for every supported opset version (rules check `op.opset` if versions differ)."""

    name: str
    """The name `Add`, or with its domain `com.microsoft.SkipLayerNormalization`."""
    infer: InferRule | None = None
    fold: FoldRule | None = None
    lower: LowerRule | None = None
    legal: LegalRule | None = None
    """Returns the reason why this node cannot be lowered although the op has `lower`; None if it can."""
    requires: RequiresRule | None = None
    """Returns the requirements on the operands' dims that the shape rule does not `equate`, such as divisibility for a
    Reshape or the sum of sizes for a Split. ONNX Runtime rejects a run that violates one, and so does the op."""
    macs: FlopsRule | None = None
    """Returns the multiply-adds of a run, as counted in papers; `None` for an op without sums of products."""
    flops: FlopsRule | None = None
    """Returns the scalar operations of a run, including two for each of `macs` (`ops/counts.py`). Without a rule, an op
    of kind movement or shape has none; the cost model assumes one per output element for the others."""
    unprofitable: UnprofitableRule | None = None
    """Returns the reason why ORT's kernel is faster for this node regardless of fusion, given typical sizes; None if it
    is not."""
    unprofitable_when_small: bool = False
    """True if `unprofitable` also applies to contractions with few operations; without it they are always
    profitable."""
    unprofitable_by_steps: bool = False
    """True if `unprofitable` is about the steps of a procedure. It does not apply to a backend that computes procedures
    by their algorithm."""
    packs: PackRule | None = None
    """Returns the operands of a contraction that can be packed into panels, each with its column dim and its depth
    dims, in storage order."""
    panels: PackRule | None = None
    """Returns the operands that the lowering reads in panels with 64 bytes of sums, whatever their element type, each
    with its column dims and depth dims. Constant ones are packed."""
    words: PackRule | None = None
    """Returns byte operands as `panels` does: four bytes along the depth become one 32-bit integer."""
    orders: OrderRule | None = None
    """Returns the operands to store with another order of dims, outermost first; only constant ones are stored so."""
    tables: TablesRule | None = None
    """Returns constants, by name, that the lowering reads besides the operands (`ctx.table`): attributes too large for
    a kernel, or a weight in another form. A region gets them as operands, with `fusion.tables` before the node."""
    kind: str = "other"
    """The kind for the cost model: elementwise, reduction, normalization, movement, contraction, shape or other."""


NARROW_ATTRIBUTE = "igniter.narrow"
"""The mark of a node written by the pass `narrow-convolutions`: its bf16 operands stand for the same values in f32."""

WINOGRAD_ATTRIBUTE = "igniter.winograd"
"""The attribute of a convolution written by the pass `winograd`: the outputs of a tile along each axis, and the number
of rows and columns of tiles computed at a time."""

PHASES_ATTRIBUTE = "igniter.phases"
"""The attribute written by `form-subpixel-convolutions` on a convolution whose channels become places: the number of
adjacent phases along each spatial axis. The channels are the phases, each with its own channels."""

PADDING_ATTRIBUTE = "igniter.rim"
"""The attribute of a convolution in tiles written by `choose-layouts`: the zeros stored beyond its Slice, at the
beginning of each spatial axis, then at the end. Tiles may read them; windows do not."""

MANY_ROWS_ATTRIBUTE = "igniter.many_rows"
"""The attribute written by `form-block-products` on a product with block weights and a symbolic number of rows: the
rows are many."""

PLAIN_ATTRIBUTE = "igniter.plain"
"""The attribute written by `form-block-products` on a product with block weights for a GPU: it is one nest over rows,
columns and depth, whose programs unpack the weights themselves."""

SIGNATURE_ATTRIBUTE = "igniter.signature"
"""The attribute of a graph written by `infer-shapes`: the types of its inputs in the model, restored on export."""

VALUES_ATTRIBUTE = "igniter.values"
"""The attribute of a consumer written by `infer-shapes`: the known elements of its integer operands, a dictionary from
the operand's index to `#sym.dims`. Attributes that begin with `igniter.` are Igniter's own and are not exported."""
