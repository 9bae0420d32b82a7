"""Systems and jobs that work, fail, crash and hang, for `test_isolation.py`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from igniter.runtime.timing import System


@dataclass
class Sleeper:
    """A system whose runs take `seconds`; it ends its process after `lives` runs."""

    seconds: float
    lives: int

    @property
    def run(self) -> Callable[[], object]:
        return self._run

    @property
    def outputs(self) -> Callable[[], list[Any]]:
        return lambda: [self.seconds]

    def _run(self) -> None:
        if not self.lives:
            os._exit(3)
        self.lives -= 1
        time.sleep(self.seconds)


def sleeper(system: System) -> Sleeper:
    return Sleeper(**system.settings)


def hang(system: System) -> None:
    time.sleep(100)


def crash(system: System) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def job(what: str) -> dict[str, str]:
    """A job that does what it is told."""
    if what == "crash":
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(100)
    if what == "raise":
        raise ValueError("wrong")
    print("a library prints this")
    return {"done": what}
