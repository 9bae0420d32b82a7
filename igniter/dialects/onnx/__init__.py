"""The `onnx` dialect: one op for one ONNX node, in every opset version.

`base` has `OnnxOp` and the builders, `structure` graphs and functions, `types` and `attributes` the types and
attributes of nodes, `verify` the checks against the schemas.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Dialect, Operation

from igniter.dialects.onnx.attributes import ATTRIBUTES
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp
from igniter.dialects.onnx.types import TYPES


class OnnxDialect(Dialect):
    """The dialect; it creates its op classes on first use, because they need the schemas."""

    @property
    def operations(self) -> Iterator[type[Operation]]:
        from igniter.dialects.onnx.base import op_classes

        return iter([GraphOp, FunctionOp, ReturnOp, *op_classes()])


Onnx = OnnxDialect("onnx", [], [*TYPES, *ATTRIBUTES])
