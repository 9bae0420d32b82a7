"""Parts of a model, one after the other, compute what it does: by hand and by random cuts through random models."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import igniter
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.toolbox.extract.extract_part import extract_parts
from igniter.toolbox.extract.parts import Part, Partition
from igniter.toolbox.split.stages.manifest import read_manifest
from igniter.toolbox.split.stages.running import StageRunner
from igniter.toolbox.split.stages.writing import write_stages
from igniter.verification.judgement import compare_output
from tests.fuzz.generator import make_case

from . import models


def parts_of(model: onnx.ModelProto, start: str = "", end: str = "", exact: bool = False) -> list[Part]:
    ir = igniter.load(model).ir
    return extract_parts(ir, tuple(filter(None, start.split(","))), tuple(filter(None, end.split(","))), exact=exact)


def test_before_inside_and_after():
    found = parts_of(models.branches(), "h", "r")
    assert [(p.name, p.inputs, p.outputs, p.nodes) for p in found] == [
        ("before", ("x", "ids"), ("h",), 2),
        ("inside", ("h",), ("r",), 1),
        # The branch reads what is computed before it and in it.
        ("after", ("c", "r", "h"), ("y", "z"), 2),
    ]


def test_a_value_that_is_read_behind_the_part_comes_out_too_unless_exact():
    inside = parts_of(models.branches(), "e", "z")[1]
    assert (inside.inputs == ("x", "e") and inside.outputs == ("h", "r", "z")) or set(inside.outputs) == {"h", "r", "z"}
    assert parts_of(models.branches(), "e", "z", exact=True)[0].outputs == ("z",)


def test_types_and_symbols_of_what_crosses_are_kept():
    made = igniter.load(models.branches()).edit()  # No edit: the module as it is.
    inside = extract_parts(made.ir, ("h",), ("z",), exact=True)[0].module
    argument = main_graph(inside).body.args[0]
    assert str(argument.type) == "tensor<?x4xf32, #sym.dims<batch, 4>>"


def test_functions_defaults_and_shared_weights_go_with_a_part():
    made = igniter.load(models.quantised()).extract(end=("p",))
    proto = made.to_onnx()
    onnx.checker.check_model(proto)
    # What is dequantised is computed where it is read, from the same bytes.
    assert [n.op_type for n in proto.graph.node] == ["DequantizeLinear", "MatMul"]
    proto = igniter.load(models.quantised()).extract(start=("q",)).to_onnx()
    assert [v.name for v in proto.graph.input] == ["gain", "q"] or [v.name for v in proto.graph.input] == ["q", "gain"]
    assert [t.name for t in proto.graph.initializer] == ["gain"]
    assert len(igniter.load(models.loop()).extract(end=("s",)).to_onnx().functions) == 1
    assert len(igniter.load(models.loop()).extract(start=("s",)).to_onnx().functions) == 0


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        ("z", "h", "'h' does not depend on z"),
        ("", "tab", "'tab' is a weight"),
        ("", "", "name the values to begin or to end with"),
        ("ty", "y", "'ty' is a value inside of If 'y'"),
        ("hh", "y", "there is no value called 'hh'; did you mean 'h'"),
        ("h", "h", "named as a begin and an end"),
        ("c", "z", "'z' does not depend on c"),
    ],
)
def test_a_cut_that_is_none_says_why(start: str, end: str, why: str):
    with pytest.raises(IgniterError) as error:
        parts_of(models.branches(), start, end)
    assert why in error.value.message


def cut(partition: Partition, rng: random.Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values to begin and to end with: of those to begin with, some that the others depend on."""
    named = [partition.names[r] for op in partition.nodes for r in op.results if r in partition.names]
    names = {name: value for value, name in partition.names.items()}
    end = rng.sample(named, min(len(named), rng.choice((1, 1, 2, 3))))
    pool: dict[str, None] = {}
    pending = [names[n] for n in end]
    while pending:
        owner = pending.pop().owner
        for value in partition.reads.get(owner, ()):  # type: ignore[call-overload]
            shared = value.owner in partition.shared
            if not shared and value in partition.names and partition.names[value] not in pool:
                pool[partition.names[value]] = None
                pending.append(value)
    left = [n for n in pool if n not in end]
    return tuple(rng.sample(left, min(len(left), rng.choice((0, 1, 1, 2, 3))))), tuple(end)


def same_by_cuts(model: onnx.ModelProto, feeds: list[dict[str, np.ndarray]], seed: int, folder: Path) -> int:
    """Cuts a model at random; how many parts there were, 0 for a cut that leads nowhere."""
    data = model.SerializeToString()
    module = igniter.load(data)
    start, end = cut(Partition(module.ir), random.Random(seed))
    try:
        parts = extract_parts(module.ir, start, end)
    except IgniterError as error:
        # What begins the part may not lead to all that ends it.
        assert "depend" in error.message
        return 0
    graph = main_graph(module.ir)
    manifest, _ = write_stages(parts, folder, graph.input_names, graph.output_names)
    assert read_manifest(folder) == manifest
    runner, whole = StageRunner(folder), onnxruntime.InferenceSession(data)
    for feed in feeds:
        try:
            expected = whole.run(None, feed)
        except Exception:
            continue  # sizes that the original refuses
        actual = runner.run(feed)
        for name, value in zip(graph.output_names, expected, strict=True):
            outcome = compare_output(name, value, actual[name])
            assert outcome.ok, (seed, start, end, outcome.reason)
    return len(parts)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_cuts_through_random_models(first: int, tmp_path: Path):
    onnxruntime.set_default_logger_severity(4)
    found = []
    for seed in range(first, first + 10):
        case = make_case(seed)
        found.append(same_by_cuts(case.model, list(case.feeds), seed, tmp_path / str(seed)))
    assert sum(n > 1 for n in found) >= 3


@pytest.mark.parametrize("name", ["branches", "loop", "quantised"])
def test_random_cuts_through_models_with_graphs_inside(name: str, tmp_path: Path):
    feeds = {
        "branches": [models.feed_of_branches(), models.feed_of_branches(2, False), models.feed_of_branches(0)],
        "loop": [models.feed_of_loop(), models.feed_of_loop(1, 0)],
        "quantised": [
            {"x": np.ones((2, 4), np.float32)},
            {"x": np.ones((2, 4), np.float32), "gain": np.array(3, np.float32)},
        ],
    }[name]
    model = getattr(models, name)()
    found = [same_by_cuts(model, feeds, seed, tmp_path / str(seed)) for seed in range(12)]
    assert any(n > 1 for n in found)
