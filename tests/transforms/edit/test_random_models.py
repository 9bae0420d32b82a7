"""Edits that leave the outputs as they are, on random models: exposed values, new names, other types, dims, opsets."""

from __future__ import annotations

import random
from typing import Any

import onnx
import onnxruntime
import pytest

import igniter
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.toolbox.edit.dims import ModelDims
from igniter.toolbox.edit.names import Names
from igniter.verification.judgement import compare_output
from tests.fuzz.generator import make_case


def outputs_of(model: onnx.ModelProto | bytes, feed: dict[str, Any]) -> dict[str, Any] | None:
    """What ONNX Runtime computes; `None` where it refuses the sizes."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data)
    names = [v.name for v in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, feed), strict=True))
    except Exception:
        return None


def same(one: dict[str, Any], other: dict[str, Any], names: dict[str, str], seed: int) -> None:
    for name, value in one.items():
        outcome = compare_output(name, value, other[names.get(name, name)])
        assert outcome.ok, (seed, name, outcome.reason)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 15))
def test_outputs_stay(first: int):
    onnxruntime.set_default_logger_severity(4)
    compared = 0
    for seed in range(first, first + 15):
        case, rng = make_case(seed), random.Random(seed)
        data = case.model.SerializeToString()
        before = [(dict(f), o) for f in case.feeds if (o := outputs_of(data, dict(f))) is not None]
        module = igniter.load(data)
        every = {n: f"new/{n}" for n in Names(module.ir).values}
        inputs = main_graph(module.ir).input_names
        try:
            module.expose(all=True)
        except IgniterError as error:
            assert "is an output already" in error.message
        module.rename(every)
        # An older opset may lack a node; a newer one has to have them all.
        version = rng.choice((21, 22))
        if max(e.version for e in case.model.opset_import if not e.domain) != version:
            module.convert_opset(version)
        made = module.to_onnx()
        onnx.checker.check_model(made)
        assert [v.name for v in made.graph.input] == [every[n] for n in inputs]
        for feed, expected in before:
            found = outputs_of(made, {every[k]: v for k, v in feed.items()})
            assert found is not None, seed
            same(expected, found, every, seed)
            compared += 1
    assert compared > 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_sizes_are_fixed_and_freed(first: int):
    onnxruntime.set_default_logger_severity(4)
    fixed = freed = 0
    for seed in range(first, first + 20):
        case = make_case(seed)
        data = case.model.SerializeToString()
        for feed, sizes in zip(case.feeds, case.shapes, strict=True):
            expected = outputs_of(data, dict(feed))
            module = igniter.load(data)
            present = [s for s in sizes if s in ModelDims(module.ir).of_inputs]
            if expected is None or not present:
                continue
            module.fix_dims({s: sizes[s] for s in present})
            found = outputs_of(module.to_onnx(), dict(feed))
            assert found is not None, seed
            same(expected, found, {}, seed)
            fixed += 1
            freed += _freed_again(module, feed, expected, sizes, seed)
    assert fixed > 5 and freed > 0


def _freed_again(module: igniter.Module, feed: Any, expected: dict[str, Any], sizes: Any, seed: int) -> int:
    """Frees the first dim of every input that has the size of `n`; 1 where that was legal."""
    graph = main_graph(module.ir)
    places = {f"{n}:0": "n" for n, v in feed.items() if n in graph.input_names and v.ndim and v.shape[0] == sizes["n"]}
    if not places:
        return 0
    try:
        module.free_dims(places)
    except IgniterError as error:
        assert "cannot be free" in error.message, (seed, error.message)
        return 0
    found = outputs_of(module.to_onnx(), dict(feed))
    assert found is not None, seed
    same(expected, found, {}, seed)
    return 1
