"""Inputs from files: a `.npz` with an array for each input (for a sequence `NAME[0]`, `NAME[1]`, ...), or a folder of
`.pb` files as in ONNX's tests. The `.pb` files can also hold maps and sequences.

    test_data_set_0/input_0.pb  input_1.pb ...  output_0.pb ...

A value in a `.pb` file belongs to the input of its name, or else to the input at the position in the file's name. A
folder of such folders gives several cases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.frontend.ort_values import gathered
from igniter.frontend.test_data import read_value


def read_inputs(path: str | Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the feeds in a file or folder for a model with the inputs `names`."""
    where = Path(path)
    if where.is_dir():
        folders = sorted(p for p in where.glob("test_data_set_*") if p.is_dir())
        if folders and not list(where.glob("input_*.pb")):
            return [_from_folder(folder, names) for folder in folders]
        return [_from_folder(where, names)]
    if not where.is_file():
        raise IgniterError(f"there are no inputs at {where}; give a .npz file, or a folder with input_0.pb, ...")
    return [_from_npz(where, names)]


def _from_npz(path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        with np.load(path) as file:
            feed = gathered({name: file[name] for name in file.files}, names)
    except (OSError, ValueError, TypeError) as error:
        raise IgniterError(f"cannot read inputs from {path}: {error}") from error
    return _checked(feed, names, path)


def _from_folder(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    feed: dict[str, Any] = {}
    for path in sorted(folder.glob("input_*.pb")):
        match = re.fullmatch(r"input_(\d+)\.pb", path.name)
        if match is None:
            continue
        named, value = read_value(path)
        index = int(match[1])
        if named not in names and index >= len(names):
            raise IgniterError(f"{path}: the model has {len(names)} inputs ({', '.join(names)})")
        feed[named if named in names else names[index]] = value
    if not feed:
        raise IgniterError(f"there is no input_0.pb in {folder}")
    return _checked(feed, names, folder)


def _checked(feed: dict[str, Any], names: Sequence[str], path: Path) -> dict[str, Any]:
    unknown = [name for name in feed if name not in names]
    missing = [name for name in names if name not in feed]
    if unknown or missing:
        wrong = [f"has {', '.join(unknown)}, which the model lacks"] * bool(unknown)
        wrong += [f"lacks {', '.join(missing)}"] * bool(missing)
        raise IgniterError(f"{path} {' and '.join(wrong)}; the model's inputs are {', '.join(names)}")
    return feed
