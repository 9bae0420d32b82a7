"""Citations: the name, the version and the hash of a schedule or an author.

    loop.kernel @gemm symbols [n] (..) -> (..) attributes {citation = {name = "gotoblas", version = "1", source = ".."}}

A name and a version are for people; the hash identifies the object. The hash of a schedule covers the structure of its
kernel and the directives of every nest and variant. It does not cover names of values, typical sizes or the citation
itself, so a copy on another machine has the same hash. The hash of an author covers its options and the Python source
of the packages that define its class; for Igniter's own authors these are `igniter.analysis` and `igniter.schedules`.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, StringAttr

from igniter._version import __version__
from igniter.analysis.fusion.author import FusionAuthor
from igniter.dialects.loop import KernelOp
from igniter.errors import IgniterError
from igniter.registry import distribution_of
from igniter.schedules.author import ScheduleAuthor

ATTRIBUTE = "citation"
"""The attribute of a kernel with the name, the version and the source of its schedules."""

TEXTS = ("name", "version", "source")
"""The entries of the attribute; only the name is required."""

_DIGITS = 16
_OWN_PACKAGES = ("igniter.analysis", "igniter.schedules")
_FOREIGN = frozenset(("xdsl",)) | sys.stdlib_module_names


@dataclass(frozen=True)
class Citation:
    """The identity of a schedule or an author."""

    kind: str
    """`schedule`, `schedule author` or `fusion author`."""
    name: str
    version: str
    hash: str
    """Hexadecimal digits; "" if the source of an author's class cannot be read."""
    source: str = ""
    """A publication, or the package of an author."""

    def __str__(self) -> str:
        named = f"{self.name} {self.version}".strip() or "unnamed"
        where = f", {self.source}" if self.source else ""
        return f"{named} ({self.kind} {self.hash or 'without a hash'}{where})"

    def to_dict(self) -> dict[str, str]:
        """Returns the fields for reports."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


# -- schedules --------------------------------------------------------------------------------------------------------


def structure_hash(kernel: KernelOp) -> str:
    """Returns a hash of the text of a kernel without its name, the names of its values, typical sizes, variants,
    schedules, and citation: the key of the database of schedules."""
    copy = kernel.clone()
    copy.typical = None
    copy.set_variants([])
    copy.attributes.pop(ATTRIBUTE, None)
    for op in copy.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    for each in copy.computations:
        each.schedule = None
    text = str(copy).replace(f"@{kernel.sym_name.data} ", "@kernel ", 1)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def schedule_texts(kernel: KernelOp) -> tuple[str, ...]:
    """Returns the schedules of a kernel's computations in order; "" for a computation without one."""
    return tuple("" if op.schedule is None else str(op.schedule) for op in kernel.computations)


def schedule_hash(kernel: KernelOp) -> str:
    """Returns a hash of a kernel's structure and all its schedules, those of its variants with their conditions."""
    parts = [structure_hash(kernel), *schedule_texts(kernel)]
    for variant in kernel.variants:
        parts += [str(variant.when), structure_hash(variant), *schedule_texts(variant)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]


def cite_schedule(kernel: KernelOp) -> Citation:
    """Returns the citation of a kernel's schedules; its name is "" without the attribute. Raises `IgniterError` for an
    attribute that is no dictionary of texts."""
    said = _said(kernel)
    return Citation(
        "schedule", said.get("name", ""), said.get("version", ""), schedule_hash(kernel), said.get("source", "")
    )


def name_schedule(kernel: KernelOp, name: str, version: str = "", source: str = "") -> None:
    """Writes the name, the version and the source of a kernel's schedules as its attribute."""
    if not name:
        raise IgniterError(f"the schedule of kernel @{kernel.sym_name.data} needs a name to be cited")
    given = {"name": name, "version": version, "source": source}
    kernel.attributes[ATTRIBUTE] = DictionaryAttr({key: StringAttr(text) for key, text in given.items() if text})


def _said(kernel: KernelOp) -> dict[str, str]:
    attribute = kernel.attributes.get(ATTRIBUTE)
    if attribute is None:
        return {}
    where = f"the citation of kernel @{kernel.sym_name.data}"
    if not isinstance(attribute, DictionaryAttr):
        raise IgniterError(f'{where} is {attribute}; write {{name = "..", version = "..", source = ".."}}')
    said: dict[str, str] = {}
    for key, text in attribute.data.items():
        if key not in TEXTS:
            raise IgniterError(f"{where} has an entry '{key}'; its entries are {', '.join(TEXTS)}")
        if not isinstance(text, StringAttr):
            raise IgniterError(f"{where}: '{key}' is {text}; it must be a text")
        said[key] = text.data
    if not said.get("name"):
        raise IgniterError(f"{where} has no name")
    return said


# -- authors ----------------------------------------------------------------------------------------------------------


def cite_author(author: ScheduleAuthor | FusionAuthor) -> Citation:
    """Returns the citation of an author: its version is the attribute `version` of its class, else the version of the
    package that installs it."""
    kind = "schedule author" if isinstance(author, ScheduleAuthor) else "fusion author"
    group = kind.replace(" ", "_") + "s"
    package, installed = _distribution(group, author.name, type(author).__module__)
    version = str(getattr(type(author), "version", "") or installed)
    named = str(author.spec())
    code = _code_hash(_packages(type(author)))
    digest = hashlib.sha256(f"{kind}\0{named}\0{code}".encode()).hexdigest()[:_DIGITS] if code else ""
    return Citation(kind, named, version, digest, package)


def _packages(author_type: type[Any]) -> tuple[str, ...]:
    """Returns the packages whose source determines the answers of an author, by its base classes."""
    found: set[str] = set()
    for base in author_type.__mro__:
        module = base.__module__
        if base in (ScheduleAuthor, FusionAuthor) or module.partition(".")[0] in _FOREIGN:
            continue
        found |= set(_OWN_PACKAGES) if module.startswith("igniter.") else {module.partition(".")[0]}
    return tuple(sorted(found))


@cache
def _code_hash(packages: tuple[str, ...]) -> str:
    """Returns a hash of the Python files of packages; "" if one has none, such as the class of a notebook."""
    digest = hashlib.sha256()
    for package in packages:
        files = _files(package)
        if not files:
            return ""
        for name, path in files:
            digest.update(f"{package}/{name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(package: str) -> list[tuple[str, Path]]:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None  # `__main__` of a notebook.
    if spec is None:
        return []
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    if folders:
        return sorted((path.relative_to(f).as_posix(), path) for f in folders for path in f.rglob("*.py"))
    return [(Path(spec.origin).name, Path(spec.origin))] if spec.origin and Path(spec.origin).is_file() else []


def _distribution(group: str, name: str, module: str) -> tuple[str, str]:
    """Returns the name and the version of the package that installs an author; ("", "") for a class that is not
    installed."""
    if module.startswith("igniter."):
        return "onnx-igniter", __version__
    return distribution_of(group, name)
