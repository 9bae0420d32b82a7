"""The rules of `bind-values`, one function per op; see `igniter.transforms.onnx.bind_values`."""

from __future__ import annotations

from igniter.transforms.onnx.onnx_rewriting import Rules

OLDEST_OPSET = 13
"""The first opset with the integer arithmetic for parameters."""


def rules_of(opset: int, ops: str) -> Rules:
    """Returns the rules for a model of an opset, for `all` ops or for `loops`, by the qualified name of the rewritten
    op."""
    from igniter.transforms.onnx.binding import computed, lists, loops, reductions, resizing, selections, sizes, windows

    if ops == "loops":
        return loops.RULES if opset >= OLDEST_OPSET else {}
    if opset < OLDEST_OPSET:
        return selections.RULES_WITHOUT_ARITHMETIC
    families = (computed, lists, loops, reductions, resizing, selections, sizes, windows)
    return {name: rules for family in families for name, rules in family.RULES.items()}
