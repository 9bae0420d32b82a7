"""`flush-subnormals`: writes the subnormal elements of weights as 0; `igniter compile --subnormals=keep` leaves them.

    %w = onnx.Constant() {value = #onnx.tensor<2x2xf32, [1.0, 1e-40, -1e-39, 2.0]>}
    %y = onnx.MatMul(%x, %w)
becomes
    %w = onnx.Constant() {value = #onnx.tensor<2x2xf32, [1.0, 0.0, -0.0, 2.0]>}
    %y = onnx.MatMul(%x, %w)

Dead channels of trained networks have such weights, and on many CPUs an instruction with one takes over a hundred
cycles, in kernels as in ONNX Runtime. A zero has the sign of the number. A product with x changes by less than
|x| 2^-126 (f32), a sum by the sum of such changes; only where x is infinite, it becomes NaN instead of an infinity. A
weight stays if it is neither a factor nor a term, or if what reads the result could amplify a change
(`igniter.analysis.onnx.subnormal_weights`; docs/explanation/numerics.md gives the bound). The pass is the first one
after the folding of constants, because folding makes such weights too. With `keep` it counts and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.onnx.subnormal_weights import Readers, bits_of, is_subnormal, subnormal_count
from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import TensorAttr, text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.weights import Weight
from igniter.remarks import remark
from igniter.rewrite_budget import budget


@dataclass(frozen=True)
class FlushSubnormals(ModulePass):
    """Writes subnormal weights as 0."""

    name = "flush-subnormals"
    one_rewrite = "a weight"

    keep: bool = False
    """Counts them, and changes nothing."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        readers, rewrites, flushed, kept = Readers(), budget(ctx, self.name), 0, 0
        for node in [n for n in op.walk() if isinstance(n, OnnxOp)]:
            weight = constant_weight(node.results[0]) if node.op_type == "Constant" else None
            count = 0 if weight is None else subnormal_count(weight)
            if weight is None or not count:
                continue
            name = text_of(node.properties.get("initializer_name")) or "".join(node.output_names[:1])
            of = f"{count:,} of {weight.size:,} elements are subnormal"
            refused = "they were to be kept" if self.keep else readers.refusal(node)
            if refused is not None:
                kept += count
                remark(ctx, self.name, name, "missed", f"{of}; {refused}", count=count)
            elif rewrites.take(name, of):
                flushed += count
                node.attributes["value"] = building.data(
                    TensorAttr, Weight(weight.shape, weight.element, derivation=Flushed(weight))
                )
                remark(ctx, self.name, name, "applied", f"{of}, and are 0 now", count=count)
        remark(ctx, self.name, "", "note", summary(flushed, kept), flushed=flushed, kept=kept)


@dataclass(frozen=True)
class Flushed:
    """The values of a weight with zeros of the same sign in place of its subnormal numbers."""

    source: Weight

    def compute(self) -> np.ndarray[Any, Any]:
        bits = bits_of(self.source)
        assert bits is not None
        made = bits.copy()
        made[is_subnormal(bits, self.source)] &= bits.dtype.type(1 << (8 * bits.itemsize - 1))
        return made.view(self.source.array().dtype).reshape(self.source.shape)


def summary(flushed: int, kept: int) -> str:
    """Describes the subnormal weights of a model."""
    parts = [f"{flushed:,} subnormal weights, which slow many CPUs down, are written as 0"] * (flushed > 0)
    parts += [f"{kept:,} subnormal weights stay, and slow many CPUs down"] * (kept > 0)
    return "; ".join(parts) or "no weight is subnormal"
