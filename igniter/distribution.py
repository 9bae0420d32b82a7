"""The name of Igniter's distribution, and the command to install an extra.

The package `igniter` of the public index is another author's, so every message takes the name from here.
"""

from __future__ import annotations

DISTRIBUTION = "onnx-igniter"
"""The name of the distribution. The module's name is `igniter`."""


def install_command(extra: str) -> str:
    """Returns the command to install Igniter with one of its extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
