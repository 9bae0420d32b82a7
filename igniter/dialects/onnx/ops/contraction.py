"""Contractions: sums of products over shared axes. MatMul, Gemm, their integer and fused forms, Einsum.

Each is one nest whose body is the product of two reads and whose combiner is `add`: later levels recognise, tile and
pack this form. Scales, biases and the narrowing to a 16-bit result are separate nests, which fuse as epilogues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop.panels import kind_of
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.broadcast import aligned, broadcast_dims, broadcast_reason
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.activation import NAMED, named_activation
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.pointwise import operand_count
from igniter.dialects.onnx.ops.rules import broadcast, element_type, infos, input_dims, legal, operand, operand_dims
from igniter.dialects.onnx.registry import (
    Dims,
    FlopsRule,
    InferContext,
    InferRule,
    LowerRule,
    OpSpec,
    PackRule,
    TensorInfo,
    UnprofitableRule,
)
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


# -- MatMul -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatMulSide:
    """One operand of a MatMul as a stack of matrices; `order` names its dims: batch dims, then m, k or n."""

    dims: Dims
    order: tuple[str, ...]

    def dim(self, name: str) -> Expr:
        return self.dims[self.order.index(name)] if name in self.order else ONE

    @property
    def batch(self) -> Dims:
        return tuple(d for d, name in zip(self.dims, self.order, strict=True) if name == "batch")

    def subscripts(self, batch: Sequence[Expr], at: dict[str, Expr]) -> list[Expr]:
        """Returns the subscripts at a point of the domain; `batch` are this operand's own."""
        rest = iter(batch)
        return [next(rest) if name == "batch" else at[name] for name in self.order]


def sides(op: OnnxOp, left: Dims, right: Dims) -> tuple[MatMulSide, MatMulSide]:
    """Returns the operands of MatMul or FusedMatMul; attributes of the latter transpose them."""

    def order(rank: int, matrix: tuple[str, str], suffix: str) -> tuple[str, ...]:
        swap, early = bool(op.attr(f"trans{suffix}", 0)), bool(op.attr(f"transBatch{suffix}", 0))
        rows, columns = matrix[::-1] if swap and rank > 1 else matrix
        if rank == 1:
            return ("k",)
        # With transBatch, the rows come first and the batch dims in between.
        names = ["batch"] * (rank - 2)
        return (rows, *names, columns) if early else (*names, rows, columns)

    return MatMulSide(left, order(len(left), ("m", "k"), "A")), MatMulSide(right, order(len(right), ("k", "n"), "B"))


def matmul_dims(a: MatMulSide, b: MatMulSide, batch: Dims) -> Dims:
    """Returns the dims of the product; an operand of rank 1 contributes none."""
    rows = (a.dim("m"),) if "m" in a.order else ()
    columns = (b.dim("n"),) if "n" in b.order else ()
    return (*batch, *rows, *columns)


def infer_matmul(ctx: InferContext) -> list[TensorInfo]:
    left, right = input_dims(ctx, 0), input_dims(ctx, 1)
    element = i32 if ctx.op.op_type == "MatMulInteger" else element_type(ctx)
    if left is None or right is None:
        return infos(element, None)
    a, b = sides(ctx.op, left, right)
    ctx.equate(a.dim("k"), b.dim("k"))
    return infos(element, matmul_dims(a, b, broadcast(ctx, [a.batch, b.batch], "batch")))


def matmul_reason(op: OnnxOp) -> str | None:
    a, b = sides(op, operand_dims(op, 0), operand_dims(op, 1))
    if a.dim("k") != b.dim("k"):
        return f"its inner dims ({a.dim('k')} and {b.dim('k')}) are not known to be equal"
    batch = broadcast_dims([a.batch, b.batch])
    if isinstance(batch, str):
        return batch
    return broadcast_reason([a.batch, b.batch], batch)


def contract(ctx: Lowering, element: Attribute) -> SSAValue:
    """Returns the product of the first two operands, accumulated in `element`."""
    left, right = ctx.required(0), ctx.required(1)
    a, b = sides(ctx.op, ctx.dims(0), ctx.dims(1))
    batch = broadcast_dims([a.batch, b.batch])
    if isinstance(batch, str):
        raise ctx.fail(batch)
    points = (ctx.input(2), ctx.input(3)) if ctx.op.op_type == "MatMulInteger" else (None, None)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        at = {"k": r[0]}
        rest = iter(i[len(batch) :])
        for name in [n for n, side in (("m", a), ("n", b)) if n in side.order]:
            at[name] = next(rest)
        factors: list[Scalar] = []
        for tensor, side, zero in zip((left, right), (a, b), points, strict=True):
            own = aligned(side.batch, i[: len(batch)], batch)
            if isinstance(own, str):
                raise ctx.fail(own)
            value = nest.read(tensor, side.subscripts(own, at)).to(element)
            if zero is not None:
                value = value - read_zero_point(nest, zero, at["m"] if side is a and "m" in at else at.get("n", ZERO))
            factors.append(value)
        return factors[0] * factors[1]

    return ctx.generate(matmul_dims(a, b, batch), point, over=[a.dim("k")], combiner="add", element=element)


def read_zero_point(nest: Nest, zero: SSAValue, at: Expr) -> Scalar:
    """Reads a zero point as i32: one number, or one for each row or column."""
    dims = dims_of(zero.type)
    return nest.read(zero, [ZERO if d == ONE else at for d in dims]).to(i32)


def lower_matmul(ctx: Lowering) -> list[SSAValue]:
    element = compute_type(ctx.out_element())
    made = contract(ctx, element)
    alpha = ctx.attr("alpha", 1.0) if ctx.op.domain else 1.0
    if alpha != 1.0 or element != ctx.out_element():
        made = ctx.map(lambda x: x * alpha if alpha != 1.0 else x, made, part="scale")
    return [made]


def lower_matmul_integer(ctx: Lowering) -> list[SSAValue]:
    return [contract(ctx, i32)]


def matmul_integer_reason(op: OnnxOp) -> str | None:
    for index, side in ((2, 0), (3, 1)):
        if operand(op, index) is None:
            continue
        dims, of = operand_dims(op, index), operand_dims(op, side)
        lines = of[-2 if side == 0 else -1] if len(of) > 1 else ONE
        if len(dims) > 1 or any(d not in (ONE, lines) for d in dims):
            return "zero points are supported only per tensor, row or column"
    return matmul_reason(op)


def matmul_macs(op: OnnxOp) -> Expr:
    """elements of the result × length of the summed dim"""
    a, _ = sides(op, operand_dims(op, 0), operand_dims(op, 1))
    return product(dims_of(op.results[0].type)) * a.dim("k")


def matmul_packs(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the right operand, if it is a matrix or a stack of matrices."""
    _, b = sides(op, operand_dims(op, 0), operand_dims(op, 1))
    if "n" not in b.order:
        return {}
    return {1: (b.order.index("n"), b.order.index("k"))}


def matmul_integer_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    """Returns a reason for products without a micro-kernel, which would be loops over single products."""
    if any(operand(op, k) is not None for k in (2, 3)):
        return "there is no micro-kernel for products with zero points"
    elements = [element_of(op.operands[k].type) for k in range(2)]
    if kind_of(elements[0], elements[1], i32) is None:
        return f"there is no micro-kernel for products of {elements[0]} and {elements[1]}"
    return None


# -- Gemm -------------------------------------------------------------------------------------------------------------


def infer_gemm(ctx: InferContext) -> list[TensorInfo]:
    left, right = input_dims(ctx, 0), input_dims(ctx, 1)
    if left is None or right is None:
        m = ctx.fresh("m") if left is None else left[1 if ctx.op.attr("transA", 0) else 0]
        n = ctx.fresh("n") if right is None else right[0 if ctx.op.attr("transB", 0) else 1]
        return infos(element_type(ctx), [m, n])
    a, b = sides(ctx.op, left, right)
    ctx.equate(a.dim("k"), b.dim("k"))
    return infos(element_type(ctx), [a.dim("m"), b.dim("n")])


def gemm_reason(op: OnnxOp) -> str | None:
    reason = matmul_reason(op)
    if reason is None and operand(op, 2) is not None:
        reason = broadcast_reason([operand_dims(op, 2)], dims_of(op.results[0].type))
    return reason


def lower_gemm(ctx: Lowering) -> list[SSAValue]:
    alpha, beta, bias = ctx.attr("alpha", 1.0), ctx.attr("beta", 1.0), ctx.input(2)
    element = compute_type(ctx.out_element())
    made = contract(ctx, element)

    def scaled(x: Scalar, by: float) -> Scalar:
        return x if by == 1.0 else x * (by if x.is_float else int(by))

    if bias is not None and beta != 0.0:
        return [ctx.map(lambda x, c: scaled(x, alpha) + scaled(c, beta), made, bias, part="bias")]
    if alpha != 1.0 or element != ctx.out_element():
        return [ctx.map(lambda x: scaled(x, alpha), made, part="scale")]
    return [made]


def lower_fused_gemm(ctx: Lowering) -> list[SSAValue]:
    """Lowers Gemm and an activation of its result."""
    activation = named_activation(ctx)
    (made,) = lower_gemm(ctx)
    return [made if activation is None else ctx.map(activation, made, part="activation")]


def fused_gemm_reason(op: OnnxOp) -> str | None:
    name = str(op.attr("activation", ""))
    return gemm_reason(op) if not name or name in NAMED else f"unknown activation {name}"


# -- Einsum -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Equation:
    """An Einsum equation: the names of the dims of each operand and of the result; `...0`, `...1` for an ellipsis."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @property
    def summed(self) -> list[str]:
        return [n for n in dict.fromkeys(n for names in self.inputs for n in names) if n not in self.output]

    def extents(self, shapes: Sequence[Dims]) -> dict[str, Expr]:
        """Returns the extent of each name: dims of one name agree, and those of an ellipsis broadcast."""
        found: dict[str, Expr] = {}
        for names, dims in zip(self.inputs, shapes, strict=True):
            for name, dim in zip(names, dims, strict=True):
                if found.setdefault(name, dim) == ONE:
                    found[name] = dim
        return found


def parse_equation(text: str, ranks: Sequence[int]) -> Equation:
    """Parses an equation; numbers the dims of ellipses so that they align at the right. Raises `ValueError` if it does
    not fit."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ValueError(
                f"term '{term}' of equation '{text}' contains something other than letters and one ellipsis"
            )
    unknown = sorted(set(right.replace("...", "")) - set(left))
    if unknown:
        raise ValueError(f"'{unknown[0]}' in the result of equation '{text}' does not appear in any term")
    if len(terms) != len(ranks):
        raise ValueError(f"equation '{text}' has {len(terms)} terms for {len(ranks)} operands")
    dotted = [rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True) if "..." in t]
    widest = max(dotted, default=0)
    if arrow and widest and "..." not in right:
        raise ValueError(f"equation '{text}' has an ellipsis that its result lacks")

    def names(term: str, rank: int) -> tuple[str, ...]:
        head, dots, tail = term.partition("...")
        inside = rank - len(head) - len(tail)
        if inside < 0 or (inside and not dots):
            raise ValueError(f"term '{term}' of equation '{text}' for an operand of rank {rank}")
        return (*head, *(f"...{k}" for k in range(widest - inside, widest)), *tail)

    inputs = tuple(names(t, r) for t, r in zip(terms, ranks, strict=True))
    if arrow:
        return Equation(inputs, names(right, len(right.replace("...", "")) + (widest if "..." in right else 0)))
    letters = [n for t in inputs for n in t if not n.startswith("...")]
    once = sorted(n for n in set(letters) if letters.count(n) == 1)
    return Equation(inputs, (*(f"...{k}" for k in range(widest)), *once))


def equation_of(op: OnnxOp, shapes: Sequence[Dims]) -> Equation:
    return parse_equation(op.attr("equation"), [len(s) for s in shapes])


def infer_einsum(ctx: InferContext) -> list[TensorInfo]:
    shapes = [input_dims(ctx, k) for k in range(len(ctx.op.inputs))]
    ranked = [s for s in shapes if s is not None]
    if len(ranked) < len(shapes):
        return infos(element_type(ctx), None)
    try:
        equation = equation_of(ctx.op, ranked)
    except ValueError:  # ONNX Runtime reports it at run time
        return infos(element_type(ctx), None)
    # ONNX Runtime broadcasts a dim of 1 under any name, not only under an ellipsis.
    of_name: dict[str, list[Dims]] = {}
    for names, dims in zip(equation.inputs, ranked, strict=True):
        for name, dim in zip(names, dims, strict=True):
            of_name.setdefault(name, []).append((dim,))
    extents = {name: broadcast(ctx, shapes, f"einsum_{name}")[0] for name, shapes in of_name.items()}
    return infos(element_type(ctx), [extents[n] for n in equation.output])


def einsum_reason(op: OnnxOp) -> str | None:
    shapes = [operand_dims(op, k) for k in range(len(op.inputs))]
    try:
        equation = equation_of(op, shapes)
    except ValueError as error:
        return str(error)
    extents = equation.extents(shapes)
    for names, dims in zip(equation.inputs, shapes, strict=True):
        for name, dim in zip(names, dims, strict=True):
            if dim not in (ONE, extents[name]):
                return f"dims {dim} and {extents[name]} of '{name}' are not known to be equal"
    return None if len(set(equation.output)) == len(equation.output) else "a name occurs twice in the result"


def lower_einsum(ctx: Lowering) -> list[SSAValue]:
    tensors = ctx.inputs
    shapes = [dims_of(t.type) for t in tensors]
    equation = equation_of(ctx.op, shapes)
    extents = equation.extents(shapes)
    element = compute_type(ctx.out_element())
    over = [extents[n] for n in equation.summed]

    def value_at(nest: Nest, at: dict[str, Expr]) -> Scalar:
        value: Scalar | None = None
        for tensor, names, dims in zip(tensors, equation.inputs, shapes, strict=True):
            read = nest.read(tensor, [ZERO if d == ONE else at[n] for n, d in zip(names, dims, strict=True)])
            value = read if value is None else value * read
        assert value is not None
        return value.to(element)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return value_at(nest, dict(zip((*equation.output, *equation.summed), (*i, *r), strict=True)))

    made = ctx.generate(ctx.out_dims(), point, over=over, combiner="add", element=element)
    return [made if element_of(made.type) == ctx.out_element() else ctx.map(lambda x: x, made, part="narrow")]


def einsum_macs(op: OnnxOp) -> Expr:
    """product of the extents of all names × (operands - 1)"""
    shapes = [operand_dims(op, k) for k in range(len(op.inputs))]
    return (len(shapes) - 1) * product(equation_of(op, shapes).extents(shapes).values())


def _einsum_flops(op: OnnxOp) -> Expr:
    """2 × MACs; of one operand, its elements"""
    return operand_count(op) if len(op.inputs) == 1 else 2 * einsum_macs(op)


def einsum_packs(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the operand, of two, that has summed dims and, as the last dim of the result, a dim of its own. The depth
    of the panels is the last summed dim of both."""
    if len(op.inputs) != 2:
        return {}
    equation = equation_of(op, [operand_dims(op, k) for k in range(2)])
    found: dict[int, tuple[int, int]] = {}
    for index in range(2):
        own, other = equation.inputs[index], equation.inputs[1 - index]
        depths = [n for n in equation.summed if n in own and n in other]
        if not depths or not equation.output or len(set(own)) != len(own):
            continue
        column, depth = equation.output[-1], depths[-1]
        if column in own and column not in other:
            found[index] = (own.index(column), own.index(depth))
    return found


def einsum_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    """Returns a reason for more than two operands: ORT multiplies two at a time; one nest would
    iterate over all names."""
    return "it multiplies more than two operands" if len(op.inputs) > 2 else None


def contraction(
    name: str,
    infer: InferRule,
    lower: LowerRule,
    reason: Callable[[OnnxOp], str | None],
    macs: FlopsRule = matmul_macs,
    packs: PackRule = matmul_packs,
    unprofitable: UnprofitableRule | None = None,
    flops: FlopsRule | None = None,
) -> OpSpec:
    return OpSpec(
        name,
        infer,
        lower=lower,
        legal=legal(reason),
        macs=macs,
        flops=flops or twice(macs),
        packs=packs,
        unprofitable=unprofitable,
        kind="contraction",
    )


SPECS: list[OpSpec] = [
    contraction(
        *("Einsum", infer_einsum, lower_einsum, einsum_reason, einsum_macs, einsum_packs, einsum_slow, _einsum_flops)
    ),
    contraction("Gemm", infer_gemm, lower_gemm, gemm_reason),
    contraction("MatMul", infer_matmul, lower_matmul, matmul_reason),
    contraction(
        "MatMulInteger", infer_matmul, lower_matmul_integer, matmul_integer_reason, unprofitable=matmul_integer_slow
    ),
    contraction("com.microsoft.FusedGemm", infer_gemm, lower_fused_gemm, fused_gemm_reason),
    contraction("com.microsoft.FusedMatMul", infer_matmul, lower_matmul, matmul_reason),
    contraction("com.microsoft.TransposeMatMul", infer_matmul, lower_matmul, matmul_reason),
]
