"""Objects made by another process while this one goes on with the library.

Kernels get their objects where they are compiled (`compile_helpers`); micro-kernels and programs are known only at the
end. A fork makes these objects, the last ones first, and puts them into the cache, while this process packs weights and
makes the rest, the library's own code first. `build_library` takes from the cache what is there and makes the rest, so
the fork may be slow, or missing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from igniter.activity import note_off
from igniter.compiler.compile_helpers import can_fork, fork, jobs
from igniter.runtime.library import compile_object, object_key
from igniter.targets import Target, backend_for

if TYPE_CHECKING:
    from igniter.runtime.cache import Cache

Texts = Mapping[Target, Sequence[str]]
"""The texts of kernels and programs for each target."""
Work = Sequence[tuple[Target, str]]
"""Texts with their targets."""


@contextmanager
def assembling(texts: Texts, cache: Cache | None) -> Generator[None]:
    """Runs the block while a fork makes the objects of `texts` for the cache; the fork ends with the block."""
    child = _begin(texts, cache)
    try:
        yield
    finally:
        if child is not None:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def _begin(texts: Texts, cache: Cache | None) -> int | None:
    """Starts the fork; `None` if there is none, or too little to do."""
    if cache is None or cache.limit == 0 or jobs() < 2 or not can_fork():
        return None
    work = missing(texts, cache)
    if len(work) < 2:
        return None
    child = fork()
    if child == 0:
        _assemble(work, cache)
    return child


def missing(texts: Texts, cache: Cache) -> Work:
    """Returns the texts without an object in the cache, and the functions that they call without one."""
    found: list[tuple[Target, str]] = []
    for target, given in texts.items():
        own = sorted(set(given))
        every = [*own, *backend_for(target.name).needed(own, target)]
        found += [(target, text) for text in every if not cache.has(object_key(text, target))]
    return found


def _assemble(work: Work, cache: Cache) -> NoReturn:
    """Makes the objects, and ends this process without the handlers and destructors of the one that it was."""
    try:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        note_off()
        # An error comes again in the process that needs the object.
        with suppress(Exception):
            for target, text in reversed(work):
                compile_object(text, target, cache)
    finally:
        os._exit(0)
