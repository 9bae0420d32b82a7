"""A model with its i8 weights as u8, with weights and zero points 128 larger: the same model, in other kernels of ORT.

On CPUs without dot products of bytes (x86-64 without VNNI), ONNX Runtime adds pairs of products of u8 and i8 in 16
bits, with saturation (MLAS, its AVX2 kernels); products of u8 and u8 it adds exactly. The difference of the two models
is the error of the original. See "Quantised tensors" in docs/explanation/numerics.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

CONTRIB = "com.microsoft"
FACTORS: dict[tuple[str, str], tuple[tuple[int, int, bool], ...]] = {
    ("", "ConvInteger"): ((1, 3, False),),
    ("", "DequantizeLinear"): ((0, 2, True),),
    ("", "MatMulInteger"): ((1, 3, False),),
    ("", "QLinearConv"): ((3, 5, True),),
    ("", "QLinearMatMul"): ((3, 5, True),),
    (CONTRIB, "DynamicQuantizeLSTM"): ((1, 9, True), (2, 11, True)),
    (CONTRIB, "DynamicQuantizeMatMul"): ((1, 3, False),),
    (CONTRIB, "MatMulIntegerToFloat"): ((1, 5, False),),
    (CONTRIB, "QAttention"): ((1, 7, False),),
    (CONTRIB, "QGemm"): ((3, 5, True),),
}
"""By domain and op: the input numbers of a weight and its zero point, and true if the zero point has the dims of a
scale. A missing one of these cannot be added."""


def with_unsigned_weights(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Returns a copy with u8 in place of i8 for initializers in integer products; `None` if there are no such
    initializers.

    The bytes stay in place: nodes add the 128, and ONNX Runtime folds them.
    """
    signed = {t.name for t in proto.graph.initializer if t.data_type == onnx.TensorProto.INT8}
    if not any(_weights(node, signed) for node in proto.graph.node):
        return None
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    taken = {n for node in made.graph.node for n in (*node.input, *node.output)} | signed
    unsigned: dict[str, str] = {}
    added: list[onnx.NodeProto] = []

    def other(name: str) -> str:
        if name not in unsigned:
            unsigned[name] = _fresh(f"{name}.u8", taken)
            added.extend(_shifted(name, unsigned[name], taken))
        return unsigned[name]

    default = ""
    for node in made.graph.node:
        for at, zero_at in _weights(node, signed):
            node.input[at] = other(node.input[at])
            if zero_at < len(node.input) and node.input[zero_at]:
                node.input[zero_at] = other(node.input[zero_at])
                continue
            if not default:
                default = _fresh("zero.u8", taken)
                made.graph.initializer.append(onnx.helper.make_tensor(default, onnx.TensorProto.UINT8, [], [128]))
            node.input.extend([""] * (zero_at + 1 - len(node.input)))
            node.input[zero_at] = default
    nodes = [*added, *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _weights(node: onnx.NodeProto, signed: set[str]) -> list[tuple[int, int]]:
    """Returns the input numbers of a node's i8 weights and their constant zero points. A node takes all of its weights
    in one type."""
    found = FACTORS.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type), ())
    for at, zero_at, must_have in found:
        zero = node.input[zero_at] if zero_at < len(node.input) else ""
        if at >= len(node.input) or node.input[at] not in signed or (zero not in signed if zero else must_have):
            return []
    return [(at, zero_at) for at, zero_at, _ in found]


def _shifted(name: str, result: str, taken: set[str]) -> Iterator[onnx.NodeProto]:
    """Yields nodes to convert a tensor of i8 to u8."""
    make, wide = onnx.helper.make_node, onnx.TensorProto.INT32
    parts = {part: _fresh(f"{result}.{part}", taken) for part in ("wide", "by", "sum")}
    yield make("Cast", [name], [parts["wide"]], to=wide)
    yield make("Constant", [], [parts["by"]], value=onnx.helper.make_tensor("", wide, [], [128]))
    yield make("Add", [parts["wide"], parts["by"]], [parts["sum"]])
    yield make("Cast", [parts["sum"]], [result], to=onnx.TensorProto.UINT8)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
