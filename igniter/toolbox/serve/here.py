"""A server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from igniter.toolbox.serve.batching import Batcher
from igniter.toolbox.serve.endpoints import Endpoints, Metrics, require
from igniter.toolbox.serve.model import ServedModel

if TYPE_CHECKING:
    from igniter.toolbox.serve.settings import Settings


KEEP_ALIVE = 75
"""Seconds for which an idle connection stays open; clients that reuse it sooner never meet one that is closing."""


def application(model: ServedModel, settings: Settings) -> Any:
    """Returns the ASGI application that serves `model`."""
    applications, routing = require("starlette.applications"), require("starlette.routing")

    async def ready() -> bool:
        return True

    metrics = Metrics(settings.name)
    infer = batcher_of(model, settings, metrics.batched)
    endpoints = Endpoints(settings.name, model.inputs, model.outputs, infer, ready, metrics, settings.max_request)

    # A function, not the object: Starlette takes an object as an ASGI application.
    async def answer(request: Any) -> Any:
        return await endpoints(request)

    return applications.Starlette(routes=[routing.Route("/{path:path}", answer, methods=["GET", "POST"])])


def batcher_of(model: ServedModel, settings: Settings, on_batch: Callable[[int], object]) -> Batcher:
    """Returns the queue in front of a model; `on_batch` is called with the number of requests of each batch."""
    return Batcher(
        model.run_soon, settings.batch, settings.wait_ms / 1e3, settings.concurrency, settings.queue, on_batch
    )


def serve_here(model: ServedModel, settings: Settings, started: Callable[[str], object]) -> None:
    """Serves until interrupted (SIGINT, SIGTERM): requests in progress are answered first. `started` is called with
    the address once the server accepts requests."""
    uvicorn = require("uvicorn")
    config = uvicorn.Config(
        application(model, settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE,
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            host, port = server.servers[0].sockets[0].getsockname()[:2]
            started(f"http://{host}:{port}")
        await task

    asyncio.run(run())
