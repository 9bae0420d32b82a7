"""Shares of a roof in words: no kernel is faster than the machine."""

from __future__ import annotations

DISTURBED = "the machine was disturbed"
"""The text in place of a share above 100%: the clock or the load changed while the roof was measured."""
CACHED = "data in caches"
"""The text in place of a share of the memory bandwidth above 100%, for data that caches can hold."""


def is_passed(share: float | None) -> bool:
    """True if a rate is above its roof by more than rounding."""
    return share is not None and share > 1.005


def roof_text(share: float | None) -> str:
    """Returns a share in percent, `DISTURBED` for one above 100%, and "" without a roof."""
    if share is None:
        return ""
    return DISTURBED if is_passed(share) else f"{min(share, 1.0):.0%}"
