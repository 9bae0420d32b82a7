"""`igniter serve --ray` on a cluster of two nodes on this machine, one of which is killed under load."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.protocol import HEADER_LENGTH, request_of, response_of
from igniter.toolbox.serve.settings import Settings

ray = pytest.importorskip("ray", reason="Ray is not installed (the extra `serve`)")
pytest.importorskip("ray.serve", reason="Ray Serve is not installed (the extra `serve`)")

PORT = 8197
CLIENTS = 4


def slow_model(path: Path, products: int = 24, wide: int = 1024) -> Path:
    """A chain of products and normalisations, of about 100 ms for 128 rows: a kill meets requests in progress."""
    weights = np.random.default_rng(1).standard_normal((wide, wide)).astype(np.float32) / wide**0.5
    nodes = [helper.make_node("MatMul", [f"x{i}" if i else "x", "w"], [f"x{i + 1}"]) for i in range(products)]
    nodes.append(helper.make_node("Tanh", [f"x{products}"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "slow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", wide])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", wide])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head node and one more, with a CPU each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.second = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, namespace="igniter")
    yield made
    ray.serve.shutdown()
    ray.shutdown()
    made.shutdown()


class Clients:
    """Clients that send one request after another, and compare each result."""

    def __init__(self, name: str, model: ServedModel):
        self.address = f"http://127.0.0.1:{PORT}/v2/models/{name}/infer"
        self.model, self.seconds, self.faults, self.ended = model, list[float](), list[str](), threading.Event()
        feeds = [{"x": np.random.default_rng(i).standard_normal((128, 1024)).astype(np.float32)} for i in range(4)]
        self.asked = [(request_of(feed, model.inputs), model.run(feed)["y"]) for feed in feeds]
        self.threads = [threading.Thread(target=self._client, args=(i,), daemon=True) for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def _client(self, i: int) -> None:
        while not self.ended.is_set():
            (body, headers), expected = self.asked[i % len(self.asked)]
            begin = time.perf_counter()
            try:
                request = urllib.request.Request(self.address, body, headers, method="POST")
                with urllib.request.urlopen(request, timeout=120) as response:
                    found = response_of(response.read(), response.headers.get(HEADER_LENGTH))["y"]
                if not np.array_equal(found, expected):
                    self.faults.append("another result")
            except OSError as error:
                self.faults.append(f"{error}")
            self.seconds.append(time.perf_counter() - begin)
            i += 1

    def wait_for(self, more: int, limit: float = 120) -> None:
        """Waits until `more` requests are answered."""
        wanted, end = len(self.seconds) + more, time.monotonic() + limit
        while len(self.seconds) < wanted:
            assert time.monotonic() < end, f"{len(self.seconds)} of {wanted} requests, faults: {self.faults[:3]}"
            time.sleep(0.05)

    def end(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(120)


def metric(name: str) -> float:
    text = urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10).read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_a_killed_node_loses_no_request(cluster: Any, tmp_path: Path):
    from igniter.toolbox.serve.on_ray import deploy

    igniter.compile(slow_model(tmp_path / "slow.onnx"), tmp_path / "slow.igniter", verify=False)
    deploy(tmp_path / "slow.igniter", Settings("slow", port=PORT, threads=1, replicas=2))
    # Each node has one CPU, and each replica takes one, so both nodes have a replica.
    clients = Clients("slow", ServedModel(tmp_path / "slow.igniter", threads=1))
    clients.wait_for(8)
    cluster.remove_node(cluster.second, allow_graceful=False)
    clients.wait_for(8)
    assert metric("igniter_retries_total") > 0, "calls were in progress on the killed node"
    cluster.add_node(num_cpus=1)
    clients.wait_for(8)
    clients.end()
    assert clients.faults == []
    assert metric('igniter_requests_total{model="slow",status="200"}') == len(clients.seconds)
