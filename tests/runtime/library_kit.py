"""Kernels written by hand in LLVM IR, and one-node models around them, for tests of the library and the runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
from xdsl.dialects.builtin import f32

from igniter.backends.cpu.target import Target, target_of
from igniter.dialects.ort import LibraryOp, OpOp, Port, port
from igniter.runtime.cache import Cache
from igniter.runtime.library import Library, LibraryPart, build_library

ARGUMENTS = "ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context"
TARGET: Target = target_of("native")


def function(name: str, body: str, more: str = "") -> str:
    """A module with one kernel; `buffer N`, `symbol N` and `for` in the body are shorthands."""
    lines: list[str] = []
    for line in body.strip().splitlines():
        words = line.split()
        if len(words) == 4 and words[2] == "buffer":  # %x = buffer 0
            lines.append(f"{words[0]}.p = getelementptr ptr, ptr %buffers, i64 {words[3]}")
            lines.append(f"{words[0]} = load ptr, ptr {words[0]}.p")
        elif len(words) == 4 and words[2] == "symbol":
            lines.append(f"{words[0]}.p = getelementptr i64, ptr %symbols, i64 {words[3]}")
            lines.append(f"{words[0]} = load i64, ptr {words[0]}.p")
        elif words and words[0] == "for":  # for %i below %n
            i, n = words[1], words[3]
            label = i[1:]
            lines += [
                f"%{label}.at = alloca i64",
                f"store i64 0, ptr %{label}.at",
                f"br label %{label}.head",
                f"{label}.head:",
                f"{i} = load i64, ptr %{label}.at",
                f"%{label}.more = icmp slt i64 {i}, {n}",
                f"br i1 %{label}.more, label %{label}.body, label %{label}.end",
                f"{label}.body:",
            ]
        elif words and words[0] == "end":  # end %i
            label = words[1][1:]
            lines += [
                f"%{label}.next = add i64 %{label}, 1",
                f"store i64 %{label}.next, ptr %{label}.at",
                f"br label %{label}.head",
                f"{label}.end:",
            ]
        else:
            lines.append(line)
    text = "\n  ".join(lines)
    return f"{more}\ndefine void @{name}({ARGUMENTS}) {{\nentry:\n  {text}\n  ret void\n}}\n"


def scale_kernel(name: str = "scale", factor: float = 2.0) -> str:
    """y[i] = x[i] * factor, over the product of two symbols."""
    return function(
        name,
        f"""
        %x = buffer 0
        %y = buffer 1
        %a = symbol 0
        %b = symbol 1
        %n = mul i64 %a, %b
        for %i below %n
        %from = getelementptr float, ptr %x, i64 %i
        %v = load float, ptr %from
        %w = fmul float %v, {factor:.1f}
        %to = getelementptr float, ptr %y, i64 %i
        store float %w, ptr %to
        end %i
        """,
    )


def scale_op(name: str = "Scale_k", kernel: str = "scale") -> OpOp:
    return OpOp(name, kernel, ["a", "b"], [port("x", f32, ["a", "b"])], [port("y", f32, ["a", "b"])])


def build(
    ops: Sequence[OpOp], kernels: Sequence[str], target: Target = TARGET, cache: Cache | None = None, **info: object
) -> Library:
    part = LibraryPart(LibraryOp("test", [op.clone() for op in ops]), {target: kernels})
    return build_library(part, info=info, cache=cache)


Shape = Sequence[int | str | None] | None


def value(name: str, dtype: int, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    domains: Sequence[str],
    initializers: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "test",
        list(inputs),
        list(outputs),
        [onnx.numpy_helper.from_array(v, k) for k, v in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(library: Library, op: str, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), domain=library.domain)


def session(
    proto: onnx.ModelProto, libraries: Sequence[Library], folder: Path, threads: int = 1, optimize: bool = True
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for library in libraries:
        options.register_custom_ops_library(str(library.write(folder)))
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def one_node(
    library: Library, op: OpOp, shapes: Mapping[str, Shape] | None = None, left_out: Sequence[str] = ()
) -> onnx.ModelProto:
    """A model of one node of `op`; the shapes of its inputs are unknown unless given."""
    from igniter.dialects.onnx.types import element_type

    def info(p: Port) -> onnx.ValueInfoProto:
        return value(p.name, element_type(p.element).code, (shapes or {}).get(p.name))

    ins = [p for p in op.inputs if p.name not in left_out]
    outs = [p for p in op.outputs if p.name not in left_out]

    def names(ports: Sequence[Port]) -> list[str]:
        found = ["" if p.name in left_out else p.name for p in ports]
        while found and not found[-1]:
            found.pop()
        return found

    made = node(library, op.sym_name.data, names(op.inputs), names(op.outputs))
    return model([made], [info(p) for p in ins], [info(p) for p in outs], [library.domain])
