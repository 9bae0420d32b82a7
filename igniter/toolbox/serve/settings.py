"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How a model is served.

    `patience` is how long, in seconds, a request looks for a replica. `max_request` limits the body of a request, in
    bytes.
    """

    name: str
    host: str = "127.0.0.1"
    port: int = 8000
    threads: int = 0
    concurrency: int = 1
    batch: int = 1
    wait_ms: float = 0.0
    queue: int = 1024
    max_request: int = 256 << 20
    replicas: int = 1
    cpus: float = 1.0
    patience: float = 60.0
