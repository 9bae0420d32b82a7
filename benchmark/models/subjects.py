"""Every model that a benchmark takes by name, in one form: a file, the sizes that it is run at, and inputs for each.

There are three kinds: transformers that torch exports (`zoo.py`), networks that code writes out (`networks.py`), and
models in Python packages (`packaged.py`), whose names have dashes for spaces here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmark.export import EXPORTERS, ensure
from benchmark.models.networks import NETWORKS
from benchmark.models.packaged import MODELS, Packaged, fetch
from benchmark.models.zoo import ARCHITECTURES, Architecture, find

Arrays = Mapping[str, np.ndarray[Any, Any]]
Dims = dict[str, int]


@dataclass(frozen=True)
class Sizes:
    """What a command line says of the sizes of models; `None` where it says nothing."""

    batch: Sequence[int] | None = None
    sequence: Sequence[int] | None = None
    """Lengths; of a decode step those of its past."""
    size: int | None = None
    """The sides of images."""
    channels: int | None = None
    """Of the networks of diffusion."""

    def given(self) -> set[str]:
        return {name for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Subject:
    """A model that can be run: its file, a row of a table for each of `cases`, and inputs for it."""

    name: str
    file: Path
    cases: tuple[Dims, ...]
    """What there is to say of the size: values of symbolic dims, the sides of images, channels."""
    feed: Callable[[Dims], Arrays]
    family: str = ""
    """What ORT's transformers optimizer takes it for; nothing where it is no transformer."""
    torch: tuple[str, ...] = ()
    """Where the torch module is that it comes from, as `Task.torch` says."""
    without_effect: frozenset[str] = frozenset()
    """The sizes of the command line that it does not have."""
    noise: float = 0.0
    """What the model itself does not know: how far ORT with all its optimisations is from ORT with none, as errors are
    given."""
    fixed: bool = False
    """Whether it has one size, which its steps can be counted with; names that exporters give to dims are often no
    expressions of those of the inputs."""


def names() -> list[str]:
    return [*ARCHITECTURES, *NETWORKS, *PACKAGED]


PACKAGED: dict[str, Packaged] = {m.name.replace(" ", "-"): m for m in MODELS}


def subject(name: str, folder: Path, sizes: Sizes = Sizes(), exporter: str = next(iter(EXPORTERS))) -> Subject:
    """The model called `name`, made if it is not there; what code writes out goes to `folder`."""
    check(name)
    if name in NETWORKS:
        return _written(name, folder, sizes)
    if name in PACKAGED:
        return _packaged(name, sizes)
    return _exported(find(name), sizes, exporter)


def check(name: str) -> None:
    """`ValueError` for a name that no model has, with those that there are."""
    slugs = (a.slug for a in ARCHITECTURES.values())
    if name not in (*names(), *slugs):
        raise ValueError(f"there is no model called '{name}'; there are {', '.join(names())}")


def _exported(architecture: Architecture, sizes: Sizes, exporter: str) -> Subject:
    path = ensure(architecture, exporter)

    def feed(dims: Dims) -> Arrays:
        from igniter.frontend import import_model
        from igniter.runtime.session import make_session
        from igniter.verification.graph_facts import index_limits
        from igniter.verification.inputs import random_inputs
        from igniter.verification.specs import specs_of

        made = random_inputs(specs_of(make_session(path)), dims, index_limits(import_model(path)))
        # The torch module takes them in this order.
        return {name: made[name] for name in architecture.all_inputs}

    return Subject(
        architecture.slug,
        path,
        tuple(architecture.sizes(b, s) for b, s in product(sizes.batch or [1], sizes.sequence or [32, 128])),
        feed,
        architecture.family,
        ("benchmark.export:torch_module", architecture.name),
        frozenset(sizes.given() & {"size", "channels"}),
    )


def _written(name: str, folder: Path, sizes: Sizes) -> Subject:
    from igniter.verification.inputs import random_inputs
    from igniter.verification.specs import InputSpec

    taken = {"size", "channels"} & set(inspect.signature(NETWORKS[name]).parameters)
    chosen = {option: getattr(sizes, option) for option in sorted(taken & sizes.given())}
    model = NETWORKS[name](**chosen)
    shapes = {
        v.name: tuple(d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim) for v in model.graph.input
    }
    side = int(next(iter(shapes.values()))[-1])
    path = folder / f"{name}.onnx"
    # A file of protocol buffers ends at 2 GB.
    large = sum(len(w.raw_data) for w in model.graph.initializer) > 1 << 30
    onnx.save_model(model, path, save_as_external_data=large, location=f"{path.stem}.data")
    specs = [InputSpec(name, "float", shape) for name, shape in shapes.items()]
    return Subject(
        name,
        path,
        tuple({"batch": batch, "size": side, **chosen} for batch in sizes.batch or [1]),
        lambda dims: random_inputs(specs, dims),
        without_effect=frozenset(sizes.given() - {"batch", *taken}),
    )


def _packaged(name: str, sizes: Sizes) -> Subject:
    """At the one size that its users run it at."""
    from onnxruntime import GraphOptimizationLevel

    from benchmark.peers.race import largest_error
    from igniter.runtime.session import make_session
    from igniter.verification.specs import specs_of

    entry = PACKAGED[name]
    fetch(entry.package)
    session = make_session(entry.file)
    plain = make_session(entry.file, graph_optimization_level=GraphOptimizationLevel.ORT_DISABLE_ALL)
    inputs = entry.feed(session)
    dims: Dims = {}
    for spec in specs_of(session):
        for dim, size in zip(spec.exprs(), inputs[spec.name].shape, strict=True):
            if dim.constant is None:
                dims[str(dim)] = size
    return Subject(
        name,
        entry.file,
        (dims,),
        lambda _: inputs,
        without_effect=frozenset(sizes.given()),
        fixed=True,
        noise=largest_error(session.run(None, inputs), plain.run(None, inputs)),
    )
