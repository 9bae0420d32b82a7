"""Digests of graphs for outcomes in the cache: equal graphs of equal shapes take equal time, whatever their weights.

Large weights count by their type and shape, small constants by their elements. Names count only for whole models, where
an outcome names nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.fusion.graph import node_label
from igniter.dialects.onnx.base import OnnxOp, constant_weight

SMALL_BYTES = 1024
"""The size of constants up to which their elements count."""
NAMES = frozenset(
    ("node_name", "doc_string", "metadata", "device_configurations", "output_names", "output_info", "attribute_info")
)
"""The properties of a node without effect on its time."""
LABELS = frozenset(("sym_name", "kernel", "initializer_name"))


def graph_digest(module: ModuleOp, *, names: bool) -> str:
    """Returns a digest of a module; with `names`, of the names of its nodes too."""
    state = hashlib.sha256()
    numbers: dict[SSAValue, int] = {}
    _add(module, state, numbers, names)
    return state.hexdigest()


def _add(op: Operation, state: Any, numbers: dict[SSAValue, int], names: bool) -> None:
    facts: list[object] = [op.name, [numbers.setdefault(v, len(numbers)) for v in op.operands]]
    facts += [_text(op, key, value) for key, value in sorted({**op.properties, **op.attributes}.items())]
    if names and isinstance(op, OnnxOp):
        facts.append(node_label(op))
    facts += [(numbers.setdefault(r, len(numbers)), str(r.type)) for r in op.results]
    state.update(repr(facts).encode())
    for region in op.regions:
        for block in region.blocks:
            state.update(repr([(numbers.setdefault(a, len(numbers)), str(a.type)) for a in block.args]).encode())
            for inner in block.ops:
                _add(inner, state, numbers, names)
        state.update(b"end")


def _text(op: Operation, key: str, value: Attribute) -> str:
    if key in NAMES or key in LABELS:
        return key
    weight = constant_weight(op.results[0]) if key == "value" and len(op.results) == 1 else None
    if weight is None:
        return f"{key}={value}"
    return f"{key}={weight.shape}{weight.element_type}" + (weight.digest() if weight.nbytes <= SMALL_BYTES else "")


def shapes_text(feed: Mapping[str, Any]) -> str:
    """Returns the types and shapes of inputs by name, and the elements of small integers, which may be sizes."""
    return "; ".join(f"{name}: {_value_text(value)}" for name, value in sorted(feed.items()))


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, cast('list[Any]', value)))}]"
    array: np.ndarray[Any, Any] = np.asarray(value)
    said = f"{array.dtype}{list(array.shape)}"
    return said + str(array.tolist()) if array.dtype.kind in "biu" and array.size <= 16 else said
