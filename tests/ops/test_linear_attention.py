"""LinearAttention of ONNX against its evaluator, and of com.microsoft against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import check, refusal

F32, F16 = np.float32, np.float16
TOLERANCE = {F32: 2e-5, F16: 4e-3}


def operands(
    rule: str,
    batch: int = 2,
    tokens: int = 5,
    heads: tuple[int, int] = (4, 2),
    sizes: tuple[int, int] = (6, 8),
    *,
    past: bool = False,
    per_head: tuple[bool, bool] = (False, True),
    dtype: Any = F32,
) -> tuple[list[Any], dict[str, Any]]:
    rng = np.random.default_rng(0)
    (queries, states), (key, value) = heads, sizes

    def random(*shape: int) -> Any:
        return rng.normal(0, 0.5, shape).astype(dtype)

    lead = (batch, tokens)
    inputs = [random(*lead, queries * key), random(*lead, states * key), random(*lead, states * value)]
    inputs.append(random(batch, states, key, value) if past else None)
    inputs.append(-abs(random(*lead, states * (1 if per_head[0] else key))) if "gated" in rule else None)
    inputs.append(abs(random(*lead, states if per_head[1] else 1)) if "delta" in rule else None)
    while inputs[-1] is None:
        inputs.pop()
    return inputs, {"q_num_heads": queries, "kv_num_heads": states, "update_rule": rule}


def kept(sizes: tuple[int, int], heads: tuple[int, int]) -> list[int]:
    """What is no symbol: how many features all heads have together."""
    return [heads[0] * sizes[0], heads[1] * sizes[0], heads[1] * sizes[1], *heads, *sizes]


RULES = ["linear", "gated", "delta", "gated_delta"]


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str, past: bool, dtype: Any) -> None:
    inputs, attrs = operands(rule, past=past, dtype=dtype)
    fixed = kept((6, 8), (4, 2))
    check("LinearAttention", inputs, attrs, outputs=2, opset=27, tolerance=TOLERANCE[dtype], fixed=fixed)
    if dtype == F32:
        check("LinearAttention", inputs, attrs, outputs=2, domain="com.microsoft", tolerance=2e-5, fixed=fixed)


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (6, 1)])
@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_heads_and_tokens(tokens: int, heads: tuple[int, int]) -> None:
    for per_head in ((True, True), (False, False)):
        inputs, attrs = operands("gated_delta", 1, tokens, heads, (4, 3), past=True, per_head=per_head)
        attrs["scale"] = 0.7
        fixed = kept((4, 3), heads)
        check("LinearAttention", inputs, attrs, opset=27, outputs=2, tolerance=2e-5, fixed=fixed)
        check("LinearAttention", inputs, attrs, opset=27, tolerance=2e-5, fixed=fixed)


def test_features_of_any_number() -> None:
    inputs, attrs = operands("gated", heads=(1, 1), sizes=(6, 8))
    check("LinearAttention", inputs, attrs, opset=27, outputs=2, tolerance=2e-5)


@pytest.mark.slow
def test_more_states_than_queries() -> None:
    inputs, attrs = operands("gated_delta", heads=(2, 6))
    fixed = kept((6, 8), (2, 6))
    check("LinearAttention", inputs, attrs, outputs=2, domain="com.microsoft", tolerance=2e-5, fixed=fixed)


def test_refusals() -> None:
    inputs, attrs = operands("linear")
    assert "do not fit" in refusal("LinearAttention", inputs, {**attrs, "update_rule": "gated"}, opset=27)
    assert "cannot be grouped" in refusal("LinearAttention", inputs, {**attrs, "kv_num_heads": 3}, opset=27)
    window = {**attrs, "state_window": 2}
    assert "several tokens" in refusal("LinearAttention", inputs, window, domain="com.microsoft")
