"""Samples to calibrate on, one at a time: a `.npz` file, a folder of samples, or a generator function.

FILE.npz            one sample, an array for each input
FOLDER              the `.npz` files in it in the order of their names, or folders `test_data_set_*` of `input_*.pb`
module:function     a function, called without arguments, yielding mappings of inputs by name
FILE.py:function    the same of a file
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from igniter.errors import IgniterError
from igniter.verification.given import read_inputs

Feed = Mapping[str, Any]
Samples = "str | Path | Iterable[Feed] | Callable[[], Iterable[Feed]]"


def samples(data: Any, names: Sequence[str]) -> Callable[[], Iterator[Feed]]:
    """Returns a function whose every call iterates over the samples from the first; raises `IgniterError` if there are
    no samples, or if one lacks some of the inputs `names`."""
    source = _source(data, names)

    def checked() -> Iterator[Feed]:
        found = False
        for number, feed in enumerate(source()):
            missing = [name for name in names if name not in feed]
            if missing:
                raise IgniterError(f"sample {number} lacks {', '.join(missing)}; the inputs are {', '.join(names)}")
            found = True
            yield {name: feed[name] for name in names}
        if not found:
            raise IgniterError(f"{data} has no samples to calibrate on")

    return checked


def _source(data: Any, names: Sequence[str]) -> Callable[[], Iterable[Feed]]:
    if callable(data):
        return cast("Callable[[], Iterable[Feed]]", data)
    if not isinstance(data, (str, Path)):
        kept: list[Feed] = list(data)
        return lambda: kept
    text = str(data)
    if Path(text).is_dir():
        return lambda: _folder(Path(text), names)
    if Path(text).is_file():
        return lambda: _file(Path(text), names)
    if ":" in text:
        return _function(*text.rsplit(":", 1))
    raise IgniterError(f"there are no samples at {text}: give a .npz file, a folder of them, or module:function")


def _file(path: Path, names: Sequence[str]) -> Iterator[Feed]:
    yield from read_inputs(path, names)


def _folder(folder: Path, names: Sequence[str]) -> Iterator[Feed]:
    files = sorted(folder.glob("*.npz")) or sorted(p for p in folder.glob("test_data_set_*") if p.is_dir())
    for path in files or [folder]:
        yield from read_inputs(path, names)


def _function(where: str, name: str) -> Callable[[], Iterable[Feed]]:
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location("igniter_samples", where)
            if spec is None or spec.loader is None or not Path(where).is_file():
                raise IgniterError(f"there is no file {where}")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
        return getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise IgniterError(f"cannot take samples from {where}:{name}: {error}") from error


__all__ = ["samples"]
