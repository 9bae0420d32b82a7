"""Warnings of the library at the command line: lines on standard error.

The library logs (`igniter.*` of `logging`) and prints nothing. A tool shows warnings and worse.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO


class _Lines(logging.Handler):
    """Prints a record as `NAME: warning: MESSAGE`."""

    def __init__(self, name: str, stream: IO[str] | None):
        super().__init__(logging.WARNING)
        self._name, self._stream = name, stream
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        line = f"{self._name}: {record.levelname.lower()}: {record.getMessage()}"
        # A second compilation of a model, with more kernels, warns of the same.
        if line not in self._said:
            self._said.add(line)
            print(line, file=stream)


@contextmanager
def shown_warnings(name: str, stream: IO[str] | None = None) -> Generator[None]:
    """Shows the warnings of the library during the block, by default on standard error; `name` is the tool's."""
    handler, logger = _Lines(name, stream), logging.getLogger("igniter")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
