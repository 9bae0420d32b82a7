"""The rules of `canonicalize-onnx`, a module a theme, each with its `RULES`."""

from __future__ import annotations

from igniter.transforms.onnx.canonicalization import arithmetic, control_flow, conversions, indexing, movement, views
from igniter.transforms.onnx.onnx_rewriting import Rule, Rules


def all_rules() -> Rules:
    """The table of every theme: for each op its rules in the order in which they are tried."""
    table: dict[str, list[Rule]] = {}
    for theme in (arithmetic, conversions, control_flow, movement, views, indexing):
        for name, rules in theme.RULES.items():
            table.setdefault(name, []).extend(rules)
    return table
