"""The name under which Igniter is installed, and the command that installs an extra of it.

The package `igniter` of the public index is another author's, so every message takes the
name from here.
"""

from __future__ import annotations

DISTRIBUTION = "onnx-igniter"
"""The distribution. The module stays `igniter`."""


def install_command(extra: str) -> str:
    """The command that installs Igniter with one of its extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
