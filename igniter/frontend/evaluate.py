"""Runs nodes on constants, with ORT if possible, so that a folded value has the bits of ORT's result.

Integers are exact, although ORT's sums and powers of them are not.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from igniter.activity import doing
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, make_constant
from igniter.dialects.onnx.structure import ReturnOp, graph_module
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.tensor_types import tensor_element, unranked
from igniter.errors import IgniterError
from igniter.frontend.exact_integers import with_exact_integers
from igniter.frontend.exporter import export_module
from igniter.frontend.ort_values import run

Array = np.ndarray[Any, Any]


class CannotEvaluate(Exception):
    """Raised if neither ORT nor the reference evaluator runs these nodes; the message gives the reason."""


def evaluate_nodes(
    ops: Sequence[OnnxOp], constants: Mapping[SSAValue, Weight], wanted: Sequence[SSAValue], opsets: Mapping[str, int]
) -> list[Array]:
    """Computes the values of `wanted` by `ops`; these are in order and read only each other and `constants`."""
    model = _model(ops, constants, wanted, opsets)
    exact = with_exact_integers(model, unsigned=True)
    model = model if exact is None else exact.proto
    try:
        return _by_ort(model)
    except CannotEvaluate as first:
        try:
            return _by_reference(model)
        except CannotEvaluate as second:
            raise CannotEvaluate(f"{first}; {second}") from second


def _model(
    ops: Sequence[OnnxOp], constants: Mapping[SSAValue, Weight], wanted: Sequence[SSAValue], opsets: Mapping[str, int]
) -> onnx.ModelProto:
    block = Block()
    mapping: dict[SSAValue, SSAValue] = {}
    for value, weight in constants.items():
        made = make_constant(weight, f"c{len(mapping)}")
        block.add_op(made)
        mapping[value] = made.results[0]
    for op in ops:
        for value in op.operands:
            owner = value.owner
            if isinstance(owner, NoValueOp) and value not in mapping:
                block.add_op(clone := owner.clone())
                mapping[value] = clone.results[0]
        copy: Operation = op.clone(mapping)
        for key in ("output_names", "node_name", "output_info"):
            copy.properties.pop(key, None)
        block.add_op(copy)
        mapping.update(zip(op.results, copy.results, strict=True))
    results = [mapping[v] for v in wanted]
    for value in results:
        # ORT infers the dims itself; a symbol could be unknown to the inputs.
        element = tensor_element(value.type)
        if isinstance(value, OpResult) and element is not None:
            value._type = unranked(element)
    block.add_op(ReturnOp.make(results))
    module = graph_module(Region(block), [], [f"r{i}" for i in range(len(results))], opsets)
    header = module.attributes["onnx.model"]
    assert isinstance(header, DictionaryAttr)
    try:
        model = export_module(module)
    except IgniterError as error:
        raise CannotEvaluate(error.message) from error
    del model.graph.value_info[:]
    return model


def _by_ort(model: onnx.ModelProto) -> list[Array]:
    import onnxruntime as ort

    runtime: Any = ort
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        with doing(f"a constant was computed ({_ops_of(model)})", runs="onnxruntime"):
            session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            found = run(session, {})
    except (RuntimeError, TypeError, ValueError, *ort_errors()) as error:
        lines = str(error).splitlines()
        raise CannotEvaluate(f"ORT: {lines[0] if lines else type(error).__name__}") from error
    return _arrays(list(found), "ORT")


def _ops_of(model: onnx.ModelProto) -> str:
    ops = dict.fromkeys(node.op_type for node in model.graph.node if node.op_type != "Constant")
    return ", ".join(ops) or "a Constant"


def ort_errors() -> list[type[Exception]]:
    """Returns ORT's exceptions for a failed model or run; the classes have no common base."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented", "RuntimeException")
    return [getattr(state, name) for name in names]


def _by_reference(model: onnx.ModelProto) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    try:
        found: Any = ReferenceEvaluator(model).run(None, {})
    except Exception as error:
        # The evaluator has no error class of its own: exceptions of nodes come out unchanged.
        raise CannotEvaluate(f"reference evaluator: {type(error).__name__}: {error}") from error
    return _arrays(list(found), "reference evaluator")


def _arrays(found: Sequence[Any], who: str) -> list[Array]:
    for value in found:
        if not isinstance(value, (np.ndarray, np.generic)):
            raise CannotEvaluate(f"{who}: a result is a {type(value).__name__}, not a tensor")
    return [np.asarray(v) for v in found]
