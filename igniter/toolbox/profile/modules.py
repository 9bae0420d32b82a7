"""The source modules of a node, by its name or by the exporter's metadata.

    /bert/encoder/layer.0/attention/query/MatMul     bert, bert/encoder, bert/encoder/layer.0, ...
    model.layers.0.mlp.down_proj                     model, model.layers, model.layers.0, model.layers.0.mlp
    metadata pkg.torch.onnx.name_scopes              the scopes that torch's exporter lists

The last part is the node itself. A name without parts is in no module.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate

from xdsl.dialects.builtin import DictionaryAttr

from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp

SCOPES = "pkg.torch.onnx.name_scopes"


def module_chain(op: OnnxOp) -> tuple[str, ...]:
    """Returns the modules around a node, outermost first, each by its whole name."""
    metadata = op.properties.get("metadata")
    if isinstance(metadata, DictionaryAttr) and SCOPES in metadata.data:
        return _scopes(text_of(metadata.data[SCOPES]))
    return name_chain(op.node_name)


@lru_cache(maxsize=4096)
def _scopes(text: str) -> tuple[str, ...]:
    # A list as Python prints it; names hold no quotes.
    return tuple(dict.fromkeys(s for s in re.findall(r"['\"]([^'\"]*)['\"]", text)[:-1] if s))


def name_chain(name: str) -> tuple[str, ...]:
    """Returns the modules in a node's name."""
    mark = "/" if "/" in name else "."
    parts = [p for p in name.split(mark) if p][:-1]
    return tuple(accumulate(parts, lambda a, b: f"{a}{mark}{b}"))
