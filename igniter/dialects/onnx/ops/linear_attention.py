"""LinearAttention of ONNX and of com.microsoft: attention whose state is one matrix per head, updated token by token.

Heads are points. A head processes its tokens in order, with its state in f32: a row for each feature of a key, with
contiguous elements for the features of a value. A token decays the state (`gated`), subtracts the value found for its
key (`delta`), and adds the product of its key and its value; then each query of the group reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import float_attr
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand, operand_dims, tidy
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product
from igniter.dialects.sym.requirements import Requirement, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

RULES = ("linear", "gated", "delta", "gated_delta")
PAST, DECAY, BETA = 3, 4, 5


@dataclass(frozen=True)
class Sizes:
    """The numbers of heads and their features: `shared` groups of heads, each with `queries` query heads and `states`
    states."""

    shared: int
    queries: int
    states: int
    key: Expr
    value: Expr


def _heads(op: OnnxOp) -> tuple[int, int]:
    return int(op.attr("q_num_heads") or 0), int(op.attr("kv_num_heads") or 0)


def _sizes(op: OnnxOp) -> Sizes | str:
    queries, states = _heads(op)
    shared = min(queries, states)
    if shared < 1 or queries % shared or states % shared or (states > queries and not op.domain):
        return f"{queries} heads of queries cannot be grouped over {states} heads of keys"
    features = [operand_dims(op, k)[-1] for k in (0, 2)]
    key, value = (tidy(floordiv(f, Expr.of(n))) for f, n in zip(features, (queries, states), strict=True))
    return Sizes(shared, queries // shared, states // shared, key, value)


def _rule(op: OnnxOp) -> str:
    return str(op.attr("update_rule", "gated_delta"))


def _is_gated(op: OnnxOp) -> bool:
    return _rule(op) in ("gated", "gated_delta")


def _is_delta(op: OnnxOp) -> bool:
    return _rule(op) in ("delta", "gated_delta")


# -- shapes -----------------------------------------------------------------------------------------------------------


def _infer(ctx: InferContext) -> list[TensorInfo]:
    query, value = input_dims(ctx, 0), input_dims(ctx, 2)
    past = ctx.input(PAST)
    element = element_type(ctx)
    state = element if past is None else past.element
    queries, states = _heads(ctx.op)
    if query is None or value is None or not queries or not states:
        return [TensorInfo(element, None), TensorInfo(state, None)][: len(ctx.op.results)]
    for index in (1, 2):
        for have, want in zip(input_dims(ctx, index) or (), query[:2], strict=False):
            ctx.equate(have, want)
    key, size = tidy(floordiv(query[2], Expr.of(queries))), tidy(floordiv(value[2], Expr.of(states)))
    found = [
        TensorInfo(element, (*query[:2], tidy(size * max(queries, states)))),
        TensorInfo(state, (query[0], Expr.of(states), key, size)),
    ]
    return found[: len(ctx.op.results)]


def _reason(op: OnnxOp) -> str | None:
    if _rule(op) not in RULES:
        return f"unknown rule {_rule(op)}"
    if any(len(operand_dims(op, k)) != 3 for k in range(3)):
        return "its queries, keys and values do not have rank 3"
    found = _sizes(op)
    if isinstance(found, str):
        return found
    if int(op.attr("state_window", 0)):
        return "it keeps the states of several tokens"
    for index, wanted, name in ((DECAY, _is_gated(op), "decay"), (BETA, _is_delta(op), "update rate")):
        if wanted != (operand(op, index) is not None):
            return f"its rule {_rule(op)} and its {name} do not fit"
    _, states = _heads(op)
    if _is_gated(op) and _share(op, DECAY) not in (states, tidy(found.key * states), operand_dims(op, 1)[2]):
        return "its decay is not known to have one element per head, or one per feature of a key"
    if _is_delta(op) and _share(op, BETA) not in (states, 1):
        return "its update rate is not known to have one element per head, or one for all heads"
    return None


def _share(op: OnnxOp, index: int) -> Expr:
    dims = operand_dims(op, index)
    return dims[2] if len(dims) == 3 else ZERO


def _requires(op: OnnxOp) -> list[Requirement]:
    found = _sizes(op)
    assert not isinstance(found, str)
    queries, states = _heads(op)
    query, text = operand_dims(op, 0), "its features are not a multiple of its heads"
    required = [
        equal(query[2], found.key * queries, text),
        equal(operand_dims(op, 1)[2], found.key * states, text),
        equal(operand_dims(op, 2)[2], found.value * states, text),
    ]
    for index in (1, 2, DECAY, BETA):
        if operand(op, index) is not None:
            pairs = zip(operand_dims(op, index)[:2], query[:2], strict=True)
            required += [equal(a, b, "its operands do not have the same tokens") for a, b in pairs]
    if operand(op, PAST) is not None:
        wanted = (query[0], Expr.of(states), found.key, found.value)
        required.append(equal(len(operand_dims(op, PAST)), 4, "its past state has a different rank"))
        pairs = zip(operand_dims(op, PAST), wanted, strict=False)
        required += [equal(a, b, "its past state has different sizes") for a, b in pairs]
    return required


# -- the recurrence ---------------------------------------------------------------------------------------------------


def _lower(ctx: Lowering) -> list[SSAValue | None]:
    op, sizes = ctx.op, _sizes(ctx.op)
    if isinstance(sizes, str):
        raise ctx.fail(sizes)
    batch, tokens = ctx.dims(0)[:2]
    lead, states = [batch, tokens, sizes.shared], [sizes.states]
    inputs = [
        ctx.view(ctx.required(0), [*lead, sizes.queries, sizes.key]),
        ctx.view(ctx.required(1), [*lead, *states, sizes.key]),
        ctx.view(ctx.required(2), [*lead, *states, sizes.value]),
    ]
    state_dims = [batch, sizes.shared, sizes.states, sizes.key, sizes.value]
    past, decay, beta = (ctx.input(k) for k in (PAST, DECAY, BETA))
    if past is not None:
        inputs.append(ctx.view(past, state_dims))
    if decay is not None:
        by_head = dims_of(decay.type)[2] == _heads(op)[1]
        inputs.append(ctx.view(decay, [*lead, *states, ONE if by_head else sizes.key]))
    if beta is not None:
        one = dims_of(beta.type)[2] == ONE
        inputs.append(ctx.view(beta, [batch, tokens, 1, 1] if one else [*lead, *states]))
    out_dims = [*lead, max(sizes.queries, sizes.states), sizes.value]
    results = [tensor_of(ctx.out_element(), out_dims)]
    if ctx.wants(1):
        results.append(tensor_of(ctx.out_element(1), state_dims))
    p = ctx.procedure(inputs, results)
    _head(ctx, p, sizes, (batch, tokens), (past is not None, decay is not None, beta is not None))
    made = p.end()
    state = ctx.view(made[1], ctx.out_dims(1)) if ctx.wants(1) else None
    return [ctx.view(made[0], ctx.out_dims()), state]


def _head(
    ctx: Lowering, p: Procedure, sizes: Sizes, extents: tuple[Expr, Expr], given: tuple[bool, bool, bool]
) -> None:
    """Processes all tokens of one head."""
    batch, tokens = extents
    rest = iter(p.buffers)
    query, key, value = next(rest), next(rest), next(rest)
    past, decay, beta = (next(rest) if each else None for each in given)
    target = next(rest)
    present = next(rest) if ctx.wants(1) else None
    b, a, m = p.parallel(batch), p.parallel(sizes.shared), p.parallel(sizes.states)
    state = p.local(f32, [sizes.key, sizes.value], "state")
    change, total = p.local(f32, [sizes.value], "change"), p.local(f32, [sizes.value], "total")
    scale = float_attr(ctx, "scale", 0.0)

    with p.over([sizes.key, sizes.value]) as (i, j):
        p.store(0.0 if past is None else p.load(past, [b, a, m, i, j]).to(f32), state, [i, j])
    with p.sequential(tokens) as t:
        token = _Token(p, [b, t, a, m], state, change, total)
        token.take_back(key, decay, beta)
        token.want(value, beta)
        by = p.const(scale, f32) if scale else 1 / p.index(sizes.key).to(f32).sqrt()
        for g in range(sizes.queries):
            token.read(key if g == 0 else None, query, Expr.of(g))
            with p.loop(sizes.value) as j:
                at = [b, t, a, m if sizes.states > 1 else Expr.of(g), j]
                p.store(p.load(total, [j]) * by, target, at)
    if present is not None:
        with p.over([sizes.key, sizes.value]) as (i, j):
            p.store(p.load(state, [i, j]), present, [b, a, m, i, j])


@dataclass(frozen=True)
class _Token:
    """The updates and reads of a head's state by one token, row by row, in as few passes as possible."""

    p: Procedure
    at: list[Expr]
    state: SSAValue
    change: SSAValue
    """The value less the one found in the state for the key."""
    total: SSAValue
    """The result of a query's read."""

    def clear(self, buffer: SSAValue) -> None:
        with self.p.loop(dims_of(buffer.type)[0]) as j:
            self.p.store(0.0, buffer, [j])

    def of(self, operand: SSAValue, *places: Expr) -> Scalar:
        """Reads an element of an operand for this token and head, as an f32."""
        return self.p.load(operand, [*self.at[: len(dims_of(operand.type)) - len(places)], *places]).to(f32)

    def take_back(self, key: SSAValue, decay: SSAValue | None, beta: SSAValue | None) -> None:
        """Decays the state, and puts the value found for the key into `change`."""
        if beta is not None:
            self.clear(self.change)
        if decay is None and beta is None:
            return
        p, (rows, columns) = self.p, dims_of(self.state.type)
        with p.sequential(rows) as i:
            factor = None
            if decay is not None:
                factor = self.of(decay, ZERO if dims_of(decay.type)[-1] == ONE else i).exp()
            found = self.of(key, i) if beta is not None else None
            with p.loop(columns) as j:
                value = p.load(self.state, [i, j])
                if factor is not None:
                    value = value * factor
                    p.store(value, self.state, [i, j])
                if found is not None:
                    p.store(p.load(self.change, [j]) + value * found, self.change, [j])

    def want(self, value: SSAValue, beta: SSAValue | None) -> None:
        """Puts the update of the state for the key into `change`."""
        p, rate = self.p, None
        if beta is not None:
            one = dims_of(beta.type)[2:] == (ONE, ONE)
            rate = p.load(beta, [*self.at[:2], ZERO, ZERO] if one else self.at).to(f32)
        with p.loop(dims_of(self.change.type)[0]) as j:
            wanted = self.of(value, j)
            p.store(wanted if rate is None else rate * (wanted - p.load(self.change, [j])), self.change, [j])

    def read(self, key: SSAValue | None, query: SSAValue, group: Expr) -> None:
        """Puts the result of a query's read into `total`; with a key, first writes `change` to the state."""
        self.clear(self.total)
        p, (rows, columns) = self.p, dims_of(self.state.type)
        with p.sequential(rows) as i:
            written = self.of(key, i) if key is not None else None
            asked = p.load(query, [*self.at[:3], group, i]).to(f32)
            with p.loop(columns) as j:
                value = p.load(self.state, [i, j])
                if written is not None:
                    value = value + written * p.load(self.change, [j])
                    p.store(value, self.state, [i, j])
                p.store(p.load(self.total, [j]) + asked * value, self.total, [j])


def _macs(op: OnnxOp) -> Expr:
    """4 × batch × steps × heads × key size × value size: a state is read, corrected, written and asked"""
    sizes = _sizes(op)
    if isinstance(sizes, str):
        return ZERO
    return 4 * product(operand_dims(op, 0)[:2]) * (sizes.key * sizes.value) * max(_heads(op))


SPECS: list[OpSpec] = [
    OpSpec(
        name,
        infer=_infer,
        lower=_lower,
        legal=float_legal(_reason),
        requires=_requires,
        macs=_macs,
        flops=twice(_macs),
        kind="contraction",
    )
    for name in ("LinearAttention", "com.microsoft.LinearAttention")
]
