"""The loops over a batch of programs, on the scheduled level: a part of `lower-programs`.

    %a = fusion.region @r0 (%b = %x : ..) kernel @r0 -> (tensor<?x64x64xf32, ..>) attributes {igniter.batched = ..} {..}
    %c = fusion.region @r1 (%d = %a : ..) kernel @r1 -> (tensor<?x8xf32, ..>) attributes {igniter.batched = ..} {..}

becomes, if it pays (`igniter.analysis.fusion.program_batches`),

    loop.for b1 = 0 to n sequential {
      %x1 = loop.slice %x[b1] : memref<?x64x64xf32, ..> to memref<64x64xf32>
      %x2 = loop.view %x1 : memref<64x64xf32> to memref<1x64x64xf32>
      %c2 = ..                                                        // of %c
      %a = loop.alloc "r0" : memref<1x64x64xf32, "scratch">
      loop.call @r0 symbols [1] (%x2) -> (%a)
      loop.call @r1 symbols [1] (%a) -> (%c2)
    }

Inputs and outputs of the loop are sliced; tensors between the kernels have one element of the batch.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.fusion.program_batches import Batch
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import ForOp, SliceOp
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ONE, Expr, symbols_of
from igniter.transforms.conversion.lower_programs import ProgramLowering


def lower_batch(p: ProgramLowering, batch: Batch) -> None:
    """Adds the loop for the steps of a batch to a program."""
    made: set[SSAValue] = {result for op in batch.ops for result in op.results}
    leaving = _leaving(batch, made)
    regions = [op for op in batch.ops if isinstance(op, RegionOp)]
    for op in regions:
        for value in (r for r in op.results if r in leaving and r not in p.buffers):
            p.buffers[value] = p.alloc(op.label, memref_of(element_of(value.type), dims_of(value.type), "scratch"))
    whole, outer = p.buffers, p.block
    # In the order of the program, which a set would lose: two compiles give the same bytes.
    read = dict.fromkeys(v for op in batch.ops for v in op.operands if v in whole and v not in made)
    axis, body = p.axis("b"), Block()
    p.add(ForOp(axis, 0, Expr.of(batch.symbol), body, sequential=True))
    p.block, p.fixed = body, {batch.symbol: ONE}
    p.buffers = {v: b for v, b in whole.items() if v not in made}
    for value in (*read, *(r for op in regions for r in op.results if r in leaving)):
        if batch.symbol in symbols_of(dims_of(value.type)):
            p.buffers[value] = _element(p, whole[value], axis)
    for op in batch.ops:
        p.lower(op)
    p.buffers, p.block, p.fixed = whole, outer, {}
    # Views of results of the loop are views of the whole buffers.
    for op in batch.ops:
        if not isinstance(op, RegionOp) and op.results[0] in leaving:
            p.lower(op)


def _leaving(batch: Batch, made: set[SSAValue]) -> set[SSAValue]:
    """Returns the values read after the loop, and the sources of views among them."""
    inside = set(batch.ops)
    found: set[SSAValue] = set()
    for op in reversed(batch.ops):
        for result in op.results:
            if result in found or any(_statement(use.operation, op) not in inside for use in result.uses):
                found.add(result)
                if not isinstance(op, RegionOp) and op.operands[0] in made:
                    found.add(op.operands[0])
    return found


def _statement(op: Operation, like: Operation) -> Operation:
    """Returns the op in the block of `like` that contains `op`."""
    while op.parent_block() is not like.parent_block():
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _element(p: ProgramLowering, buffer: SSAValue, axis: str) -> SSAValue:
    """Returns one element of the batch, as a batch of one."""
    slice_ = p.add(SliceOp(buffer, [Expr.of(axis)])).result
    return p.view_of(slice_, memref_of(element_of(buffer.type), [1, *dims_of(buffer.type)[1:]]))
