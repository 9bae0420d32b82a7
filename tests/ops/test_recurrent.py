"""LSTM, GRU and RNN against ONNX Runtime: directions, lengths, states, peepholes, activations, clipping, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.ops.single_node import check, model_of, refusal
from tests.ops.test_compiled import run

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 7, 6, 5, 20


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def case(
    op: str,
    direction: str = "forward",
    *,
    hidden: int = HIDDEN,
    bias: bool = True,
    lengths: bool = False,
    states: bool = False,
    peephole: bool = False,
    interpreted: bool = False,
    outputs: int = 0,
    **attrs: Any,
) -> None:
    count, rows = 2 if direction == "bidirectional" else 1, GATES[op] * hidden
    ends = np.array([STEPS, 1, STEPS - 1, 2, 0, 3], np.int32) if lengths else None
    inputs = [floats(STEPS, BATCH, INPUTS), floats(count, rows, INPUTS, seed=1), floats(count, rows, hidden, seed=2)]
    inputs += [floats(count, 2 * rows, seed=3) if bias else None, ends]
    inputs += [floats(count, BATCH, hidden, seed=4 + k) if states else None for k in range(1 + (op == "LSTM"))]
    inputs += [floats(count, 3 * hidden, seed=6)] if peephole else []
    while inputs[-1] is None:
        inputs.pop()
    given = {"hidden_size": hidden, "direction": direction, **attrs}
    fixed = [count, INPUTS, hidden, rows, 2 * rows, 3 * hidden]
    model: dict[str, Any] = {"outputs": outputs or 2 + (op == "LSTM"), "opset": 14, "fixed": fixed}
    run(op, inputs, given, 1e-5, **model)
    if interpreted:
        check(op, inputs, given, tolerance=1e-5, dynamic=(True,), **model)


@pytest.mark.parametrize("op", GATES)
def test_directions_lengths_and_states(op: str) -> None:
    case(op, interpreted=True, hidden=6, states=True)
    case(op, "reverse", states=True, lengths=True)
    case(op, "bidirectional", states=True)
    case(op, "bidirectional", lengths=True, bias=False, hidden=17)
    case(op, "reverse", clip=0.3, outputs=1)


def test_options_of_lstm() -> None:
    case("LSTM", peephole=True, states=True)
    case("LSTM", "bidirectional", peephole=True, states=True, clip=0.2)
    case("LSTM", input_forget=1)


def test_options_of_gru() -> None:
    case("GRU", linear_before_reset=1, states=True)
    case("GRU", "bidirectional", linear_before_reset=1, clip=0.2)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        *(("Relu", 0, 0), ("Affine", 0.4, 0.3), ("LeakyRelu", 0.4, 0), ("ThresholdedRelu", 0.4, 0), ("Elu", 0.4, 0)),
        *(("ScaledTanh", 0.4, 0.3), ("HardSigmoid", 0.4, 0.3), ("Softsign", 0, 0), ("Softplus", 0, 0)),
    ],
)
def test_activations(name: str, alpha: float, beta: float) -> None:
    more = {**({"activation_alpha": [alpha]} if alpha else {}), **({"activation_beta": [beta]} if beta else {})}
    case("RNN", hidden=8, activations=[name], **more)


def test_alphas_go_to_the_activations_that_have_one() -> None:
    names = ["HardSigmoid", "Softsign", "HardSigmoid", "ScaledTanh"]
    alphas, betas = [0.3, 0.1, 0.7], [0.6, 0.2, 0.9]
    case("GRU", "bidirectional", activations=names, activation_alpha=alphas, activation_beta=betas)


@pytest.mark.parametrize("op", GATES)
def test_batch_first(op: str) -> None:
    # ONNX Runtime does not run it.
    rows = GATES[op] * 8
    inputs = [floats(3, 6, 5), floats(1, rows, 5, seed=1), floats(1, rows, 8, seed=2), floats(1, 2 * rows, seed=3)]
    model: dict[str, Any] = {"outputs": 2, "opset": 14}
    attrs = {"hidden_size": 8, "layout": 1}
    wanted = ReferenceEvaluator(model_of(op, inputs, attrs, **model)).run(
        None, {f"x{k}": a for k, a in enumerate(inputs)}
    )
    check(op, inputs, attrs, tolerance=1e-5, expected=wanted, dynamic=(True,), fixed=[1, 5, 8, rows, 2 * rows], **model)


def test_empty() -> None:
    inputs = [floats(0, 2, 5), floats(1, 32, 5), floats(1, 32, 8)]
    state = np.zeros((1, 2, 8), np.float32)
    # What ONNX Runtime gives for the last states of no steps is not initialised.
    wanted = [np.zeros((0, 1, 2, 8), np.float32), state, state]
    check("LSTM", inputs, {"hidden_size": 8}, outputs=3, opset=14, expected=wanted, fixed=[1, 5, 8, 32])


def test_refusals() -> None:
    inputs = [floats(3, 2, 5), floats(1, 8, 4), floats(1, 8, 8)]
    assert "weights fit its input" in refusal("RNN", inputs, {"hidden_size": 8}, outputs=2)
