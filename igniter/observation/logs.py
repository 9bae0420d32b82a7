"""The loggers of passes, with the log of every pass: its runs, its rewrites and its remarks, at the level DEBUG.

A pass's logger is called like the module of the pass, so `logging.getLogger("igniter.transforms.scheduled.fuse_loops")`
is the one of `fuse-loops`, and `logging.getLogger("igniter.transforms")` the parent of all there. A pass may log more
with it. `igniter-opt --debug-only=fuse-loops` prints the log.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from igniter.registry import where_pass

if TYPE_CHECKING:
    from igniter.observation import Unit


@lru_cache(maxsize=512)
def logger_of(pass_name: str) -> logging.Logger:
    """Returns the logger of a pass; for another name, `igniter.NAME`."""
    where = where_pass(pass_name)
    return logging.getLogger(where.partition(":")[0] if where is not None else f"igniter.{pass_name}")


def log_debug(pass_name: str, message: str, *values: object) -> None:
    """Logs a message of a pass at the level DEBUG."""
    logger = logger_of(pass_name)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug(message, *values, extra={"igniter_pass": pass_name})


def log_run(pass_name: str, unit: Unit | None, seconds: float) -> None:
    """Logs a finished run of a pass, with the kernel of a nested run."""
    log_debug(pass_name, "ran on %s in %.2f ms", "the module" if unit is None else unit, 1000 * seconds)
