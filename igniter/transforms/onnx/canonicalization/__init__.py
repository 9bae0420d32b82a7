"""The rules of `canonicalize-onnx`, one module per theme, each with its `RULES`."""

from __future__ import annotations

from igniter.transforms.onnx.canonicalization import (
    arithmetic,
    control_flow,
    conversions,
    heads,
    indexing,
    movement,
    views,
    windows,
)
from igniter.transforms.onnx.onnx_rewriting import Rule, Rules


def all_rules() -> Rules:
    """Returns the table of all themes: for each op its rules in the order of trial."""
    table: dict[str, list[Rule]] = {}
    for theme in (arithmetic, conversions, control_flow, movement, views, indexing, windows, heads):
        for name, rules in theme.RULES.items():
            table.setdefault(name, []).extend(rules)
    return table
