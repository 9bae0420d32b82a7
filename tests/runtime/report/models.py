"""A model for reports: an If, strings that no kernel takes, modules in names, and names that are markup."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

EVIL = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2">&\'"`${1}\u2028-->'
"""A name that is markup, and script, wherever it is not text."""

F = TensorProto.FLOAT


def odd_model() -> bytes:
    """`y` by a product and an If with two branches, and `tn` by a node that ONNX Runtime runs."""
    then = helper.make_graph(
        [helper.make_node("Exp", ["h"], ["te"], "then_exp"), helper.make_node("Softmax", ["te"], ["tz"], "then_soft")],
        "then",
        [],
        [helper.make_tensor_value_info("tz", F, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Log", ["h"], ["oz"], EVIL + "log")],
        "other",
        [],
        [helper.make_tensor_value_info("oz", F, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], f"/block.0/{EVIL.replace('/', '|')}/MatMul"),
        helper.make_node("ReduceSum", ["h"], ["s"], "/block.0/sum/ReduceSum", keepdims=0),
        helper.make_node("Cast", ["s"], ["yes"], "/block.0/Cast", to=TensorProto.BOOL),
        helper.make_node("If", ["yes"], [EVIL], "/block.1/choice/If", then_branch=then, else_branch=other),
        helper.make_node("StringNormalizer", ["t"], ["tn"], "/text/Normalize"),
        helper.make_node("Softmax", [EVIL], ["y"], "/block.2/Softmax"),
    ]
    weight = np.linspace(0.1, 0.9, 256, dtype=np.float32).reshape(16, 16)
    graph = helper.make_graph(
        nodes,
        EVIL,
        [
            helper.make_tensor_value_info("x", F, ["n", 16]),
            helper.make_tensor_value_info("t", TensorProto.STRING, [2]),
        ],
        [
            helper.make_tensor_value_info("y", F, ["n", 16]),
            helper.make_tensor_value_info("tn", TensorProto.STRING, None),
        ],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()
