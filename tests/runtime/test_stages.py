"""Models in stages and in ranks: balanced as well as they can be, and together the whole model, wherever they run."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.split.balance import best_cuts
from igniter.toolbox.split.stages.manifest import read_manifest
from igniter.toolbox.split.stages.running import RankRunner, StageRunner
from igniter.toolbox.split.stages.workers import ProcessStages
from igniter.verification.judgement import compare_output
from tests.fuzz.generator import make_case
from tests.transforms.edit import models

# -- cuts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_the_best_there_are(seed: int):
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    stages = rng.randint(1, count)
    costs = [rng.choice((0, 1, 2, 3, 7)) for _ in range(count)]
    crossing = [rng.choice((0, 1, 5, 9)) for _ in range(count)]
    slack = rng.choice((0.0, 0.0, 0.3))
    all_cuts = list(itertools.combinations(range(1, count), stages - 1))

    def dearest(cuts: tuple[int, ...]) -> float:
        edges = (0, *cuts, count)
        return max(sum(costs[a:b]) for a, b in itertools.pairwise(edges))

    least = min(map(dearest, all_cuts))
    bytes_ = min(sum(crossing[c] for c in cuts) for cuts in all_cuts if dearest(cuts) <= least * (1 + slack) + 1e-6)
    found = best_cuts(costs, crossing, stages, slack)
    assert len(found.positions) == stages - 1 and found.dearest == dearest(found.positions)
    assert found.dearest <= least * (1 + slack) + 1e-6 and found.bytes == bytes_


def test_more_stages_than_nodes_are_refused(tmp_path: Path):
    with pytest.raises(IgniterError, match="the model has 5 nodes, which do not make 6 stages"):
        igniter.load(models.branches()).split(tmp_path / "s", 6)


# -- stages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["flops", "bytes", "time"])
def test_stages_compute_what_the_model_does(balance: str, tmp_path: Path):
    manifest, check = igniter.load(models.branches()).split(tmp_path / "s", 3, balance, sizes={"batch": 8})
    assert check is not None and check.status == "passed"
    feed = models.feed_of_branches()
    wanted = models.run(models.branches(), feed)
    found = StageRunner(tmp_path / "s").run(feed)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
    assert read_manifest(tmp_path / "s") == manifest
    data = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert [f["to"] for f in data["flows"]] and all(s["costs"]["flops"] >= 0 for s in data["stages"])
    assert balance != "time" or sum(s["costs"]["time"] for s in data["stages"]) > 0


def test_stages_are_even():
    graph = helper.make_graph(
        [helper.make_node("MatMul", [f"h{i}", "w"], [f"h{i + 1}"], f"m{i}") for i in range(8)],
        "g",
        [helper.make_tensor_value_info("h0", 1, ["n", 16])],
        [helper.make_tensor_value_info("h8", 1, ["n", 16])],
        [numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")],
    )
    from igniter.toolbox.split.cuts import split_stages

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    found = split_stages(igniter.load(model).ir, 4, "flops", {"n": 2})
    assert [p.nodes for p in found.parts] == [2, 2, 2, 2]
    assert [c["flops"] for c in found.costs] == [2 * 2 * 2 * 16 * 16] * 4
    assert found.crossing == (2 * 16 * 4,) * 3 and found.dearest["flops"] == 0.25
    # The weight is in every stage, and counted where it is read first.
    assert found.costs[0]["bytes"] == found.costs[1]["bytes"] + 16 * 16 * 4


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_stages_of_random_models(first: int, tmp_path: Path):
    onnxruntime.set_default_logger_severity(4)
    for seed in range(first, first + 10):
        case, rng = make_case(seed), random.Random(seed)
        data = case.model.SerializeToString()
        module = igniter.load(data)
        stages = rng.randint(1, 5)
        folder = tmp_path / str(seed)
        try:
            module.split(folder, stages, rng.choice(("flops", "bytes")), verify=False)
        except IgniterError as error:
            assert "do not make" in error.message
            continue
        whole, runner = onnxruntime.InferenceSession(data), StageRunner(folder)
        for feed in case.feeds:
            try:
                expected = whole.run(None, feed)
            except Exception:
                continue  # sizes that the original refuses
            found = runner.run(feed)
            for value, expectation in zip(whole.get_outputs(), expected, strict=True):
                outcome = compare_output(value.name, expectation, found[value.name])
                assert outcome.ok, (seed, outcome.reason)


def test_a_folder_that_is_something_else_is_not_replaced(tmp_path: Path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine.txt").write_text("mine")
    with pytest.raises(IgniterError, match="holds no stages"):
        igniter.load(models.branches()).split(tmp_path / "s", 2)
    igniter.load(models.branches()).split(tmp_path / "t", 2)
    igniter.load(models.branches()).split(tmp_path / "t", 3)
    assert len(read_manifest(tmp_path / "t").stages) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s", "t"]


def test_a_manifest_that_is_wrong_says_what(tmp_path: Path):
    with pytest.raises(IgniterError, match=r"there is no manifest.json"):
        read_manifest(tmp_path)
    igniter.load(models.branches()).split(tmp_path / "s", 2)
    path = tmp_path / "s" / "manifest.json"
    data = json.loads(path.read_text())
    (tmp_path / "s" / "stage1.onnx").rename(tmp_path / "s" / "other.onnx")
    with pytest.raises(IgniterError, match=r"has no stage1.onnx"):
        read_manifest(tmp_path / "s")
    (tmp_path / "s" / "other.onnx").rename(tmp_path / "s" / "stage1.onnx")
    data["stages"].reverse()
    path.write_text(json.dumps(data))
    with pytest.raises(IgniterError, match="which no stage before it computes"):
        read_manifest(tmp_path / "s")


# -- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_run_a_pipeline(tmp_path: Path):
    igniter.load(models.branches()).split(tmp_path / "s", 2)
    feeds = [models.feed_of_branches(n, c) for n, c in ((1, True), (2, False), (5, True), (3, False), (4, True))]
    with ProcessStages(tmp_path / "s") as stages:
        assert len(set(stages.processes)) == 2
        found = list(stages.runner.run_many(feeds))
        with pytest.raises(IgniterError, match=r"stage0: stage0\.onnx does not run"):
            stages.runner.run({**feeds[0], "ids": np.array([99])})
        with pytest.raises(IgniterError, match="does not run"):
            list(stages.runner.run_many([feeds[0], {**feeds[0], "ids": np.array([99])}, feeds[0]]))
        with pytest.raises(IgniterError, match="the model has no input q"):
            stages.runner.run({"q": 1})
        workers = list(stages.workers)
        # At first it may be reading that finds out; once the process has gone, it is writing. Both say the same.
        workers[1].process.kill()
        with pytest.raises(IgniterError, match="stage1 ended"):
            stages.runner.run(feeds[0])
        workers[1].process.wait()
        with pytest.raises(IgniterError, match="stage1 ended"):
            stages.runner.run(feeds[0])
    assert all(w.process.poll() is not None for w in workers)
    for feed, outputs in zip(feeds, found, strict=True):
        for name, value in models.run(models.branches(), feed).items():
            np.testing.assert_array_equal(outputs[name], value)


@pytest.mark.slow
def test_a_stage_that_does_not_load_is_said(tmp_path: Path):
    igniter.load(models.branches()).split(tmp_path / "s", 2)
    (tmp_path / "s" / "stage1.onnx").write_bytes(b"nothing")
    with pytest.raises(IgniterError, match="stage1: ONNX Runtime does not load"):
        ProcessStages(tmp_path / "s")


# -- ranks ------------------------------------------------------------------------------------------------------------


def transformer(heads: int = 4, width: int = 16, opset: int = 17) -> onnx.ModelProto:
    """A block of a transformer: attention with computed shapes and a mask, a gated feed-forward, norms, a Gemm."""
    rng = np.random.default_rng(3)

    def weight(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    head = width // heads
    tensors = {f"w{n}": weight(width, width) for n in "qkvo"}
    tensors |= {"bq": weight(width), "gate": weight(width, 32), "up": weight(width, 32), "down": weight(32, width)}
    tensors |= {"scale": np.array(head**-0.5, np.float32), "fc": weight(12, width), "fcb": weight(12)}
    tensors |= {"ln": np.ones(width, np.float32), "heads": np.array([heads, head]), "flat": np.array([0, 0, width])}
    tensors |= {"two": np.array([0, 1]), "rows": np.array([-1, width])}
    make = helper.make_node
    nodes = [
        make("Shape", ["x"], ["shape"]),
        make("Gather", ["shape", "two"], ["front"]),
        make("Concat", ["front", "heads"], ["by_heads"], "split_heads", axis=0),
        make("LayerNormalization", ["x", "ln"], ["n"], axis=-1),
    ]
    for name in "qkv":
        nodes.append(make("MatMul", ["n", f"w{name}"], [f"{name}0"], f"product_{name}"))
        source = f"{name}0"
        if name == "q":
            nodes.append(make("Add", ["q0", "bq"], ["q1"]))
            source = "q1"
        nodes.append(make("Reshape", [source, "by_heads"], [f"{name}2"], f"heads_{name}"))
        perm = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes.append(make("Transpose", [f"{name}2"], [f"{name}3"], perm=perm))
    nodes += [
        make("MatMul", ["q3", "k3"], ["s0"]),
        make("Mul", ["s0", "scale"], ["s1"]),
        make("Add", ["s1", "mask"], ["s2"]),
        make("Softmax", ["s2"], ["p"], axis=-1),
        make("MatMul", ["p", "v3"], ["c0"]),
        make("Transpose", ["c0"], ["c1"], perm=[0, 2, 1, 3]),
        make("Reshape", ["c1", "flat"], ["c2"], "join_heads"),
        make("MatMul", ["c2", "wo"], ["o"], "product_o"),
        make("Add", ["x", "o"], ["r"]),
        make("MatMul", ["r", "gate"], ["g0"], "product_gate"),
        make("Sigmoid", ["g0"], ["g1"]),
        make("Mul", ["g0", "g1"], ["g2"]),
        make("MatMul", ["r", "up"], ["u"], "product_up"),
        make("Mul", ["g2", "u"], ["m"]),
        make("MatMul", ["m", "down"], ["d"], "product_down"),
        make("Add", ["r", "d"], ["z"]),
        make("Reshape", ["z", "rows"], ["zr"]),
        make("Gemm", ["zr", "fc", "fcb"], ["y"], "head", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "block",
        [
            helper.make_tensor_value_info("x", 1, ["batch", "seq", width]),
            helper.make_tensor_value_info("mask", 1, ["batch", 1, 1, "seq"]),
        ],
        [
            helper.make_tensor_value_info("y", 1, [None, 12]),
            helper.make_tensor_value_info("z", 1, ["batch", "seq", width]),
        ],
        [numpy_helper.from_array(v, k) for k, v in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def feed_of_transformer(batch: int = 2, seq: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    mask = np.where(rng.random((batch, 1, 1, seq)) < 0.2, -1e4, 0).astype(np.float32)
    return {"x": rng.standard_normal((batch, seq, 16)).astype(np.float32), "mask": mask}


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_share_a_transformer(ranks: int, tmp_path: Path):
    model = transformer()
    manifest, check = igniter.load(model).split_products(tmp_path / "r", ranks)
    assert check is not None and check.status == "passed"
    # Attention and feed-forward each need one sum, and the head, which nothing leads to, one more.
    assert sum(len(s.reduces) for s in manifest.segments) == 3 and len(manifest.segments) == 3
    rank = onnx.load(tmp_path / "r" / f"rank{ranks - 1}.onnx")
    shapes = {t.name.split(".")[0]: list(t.dims) for t in rank.graph.initializer}
    assert shapes["wq"] == [16, 16 // ranks] and shapes["wo"] == [16 // ranks, 16]
    assert shapes["gate"] == [16, 32 // ranks] and shapes["down"] == [32 // ranks, 16]
    assert shapes["fc"] == [12, 16 // ranks] and "fcb" not in shapes and shapes["bq"] == [16 // ranks]
    assert [n.domain for n in rank.graph.node].count("igniter.collective") == 3
    onnx.checker.check_model(rank)
    runner = RankRunner(tmp_path / "r")
    for feed in (feed_of_transformer(), feed_of_transformer(1, 1), feed_of_transformer(3, 7)):
        found = runner.run(feed)
        for name, value in models.run(model, feed).items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_ranks_run_in_processes(tmp_path: Path):
    model = transformer()
    igniter.load(model).split_products(tmp_path / "r", 2)
    feed = feed_of_transformer()
    with ProcessStages(tmp_path / "r") as stages:
        found = stages.runner.run(feed)
    np.testing.assert_allclose(found["y"], models.run(model, feed)["y"], rtol=1e-4, atol=1e-5)


def test_products_that_cannot_be_shared_stay_whole(tmp_path: Path):
    from igniter.toolbox.split.shard_products import ShardProducts

    with pytest.raises(IgniterError, match="no product of the model has a weight"):
        igniter.load(models.quantised()).edit(ShardProducts(ranks=2, rank=0))
    with pytest.raises(IgniterError, match="rank 2 of 2"):
        igniter.load(transformer()).edit(ShardProducts(ranks=2, rank=2))
    # Without `alone`, only what columns lead to.
    module = igniter.load(transformer()).edit(ShardProducts(ranks=2, rank=0, alone=False))
    assert [r.node for r in module.remarks.of("shard-products", "missed")] == ["Gemm 'head'"]


@pytest.mark.slow
def test_random_models_in_ranks(tmp_path: Path):
    onnxruntime.set_default_logger_severity(4)
    shared = 0
    for seed in range(60):
        case = make_case(seed)
        data = case.model.SerializeToString()
        try:
            igniter.load(data).split_products(tmp_path / str(seed), 2, verify=False)
        except IgniterError as error:
            assert "has a weight that 2 ranks can share" in error.message
            continue
        shared += 1
        whole, runner = onnxruntime.InferenceSession(data), RankRunner(tmp_path / str(seed))
        for feed in case.feeds:
            try:
                expected = whole.run(None, feed)
            except Exception:
                continue  # sizes that the original refuses
            found = runner.run(feed)
            for value, expectation in zip(whole.get_outputs(), expected, strict=True):
                outcome = compare_output(value.name, expectation, found[value.name])
                assert outcome.ok, (seed, outcome.reason)
    assert shared > 2


# -- Ray --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.full
def test_stages_on_a_cluster_of_two_nodes(cluster: Any, tmp_path: Path):
    from igniter.toolbox.split.stages.on_ray import RayStages

    igniter.load(models.branches()).split(tmp_path / "s", 2)
    feeds = [models.feed_of_branches(n) for n in (1, 4, 2)]
    with RayStages(tmp_path / "s", cluster.address) as stages:
        assert len(set(stages.nodes)) == 2
        found = list(stages.runner.run_many(feeds))
        with pytest.raises(IgniterError, match="stage0"):
            stages.runner.run({**feeds[0], "ids": np.array([99])})
    for feed, outputs in zip(feeds, found, strict=True):
        for name, value in models.run(models.branches(), feed).items():
            np.testing.assert_array_equal(outputs[name], value)


@pytest.mark.full
def test_ranks_on_a_cluster(cluster: Any, tmp_path: Path):
    from igniter.toolbox.split.stages.on_ray import RayStages

    model = transformer()
    igniter.load(model).split_products(tmp_path / "r", 2)
    feed = feed_of_transformer()
    with RayStages(tmp_path / "r", cluster.address) as stages:
        found = stages.runner.run(feed)
        assert len(set(stages.nodes)) == 2
    np.testing.assert_allclose(found["y"], models.run(model, feed)["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.full
def test_named_stages_stay_and_are_found_again(cluster: Any, tmp_path: Path):
    from igniter.toolbox.split.stages.on_ray import RayStages

    igniter.load(models.branches()).split(tmp_path / "s", 2)
    with pytest.raises(IgniterError, match="ask for less"):
        RayStages(tmp_path / "s", cluster.address, cpus=9)
    feed = models.feed_of_branches()
    with RayStages(tmp_path / "s", cluster.address, cpus=0.5, name="kept") as first:
        actors = [a._actor_id for a in first.actors]
    again = RayStages(tmp_path / "s", cluster.address, cpus=0.5, name="kept")
    assert [a._actor_id for a in again.actors] == actors
    np.testing.assert_array_equal(again.runner.run(feed)["y"], models.run(models.branches(), feed)["y"])
    again.stop()


@pytest.mark.slow
def test_without_ray_it_says_what_to_install(tmp_path: Path):
    igniter.load(models.branches()).split(tmp_path / "s", 2)
    script = "import sys; sys.modules['ray'] = None; from igniter.tools.main import app; app(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, "serve", str(tmp_path / "s")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "pip install 'onnx-igniter[ray]'" in done.stderr
