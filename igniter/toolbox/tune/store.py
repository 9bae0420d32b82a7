"""The default place of the database of schedules."""

from __future__ import annotations

from pathlib import Path

from igniter.runtime.cache import default_folder

FILE = "schedules.sqlite"


def database_path(given: str = "") -> Path:
    """Returns the given file, or the one in the cache's folder, exempt from eviction."""
    return Path(given).expanduser() if given else default_folder() / FILE
