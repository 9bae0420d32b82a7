"""Detection of changes to a module's Python state, other than tensors, since it was traced.

`torch.export` runs the code once. The attributes it reads (a scale, the training mode of a submodule, the list of
submodules and hooks) become fixed in the graph. So the attributes of every submodule, and of the lists, dicts, sets and
plain objects (a `config`) reachable from it, are copied shallowly and compared before each call. The comparison is one
comparison of two lists of containers, done by Python in C and mostly by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any, cast

from igniter.torch.names import is_tensor, torch

DEPTH = 4
"""The maximum nesting depth of containers and objects searched from an attribute."""
MOST = 20_000
"""The maximum number of containers and objects of one module; any further ones are ignored."""
TABLES = ("_parameters", "_buffers")
LOOKED_INTO = ("_modules", "_forward_hooks", "_forward_pre_hooks")
"""Attributes of `nn.Module` itself that affect a trace."""

DERIVED = ("_flat_weights", "_flat_weight_refs")
"""Lists of parameters that `nn.LSTM` and similar modules rebuild in `forward` after the parameters change."""


class ModuleState:
    """A snapshot of the attributes of a module and its submodules."""

    def __init__(self, module: Any):
        self._live: list[Any] = []
        self._were: list[Any] = []
        self._seen: set[int] = set()
        self._tensors: list[tuple[Any, Any, Any]] = []
        self._missing: list[tuple[Any, str]] = []
        self._tables: list[Any] = []
        self._tied: dict[int, list[tuple[Any, str]]] = {}
        own = frozenset(cast("dict[str, Any]", vars(torch.nn.Module())))
        self.hooked = False
        for each in module.modules():
            # A scripted module has its attributes in C++, where no trace reads them.
            if not isinstance(each, torch.jit.ScriptModule):
                self._add_module(each, own)
        self._names = list(map(list, self._tables))
        # In a trace, a parameter that appears in two places is one tensor.
        self._tied = {number: places for number, places in self._tied.items() if len(places) > 1}

    def _add_module(self, module: Any, own: frozenset[str]) -> None:
        attributes = cast("dict[str, Any]", vars(module))
        self._add(attributes)
        for name in LOOKED_INTO:
            self._add(attributes[name])
        for name in TABLES:
            self._add_table(attributes[name])
        self.hooked = self.hooked or bool(module._forward_hooks or module._forward_pre_hooks)
        self._look_into(attributes, [(key, value) for key, value in attributes.items() if key not in own], 0)

    def _add_table(self, table: dict[str, Any]) -> None:
        self._tables.append(table)
        for key, value in table.items():
            if value is None:
                self._missing.append((table, key))
            else:
                self._tied.setdefault(id(value), []).append((table, key))

    def _add(self, container: Any) -> None:
        self._seen.add(id(container))
        self._live.append(container)
        self._were.append(container.copy())

    def _look_into(self, owner: Any, items: Iterable[tuple[Any, Any]], depth: int) -> None:
        for key, value in items:
            if is_tensor(value):
                # Tensors are compared by identity: `==` compares their elements.
                self._tensors.append((owner, key, value))
            elif depth < DEPTH and len(self._live) < MOST:
                self._look_at(value, depth)

    def _look_at(self, value: Any, depth: int) -> None:
        inside = _inside(value)
        if inside is None:
            if isinstance(value, tuple):
                self._look_into(None, enumerate(cast("tuple[Any, ...]", value)), depth + 1)
            return
        if id(inside) in self._seen:
            return
        self._add(inside)
        items = inside.items() if isinstance(inside, dict) else enumerate(inside)
        self._look_into(None if isinstance(inside, set) else inside, items, depth + 1)

    def unchanged(self) -> bool:
        """True if all attributes have their old values."""
        if not _same(self._live, self._were) and not all(map(_same_but_derived, self._live, self._were)):
            return False
        if list(map(list, self._tables)) != self._names:
            return False
        if any(owner is not None and owner[key] is not tensor for owner, key, tensor in self._tensors):
            return False
        if any(table[key] is not None for table, key in self._missing):
            return False
        return all(len({id(table[key]) for table, key in places}) == 1 for places in self._tied.values())

    def restore(self) -> None:
        """Restores all changed attributes."""
        for live, was in zip(self._live, self._were, strict=True):
            if _same(live, was):
                continue
            if isinstance(live, list):
                live[:] = was
            else:
                live.clear()
                live.update(was)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (RuntimeError, TypeError, ValueError):
        # Comparing different tensors or arrays fails. An unchanged one compares by identity and does not get here.
        return False


def _same_but_derived(one: Any, other: Any) -> bool:
    if _same(one, other):
        return True
    if not isinstance(one, dict):
        return False
    mine, was = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
    names = mine.keys() | was.keys()
    return all(name in DERIVED or (name in mine and name in was and _same(mine[name], was[name])) for name in names)


def _inside(value: Any) -> dict[Any, Any] | list[Any] | set[Any] | None:
    """Returns a container itself, or the attributes of a plain object; `None` for any other value."""
    if isinstance(value, (dict, list, set)):
        return cast("dict[Any, Any] | list[Any] | set[Any]", value)
    if isinstance(value, (type, ModuleType, torch.nn.Module)) or callable(value):
        return None
    found = getattr(value, "__dict__", None)
    return cast("dict[Any, Any]", found) if isinstance(found, dict) else None
