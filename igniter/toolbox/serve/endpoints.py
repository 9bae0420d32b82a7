"""The addresses of a server: health, metadata, inference and metrics, by the open inference protocol.

GET  /v2/health/live, /v2/health/ready
GET  /v2, /v2/models/NAME, /v2/models/NAME/ready        with or without /versions/1 after the name
POST /v2/models/NAME/infer
GET  /metrics                                           for Prometheus
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from igniter._version import __version__
from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.memory import bytes_text
from igniter.toolbox.serve.batching import Full, Run
from igniter.toolbox.serve.protocol import HEADER_LENGTH, decode, encode
from igniter.toolbox.serve.tensors import BadRequest, Tensor

VERSION = "1"
"""The only version of a served model."""


HEADERS = {503: {"retry-after": "1"}, 413: {"connection": "close"}}
"""Headers of a response with an error, by status. A body that is too large is not read to its end, so its connection
is of no more use."""


class Unavailable(IgniterError):
    """Raised if no replica of the model answers in time."""

    code = "IGN0803"


class Metrics:
    """Counts and times of requests, in a registry of their own."""

    def __init__(self, model: str):
        client = require("prometheus_client")
        self._client, self.registry = client, client.CollectorRegistry()
        given: dict[str, Any] = {"registry": self.registry}
        self._requests = client.Counter("igniter_requests", "Requests by status", ["model", "status"], **given)
        self._seconds = client.Histogram(
            "igniter_request_seconds", "Seconds from request to response", ["model"], **given
        )
        self._retries = client.Counter("igniter_retries", "Calls repeated after a lost replica", ["model"], **given)
        self._batches = client.Histogram(
            "igniter_batch_requests", "Requests in a batch", ["model"], buckets=(1, 2, 4, 8, 16, 32, 64), **given
        )
        self._model = model
        self._retries.labels(model)

    def answered(self, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(self._model, str(status)).inc()
        self._seconds.labels(self._model).observe(seconds)

    def retried(self) -> None:
        """Counts a repeated call."""
        self._retries.labels(self._model).inc()

    def batched(self, size: int) -> None:
        """Counts a batch of `size` requests."""
        self._batches.labels(self._model).observe(size)

    def text(self) -> bytes:
        """Returns the metrics in the format of Prometheus."""
        return self._client.generate_latest(self.registry)


class TooLarge(IgniterError):
    """Raised for a request whose body is larger than the server takes."""

    code = "IGN0805"


@dataclass
class Endpoints:
    """Answers HTTP requests about one model.

    `infer` computes the outputs; `ready` says if it can. `max_request` limits the body of a request, in bytes.
    """

    name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    infer: Run
    ready: Callable[[], Awaitable[bool]]
    metrics: Metrics
    max_request: int

    async def __call__(self, request: Any) -> Any:
        """Answers one request: a `starlette.requests.Request` becomes a `starlette.responses.Response`."""
        responses = require("starlette.responses")
        begin, path = time.perf_counter(), [p for p in str(request.url.path).split("/") if p]
        if request.method == "GET" and path == ["metrics"]:
            return responses.Response(self.metrics.text(), media_type="text/plain; version=0.0.4")
        try:
            if request.method == "POST":
                return await self._infer(request, path, begin)
            status, document = await self._look(path)
        except NotThere as error:
            status, document = 404, {"error": error.message}
        return responses.JSONResponse(document, status)

    async def _look(self, path: list[str]) -> tuple[int, dict[str, Any]]:
        """Returns the status and document for a GET."""
        match path:
            case ["v2"]:
                return 200, {"name": "igniter", "version": __version__, "extensions": ["binary_tensor_data"]}
            case ["v2", "health", "live"]:
                return 200, {"live": True}
            case ["v2", "health", "ready"]:
                ready = await self.ready()
                return 200 if ready else 503, {"ready": ready}
            case ["v2", "models", name, *rest]:
                return await self._look_at_model(name, _without_version(rest))
            case _:
                raise NotThere(f"there is nothing at /{'/'.join(path)}")

    async def _look_at_model(self, name: str, rest: list[str]) -> tuple[int, dict[str, Any]]:
        self._require_model(name)
        if rest == ["ready"]:
            ready = await self.ready()
            return 200 if ready else 503, {"name": self.name, "ready": ready}
        if rest:
            raise NotThere(f"there is nothing at {'/'.join(rest)} of a model")
        described = {
            key: [{"name": t.name, "datatype": t.datatype, "shape": t.shape} for t in tensors]
            for key, tensors in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        return 200, {"name": self.name, "versions": [VERSION], "platform": "onnxruntime_onnx", **described}

    async def _infer(self, request: Any, path: list[str], begin: float) -> Any:
        responses = require("starlette.responses")
        if path[:2] != ["v2", "models"] or len(path) < 4 or _without_version(path[3:]) != ["infer"]:
            raise NotThere(f"nothing takes requests at /{'/'.join(path)}; send them to /v2/models/{self.name}/infer")
        headers = dict[str, str]()
        try:
            self._require_model(path[2])
            asked = decode(await self._body(request), request.headers.get(HEADER_LENGTH), self.inputs, self.outputs)
            body, headers = encode(self.name, asked, self.outputs, await self.infer(asked.feed))
            status = 200
        except IgniterError as error:
            body, status = _error(error.message), _status(error)
            headers = {"content-type": "application/json", **HEADERS.get(status, {})}
        self.metrics.answered(status, time.perf_counter() - begin)
        return responses.Response(body, status, headers)

    async def _body(self, request: Any) -> bytes:
        """Returns the body; raises `TooLarge` before more than the limit is in memory."""
        found = bytearray()
        announced = request.headers.get("content-length", "0")
        if not (announced.isdigit() and int(announced) > self.max_request):
            async for chunk in request.stream():
                found += chunk
                if len(found) > self.max_request:
                    break
            else:
                return bytes(found)
        raise TooLarge(f"the request is larger than {bytes_text(self.max_request)}, the limit of this server")

    def _require_model(self, name: str) -> None:
        if name != self.name:
            raise NotThere(f"there is no model '{name}'; this server has '{self.name}'")


class NotThere(IgniterError):
    """Raised for an address or model that the server does not have."""

    code = "IGN0804"


def _without_version(rest: list[str]) -> list[str]:
    if rest[:1] != ["versions"]:
        return rest
    if rest[1:2] != [VERSION]:
        raise NotThere(f"the model has one version, {VERSION}")
    return rest[2:]


def _status(error: IgniterError) -> int:
    if isinstance(error, NotThere):
        return 404
    if isinstance(error, TooLarge):
        return 413
    if isinstance(error, BadRequest):
        return 400
    return 503 if isinstance(error, (Full, Unavailable)) else 500


def _error(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


def require(module: str) -> Any:
    """Imports a module of the extra `serve`; raises `IgniterError` that names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise IgniterError(f"a server needs {module.split('.')[0]}: {install_command('serve')}") from error
