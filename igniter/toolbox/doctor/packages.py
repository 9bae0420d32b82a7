"""The packages required by Igniter: their installed versions, compared with its requirements.

The requirements come from the metadata of the installed package, originally in `pyproject.toml`: ranges of the
dependencies, of the extras, and the versions pinned for the tests by the extra `dev`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from igniter._version import __version__
from igniter.distribution import DISTRIBUTION, install_command
from igniter.toolbox.doctor import Finding

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

GROUP = "versions"
MODULE = "igniter"
EXTRAS = {
    "link": "a linker, for machines without one and for libraries of other targets",
    "triton": "kernels for GPUs (--target=cuda)",
    "torch": "PyTorch, and exporting its models",
    "tune": "`igniter tune`",
    "ray": "`igniter tune --ray` and `igniter experiment --ray`, on several machines",
    "serve": "`igniter serve` of a model, here or on a Ray cluster",
    "experiment": "the plots of `igniter experiment`",
    "learn": "`igniter tune --learned`",
    "generate": "`igniter generate`, texts to tokens and back",
    "prove": "proofs for all sizes (`igniter-opt --check-each=prove`)",
}
"""The purposes of the extras; extras of tests, benchmarks and docs are not for users."""

DISTRIBUTIONS = {
    "onnxruntime": (
        "onnxruntime",
        "onnxruntime-gpu",
        "onnxruntime-openvino",
        "onnxruntime-directml",
        "onnxruntime-qnn",
        "onnxruntime-training",
    )
}
"""Packages with the same module under different names."""


def versions() -> Iterator[Finding]:
    """Checks Igniter, Python, and the required packages."""
    required = _requirements()
    yield Finding(GROUP, "igniter", "ok", f"{__version__} ({DISTRIBUTION})" if required is not None else __version__)
    yield from _another_igniter()
    if required is None:
        yield Finding(
            GROUP,
            "metadata",
            "warning",
            "igniter runs from its sources and is not installed, so what it asks of other packages is not known",
            "install it: pip install -e . in its sources",
        )
    yield _python()
    for name in _names(required, "") if required is not None else _FALLBACK:
        yield _package(name, _range(required or (), name, ""), needed=True)


_FALLBACK = (
    "archspec",
    "immutabledict",
    "llvmlite",
    "ml-dtypes",
    "numpy",
    "onnx",
    "onnxruntime",
    "rich",
    "typer",
    "xdsl",
)


def extras() -> Iterator[Finding]:
    """Checks the optional packages."""
    required = _requirements() or ()
    seen: set[str] = set()
    for extra, purpose in EXTRAS.items():
        for name in _names(required, extra):
            if name in seen:
                continue
            seen.add(name)
            found = _package(name, _range(required, name, extra), needed=False, purpose=purpose)
            if found.status == "optional":
                found = Finding("extras", name, "optional", found.says, install_command(extra))
            yield Finding("extras", found.name, found.status, found.says, found.do)


def _another_igniter() -> Iterator[Finding]:
    """Checks for the package named like Igniter's module: another author's, with a module of this name."""
    found = installed(MODULE)
    if found is not None:
        says = f"the package `{MODULE}` {found.version} is installed: another author's, with a module of the same name"
        do = f"pip uninstall {MODULE}, then pip install --force-reinstall {DISTRIBUTION}"
        yield Finding(GROUP, "another igniter", "warning", says, do)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    newest = max((c for c in _classifiers()), default=sys.version_info[:2])
    if sys.version_info[:2] > newest:
        says = f"{version}, and the newest that is tested is {newest[0]}.{newest[1]}"
        return Finding(GROUP, "python", "warning", says, f"use Python {newest[0]}.{newest[1]} where something fails")
    return Finding(GROUP, "python", "ok", f"{version} ({sys.executable})")


def _classifiers() -> list[tuple[int, int]]:
    """Returns the Python versions in the package's classifiers."""
    try:
        listed = metadata.metadata(DISTRIBUTION).get_all("Classifier") or []
    except metadata.PackageNotFoundError:
        return []
    names = (str(line).rpartition(" :: ")[2] for line in listed if "Python ::" in str(line))
    return [(int(n.split(".")[0]), int(n.split(".")[1])) for n in names if n.replace(".", "").isdigit() and "." in n]


@dataclass(frozen=True)
class _Installed:
    distribution: str
    version: str
    besides: tuple[str, ...] = ()
    """Other installed packages with the same module."""


def installed(name: str) -> _Installed | None:
    """Returns the installed version of a package, under any of its names."""
    found: list[tuple[str, str]] = []
    for distribution in DISTRIBUTIONS.get(name, (name,)):
        try:
            found.append((distribution, metadata.version(distribution)))
        except metadata.PackageNotFoundError:
            continue
    if not found:
        return None
    return _Installed(*found[0], tuple(d for d, _ in found[1:]))


@dataclass(frozen=True)
class _Range:
    wanted: SpecifierSet | None = None
    tested: SpecifierSet | None = None


def _package(name: str, allowed: _Range, *, needed: bool, purpose: str = "") -> Finding:
    """Compares a package with its requirement."""
    found = installed(name)
    wanted = str(allowed.wanted) if allowed.wanted is not None else ""
    install = f"pip install '{name}{wanted}'"
    if found is None:
        if needed:
            return Finding(GROUP, name, "problem", "not installed, and nothing works without it", install)
        return Finding(GROUP, name, "optional", f"not installed: it is for {purpose}")
    label = found.version if found.distribution == name else f"{found.version} of {found.distribution}"
    if found.besides:
        both = " and ".join((found.distribution, *found.besides))
        do = f"pip uninstall {both.replace(' and ', ' ')}, and install the one that is wanted"
        return Finding(GROUP, name, "problem", f"{both} are installed, and each overwrites the files of the other", do)
    if allowed.wanted is not None and not allowed.wanted.contains(found.version, prereleases=True):
        status = "problem" if needed else "warning"
        return Finding(GROUP, name, status, f"{label}, and what is asked for is {wanted}", install)
    tested = _tested(allowed)
    if tested and _newer(found.version, tested):
        says = f"{label}, newer than {tested}, with which the tests run"
        return Finding(GROUP, name, "warning", says, f"pip install '{name}=={tested}' where something fails")
    note = f", as pinned ({wanted})" if wanted.startswith("==") else f" ({wanted})" if wanted else ""
    if tested:
        note = ", as tested" if tested == _public(found.version) else f"{note}; the tests run with {tested}"
    return Finding(GROUP, name, "ok", label + note)


def _tested(allowed: _Range) -> str:
    """Returns the version pinned for the tests, "" if there is no pin."""
    pins = [s.version for s in allowed.tested or () if s.operator == "=="]
    return pins[0] if pins else ""


def _newer(version: str, tested: str) -> bool:
    from packaging.version import Version

    return Version(_public(version)) > Version(tested)


def _public(version: str) -> str:
    """Returns a version without its build suffix: 2.13.0 of 2.13.0+cpu."""
    return version.partition("+")[0]


@cache
def _requirements() -> tuple[Requirement, ...] | None:
    """Returns the requirements of the installed package; None if it is not installed."""
    from packaging.requirements import Requirement

    try:
        listed = metadata.requires(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    return tuple(Requirement(line) for line in listed or ())


def _of(required: tuple[Requirement, ...], extra: str) -> Iterator[Requirement]:
    """Yields the requirements of an extra on this system; the dependencies of all for ""."""
    for each in required:
        always = each.marker is None or each.marker.evaluate({"extra": ""})
        added = each.marker is not None and not always and each.marker.evaluate({"extra": extra})
        if added if extra else always:
            yield each


def _names(required: tuple[Requirement, ...], extra: str) -> list[str]:
    return list(dict.fromkeys(r.name for r in _of(required, extra)))


def _range(required: tuple[Requirement, ...], name: str, extra: str) -> _Range:
    wanted = next((r.specifier for r in _of(required, extra) if r.name == name), None)
    tested = next((r.specifier for r in _of(required, "dev") if r.name == name), None)
    return _Range(wanted, tested)
