"""QuantizeLinear and DequantizeLinear beside an op left to ONNX Runtime: it fuses all of them into one integer op.

ONNX Runtime matches DequantizeLinear -> op -> QuantizeLinear when it loads a model. If our kernels contained the outer
nodes, the op between them would run on floats. So they are left with it. ONNX Runtime does the same with
DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul -> Add. These nodes are left to it where no kernel computes the
quantised tensor, or none reads the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from igniter.analysis.fusion.cost import is_constant
from igniter.analysis.fusion.legality import Reason
from igniter.dialects.onnx.names import op_name

INTEGER_OPS = frozenset(
    ("AveragePool", "Conv", "ConvTranspose", "Gemm", "GlobalAveragePool", "MatMul", "MaxPool", "Resize")
)
"""Ops with faster kernels on bytes, in ONNX Runtime."""


def beside_integer_ops(nodes: Sequence[Operation], reasons: Sequence[Reason | None]) -> Mapping[int, Reason]:
    """Returns the nodes left with ONNX Runtime's integer ops."""
    number = {op: k for k, op in enumerate(nodes)}
    found: dict[int, Reason] = {}
    for k, op in enumerate(nodes):
        if reasons[k] is not None and op_name(op) == "MatMulInteger":
            reason = Reason("cost", "it is part of a MatMulInteger that is left to ONNX Runtime")
            found.update((n, reason) for n in _beside_product(op, number, reasons) if reasons[n] is None)
            continue
        if reasons[k] is None or op_name(op) not in INTEGER_OPS or not op.operands:
            continue
        sources = [number.get(v.owner) for v in op.operands if isinstance(v.owner, Operation)]
        before = [s for s in sources if s is not None and op_name(nodes[s]) == "DequantizeLinear"]
        if op.operands[0].owner not in [nodes[s] for s in before]:
            continue
        readers = [number.get(u.operation) for r in op.results for u in r.uses]
        after = [r for r in readers if r is not None and op_name(nodes[r]) in ("QuantizeLinear", "Relu", "Clip")]
        reason = Reason("cost", f"it is part of an integer {op_name(op)} that is left to ONNX Runtime")
        for n in (*before, *after):
            if reasons[n] is None and not is_constant(nodes[n].results[0]):
                found[n] = reason
            for use in nodes[n].results[0].uses if op_name(nodes[n]) in ("Relu", "Clip") else ():
                m = number.get(use.operation)
                if m is not None and reasons[m] is None and op_name(nodes[m]) == "QuantizeLinear":
                    found[m] = reason
    return found


def _beside_product(op: Operation, number: Mapping[Operation, int], reasons: Sequence[Reason | None]) -> list[int]:
    """Returns the nodes that quantise the left factor of a MatMulInteger or scale its result, if kernels gain nothing
    from them."""
    beside: list[int] = []

    def fused(other: Operation) -> bool:
        return other in number and reasons[number[other]] is None

    before = op.operands[0].owner
    if isinstance(before, Operation) and op_name(before) == "DynamicQuantizeLinear" and before in number:
        made = before.operands[0].owner
        if not (isinstance(made, Operation) and fused(made)):
            beside.append(number[before])
    last = op
    for name in ("Cast", "Mul", "Add"):
        readers = [use.operation for use in last.results[0].uses]
        if len(readers) != 1 or op_name(readers[0]) != name or readers[0] not in number:
            break
        if name == "Add" and not any(is_constant(v) for v in readers[0].operands):
            break
        last = readers[0]
        beside.append(number[last])
        for value in last.operands if name == "Mul" else ():
            # The scale of the rows times the weight's.
            scale = value.owner
            if isinstance(scale, Operation) and op_name(scale) == "Mul" and scale in number:
                beside.append(number[scale])
    if any(fused(use.operation) for use in last.results[0].uses):
        return [n for n in beside if isinstance(before, Operation) and number.get(before) == n]
    return beside
