"""Igniter's side: a task on standard input, an answer in the last line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import igniter
from benchmark.onnx_tool.task import Answer, serve
from igniter.compiler.driver import count_nodes

OPERANDS = {
    "MatMul": ("w",),
    "Gemm": ("w", "b"),
    "BatchNormalization": ("s", "b", "m", "v"),
    "Add": ("c",),
    "Mul": ("c",),
    "Relu": (),
}
"""Of ops that are looked for as pairs, the operands behind the first."""


def profile(task: Any) -> Answer:
    cost = igniter.load(task["model"]).profile().at(task["sizes"]).total.cost
    return {"figure": cost.macs.constant}


def shapes(task: Any) -> Answer:
    engine = igniter.load(task["model"]).shape_engine(task["outputs"])
    found = engine.at(task["other"])
    return {"shapes": {name: list(found[name]) for name in task["outputs"]}}


def compute_graph(task: Any) -> Answer:
    module = igniter.load(task["model"]).compute_graph()
    out = f"{task['out']}.onnx"
    module.save(out)
    return {"figure": count_nodes(module.ir), "files": [out]}


def memory(task: Any) -> Answer:
    plan = igniter.load(task["model"]).plan(task["sizes"])
    return {"figure": plan.value(plan.total), "bound": plan.value(plan.lower_bound)}


def extract(task: Any) -> Answer:
    files: list[str] = []
    start, end = task["cut"]
    for part in ("before", "inside", "after"):
        files.append(f"{task['out']}.{part}.onnx")
        igniter.load(task["model"]).extract(start, end, part).save(files[-1])
    return {"parts": files}


def fuse(task: Any) -> Answer:
    pattern = Path(f"{task['out']}.pattern")
    first, second = task["chain"]
    left, right = OPERANDS[first], tuple(f"{name}2" for name in OPERANDS[second])
    more = ", ".join(("x", *left, *right))
    pattern.write_text(
        f'# any h\n<domain: "fused", opset_import: ["" : 17]>\nFused ({more}) => (y)\n{{\n'
        f"    h = {first} ({', '.join(('x', *left))})\n    y = {second} ({', '.join(('h', *right))})\n}}\n"
    )
    module = igniter.load(task["model"]).fuse(pattern)
    out = f"{task['out']}.onnx"
    module.save(out)
    fused = sum(op.name == "onnx.custom" or "Fused" in op.name for op in module.ir.walk())
    return {"figure": module.ctx.rewrites.made.get("fuse-pattern", fused), "files": [out]}


def compress(task: Any, weights: str, granularity: str) -> Answer:
    out = Path(f"{task['out']}.onnx")
    igniter.load(task["model"]).compress(weights, granularity=granularity, symmetric=True).save(out)
    return {"bytes": sum(p.stat().st_size for p in out.parent.glob(f"{out.stem}*")), "files": [str(out)]}


if __name__ == "__main__":
    serve(
        {
            "profile": profile,
            "shapes": shapes,
            "compute-graph": compute_graph,
            "memory": memory,
            "extract": extract,
            "fuse": fuse,
            "int8": lambda task: compress(task, "int8", "channel"),
            "int4": lambda task: compress(task, "int4", "block:32"),
        }
    )
