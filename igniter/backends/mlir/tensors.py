"""The tensors of one function: their names, the sizes of symbols, and new tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.text import Writer, element_text, number_text, tensor_text
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr


class Tensors:
    """The values of a function: tensors by the value of the kernel, sizes by the name of the symbol."""

    def __init__(self, writer: Writer):
        self.writer = writer
        self.names: dict[SSAValue, str] = {}
        self.symbols: dict[str, str] = {}

    def sizes(self, dims: Sequence[Expr]) -> str:
        """Returns the values of the dims that are no constants."""
        return Expressions(self.writer, self.symbols).values([d for d in dims if d.constant is None])

    def empty(self, kind: Attribute) -> str:
        """Writes a tensor without values."""
        return self.writer.let("e", f"tensor.empty({self.sizes(dims_of(kind))}) : {tensor_text(kind)}")

    def filled(self, tensor: str, kind: Attribute, number: Attribute) -> str:
        """Writes a tensor with one value everywhere."""
        value = self.writer.let("init", f"arith.constant {number_text(number)}")
        into = f"outs({tensor} : {tensor_text(kind)}) -> {tensor_text(kind)}"
        return self.writer.let("f", f"linalg.fill ins({value} : {element_text(kind)}) {into}")

    def extent(self, extent: Expr) -> tuple[str, str]:
        """Writes a tensor with an extent as its only dim, and no values; returns it and its type."""
        kind = f"tensor<{'?' if extent.constant is None else extent.constant}xi8>"
        return self.writer.let("extent", f"tensor.empty({self.sizes([extent])}) : {kind}"), kind

    def reshaped(self, tensor: str, kind: Attribute, dims: Sequence[Expr], into: Attribute) -> str:
        """Writes the same elements with other dims."""
        shape = f"tensor<{len(dims)}xindex>"
        sizes = Expressions(self.writer, self.symbols).values(dims)
        made = self.writer.let("shape", f"tensor.from_elements {sizes} : {shape}")
        types = f"({tensor_text(kind)}, {shape}) -> {tensor_text(into)}"
        return self.writer.let("r", f"tensor.reshape {tensor}({made}) : {types}")
