"""A language model on disk: a compiled folder, a folder of onnxruntime-genai or of an export, or an ONNX file.

Beside the model may be `genai_config.json` (names, limits, tokens that end a text), `generation_config.json` and
`config.json` (the same tokens), `tokenizer.json`, and a chat template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import igniter
from igniter.compiler.artifact import Artifact, read_report
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.toolbox.generate.caches import can_share
from igniter.toolbox.generate.decoder_graph import DecoderGraph, decoder_graph, unknown_sizes, with_sizes
from igniter.toolbox.generate.tokenizer import read_json

GENAI = "genai_config.json"
NAMES = ("model.onnx", "decoder_model_merged.onnx", "model_merged.onnx", "decoder_model.onnx", "model_q4.onnx")
"""The files that exports are called, if no configuration names one."""


@dataclass(frozen=True)
class LanguageModel:
    """A session of a decoder, and the facts beside it."""

    path: Path
    session: Any = field(repr=False)
    graph: DecoderGraph
    config: Mapping[str, Any] = field(repr=False)
    """`genai_config.json`; empty without one."""
    folders: tuple[Path, ...]
    """The folders with the files beside the model: its own, and that of the original of a compiled one."""
    eos: frozenset[int]
    context: int | None
    """The most tokens of a sequence."""


def open_model(where: str | Path, **options: Any) -> LanguageModel:
    """Opens a model and makes a session of it, with options of `igniter.runtime.session.make_session`."""
    path = Path(where)
    if not path.exists():
        raise IgniterError(
            f"there is no model {path}: give a compiled folder, the folder of an export, or an ONNX file"
        )
    folders: list[Path] = [path if path.is_dir() else path.parent]
    if path.is_dir() and read_report(path) is not None:
        artifact = Artifact.load(path)
        file = artifact.model_path
        source = str(cast("Mapping[str, Any]", artifact.report.get("source") or {}).get("path") or "")
        if source and Path(source).parent.is_dir() and file.is_file():
            folders.append(Path(source).parent)
        session = artifact.session(**options)
    else:
        file = path if path.is_file() else _file_in(path)
        session = make_session(file, **options)
    made: Any = session
    configs = [read_json(folder / GENAI) for folder in folders]
    config = configs[0] or configs[-1]
    graph = complete_graph(made, config, file)
    beside = (tuple(folders), frozenset(_eos(config, folders)), _context(config, folders))
    return LanguageModel(file, made, graph, config, *beside)


def _file_in(folder: Path) -> Path:
    """Returns the ONNX file of a folder."""
    named = read_json(folder / GENAI).get("model", {}).get("decoder", {}).get("filename")
    for name in (named, *NAMES):
        for place in (folder, folder / "onnx"):
            if name and (place / str(name)).is_file():
                return place / str(name)
    found = sorted(folder.glob("*.onnx"))
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} ONNX files, of which none is called {NAMES[0]}" if found else "no ONNX file"
    raise IgniterError(f"{folder} has {what}: give the file")


def complete_graph(session: Any, config: Mapping[str, Any], file: Path) -> DecoderGraph:
    """Returns the graph of a session, with all sizes of caches, and whether pasts and presents may share buffers."""
    graph = decoder_graph(session, config, str(file))
    if unknown_sizes(graph):
        graph = with_sizes(graph, _inferred(graph, file))
    unknown = unknown_sizes(graph)
    if unknown:
        raise IgniterError(
            f"{file} does not say the sizes of the cache '{unknown[0]}': write 'head_size' in {GENAI}, or fix the dim "
            "with igniter edit --fix-dim"
        )
    return replace(graph, shared=can_share(session, graph)) if graph.shared is None else graph


def _inferred(graph: DecoderGraph, file: Path) -> dict[str, list[int | None]]:
    """Returns the sizes of caches by shape inference: a graph may state the size of a head in the weights alone."""
    shapes = {value.name: value for value in igniter.load(file).shapes().values}
    found: dict[str, list[int | None]] = {}
    for pair in graph.caches:
        for name in (pair.past, pair.present):
            value = shapes.get(name)
            dims = None if value is None else value.dims
            if dims is not None and len(dims) == len(pair.dims):
                sizes = [int(str(d)) if str(d).isdigit() else None for d in cast("Sequence[Any]", dims)]
                before = found.get(pair.past, [None] * len(sizes))
                found[pair.past] = [a if a is not None else b for a, b in zip(before, sizes, strict=True)]
    return found


def _eos(config: Mapping[str, Any], folders: list[Path]) -> list[int]:
    """Returns the tokens that end a text."""
    places = [config.get("model", {})]
    places += [read_json(folder / name) for folder in folders for name in ("generation_config.json", "config.json")]
    for place in places:
        found: Any = place.get("eos_token_id")
        if found is not None:
            return [int(token) for token in (cast("list[int]", found) if isinstance(found, list) else [found])]
    return []


def _context(config: Mapping[str, Any], folders: list[Path]) -> int | None:
    """Returns the most tokens of a sequence; `None` where nothing says it."""
    found: list[Any] = [config.get("model", {}).get("context_length")]
    for folder in folders:
        plain = read_json(folder / "config.json")
        found += [plain.get(key) for key in ("max_position_embeddings", "n_positions", "n_ctx")]
    return next((int(size) for size in found if isinstance(size, int) and size > 0), None)


__all__ = ["GENAI", "LanguageModel", "complete_graph", "open_model"]
