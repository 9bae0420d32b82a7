"""Writers of hostile files: functions from a folder to the path of a model in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import helper

from tests.hostile.base import FLOAT, info, model_of

Write = Callable[[Path], Path]
Made = Iterator[tuple[str, Write]]


@dataclass(frozen=True)
class HostileFile:
    """One file: the row of the table that it belongs to, what it is, and what writes it."""

    kind: str
    name: str
    write: Write


def of_bytes(data: bytes) -> Write:
    def write(folder: Path) -> Path:
        path = folder / "model.onnx"
        path.write_bytes(data)
        return path

    return write


def of_call(make: Callable[..., bytes], *arguments: object) -> Write:
    """A file whose bytes are made when it is written: a list of all files has no time for what takes seconds."""
    return lambda folder: of_bytes(make(*arguments))(folder)


def of_model(model: onnx.ModelProto) -> Write:
    return of_bytes(model.SerializeToString())


def unary(op: str, x: str, y: str, name: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, [x], [y], name, **attributes)


def simple(nodes: list[onnx.NodeProto], out: str = "y", shape: object = None, **options: object) -> Write:
    """A model with the input x (n x 4) and one output."""
    return of_model(model_of(nodes, [info("x", FLOAT, ["n", 4])], [info(out, FLOAT, shape)], **options))  # type: ignore[arg-type]
