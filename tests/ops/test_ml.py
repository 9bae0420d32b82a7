"""Ops of ai.onnx.ml, compiled, against ONNX Runtime: models of one node, with rows from none to some."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.backend import EVERYTHING

F32 = np.float32
NAN = float("nan")


def compare(
    op: str, inputs: list[Any], outputs: list[int], tolerance: float = 1e-5, opset: int = 3, **attrs: Any
) -> None:
    """Both on all rows, on one and on none; nothing may be left to ORT."""
    names = [f"x{k}" for k in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), ["n", *a.shape[1:]])
        for n, a in zip(names, inputs, strict=True)
    ]
    results = [f"y{k}" for k in range(len(outputs))]
    node = helper.make_node(op, names, results, domain="ai.onnx.ml", name="node", **attrs)
    declared = [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, outputs, strict=True)]
    graph = helper.make_graph([node], "g", infos, declared)
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options)
    artifact = igniter.load(model).compile(options=igniter.CompileOptions(fusion_passes=EVERYTHING), verify=False)
    assert artifact.report["nodes_after"] == artifact.report["regions"] == 1, artifact.report["left_to_onnxruntime"]
    session = artifact.session(intra_op_num_threads=1)
    # On no rows at all, ORT's FeatureVectorizer ends the process.
    for rows in (len(inputs[0]), 1, *(() if op == "FeatureVectorizer" else (0,))):
        feeds = {n: a[:rows] for n, a in zip(names, inputs, strict=True)}
        try:
            wanted = reference.run(None, feeds)
        except onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException:
            continue  # Some of ORT's kernels take no empty inputs.
        for a, b in zip(session.run(None, feeds), wanted, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def rows(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(F32)


def forest(trees: int, classes: list[int], kind: str, modes: tuple[str, ...], seed: int = 0, low: float = 0.0) -> Any:
    """Random trees of three levels over four features, as attributes."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, list[Any]] = {
        f"nodes_{n}": []
        for n in (
            *("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"),
            "missing_value_tracks_true",
        )
    }
    weights: dict[str, list[Any]] = {f"{kind}_{n}": [] for n in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for number in range(7):
            leaf = number > 2
            row = (tree, number, int(rng.integers(4)), float(np.round(rng.normal(), 1)))
            mode = "LEAF" if leaf else modes[int(rng.integers(len(modes)))]
            down = (0, 0) if leaf else (2 * number + 1, 2 * number + 2)
            for name, value in zip(nodes, (*row, mode, *down, int(rng.integers(2))), strict=True):
                nodes[name].append(value)
            for c in classes if leaf else ():
                for name, value in zip(weights, (tree, number, c, float(rng.uniform(low, 1))), strict=True):
                    weights[name].append(value)
    return {**nodes, **weights}


ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def features() -> Any:
    x = np.round(rows(23, 4), 1)
    x[3, 1] = x[5, 2] = np.nan
    return x


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate: str) -> None:
    one = forest(5, [0], "target", ALL_MODES, low=-1)
    compare("TreeEnsembleRegressor", [features()], [1], n_targets=1, aggregate_function=aggregate, **one)
    three = forest(5, [0, 1, 2], "target", ("BRANCH_LEQ",), low=-1)
    more = {"aggregate_function": aggregate, "base_values": [0.5, -1.0, 2.0], "n_targets": 3}
    compare("TreeEnsembleRegressor", [features()], [1], **three, **more)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tree_classifier(transform: str) -> None:
    def run(classes: list[int], labels: list[int], **more: Any) -> None:
        low = more.pop("low", -1)
        trees = forest(3, classes, "class", ("BRANCH_LEQ", "BRANCH_LT"), low=low)
        given = {"classlabels_int64s": labels, "post_transform": transform, **more}
        compare("TreeEnsembleClassifier", [features()], [7, 1], **trees, **given)

    run([0, 1, 2], [10, 20, 30])
    run([0, 1, 2], [10, 20, 30], base_values=[0.1, 0.2, 0.4])
    run([0, 1], [0, 1])
    run([0], [0, 1])
    run([0], [0, 1], low=0)
    run([0], [0, 1], base_values=[-0.5])


def test_probit() -> None:
    trees = forest(1, [0, 1], "target", ("BRANCH_LEQ",), low=0.1)
    compare("TreeEnsembleRegressor", [features()], [1], 1e-4, n_targets=2, post_transform="PROBIT", **trees)


def test_tree_ensemble() -> None:
    members = numpy_helper.from_array(np.array([1.2, 3.7, 8, 9, NAN, 12, 7, NAN], F32), "m")
    attrs = {
        "nodes_splits": numpy_helper.from_array(np.array([11, 232344.0, NAN], F32), "s"),
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": numpy_helper.from_array(np.array([0, 6, 6], np.uint8), "n"),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falseleafs": [1, 0, 1],
        "leaf_targetids": [0, 1, 2, 3],
        "leaf_weights": numpy_helper.from_array(np.array([1, 10, 1000, 100], F32), "w"),
        "membership_values": members,
        "tree_roots": [0],
        "n_targets": 4,
    }
    x = np.array([1.2, 3.4, -0.12, np.nan, 12, 7], F32).reshape(-1, 1)
    compare("TreeEnsemble", [x], [1], opset=5, aggregate_function=1, post_transform=0, **attrs)


@pytest.mark.slow
def test_linear() -> None:
    x = rows(9, 3)
    coefficients = [float(v) for v in rows(9, seed=1)]
    for transform in TRANSFORMS:
        more = {"post_transform": transform, "coefficients": coefficients, "intercepts": [0.1, 0.2, 0.3]}
        compare("LinearRegressor", [x], [1], targets=3, **more)
        compare("LinearClassifier", [x], [7, 1], classlabels_ints=[3, 5, 9], **more)
    one = {"coefficients": coefficients[:3], "intercepts": [0.1]}
    compare("LinearRegressor", [x], [1], targets=1, **one)
    for transform in ("NONE", "LOGISTIC"):
        compare("LinearClassifier", [x], [7, 1], classlabels_ints=[3, 5], post_transform=transform, **one)


@pytest.mark.parametrize("degree", [2.0, 3.0, 4.0])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel: str, degree: float) -> None:
    vectors = [float(v) for v in rows(12, seed=2)]
    for one_class in (0, 1):
        compare(
            "SVMRegressor",
            [rows(9, 3)],
            [1],
            kernel_type=kernel,
            kernel_params=[0.3, 0.5, degree],
            n_supports=4,
            support_vectors=vectors,
            coefficients=[0.5, -1.0, 2.0, 0.25],
            rho=[0.1],
            one_class=one_class,
        )


def svm_classes(classes: int, per_class: list[int], kernel: str, degree: float = 3.0, **more: Any) -> dict[str, Any]:
    """The attributes of an SVMClassifier over three features."""
    vectors, pairs = sum(per_class), classes * (classes - 1) // 2
    return {
        "kernel_type": kernel,
        "kernel_params": [0.3, 0.5, degree],
        "classlabels_ints": [7, -2, 5, 11, 3][:classes],
        "vectors_per_class": per_class,
        "support_vectors": [float(v) for v in rows(3 * vectors, seed=1)],
        "coefficients": [float(v) for v in rows((classes - 1) * vectors, seed=2)],
        "rho": [float(v) for v in rows(pairs, seed=3) / 4],
        **more,
    }


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("per_class", [[3, 4], [1, 3, 2, 2, 5]])
def test_svm_classifier(per_class: list[int], transform: str, probabilities: bool) -> None:
    classes = len(per_class)
    pairs = classes * (classes - 1) // 2
    more: dict[str, Any] = {"post_transform": transform}
    if probabilities:
        more |= {f"prob_{k}": [float(v) for v in rows(pairs, seed=n) - 1.5] for n, k in enumerate("ab", start=4)}
    compare("SVMClassifier", [rows(23, 3)], [7, 1], **svm_classes(classes, per_class, "RBF", **more))


@pytest.mark.parametrize(("kernel", "degree"), [("LINEAR", 0.0), ("POLY", 2.0), ("POLY", 3.0), ("SIGMOID", 0.0)])
def test_kernels_of_an_svm_classifier(kernel: str, degree: float) -> None:
    for x in (rows(23, 3), rows(9, 3).astype(np.float64), np.arange(12).reshape(4, 3) % 5):
        compare("SVMClassifier", [x], [7, 1], tolerance=2e-5, **svm_classes(3, [2, 1, 4], kernel, degree))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_linear_svm_classifier(classes: int, positive: bool) -> None:
    coefficients = rows(3 * classes, seed=2)
    attributes: dict[str, Any] = {
        "classlabels_ints": [7, -2, 5, 11][:classes],
        "coefficients": [float(v) for v in (abs(coefficients) if positive else coefficients)],
        "rho": [0.25],
    }
    attributes["kernel_params"] = [0.3, 0.5, 3.0]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        compare("SVMClassifier", [rows(40, 3)], [7, 1], post_transform=transform, **attributes)


def test_svms_that_onnx_runtime_has_faster_are_left_to_it() -> None:
    def left(kernel: str, degree: float, supports: int) -> bool:
        attributes = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, degree], "n_supports": supports, "rho": [0.1]}
        vectors = {"coefficients": [0.5] * supports, "support_vectors": [0.1] * (3 * supports)}
        node = helper.make_node("SVMRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes, **vectors)
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
        result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])]
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
        graph = helper.make_graph([node], "svm", given, result)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return igniter.load(model).compile(verify=False).report["regions"] == 0

    assert not left("POLY", 3.0, 4) and left("POLY", 4.0, 4) and left("SIGMOID", 0.0, 4)
    assert left("LINEAR", 0.0, 400) and not left("RBF", 0.0, 400)


@pytest.mark.slow
def test_features() -> None:
    x = rows(7, 3)
    x[2] = 0
    compare("Scaler", [x], [1], offset=[0.1, 0.2, 0.3], scale=[2.0, 3.0, 4.0])
    compare("Scaler", [x.astype(np.int64)], [1], offset=[1.0], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        compare("Normalizer", [x], [1], norm=norm)
    compare("Binarizer", [x], [1], threshold=0.25)
    x[1, 1] = np.nan
    compare("Imputer", [x], [1], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=NAN)
    whole = np.arange(21).reshape(7, 3) % 4
    compare("Imputer", [whole], [7], imputed_value_int64s=[9], replaced_value_int64=2)
    compare("FeatureVectorizer", [rows(7, 3), rows(7, 2)], [1], inputdimensions=[3, 2])
    compare("OneHotEncoder", [whole[:, 0]], [1], cats_int64s=[0, 2, 3], zeros=1)
    compare("OneHotEncoder", [whole], [1], cats_int64s=[0, 1, 2, 3], zeros=0)


def test_what_has_no_place_is_an_error() -> None:
    def session(op: str, given: list[Any], **attrs: Any) -> Any:
        names = [f"x{k}" for k in range(len(given))]
        types = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in given]
        infos = [helper.make_tensor_value_info(n, t, a.shape) for n, t, a in zip(names, types, given, strict=True)]
        node = helper.make_node(op, names, ["y"], domain="ai.onnx.ml", name="the_node", **attrs)
        graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        artifact = igniter.load(model).compile(options=igniter.CompileOptions(fusion_passes=EVERYTHING), verify=False)
        assert artifact.report["nodes_after"] == artifact.report["regions"] == 1
        return artifact.session(intra_op_num_threads=1, log_severity_level=4)

    encoder = session("OneHotEncoder", [np.zeros(3, np.int64)], cats_int64s=[0, 1, 3], zeros=0)
    np.testing.assert_array_equal(encoder.run(None, {"x0": np.array([3, 0, 1])})[0], np.eye(3, dtype=F32)[[2, 0, 1]])
    for wrong in (2, -7):
        with pytest.raises(Exception, match=r"the_node.*it has no category for the value"):
            encoder.run(None, {"x0": np.array([3, wrong, 1])})
    picker = session("ArrayFeatureExtractor", [rows(2, 3), np.zeros(2, np.int64)])
    np.testing.assert_array_equal(
        picker.run(None, {"x0": rows(2, 3), "x1": np.array([2, 0])})[0], rows(2, 3)[:, [2, 0]]
    )
    for wrong in (3, -1):
        with pytest.raises(Exception, match=r"the_node.*its indices are out of range"):
            picker.run(None, {"x0": rows(2, 3), "x1": np.array([0, wrong])})


def test_label_encoder() -> None:
    x = np.array([5, -3, 7, 9, 11, 2, 5])
    keys = {"keys_int64s": [5, 7, -3, 11]}
    compare("LabelEncoder", [x], [1], values_floats=[0.5, 0.7, 0.3, 1.1], default_float=-1.0, **keys)
    floats = np.array([0.5, np.nan, 7, 2], F32)
    given: dict[str, Any] = {"keys_floats": [0.5, NAN, 2.0], "values_int64s": [1, 2, 3], "default_int64": 42}
    for opset in (3, 4):  # From 4 on, NaN is a key that NaN has.
        compare("LabelEncoder", [floats], [7], opset=opset, **given)


def test_texts_stay_with_onnx_runtime() -> None:
    trees = forest(3, [0, 1], "class", ("BRANCH_LEQ",))
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", classlabels_strings=["a", "b"], **trees
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [
            helper.make_tensor_value_info("y", TensorProto.STRING, ["n"]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 2]),
        ],
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    artifact = igniter.load(model).compile(options=igniter.CompileOptions(fusion_passes=EVERYTHING), verify=False)
    assert "onnx.string" in str(artifact.report["left_to_onnxruntime"])
    assert artifact.session().run(None, {"x": features()})[0].dtype == object
