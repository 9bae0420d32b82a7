"""Modules are found by their former names, each once."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest

from igniter.moved import NAMES, present_name


@pytest.mark.parametrize("name", NAMES)
def test_former_names_give_the_present_modules(name: str) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is {NAMES[name]} now"):
        module = importlib.import_module(name)
    assert module is importlib.import_module(NAMES[name])
    assert module.__name__ == NAMES[name] and module.__spec__ is not None and module.__spec__.name == NAMES[name]


def test_modules_of_a_moved_package_are_not_loaded_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = importlib.import_module("igniter.runtime.interp.scheduled")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("igniter.runtime.interp.nothing")
    assert old is importlib.import_module("igniter.verification.interp.scheduled")
    assert present_name("igniter.runtime.session") is None
