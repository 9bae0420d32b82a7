"""LSTM, GRU and RNN: the products with the inputs as contractions, and the recurrence as a procedure.

Each sequence of the batch is a point, and its steps run in order. A step computes the product of the state with each
gate's weights, row by row, and then the gates of all units, vectorised. Equations, gate orders and the order of
activations follow ONNX. Where its text is ambiguous (clipping, activations with an alpha), they follow ONNX Runtime: a
gate is clipped before its activation, with its bias and its peephole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.pointwise import EXP
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

Function = Callable[["Scalar"], "Scalar"]

GATES = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "DynamicQuantizeLSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}


# -- activations ------------------------------------------------------------------------------------------------------


def _sigmoid(x: Scalar) -> Scalar:
    return 1 / ((-x).exp(saturating=True) + 1)


def _softplus(x: Scalar) -> Scalar:
    return x.maximum(0) + ((-x.abs()).exp()).math("log1p")


def _elu(x: Scalar, alpha: float) -> Scalar:
    return (x >= 0).select(x, x.math("expm1") * alpha)


ACTIVATIONS: dict[str, tuple[float | None, float | None, Callable[[Scalar, float, float], Scalar]]] = {
    "affine": (1.0, 0.0, lambda x, a, b: x * a + b),
    "elu": (1.0, None, lambda x, a, b: _elu(x, a)),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: (x * a + b).maximum(0).minimum(1)),
    "leakyrelu": (0.01, None, lambda x, a, b: (x >= 0).select(x, x * a)),
    "relu": (None, None, lambda x, a, b: x.maximum(0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: (x * b).tanh() * a),
    "sigmoid": (None, None, lambda x, a, b: _sigmoid(x)),
    "softplus": (None, None, lambda x, a, b: _softplus(x)),
    "softsign": (None, None, lambda x, a, b: x / (x.abs() + 1)),
    "tanh": (None, None, lambda x, a, b: x.tanh()),
    "thresholdedrelu": (1.0, None, lambda x, a, b: (x > a).select(x, 0)),
}
"""The activations by lowercase name: the default alpha and beta, if it has them, and the function."""


def activations(op: OnnxOp) -> list[list[Function]]:
    """Returns the functions of each direction; functions with an alpha or beta take the given values in order."""
    directions = direction_count(op)
    names: list[str] = list(op.attr("activations") or DEFAULTS[op.op_type] * directions)
    alphas = list(op.attr("activation_alpha") or ())
    betas = list(op.attr("activation_beta") or ())
    found: list[Function] = []
    for name in names:
        alpha, beta, function = ACTIVATIONS[str(name).lower()]
        a = alphas.pop(0) if alpha is not None and alphas else alpha
        b = betas.pop(0) if beta is not None and betas else beta
        found.append(lambda x, f=function, a=a, b=b: f(x, float(a or 0.0), float(b or 0.0)))
    count = len(DEFAULTS[op.op_type])
    return [found[k * count : (k + 1) * count] for k in range(directions)]


def direction_count(op: OnnxOp) -> int:
    return 2 if str(op.attr("direction", "forward") or "forward") == "bidirectional" else 1


# -- shapes -----------------------------------------------------------------------------------------------------------


def _infer(ctx: InferContext) -> list[TensorInfo]:
    x, r = input_dims(ctx, 0), input_dims(ctx, 2)
    element = element_type(ctx)
    outputs = 3 if ctx.op.op_type == "LSTM" else 2
    if x is None or len(x) != 3:
        return [TensorInfo(element, None)] * outputs
    given = ctx.op.attr("hidden_size")
    hidden = Expr.of(int(given)) if given else r[-1] if r is not None else ctx.fresh("hidden")
    directions = Expr.of(direction_count(ctx.op))
    for index, dims in operand_shapes(ctx.op, x, directions, hidden).items():
        for have, want in zip(input_dims(ctx, index) or (), dims, strict=False):
            ctx.equate(have, want)
    if ctx.op.attr("layout", 0):
        whole, last = (x[0], x[1], directions, hidden), (x[0], directions, hidden)
    else:
        whole, last = (x[0], directions, x[1], hidden), (directions, x[1], hidden)
    return [TensorInfo(element, whole), *[TensorInfo(element, last)] * (outputs - 1)]


# -- the recurrence ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Direction:
    """One direction of one recurrence, for one sequence of the batch, while its procedure is built."""

    ctx: Lowering
    p: Procedure
    number: int
    batch: Expr
    """The sequence: the point, or the axis of a loop."""
    hidden: Expr
    steps: Expr
    buffers: dict[str, SSAValue]
    """The available buffers among: inputs (products of this direction), r, b, lengths, h0, c0,
    peephole, y, y_h, y_c."""
    functions: list[Function]
    together: Expr | None = None
    """The size of the batch if its sequences share state buffers; None if each has its own."""

    @property
    def batch_first(self) -> bool:
        return bool(self.ctx.attr("layout", 0))

    @property
    def reverse(self) -> bool:
        return self.number == 1 or str(self.ctx.attr("direction", "forward") or "forward") == "reverse"

    def local(self, name: str) -> SSAValue:
        dims = [self.hidden] if self.together is None else [self.together, self.hidden]
        return self.p.local(compute_type(self.ctx.element(0)), dims, name)

    def unit(self, j: Expr) -> list[Expr]:
        """Returns the subscripts of unit `j` of this sequence in a buffer of states."""
        return [j] if self.together is None else [self.batch, j]

    def state(self, name: str) -> SSAValue:
        """Returns a buffer of the state, with its initial values."""
        buffer = self.local(name)
        self.start(name, buffer)
        return buffer

    def start(self, name: str, buffer: SSAValue) -> None:
        """Initialises the state of this sequence."""
        given = self.buffers.get(f"{name}0")
        with self.p.loop(self.hidden) as j:
            self.p.store(0.0 if given is None else self.p.load(given, self.last(j)).widened(), buffer, self.unit(j))

    def last(self, j: Expr) -> list[Expr]:
        """Returns the subscripts of unit `j` of this direction in an initial or a final state."""
        number = Expr.of(self.number)
        return [self.batch, number, j] if self.batch_first else [number, self.batch, j]

    def bias(self, row: Expr) -> Scalar:
        """Returns element `row` of the biases: those of the inputs, then those of the state."""
        given = self.buffers.get("b")
        if given is None:
            return self.p.const(0.0, compute_type(self.ctx.element(0)))
        return self.p.load(given, [self.number, row]).widened()

    def input(self, t: Expr | Scalar, row: Expr) -> Scalar:
        """Returns the product of the input of a step with a row of the weights."""
        return self.p.load(self.buffers["inputs"], [self.batch, t, row] if self.batch_first else [t, self.batch, row])

    def products(self, state: SSAValue, gates: Sequence[int]) -> list[SSAValue]:
        """Returns, for each of `gates`, the products of the state with its rows."""
        p, found = self.p, [self.local("gate") for _ in gates]
        with p.loop(self.hidden) as j:
            zero = p.const(0.0, compute_type(self.ctx.element(0)))
            sums = [p.variable(zero, "sum") for _ in gates]
            with p.fold(self.hidden) as k:
                h = p.load(state, [k])
                for gate, total in zip(gates, sums, strict=True):
                    weight = p.load(self.buffers["r"], [self.number, self.hidden * gate + j, k]).widened()
                    p.accumulate("add", h * weight, total.buffer, [])
            for buffer, total in zip(found, sums, strict=True):
                p.store(total.get(), buffer, [j])
        return found

    def clipped(self, x: Scalar) -> Scalar:
        limit = self.ctx.attr("clip")
        return x if not limit else x.maximum(-float(limit)).minimum(float(limit))

    def length(self) -> Scalar | None:
        """Returns the number of steps of the sequence, an i64; None if all sequences have `steps`."""
        given = self.buffers.get("lengths")
        if given is None:
            return None
        return self.p.load(given, [self.batch]).to(i64).maximum(0).minimum(self.p.index(self.steps))

    def time(self, s: Expr, length: Scalar | None) -> Expr | Scalar:
        """Returns the step of the sequence at position `s` in the order of this direction."""
        if length is None:
            return self.steps - 1 - s if self.reverse else s
        at = self.p.index(s)
        return length - 1 - at if self.reverse else at

    def run(self, step: Callable[[Direction, Expr | Scalar], SSAValue], states: dict[str, SSAValue]) -> None:
        """Runs every step, in reverse for a reversed direction, and the final stores."""
        length = self.length()
        with self.p.sequential(self.steps if length is None else length) as s:
            t = self.time(s, length)
            self.show(step(self, t), t)
        self.finish(states, length)

    def show(self, state: SSAValue, t: Expr | Scalar) -> None:
        """Stores the state after step `t` in the output."""
        if "y" in self.buffers:
            with self.p.loop(self.hidden) as j:
                self.p.store(self.p.load(state, self.unit(j)), self.buffers["y"], self.place(t, j))

    def finish(self, states: dict[str, SSAValue], length: Scalar | None) -> None:
        """Stores zeros after the end of the sequence, and the final states."""
        p, lengths = self.p, self.buffers.get("lengths")
        if length is not None and "y" in self.buffers:
            with p.sequential(self.steps, length) as s, p.loop(self.hidden) as j:
                p.store(0.0, self.buffers["y"], self.place(p.index(s), j))
        for name, buffer in states.items():
            if name in self.buffers:
                with p.loop(self.hidden) as j:
                    value = p.load(buffer, self.unit(j))
                    if lengths is not None:  # ONNX Runtime gives zeros regardless of the initial state.
                        value = (p.load(lengths, [self.batch]) > 0).select(value, 0.0)
                    p.store(value, self.buffers[name], self.last(j))

    def place(self, t: Expr | Scalar, j: Expr) -> list[Expr | Scalar]:
        number = Expr.of(self.number)
        return [self.batch, t, number, j] if self.batch_first else [t, number, self.batch, j]


def lstm_cell(
    d: Direction, state: SSAValue, cell: SSAValue, t: Expr | Scalar, products: Callable[[int, Expr], Scalar]
) -> None:
    """Computes one step of an LSTM for one sequence; `products` gives those of the state with row `j` of a gate."""
    p, hidden = d.p, d.hidden
    f, g, h = d.functions
    peephole = d.buffers.get("peephole")

    def gate(number: int, j: Expr, cells: Scalar | None) -> Scalar:
        row = hidden * number + j
        total = products(number, j) + d.input(t, row)
        if peephole is not None and cells is not None:
            total = total + p.load(peephole, [d.number, row]).widened() * cells
        return d.clipped(total + (d.bias(row) + d.bias(row + hidden * 4)))

    with p.loop(hidden) as j:
        before = p.load(cell, d.unit(j))
        entry = f(gate(0, j, before))
        forget = 1 - entry if d.ctx.attr("input_forget", 0) else f(gate(2, j, before))
        after = forget * before + entry * g(gate(3, j, None))
        p.store(after, cell, d.unit(j))
        p.store(f(gate(1, j, after)) * h(after), state, d.unit(j))


def _lstm(d: Direction) -> None:
    state, cell = d.state("h"), d.state("c")

    def step(d: Direction, t: Expr | Scalar) -> SSAValue:
        gates = d.products(state, range(4))
        lstm_cell(d, state, cell, t, lambda number, j: d.p.load(gates[number], [j]))
        return state

    d.run(step, {"y_h": state, "y_c": cell})


def _gru(d: Direction) -> None:
    p, hidden = d.p, d.hidden
    f, g = d.functions
    state, reset = d.state("h"), d.local("reset")
    update = d.local("update")
    linear = bool(d.ctx.attr("linear_before_reset", 0))

    def gate(number: int, products: SSAValue, t: Expr | Scalar, j: Expr) -> Scalar:
        row = hidden * number + j
        return d.clipped(p.load(products, [j]) + d.input(t, row) + (d.bias(row) + d.bias(row + hidden * 3)))

    def step(d: Direction, t: Expr | Scalar) -> SSAValue:
        gates = d.products(state, range(3) if linear else range(2))
        with p.loop(hidden) as j:
            p.store(f(gate(0, gates[0], t, j)), update, [j])
            kept = f(gate(1, gates[1], t, j))
            p.store(kept if linear else kept * p.load(state, [j]), reset, [j])
        news = gates[2] if linear else d.products(reset, [2])[0]
        with p.loop(hidden) as j:
            row = hidden * 2 + j
            new, inputs = p.load(news, [j]), d.input(t, row) + d.bias(row)
            own = d.bias(row + hidden * 3)
            total = inputs + (p.load(reset, [j]) * (new + own) if linear else new + own)
            share = p.load(update, [j])
            p.store((1 - share) * g(d.clipped(total)) + share * p.load(state, [j]), state, [j])
        return state

    d.run(step, {"y_h": state})


def _rnn(d: Direction) -> None:
    p, state = d.p, d.state("h")

    def step(d: Direction, t: Expr | Scalar) -> SSAValue:
        (products,) = d.products(state, [0])
        with p.loop(d.hidden) as j:
            total = p.load(products, [j]) + d.input(t, j) + (d.bias(j) + d.bias(j + d.hidden))
            p.store(d.functions[0](d.clipped(total)), state, [j])
        return state

    d.run(step, {"y_h": state})


CELLS: dict[str, Callable[[Direction], None]] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
OPERANDS = {3: "b", 4: "lengths", 5: "h0", 6: "c0", 7: "peephole"}
RESULTS = ("y", "y_h", "y_c")


def lower(ctx: Lowering) -> list[SSAValue | None]:
    hidden, wide = ctx.dims(2)[-1], compute_type(ctx.element(0))
    rows = hidden * GATES[ctx.op.op_type]
    check_lengths(ctx)
    inputs = [_products(ctx, ctx.dims(0), rows, k, wide) for k in range(direction_count(ctx.op))]
    return recurrence(ctx, hidden, inputs, {"r": ctx.required(2)}, CELLS[ctx.op.op_type])


def check_lengths(ctx: Lowering) -> None:
    """Makes a run end with an error if a sequence is longer than the input."""
    lengths = ctx.input(4)
    if lengths is not None:
        _, steps = batch_and_steps(ctx.op, ctx.dims(0))
        ctx.check_indices(lengths, steps + 1, "invalid value in sequence_lens", negative=False)


def batch_and_steps(op: OnnxOp, x: Dims) -> tuple[Expr, Expr]:
    """Returns the number of sequences, and the maximum number of steps of each."""
    return (x[0], x[1]) if op.attr("layout", 0) else (x[1], x[0])


def recurrence(
    ctx: Lowering,
    hidden: Expr,
    inputs: Sequence[SSAValue],
    more: Mapping[str, SSAValue],
    build: Callable[[Direction], None],
    together: bool = False,
) -> list[SSAValue | None]:
    """Builds the procedure of all directions and returns its results. `inputs` are the products of the inputs, one per
    direction, and `more` the tensors read besides the node's own operands. A sequence is a point unless they advance
    `together`."""
    batch, steps = batch_and_steps(ctx.op, ctx.dims(0))
    given = {**more, **{name: v for k, name in OPERANDS.items() if (v := ctx.input(k)) is not None}}
    wanted = [k for k in range(len(ctx.op.results)) if ctx.wants(k)]
    p = ctx.procedure([*inputs, *given.values()], [ctx.output_type(k) for k in wanted])
    names = [*given, *(RESULTS[k] for k in wanted)]
    buffers = dict(zip(names, p.buffers[len(inputs) :], strict=True))
    point = ZERO if together else p.parallel(batch)
    for k, functions in enumerate(activations(ctx.op)):
        own = {**buffers, "inputs": p.buffers[k]}
        build(Direction(ctx, p, k, point, hidden, steps, own, functions, batch if together else None))
    made = dict(zip(wanted, p.end(), strict=True))
    return [made.get(k) for k in range(len(ctx.op.results))]


def _products(ctx: Lowering, dims: Dims, rows: Expr, direction: int, wide: Attribute) -> SSAValue:
    """Returns the inputs of all steps times the weights of one direction."""
    x, w = ctx.required(0), ctx.required(1)
    return ctx.generate(
        [*dims[:2], rows],
        lambda nest, i, r: nest.read(x, [i[0], i[1], r[0]]).widened() * nest.read(w, [direction, i[2], r[0]]).widened(),
        over=[dims[2]],
        combiner="add",
        element=wide,
        part="inputs",
    )


# -- legality, cost ---------------------------------------------------------------------------------------------------


def _reason(op: OnnxOp) -> str | None:
    if not is_float(element_of(op.operands[0].type)):
        return "its elements are not floats"
    x = operand_dims(op, 0)
    if len(x) != 3:
        return f"its input has {len(x)} dims"
    shapes = operand_shapes(op, x, Expr.of(direction_count(op)), operand_dims(op, 2)[-1])
    return activations_reason(op) or shapes_reason(op, shapes)


def activations_reason(op: OnnxOp) -> str | None:
    """Returns the reason why an activation has no kernel; None if all have one."""
    unknown = [n for n in op.attr("activations") or () if str(n).lower() not in ACTIVATIONS]
    return f"unknown activation '{unknown[0]}'" if unknown else None


def shapes_reason(op: OnnxOp, shapes: Mapping[int, Dims]) -> str | None:
    """Returns the reason why the operands do not fit each other, or are not known to; None if they do."""
    if any(operand_dims(op, k) != shapes[k] for k in (1, 2)):
        return "its weights are not known to fit its input"
    for k, dims in shapes.items():
        if operand(op, k) is not None and operand_dims(op, k) != dims:
            shown = ", ".join(map(str, dims))
            return f"its input {k} is not known to have the dims [{shown}]"
    return None


def operand_shapes(op: OnnxOp, x: Dims, directions: Expr, hidden: Expr) -> dict[int, Dims]:
    """Returns the dims of the operands after the first in every valid run."""
    batch, _ = batch_and_steps(op, x)
    state = (batch, directions, hidden) if op.attr("layout", 0) else (directions, batch, hidden)
    rows = hidden * GATES[op.op_type]
    return {
        1: (directions, rows, x[2]),
        2: (directions, rows, hidden),
        3: (directions, rows * 2),
        4: (batch,),
        5: state,
        6: state,
        7: (directions, hidden * 3),
    }


def recurrent_macs(op: OnnxOp) -> Expr:
    """steps × batch × directions × gates × hidden × (input + hidden)"""
    x, r = dims_of(op.operands[0].type), dims_of(op.operands[2].type)
    return product((*x[:2], *r[:2], x[2] + r[2]))


def gates_flops(op: OnnxOp) -> Expr:
    """Returns the operations of the gates: a bias addition, an activation, and the weighting of the state."""
    x, r = dims_of(op.operands[0].type), dims_of(op.operands[2].type)
    return product((*x[:2], *r[:2])) * (EXP + 2)


def _slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    x = operand_dims(op, 0)
    if estimate(batch_and_steps(op, x)[0]) == 1:
        return None
    return (
        "a kernel reads the weights of the state again for every sequence of a batch; ONNX Runtime multiplies the "
        "whole batch by them"
    )


SPECS: list[OpSpec] = [
    OpSpec(
        name,
        infer=_infer,
        lower=lower,
        legal=legal(_reason),
        macs=recurrent_macs,
        flops=twice(recurrent_macs, "12 × gates", gates_flops),
        unprofitable=_slow,
        kind="recurrent",
    )
    for name in CELLS
]
