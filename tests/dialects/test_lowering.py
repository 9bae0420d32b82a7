"""Every target of expressions computes what `Expr.evaluate` does, negative dividends and odd sizes included."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from igniter.backends.cpu.builder import LlvmModule, Value, flatten
from igniter.backends.cpu.codegen import _llvm, optimize
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.lanes import lane_values
from igniter.backends.cpu.llvm_types import I64
from igniter.backends.cpu.target import target_of
from igniter.dialects.loop import IndexOp
from igniter.dialects.onnx.base import constant_value, make_op
from igniter.dialects.onnx.expr_nodes import ExprNodes
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr, call
from igniter.dialects.sym.ranges import Ranges
from igniter.toolbox.shapes.shape_code import compile_shapes
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.structured.nest_rewriting import materialize
from igniter.verification.interp.arithmetic import evaluate
from igniter.verification.interp.structured import evaluate_expr
from tests.examples import examples

NAMES = ("a", "b", "_0")
"""Two dims, from 1, and an indirect operand of any sign, which divides nothing."""
Points = list[tuple[int, int, int]]
LANES = 8


def exprs() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from(NAMES).map(Expr.of), st.integers(-20, 20).map(Expr.of))
    divisors = st.one_of(st.integers(1, 9), st.sampled_from(NAMES[:2])).map(Expr.of)

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            pairs.map(lambda p: p[0] * p[1]),
            st.tuples(st.sampled_from(("min", "max")), st.lists(inner, min_size=2, max_size=3)).map(lambda p: call(*p)),
            st.tuples(st.sampled_from(("floordiv", "mod")), st.tuples(inner, divisors)).map(lambda p: call(*p)),
        )

    return st.recursive(leaves, grow, max_leaves=8)


def by_arrays(e: Expr, points: Points) -> list[int]:
    columns = dict(zip(NAMES, np.array(points, np.int64).T, strict=True))
    return np.broadcast_to(evaluate_expr(e, columns), len(points)).tolist()


def by_python(e: Expr, points: Points) -> list[int | None]:
    found = [compile_shapes(NAMES, [(e,)]).evaluate(*point) for point in points]
    return [None if isinstance(shapes, int) else shapes[0][0] for shapes in found]


def run_block(block: Block, result: SSAValue, arguments: Sequence[int], env: dict[str, int]) -> int:
    values: dict[SSAValue, object] = {a: np.int64(v) for a, v in zip(block.args, arguments, strict=True)}
    for op in block.ops:
        if isinstance(op, IndexOp):
            values[op.result] = np.int64(op.value.evaluate(env))
        else:
            values[op.results[0]] = evaluate(op, [values[o] for o in op.operands])
    return int(values[result])  # pyright: ignore


def by_arith(e: Expr, points: Points) -> list[int]:
    block = Block(arg_types=[i64])
    result = materialize(e, block.args, block.add_op)
    return [run_block(block, result, p[2:], dict(zip(NAMES, p, strict=True))) for p in points]


def by_blocks(e: Expr, points: Points) -> list[int]:
    block = Block(arg_types=[i64] * 3)
    result = BlockBuilder(block, Ranges({})).expr(e, dict(zip(NAMES, block.args, strict=True)))
    return [run_block(block, result, p, {}) for p in points]


class Nodes(ExprNodes):
    def read_symbol(self, name: str) -> SSAValue:
        return self._block.args[NAMES.index(name)]


def by_onnx(e: Expr, points: Points) -> list[int]:
    block = Block(arg_types=[tensor_of(i64, [1])] * 3)
    block.add_op(end := make_op("Identity", [block.args[0]], [tensor_of(i64, [1])], {}))
    result = Nodes(block, end).lower(e)
    names: dict[SSAValue, str] = dict(zip(block.args, NAMES, strict=True))
    nodes = []
    for number, op in enumerate(block.ops):
        names[op.results[0]] = f"t{number}"
        kind = op.name.removeprefix("onnx.")
        attributes = {"value": numpy_helper.from_array(constant_value(op.results[0]))} if kind == "Constant" else {}
        nodes.append(helper.make_node(kind, [names[o] for o in op.operands], [f"t{number}"], **attributes))
    infos = [helper.make_tensor_value_info(n, TensorProto.INT64, None) for n in (*NAMES, names[result])]
    model = helper.make_model(helper.make_graph(nodes, "g", infos[:3], infos[3:]))
    session = ReferenceEvaluator(model)
    columns = {n: np.array(c, np.int64) for n, c in zip(NAMES, zip(*points, strict=True), strict=True)}
    return np.broadcast_to(session.run(None, columns)[0], len(points)).tolist()


def jit(emit: Callable[[Function, list[Value]], Value], lanes: int, points: Points) -> list[int]:
    """Runs code on vectors of lanes of the points."""
    f, t = Function(LlvmModule(target_of("native")), "f"), I64 if lanes == 1 else I64.with_lanes(lanes)
    given = [f.emit(t, f"load {t}, ptr {_place(f, k, lanes)}, align 8") for k in range(3)]
    result = emit(f, given)
    f.raw(f"store {result.typed}, ptr %out, align 8")
    f.module.functions.append("\n".join(["define void @f(ptr %in, ptr %out) {", *flatten(f.lines), "  ret void", "}"]))
    llvm = _llvm()
    machine = llvm.Target.from_triple(f.target.triple).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(optimize(f.module.text(), f.target), machine)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("f"))
    found: list[int] = []
    for first in range(0, len(points), lanes):
        inputs = np.array(points[first : first + lanes], np.int64).T.copy()
        output = np.zeros(lanes, np.int64)
        function(inputs.ctypes.data, output.ctypes.data)
        found += output.tolist()
    return found


def _place(f: Function, k: int, lanes: int) -> str:
    place = f.name("at")
    f.raw(f"{place} = getelementptr i64, ptr %in, i64 {k * lanes}")
    return place


def by_registers(e: Expr, points: Points) -> list[int]:
    def emit(f: Function, given: list[Value]) -> Value:
        return f.expr(f.prepare(e), dict(zip(NAMES, given, strict=True)))

    return jit(emit, 1, points)


def by_vectors(e: Expr, points: Points) -> list[int]:
    def emit(f: Function, given: list[Value]) -> Value:
        return lane_values(f, e, None, LANES, dict(zip(NAMES, given, strict=True)))

    return jit(emit, LANES, points)


TARGETS = (by_arrays, by_python, by_arith, by_blocks, by_onnx, by_registers, by_vectors)
POINTS = st.lists(
    st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(-70, 70)), min_size=LANES, max_size=LANES
)


@pytest.mark.parametrize("run", TARGETS)
@examples(120)
@given(exprs(), POINTS)
def test_a_target_computes_what_the_expression_says(run, e: Expr, points: Points) -> None:
    expected = [e.evaluate(dict(zip(NAMES, point, strict=True))) for point in points]
    found = run(e, points)
    if run is by_python:  # a shape has no negative dims
        expected = [n if n >= 0 else None for n in expected]
    assert found == expected, str(e)


@pytest.mark.parametrize("run", TARGETS[:1] + TARGETS[2:])
def test_quotients_of_negative_numbers_round_downwards(run) -> None:
    points = [(4, 3, n) for n in range(-4, 4)]
    assert run(call("floordiv", [Expr.of("_0") - 1, Expr.of("a")]), points) == [(n - 1) // 4 for n in range(-4, 4)]
    assert run(call("mod", [Expr.of("_0") - 1, Expr.of(3)]), points) == [(n - 1) % 3 for n in range(-4, 4)]
