"""The `linalg` dialect of MLIR on tensors, as torch-mlir, IREE and `mlir-opt` print it.

    op       ::= linalg.generic attr-dict operands (attrs = attr-dict)? region (-> types)?
               | linalg.NAME attr-dict? (indexing_maps = [map, ...])? operands (-> types)?       see `named.py`
               | linalg.map | linalg.reduce | linalg.transpose | linalg.broadcast | linalg.softmax
               | linalg.contract | linalg.elementwise                                            see `shaped.py`
    operands ::= (ins(%v, ... : type, ...))? outs(%v, ... : type, ...)

xDSL 0.74 has a part of these ops, and reads neither a generic of several results nor most named ops. Every op here
answers the same question, `structure_of`: the iteration space, the access map of each operand, and the body. So a
consumer sees one kind of op (`igniter.dialects.linalg.structure`).
"""

from __future__ import annotations

from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Dialect

from igniter.dialects.linalg.enums import ENUMS
from igniter.dialects.linalg.generic import GenericOp, IndexOp
from igniter.dialects.linalg.named import NAMED_OPS, NamedOp
from igniter.dialects.linalg.shaped import (
    BroadcastOp,
    ContractOp,
    ElementwiseOp,
    MapOp,
    ReduceOp,
    SoftmaxOp,
    TransposeOp,
)
from igniter.dialects.linalg.structure import Structure, StructuredOp

Linalg = Dialect(
    "linalg",
    [
        GenericOp,
        ops.YieldOp,
        IndexOp,
        *NAMED_OPS.values(),
        MapOp,
        ReduceOp,
        TransposeOp,
        BroadcastOp,
        SoftmaxOp,
        ContractOp,
        ElementwiseOp,
    ],
    [attrs.IteratorTypeAttr, *ENUMS],
)

__all__ = ["IndexOp", "Linalg", "NamedOp", "SoftmaxOp", "Structure", "StructuredOp"]
