"""Activations and other elementwise epilogues as exporters write them."""

from __future__ import annotations

from collections.abc import Callable

from benchmark.sweep.graph import Sketch

Step = Callable[[Sketch, str], str]


def relu6(g: Sketch, x: str) -> str:
    return g.op("Clip", x, g.number(0.0), g.number(6.0))


def hard_swish_in_parts(g: Sketch, x: str) -> str:
    """As older exporters of PyTorch and PaddlePaddle write it."""
    return g.op("Div", g.op("Mul", x, relu6(g, g.op("Add", x, g.number(3.0)))), g.number(6.0))


def gelu_tanh(g: Sketch, x: str) -> str:
    cube = g.op("Mul", g.op("Pow", x, g.number(3.0)), g.number(0.044715))
    inner = g.op("Tanh", g.op("Mul", g.op("Add", x, cube), g.number(0.7978845608)))
    return g.op("Mul", g.op("Mul", x, g.number(0.5)), g.op("Add", inner, g.number(1.0)))


def mish(g: Sketch, x: str) -> str:
    return g.op("Mul", x, g.op("Tanh", g.op("Softplus", x)))


ACTIVATIONS: dict[str, Step] = {
    "Relu": lambda g, x: g.op("Relu", x),
    "Relu6": relu6,
    "LeakyRelu": lambda g, x: g.op("LeakyRelu", x, alpha=0.1),
    "HardSwish": lambda g, x: g.op("HardSwish", x),
    "HardSwish in parts": hard_swish_in_parts,
    "SiLU": lambda g, x: g.silu(x),
    "Sigmoid": lambda g, x: g.op("Sigmoid", x),
    "HardSigmoid": lambda g, x: g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5),
    "Tanh": lambda g, x: g.op("Tanh", x),
    "Gelu": lambda g, x: g.gelu(x),
    "Gelu by tanh": gelu_tanh,
    "Mish": mish,
    "Elu": lambda g, x: g.op("Elu", x),
}


def activated(g: Sketch, x: str, name: str) -> str:
    """Adds an activation by name; none for an empty name."""
    return ACTIVATIONS[name](g, x) if name else x
