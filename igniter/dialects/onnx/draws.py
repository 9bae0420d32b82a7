"""Random nodes computed by kernels: the nodes marked by `compile-draws` (docs/explanation/numerics.md).

A model opts in, because ONNX Runtime's own random stream cannot be reproduced: `igniter.draws` on a node selects the
generator of `igniter.dialects.onnx.ops.random`. The drawn values stay a value of the graph: the node is a region of its
own, outside all programs, so verification can feed the values drawn by the original.
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
"""The ops of ONNX that may draw random numbers."""


def draws(op: Operation) -> bool:
    """True if a kernel draws the random numbers of a node."""
    return DRAWS_ATTRIBUTE in op.attributes


def unmarked_reason(op: OnnxOp) -> str | None:
    """Returns the reason why no kernel draws the random numbers of a node; `None` if one does."""
    if draws(op):
        return None
    if op.attributes.get("seed") is None:
        return "it draws different values in each run"
    return "it draws random values; compile-draws moves it into a kernel, with Igniter's own stream of random numbers"


__all__ = ["DRAWS_ATTRIBUTE", "RANDOM_OPS", "draws", "unmarked_reason"]
