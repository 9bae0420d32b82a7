"""One ONNX node through its whole description: shape rule, legality, lowering, interpreter, compared with a reference.

The reference is ONNX Runtime, or ONNX's evaluator where ORT has no kernel for a type. Every case runs with static dims
and with dynamic ones, in which equal sizes share a symbol, and again after the structured passes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from igniter.context import IgniterContext
from igniter.dialects.fusion import RegionOp, YieldOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.structure import GraphOp
from igniter.frontend import import_model
from igniter.transforms.conversion.lower_onnx_to_loop import lower_region
from igniter.transforms.onnx.infer_shapes import InferShapes
from igniter.transforms.structured.canonicalize_loop import CanonicalizeLoop
from igniter.transforms.structured.collapse_axes import CollapseAxes
from igniter.transforms.structured.inline_nests import InlineNests
from igniter.verification.interp.structured import run_kernel

Arrays = Sequence[np.ndarray[Any, Any] | None]
OPSET = 21
RELEASED = 26
"""The newest opset that ORT runs whatever its environment says (ALLOW_RELEASED_ONNX_OPSET_ONLY)."""


class NotLowered(Exception):
    """A node that is not lowered; the message is its reason."""


def model_of(
    op_type: str,
    inputs: Arrays,
    attrs: Mapping[str, Any],
    *,
    constant: Sequence[int] = (),
    outputs: int = 1,
    opset: int = OPSET,
    domain: str = "",
    dynamic: bool = False,
    fixed: Collection[int] = (),
) -> onnx.ModelProto:
    """A model of one node; inputs named in `constant` are initializers. Sizes in `fixed` are never symbols."""
    names = ["" if a is None else f"x{k}" for k, a in enumerate(inputs)]
    given = [(k, n, a) for k, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None]
    node = helper.make_node(op_type, names, [f"y{k}" for k in range(outputs)], domain=domain, name="node", **attrs)
    infos = [
        helper.make_tensor_value_info(n, element_code(a), [dim(d, dynamic and d not in fixed) for d in a.shape])
        for k, n, a in given
        if k not in constant
    ]
    weights = [numpy_helper.from_array(a, n) for k, n, a in given if k in constant]
    results = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)]
    graph = helper.make_graph([node], "g", infos, results, weights)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def element_code(array: np.ndarray[Any, Any]) -> int:
    return TensorProto.BFLOAT16 if array.dtype == ml_dtypes.bfloat16 else helper.np_dtype_to_tensor_dtype(array.dtype)


def dim(size: int, dynamic: bool) -> int | str:
    # 1 stays 1: whether a symbol broadcasts is not for a kernel to find out. 0 may become a symbol.
    return f"n{size}" if dynamic and size != 1 else size


def module_of(model: onnx.ModelProto) -> ModuleOp:
    """The model, imported, with its shapes inferred."""
    module = import_model(model)
    InferShapes().apply(IgniterContext(), module)
    return module


def kernel_of(module: ModuleOp, blocks: bool = False) -> KernelOp:
    """The whole graph as one kernel; `NotLowered` where a node has no lowering or a reason against it."""
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    block = Block(arg_types=[a.type for a in graph.body.args])
    values = dict(zip(graph.body.args, block.args, strict=True))
    *nodes, terminator = graph.body.ops
    for op in nodes:
        if isinstance(op, OnnxOp) and op.op_type != "Constant":
            spec = spec_of(op)
            assert spec is not None and spec.lower is not None, f"{op.qualified_name} has no lowering"
            reason = spec.legal(op) if spec.legal is not None else None
            if reason is not None:
                raise NotLowered(reason)
        block.add_op(op.clone(values))
    block.add_op(YieldOp([values[v] for v in terminator.operands]))
    region = RegionOp("r", list(graph.body.args), list(terminator.operand_types), Region(block))
    graph.body.insert_op_before(region, terminator)
    kernel = lower_region(region, blocks=blocks)
    graph.body.detach_op(region)
    kernel.verify()
    return kernel


def optimise(kernel: KernelOp) -> KernelOp:
    """A copy of the kernel after the structured passes."""
    module = ModuleOp([kernel.clone()])
    ctx = IgniterContext()
    for each in (CanonicalizeLoop(), InlineNests(), CanonicalizeLoop(), CollapseAxes(), CanonicalizeLoop()):
        each.apply(ctx, module)
    module.verify()
    (result,) = module.ops
    assert isinstance(result, KernelOp)
    return result


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """What ORT gives, or ONNX's evaluator where ORT has no kernel, or takes the opset for unreleased."""
    if any(entry.domain == "" and entry.version > RELEASED for entry in model.opset_import):
        return ReferenceEvaluator(model).run(None, dict(feeds))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except (
        onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,
        onnxruntime.capi.onnxruntime_pybind11_state.Fail,
    ):
        return ReferenceEvaluator(model).run(None, dict(feeds))
    return session.run(None, dict(feeds))


def check(
    op_type: str,
    inputs: Arrays,
    attrs: Mapping[str, Any] | None = None,
    *,
    constant: Sequence[int] = (),
    outputs: int = 1,
    opset: int = OPSET,
    domain: str = "",
    tolerance: float = 0.0,
    dynamic: Sequence[bool] = (False, True),
    fixed: Collection[int] = (),
    expected: Sequence[np.ndarray[Any, Any]] | None = None,
) -> None:
    """Lowers the node and compares the interpreter's results with the reference's."""
    inputs = [None if a is None else np.asarray(a) for a in inputs]
    static = model_of(op_type, inputs, attrs or {}, constant=constant, outputs=outputs, opset=opset, domain=domain)
    feeds = {f"x{k}": a for k, a in enumerate(inputs) if a is not None and k not in constant}
    wanted = expected if expected is not None else reference(static, feeds)
    for symbolic in dynamic:
        model = model_of(
            op_type,
            inputs,
            attrs or {},
            constant=constant,
            outputs=outputs,
            opset=opset,
            domain=domain,
            dynamic=symbolic,
            fixed=fixed,
        )
        kernel = kernel_of(module_of(model))
        for made in (kernel, optimise(kernel)):
            got = run_kernel(made, list(feeds.values()))
            compare(got, wanted, tolerance)


def compare(got: Sequence[np.ndarray[Any, Any]], wanted: Sequence[Any], tolerance: float) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        b = np.asarray(b)
        assert a.shape == b.shape and a.dtype == b.dtype, f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if tolerance:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(a, b)


def refusal(op_type: str, inputs: Arrays, attrs: Mapping[str, Any] | None = None, **options: Any) -> str:
    """Why a node is not lowered."""
    model = model_of(op_type, inputs, attrs or {}, **options)
    try:
        kernel_of(module_of(model))
    except NotLowered as reason:
        return str(reason)
    raise AssertionError(f"{op_type} is lowered")
