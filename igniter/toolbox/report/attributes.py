"""The attributes of a node as text, for the details of a report's graph."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from igniter.dialects.onnx.attributes import to_python
from igniter.dialects.onnx.base import OnnxOp

MOST_LETTERS = 120
"""The longest text of an attribute's value."""
MOST_VALUES = 8
"""The most elements of a tensor that are written out."""

GRAPHS = (5, 10)
"""The kinds of attributes (`AttributeProto.AttributeType`) that hold graphs; the report draws those as groups."""


def attribute_texts(op: OnnxOp) -> list[list[str]]:
    """Returns pairs of a name and a text: the attributes of the node, then the schema's defaults of the others."""
    graphs = {name.split("[")[0] for name in op.graph_names}
    found = [
        [name, value_text(to_python(value))]
        for name, value in op.attributes.items()
        if not name.startswith("igniter.") and name not in graphs
    ]
    schema = op.schema
    for name, spec in schema.attributes.items() if schema is not None else ():
        if name not in op.attributes and name not in graphs and spec.kind not in GRAPHS and spec.default is not None:
            found.append([name, f"{value_text(spec.default)} (default)"])
    return found


def value_text(value: Any) -> str:
    """Returns a short text of an attribute's value: of a tensor its type, and its elements if they are few."""
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        return _short(f"{kind} {array.tolist()}" if array.size <= MOST_VALUES else kind)
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return _short(f"[{', '.join(map(value_text, items))}]")
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
