"""LSTM, GRU, RNN and DynamicQuantizeLSTM against ONNX Runtime: directions, lengths, states, peepholes, activations,
clipping, layouts, scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import igniter
from igniter.errors import IgniterError
from igniter.verification.interp.structured import run_kernel
from tests.ops.single_node import NotLowered, check, compare, kernel_of, model_of, module_of, reference, refusal
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


@pytest.mark.slow
def test_options_of_lstm() -> None:
    case("LSTM", peephole=True, states=True)
    case("LSTM", "bidirectional", peephole=True, states=True, clip=0.2)
    case("LSTM", input_forget=1)


@pytest.mark.slow
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
    assert "weights are not known to fit its input" in refusal("RNN", inputs, {"hidden_size": 8}, outputs=2)


# -- DynamicQuantizeLSTM ----------------------------------------------------------------------------------------------

QUANTISED = "DynamicQuantizeLSTM"


def quantised(
    direction: str = "forward",
    kind: Any = np.int8,
    *,
    steps: int = STEPS,
    batch: int = 3,
    hidden: int = 12,
    columns: bool = False,
    zero: int = 0,
    bias: bool = True,
    lengths: list[int] | None = None,
    states: bool = False,
    peephole: bool = False,
) -> list[Any]:
    """The operands of a node; scales and zero points are one for each direction, or for each column."""
    count, rows = 2 if direction == "bidirectional" else 1, 4 * hidden
    rng = np.random.default_rng(7)
    # Signed ones of seven bits: where no instruction adds products of bytes, sums of others saturate in ONNX Runtime.
    low, high = (-64, 64) if kind is np.int8 else (0, 255)
    weights = [rng.integers(low, high, (count, k, rows)).astype(kind) for k in (INPUTS, hidden)]
    shape = (count, rows) if columns else (count,)
    scales = [rng.uniform(0.003, 0.01, shape).astype(np.float32) for _ in weights]
    zeros = np.full(shape, zero, kind) if columns else (zero + np.arange(count)).astype(kind)
    optional = [
        floats(count, 2 * rows, seed=3) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        *(floats(count, batch, hidden, seed=4 + k) if states else None for k in range(2)),
        floats(count, 3 * hidden, seed=6) if peephole else None,
    ]
    # No state that follows from these is so near to the middle of two codes that either may be taken.
    x = floats(steps, batch, INPUTS, seed=9)
    return [x, *weights, *optional, scales[0], zeros, scales[1], zeros]


def node_of(inputs: list[Any], direction: str = "forward", **attrs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a node of these operands, and what a model of it needs besides."""
    hidden = inputs[2].shape[1]
    fixed = [1, 2, INPUTS, hidden, 3 * hidden, 4 * hidden, 8 * hidden]
    model: dict[str, Any] = {"domain": "com.microsoft", "outputs": 3, "fixed": fixed}
    return {"hidden_size": hidden, "direction": direction, **attrs}, model


def quantised_case(direction: str = "forward", kind: Any = np.int8, **options: Any) -> None:
    attrs = {k: options.pop(k) for k in ("clip", "input_forget", "activations") if k in options}
    inputs = quantised(direction, kind, **options)
    given, model = node_of(inputs, direction, **attrs)
    run(QUANTISED, inputs, given, 1e-5, **model)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_quantised_weights(direction: str, kind: Any) -> None:
    # Zero points of columns are all one number, of signed weights 0; those of directions are what they like.
    quantised_case(direction, kind, columns=True, zero=0 if kind is np.int8 else 121, states=True)
    quantised_case(direction, kind, zero=-5 if kind is np.int8 else 131)


@pytest.mark.slow
def test_quantised_options() -> None:
    quantised_case("bidirectional", peephole=True, clip=0.4, states=True)
    quantised_case("reverse", np.uint8, zero=120, input_forget=1, bias=False)
    quantised_case(activations=["HardSigmoid", "Relu", "Softsign"], steps=3)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("steps", [1, 7])
def test_quantised_sizes(steps: int, batch: int) -> None:
    quantised_case(steps=steps, batch=batch, states=True, columns=True)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_quantised_lengths(direction: str) -> None:
    quantised_case(direction, lengths=[STEPS - 2, 0, 2], states=True)
    quantised_case(direction, lengths=[1, STEPS, 3])


@pytest.mark.slow
def test_quantised_zeros_and_interpreted() -> None:
    inputs = quantised("reverse", lengths=[3, 1], steps=3, batch=2, hidden=4, columns=True)
    given, model = node_of(inputs, "reverse")
    check(QUANTISED, inputs, given, tolerance=1e-5, dynamic=(True,), **model)
    zeros = [0 * inputs[0], *inputs[1:3], None, *inputs[4:]]
    run(QUANTISED, zeros, given, 1e-5, **model)


def test_quantised_zero_points_are_checked() -> None:
    for kind, zero, wrong in ((np.int8, 0, 3), (np.uint8, 120, 121)):
        inputs = quantised(kind=kind, steps=1, batch=1, hidden=2, columns=True, zero=zero)
        given, model = node_of(inputs)
        kernel = kernel_of(module_of(model_of(QUANTISED, inputs, given, **model)))
        inputs[9] = np.array([[*inputs[9][0, :-1], wrong]], kind)
        with pytest.raises(IgniterError, match="zero points of all columns"):
            run_kernel(kernel, [a for a in inputs if a is not None])


def test_quantised_in_a_model() -> None:
    """ONNX Runtime packs weights that are constants; the default pipeline leaves the node to it."""
    inputs = quantised("bidirectional", columns=True)
    given, model = node_of(inputs, "bidirectional")
    whole = model_of(QUANTISED, inputs, given, constant=[1, 2, 3, 8, 9, 10, 11], dynamic=True, **model)
    (left,) = igniter.compile(whole, verify=False).report["left_to_onnxruntime"]
    assert "no micro-kernel" in left["reason"]
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{contractions=all singletons=all}")
    artifact = igniter.compile(whole, options=options, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    feeds = {"x0": inputs[0]}
    got: Any = artifact.session().run(None, feeds)
    compare(got, reference(whole, feeds), 1e-5)


def test_quantised_refusals() -> None:
    inputs = quantised(lengths=[3, 1, 2])
    given, model = node_of(inputs)

    def changed(index: int, value: Any) -> str:
        return refusal(QUANTISED, [*inputs[:index], value, *inputs[index + 1 :]], given, **model)

    assert "weights are not known to fit its input" in changed(1, inputs[1][:, :-1])
    assert "its input 3 is not known to have the dims" in changed(3, inputs[3][:, :-1])
    assert "scales of R are not known to be one for each direction" in changed(10, np.ones((1, 2), np.float32))
    assert "zero points and the scales of W have different dims" in changed(9, np.zeros((1, 48), np.int8))
    assert "activation 'Cosine'" in refusal(QUANTISED, inputs, {**given, "activations": ["Cosine"] * 3}, **model)
    last = model_of(QUANTISED, inputs, given, **model)
    last.graph.node[0].output[0] = ""
    del last.graph.output[0]
    with pytest.raises(NotLowered, match="after the end of a sequence"):
        kernel_of(module_of(last))
