"""Models as launches of Triton kernels, run in Triton's interpreter beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.target import machine_of_target, target_of
from igniter.context import IgniterContext
from igniter.dialects import triton as tt
from igniter.dialects.fusion import PackOp, RegionOp
from igniter.dialects.loop import FuncOp, IfOp, KernelOp, LaunchOp
from igniter.dialects.onnx.base import constant_value, constant_weight
from igniter.dialects.onnx.structure import ReturnOp, main_graph
from igniter.dialects.sym import dims_of
from igniter.frontend import import_model
from igniter.passes import run_pipeline
from igniter.pipelines import PIPELINES
from igniter.transforms.conversion.schedule_kernels import schedule_kernel
from igniter.transforms.fusion.pack_weights import Packed
from tests.ops.single_node import kernel_of, module_of, reference

Array = np.ndarray[Any, Any]


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    weights: dict[str, Any] | None = None,
    opset: int = 20,
) -> onnx.ModelProto:
    """A model of some nodes, whose result is that of the last one; `inputs` are element types and dims."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def values(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Numbers around 0, the same for a seed."""
    return np.random.default_rng(seed).normal(0, 1.5, shape).astype(dtype)


def lowered(
    model: onnx.ModelProto, target: str = "cuda", variants: bool = False, before: Sequence[ModulePass] = ()
) -> ModuleOp:
    """The launches of a model whose graph is one kernel, and what they launch, by the pipeline of the backend. Without
    `variants` one schedule is for all sizes. The passes `before` change the graph."""
    ctx = IgniterContext().on(machine_of_target(target_of(target)), None, {})
    given = module_of(model)
    for each in before:
        each.apply(ctx, given)
    passes = ",".join(name for name in PIPELINES["cuda-schedule"] if variants or name != "form-variants")
    func = schedule_kernel(ctx, kernel_of(given, blocks=True), passes, "", verify_each=True).func
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    return module


def func_of(module: ModuleOp) -> FuncOp:
    """The launcher."""
    return next(op for op in module.ops if isinstance(op, FuncOp))


def versions_of(func: FuncOp) -> list[list[LaunchOp]]:
    """The launches of each variant, and those of the kernel's own body."""
    blocks = [op.block for op in func.block.ops if isinstance(op, IfOp)] or [func.block]
    return [[op for op in block.ops if isinstance(op, LaunchOp)] for block in blocks]


def kernels_of(module: ModuleOp) -> list[tt.FuncOp]:
    """The launched kernel."""
    return [op for op in module.ops if isinstance(op, tt.FuncOp)]


def sizes_of(func: FuncOp, feeds: Sequence[Array]) -> dict[str, int]:
    """The values of symbols that are dims of inputs."""
    found: dict[str, int] = {}
    for argument, array in zip(func.block.args, feeds, strict=False):
        for dim, size in zip(dims_of(argument.type), array.shape, strict=True):
            if dim.symbol is not None:
                found.setdefault(dim.symbol, size)
    return found


def whole(model: onnx.ModelProto, target: str, *feeds: Mapping[str, Array]) -> tuple[list[list[Array]], ModuleOp]:
    """The results of runs of a model, by the whole pipeline of the backend and with its kernels in Triton's
    interpreter, and its module. Every node has to be in a region."""
    ctx = IgniterContext().on(machine_of_target(target_of(target)), None, {})
    module = import_model(model)
    run_pipeline(ctx, module, "cuda-onnx,cuda-fusion,cuda-loop")
    passes = ",".join(PIPELINES["cuda-schedule"])
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    funcs = {k.sym_name.data: schedule_kernel(ctx, k, passes, "", verify_each=True).func for k in kernels}
    return [_run_graph(module, funcs, feed) for feed in feeds], module


def _run_graph(module: ModuleOp, funcs: Mapping[str, FuncOp], feed: Mapping[str, Array]) -> list[Array]:
    graph = main_graph(module)
    values: dict[SSAValue, Array] = dict(zip(graph.body.args, (feed[n] for n in graph.input_names), strict=True))
    for op in graph.body.ops:
        if isinstance(op, RegionOp):
            func = funcs[op.kernel_name or ""]
            launched, given = func.parent_op(), [values[v] for v in op.inputs]
            assert isinstance(launched, ModuleOp)
            values.update(zip(op.results, run_func(launched, func, given, sizes_of(func, given)), strict=False))
        elif isinstance(op, PackOp):
            weight = constant_weight(op.source)
            assert weight is not None
            values[op.result] = Packed(weight, op.layout).compute()
        elif isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        else:
            array = constant_value(op.results[0])
            assert array is not None, f"'{op.name}' is in no region"
            values[op.results[0]] = array
    raise AssertionError("a graph must end with onnx.return")


def check(
    model: onnx.ModelProto,
    *runs: Mapping[str, Array],
    launches: int | None = None,
    rtol: float = 2e-5,
    before: Sequence[ModulePass] = (),
) -> None:
    """Compares each run with ONNX Runtime's; `launches` is how many there have to be, for large sizes."""
    module = lowered(model, variants=True, before=before)
    func = func_of(module)
    assert launches is None or len(versions_of(func)[-1]) == launches
    for feeds in runs:
        arrays = list(feeds.values())
        wanted = reference(model, feeds)
        found = run_func(module, func, arrays, sizes_of(func, arrays))
        # Behind the results are those that the op checks, of which ONNX Runtime has none.
        assert len(found) == len(wanted) + len(func.checks)
        for mine, theirs in zip(found, wanted, strict=False):
            theirs = np.asarray(theirs)
            assert mine.shape == theirs.shape
            assert mine.dtype == theirs.dtype
            assert mine.dtype != np.bool_ or not (mine.view(np.uint8) > 1).any(), "not every bool was written"
            exact = mine.dtype.kind not in "f" and mine.dtype.name != "bfloat16"
            scale = 0.0 if exact or not theirs.size else np.nanmax(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
            np.testing.assert_allclose(
                mine.astype(np.float64), theirs.astype(np.float64), rtol=0 if exact else rtol, atol=rtol * scale
            )
