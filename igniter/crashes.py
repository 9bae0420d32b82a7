"""The text of an exception that nobody raised on purpose: its type, its message, and the line of code behind it.

A plug-in's `KeyError('axis')` is shown as

    KeyError: 'axis' (my_package/swish2.py:31, in lower: axis = attributes["axis"])

The line is the innermost one outside Igniter, xDSL, the standard library and the packages that Igniter builds on; if
there is none, the innermost one in Igniter.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

OWN = ("igniter",)
FOUNDATIONS = ("xdsl", "numpy", "onnx", "onnxruntime", "llvmlite", "triton", "ordered_set", "immutabledict")
"""The packages below Igniter and its plug-ins: a failure in one of them is its caller's."""


@dataclass(frozen=True)
class Place:
    """A line of code."""

    file: str
    line: int
    function: str
    module: str
    text: str

    @property
    def is_outside(self) -> bool:
        """True for the code of a plug-in or of the user."""
        return _root(self.module) not in (*OWN, *FOUNDATIONS)

    def __str__(self) -> str:
        text = f": {self.text}" if self.text else ""
        return f"{self.file}:{self.line}, in {self.function}{text}"


def crash_place(error: BaseException) -> Place | None:
    """Returns the line to blame for an exception; `None` without a traceback of Python code."""
    places = list(_places(error.__traceback__))
    outside = [place for place in places if place.is_outside]
    own = [place for place in places if _root(place.module) in OWN]
    return next(iter([*outside[-1:], *own[-1:], *places[-1:]]), None)


def crash_text(error: BaseException) -> str:
    """Returns an exception with its type, its message and its place."""
    message = str(error).strip()
    name = type(error).__name__
    place = crash_place(error)
    return f"{name}{f': {message}' if message else ''}{f' ({place})' if place is not None else ''}"


def is_outside(error: BaseException) -> bool:
    """True if the code of a plug-in or of the user raised an exception."""
    place = crash_place(error)
    return place is not None and place.is_outside


def _places(traceback: TracebackType | None) -> Iterator[Place]:
    while traceback is not None:
        frame = traceback.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        code, line = frame.f_code, traceback.tb_lineno
        if _root(module) not in sys.stdlib_module_names:
            text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
            yield Place(_short(code.co_filename), line, code.co_name, module, text)
        traceback = traceback.tb_next


def _root(module: str) -> str:
    return module.partition(".")[0]


def _short(path: str) -> str:
    """Returns a path relative to the folder that Python imports it from, or to the current one if that is shorter."""
    found = [path]
    for folder in (*sys.path, os.getcwd()):
        if folder and path.startswith(f"{folder.rstrip(os.sep)}{os.sep}"):
            found.append(os.path.relpath(path, folder))
    return min(found, key=len)
