"""Where the database of schedules is, if nobody says."""

from __future__ import annotations

from pathlib import Path

from igniter.runtime.cache import default_folder

FILE = "schedules.sqlite"


def database_path(given: str = "") -> Path:
    """The file that was named, else the one in the cache's folder, which eviction leaves alone."""
    return Path(given).expanduser() if given else default_folder() / FILE
