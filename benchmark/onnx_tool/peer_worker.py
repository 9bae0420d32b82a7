"""onnx-tool's side, run by a Python that has it: a task on standard input, an answer in the last line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import task as protocol

OPTIONS = {"verbose": False, "constant_folding": True}


def inputs(task: Any) -> dict[str, Any]:
    """Arrays for the inputs, in the way that onnx-tool asks for sizes."""
    return {name: np.zeros(each["shape"], each["dtype"]) for name, each in task["inputs"].items()}


def inferred(task: Any) -> Any:
    import onnx_tool

    model = onnx_tool.Model(task["model"], OPTIONS)
    model.graph.graph_reorder_nodes()
    model.graph.shape_infer(inputs(task))
    return model


def profile(task: Any) -> protocol.Answer:
    graph = inferred(task).graph
    graph.profile()
    return {"figure": int(graph.macs[0])}


def shapes(task: Any) -> protocol.Answer:
    """A shape engine from two sizes, asked for a third; of a model without symbols, its shapes."""
    import onnx_tool

    model = onnx_tool.Model(task["model"], OPTIONS)
    graph = model.graph
    graph.graph_reorder_nodes()
    if not task["sizes"]:
        graph.shape_infer(None)
        return {"shapes": {n: list(graph.tensormap[n].get_shape()) for n in graph.output}}
    # A dim that is a sum is a variable of its own: onnx-tool has no expressions in inputs.
    described = {name: each["dims"] for name, each in task["inputs"].items()}
    engine = graph.shape_regress(described, {name: (1, 4 * size) for name, size in task["variables"].items()})
    for name, size in task["other_variables"].items():
        engine.update_variable(name, size)
    engine.update_variables()
    return {"shapes": {n: [int(d) for d in engine.get_tensorshape(n)] for n in graph.output}}


def compute_graph(task: Any) -> protocol.Answer:
    graph = inferred(task).graph.get_compute_graph()
    return {"figure": len(graph.nodemap)}


def memory(task: Any) -> protocol.Answer:
    return {"figure": int(inferred(task).graph.compress_memory()[1])}


def extract(task: Any) -> protocol.Answer:
    model = inferred(task)
    files: list[str] = []
    for k, part in enumerate(model.graph.get_subgraph(inputs=task["cut"][0], outputs=task["cut"][1])):
        files.append(f"{task['out']}.{k}.onnx")
        part.save_model(files[-1], rawmodel=model.mproto)
    return {"parts": files}


def fuse(task: Any) -> protocol.Answer:
    from onnx_tool.fusion import createSerialPattern

    model = inferred(task)
    found = createSerialPattern(task["chain"]).search_pattern(model.graph)
    for k, nodes in enumerate(found):
        model.graph.fuse_subgraph_node_names(nodes, "Fused", f"fused_{k}", True)
    model.save_model(f"{task['out']}.onnx")
    return {"figure": len(found), "files": [f"{task['out']}.onnx"]}


def quantize(task: Any, bits: int, block: int) -> protocol.Answer:
    import onnx_tool
    from onnx_tool.quantization import graph_quantize

    model = onnx_tool.Model(task["model"], OPTIONS)
    products = [n for n in model.graph.nodemap.values() if n.op_type in ("MatMul", "Gemm")]
    for name in dict.fromkeys(i for n in products for i in n.input if i in model.graph.initials):
        graph_quantize(model.graph, name, block=block, type="sym", bits=bits)
    out = f"{task['out']}.onnx"
    model.save_model(out)
    return {"bytes": Path(out).stat().st_size, "files": [out]}


protocol.serve(
    {
        "profile": profile,
        "shapes": shapes,
        "compute-graph": compute_graph,
        "memory": memory,
        "extract": extract,
        "fuse": fuse,
        "int8": lambda task: quantize(task, 8, -1),
        "int4": lambda task: quantize(task, 4, 32),
    }
)
