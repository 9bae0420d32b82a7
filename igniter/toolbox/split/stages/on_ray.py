"""Stages as actors of a Ray cluster: every stage, or rank, on a machine, the models sent to it once.

Ray is an optional extra (`pip install 'onnx-igniter[ray]'`). Actors are spread over the nodes of the cluster. Values
between two stages pass through the calling process.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.frontend.reading import external_files
from igniter.toolbox.split.stages.manifest import Manifest, read_manifest
from igniter.toolbox.split.stages.running import Caller, RankRunner, StageRunner, Values, local_caller, runner_of

NAMESPACE = "igniter"
START_SECONDS = 300.0
MOST_BYTES = 1 << 31


class RayStages:
    """The stages, or ranks, of a folder on a Ray cluster; a context manager that ends the actors.

    `cluster` is an address, `auto` for the cluster of this machine, `local` for a new one, or "" for the current
    connection of the process. With a `name` the actors stay when the context ends, until `stop`: a later context for
    the same folder and name, in any process, reuses them.
    """

    def __init__(self, folder: str | Path | Manifest, cluster: str = "auto", *, cpus: float = 1.0, name: str = ""):
        self.manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
        self._ray = _import_ray()
        self._ours = connect(self._ray, cluster)
        if name and self._ours and cluster == "local":
            self._ray.shutdown()
            raise IgniterError("stages that stay need a cluster that does: --name and --ray local do not go together")
        self.name = name
        self.actors: list[Any] = []
        try:
            self._start(cpus)
        except BaseException:  # an interrupt, too, ends the processes; raised again
            self.name = ""
            self.close()
            raise
        self.runner: StageRunner | RankRunner = runner_of(
            self.manifest, [self._caller(i) for i in range(len(self.actors))]
        )

    def _start(self, cpus: float) -> None:
        there, count = float(self._ray.cluster_resources().get("CPU", 0)), len(self.manifest.stages)
        if there < cpus * count:
            raise IgniterError(
                f"the cluster has {there:g} CPUs, and {count} stages ask for {cpus:g} each: ask for less (--cpus)"
            )
        options: dict[str, Any] = {"num_cpus": cpus, "scheduling_strategy": "SPREAD", "max_concurrency": 1}
        kind = self._ray.remote(_Actor)
        for stage, models in zip(self.manifest.stages, self.manifest.places(), strict=True):
            given = dict(options)
            if self.name:
                given |= {"name": f"{self.name}.{stage.name}", "namespace": NAMESPACE, "lifetime": "detached"}
                given["get_if_exists"] = True
            packed = self._ray.put(_packed(self.manifest.folder, models))
            self.actors.append(kind.options(**given).remote(packed, models))
        try:
            self.nodes: list[str] = self._ray.get([a.node.remote() for a in self.actors], timeout=START_SECONDS)
        except self._ray.exceptions.GetTimeoutError as error:
            raise IgniterError(
                f"the cluster did not start {len(self.actors)} stages in {START_SECONDS:.0f} seconds; each asks for "
                f"{cpus:g} CPUs (--cpus)"
            ) from error
        except self._ray.exceptions.RayError as error:
            raise IgniterError(f"a stage did not start on the cluster: {_cause(error)}") from error

    def _caller(self, i: int) -> Caller:
        stage = self.manifest.stages[i]

        def call(index: int, values: Values) -> dict[str, Any]:
            try:
                return self._ray.get(self.actors[i].call.remote(index, dict(values)))
            except self._ray.exceptions.RayError as error:
                raise IgniterError(f"{stage.name}: {_cause(error)}") from error

        return call

    def stop(self) -> None:
        """Ends the actors, also those with a name."""
        self.name = ""
        self.close()

    def close(self) -> None:
        """Ends unnamed actors, and a cluster started for them."""
        if not self.name:
            for actor in self.actors:
                self._ray.kill(actor)
        self.actors = []
        if self._ours:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Actor:
    """The sessions of one place, on the cluster. The machine must have Igniter installed."""

    def __init__(self, packed: bytes, models: list[str]):
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-stage-")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(self._folder.name, filter="data")
        self._call = local_caller([str(Path(self._folder.name) / m) for m in models])

    def node(self) -> str:
        """Returns the node of the actor."""
        import ray  # pyright: ignore[reportMissingImports]

        return str(ray.get_runtime_context().get_node_id())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

    def call(self, index: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs of one of the models."""
        return self._call(index, values)


def _packed(folder: Path, models: list[str]) -> bytes:
    """Returns the models and the files of their external data, as an archive."""
    names = dict.fromkeys(n for m in models for n in (m, *external_files(folder / m)))
    size = sum((folder / n).stat().st_size for n in names)
    if size > MOST_BYTES:
        raise IgniterError(
            f"{models[0]} and its weights are {size / 1e9:.1f} GB, more than is sent at once: more stages"
        )
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            archive.add(folder / name, arcname=name)
    return data.getvalue()


def _import_ray() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise IgniterError(f"stages on a cluster need Ray: {install_command('ray')}") from error
    return ray  # pyright: ignore[reportUnknownVariableType]


def connect(ray: Any, cluster: str) -> bool:
    """Connects to a cluster; returns true if the connection is ours to end."""
    if ray.is_initialized():
        return False
    given: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(**given, **({} if cluster == "local" else {"address": cluster or "auto"}))
    except ConnectionError as error:
        raise IgniterError(f"there is no Ray cluster at {cluster}: {error}; --ray local starts one here") from error
    return True


def _cause(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1]
