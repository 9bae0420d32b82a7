"""Random structured kernels on integers, whose results are exact: what the structured passes must not change."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.lowering import KernelBuilder, Nest, Scalar
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

SIZES = {"n": 3, "m": 5}
"""The symbols and the sizes that they are run with."""
DIMS = (ONE, Expr.of(2), Expr.of(3), Expr.of(4), Expr.of("n"), Expr.of("m"))
MAX_ELEMENTS = 400


def size(dims: Sequence[Expr]) -> int:
    return product(dims).evaluate(SIZES)


class Grower:
    """Grows a kernel, one random step at a time."""

    def __init__(self, random: Random):
        self.random = random
        shapes = [random.choices(DIMS, k=random.randint(0, 3)) for _ in range(random.randint(1, 3))]
        # One input has a dim of each symbol, so that a run can bind them.
        types = [tensor_of(i64, ["n", "m"]), *(tensor_of(i64, s) for s in shapes)]
        self.kernel = KernelBuilder(types, SIZES)
        self.tensors: list[SSAValue] = list(self.kernel.args)

    def pick(self, high: int, low: int = 0) -> int:
        return self.random.randint(low, high)

    def tensor(self) -> tuple[SSAValue, tuple[Expr, ...]]:
        # Late ones more often, so that chains grow long.
        value = self.random.choice(self.tensors[-3:] if self.random.random() < 0.7 else self.tensors)
        return value, dims_of(value.type)

    def generate(self, name: str, dims: Sequence[Expr], point: object) -> SSAValue:
        nest = self.kernel.nest(name)
        axes = nest.axes(dims)
        value = point(nest, axes)  # type: ignore[operator]
        return nest.finish(("none", value, axes, tensor_of(i64, dims)))[0]

    # -- steps -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        steps = (
            self.unary, self.binary, self.transpose, self.view, self.slice, self.pad, self.concat, self.gather,
            self.reduce, self.contract, self.expand, self.tile, self.position,
        )  # fmt: skip
        made = self.random.choice(steps)()
        if made is not None and size(dims_of(made.type)) <= MAX_ELEMENTS:
            self.tensors.append(made)

    def unary(self) -> SSAValue:
        x, dims = self.tensor()
        kind = self.pick(3)

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            v = nest.read(x, i)
            return (v * 3 + 1, v.maximum(2), v / 3, v - 7)[kind]

        return self.generate("unary", dims, point)

    def binary(self) -> SSAValue | None:
        (x, a), (y, b) = self.tensor(), self.tensor()
        if len(b) > len(a) or any(q not in (p, ONE) for p, q in zip(a[len(a) - len(b) :], b, strict=True)):
            return None

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            own = [ZERO if d == ONE else e for d, e in zip(b, i[len(a) - len(b) :], strict=True)]
            return nest.read(x, i) + nest.read(y, own) * 2

        return self.generate("binary", a, point)

    def transpose(self) -> SSAValue:
        x, dims = self.tensor()
        order = self.random.sample(range(len(dims)), len(dims))
        return self.generate(
            "transpose",
            [dims[p] for p in order],
            lambda nest, i: nest.read(x, [i[order.index(d)] for d in range(len(dims))]),
        )

    def view(self) -> SSAValue:
        x, dims = self.tensor()
        cut = self.pick(len(dims))
        joined = [product(dims[:cut]), product(dims[cut:])] if self.pick(1) else [*dims[:cut], ONE, *dims[cut:]]
        if self.pick(1) and dims and dims[0] == Expr.of(4):
            joined = [Expr.of(2), Expr.of(2), *dims[1:]]
        return self.kernel.view(x, joined)

    def slice(self) -> SSAValue | None:
        x, dims = self.tensor()
        cuts = [k for k, d in enumerate(dims) if d in (Expr.of(3), Expr.of(4))]
        if not cuts:
            return None
        axis, first = self.random.choice(cuts), self.pick(1)
        result = [Expr.of(2) if k == axis else d for k, d in enumerate(dims)]
        back = self.pick(1)

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            return nest.read(x, [(1 + first - e if back else e + first) if k == axis else e for k, e in enumerate(i)])

        return self.generate("slice", result, point)

    def pad(self) -> SSAValue | None:
        x, dims = self.tensor()
        if not dims:
            return None
        axis, low, high = self.pick(len(dims) - 1), self.pick(2), self.pick(2)
        result = [d + low + high if k == axis else d for k, d in enumerate(dims)]
        other = self.pick(1) * 9

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            at = i[axis] - low
            return nest.read(
                x, [*i[:axis], at, *i[axis + 1 :]], guards=[at, dims[axis] - 1 - at], otherwise=other or None
            )

        return self.generate("pad", result, point)

    def concat(self) -> SSAValue | None:
        (x, a), (y, b) = self.tensor(), self.tensor()
        if not a or a[1:] != b[1:] or len(a) != len(b):
            return None

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            late = nest.read(y, [i[0] - a[0], *i[1:]], guards=[i[0] - a[0]])
            return nest.read(x, i, guards=[a[0] - 1 - i[0]], otherwise=late)

        return self.generate("concat", [a[0] + b[0], *a[1:]], point)

    def gather(self) -> SSAValue | None:
        (x, a), (y, b) = self.tensor(), self.tensor()
        if not a or len(a) + len(b) > 4:
            return None

        def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
            at = nest.read(y, i[: len(b)])
            index = Expr.of("_0")
            return nest.read(
                x, [index, *i[len(b) :]], guards=[index, a[0] - 1 - index], indices=[at], otherwise=self.fill
            )

        self.fill = self.pick(1) * 5
        return self.generate("gather", [*b, *a[1:]], point)

    def reduce(self) -> SSAValue:
        x, dims = self.tensor()
        summed = {k for k in range(len(dims)) if self.pick(1)}
        nest = self.kernel.nest("reduce")
        at = [nest.reduction(d) if k in summed else nest.parallel(d) for k, d in enumerate(dims)]
        keep = self.pick(1)
        where = [ZERO if k in summed else e for k, e in enumerate(at) if keep or k not in summed]
        result = [ONE if k in summed else d for k, d in enumerate(dims) if keep or k not in summed]
        combiner = self.random.choice(("add", "max"))
        return nest.finish((combiner, nest.read(x, at), where, tensor_of(i64, result)))[0]

    def contract(self) -> SSAValue | None:
        (x, a), (y, b) = self.tensor(), self.tensor()
        if len(a) < 1 or len(b) < 1 or a[-1] != b[0]:
            return None
        nest = self.kernel.nest("contract")
        left, right, k = nest.axes(a[:-1]), nest.axes(b[1:]), nest.reduction(a[-1])
        value = nest.read(x, [*left, k]) * nest.read(y, [k, *right])
        return nest.finish(("add", value, [*left, *right], tensor_of(i64, [*a[:-1], *b[1:]])))[0]

    def expand(self) -> SSAValue:
        x, dims = self.tensor()
        extra = self.random.choice(DIMS)
        return self.generate("expand", [extra, *dims], lambda nest, i: nest.read(x, i[1:]))

    def tile(self) -> SSAValue | None:
        x, dims = self.tensor()
        if not dims:
            return None
        nest = self.kernel.nest("tile")
        copies, inside = nest.parallel(2), nest.axes(dims)
        result = tensor_of(i64, [dims[0] * 2, *dims[1:]])
        return nest.finish(("none", nest.read(x, inside), [copies * dims[0] + inside[0], *inside[1:]], result))[0]

    def position(self) -> SSAValue:
        x, dims = self.tensor()
        return self.generate(
            "position", dims, lambda nest, i: nest.read(x, i) + nest.index(sum(i, start=ZERO) + Expr.of("n"))
        )


def random_kernel(seed: int, steps: int) -> KernelOp:
    """A kernel of up to `steps` nests, with one to three results."""
    grower = Grower(Random(seed))
    for _ in range(steps):
        grower.step()
    late = grower.tensors[-4:]
    results = grower.random.sample(late, min(len(late), grower.pick(3, 1)))
    return grower.kernel.finish("k", results)


def kernels(steps: int = 14) -> st.SearchStrategy[KernelOp]:
    """Random kernels; the number of steps shrinks."""
    return st.builds(random_kernel, st.integers(0, 1 << 32), st.integers(1, steps))


def inputs_of(kernel: KernelOp, seed: int) -> list[np.ndarray]:
    """Small integers, among them valid and invalid indices."""
    random = np.random.default_rng(seed)
    shapes = [[d.evaluate(SIZES) for d in dims_of(a.type)] for a in kernel.block.args]
    return [random.integers(-2, 6, shape) for shape in shapes]
