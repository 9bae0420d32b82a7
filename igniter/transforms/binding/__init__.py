"""The rules of `bind-values`, one function an op; see `igniter.transforms.bind_values`."""

from __future__ import annotations

from igniter.transforms.onnx_rewriting import Rules


def all_rules() -> Rules:
    """Every rule, by the qualified name of the op that it rewrites."""
    from igniter.transforms.binding import computed, lists, reductions, resizing, sizes, windows

    return {**lists.RULES, **sizes.RULES, **reductions.RULES, **windows.RULES, **computed.RULES, **resizing.RULES}
