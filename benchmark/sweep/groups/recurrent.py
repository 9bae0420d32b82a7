"""Small recurrent layers, as ops and unrolled."""

from __future__ import annotations

from collections.abc import Iterator

from benchmark.sweep.graph import Build, Graph, Sketch

GROUP = "recurrent"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def graphs() -> Iterator[Graph]:
    """All recurrent graphs."""
    for kind in GATES:
        for steps, width, hidden in [(32, 64, 64), (100, 40, 128), (1, 256, 256)]:
            for direction in ("forward", "bidirectional"):
                named = f"{kind} {direction} {steps} steps {width}>{hidden}"
                yield Graph(GROUP, named, _layer(kind, steps, width, hidden, direction))
    yield Graph(GROUP, "LSTM + product 40 steps 192>48>100", _reader)
    yield Graph(GROUP, "GRU before a reset 32 steps 64>64", _layer("GRU", 32, 64, 64, "forward", linear_before_reset=1))
    yield Graph(GROUP, "LSTM cell in parts 1x128", _cell)
    yield Graph(GROUP, "GRU in parts 8 steps 64", _unrolled)


def recurrent(g: Sketch, x: str, kind: str, width: int, hidden: int, direction: str, **more: int) -> list[str]:
    """Adds a layer on [steps, batch, width]; returns all its outputs."""
    both, gates = 2 if direction == "bidirectional" else 1, GATES[kind] * hidden
    weight, state = g.random(both, gates, width, scale=width**-0.5), g.random(both, gates, hidden, scale=hidden**-0.5)
    bias = g.random(both, 2 * gates, scale=0.1)
    count = 3 if kind == "LSTM" else 2
    return g.ops(kind, x, weight, state, bias, count=count, hidden_size=hidden, direction=direction, **more)


def _layer(kind: str, steps: int, width: int, hidden: int, direction: str, **more: int) -> Build:
    def build(g: Sketch) -> list[str]:
        c, h = g.wide(width), g.wide(hidden)
        x = g.input("x", ("steps", g.side(steps)), ("batch", 1), c)
        return recurrent(g, x, kind, c, h, direction, **more)

    return build


def _reader(g: Sketch) -> str:
    """The head of a CRNN: a layer in both directions, and the characters of each step."""
    c, h = g.wide(192), g.wide(48)
    x = g.op(
        "Transpose",
        g.op("Squeeze", g.input("x", ("batch", 1), c, 1, ("width", g.side(40))), g.integers(2)),
        perm=[2, 0, 1],
    )
    both = recurrent(g, x, "LSTM", c, h, "bidirectional")[0]
    joined = g.reshape(g.op("Transpose", both, perm=[0, 2, 1, 3]), 0, 0, 2 * h)
    return g.op("Softmax", g.linear(joined, 2 * h, 100), axis=-1)


def _cell(g: Sketch) -> list[str]:
    n = g.wide(128)
    x, h, c = (g.input(name, ("batch", 1), n) for name in "xhc")
    total = g.op(
        "Add", *(g.op("Gemm", v, g.random(4 * n, n, scale=n**-0.5), g.random(4 * n), transB=1) for v in (x, h))
    )
    i, f, o, new = g.ops("Split", total, count=4, axis=1, num_outputs=4)
    i, f, o = (g.op("Sigmoid", gate) for gate in (i, f, o))
    cell = g.op("Add", g.op("Mul", f, c), g.op("Mul", i, g.op("Tanh", new)))
    return [g.op("Mul", o, g.op("Tanh", cell)), cell]


def _unrolled(g: Sketch) -> str:
    n, steps = g.wide(64), 8
    x, h = g.input("x", steps, 1, n), g.input("h", 1, n)
    to_gates, to_new = (g.random(2 * n, r * n, scale=n**-0.5) for r in (2, 1))
    for k in range(steps):
        step = g.op("Gather", x, g.scalar(k), axis=0)
        gates = g.op("Sigmoid", g.op("MatMul", g.op("Concat", step, h, axis=1), to_gates))
        reset, update = g.ops("Split", gates, count=2, axis=1, num_outputs=2)
        new = g.op("Tanh", g.op("MatMul", g.op("Concat", step, g.op("Mul", reset, h), axis=1), to_new))
        h = g.op("Add", g.op("Mul", update, h), g.op("Mul", g.op("Sub", g.number(1.0), update), new))
    return h
