"""Whether what was compiled computes what eager computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from igniter.torch.exporter import output_nodes
from igniter.torch.names import GraphModule, Node, Tensor, is_tensor, pytree, torch

ROUNDINGS = 8
"""How many units of the last place of the largest value results of f16 and bf16 may differ by."""
MASK = 1e30
"""Values beyond this stand for infinity (masks): they are compared by themselves."""


def difference(got: Any, expected: Any, rtol: float) -> tuple[float, str]:
    """The largest difference over the largest value, and what is wrong (empty: nothing).

    Floats may differ by `rtol` of the largest value, or by `ROUNDINGS` roundings of their type where that is more;
    infinities and NaNs have to be in the same places; numbers, integers and booleans have to be equal.
    """
    if not is_tensor(expected) or not is_tensor(got):
        same = type(got) is type(expected) and got == expected
        return 0.0, "" if same else f"{got!r} instead of {expected!r}"
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return 0.0, f"{_type(got)} instead of {_type(expected)}"
    if not expected.is_floating_point():
        wrong = int((got != expected).sum())
        return 0.0, f"{wrong} of {expected.numel()} elements differ" if wrong else ""
    return _float_difference(got.detach().double(), expected.detach().double(), allowed(expected.dtype, rtol))


def allowed(dtype: Any, rtol: float) -> float:
    return max(rtol, ROUNDINGS * torch.finfo(dtype).eps)


def tolerances(graph: GraphModule, rtol: float) -> list[float]:
    """The tolerance of each output of a functional graph: `rtol`, or the roundings of the coarsest float type that the
    output is computed in where they are more. Under `torch.autocast` a result in f32 has been through bf16."""
    coarsest: dict[Node, float] = {}
    for node in graph.graph.nodes:
        own = _rounding(node) if node.op == "call_function" else 0.0
        coarsest[node] = max((coarsest[each] for each in node.all_input_nodes), default=0.0)
        coarsest[node] = max(coarsest[node], own)
    return [max(rtol, ROUNDINGS * coarsest.get(node, 0.0)) for node in output_nodes(graph)]


def _rounding(node: Node) -> float:
    """The unit in the last place of 1 in the type of a node's floats; 0 for a view, which rounds nothing."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or any(result.alias_info is not None for result in schema.returns):
        return 0.0
    values = [value for value in pytree.tree_leaves(node.meta.get("val")) if is_tensor(value)]
    return max((torch.finfo(v.dtype).eps for v in values if v.is_floating_point()), default=0.0)


def _float_difference(got: Tensor, expected: Tensor, rtol: float) -> tuple[float, str]:
    odd = ~(expected.abs() < MASK)
    if not torch.equal(odd, ~(got.abs() < MASK)):
        return float("inf"), "infinities or NaNs are in other places"
    if not torch.allclose(got[odd], expected[odd], rtol=1e-3, equal_nan=True):
        return float("inf"), "infinities or NaNs differ"
    inside = expected[~odd]
    if inside.numel() == 0:
        return 0.0, ""
    largest = max(float(inside.abs().max()), torch.finfo(torch.float32).tiny)
    found = float((got[~odd] - inside).abs().max()) / largest
    return found, f"largest difference {found:.1e} of the largest value" if found > rtol else ""


def differences(got: Sequence[Any], expected: Sequence[Any], rtol: float | Sequence[float]) -> tuple[float, str]:
    """The largest difference of several outputs, and what is wrong with the first that differs; `rtol` is that of all
    outputs, or of each."""
    allowances: Sequence[float] = rtol if isinstance(rtol, Sequence) else [rtol] * len(expected)
    if len(got) != len(expected):
        return float("inf"), f"{len(got)} outputs instead of {len(expected)}"
    largest, wrong = 0.0, ""
    for place, (one, other, each) in enumerate(zip(got, expected, allowances, strict=True)):
        found, why = difference(one, other, each)
        largest = max(largest, found)
        if why and not wrong:
            wrong = f"output {place}: {why}"
    return largest, wrong


def _type(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
