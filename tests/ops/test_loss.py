"""Losses against ONNX Runtime: ranks, reductions, weights, ignored classes, types."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import check as check_exactly

F32 = np.float32
check = partial(check_exactly, tolerance=1e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 2, shape).astype(dtype)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(
    "op, outputs", [("NegativeLogLikelihoodLoss", 1), ("SoftmaxCrossEntropyLoss", 1), ("SoftmaxCrossEntropyLoss", 2)]
)
def test_loss(op: str, outputs: int, reduction: str) -> None:
    for shape in ((4, 5), (2, 5, 3), (1, 3, 2, 1, 3)):
        x = floats(*shape)
        classes = np.random.default_rng(1).integers(0, shape[1], (shape[0], *shape[2:]))
        weight = np.abs(floats(shape[1], seed=2))
        for ignored in (None, 0, -7):
            attrs: dict[str, Any] = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
            given = classes.copy()
            if ignored is not None:
                given.reshape(-1)[:1] = ignored
            # A class that is ignored, and no other, for the first place; what is left counts.
            check(op, [x, given], attrs, outputs=outputs, dynamic=(False,))
            check(op, [x, given.astype(np.int32), weight], attrs, outputs=outputs, dynamic=(ignored == 0,))


def test_other_types() -> None:
    classes = np.array([1, 0, 2, 1])
    check("SoftmaxCrossEntropyLoss", [floats(4, 3, dtype=np.float64), classes], tolerance=1e-12, outputs=2)
    check("NegativeLogLikelihoodLoss", [floats(0, 3), classes[:0]], {"reduction": "sum"})
