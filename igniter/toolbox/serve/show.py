"""`igniter serve`: chooses where a model or stages are served, and prints the address or the results."""

from __future__ import annotations

import signal
import threading
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.runtime.cache import parse_size
from igniter.toolbox.output import console, parse_shapes, print_json
from igniter.toolbox.serve.endpoints import require
from igniter.toolbox.serve.here import serve_here
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.on_ray import deploy
from igniter.toolbox.serve.repository import write_repository
from igniter.toolbox.serve.settings import Settings
from igniter.toolbox.split.run_stages import serve as serve_stages
from igniter.toolbox.split.stages.manifest import FILE as STAGES
from igniter.toolbox.split.stages.on_ray import connect

if TYPE_CHECKING:
    from igniter.toolbox.serve.request import ServeRequest

SERVED = {
    *("model", "name", "host", "port", "threads", "concurrency", "batch", "wait", "queue", "max_request"),
    *("shape", "seed", "json"),
}
"""The options of a server of one model."""

MODES: dict[str, set[str]] = {
    "a model in this process": SERVED,
    "a model on a cluster (--ray)": SERVED | {"ray", "replicas", "cpus", "patience", "detach"},
    "a repository (--triton)": SERVED - {"host", "port", "concurrency", "queue", "max_request"}
    | {"triton", "at", "replicas"},
    "stages": {"model", "name", "ray", "cpus", "inputs", "shape", "items", "reference", "seed", "json"},
}
"""The options of each way to serve. Another one would have no effect, and is an error."""


def run(asked: ServeRequest) -> int:
    """Serves until interrupted, or writes the repository; returns the exit status."""
    where = Path(asked.model)
    if (where / STAGES).is_file():
        _check_options(asked, "stages")
        return serve_stages(asked)
    if not where.exists():
        raise IgniterError(f"there is no {asked.model}")
    if asked.triton:
        _check_options(asked, "a repository (--triton)")
        return _repository(asked)
    if asked.ray:
        _check_options(asked, "a model on a cluster (--ray)")
        return _on_ray(asked)
    _check_options(asked, "a model in this process")
    return _here(asked)


def _check_options(asked: ServeRequest, mode: str) -> None:
    """Raises `IgniterError` for an option that has no effect in this mode."""
    for field in fields(asked):
        if field.name not in MODES[mode] and getattr(asked, field.name) != field.default:
            modes = [name for name, names in MODES.items() if field.name in names]
            raise IgniterError(
                f"--{field.name.replace('_', '-')} has no effect for {mode}; it is for {' and '.join(modes)}"
            )
    if asked.wait and asked.batch == 1:
        raise IgniterError("--wait is for requests that are joined: give --batch")


def settings_of(asked: ServeRequest) -> Settings:
    """Returns the settings; the model's default name is that of its file, without the ending."""
    name = asked.name or Path(asked.model).resolve().stem
    if not all(c.isalnum() or c in "-_." for c in name):
        raise IgniterError(f"'{name}' cannot be the name of a model in an address: give another one with --name")
    return Settings(
        name=name,
        host=asked.host,
        port=asked.port,
        threads=asked.threads,
        concurrency=asked.concurrency,
        batch=asked.batch,
        wait_ms=asked.wait,
        queue=asked.queue,
        max_request=parse_size(asked.max_request),
        replicas=asked.replicas,
        cpus=asked.cpus,
        patience=asked.patience,
    )


def _sizes(asked: ServeRequest) -> dict[str, int]:
    if not asked.shape:
        return {}
    if asked.batch == 1:
        raise IgniterError("--shape gives the sizes at which --batch is checked: give --batch")
    shapes: Any = parse_shapes(asked.shape)
    if len(shapes) > 1:
        raise IgniterError("--shape: one set of sizes is enough to check --batch")
    return dict(shapes[0])


def _checked(asked: ServeRequest, settings: Settings) -> ServedModel:
    """Loads the model here, which checks it, and the batches of requests."""

    model = ServedModel(asked.model, threads=settings.threads, slots=settings.concurrency)
    sizes = _sizes(asked)
    if settings.batch > 1:
        model.check_batching(sizes, asked.seed)
    return model


def _repository(asked: ServeRequest) -> int:

    settings = settings_of(asked)
    if settings.batch > 1:
        _checked(asked, settings)
    written = write_repository(asked.model, asked.triton, asked.at, settings)
    if asked.json:
        print_json({"model": str(written), "at": asked.at})
    else:
        console().print(f"written to {written}, for a server that has the repository at {asked.at}", markup=False)
    return 0


def _here(asked: ServeRequest) -> int:

    settings = settings_of(asked)
    model = _checked(asked, settings)

    def announce(address: str) -> None:
        _announce(asked, settings, address)

    serve_here(model, settings, announce)
    return 0


def _on_ray(asked: ServeRequest) -> int:

    settings = settings_of(asked)
    if asked.port == 0:
        raise IgniterError("--port 0 is for a server in this process; on a cluster, name a port")
    if asked.detach and asked.ray == "local":
        raise IgniterError("replicas that stay need a cluster that does: --detach and --ray local do not go together")
    _checked(asked, settings)
    ray, serve = require("ray"), require("ray.serve")
    ours = connect(ray, asked.ray)
    try:
        deploy(asked.model, settings)
        _announce(asked, settings, f"http://{asked.host}:{asked.port}")
        if not asked.detach:
            _wait()
    finally:
        if not asked.detach:
            serve.delete(settings.name)
        if ours:
            ray.shutdown()
    return 0


def _announce(asked: ServeRequest, settings: Settings, address: str) -> None:
    """Prints the address of the model."""
    if asked.json:
        print_json({"model": settings.name, "address": address})
    else:
        console().print(f"{settings.name}: {address}/v2/models/{settings.name}/infer", markup=False, highlight=False)


def _wait() -> None:
    """Waits for an interrupt or a termination."""
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    ended.wait()
