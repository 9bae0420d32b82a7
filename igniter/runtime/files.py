"""Files, complete or absent."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: str | Path, data: str | bytes) -> None:
    """Writes a file under a temporary name beside it, and renames it.

    An existing file is replaced, never written into: a process with a map of it keeps the old content. Other kinds of
    files (a pipe, `/dev/null`) are written to.
    """
    target = Path(path)
    content = data.encode("utf-8") if isinstance(data, str) else data
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
