"""Whether stock ONNX Runtime computes the same bits for two models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

NEWEST_IR = 13


class CannotRun(Exception):
    """ONNX Runtime has no kernel for the original model, or takes no inputs of its types from numpy."""


def outputs(model: onnx.ModelProto | str, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of one run on one thread."""
    # The newest opsets are allowed too: what has a kernel is compared.
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = model if isinstance(model, str) else _known_version(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    if any(isinstance(v, onnx.TensorProto) for v in feeds.values()):
        values = {name: _ort_value(value) for name, value in feeds.items()}
        names = [o.name for o in session.get_outputs()]
        found = session.run_with_ort_values(names, values)
        return [_numpy(v) for v in found]
    return session.run(None, dict(feeds))


def _known_version(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with an IR version that the runtime reads; the newer one changes nothing in what it computes."""
    if model.ir_version <= NEWEST_IR:
        return model
    older = onnx.ModelProto()
    older.CopyFrom(model)
    older.ir_version = NEWEST_IR
    return older


def _ort_value(value: Any) -> Any:
    """A value of a type that numpy lacks goes in as its bits."""
    import onnxruntime

    if not isinstance(value, onnx.TensorProto):
        return onnxruntime.OrtValue.ortvalue_from_numpy(value)
    array = onnx.numpy_helper.to_array(value)
    narrow = array.dtype.itemsize
    bits = array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[narrow])
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, value.data_type)


def _numpy(value: Any) -> Any:
    try:
        return value.numpy()
    except RuntimeError as error:
        raise CannotRun(f"an output cannot be read from python: {error}") from error


def original_outputs(model: onnx.ModelProto | str, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of the model that was imported; `CannotRun` where ONNX Runtime refuses it."""
    try:
        return outputs(model, feeds)
    except Exception as error:
        raise CannotRun(str(error)) from error


def same_bits(left: Any, right: Any) -> bool:
    """True if two outputs are equal to the bit; tensors, and sequences and maps of them."""
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same_bits(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_bits(left[k], right[k]) for k in left)
    if isinstance(left, np.ndarray):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.tolist() == right.tolist() if left.dtype == object else left.tobytes() == right.tobytes()
    return left == right or (left != left and right != right)


def feeds_of(model: onnx.ModelProto, arrays: Sequence[Any]) -> dict[str, Any]:
    """Inputs by name, for those that are not initializers."""
    initialized = {t.name for t in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in initialized]
    return {
        n: np.asarray(a) if isinstance(a, np.generic) else a
        for n, a in zip(names, arrays, strict=False)
        if a is not None
    }
