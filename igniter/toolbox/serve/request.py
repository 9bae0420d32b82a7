"""The arguments and options of `igniter serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Inputs, Json, Seed, Shapes, Threads, WholeModel
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ServeRequest(Request):
    """Serve a model over HTTP here or on Ray, or run stages on Ray.

    A compiled folder or ONNX file is served by the open inference protocol, in this process or, with --ray, as replicas
    on a Ray cluster (extra `serve`). --triton writes a model repository for Triton Inference Server instead. A folder
    of stages runs on a Ray cluster (extra `ray`).
    """

    model: Annotated[str, Argument("A compiled folder, an ONNX file, or a folder that `igniter split` wrote.")]
    name: Annotated[str, Option("The name of the model, or under which stages stay on the cluster.")] = ""
    host: Annotated[str, Option("The address to listen at.")] = "127.0.0.1"
    port: Annotated[int, Option("The port to listen at; 0 takes a free one.", min=0, max=65535)] = 8000
    threads: Threads = 0
    concurrency: Annotated[int, Option("Runs of the model at a time, in each process.", min=1)] = 1
    batch: Annotated[int, Option("Join requests along the first dim, up to this size.", min=1)] = 1
    wait: Annotated[float, Option("Milliseconds that a request waits for others of its batch.", min=0)] = 0.0
    queue: Annotated[int, Option("Requests that may wait; more get the status 503.", min=1)] = 1024
    max_request: Annotated[
        str,
        Option("The largest body of a request; a larger one gets the status 413.", "--max-request", metavar="SIZE"),
    ] = "256M"
    ray: Annotated[
        str, Option("The Ray cluster: an address, auto for the one of this machine, local for a new one.", "--ray")
    ] = ""
    replicas: Annotated[int, Option("Sessions on the cluster, or instances in Triton.", min=1)] = 1
    cpus: Annotated[float, Option("CPUs that the cluster reserves for each replica or stage.", min=0)] = 1.0
    patience: Annotated[float, Option("Seconds for which a request tries to reach a replica.", min=0)] = 60.0
    detach: Annotated[bool, Option("Leave the replicas on the cluster and return.", "--detach")] = False
    triton: Annotated[str, Option("Write the model into this model repository instead.")] = ""
    at: Annotated[str, Option("With --triton: the repository's path on the server.", "--at")] = "/models"
    inputs: Inputs = ""
    shape: Shapes = ()
    items: Annotated[int, Option("With stages: how many inputs go through, made anew for each.", min=1)] = 4
    reference: WholeModel = ""
    seed: Seed = 0
    json: Json = False
