"""The parts of a cache key that do not depend on a graph: versions of packages, and the files of `igniter.torch`."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from igniter._version import __version__


@cache
def versions() -> list[str]:
    """Returns digests of this folder's files and versions of packages, on which an export depends."""
    found = [__version__]
    found += [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(Path(__file__).parent.glob("*.py"))]
    for name in ("torch", "onnxscript", "onnx"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return found
