"""Nodes written by a user in ONNX's own text form: `y = Clip (x, low, high)`, `[name] y = com.microsoft.Gelu (x)`.

Attributes stand between the op and its inputs, `<axis = 1, alpha = 0.5>`; a name other than an identifier is written
between double quotes. The grammar is that of `onnx.parser`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx.parser
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from igniter.dialects.onnx.attributes import entries_of, to_python
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import functions
from igniter.errors import IgniterError
from igniter.frontend.importer import node_of_proto


@dataclass(frozen=True)
class WrittenNode:
    """A node as written: the names of its inputs ("" for an omitted one) and of its outputs."""

    proto: onnx.NodeProto

    @property
    def inputs(self) -> list[str]:
        return list(self.proto.input)

    @property
    def outputs(self) -> list[str]:
        return list(self.proto.output)

    def rename(self, names: Mapping[str, str]) -> None:
        """Renames its outputs."""
        for i, name in enumerate(self.proto.output):
            self.proto.output[i] = names.get(name, name)

    def make(self, module: ModuleOp, operands: Sequence[SSAValue | None], omitted: SSAValue | None) -> OnnxOp:
        """Creates the op; `omitted` replaces `None` among operands. The schema gives its result types."""
        values: list[SSAValue] = []
        for value in operands:
            if value is None:
                assert omitted is not None
                values.append(omitted)
            else:
                values.append(value)
        header = entries_of(module.attributes.get("onnx.model"))
        opsets = {k: int(to_python(v)) for k, v in entries_of(header.get("opset_import")).items()}
        called = [(key[0], key[1]) for key in functions(module)]
        try:
            return node_of_proto(self.proto, values, opsets, called)
        except IgniterError as error:
            raise IgniterError(f"the node `{self.text}`: {error.message}") from error

    @property
    def text(self) -> str:
        """Returns a short text for messages."""
        return f"{', '.join(self.outputs)} = {self.proto.op_type}({', '.join(self.inputs)})"


def parse_node(text: str) -> WrittenNode:
    """Parses a node from text; `IgniterError` gives the position of an error."""
    try:
        proto = onnx.parser.parse_node(text)
    except Exception as error:  # onnx's own, a parse error of C++
        raise IgniterError(
            f"cannot read the node `{text}`: {_short(error)}; nodes are written `y = Op <attribute = 1> (x, w)`, names "
            'that are no identifiers between double quotes: `"a/b" = Relu ("c:0")`'
        ) from error
    if not proto.op_type or not any(proto.output):
        raise IgniterError(f"the node `{text}` has no outputs; write `y = Op (x)`")
    return WrittenNode(proto)


def _short(error: Exception) -> str:
    raw = error.args[0] if error.args else str(error)
    lines = (raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)).splitlines()
    return "; ".join(line.strip() for line in lines if line.strip() and not line.startswith("Error context"))
