"""ONNX models in and out: the only place that imports `onnx`, which it does when a function here is first called."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp


def import_model(
    model: str | PathLike[str] | bytes | onnx.ModelProto, *, base_dir: str = "", external: set[str] | None = None
) -> ModuleOp:
    """The module of an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    The weights stay in the file, mapped. `base_dir` is the folder of the external data when there is no path;
    `external` gets the paths of the files that external data was found in. `IgniterError` says what is wrong with a
    model that cannot be read.
    """
    from igniter.errors import IgniterError
    from igniter.frontend.importer import import_proto
    from igniter.frontend.reading import read_model

    proto, source = read_model(model, base_dir)
    try:
        module = import_proto(proto, source)
        if external is not None:
            external |= source.external
        return module
    except IgniterError:
        raise
    except Exception as error:
        why = why_invalid(proto)
        if why is None:
            raise
        raise IgniterError(f"{source.path or 'the model'} is not a valid model: {why}") from error


def why_invalid(model: str | PathLike[str] | bytes | onnx.ModelProto) -> str | None:
    """What is wrong with a model that could not be compiled, with the node's name; `None` where nothing is found."""
    from igniter.frontend import diagnosis

    return diagnosis.why_invalid(model)


def export_model(module: ModuleOp) -> onnx.ModelProto:
    """The `ModelProto` of a module, weights included; for a model over 2 GB, use `save_model`."""
    from igniter.frontend.exporter import export_module

    return export_module(module)


def save_model(
    module: ModuleOp,
    path: str | PathLike[str],
    *,
    external_data_threshold: int | None = None,
    alignment: int = 4096,
    hashed: bool = False,
    oldest_ir: bool = False,
    keep: Collection[str] = (),
    exact_integers: bool = False,
) -> None:
    """Write the model to `path`, replacing it at once when all is written.

    Weights of `external_data_threshold` bytes and more go to `<path>.data` at offsets that are multiples of
    `alignment`, so that a reader can map them. By default that is done only for a model near or over 2 GB. With
    `hashed` the file is `<path without .onnx>.HASH.data`: other weights are in a file of another name. `oldest_ir`
    lowers the IR version to the oldest one that the model runs with, so that older readers take it. Weights that are
    in one of the files `keep` (paths) stay there and are referred to, where that file is in the folder of `path` or
    below; all others are copied. `exact_integers` replaces the sums and powers of integers that ONNX Runtime computes
    in f64, those of shapes excepted.
    """
    from igniter.frontend.saving import Style, save_module

    save_module(module, path, external_data_threshold, alignment, Style(hashed, oldest_ir, exact_integers), keep)


def fits_message(model: onnx.ModelProto) -> bool:
    """Whether a message can be written at all: one of 2 GB cannot."""
    from igniter.frontend.reading import MESSAGE_LIMIT, byte_size

    return byte_size(model) <= MESSAGE_LIMIT
