"""Small models and passes for the tests of the tools."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.remarks import remark
from igniter.tools.igniter_opt import run

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
tiny (float[batch, 8] x, float[8] w, int64[batch] ids) => (float[batch, 8] y, float[batch] total)
<float[4, 8] table = {0,1,2,3,4,5,6,7,0,-1,-2,-3,-4,-5,-6,-7,1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2}>
{
    rows = Gather<axis = 0>(table, ids)
    scaled = Mul(x, w)
    moved = Add(scaled, rows)
    y = Relu(moved)
    total = ReduceSum<keepdims = 0>(y, axis)
}
"""


def tiny_model() -> onnx.ModelProto:
    """Elementwise ops, a gather and a reduction, with a dynamic batch."""
    model = onnx.parser.parse_model(MODEL.replace("ReduceSum<keepdims = 0>(y, axis)", "Squeeze(summed)"))
    nodes = model.graph.node
    summed = onnx.helper.make_node("ReduceSum", ["y", "axis"], ["summed"], keepdims=1)
    squeeze = onnx.helper.make_node("Squeeze", ["summed", "axis"], ["total"])
    del nodes[-1]
    nodes.extend([summed, squeeze])
    model.graph.initializer.append(onnx.numpy_helper.from_array(_axis(), "axis"))
    for number, node in enumerate(nodes):
        node.name = f"{node.op_type}_{number}"
    onnx.checker.check_model(model)
    return model


def _axis() -> object:
    import numpy as np

    return np.array([1], np.int64)


def save_tiny_model(folder: Path) -> Path:
    """The tiny model in a file."""
    path = folder / "tiny.onnx"
    onnx.save(tiny_model(), path)
    return path


@dataclass(frozen=True)
class Opt:
    """What a run of igniter-opt gave."""

    status: int
    out: str
    err: str


def opt(*args: str, text: str | bytes = "") -> Opt:
    """Run igniter-opt in this process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    data = text.encode() if isinstance(text, str) else text
    status = run([str(a) for a in args], io.BytesIO(data), stdout, stderr)
    return Opt(status, stdout.getvalue(), stderr.getvalue())


@dataclass(frozen=True)
class BreakRelu(ModulePass):
    """Turns Relu into Abs: wrong on purpose."""

    name = "break-relu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for node in list(op.walk()):
            if isinstance(node, OnnxOp) and node.op_type == "Relu":
                wrong = make_op("Abs", node.inputs, [r.type for r in node.results])
                block = node.parent
                assert block is not None
                block.insert_op_before(wrong, node)
                node.results[0].replace_all_uses_with(wrong.results[0])
                block.erase_op(node)
                remark(ctx, self.name, node.node_name, "applied", "broken", count=1)


@dataclass(frozen=True)
class Crash(ModulePass):
    """Fails with an error that is not Igniter's."""

    name = "crash"

    times: int = 1
    label: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError(f"crashed {self.times} times")


@dataclass(frozen=True)
class Corrupt(ModulePass):
    """Leaves IR that does not verify."""

    name = "corrupt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from igniter.dialects.onnx.structure import main_graph

        graph = main_graph(op)
        graph.attributes["input_names"] = graph.attributes["output_names"]


PASSES = {
    "break-relu": "tools_kit:BreakRelu",
    "crash": "tools_kit:Crash",
    "corrupt": "tools_kit:Corrupt",
}
