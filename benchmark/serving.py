"""A served model under load: throughput and latency beside a single process.

    python -m benchmark.serving model.igniter --shape batch=1,seq=64
    python -m benchmark.serving model.igniter --clients 8 --seconds 10 --ray
    python -m benchmark.serving model.igniter --ray --kill

`--clients` clients send one request after another, in the binary form of the protocol, from one process. The systems
take turns of `--seconds`, `--rounds` times; a row has the medians over the rounds, and percentiles of all requests.

* `session`: calls of ONNX Runtime's session in this process, from as many threads, without HTTP;
* `here`: `igniter serve` in one process, with a run for each CPU at a time; `here, batch N`: with requests joined;
* `ray, N replicas` (with `--ray`): on a cluster of two nodes on this machine.

`--kill` kills the second node of the cluster in the middle of a turn, and adds one again.
All systems, and the clients, share the CPUs of this machine, so replicas cannot add speed here; the rows show the cost
of a server.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.table import Column, show
from igniter.toolbox.output import parse_shapes
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.protocol import request_of
from igniter.toolbox.serve.settings import Settings
from igniter.verification.inputs import random_inputs
from igniter.verification.specs import specs_of, symbols_of

COLUMNS = [
    Column("system", 24),
    Column("requests/s", 11),
    Column("p50 ms", 8),
    Column("p90 ms", 8),
    Column("p99 ms", 8),
]
COLUMNS += [Column("failed", 7)]
PORT = 8190


@dataclass
class Turns:
    """What a system did: the rate of each turn, the seconds of each request, and the failed ones."""

    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def cells(self, name: str) -> list[str]:
        marks = [f"{1e3 * float(np.percentile(self.seconds, p)):.2f}" for p in (50, 90, 99)]
        return [name, f"{statistics.median(self.rates):.1f}", *marks, str(self.failed)]


Ask = Callable[[], bool]
"""One request; true if it was answered."""


def turn(turns: Turns, asks: Sequence[Ask], seconds: float, middle: Callable[[], object] | None = None) -> None:
    """Lets all clients work for `seconds`; `middle` is called at half of the time."""
    end, done = time.perf_counter() + seconds, [0] * len(asks)

    def client(k: int) -> None:
        while time.perf_counter() < end:
            begin = time.perf_counter()
            turns.failed += not asks[k]()
            turns.seconds.append(time.perf_counter() - begin)
            done[k] += 1

    threads = [threading.Thread(target=client, args=(k,)) for k in range(len(asks))]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    if middle is not None:
        time.sleep(seconds / 2)
        middle()
    for thread in threads:
        thread.join()
    turns.rates.append(sum(done) / (time.perf_counter() - begin))


def http_asks(port: int, name: str, model: ServedModel, feed: Any, clients: int) -> list[Ask]:
    """Clients of a server, each with a connection that it keeps."""
    body, headers = request_of(feed, model.inputs)

    def client() -> Ask:
        connection = [http.client.HTTPConnection("127.0.0.1", port, timeout=120)]

        def ask() -> bool:
            try:
                connection[0].request("POST", f"/v2/models/{name}/infer", body, headers)
                response = connection[0].getresponse()
                response.read()
                return response.status == 200
            except (OSError, http.client.HTTPException):
                connection[0] = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                return False

        return ask

    return [client() for _ in range(clients)]


@contextmanager
def server(arguments: Sequence[str]) -> Iterator[None]:
    """`igniter serve` in a process of its own."""
    command = [sys.executable, "-m", "igniter.tools.main", "serve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    assert process.stdout is not None
    if not process.stdout.readline():
        raise SystemExit(f"the server did not start: {' '.join(command)}")
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes with a CPU each, for replicas."""
    import ray
    from ray.cluster_utils import Cluster

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.second = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, namespace="igniter")
    try:
        yield made
    finally:
        ray.serve.shutdown()
        ray.shutdown()
        made.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a compiled folder or an ONNX file")
    parser.add_argument("--shape", default="", help="sizes of the dims of a request, batch=1,seq=64; 1 if not given")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=0, help="another server, which joins requests up to this size")
    parser.add_argument("--ray", action="store_true", help="one and two replicas on a Ray cluster")
    parser.add_argument("--kill", action="store_true", help="with --ray: kill a node in each turn")
    asked = parser.parse_args()

    model = ServedModel(asked.model, threads=1, slots=asked.clients)
    specs: Any = specs_of(model.session)
    shapes: Any = parse_shapes([asked.shape] if asked.shape else [])
    sizes = dict.fromkeys(symbols_of(specs), 1) | (dict(shapes[0]) if shapes else {})
    feed = random_inputs(specs, sizes)

    def here() -> bool:
        return bool(model.run(feed))

    systems: dict[str, list[Ask]] = {"session": [here] * asked.clients}
    given = [str(asked.model), "--name", "m", "--threads", "1", "--concurrency", str(os.cpu_count() or 1)]
    show(COLUMNS, False)
    with (
        server([*given, "--port", str(PORT)]),
        server([*given, "--port", str(PORT + 1), *(["--batch", str(asked.batch)] if asked.batch else [])]),
    ):
        systems["here"] = http_asks(PORT, "m", model, feed, asked.clients)
        if asked.batch:
            systems[f"here, batch {asked.batch}"] = http_asks(PORT + 1, "m", model, feed, asked.clients)
        measure(systems, asked.rounds, asked.seconds)
    if asked.ray:
        on_ray(asked, model, feed)


def measure(systems: dict[str, list[Ask]], rounds: int, seconds: float) -> None:
    """The turns of all systems, and their rows."""
    found = {name: Turns() for name in systems}
    for asks in systems.values():
        turn(Turns(), asks, 0.5)
    for _ in range(rounds):
        for name, asks in systems.items():
            turn(found[name], asks, seconds)
    for name, turns in found.items():
        show(COLUMNS, False, turns.cells(name))


def on_ray(asked: Any, model: ServedModel, feed: Any) -> None:
    """The rows of the cluster: one and two replicas, and two with a node killed in each turn."""
    from igniter.toolbox.serve.on_ray import deploy

    with cluster() as made:
        asks = http_asks(PORT + 2, "m", model, feed, asked.clients)
        for replicas in (1, 2):
            deploy(asked.model, Settings("m", port=PORT + 2, threads=1, replicas=replicas))
            turns = Turns()
            turn(Turns(), asks, 2.0)
            for _ in range(asked.rounds):
                turn(turns, asks, asked.seconds)
            show(COLUMNS, False, turns.cells(f"ray, {replicas} replica{'s' if replicas > 1 else ''}"))
        if asked.kill:
            turns = Turns()
            for _ in range(asked.rounds):
                turn(turns, asks, asked.seconds, lambda: made.remove_node(made.second, allow_graceful=False))
                made.second = made.add_node(num_cpus=1)
                time.sleep(5)
            show(COLUMNS, False, turns.cells("ray, a node killed"))


if __name__ == "__main__":
    main()
