"""Rules for reductions, normalisations, data movement and contractions."""

from __future__ import annotations

from typing import Any

import numpy as np

from igniter.dialects.sym.expr import ONE, Expr, product
from tests.fuzz.graph import FLOATS, GraphBuilder, Value
from tests.fuzz.ops import LARGEST, pick, rule

ANY = ("f32", "f64", "i32", "i64", "u8", "i8", "b")


def some_axes(b: GraphBuilder, rank: int, least: int = 0) -> list[int]:
    """Distinct axes, some of them negative."""
    chosen = b.rng.sample(range(rank), b.rng.randint(min(least, rank), rank))
    return [a - rank if b.rng.random() < 0.3 else a for a in chosen]


def axis_of(b: GraphBuilder, rank: int) -> int:
    return b.rng.randrange(-rank, rank)


# -- reductions and normalisations ------------------------------------------------------------------------------------

SUMS = ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd")


@rule(8)
def reduction(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64", "i32", "i64"))
    if x is None or x.bound > 1e4:
        return False
    op = b.rng.choice((*SUMS, "ReduceMax", "ReduceMin"))
    if x.type not in FLOATS and op not in ("ReduceSum", "ReduceMax", "ReduceMin"):
        return False
    if op in ("ReduceProd", "ReduceLogSumExp") and (x.bound > 10 or x.size > 200):
        return False
    axes = some_axes(b, x.rank, 1 if x.rank else 0)
    gone = {a % x.rank for a in axes} or set(range(x.rank))
    if not all(d.constant for d in x.dims):
        # ORT overlooks negative axes of what turns out to be empty; see docs/explanation/numerics.md.
        axes = [a % x.rank for a in axes]
    # The greatest of no elements is an error in some versions of ORT.
    if op in ("ReduceMax", "ReduceMin", "ReduceMean") and any(x.dims[a].constant in (None, 0) for a in gone):
        return False
    keep = b.rng.random() < 0.5
    dims = [ONE if a in gone else d for a, d in enumerate(x.dims) if keep or a not in gone]
    bound = x.bound if op in ("ReduceMax", "ReduceMin", "ReduceMean") else x.bound**2 * max(1, x.size)
    exact = (op in ("ReduceMax", "ReduceMin") and x.exact) or x.type not in FLOATS
    if op == "ReduceProd":
        bound = 1e12
    attrs: dict[str, Any] = {"keepdims": int(keep)}
    inputs = [x.name]
    if axes:
        if b.opset >= 18 or op == "ReduceSum":
            inputs.append(b.ints(axes))
        else:
            attrs["axes"] = axes
    b.node(op, inputs, [(x.type, dims, exact, bound)], **attrs)
    return True


@rule(2)
def arg_reduction(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "i32"), (1, 2, 3, 4), exact=True)
    if x is None or b.special:
        return False
    axis = axis_of(b, x.rank)
    if not x.dims[axis].constant:
        return False
    if not all(d.constant for d in x.dims):
        axis %= x.rank
    keep = b.rng.random() < 0.5
    dims = [ONE if a == axis % x.rank else d for a, d in enumerate(x.dims) if keep or a != axis % x.rank]
    last = int(b.rng.random() < 0.3)
    b.node(
        b.rng.choice(("ArgMax", "ArgMin")), [x.name], [("i64", dims, True, 10)],
        axis=axis, keepdims=int(keep), select_last_index=last,
    )  # fmt: skip
    return True


@rule(4)
def softmax(b: GraphBuilder) -> bool:
    x = pick(b, FLOATS, (1, 2, 3, 4))
    if x is None or x.bound > 1e4:
        return False
    op = b.rng.choice(("Softmax", "Softmax", "LogSoftmax"))
    b.node(
        op, [x.name], [(x.type, x.dims, False, 1.0 if op == "Softmax" else 2 * x.bound + 10)], axis=axis_of(b, x.rank)
    )
    return True


@rule(3)
def layer_norm(b: GraphBuilder) -> bool:
    x = pick(b, ("f32",), (2, 3, 4))
    if x is None or x.bound > 1e3 or not x.dims[-1].constant or b.opset < 17:
        return False
    width = x.dims[-1].constant
    scale = b.weight(np.asarray(b.data.standard_normal([width])), "f32").name
    bias = [b.weight(np.asarray(b.data.standard_normal([width])), "f32").name] if b.rng.random() < 0.6 else []
    # A row of equal elements divides rounding errors by epsilon, so epsilon is not small here.
    b.node("LayerNormalization", [x.name, scale, *bias], [("f32", x.dims, False, 20.0)], axis=-1, epsilon=0.1)
    return True


@rule(1)
def cumulative_sum(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "i32", "i64"), (1, 2, 3))
    if x is None or x.bound > 1e4:
        return False
    axis = b.weight(np.array(axis_of(b, x.rank)), "i64").name
    attrs = {"exclusive": int(b.rng.random() < 0.3), "reverse": int(b.rng.random() < 0.3)}
    b.node("CumSum", [x.name, axis], [(x.type, x.dims, x.type not in FLOATS, x.bound * 50)], **attrs)
    return True


# -- data movement ----------------------------------------------------------------------------------------------------


def moved(b: GraphBuilder, op: str, inputs: list[str], x: Value, dims: list[Expr], **attrs: Any) -> bool:
    """A node that only moves the elements of `x`."""
    if len(dims) > 5 or _typical(dims) > LARGEST:
        return False
    b.node(op, inputs, [(x.type, dims, x.exact, x.bound)], **attrs)
    return True


def _typical(dims: list[Expr]) -> int:
    return product(dims).evaluate({"n": 3, "m": 5})


@rule(6)
def transpose(b: GraphBuilder) -> bool:
    x = pick(b, ANY)
    if x is None:
        return False
    order = b.rng.sample(range(x.rank), x.rank)
    if b.rng.random() < 0.1 or not x.rank:
        return moved(b, "Transpose", [x.name], x, list(reversed(x.dims)))
    return moved(b, "Transpose", [x.name], x, [x.dims[p] for p in order], perm=order)


@rule(6)
def reshape(b: GraphBuilder) -> bool:
    """Joins neighbouring dims, splits static ones, or both; one -1 and zeros where they fit."""
    x = pick(b, ANY)
    if x is None or any(d.constant == 0 for d in x.dims):
        return False
    dims = list(x.dims)
    if dims and b.rng.random() < 0.6:
        start = b.rng.randrange(len(dims))
        end = b.rng.randint(start + 1, len(dims))
        dims[start:end] = [product(dims[start:end])]
    if dims and b.rng.random() < 0.5:
        axis = b.rng.randrange(len(dims))
        size = dims[axis].constant
        factor = next((f for f in (2, 3, 5, 7) if size and size % f == 0), None)
        if factor and size:
            dims[axis : axis + 1] = [Expr.of(factor), Expr.of(size // factor)]
    if b.rng.random() < 0.3:
        dims.insert(b.rng.randint(0, len(dims)), ONE)
    unknown = [k for k, d in enumerate(dims) if d.constant is None]
    target: list[int] = []
    for k, d in enumerate(dims):
        if d.constant is not None:
            target.append(d.constant)
        elif k < x.rank and d == x.dims[k]:
            target.append(0)
        else:
            target.append(-1)
    if target.count(-1) > 1:
        return False
    if not unknown and target and b.rng.random() < 0.4:
        target[b.rng.randrange(len(target))] = -1
    # A size of 0 makes -1 ambiguous, which is an error when it happens at run time.
    if -1 in target and any(d.constant is None for k, d in enumerate(dims) if target[k] != -1):
        return False
    return moved(b, "Reshape", [x.name, b.ints(target)], x, dims)


@rule(3)
def dynamic_reshape(b: GraphBuilder) -> bool:
    """To a shape that the graph computes: Shape, Gather, Concat, as exporters leave it."""
    x = pick(b, ANY, (2, 3, 4))
    if x is None or b.opset < 14:
        return False
    (shape,) = b.node("Shape", [x.name], [("i64", [Expr.of(x.rank)], True, 100)])
    start = b.rng.randrange(x.rank - 1)
    dims = [*x.dims[:start], x.dims[start] * x.dims[start + 1], *x.dims[start + 2 :]]
    parts: list[str] = []
    for axis in range(x.rank):
        if axis == start + 1:
            continue
        (size,) = b.node("Gather", [shape.name, b.ints([axis])], [("i64", [ONE], True, 100)], axis=0)
        if axis == start:
            (other,) = b.node("Gather", [shape.name, b.ints([axis + 1])], [("i64", [ONE], True, 100)], axis=0)
            (size,) = b.node("Mul", [size.name, other.name], [("i64", [ONE], True, 1000)])
        parts.append(size.name)
    (target,) = b.node("Concat", parts, [("i64", [Expr.of(len(parts))], True, 1000)], axis=0)
    # Its elements are sizes: no operand for ordinary arithmetic, which would make rank-1 tensors of every value.
    del b.values[-1]
    return moved(b, "Reshape", [x.name, target.name], x, dims, allowzero=1)


@rule(2)
def flatten(b: GraphBuilder) -> bool:
    x = pick(b, ANY)
    if x is None:
        return False
    axis = b.rng.randint(0, x.rank)
    return moved(b, "Flatten", [x.name], x, [product(x.dims[:axis]), product(x.dims[axis:])], axis=axis)


@rule(3)
def unsqueeze(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (0, 1, 2, 3, 4))
    if x is None:
        return False
    rank = x.rank + b.rng.randint(1, min(2, 5 - x.rank))
    axes = b.rng.sample(range(rank), rank - x.rank)
    rest = iter(x.dims)
    dims = [ONE if a in axes else next(rest) for a in range(rank)]
    return moved(b, "Unsqueeze", [x.name, b.ints([a - rank if b.rng.random() < 0.3 else a for a in axes])], x, dims)


@rule(2)
def squeeze(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3, 4, 5))
    ones = [a for a, d in enumerate(x.dims) if d == ONE] if x is not None else []
    if x is None or not ones:
        return False
    axes = b.rng.sample(ones, b.rng.randint(1, len(ones)))
    return moved(b, "Squeeze", [x.name, b.ints(axes)], x, [d for a, d in enumerate(x.dims) if a not in axes])


@rule(2)
def expand(b: GraphBuilder) -> bool:
    x = pick(b, ANY)
    if x is None:
        return False
    dims = [Expr.of(b.rng.choice((2, 3))) if d == ONE and b.rng.random() < 0.7 else d for d in x.dims]
    dims = [Expr.of(b.rng.choice((1, 2)))] * b.rng.randint(0, 5 - len(dims)) * b.rng.randint(0, 1) + dims
    return moved(b, "Expand", [x.name, b.ints([1 if d.constant is None else d.constant for d in dims])], x, dims)


@rule(1)
def tile(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3))
    if x is None:
        return False
    times = [b.rng.choice((1, 2, 1, 3, 0 if b.rng.random() < 0.1 else 1)) for _ in range(x.rank)]
    return moved(b, "Tile", [x.name, b.ints(times)], x, [d * t for d, t in zip(x.dims, times, strict=True)])


@rule(5)
def slice_(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3, 4))
    if x is None:
        return False
    axes = [a for a in some_axes(b, x.rank, 1) if x.dims[a].constant]
    starts, ends, steps = [], [], []
    dims = list(x.dims)
    for axis in axes:
        size = x.dims[axis].constant
        assert size is not None
        step = b.rng.choice((1, 1, 2, 3, -1, -2))
        start, end = b.rng.randint(-size - 1, size + 1), b.rng.randint(-size - 2, size + 2)
        starts.append(start)
        ends.append(end)
        steps.append(step)
        dims[axis % x.rank] = Expr.of(len(range(size)[_slice(start, end, step, size)]))
    if not axes:
        return False
    inputs = [x.name, *(b.ints(v) for v in (starts, ends, axes, steps))]
    return moved(b, "Slice", inputs, x, dims)


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """ONNX's clamping in Python's terms."""
    start, end = (v + size if v < 0 else v for v in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


@rule(4)
def concat(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3, 4))
    if x is None:
        return False
    axis = b.rng.randrange(x.rank)
    rest = x.dims[:axis] + x.dims[axis + 1 :]
    fitting = [
        v for v in b.values if v.type == x.type and v.rank == x.rank and v.dims[:axis] + v.dims[axis + 1 :] == rest
    ]
    parts = [x, *(b.rng.choice(fitting) for _ in range(b.rng.randint(0, 3)))]
    b.rng.shuffle(parts)
    total = sum((v.dims[axis] for v in parts), Expr.of(0))
    dims = [*x.dims[:axis], total, *x.dims[axis + 1 :]]
    if _typical(dims) > LARGEST:
        return False
    result = (x.type, dims, all(v.exact for v in parts), max(v.bound for v in parts))
    b.node("Concat", [v.name for v in parts], [result], axis=axis - x.rank if b.rng.random() < 0.3 else axis)
    return True


@rule(3)
def split(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3, 4))
    if x is None:
        return False
    axis = b.rng.randrange(x.rank)
    size = x.dims[axis].constant
    if not size or size < 2:
        return False
    cuts = sorted(b.rng.randint(0, size) for _ in range(b.rng.randint(1, 2)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
    results = [(x.type, [*x.dims[:axis], Expr.of(s), *x.dims[axis + 1 :]], x.exact, x.bound) for s in sizes]
    b.node("Split", [x.name, b.ints(sizes)], results, axis=axis)
    return True


@rule(2)
def pad(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64", "i32", "i64"), (1, 2, 3, 4))
    if x is None:
        return False
    mode = b.rng.choice(("constant", "constant", "edge", "reflect"))
    least = 0 if mode == "edge" else -1
    before, after = ([b.rng.randint(0, 2) if b.rng.random() < 0.6 else 0 for _ in x.dims] for _ in range(2))
    for axis, d in enumerate(x.dims):
        room = d.constant if d.constant is not None else 0
        if mode == "reflect":
            before[axis], after[axis] = (min(v, max(0, room - 1)) for v in (before[axis], after[axis]))
        elif mode == "edge" and room == 0:
            before[axis] = after[axis] = 0
        elif mode == "constant" and room > 3 and b.rng.random() < 0.2:
            before[axis] = least
    inputs = [x.name, b.ints([*before, *after])]
    if mode == "constant" and b.rng.random() < 0.6:
        inputs.append(b.scalar(2, x.type))
    dims = [d + p + q for d, p, q in zip(x.dims, before, after, strict=True)]
    return moved(b, "Pad", inputs, x, dims, mode=mode)


@rule(4)
def gather(b: GraphBuilder) -> bool:
    x = pick(b, ANY, (1, 2, 3))
    if x is None:
        return False
    axis = b.rng.randrange(x.rank)
    size = x.dims[axis].constant
    if not size:
        return False
    shape = [b.rng.choice((1, 2, 3, 0 if b.rng.random() < 0.1 else 2)) for _ in range(b.rng.randint(0, 2))]
    indices = b.weight(np.asarray(b.data.integers(-size, size, shape)), b.rng.choice(("i64", "i32")))
    dims = [*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :]]
    return moved(b, "Gather", [x.name, indices.name], x, dims, axis=axis)


@rule(2)
def gather_computed(b: GraphBuilder) -> bool:
    """With indices that are only known when the model runs: bounded by a remainder."""
    x, raw = pick(b, ANY, (1, 2, 3)), pick(b, ("i64", "i32"), (0, 1, 2))
    if x is None or raw is None:
        return False
    axis = b.rng.randrange(x.rank)
    size = x.dims[axis].constant
    if not size or x.rank - 1 + raw.rank > 5:
        return False
    dims = [*x.dims[:axis], *raw.dims, *x.dims[axis + 1 :]]
    if _typical(dims) > LARGEST:
        return False
    bound = b.scalar(size, raw.type)
    (indices,) = b.node("Mod", [raw.name, bound], [(raw.type, raw.dims, True, float(size))])
    return moved(b, "Gather", [x.name, indices.name], x, dims, axis=axis)


@rule(1)
def trilu(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64", "i64"), (2, 3))
    if x is None or b.opset < 14:
        return False
    inputs = [x.name] + ([b.scalar(b.rng.randint(-2, 2), "i64")] if b.rng.random() < 0.6 else [])
    return moved(b, "Trilu", inputs, x, list(x.dims), upper=int(b.rng.random() < 0.5))


# -- contractions -----------------------------------------------------------------------------------------------------


@rule(4)
def matmul(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64"), (1, 2, 3, 4))
    if x is None or x.bound > 1e3:
        return False
    inner = x.dims[-1]
    fitting = [v for v in b.values if v.type == x.type and v.rank == 2 and v.dims[0] == inner and v.bound < 1e3]
    if fitting and b.rng.random() < 0.5:
        y = b.rng.choice(fitting)
    elif inner.constant is not None:
        y = b.weight(np.asarray(b.data.standard_normal([inner.constant, b.rng.choice((1, 4, 8))])), x.type)
    else:
        return False
    dims = [*x.dims[:-1], y.dims[-1]]
    if _typical(dims) > LARGEST:
        return False
    b.node("MatMul", [x.name, y.name], [(x.type, dims, False, x.bound * (y.bound + 1) * 8)])
    return True


@rule(2)
def gemm(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64"), (2,))
    if x is None or x.bound > 1e3:
        return False
    across, swapped = b.rng.random() < 0.3, b.rng.random() < 0.5
    inner, rows = (x.dims[0], x.dims[1]) if across else (x.dims[1], x.dims[0])
    if inner.constant is None:
        return False
    columns = b.rng.choice((1, 3, 8))
    shape = [columns, inner.constant] if swapped else [inner.constant, columns]
    weights = [b.weight(np.asarray(b.data.standard_normal(shape)), x.type)]
    if b.rng.random() < 0.7:
        weights.append(
            b.weight(np.asarray(b.data.standard_normal(b.rng.choice(([columns], [1], [1, columns])))), x.type)
        )
    attrs = {"alpha": b.rng.choice((1.0, 0.5)), "beta": b.rng.choice((1.0, 2.0))}
    if inner == 0:
        # ORT leaves beta out there; see docs/explanation/numerics.md.
        attrs["beta"] = 1.0
    dims = [rows, Expr.of(columns)]
    result = (x.type, dims, False, x.bound * 40)
    b.node("Gemm", [x.name, *(w.name for w in weights)], [result], transA=int(across), transB=int(swapped), **attrs)
    return True


# -- patterns that tempt a fusion into a mistake ----------------------------------------------------------------------


@rule(3)
def diamond(b: GraphBuilder) -> bool:
    """Two ways from one value to another, one of them through an op that is not fused."""
    x = pick(b, ("f32",), (2, 3))
    size = x.dims[-1].constant if x is not None else None
    if x is None or not size or x.bound > 1e3:
        return False
    (a,) = b.node("Neg", [x.name], [(x.type, x.dims, x.exact, x.bound)])
    w = b.weight(np.asarray(b.data.standard_normal([size, size])), "f32")
    (m,) = b.node("MatMul", [a.name, w.name], [(x.type, x.dims, False, x.bound * 8)])
    (c,) = b.node("Tanh", [m.name], [(x.type, x.dims, False, 1.0)])
    b.node("Add", [c.name, a.name], [(x.type, x.dims, False, x.bound + 1)])
    return True
