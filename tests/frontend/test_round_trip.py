"""import → print → parse → export loses nothing, over every model that the onnx package has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
from model_equality import difference
from onnx.backend.test.case.test_case import TestCase
from onnx.reference import ReferenceEvaluator
from round_trip import DATA, model_files, node_cases, round_trip
from runtime_equality import CannotRun, feeds_of, original_outputs, outputs, same_bits

PARTS = 16


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_node_cases_keep_everything(part: int) -> None:
    for case in node_cases()[part::PARTS]:
        after = round_trip(case.model)
        assert difference(case.model, after) is None, case.name
        onnx.checker.check_model(after)


def test_there_are_node_cases() -> None:
    assert len(node_cases()) >= 1884 or onnx.__version__ < "1.23"


@pytest.mark.parametrize("path", model_files(), ids=lambda p: str(p.relative_to(DATA)))
def test_model_files_keep_everything(path: Path) -> None:
    before = onnx.load(path)
    after = round_trip(path)
    assert difference(before, after) is None
    onnx.checker.check_model(after)


def _is_random(case: TestCase) -> bool:
    """True if the case has an op that draws random numbers: there are no bits to compare."""
    return any(word in case.name for word in ("bernoulli", "dropout", "random"))


def _run_both(case: TestCase, after: onnx.ModelProto) -> tuple[str, bool]:
    """Which runtime ran both models, and whether they gave the same bits."""
    feeds = feeds_of(case.model, case.data_sets[0][0])
    try:
        before = original_outputs(case.model, feeds)
        return "onnxruntime", same_bits(before, outputs(after, feeds))
    except CannotRun:
        pass
    arrays = {k: onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for k, v in feeds.items()}
    try:
        first: Any = ReferenceEvaluator(case.model).run(None, arrays)
    except Exception:  # the reference lacks some ops too, ImageDecoder without pillow among them
        return "neither", True
    second: Any = ReferenceEvaluator(after).run(None, arrays)
    return "reference", same_bits(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_sampled_node_cases_compute_the_same_bits(part: int) -> None:
    ran: Counter[str] = Counter()
    for case in node_cases()[part * 7 :: 4 * 7]:
        runtime, same = _run_both(case, round_trip(case.model))
        ran[runtime] += 1
        assert same or _is_random(case), f"{case.name} in {runtime}"
    assert ran["onnxruntime"] > 40


@pytest.mark.full
def test_all_node_cases_compute_the_same_bits() -> None:
    ran: Counter[str] = Counter()
    for case in node_cases():
        runtime, same = _run_both(case, round_trip(case.model))
        ran[runtime] += 1
        assert same or _is_random(case), f"{case.name} in {runtime}"
    print(dict(ran))
    assert ran["onnxruntime"] > 1400


@pytest.mark.parametrize("name", ["bvlc_alexnet", "shufflenet", "squeezenet"])
def test_light_models_compute_the_same_bits(name: str) -> None:
    _light(name)


@pytest.mark.full
@pytest.mark.parametrize("name", ["densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512"])
def test_bigger_light_models_compute_the_same_bits(name: str) -> None:
    _light(name)


def _light(name: str) -> None:
    import numpy as np

    path = DATA / "light" / f"light_{name}.onnx"
    before, after = onnx.load(path), round_trip(path)
    rng = np.random.default_rng(0)
    initialized = {t.name for t in before.graph.initializer}
    feeds = {
        v.name: rng.random([d.dim_value for d in v.type.tensor_type.shape.dim], np.float32)
        for v in before.graph.input
        if v.name not in initialized
    }
    assert same_bits(original_outputs(before, feeds), outputs(after, feeds))


@pytest.mark.parametrize("path", sorted((DATA / "simple").glob("*/model.onnx")), ids=lambda p: p.parent.name)
def test_simple_models_compute_the_same_bits(path: Path) -> None:
    import numpy as np

    before, after = onnx.load(path), round_trip(path)
    feeds: dict[str, Any] = {}
    defaults = {t.name for t in before.graph.initializer}
    for i, value in enumerate(v for v in before.graph.input if v.name not in defaults):
        data = (path.parent / "test_data_set_0" / f"input_{i}.pb").read_bytes()
        if value.type.HasField("sequence_type"):
            feeds[value.name] = onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        else:
            feeds[value.name] = np.array(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    try:
        expected = original_outputs(before, feeds)
    except CannotRun:
        # Gradient ops have no kernels in a stock runtime, and StringNormalizer wants a locale that may be missing.
        assert "gradient" in path.parent.name or "strnorm" in path.parent.name
        return
    assert same_bits(expected, outputs(after, feeds))
