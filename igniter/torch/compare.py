"""The comparison of compiled results with eager's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from igniter.torch.exporter import output_nodes
from igniter.torch.names import GraphModule, Node, Tensor, is_tensor, pytree, torch

ROUNDINGS = 8
"""The tolerance of f16 and bf16 results, in units in the last place of the largest value."""
MASK = 1e30
"""Values beyond this are treated as infinities (masks) and compared separately."""


def difference(got: Any, expected: Any, rtol: float) -> tuple[float, str]:
    """Returns the largest difference over the largest value, and the error (empty within the tolerance).

    Floats may differ by `rtol` of the largest value or by `ROUNDINGS` roundings of their type, the larger of the two.
    Infinities and NaNs must be in the same places. Numbers, integers and booleans must be equal.
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
    """Returns the tolerance of each output of a functional graph: the larger of `rtol` and `ROUNDINGS` roundings of the
    coarsest float type in the output's computation. Under `torch.autocast` an f32 result is computed through bf16."""
    coarsest: dict[Node, float] = {}
    for node in graph.graph.nodes:
        own = _rounding(node) if node.op == "call_function" else 0.0
        coarsest[node] = max((coarsest[each] for each in node.all_input_nodes), default=0.0)
        coarsest[node] = max(coarsest[node], own)
    return [max(rtol, ROUNDINGS * coarsest.get(node, 0.0)) for node in output_nodes(graph)]


def _rounding(node: Node) -> float:
    """Returns the machine epsilon of the type of a node's floats; 0 for a view, because it does not round."""
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
    """Returns the largest difference of several outputs, and the error of the first differing one (empty if all agree).
    `rtol` is one tolerance for all outputs, or one for each."""
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
