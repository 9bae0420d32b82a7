"""One rule a family of ops: proposes a node on values of the pool. What ONNX Runtime does not run is dropped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.wild.pool import FLOATS, INTEGERS, Pool

Rule = Callable[[Pool], bool]
RULES: list[tuple[Rule, int]] = []
NUMBERS = (*FLOATS, *INTEGERS)


def rule(weight: int) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.append((function, weight))
        return function

    return register


UNARY = [
    "Abs",
    "Neg",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Log",
    "Sqrt",
    "Softplus",
    "Softsign",
    "Elu",
    "Selu",
    "LeakyRelu",
    "HardSigmoid",
    "HardSwish",
    "Ceil",
    "Floor",
    "Round",
    "Sign",
    "Erf",
    "Sin",
    "Cos",
    "Tan",
    "Atan",
    "Asin",
    "Acos",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Reciprocal",
    "Identity",
    "Celu",
    "ThresholdedRelu",
    "Mish",
    "Gelu",
    "Hardmax",
    "Shrink",
    "Swish",
    "Det",
]


@rule(20)
def unary(p: Pool) -> bool:
    x = p.pick(NUMBERS)
    return x is not None and p.try_node(p.rng.choice(UNARY), [x])


@rule(3)
def predicates(p: Pool) -> bool:
    op = p.rng.choice(["Not", "IsNaN", "IsInf", "BitwiseNot"])
    x = p.pick([np.bool_] if op == "Not" else INTEGERS if op == "BitwiseNot" else FLOATS)
    attrs = {"detect_negative": p.rng.randrange(2)} if op == "IsInf" else {}
    return x is not None and p.try_node(op, [x], **attrs)


def partner(p: Pool, x: str) -> str | None:
    """A second operand of the same type: another value, one of a broadcast shape, or a weight."""
    array = p.values[x]
    kind = p.rng.random()
    if kind < 0.4:
        return p.pick([array.dtype])
    shape = [d if p.chance(0.7) else 1 for d in array.shape]
    if p.chance(0.3):
        shape = shape[p.rng.randrange(len(shape) + 1) :]
    if kind < 0.75:
        return p.weight(p.array(array.dtype, shape))
    return p.input(array.dtype, shape)


@rule(20)
def binary(p: Pool) -> bool:
    op = p.rng.choice(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "PRelu"])
    x = p.pick(NUMBERS)
    if x is not None and op == "Div" and p.values[x].dtype.kind in "iu":
        # ONNX Runtime crashes on a division by zero.
        return p.try_node(op, [x, p.weight(p.data.integers(1, 5, p.shape(x)[-1:]).astype(p.values[x].dtype))])
    y = partner(p, x) if x else None
    return x is not None and y is not None and p.try_node(op, [x, y] if p.chance(0.7) else [y, x])


@rule(3)
def modulo(p: Pool) -> bool:
    x = p.pick(NUMBERS)
    if x is None:
        return False
    divisor = p.weight(p.data.integers(1, 6, p.shape(x)[-1:]).astype(p.values[x].dtype))
    return p.try_node("Mod", [x, divisor], fmod=int(p.values[x].dtype.kind == "f" or p.chance(0.3)))


@rule(6)
def comparison(p: Pool) -> bool:
    x = p.pick(NUMBERS)
    y = partner(p, x) if x else None
    op = p.rng.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    return x is not None and y is not None and p.try_node(op, [x, y])


@rule(3)
def bits(p: Pool) -> bool:
    op = p.rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"])
    x = p.pick(INTEGERS)
    if x is None:
        return False
    if op == "BitShift":
        by = p.weight(p.data.integers(0, 4, p.shape(x)[-1:]).astype(p.values[x].dtype))
        return p.try_node(op, [x, by], direction=p.rng.choice(["LEFT", "RIGHT"]))
    y = partner(p, x)
    return y is not None and p.try_node(op, [x, y])


@rule(2)
def logical(p: Pool) -> bool:
    x = p.pick([np.bool_])
    y = partner(p, x) if x else None
    return x is not None and y is not None and p.try_node(p.rng.choice(["And", "Or", "Xor"]), [x, y])


@rule(5)
def where(p: Pool) -> bool:
    c, x = p.pick([np.bool_]), p.pick((*NUMBERS, np.bool_))
    y = partner(p, x) if x else None
    return c is not None and x is not None and y is not None and p.try_node("Where", [c, x, y])


@rule(4)
def clip(p: Pool) -> bool:
    x = p.pick(NUMBERS)
    if x is None:
        return False
    if p.opset < 11:
        return p.try_node("Clip", [x], min=-1.5, max=2.0)
    dtype = p.values[x].dtype
    negative = 0 if dtype.kind == "u" else -1
    low = p.weight(p.rng.choice([2 * negative, 0, 1]), dtype) if p.chance(0.7) else ""
    high = p.weight(p.rng.choice([negative, 2, 3]), dtype) if p.chance(0.7) else ""
    return p.try_node("Clip", [x, low, high])


@rule(8)
def cast(p: Pool) -> bool:
    x = p.pick()
    if x is not None and p.opset >= 15 and p.chance(0.15):
        return p.try_node("CastLike", [x, p.pick() or x])
    # Floats, integers, bool; from opset 19 on floats of eight bits, from 21 on integers of four.
    codes = [1, 1, 1, 6, 7, 9, 11, 2, 3, 4, 5, 10, 12, 13, 16, *((17, 19) if p.opset >= 19 else ())]
    codes += (21, 22) if p.opset >= 21 else ()
    to = p.rng.choice(codes)
    if x is None or (to == 12 and p.special):
        return False  # what ONNX Runtime makes of a NaN there depends on where in a vector it lies
    return p.try_node("Cast", [x], to=to)


REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@rule(10)
def reduction(p: Pool) -> bool:
    op, x = "Reduce" + p.rng.choice(REDUCTIONS), p.pick(NUMBERS)
    if x is None:
        return False
    axes = sorted({p.axis(x) for _ in range(p.rng.randrange(3))}) if p.values[x].ndim else []
    attrs: dict[str, object] = {"keepdims": p.rng.randrange(2)}
    as_input = p.opset >= 18 or (op == "ReduceSum" and p.opset >= 13)
    inputs = [x]
    if as_input:
        if axes or p.chance(0.5):
            inputs.append(p.ints(*axes))
        attrs["noop_with_empty_axes"] = p.rng.randrange(2)
    elif axes:
        attrs["axes"] = axes
    return p.try_node(op, inputs, **attrs)


@rule(5)
def arguments(p: Pool) -> bool:
    x = p.pick(NUMBERS)
    attrs = {"axis": p.axis(x), "keepdims": p.rng.randrange(2)} if x else {}
    if p.opset >= 12:
        attrs["select_last_index"] = p.rng.randrange(2)
    return x is not None and p.try_node(p.rng.choice(["ArgMax", "ArgMin"]), [x], **attrs)


@rule(5)
def rows(p: Pool) -> bool:
    x = p.pick(FLOATS)
    op = p.rng.choice(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    return x is not None and p.try_node(op, [x], axis=p.axis(x))


@rule(7)
def transpose(p: Pool) -> bool:
    x = p.pick(ranks=(2, 3, 4, 5))
    return x is not None and p.try_node("Transpose", [x], perm=p.rng.sample(range(p.values[x].ndim), p.values[x].ndim))


@rule(9)
def reshape(p: Pool) -> bool:
    x = p.pick()
    if x is None:
        return False
    shape = list(p.shape(x))
    kind = p.rng.random()
    if kind < 0.3 and len(shape) > 1:
        k = p.rng.randrange(len(shape) - 1)
        shape[k : k + 2] = [shape[k] * shape[k + 1]]
    elif kind < 0.6 and shape:
        k = p.rng.randrange(len(shape))
        factor = next((f for f in (2, 3, 4, 5) if shape[k] and shape[k] % f == 0), 1)
        shape[k : k + 1] = p.rng.choice([[factor, shape[k] // factor], [shape[k] // factor, factor]])
    elif kind < 0.8:
        p.rng.shuffle(shape)
    else:
        return p.try_node("Flatten", [x], axis=p.rng.randrange(len(shape) + 1))
    if shape and p.chance(0.6):
        shape[p.rng.randrange(len(shape))] = -1
    if shape and p.chance(0.2) and len(shape) <= len(p.shape(x)):
        shape[p.rng.randrange(len(shape))] = 0
    return p.try_node("Reshape", [x, p.ints(*shape)])


@rule(4)
def squeeze(p: Pool) -> bool:
    x = p.pick()
    if x is None:
        return False
    rank = p.values[x].ndim
    if p.chance(0.5):
        axes = sorted({p.rng.randrange(rank + 1)})
        op = "Unsqueeze"
    else:
        axes = [k for k, d in enumerate(p.shape(x)) if d == 1][:1]
        op = "Squeeze"
        if not axes:
            return False
    return p.try_node(op, [x, p.ints(*axes)]) if p.opset >= 13 else p.try_node(op, [x], axes=axes)


@rule(3)
def expand(p: Pool) -> bool:
    x = p.pick()
    if x is None:
        return False
    shape = [p.rng.choice([1, 2, 3, 5]) if d == 1 else p.rng.choice([d, 1]) for d in p.shape(x)]
    return p.try_node("Expand", [x, p.ints(*([p.rng.choice([1, 2])] if p.chance(0.2) else []), *shape)])


@rule(8)
def slices(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None:
        return False
    axes = p.rng.sample(range(p.values[x].ndim), p.rng.randint(1, min(2, p.values[x].ndim)))
    starts = [p.rng.choice([0, 1, 2, -1, -2, -3, 100, -100]) for _ in axes]
    ends = [p.rng.choice([1, 2, 3, -1, -2, 2**31 - 1, 2**63 - 1, -(2**63), -100, 0]) for _ in axes]
    if p.opset < 10:
        return p.try_node("Slice", [x], starts=starts, ends=ends, axes=axes)
    steps = [p.rng.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    return p.try_node("Slice", [x, p.ints(*starts), p.ints(*ends), p.ints(*axes), p.ints(*steps)])


@rule(6)
def concat(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None:
        return False
    axis = p.axis(x)
    others = [n for n, v in p.values.items() if v.dtype == p.values[x].dtype and v.ndim == p.values[x].ndim]
    return p.try_node("Concat", [x, *p.rng.choices(others, k=p.rng.randint(1, 2))], axis=axis)


@rule(5)
def split(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None:
        return False
    axis = p.axis(x)
    size = p.shape(x)[axis]
    first = p.rng.randrange(size + 1)
    if p.opset < 13:
        return p.try_node("Split", [x], 2, axis=axis, split=[first, size - first])
    if p.opset >= 18 and p.chance(0.4):
        return p.try_node("Split", [x], 2, axis=axis, num_outputs=2)
    return p.try_node("Split", [x, p.ints(first, size - first)], 2, axis=axis)


@rule(5)
def pad(p: Pool) -> bool:
    x = p.pick(NUMBERS, (1, 2, 3, 4))
    if x is None:
        return False
    mode = p.rng.choice(["constant", "reflect", "edge", "wrap"])
    pads = [p.rng.choice([0, 0, 1, 2, -1] if mode == "constant" else [0, 0, 1, 2]) for _ in range(2 * p.values[x].ndim)]
    if p.opset < 11:
        return p.try_node("Pad", [x], mode=mode, pads=pads)
    value = [p.weight(1.5, p.values[x].dtype)] if mode == "constant" and p.chance(0.5) else []
    return p.try_node("Pad", [x, p.ints(*pads), *value], mode=mode)


@rule(2)
def tile(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3))
    return x is not None and p.try_node("Tile", [x, p.ints(*(p.rng.choice([1, 2, 3, 0]) for _ in p.shape(x)))])


@rule(6)
def gather(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    if x is None:
        return False
    axis = p.axis(x)
    size = p.shape(x)[axis]
    if not size:
        return False
    shape = p.rng.choice([(), (2,), (3, 2), (1,)])
    indices = p.data.integers(-size if p.opset >= 11 else 0, size, shape)
    if p.chance(0.7):
        return p.try_node("Gather", [x, p.weight(indices, np.int64)], axis=axis)
    name = p.input(np.int64, shape)
    p.values[name] = np.asarray(indices, np.int64)
    return p.try_node("Gather", [x, name], axis=axis)


@rule(4)
def gather_elements(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3))
    if x is None or 0 in p.shape(x):
        return False
    axis = p.axis(x)
    shape = [p.rng.randint(1, d) for d in p.shape(x)]
    indices = p.weight(p.data.integers(-p.shape(x)[axis], p.shape(x)[axis], shape), np.int64)
    if p.chance(0.5):
        return p.try_node("GatherElements", [x, indices], axis=axis)
    updates = p.weight(p.array(p.values[x].dtype, shape))
    attrs = {"reduction": p.rng.choice(["none", "add", "mul", "max", "min"])} if p.opset >= 18 else {}
    return p.try_node("ScatterElements", [x, indices, updates], axis=axis, **attrs)


@rule(3)
def gather_nd(p: Pool) -> bool:
    x = p.pick(ranks=(2, 3))
    if x is None or 0 in p.shape(x):
        return False
    last = p.rng.randint(1, p.values[x].ndim)
    indices = np.stack([p.data.integers(-d, d, (3,)) for d in p.shape(x)[:last]], -1)
    if p.chance(0.5):
        return p.try_node("GatherND", [x, p.weight(indices, np.int64)])
    updates = p.weight(p.array(p.values[x].dtype, (3, *p.shape(x)[last:])))
    attrs = {"reduction": p.rng.choice(["none", "add", "mul", "max", "min"])} if p.opset >= 18 else {}
    return p.try_node("ScatterND", [x, p.weight(indices, np.int64), updates], **attrs)


@rule(4)
def scans(p: Pool) -> bool:
    x = p.pick(NUMBERS, (1, 2, 3))
    if x is None:
        return False
    axis = p.weight(p.axis(x), np.int64)
    return p.try_node("CumSum", [x, axis], exclusive=p.rng.randrange(2), reverse=p.rng.randrange(2))


@rule(4)
def top(p: Pool) -> bool:
    x = p.pick(NUMBERS, (1, 2, 3))
    if x is None or 0 in p.shape(x) or p.opset < 10:
        return False
    axis = p.axis(x)
    attrs = {"largest": p.rng.randrange(2), "sorted": 1} if p.opset >= 11 else {}
    return p.try_node("TopK", [x, p.ints(p.rng.randint(1, p.shape(x)[axis]))], 2, axis=axis, **attrs)


@rule(2)
def trilu(p: Pool) -> bool:
    x = p.pick(ranks=(2, 3))
    return x is not None and p.try_node(
        "Trilu", [x, p.weight(p.rng.randint(-2, 2), np.int64)], upper=p.rng.randrange(2)
    )


@rule(2)
def one_hot(p: Pool) -> bool:
    x = p.pick(INTEGERS, (0, 1, 2))
    values = p.weight(np.array([0.5, 3], np.float32))
    return x is not None and p.try_node("OneHot", [x, p.ints(p.rng.randint(1, 7)), values], axis=p.rng.choice([-1, 0]))


@rule(3)
def depth(p: Pool) -> bool:
    x = p.pick(FLOATS, (4,))
    if x is None:
        return False
    if p.chance(0.5):
        return p.try_node("SpaceToDepth", [x], blocksize=2)
    return p.try_node("DepthToSpace", [x], blocksize=2, mode=p.rng.choice(["DCR", "CRD"]))


@rule(2)
def shapes(p: Pool) -> bool:
    x = p.pick(ranks=(1, 2, 3, 4))
    return x is not None and p.try_node(p.rng.choice(["Shape", "Size"]), [x])


@rule(2)
def shaped_by_another(p: Pool) -> bool:
    """A reshape or an expansion to the shape of another value, computed in the graph."""
    like, x = p.pick(ranks=(1, 2, 3)), p.pick()
    if like is None or x is None or not p.try_node("Shape", [like]):
        return False
    shape = list(p.values)[-1]
    return p.try_node(p.rng.choice(["Reshape", "Expand"]), [x, shape])
