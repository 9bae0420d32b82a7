"""Random nodes that a kernel computes: those that `compile-draws` has marked (docs/numerics.md, "Random numbers").

A model asks for them, because ONNX Runtime's own stream cannot be had: `igniter.draws` on a node says that the
generator of `igniter.dialects.onnx.ops.random` takes its place. What a node draws stays a value of the graph: it is a
region by itself and in no program, so that verification can feed what the original drew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

DRAWS_ATTRIBUTE = "igniter.draws"
RANDOM_OPS = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)
"""The ops of ONNX that may draw."""


def draws(op: Operation) -> bool:
    """Whether a kernel draws what a node does."""
    return DRAWS_ATTRIBUTE in op.attributes


def unmarked_reason(op: OnnxOp) -> str | None:
    """Why no kernel draws what a node does; `None` where one does."""
    if draws(op):
        return None
    if op.attributes.get("seed") is None:
        return "it draws other values in every run"
    return "it draws at random; compile-draws has kernels draw, in a stream of Igniter's own"


__all__ = ["DRAWS_ATTRIBUTE", "RANDOM_OPS", "draws", "unmarked_reason"]
