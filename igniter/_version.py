"""The version, alone in its file so that reading it imports nothing."""

from functools import cache

__version__ = "0.1.0"


@cache
def build_id() -> str:
    """The version and a fingerprint of the package's files: what a cache of compiled code must depend on.

    A source tree that is being worked on keeps its version while its code changes.
    """
    import hashlib
    from pathlib import Path

    root = Path(__file__).parent
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*.py")):
        stat = path.stat()
        digest.update(f"{path.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
