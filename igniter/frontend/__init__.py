"""ONNX models in and out: the only place that imports `onnx`, which it does when a function here is first called."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp


def import_model(model: str | PathLike[str] | bytes | onnx.ModelProto, *, base_dir: str = "") -> ModuleOp:
    """The module of an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    The weights stay in the file, mapped. `base_dir` is the folder of the external data when there is no path.
    `IgniterError` says what is wrong with a model that cannot be read.
    """
    from igniter.frontend.importer import import_proto
    from igniter.frontend.reading import read_model

    proto, source = read_model(model, base_dir)
    return import_proto(proto, source)


def export_model(module: ModuleOp) -> onnx.ModelProto:
    """The `ModelProto` of a module, weights included; for a model over 2 GB, use `save_model`."""
    from igniter.frontend.exporter import export_module

    return export_module(module)


def save_model(
    module: ModuleOp, path: str | PathLike[str], *, external_data_threshold: int | None = None, alignment: int = 4096
) -> None:
    """Write the model to `path`, replacing it at once when all is written.

    Weights of `external_data_threshold` bytes and more go to `<path>.data` at offsets that are multiples of
    `alignment`, so that a reader can map them. By default that is done only for a model near or over 2 GB.
    """
    from igniter.frontend.saving import save_module

    save_module(module, path, external_data_threshold, alignment)
