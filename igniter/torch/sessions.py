"""Sessions from prepared graphs and their frozen weights. Exported graphs and compiled models are cached."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

import igniter
from igniter.compiler.compilation import chosen_options
from igniter.compiler.results import Results
from igniter.runtime.cache import cache_key, default_cache
from igniter.torch.exporter import OPSET, to_onnx
from igniter.torch.graphs import Prepared, graph_text, tensor_bytes
from igniter.torch.names import Tensor, torch
from igniter.torch.options import TorchOptions
from igniter.torch.statistics import PieceReport
from igniter.torch.versions import versions

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact

ALIGNMENT = 4096
UNTOUCHED = 1 << 40
"""Nanoseconds, larger than any clock error."""
KEYED = {
    "options",
    "target",
    "machine",
    "sizes",
    "precision",
    "winograd",
    "fusion_author",
    "sanitize",
    "debug_info",
    "strict",
    "subnormals",
    "tile_weights",
}
"""Options of `igniter.compile` in the key of a cached result. With any other option, results are not cached."""
INSIDE = 1024
"""Weights smaller than this number of bytes are stored in the model itself."""


def make_session(
    prepared: Prepared,
    frozen: Mapping[str, Tensor],
    options: TorchOptions,
    report: PieceReport,
    keep: Callable[[Prepared, bytes], None] | None = None,
) -> Any:
    """Returns an `InferenceSession` of the graph with the inputs in `frozen` as constants.

    Unused inputs are removed. `keep` receives the exported model. Errors of the exporter, Igniter and ONNX Runtime are
    passed on.
    """
    start = time.perf_counter()
    data = exported(prepared, options, report)
    if keep is not None:
        keep(prepared, data)
    report.add_seconds("export", time.perf_counter() - start)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="igniter-torch-") as folder:
        path = Path(folder) / "model.onnx"
        write_frozen(data, frozen, path)
        report.add_seconds("freeze", time.perf_counter() - start)
        start = time.perf_counter()
        artifact = compiled(path, options)
    report.compiled_from_cache = bool(artifact.report.get("from_cache"))
    report.add_seconds("compile", time.perf_counter() - start)
    start = time.perf_counter()
    settings: dict[str, Any] = {
        "intra_op_num_threads": options.threads or torch.get_num_threads(),
        "log_severity_level": 4,
        **options.session_options,
    }
    session: Any = artifact.session(**settings)
    # The files exist as long as this object.
    session.igniter_artifact = artifact
    report.add_seconds("session", time.perf_counter() - start)
    return session


def compiled(path: Path, options: TorchOptions) -> Artifact:
    """Returns the compiled model, from the cache if possible."""
    given: dict[str, Any] = {"verify": False, "cache": options.cache, **options.compile_options}
    if not set(options.compile_options) <= KEYED or not options.cache:
        return igniter.compile(path, **given)
    settings = {name: value for name, value in options.compile_options.items() if name != "strict"}
    results = Results.of(default_cache(), path, chosen_options(**settings), bool(given.get("strict")))
    if results is None:
        return igniter.compile(path, **given)
    found = results.take(None, None)
    if found is None:
        module = igniter.load(path)
        found = module.compile(**given)
        # A recent file counts as possibly changed since it was read. This one belongs to the call, so it is unchanged.
        replace(results, opened=time.time_ns() + UNTOUCHED).keep(found, sorted(module.external), None)
    return found


def exported(prepared: Prepared, options: TorchOptions, report: PieceReport) -> bytes:
    """Returns the graph as an ONNX model with every parameter as an input."""
    if prepared.graph is None:
        report.exported_from_cache = True
        return prepared.model
    if not options.cache:
        return to_onnx(prepared.graph, prepared.sizes)
    store = default_cache()
    key = cache_key("torch graph", graph_text(prepared.graph, prepared), str(OPSET), *versions())
    found = store.get(key)
    report.exported_from_cache = found is not None
    if found is None:
        found = to_onnx(prepared.graph, prepared.sizes)
        store.put(key, found)
    return found


def write_frozen(data: bytes, frozen: Mapping[str, Tensor], path: Path) -> None:
    """Writes a model with some inputs as constants, and the large ones in a file beside it."""
    model = onnx.load_model_from_string(data)
    graph = model.graph
    used = {name for node in graph.node for name in _reads(node)}
    kept: list[Any] = []
    with (path.parent / "weights.bin").open("wb") as file:
        for info in graph.input:
            if info.name in frozen:
                graph.initializer.append(_initializer(info, frozen[info.name], file))
            elif info.name in used:
                kept.append(info)
        if file.tell() == 0:
            file.write(bytes(ALIGNMENT))
    del graph.input[:]
    graph.input.extend(kept)
    path.write_bytes(model.SerializeToString())


def _reads(node: Any) -> list[str]:
    """Returns the names of the values read by a node and its subgraphs."""
    found = list(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found += [name for inner in graph.node for name in _reads(inner)]
            found += [output.name for output in graph.output]
    return found


def _initializer(info: Any, weight: Tensor, file: Any) -> Any:
    made = onnx.TensorProto(name=info.name, data_type=info.type.tensor_type.elem_type, dims=list(weight.shape))
    content = memoryview(tensor_bytes(weight))
    if content.nbytes < INSIDE:
        made.raw_data = bytes(content)
        return made
    file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT, os.SEEK_SET)
    made.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", file.tell()), ("length", content.nbytes)):
        made.external_data.add(key=key, value=str(value))
    file.write(content)
    return made
