"""The environments that the package is installed into: versions, extras and Pythons, and what runs in each."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

EVERYTHING = (("modules.py",), ("verbs.py",), ("calls.py",))
"""Every module, every verb and every public call."""

APPLICATION = (
    ("igniter", "--version"),
    ("igniter-opt", "--version"),
    ("igniter", "doctor"),
    ("igniter", "compile", "model.onnx", "-o", "model.igniter"),
    ("igniter", "verify", "model.igniter", "--digest"),
)
"""What runs of an installation by pipx."""

ALONE = {
    "generate": (("verbs.py", "generate"),),
    "link": (("verbs.py", "--extra", "link"),),
    "tune": (("verbs.py", "tune"),),
    "triton": (("verbs.py", "--extra", "triton"),),
    "torch": (("modules.py",), ("verbs.py", "torch"), ("calls.py", "torch_calls")),
    "ray": (("verbs.py", "split", "serve"),),
    "serve": (("verbs.py", "--extra", "serve"),),
    "experiment": (("verbs.py", "experiment"),),
    "learn": (("verbs.py", "tune"),),
    "prove": (("verbs.py", "--extra", "prove"),),
}
"""The extras of users, and what each is for."""

DEVELOPERS = ("bench", "dev", "docs")
"""The extras of developers: installed, and seen to leave the package whole."""

HEAVY = {"ray", "serve", *DEVELOPERS}

BETWEEN = ("1.23", "1.24", "1.26", "1.28", "1.30")
"""Versions of ONNX Runtime between the oldest and the newest."""


@dataclass(frozen=True)
class Environment:
    """A Python, what is installed into it besides the wheel, and the scripts that run there."""

    name: str
    purpose: str
    python: str
    steps: Sequence[Sequence[str]]
    extra: str = ""
    requirements: tuple[str, ...] = ()
    heavy: bool = False
    torch: bool = False
    """PyTorch is among what is installed, whose build is to be one for CPUs."""
    pipx: bool = False
    """The wheel is installed as an application, by pipx; the steps are command lines of its programs."""


def oldest(lines: Sequence[str]) -> tuple[str, ...]:
    """The lowest version that each requirement allows."""
    found: list[str] = []
    for each in map(Requirement, lines):
        low = [s.version for s in each.specifier if s.operator in (">=", "==")]
        if len(low) != 1:
            raise ValueError(f"'{each}' has no lowest version")
        found.append(f"{each.name}=={low[0]}")
    return tuple(found)


def torch_pin(extras: Mapping[str, Sequence[str]]) -> str:
    """The version of PyTorch that everything of this project is tried with."""
    return next(line for line in extras["bench"] if line.startswith("torch=="))


def environments(project: Path, pythons: Mapping[str, str]) -> list[Environment]:
    """All of them, the plainest first. Versions and extras are tried on the Python that runs this."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    here, extras = sys.executable, table["optional-dependencies"]
    version = "{}.{}".format(*sys.version_info[:2])
    lowest = oldest(table["dependencies"])
    found = [
        Environment("newest", f"the newest versions, Python {version}", here, EVERYTHING),
        Environment("oldest", "the lowest version of each dependency", here, EVERYTHING, requirements=lowest),
    ]
    found.append(Environment("pipx", "the programs, by pipx install", here, APPLICATION, pipx=True))
    for name, path in pythons.items():
        if name != version:
            found.append(Environment(f"python{name}", f"the newest versions, Python {name}", path, EVERYTHING))
    for name in sorted(set(extras) - set(DEVELOPERS)):
        torch = name == "torch"
        pins = (torch_pin(extras),) if torch else ()
        purpose = f"the extra {name} alone"
        found.append(Environment(name, purpose, here, ALONE[name], name, pins, name in HEAVY, torch))
    for name in DEVELOPERS:
        steps = (("verbs.py", "compile", "verify", "doctor"),)
        found.append(
            Environment(name, f"the extra {name} of developers", here, steps, name, heavy=True, torch=name == "bench")
        )
    for ort in BETWEEN:
        pins = (f"onnxruntime=={ort}.*",)
        found.append(Environment(f"ort{ort}", f"ONNX Runtime {ort}", here, EVERYTHING, requirements=pins, heavy=True))
    return found
