"""The `tt` dialect: Triton's ops, one for one, on blocks.

    func  ::= tt.func @name(%arg : type, ...) { op* tt.return }
    op    ::= %i = tt.get_program_id x|y|z : i32
            | %n = tt.get_num_programs x|y|z : i32
            | %r = tt.make_range {start = a : i32, end = b : i32} : tensor<(b-a)xi32>
            | %b = tt.splat %s : element -> block                         one element, everywhere
            | %b = tt.expand_dims %a {axis = k : i32} : block -> block    a dim of one
            | %b = tt.broadcast %a : block -> block                       dims of one, repeated
            | %b = tt.reshape %a : block -> block
            | %b = tt.trans %a {order = array<i32: 1, 0>} : block -> block
            | %c = tt.join %a, %b : block -> block                        side by side along a new last dim of two
            | %a, %b = tt.split %c : block -> block                       and back
            | %q = tt.addptr %p, %offset : pointers, integers             in elements
            | %v = tt.load %p (, %mask (, %other)?)? : pointers
            | tt.store %p, %v (, %mask)? : pointers
            | %v = tt.descriptor_load %d[%i, ..] : !tt.tensordesc<128x64xf16>
            | tt.descriptor_store %d[%i, ..], %v : !tt.tensordesc<128x64xf16>
            | %r = "tt.reduce"(%a) <{axis = k : i32}> ({ ^bb(%x, %y): .. "tt.reduce.return"(%z) }) : (block) -> block
            | %r = "tt.scan"(%a) <{axis = k : i32, reverse = false}> ({ ^bb(%x, %y): .. "tt.scan.return"(%z) }) : ..
            | %d = tt.dot %a, %b, %c {inputPrecision = p} : block * block -> block
            | %d = tt.dot_scaled %a, %sa, %b, %sb, %c, lhs = f rhs = f : block, block, block, block, block
            | %v = tt.precise_divf %a, %b : block      | %v = tt.precise_sqrt %a : block
            | %v = tt.extern_elementwise %a, .. {symbol = "__nv_tanhf", ..} : (block, ..) -> block

A program is one instance of a func. A block, a builtin `tensor` whose dims are powers of two, is held by the threads of
a program together. Pointers are `!tt.ptr<f32>`; loads and stores take blocks of them. A descriptor is an argument that
the host makes of a tensor, for accesses of whole blocks (`igniter.dialects.triton.descriptors`). The other ops are from
`arith`, `math` and `scf.for`, as in Triton's own IR: Triton reads the generic form of a module (TTIR), and
`igniter.backends.triton.python_source` prints it, op by op, as the `@triton.jit` function that Triton makes it from.

A masked-off element of a load is `other`, or undefined without one. A masked-off store does nothing.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from igniter.dialects.triton.blocks import (
    ALIGNMENT,
    BroadcastOp,
    ExpandDimsOp,
    FuncOp,
    GetNumProgramsOp,
    GetProgramIdOp,
    JoinOp,
    MakeRangeOp,
    ReshapeOp,
    ReturnOp,
    SplatOp,
    SplitOp,
    TransOp,
)
from igniter.dialects.triton.compute import (
    DotOp,
    ExternElementwiseOp,
    PreciseDivOp,
    PreciseSqrtOp,
    ReduceOp,
    ReduceReturnOp,
)
from igniter.dialects.triton.descriptors import DescriptorLoadOp, DescriptorStoreOp, DescriptorType
from igniter.dialects.triton.memory import AddPtrOp, AtomicRMWOp, LoadOp, StoreOp
from igniter.dialects.triton.scaled import DotScaledOp
from igniter.dialects.triton.scans import ScanOp, ScanReturnOp
from igniter.dialects.triton.types import PointerType, block_of, element_type, is_block, shape_of, width_of

Triton = Dialect(
    "tt",
    [
        AddPtrOp,
        AtomicRMWOp,
        BroadcastOp,
        DescriptorLoadOp,
        DescriptorStoreOp,
        DotOp,
        DotScaledOp,
        ExpandDimsOp,
        ExternElementwiseOp,
        FuncOp,
        GetNumProgramsOp,
        GetProgramIdOp,
        JoinOp,
        LoadOp,
        MakeRangeOp,
        PreciseDivOp,
        PreciseSqrtOp,
        ReduceOp,
        ReduceReturnOp,
        ReshapeOp,
        ReturnOp,
        ScanOp,
        ScanReturnOp,
        SplatOp,
        SplitOp,
        StoreOp,
        TransOp,
    ],
    [DescriptorType, PointerType],
)

__all__ = [
    "ALIGNMENT",
    "AddPtrOp",
    "AtomicRMWOp",
    "BroadcastOp",
    "DescriptorLoadOp",
    "DescriptorStoreOp",
    "DescriptorType",
    "DotOp",
    "DotScaledOp",
    "ExpandDimsOp",
    "ExternElementwiseOp",
    "FuncOp",
    "GetNumProgramsOp",
    "GetProgramIdOp",
    "JoinOp",
    "LoadOp",
    "MakeRangeOp",
    "PointerType",
    "PreciseDivOp",
    "PreciseSqrtOp",
    "ReduceOp",
    "ReduceReturnOp",
    "ReshapeOp",
    "ReturnOp",
    "ScanOp",
    "ScanReturnOp",
    "SplatOp",
    "SplitOp",
    "StoreOp",
    "TransOp",
    "Triton",
    "block_of",
    "element_type",
    "is_block",
    "shape_of",
    "width_of",
]
