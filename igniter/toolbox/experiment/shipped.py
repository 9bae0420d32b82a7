"""The specifications in the package, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from igniter.errors import IgniterError
from igniter.toolbox.experiment.spec import Spec
from igniter.toolbox.experiment.spec_reading import like, read_spec, read_text

_FOLDER = "specs"


def shipped_specs() -> dict[str, str]:
    """Returns the names of the shipped specifications and their text."""
    folder = files("igniter.toolbox.experiment") / _FOLDER
    names = sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    return {name: (folder / f"{name}.toml").read_text(encoding="utf-8") for name in names}


def shipped_spec(name: str) -> Spec:
    """Returns a shipped specification, whose models are written by code."""
    return read_text(shipped_specs()[name], name, "")


def spec_named(name: str) -> tuple[Spec, str]:
    """Returns the specification in a file, or a shipped one, and its text."""
    if Path(name).is_file():
        return read_spec(name), Path(name).read_text(encoding="utf-8")
    there = shipped_specs()
    if name in there:
        return shipped_spec(name), there[name]
    raise IgniterError(
        f"there is no specification '{name}': neither a file nor a shipped one; shipped are {', '.join(there)}"
        f"{like(name, there)}"
    )
