"""The Python API: load a model, run passes over it, compile it.

import igniter

artifact = igniter.compile("model.onnx", target="native")
session = artifact.session(intra_op_num_threads=1)

module = igniter.load("model.onnx").run_passes("infer-shapes,fold-constants")
print(module)

A finished result comes from the cache in less time than the compiler takes to import, so the module with the compiler
(`igniter.module`) is imported at the first use of one of its names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from igniter.compiler.arguments import CompileArguments, require_compile_arguments, require_known, require_path
from igniter.compiler.artifact import VerificationFailed
from igniter.compiler.bounded import Bounds, compile_bounded
from igniter.compiler.compilation import chosen_options
from igniter.compiler.results import Results
from igniter.runtime.cache import default_cache

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact
    from igniter.compiler.compile_report import kernel_digest, report
    from igniter.compiler.driver import is_fused, lower_to_kernels
    from igniter.module import Model, Module, blaming, load, parse
    from igniter.toolbox.shapes.shape_engine import ShapeEngine

__all__ = [
    "Module",
    "VerificationFailed",
    "blaming",
    "compile",
    "is_fused",
    "kernel_digest",
    "load",
    "lower_to_kernels",
    "parse",
    "report",
    "shape_engine",
]

_WHERE = {
    "Module": "igniter.module",
    "blaming": "igniter.module",
    "is_fused": "igniter.compiler.driver",
    "kernel_digest": "igniter.compiler.compile_report",
    "load": "igniter.module",
    "lower_to_kernels": "igniter.compiler.driver",
    "parse": "igniter.module",
    "report": "igniter.compiler.compile_report",
}
"""The names that need the compiler, by their module."""

VERIFY_OPTIONS = {"shapes": None, "inputs": None, "rtol": None, "atol": 0.0, "seed": 0, "budget": None}
"""The options that `compile` passes to `Artifact.verify`, with their defaults."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'igniter.api' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def shape_engine(model: Model, values: Sequence[str] | None = None) -> ShapeEngine:
    """Returns `load(model).shape_engine(values)`: shapes of a model's values at any sizes, in microseconds."""
    from igniter.module import load

    return load(model).shape_engine(values)


def compile(model: Model, output: str | PathLike[str] | None = None, **options: Unpack[CompileArguments]) -> Artifact:
    """Returns `load(model).compile(output, ...)`. For a model file compiled before with the same options, the finished
    result comes from the cache. Raises `UnknownArgument` for an argument that `Module.compile` does not have."""
    require_known("compile", options.keys(), CompileArguments.__annotations__.keys())
    said: dict[str, Any] = {**options}
    require_path("compile", "output", output)
    require_compile_arguments("compile", said)
    bounds = Bounds.of(said.pop("max_memory", None), said.pop("max_seconds", None))
    if bounds is not None:
        return compile_bounded(model, output, said, bounds)
    given = {k: said[k] for k, default in VERIFY_OPTIONS.items() if said.get(k, default) != default}
    verify = given if options.get("verify", True) else None
    results = _results(model, said)
    if results is not None:
        load_it = bool(options.get("load", True))
        found = results.take(Path(output) if output is not None else None, verify, load_it)
        if found is not None:
            return found
    # Not before: a result from the cache needs no compiler.
    from igniter.module import load

    progress = options.get("progress")
    if results is not None and progress is not None:
        progress("reading")
    module = load(model)
    artifact = module.compile(output, **options)
    if results is not None:
        results.keep(artifact, sorted(module.external), verify)
    return artifact


def _results(model: Model, options: Mapping[str, Any]) -> Results | None:
    """Returns the cached results of a model's file with these options; `None` if there can be none."""
    if not isinstance(model, (str, PathLike)) or str(model).endswith(".mlir") or not options.get("cache", True):
        return None
    if options.get("measure") or options.get("threads", 1) != 1 or options.get("observers"):
        # The outcome of a measurement has an entry of its own, by this machine. Observers want passes that run.
        return None
    named = (
        "options",
        "target",
        "machine",
        "sizes",
        "precision",
        "winograd",
        "subnormals",
        "tile_weights",
        "fusion_author",
        "sanitize",
        "passes",
        "debug_info",
    )
    chosen = chosen_options(**{k: options[k] for k in named if k in options})
    return Results.of(default_cache(), Path(cast("str", model)), chosen, bool(options.get("strict")))
