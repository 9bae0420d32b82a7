"""The ops of ONNX's domain for classical machine learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from tests.fuzz.wild.nodes import rule
from tests.fuzz.wild.pool import Pool

ML = "ai.onnx.ml."
NUMBERS = (np.float32, np.float64, np.int64, np.int32)
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


@rule(3)
def features(p: Pool) -> bool:
    x = p.pick(NUMBERS, (1, 2))
    if x is None or not p.values[x].ndim:
        return False
    width = p.shape(x)[-1]
    op = p.rng.choice(
        [
            "Scaler",
            "Normalizer",
            "Binarizer",
            "Imputer",
            "OneHotEncoder",
            "ArrayFeatureExtractor",
            "LabelEncoder",
            "FeatureVectorizer",
        ]
    )
    attrs: dict[str, Any] = {}
    inputs = [x]
    if op == "Scaler":
        count = p.rng.choice([1, width])
        attrs = {"offset": [0.5] * count, "scale": [float(v) for v in p.data.uniform(0.5, 2, count)]}
    elif op == "Normalizer":
        attrs = {"norm": p.rng.choice(["MAX", "L1", "L2"])}
    elif op == "Binarizer":
        attrs = {"threshold": p.rng.choice([0.0, 0.5])}
    elif op == "Imputer":
        whole = p.values[x].dtype.kind == "i"
        attrs = (
            {"imputed_value_int64s": [7], "replaced_value_int64": 1}
            if whole
            else {"imputed_value_floats": [7.0], "replaced_value_float": p.rng.choice([0.0, float("nan")])}
        )
    elif op == "OneHotEncoder":
        attrs = {"cats_int64s": [0, 1, 2, 5], "zeros": 1}
    elif op == "ArrayFeatureExtractor":
        if not width:
            return False
        inputs = [x, p.weight(p.data.integers(0, width, p.rng.choice([1, 3])), np.int64)]
    elif op == "LabelEncoder":
        if p.values[x].dtype == np.float32:
            attrs = {"keys_floats": [0.0, 1.0], "values_floats": [5.0, 6.0], "default_float": -1.0}
        else:
            attrs = {"keys_int64s": [0, 1, 2], "values_int64s": [5, 6, 7], "default_int64": -1}
    else:
        attrs = {"inputdimensions": [width, width]}
        inputs = [x, x]
    return p.try_node(ML + op, inputs, **attrs)


@rule(2)
def linear_models(p: Pool) -> bool:
    x = p.pick(NUMBERS, (2,))
    if x is None or not p.shape(x)[1]:
        return False
    width, targets = p.shape(x)[1], p.rng.choice([1, 3])
    weights = [float(v) for v in p.data.standard_normal(width * targets)]
    offsets = [float(v) for v in p.data.standard_normal(targets)]
    post = p.rng.choice(TRANSFORMS)
    kind = p.rng.randrange(3)
    if kind == 0:
        attrs: dict[str, Any] = {"coefficients": weights, "intercepts": offsets, "targets": targets}
        return p.try_node(ML + "LinearRegressor", [x], post_transform=post, **attrs)
    if kind == 1:
        attrs = {"classlabels_ints": list(range(max(targets, 2))), "coefficients": weights, "intercepts": offsets}
        return p.try_node(ML + "LinearClassifier", [x], 2, post_transform=post, **attrs)
    vectors = 3
    attrs = {
        "kernel_type": p.rng.choice(["LINEAR", "RBF", "POLY", "SIGMOID"]),
        "kernel_params": [0.1, 0.2, 2.0],
        "n_supports": vectors,
        "support_vectors": [float(v) for v in p.data.standard_normal(width * vectors)],
        "coefficients": [float(v) for v in p.data.standard_normal(vectors)],
        "rho": [0.3],
    }
    return p.try_node(ML + "SVMRegressor", [x], **attrs)


@rule(2)
def trees(p: Pool) -> bool:
    """Trees of two levels, each with thresholds of its own."""
    x = p.pick(NUMBERS, (2,))
    if x is None or not p.shape(x)[1]:
        return False
    width, count, targets = p.shape(x)[1], p.rng.choice([1, 2, 5]), p.rng.choice([1, 3])
    mode = p.rng.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
    # Nodes 0, 1 and 2 branch, 3 to 6 are leaves.
    shape = [(0, 1, 2), (1, 3, 4), (2, 5, 6)]
    inner = [(t, n, a, b) for t in range(count) for n, a, b in shape]
    leaves = [(t, n) for t in range(count) for n in range(3, 7)]
    nodes = [(t, n, mode, a, b) for t, n, a, b in inner] + [(t, n, "LEAF", 0, 0) for t, n in leaves]
    values = [
        float(v) if m != "LEAF" else 0.0
        for (_, _, m, _, _), v in zip(nodes, p.data.standard_normal(len(nodes)), strict=True)
    ]
    attrs: dict[str, Any] = {
        "nodes_treeids": [t for t, *_ in nodes],
        "nodes_nodeids": [n for _, n, *_ in nodes],
        "nodes_modes": [m for _, _, m, _, _ in nodes],
        "nodes_truenodeids": [a for *_, a, _ in nodes],
        "nodes_falsenodeids": [b for *_, b in nodes],
        "nodes_featureids": [int(v) for v in p.data.integers(0, width, len(nodes))],
        "nodes_values": values,
        "nodes_missing_value_tracks_true": [int(v) for v in p.data.integers(0, 2, len(nodes))],
        "post_transform": p.rng.choice(TRANSFORMS),
    }
    weights = [float(v) for v in p.data.standard_normal(len(leaves))]
    ids = [int(v) for v in p.data.integers(0, targets, len(leaves))]
    if p.chance(0.5):
        attrs.update(
            target_treeids=[t for t, _ in leaves],
            target_nodeids=[n for _, n in leaves],
            target_ids=ids,
            target_weights=weights,
            n_targets=targets,
            aggregate_function=p.rng.choice(["SUM", "AVERAGE", "MIN", "MAX"]),
        )
        return p.try_node(ML + "TreeEnsembleRegressor", [x], **attrs)
    attrs.update(
        class_treeids=[t for t, _ in leaves],
        class_nodeids=[n for _, n in leaves],
        class_ids=ids,
        class_weights=weights,
        classlabels_int64s=list(range(targets + (targets == 1))),
    )
    return p.try_node(ML + "TreeEnsembleClassifier", [x], 2, **attrs)


@rule(1)
def new_trees(p: Pool) -> bool:
    x = p.pick((np.float32, np.float64), (2,))
    if x is None or not p.shape(x)[1]:
        return False
    dtype, width = p.values[x].dtype, p.shape(x)[1]

    def tensor(values: Any, kind: Any) -> Any:
        return numpy_helper.from_array(np.asarray(values, kind), "t")

    attrs: dict[str, Any] = {
        "n_targets": 2,
        "aggregate_function": p.rng.choice([0, 1, 2, 3]),
        "post_transform": 0,
        "tree_roots": [0],
        "nodes_modes": tensor([p.rng.randrange(4) for _ in range(3)], np.uint8),
        "nodes_featureids": [int(v) for v in p.data.integers(0, width, 3)],
        "nodes_splits": tensor(p.data.standard_normal(3), dtype),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": tensor(p.data.standard_normal(4), dtype),
    }
    return p.try_node(ML + "TreeEnsemble", [x], **attrs)
