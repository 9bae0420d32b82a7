"""The name of a library, which is also the domain of its ops.

    libigniter_0123456789abcdef       the domain: a prefix, and a hash of the library's content
    libigniter_0123456789abcdef.so    the file: `.dll` on Windows, `.dylib` on macOS and iOS, with the same stem

ONNX Runtime reports a library that is not registered by the domain of the op that it does not know. With one name for
both, the message names the file to register, on every system and for CPU and GPU libraries alike.
"""

from __future__ import annotations

import re

PREFIX = "libigniter_"
_DOMAIN = re.compile(r"libigniter_[0-9a-f]{16}|igniter\.[0-9a-f]{16}")
"""The domains of libraries: the second form is that of libraries made before the domain was the file's stem."""
_SUFFIXES = {"windows": ".dll", "macosx": ".dylib", "macos": ".dylib", "darwin": ".dylib", "ios": ".dylib"}


def domain_of(digest: str) -> str:
    """Returns the domain of the library with a digest in hexadecimal."""
    return f"{PREFIX}{digest[:16]}"


def file_name(domain: str, triple: str = "") -> str:
    """Returns the name of the file of a library for a triple; "" is an ELF system."""
    system = re.sub(r"[\d.]+$", "", triple.split("-")[2]) if triple.count("-") >= 2 else ""
    # Older libraries have a domain with a dot; their file has the present name.
    stem = domain if domain.startswith(PREFIX) else f"lib{domain.replace('.', '_')}"
    return stem + _SUFFIXES.get(system, ".so")


def is_library_domain(domain: str) -> bool:
    """True if a domain is that of a library made by Igniter."""
    return _DOMAIN.fullmatch(domain) is not None
