"""Nodes for the ledger of types, of ops that ONNX's node cases lack: com.microsoft, and a few of ONNX's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

F32 = np.float32


@dataclass(frozen=True)
class Recipe:
    """The inputs of a node, None for an omitted one; its attributes, as values or protos; how many outputs it has."""

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    outputs: int = 1


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(F32)


def integers(*shape: int, below: int = 4) -> Any:
    return (np.arange(int(np.prod(shape))) % below).astype(np.int64).reshape(shape)


def one(*inputs: Any, outputs: int = 1, **attributes: Any) -> list[Recipe]:
    return [Recipe(inputs, attributes, outputs)]


X = floats(2, 3, 8)
BIAS = floats(8, seed=1)
IMAGE = floats(1, 4, 5, 5)
MS = "com.microsoft."

RECIPES: dict[str, list[Recipe]] = {
    "GlobalLpPool": one(IMAGE, p=2),
    "MaxRoiPool": one(IMAGE, np.array([[0, 0, 0, 3, 3]], F32), pooled_shape=[2, 2]),
    "RandomNormalLike": one(floats(2, 3)),
    "RandomUniformLike": one(floats(2, 3)),
    "RandomNormal": one(shape=[2, 3]),
    "RandomUniform": one(shape=[2, 3]),
    "Bernoulli": one(np.abs(floats(2, 3)) / 8),
    "Multinomial": one(floats(2, 5), sample_size=3),
    "Constant": one(),
    "Cast": one(floats(2, 3), to=1),
    "CastLike": one(floats(2, 3), floats(1)),
    "Clip": one(X, np.array(-0.5, F32), np.array(0.5, F32)) + one(X, min=-0.5, max=0.5),
    "CumSum": one(floats(2, 3), np.array(1, np.int64)),
    "DepthToSpace": one(floats(1, 8, 2, 3), blocksize=2),
    "Erf": one(X),
    "Mish": one(X),
    "MeanVarianceNormalization": one(IMAGE),
    "BlackmanWindow": one(np.array(5, np.int64)),
    "HammingWindow": one(np.array(5, np.int64)),
    "HannWindow": one(np.array(5, np.int64)),
    "MelWeightMatrix": one(
        np.array(4, np.int64),
        np.array(16, np.int64),
        np.array(8000, np.int64),
        np.array(0.0, F32),
        np.array(4000.0, F32),
    ),
    "ConvInteger": one(integers(1, 2, 4, 4).astype(np.uint8), integers(3, 2, 3, 3).astype(np.uint8)),
    "QLinearConv": one(
        integers(1, 2, 4, 4).astype(np.uint8),
        np.array(0.1, F32),
        np.array(1, np.uint8),
        integers(3, 2, 3, 3).astype(np.uint8),
        np.array(0.2, F32),
        np.array(2, np.uint8),
        np.array(0.3, F32),
        np.array(3, np.uint8),
    ),
    "OneHot": one(integers(2, 3), np.array(4, np.int64), np.array([0, 1], F32)),
    "RoiAlign": one(
        IMAGE, np.array([[0, 0, 3, 3]], F32), np.zeros(1, np.int64), output_height=2, output_width=2, sampling_ratio=2
    ),
    "Resize": one(IMAGE, np.array([1, 1, 2, 2], F32), mode="nearest")
    + one(IMAGE, np.zeros(0, F32), np.array([1, 1, 2, 2], F32), mode="nearest"),
    "NonMaxSuppression": one(
        np.sort(floats(1, 4, 4), axis=-1), floats(1, 2, 4), np.array(3, np.int64), np.array(0.5, F32)
    ),
    "StringConcat": one(np.array(["a", "b"], object), np.array(["c", "d"], object)),
    "ai.onnx.ml.FeatureVectorizer": one(floats(2, 3), floats(2, 2), inputdimensions=[3, 2]),
    "ai.onnx.ml.Imputer": one(floats(2, 3), imputed_value_floats=[1.0], replaced_value_float=0.0),
    "ai.onnx.ml.Normalizer": one(floats(2, 3), norm="L2"),
    "ai.onnx.ml.Scaler": one(floats(2, 3), offset=[0.5], scale=[2.0]),
    "ai.onnx.ml.OneHotEncoder": one(integers(2, 3), cats_int64s=[0, 1, 2]),
    "ai.onnx.ml.LinearRegressor": one(floats(2, 3), coefficients=[1.0, 2.0, 3.0], intercepts=[0.5], targets=1),
    MS + "BiasAdd": one(X, BIAS, floats(2, 3, 8, seed=2)),
    MS + "BiasGelu": one(X, BIAS),
    MS + "BiasSplitGelu": one(floats(2, 3, 16), floats(16, seed=1)),
    MS + "BiasSoftmax": one(floats(2, 3, 4), floats(2, 3, 4, seed=1), axis=1, is_inner_broadcast=0),
    MS + "FastGelu": one(X, BIAS),
    MS + "GatedAdd": one(floats(2, 3), floats(2, 3, seed=1), floats(2, 1, seed=2)),
    MS + "Gelu": one(X),
    MS + "QuickGelu": one(X, alpha=1.7),
    MS + "ScaledSiLU": one(X, alpha=1.7),
    MS + "FusedGemm": one(floats(4, 6), floats(6, 5, seed=1), floats(5, seed=2), activation="Relu"),
    MS + "FusedMatMul": one(floats(4, 6), floats(6, 5, seed=1), alpha=0.5),
    MS + "TransposeMatMul": one(floats(4, 6), floats(6, 5, seed=1)),
    MS + "FusedConv": one(IMAGE, floats(3, 4, 3, 3, seed=1), floats(3, seed=2), activation="Relu"),
    MS + "Attention": one(X, floats(8, 24, seed=1), floats(24, seed=2), num_heads=2),
    MS + "MultiHeadAttention": one(X, floats(2, 3, 8, seed=1), floats(2, 3, 8, seed=2), num_heads=2),
    MS + "GatherND": one(floats(3, 4), integers(2, 2, below=3)),
    MS + "Trilu": one(floats(3, 4)),
    MS + "CDist": one(floats(3, 4), floats(5, 4, seed=1), metric="euclidean"),
    MS + "Inverse": one(np.eye(3, dtype=F32) * 2 + floats(3, 3) / 8),
    MS + "ExpandDims": one(floats(2, 3), np.array(1, np.int32)),
    MS + "NhwcMaxPool": one((floats(1, 5, 5, 4) * 10).astype(np.int8), kernel_shape=[2, 2]),
    MS + "QuantizeLinear": one(floats(3, 4), np.array(0.1, F32), np.array(3, np.uint8)),
    MS + "DequantizeLinear": one(integers(3, 4).astype(np.uint8), np.array(0.1, F32), np.array(3, np.uint8)),
    MS + "UnfoldTensor": one(floats(2, 6), size=3, step=1, dim=1),
    MS + "CropAndResize": one(
        IMAGE, np.array([[0, 0, 0.8, 0.8]], F32), np.zeros(1, np.int32), np.array([3, 3], np.int32), mode="bilinear"
    ),
    MS + "RotaryEmbedding": one(floats(1, 3, 8), integers(1, 3), floats(4, 4, seed=1), floats(4, 4, seed=2)),
    MS + "GridSample": one(IMAGE, np.tanh(floats(1, 3, 3, 2, seed=1)), mode="bilinear"),
    MS + "SkipLayerNormalization": one(X, floats(2, 3, 8, seed=1), BIAS, floats(8, seed=3), floats(8, seed=4)),
    MS + "SkipSimplifiedLayerNormalization": one(X, floats(2, 3, 8, seed=1), BIAS),
    MS + "GroupNorm": one(floats(1, 5, 5, 4), np.ones(4, F32), np.zeros(4, F32), groups=2, activation=0),
    MS + "SkipGroupNorm": one(
        floats(1, 5, 5, 4), np.ones(4, F32), np.zeros(4, F32), floats(1, 5, 5, 4, seed=1), groups=2, activation=0
    ),
    MS + "Pad": one(floats(2, 3), np.array([0, 1, 0, 1], np.int64), np.array(0.5, F32)),
    MS + "EmbedLayerNormalization": one(
        integers(1, 3).astype(np.int32),
        integers(1, 3, below=2).astype(np.int32),
        floats(4, 8),
        floats(4, 8, seed=1),
        floats(2, 8, seed=2),
        BIAS,
        floats(8, seed=3),
        outputs=2,
    ),
    MS + "MatMulIntegerToFloat": one(
        integers(4, 6).astype(np.uint8), integers(6, 5).astype(np.uint8), np.array(0.1, F32), np.array(0.2, F32)
    ),
    MS + "DynamicQuantizeMatMul": one(floats(4, 6), integers(6, 5).astype(np.uint8), np.array(0.2, F32)),
    MS + "Sampling": [],
    MS + "Rfft": one(floats(2, 8), signal_ndim=1, normalized=0, onesided=1),
    MS + "SoftmaxGrad": [],
}
