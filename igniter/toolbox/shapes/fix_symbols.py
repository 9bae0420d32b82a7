"""`fix-symbols`: gives every symbol of the inputs' dims a size, and all dependent shapes become integers.

    onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>)     fix-symbols{sizes="n=8"}
    ->
    onnx.graph @main(%x: tensor<8x4xf32>)

The types of all values change accordingly, including declared types of outputs. `ShapeEngine` refuses sizes outside the
model's requirements. The pass runs after `infer-shapes`, and then runs it again to use the sizes, for example to find
the branch of an If.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.onnx.assumptions import ASSUMPTIONS_ATTRIBUTE
from igniter.dialects.onnx.registry import SIGNATURE_ATTRIBUTE, VALUES_ATTRIBUTE
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget
from igniter.toolbox.shapes.shape_engine import ShapeEngine
from igniter.toolbox.shapes.shapes import model_shapes
from igniter.transforms.onnx.infer_shapes import set_type


@dataclass(frozen=True)
class FixSymbols(ModulePass):
    """Gives the symbols of the inputs' dims sizes."""

    name = "fix-symbols"
    one_rewrite = "all symbols fixed"
    sizes: str = ""
    """A size for each symbol of the inputs, as in `batch=1,seq=128`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sizes = _parsed(self.sizes)
        engine = ShapeEngine(model_shapes(op), [])
        known = {name: Expr.of(size) for name, size in engine.at(sizes).sizes}
        if not sizes or not budget(ctx, self.name).take("", f"{self.sizes} fixed"):
            return
        graph = main_graph(op)
        for name in (SIGNATURE_ATTRIBUTE, ASSUMPTIONS_ATTRIBUTE):
            graph.attributes.pop(name, None)
        for inner in graph.walk():
            inner.attributes.pop(VALUES_ATTRIBUTE, None)
            _forget_declared(inner)
            for value in (*inner.results, *(a for r in inner.regions for b in r.blocks for a in b.args)):
                _fix(value, known)


def _parsed(text: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in text.split(",") if text else ():
        name, equals, size = part.partition("=")
        if not equals or not size.strip().isdigit():
            raise IgniterError(f"sizes '{text}' are not of the form symbol=number,... as in batch=1,seq=128")
        sizes[name.strip()] = int(size)
    return sizes


def _fix(value: SSAValue, known: Mapping[str, Expr]) -> None:
    dims, element = known_dims_of(value.type), tensor_element(value.type)
    if dims is not None and element is not None and any(d.constant is None for d in dims):
        set_type(value, tensor_of(element, [d.substitute(known) for d in dims]))


def _forget_declared(op: Operation) -> None:
    """Drops the declared types of a model's outputs; the IR has them."""
    noted = op.attributes.get("output_info")
    if not isinstance(noted, ArrayAttr):
        return
    kept: list[Attribute] = []
    for info in cast("ArrayAttr[Attribute]", noted).data:
        data: Mapping[str, Attribute] = info.data if isinstance(info, DictionaryAttr) else {}
        kept.append(DictionaryAttr({k: v for k, v in data.items() if k not in ("type", "untyped")}))
    op.attributes["output_info"] = ArrayAttr(kept)
