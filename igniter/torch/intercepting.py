"""Arguments and results of each submodule of a model: printed, recorded to a folder, replayed.

    with igniter.torch.intercept(model, folder="calls") as calls:
        model(**inputs)
    igniter.torch.replay(model, "calls")

A record is a folder with `calls.json` and one `.npz` file for each call (`igniter.torch.trees` has the format).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

import numpy as np

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.runtime.folders import make_readable, put_in_place, staging_folder
from igniter.torch.compare import differences
from igniter.torch.module import Igniter
from igniter.torch.names import Tensor, pytree, torch
from igniter.torch.trees import can_replay, decode, encode, summary

FORMAT = 1
INDEX = "calls.json"


@dataclass
class Call:
    """One call of a submodule: its name in the model, its class, and copies of its arguments and result."""

    name: str
    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def __str__(self) -> str:
        given = [summary(each) for each in self.args]
        given += [f"{name}={summary(each)}" for name, each in self.kwargs.items() if each is not None]
        return f"{self.name or '(model)'}: {self.kind}({', '.join(given)}) -> {summary(self.result)}"


def chosen_modules(model: Any, only: str = "*", depth: int = 0) -> list[tuple[str, Any]]:
    """Returns the model and its submodules with names matching `only`, at most `depth` names deep (0: unlimited).

    Raises `IgniterError` if no name matches.
    """
    every = [(str(name), module) for name, module in model.named_modules()]
    found = [(n, m) for n, m in every if fnmatch(n, only) and (not depth or not n or n.count(".") < depth)]
    if not found:
        like = get_close_matches(only, [name for name, _ in every], 3)
        hint = (
            f": did you mean {', '.join(like)}?"
            if like
            else (f"; it has {len(every)} submodules, the first is '{every[-1][0]}'")
        )
        raise IgniterError(f"no submodule's name fits '{only}'{hint}")
    return found


@contextmanager
def intercept(
    model: Any,
    folder: str | Path = "",
    *,
    only: str = "*",
    depth: int = 0,
    show: Callable[[str], None] | None = print,
) -> Generator[list[Call]]:
    """Shows the calls of a model and its submodules within the context, and collects them in the yielded list.

    If the context ends without an error, the calls are recorded in `folder`. An existing record is replaced; any other
    existing folder is an error. `show` is called with one line for each call; `None` shows nothing. `only` and `depth`
    choose modules as in `chosen_modules`. Tensors are copied, so the record has the original inputs of a module that
    changes them.
    """
    if isinstance(model, Igniter):
        raise IgniterError("a compiled module does not call its submodules; intercept its `wrapped` instead")
    target = Path(folder) if folder else None
    if target is not None and target.exists() and not (target / INDEX).is_file():
        raise IgniterError(f"{target} exists and does not contain a record of calls; name another folder")
    calls: list[Call] = []
    pending: dict[int, list[tuple[Any, Any]]] = {}
    hooks: list[Any] = []

    def before(module: Any, args: Any, kwargs: Any) -> None:
        pending.setdefault(id(module), []).append((copied(args), copied(kwargs)))

    def after(name: str) -> Callable[..., None]:
        def hook(module: Any, args: Any, kwargs: Any, result: Any) -> None:
            given, named = pending[id(module)].pop()
            call = Call(name, type(module).__name__, given, named, copied(result))
            calls.append(call)
            if show is not None:
                show(str(call))

        return hook

    try:
        for name, module in chosen_modules(model, only, depth):
            hooks.append(module.register_forward_pre_hook(before, with_kwargs=True))
            hooks.append(module.register_forward_hook(after(name), with_kwargs=True))
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
    if target is not None:
        save_calls(calls, target)


def copied(value: Any) -> Any:
    """Returns a copy of nested values. Its tensors have their own memory and no gradients."""

    def copy(tensor: Tensor) -> Tensor:
        return tensor.detach().clone()

    return pytree.tree_map_only(torch.Tensor, copy, value)


def save_calls(calls: Sequence[Call], folder: Path) -> None:
    """Writes a record of calls. It appears atomically."""
    with staging_folder(folder) as staging:
        entries: list[dict[str, Any]] = []
        for number, call in enumerate(calls):
            arrays: list[Any] = []
            entry = {
                "name": call.name,
                "class": call.kind,
                "args": [encode(each, arrays) for each in call.args],
                "kwargs": {name: encode(each, arrays) for name, each in call.kwargs.items()},
                "result": encode(call.result, arrays),
                "arrays": f"{number}.npz",
            }
            np.savez(staging / f"{number}.npz", *arrays)
            entries.append(entry)
        write_whole(staging / INDEX, json.dumps({"igniter_calls": FORMAT, "calls": entries}, indent=1))
        make_readable(staging)
        put_in_place(staging, folder)
        if staging.exists():
            shutil.rmtree(staging)


def load_calls(folder: str | Path) -> list[Call]:
    """Returns the calls of a record, without calls that have an argument or result a record cannot hold."""
    where = Path(folder)
    found: list[Call] = []
    for entry in _entries(where):
        if not can_replay([entry["args"], list(entry["kwargs"].values()), entry["result"]]):
            continue
        try:
            with np.load(where / entry["arrays"], allow_pickle=False) as arrays:
                args = tuple(decode(each, arrays) for each in entry["args"])
                kwargs = {name: decode(each, arrays) for name, each in entry["kwargs"].items()}
                found.append(Call(entry["name"], entry["class"], args, kwargs, decode(entry["result"], arrays)))
        except (OSError, ValueError, KeyError) as error:
            raise IgniterError(f"{where / entry['arrays']} is damaged: {error}; record the calls again") from error
    return found


def _entries(where: Path) -> list[dict[str, Any]]:
    try:
        index = json.loads((where / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IgniterError(f"{where} does not contain a record of calls: {error}") from error
    if not isinstance(index, dict) or cast("dict[str, Any]", index).get("igniter_calls") != FORMAT:
        raise IgniterError(f"{where / INDEX} is not a record of calls of this version")
    return cast("list[dict[str, Any]]", index["calls"])


@dataclass(frozen=True)
class Replayed:
    """The comparison of a submodule's result with the record: the largest difference over the largest value, and the
    error (empty if both agree)."""

    name: str
    kind: str
    error: float
    wrong: str

    def __str__(self) -> str:
        return f"{self.name or '(model)'}: {self.kind}: {self.wrong or f'same to {self.error:.1e}'}"


def replay(model: Any, folder: str | Path, *, only: str = "*", rtol: float = 1e-5) -> list[Replayed]:
    """Repeats the recorded calls of submodules and compares the results.

    `model` is the recorded model, a changed one or a compiled one (`igniter.torch.compile(model)`). Its submodules are
    looked up by name. Raises `IgniterError` if `model` has no submodule of a recorded name.
    """
    modules = dict(model.named_modules())
    modules[""] = model
    found: list[Replayed] = []
    for call in load_calls(folder):
        if not fnmatch(call.name, only):
            continue
        if call.name not in modules:
            raise IgniterError(f"the record has calls of '{call.name}', which the model lacks")
        with torch.no_grad():
            result = modules[call.name](*call.args, **call.kwargs)
        error, wrong = differences(flat(result), flat(call.result), rtol)
        found.append(Replayed(call.name, call.kind, error, wrong))
    return found


def flat(value: Any) -> list[Any]:
    """Returns the tensors and other leaves of a result. Mappings (such as dataclass outputs) keep their order."""
    if isinstance(value, dict):
        return [leaf for each in cast("dict[Any, Any]", value).values() for leaf in flat(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in cast("list[Any]", value) for leaf in flat(each)]
    return [value]
