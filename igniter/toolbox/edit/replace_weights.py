"""`replace-weights`: replaces the values of weights by those of NumPy files.

    %w = onnx.Constant() {value = #onnx.tensor<768x768xf32, file("model.onnx", ...)>}
 -> %w = onnx.Constant() {value = #onnx.tensor<768x768xf32, file("w.npy", 128, ...)>}

    replace-weights{weights="w" files="w.npy"}        replace-weights{files="all.npz"}

A weight keeps its type and shape. Without names, all weights in a `.npz` file or a folder of `.npy` files are replaced.
A `.npy` file is not read: the IR refers to its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.weights import Weight
from igniter.errors import IgniterError
from igniter.registry import UnknownName
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.weight_files import (
    INDICES,
    VALUES,
    ends,
    read_weight,
    tensors_of,
    weight_files,
    weight_of_array,
    weight_ops,
)


@dataclass(frozen=True)
class ReplaceWeights(Edit):
    """Takes the values of weights from files."""

    name = "replace-weights"
    weights: tuple[str, ...] = ()
    """Names of weights; empty for all in the files."""
    files: tuple[str, ...] = ()
    """A file for each weight; without names, `.npz` files and folders of `.npy` files."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = weight_ops(op)
        if not self.files:
            raise IgniterError("no file is given for replace-weights")
        pairs = paired("replace-weights", self.weights, self.files) if self.weights else self._all()
        for name, file in pairs:
            node, end = _find(known, name, file)
            made = read_weight(file, name, tensors_of(node)[end])
            _set(node, end, made)
            remark(ctx, self.name, name, "applied", f"is from {file}")

    def _all(self) -> list[tuple[str, str]]:
        return [(name, file) for file in self.files for name in weight_files(file)]

    def track(self, interface: Interface) -> None:
        interface.different.append("weights are replaced")


def _find(known: dict[str, OnnxOp], name: str, file: str) -> tuple[OnnxOp, str]:
    for weight, end in ends(name):
        node = known.get(weight)
        if node is not None and end in tensors_of(node):
            return node, end
    if name in known:
        raise IgniterError(f"'{name}' is sparse: name {name}{VALUES} and {name}{INDICES}")
    raise UnknownName("weight", name, known)


def _set(node: OnnxOp, end: str, made: Weight) -> None:
    if end == "":
        node.attributes["value"] = TensorAttr(made)
        return
    old = node.attributes["sparse_value"]
    assert isinstance(old, SparseTensorAttr)
    values = TensorAttr(made) if end == VALUES else old.values
    indices = TensorAttr(made) if end == INDICES else old.indices
    node.attributes["sparse_value"] = SparseTensorAttr(values, indices, old.dims)


def with_arrays(module: ModuleOp, arrays: Mapping[str, Any]) -> ModuleOp:
    """Returns a copy of a module with arrays instead of weights; their types and shapes must equal the weights'."""
    copy = module.clone()
    known = weight_ops(copy)
    for name, value in arrays.items():
        node, end = _find(known, name, "an array")
        _set(node, end, weight_of_array(np.asarray(value), name, tensors_of(node)[end]))
    return copy
