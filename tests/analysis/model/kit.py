"""Models for the tests of what models are told to be, as ONNX's text."""

from __future__ import annotations

import onnx
import onnx.parser


def model(text: str, opset: int = 17, functions: str = "") -> onnx.ModelProto:
    """A model whose nodes are named after their ops and places."""
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>\n{text}\n{functions}')
    for i, node in enumerate(made.graph.node):
        node.name = f"{node.op_type.lower()}_{i}"
    onnx.checker.check_model(made)
    return made


HEADS = """
heads (float[batch, seq, 8] x) => (float[batch, 2, seq, 4] heads, float[batch, seq] places)
<int64[1] first = {0}, int64[1] second = {1}, int64[1] two = {2}, int64[1] four = {4}, int64 zero = {0},
 int64 one = {1}>
{
    shape = Shape(x)
    batch_size = Gather<axis = 0>(shape, first)
    length = Gather<axis = 0>(shape, second)
    target = Concat<axis = 0>(batch_size, length, two, four)
    split = Reshape(x, target)
    heads = Transpose<perm = [0, 2, 1, 3]>(split)
    end = Squeeze(length)
    count = Range(zero, end, one)
    position = Cast<to = 1>(count)
    rows = Concat<axis = 0>(batch_size, length)
    places = Expand(position, rows)
}
"""

TABLE = """
table (float[batch, seq, 4] x) => (float[batch, seq, 4] y)
<int64[1] one = {1}, int64[1] zero = {0}, float[6, 4] rows =
 {0,0,0,0, 1,1,1,1, 2,2,2,2, 3,3,3,3, 4,4,4,4, 5,5,5,5}>
{
    shape = Shape(x)
    length = Gather<axis = 0>(shape, one)
    picked = Slice(rows, zero, length)
    y = Add(x, picked)
}
"""

WINDOWS = """
windows (float[n, 3, h, w] x, float[8, 3, 3, 3] k) => (float[n, 8, a, b] y)
{
    c = Conv<strides = [2, 2], kernel_shape = [3, 3]>(x, k)
    y = Relu(c)
}
"""

FOUND = """
found (float[n] x) => (float[m] y, int64[1, m] where)
{
    where = NonZero(x)
    flat = Squeeze(where)
    y = Gather<axis = 0>(x, flat)
}
"""

BRANCHES = """
branches (float[n, 4] x, bool flag) => (float[n, 4] y)
{
    y = If<then_branch = then () => (float[n, 4] a) { a = Relu(x) },
           else_branch = other () => (float[n, 4] b) { t = Exp(x) b = Neg(t) }>(flag)
}
"""
