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
    present = importlib.import_module(NAMES[name])
    if any(other.startswith(f"{name}.") for other in NAMES):
        assert module.__file__ == present.__file__  # A package whose modules have several places now.
        return
    assert module is present
    assert module.__name__ == NAMES[name] and module.__spec__ is not None and module.__spec__.name == NAMES[name]


def test_modules_of_a_moved_package_are_not_loaded_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = importlib.import_module("igniter.runtime.interp.scheduled")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("igniter.runtime.interp.nothing")
    assert old is importlib.import_module("igniter.verification.interp.scheduled")
    assert present_name("igniter.runtime.session") is None


def test_a_former_name_does_not_hide_a_package_of_the_present_name() -> None:
    import igniter.toolbox.split

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        former = importlib.import_module("igniter.tools.cli.split")
    assert former.__name__ == "igniter.toolbox.split.show"
    assert igniter.toolbox.split.__name__ == "igniter.toolbox.split"
