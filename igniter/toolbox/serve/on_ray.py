"""A model as replicas on a Ray cluster, behind one front: a Ray Serve application of two deployments.

The front is on the head node, which a Ray cluster needs anyway. It has the HTTP address, and passes each request to a
replica. Inference has no side effects, so a call whose replica is lost is repeated on another one, for up to
`Settings.patience` seconds. Ray Serve starts lost replicas again where the cluster has CPUs.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.frontend.reading import external_files
from igniter.toolbox.serve.batching import Full
from igniter.toolbox.serve.endpoints import Endpoints, Metrics, Unavailable, require
from igniter.toolbox.serve.here import KEEP_ALIVE, batcher_of
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.tensors import BadRequest, Tensor

if TYPE_CHECKING:
    from igniter.toolbox.serve.settings import Settings

MOST_BYTES = 256 << 20
"""The size of a model up to which the cluster gets a copy. A larger one must lie on a file system of all nodes."""

PAUSE = 0.05
"""Seconds before a lost call is repeated."""


class Replica:
    """One session of the model. The model is read from `path` if this machine has it, else from the archive."""

    def __init__(self, path: str, archive: bytes, settings: Settings):
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-serve-")
        if archive:
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(self._folder.name, filter="data")
            path = str(Path(self._folder.name) / Path(path).name)
        if not Path(path).exists():
            raise IgniterError(f"this node of the cluster does not have {path}: use a file system of all nodes")
        self._model = ServedModel(path, threads=settings.threads, slots=settings.concurrency)
        self._sizes: list[int] = []
        self._infer = batcher_of(self._model, settings, self._sizes.append)

    def describe(self) -> tuple[list[Tensor], list[Tensor]]:
        """Returns the inputs and outputs."""
        return self._model.inputs, self._model.outputs

    async def infer(self, feed: Mapping[str, Any]) -> tuple[str, Any, list[int]]:
        """Returns `("", outputs, sizes)` or `(error class, message, sizes)`, with the sizes of the batches since the
        last answer. An error of a request is a result: only a lost replica raises."""
        kind, value = "", None
        try:
            value = await self._infer(feed)
        except IgniterError as error:
            kind, value = type(error).__name__, error.message
        sizes = list(self._sizes)
        self._sizes.clear()
        return kind, value, sizes


class Front:
    """The HTTP side: decodes requests, and repeats calls that lost their replica."""

    def __init__(self, replicas: Any, settings: Settings):
        self._replicas, self._settings = replicas, settings
        self._metrics = Metrics(settings.name)
        self._endpoints: Endpoints | None = None

    async def __call__(self, request: Any) -> Any:
        """Answers a request."""
        if self._endpoints is None:
            inputs, outputs = await self._call("describe")
            settings = self._settings
            self._endpoints = Endpoints(
                settings.name, inputs, outputs, self._infer, self._ready, self._metrics, settings.max_request
            )
        return await self._endpoints(request)

    async def _ready(self) -> bool:
        try:
            await asyncio.wait_for(self._replicas.describe.remote(), 5.0)
        except Exception:  # of any kind: no replica answers
            return False
        return True

    async def _infer(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        kind, value, sizes = await self._call("infer", dict(feed))
        for size in sizes:
            self._metrics.batched(size)
        if kind:
            raise _error(kind, value)
        return value

    async def _call(self, method: str, *arguments: Any) -> Any:
        """Calls a replica, and another one if it is lost."""
        ray, serve = require("ray.exceptions"), require("ray.serve.exceptions")
        # A failed task is a fault in the replica's own code: it would fail again.
        lost = (ray.RayActorError, ray.NodeDiedError, ray.ObjectLostError, ray.WorkerCrashedError, ray.RpcError)
        lost += (serve.DeploymentUnavailableError,)
        end = time.monotonic() + self._settings.patience
        while True:
            try:
                return await getattr(self._replicas, method).remote(*arguments)
            except serve.BackPressureError as error:
                raise _error("Full", f"the replicas are busy: {error}") from error
            except lost as error:
                if time.monotonic() >= end:
                    raise Unavailable(
                        f"no replica of '{self._settings.name}' answered for {self._settings.patience:g} seconds: "
                        f"{str(error).splitlines()[0]}"
                    ) from error
            self._metrics.retried()
            await asyncio.sleep(PAUSE)


def _error(kind: str, message: str) -> IgniterError:
    kinds = {"BadRequest": BadRequest, "Full": Full}
    return kinds.get(kind, IgniterError)(message)


def application(path: str | Path, settings: Settings) -> Any:
    """Returns the Ray Serve application of a model: `ray.serve.run` takes it, and so does a YAML file of Ray Serve by
    a function that calls this one."""
    serve = require("ray.serve")
    where = Path(path).resolve()
    replicas = serve.deployment(
        name="replicas",
        num_replicas=settings.replicas,
        max_ongoing_requests=max(settings.queue, settings.concurrency * settings.batch),
        ray_actor_options={"num_cpus": settings.cpus},
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
    )(Replica).bind(str(where), _packed(where), settings)
    front = serve.deployment(
        name="front",
        max_ongoing_requests=4096,
        # The head node has this resource; the front needs the address that clients know, and hardly any CPU.
        ray_actor_options={"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}},
    )(Front)
    return front.bind(replicas, settings)


def deploy(path: str | Path, settings: Settings) -> None:
    """Deploys a model on the connected cluster, and returns once all replicas have loaded it."""
    serve = require("ray.serve")
    options = {"host": settings.host, "port": settings.port, "keep_alive_timeout_s": KEEP_ALIVE}
    # The metrics count requests; a line in a log for each of them costs more than some models.
    quiet = {"enable_access_log": False}
    serve.start(proxy_location="HeadOnly", http_options=options, logging_config=quiet)
    try:
        serve.run(application(path, settings), name=settings.name, route_prefix="/", logging_config=quiet)
    except RuntimeError as error:
        raise IgniterError(f"Ray Serve does not deploy '{settings.name}': {error}") from error


def _packed(path: Path) -> bytes:
    """Returns the model and its files as an archive; empty if they are too large to send."""
    files = sorted(f for f in path.iterdir() if f.is_file()) if path.is_dir() else [path]
    if not path.is_dir():
        files += [path.parent / name for name in external_files(path)]
    if sum(f.stat().st_size for f in files) > MOST_BYTES:
        return b""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for file in files:
            inside = f"{path.name}/{file.name}" if path.is_dir() else str(file.relative_to(path.parent))
            archive.add(file, arcname=inside)
    return data.getvalue()
