"""Reading and writing of models, whole: the functions of `igniter.frontend`."""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from typing import TYPE_CHECKING

from igniter.errors import IgniterError
from igniter.frontend import reading
from igniter.frontend.exporter import export_module
from igniter.frontend.importer import import_proto
from igniter.frontend.reading import byte_size, read_model
from igniter.frontend.saving import Style, save_module

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp


def import_model(
    model: str | PathLike[str] | bytes | onnx.ModelProto, *, base_dir: str = "", external: set[str] | None = None
) -> ModuleOp:
    """Imports an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    The weights stay in the file, mapped. `base_dir` is the folder of the external data for a model without a path; the
    paths of the files with external data are added to `external`. `IgniterError` gives the reason why a model cannot be
    read.
    """
    proto, source = read_model(model, base_dir)
    try:
        module = import_proto(proto, source)
        if external is not None:
            external |= source.external
        return module
    except IgniterError:
        raise
    except Exception as error:  # raised again, or explained by the checker
        # Not before: models are rarely invalid.
        from igniter.frontend.diagnosis import why_invalid

        why = why_invalid(proto)
        if why is None:
            raise
        raise IgniterError(f"{source.path or 'the model'} is not a valid model: {why}") from error


def export_model(module: ModuleOp) -> onnx.ModelProto:
    """Exports a module as a `ModelProto`, weights included; for a model over 2 GB, use `save_model`."""
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
    """Writes the model to `path`, replacing the file atomically at the end.

    Weights of `external_data_threshold` bytes and more go to `<path>.data` at offsets that are multiples of
    `alignment`, for readers with memory maps. By default this is done only for a model near or over 2 GB. With `hashed`
    the file is `<path without .onnx>.HASH.data`: other weights have another file name. `oldest_ir` lowers the IR
    version to the oldest one that suffices for the model, for older readers. Weights in one of the files `keep` (paths)
    stay there and are referred to, if the file is in the folder of `path` or below; all others are copied.
    `exact_integers` replaces ONNX Runtime's f64 sums and powers of integers, except those of shapes.
    """
    save_module(module, path, external_data_threshold, alignment, Style(hashed, oldest_ir, exact_integers), keep)


def fits_message(model: onnx.ModelProto) -> bool:
    """True if the model fits a protobuf message, with a limit of 2 GB."""
    return byte_size(model) <= reading.MESSAGE_LIMIT
