"""Sums written as loads and stores, as accumulations: `s = s + x` in a sequential loop is a reduction.

    %s = loop.load %acc[] : f32                       loop.accumulate add %x, %acc[] : f32
    %t = arith.addf %s, %x : f32              =>
    loop.store %t, %acc[]

The order of the sum is not compared, as for every reduction.
"""

from __future__ import annotations

from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation, SSAValue

from igniter.dialects.loop import AccumulateOp, FuncOp, KernelOp, LoadOp, StoreOp
from igniter.dialects.loop.memory import MemoryOp


def sums_as_accumulations(kernel: KernelOp | FuncOp) -> None:
    """Replaces every sum of an element and a value, stored to the same element, in place."""
    for store in [op for op in kernel.walk() if isinstance(op, StoreOp)]:
        added = store.value.owner
        if isinstance(added, arith.AddfOp):
            operands = [(added.lhs, added.rhs), (added.rhs, added.lhs)]
        elif isinstance(added, (math.FmaOp, vector.FMAOp)):
            operands = [(added.operands[2], None)]
        else:
            continue
        for element, rest in operands:
            if _is_same_element(element, store, added):
                _replace(store, added, rest)
                break


def _is_same_element(value: SSAValue, store: StoreOp, added: Operation) -> bool:
    """True if `value` is loaded for the sum alone, from the element of `store`, without another access between."""
    load = value.owner
    if not isinstance(load, LoadOp) or load.otherwise is not None or load.indices or store.indices:
        return False
    if load.parent is not store.parent or added.parent is not store.parent:
        return False
    if any(len(list(v.uses)) != 1 for v in (value, store.value)) or load.buffer is not store.buffer:
        return False
    if (load.subscripts, load.guards, load.lane) != (store.subscripts, store.guards, store.lane):
        return False
    between = load.next_op
    while between is not None and between is not store:
        if between.regions or (isinstance(between, MemoryOp) and between.accessed is store.buffer):
            return False
        between = between.next_op
    return between is store


def _replace(store: StoreOp, added: Operation, rest: SSAValue | None) -> None:
    block = store.parent_block()
    assert block is not None
    if rest is None:
        product = arith.MulfOp(added.operands[0], added.operands[1])
        block.insert_op_before(product, store)
        rest = product.result
    made = AccumulateOp("add", rest, store.buffer, store.subscripts, guards=store.guards, lane=store.lane)
    block.insert_op_before(made, store)
    load = next(v.owner for v in added.operands if isinstance(v.owner, LoadOp) and v.owner.buffer is store.buffer)
    for op in (store, added, load):
        op.detach()
        op.erase()
