"""`igniter torch`: a PyTorch module compiled and compared with eager, whole or each submodule by itself."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.table import Table

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import console, print_json
from igniter.toolbox.tables import csv_text

if TYPE_CHECKING:
    from igniter.tools.torch.request import TorchRequest


def run(asked: TorchRequest) -> int:
    """Compares and prints; returns the exit status, 1 if something compiled differs from eager."""
    if not asked.every_module and (asked.only != "*" or asked.depth) and not asked.record:
        raise IgniterError(
            "--only and --depth choose submodules for --verify-every-module or --record: give one of these"
        )
    import igniter.torch

    module, args, kwargs = made(asked.module)
    if asked.record:
        from igniter.torch.names import torch

        chosen: dict[str, Any] = {"only": asked.only, "depth": asked.depth, "show": None if asked.json else _show}
        with torch.no_grad(), igniter.torch.intercept(module, asked.record, **chosen):
            module(*args, **kwargs)
    if asked.every_module:
        choice: dict[str, Any] = {"only": asked.only, "depth": asked.depth}
    else:
        choice = {"only": "", "depth": 0}
    start = time.perf_counter()
    results = igniter.torch.verify_every_module(module, args, kwargs, rtol=asked.rtol, **choice)
    if asked.csv:
        _write_csv(asked.csv, results)
    if asked.json:
        print_json(
            {"modules": results.to_dict(), "ok": bool(results), "seconds": round(time.perf_counter() - start, 3)}
        )
    else:
        _print(results)
    return 0 if results else 1


def _show(line: str) -> None:
    console(stderr=True).print(line, markup=False)


def made(name: str) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """Returns the module from `package.module:function` (or `FILE.py:function`), and the arguments to call it with.

    The function returns the module and a tuple of arguments, a mapping of keyword arguments, or both.
    """
    from igniter.torch.names import torch

    where, _, function = name.rpartition(":")
    if not where or not function:
        raise IgniterError(f"'{name}' names no function: write package.module:function or FILE.py:function")
    found = getattr(_import(where), function, None)
    if not callable(found):
        raise IgniterError(f"{where} has no function '{function}'")
    result = found()
    parts: list[Any] = list(cast("Sequence[Any]", result)) if isinstance(result, (tuple, list)) else [result]
    if not parts or not isinstance(parts[0], torch.nn.Module) or len(parts) > 3:
        raise IgniterError(f"{name}() has to return a torch.nn.Module and its arguments, as (module, args, kwargs)")
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    for part in parts[1:]:
        if isinstance(part, Mapping):
            kwargs = cast("Mapping[str, Any]", part)
        else:
            args = cast("Sequence[Any]", part) if isinstance(part, (tuple, list)) else (part,)
    return parts[0], args, kwargs


def _import(where: str) -> Any:
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(where).stem, where)
            if spec is None or spec.loader is None or not Path(where).is_file():
                raise IgniterError(f"there is no file {where}")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        # As in `python -m`: modules in the current folder can be named.
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(where)
    except ImportError as error:
        raise IgniterError(f"cannot import {where}: {error}") from error


def _write_csv(path: str, results: Any) -> None:
    from igniter.torch.submodules import COLUMNS

    write_whole(path, csv_text(COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in results.rows())))


def _print(results: Any) -> None:
    from igniter.torch.submodules import COLUMNS

    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in results.rows():
        table.add_row(*row)
    console().print(table)
    counts = [each.status for each in results.modules]
    told = ", ".join(f"{counts.count(status)} {status}" for status in dict.fromkeys(counts))
    console().print(f"{len(counts)} modules: {told}")
