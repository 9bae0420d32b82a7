"""ONNX's node cases with other attributes: each attribute in turn gets values that its op may have, one at a time.

Candidates are what any other case of the op gives the attribute, and changes of the value itself (a flag flipped, an
axis moved, a list reversed). ONNX Runtime decides: what it refuses is no case, and what it computes is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.test.case.test_case import TestCase

MOST = 12
"""So many variants of a case at most, the same ones in every run."""


def variants(case: TestCase) -> list[tuple[str, onnx.ModelProto]]:
    """What is different, and the model. Shapes of outputs are left out, since they may be others."""
    if len(case.model.graph.node) != 1:
        return []
    node = case.model.graph.node[0]
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.HasField("g")}
    found = [(n, v) for n in sorted(_attributes(node, case)) for v in _values(node, n, given.get(n), case)]
    order = np.random.default_rng(len(found)).permutation(len(found))
    return [(f"{n}={_text(v)}", _with(case.model, n, v)) for n, v in (found[i] for i in order[:MOST])]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _schema(node: onnx.NodeProto, case: TestCase) -> onnx.defs.OpSchema | None:
    versions = {o.domain: o.version for o in case.model.opset_import}
    try:
        return onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def _attributes(node: onnx.NodeProto, case: TestCase) -> set[str]:
    schema = _schema(node, case)
    # In which order TopK gives what is not sorted is left open by ONNX.
    open_ = {"sorted"} if node.op_type == "TopK" else set[str]()
    return set(schema.attributes) - open_ if schema is not None else set()


def _values(node: onnx.NodeProto, name: str, value: Any, case: TestCase) -> Iterator[Any]:
    """Values other than the one that the node has."""
    schema = _schema(node, case)
    assert schema is not None
    default = schema.attributes[name].default_value
    if value is None and default.type != onnx.AttributeProto.UNDEFINED:
        value = helper.get_attribute_value(default)
    seen = {repr(value)}
    for other in [*_known_values().get((node.domain, node.op_type, name), ()), *_changes(value)]:
        if repr(other) not in seen:
            seen.add(repr(other))
            yield other


def _changes(value: Any) -> list[Any]:
    if isinstance(value, int):
        return [1 - value] if value in (0, 1) else [value + 1, -value]
    if isinstance(value, float):
        return [value / 2, -value, 0.0]
    if isinstance(value, list) and value and all(isinstance(v, int) for v in value):
        return [value[::-1], [v + 1 for v in value], [*value[:-1], 0]]
    return []


@cache
def _known_values() -> dict[tuple[str, str, str], list[Any]]:
    from tests.conformance.node_cases import node_cases

    found: dict[tuple[str, str, str], list[Any]] = {}
    for case in node_cases().values():
        for node in case.model.graph.node:
            for a in node.attribute:
                if a.type in _PLAIN:
                    value = helper.get_attribute_value(a)
                    known = found.setdefault((node.domain, node.op_type, a.name), [])
                    if repr(value) not in map(repr, known):
                        known.append(value)
    return found


_PLAIN = (
    onnx.AttributeProto.INT,
    onnx.AttributeProto.FLOAT,
    onnx.AttributeProto.STRING,
    onnx.AttributeProto.INTS,
    onnx.AttributeProto.FLOATS,
)


def _with(original: onnx.ModelProto, name: str, value: Any) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(original)
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
    for info in model.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return model
