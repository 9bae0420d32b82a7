"""The interpreter of MLIR's dialects: the values that MLIR documents, poison, and undefined behaviour."""

from __future__ import annotations

import math
from typing import Any

import pytest

from igniter.verification.mlir.machine import Machine
from igniter.verification.mlir.observing import functions
from igniter.verification.mlir.reading import parse_module
from igniter.verification.mlir.values import POISON, OutOfSteps, Undefined, Unsupported, array_of


def run(body: str, type_: str, args: tuple[Any, ...] = (), params: str = "", limit: int = 10_000) -> Any:
    """Runs a function in the generic form; `body` defines %r, of `type_`."""
    kinds = ", ".join(p.split(":")[1].strip() for p in params.split(", ")) if params else ""
    block = f"^bb0({params}):" if params else ""
    module = parse_module(
        f'"builtin.module"() ({{ "func.func"() <{{function_type = ({kinds}) -> ({type_}), sym_name = "f"}}> ({{ '
        f'{block} {body} "func.return"(%r) : ({type_}) -> () }}) : () -> () }}) : () -> ()'
    )
    machine = Machine(module, limit)
    value = machine.call(functions(module)["f"].op, args)[0]
    return value.tolist() if hasattr(value, "tolist") else value


def binary(name: str, a: int, b: int, type_: str = "i8", attributes: str = "") -> Any:
    return run(
        f'%r = "{name}"(%a, %b) {attributes} : ({type_}, {type_}) -> {type_}',
        type_,
        (a, b),
        f"%a: {type_}, %b: {type_}",
    )


INTEGERS = [
    ("arith.ceildivsi", -128, 2, -64),
    ("arith.ceildivsi", 7, 2, 4),
    ("arith.ceildivsi", -7, 2, -3),
    ("arith.floordivsi", -7, 2, -4),
    ("arith.divsi", -7, 2, -3),
    ("arith.remsi", -7, 2, -1),
    ("arith.divui", -1, 2, 127),
    ("arith.ceildivui", -1, 2, -128),
    ("arith.addi", 127, 1, -128),
    ("arith.muli", 16, 16, 0),
    ("arith.shrsi", -128, 3, -16),
    ("arith.shrui", -128, 3, 16),
    ("arith.shli", 1, 8, POISON),
    ("arith.maxui", -1, 1, -1),
    ("arith.minsi", -1, 1, -1),
    ("index.ceildivs", -8, 3, -2),
    ("index.remu", 7, 4, 3),
]


def test_integers() -> None:
    for name, a, b, result in INTEGERS:
        assert binary(name, a, b) == result, f"{name} {a}, {b}"


def test_overflow_flags_give_poison() -> None:
    assert binary("arith.addi", 127, 1, attributes="<{overflowFlags = #arith.overflow<nsw>}>") is POISON
    assert binary("arith.addi", 126, 1, attributes="<{overflowFlags = #arith.overflow<nsw>}>") == 127
    assert binary("arith.addi", -1, 1, attributes="<{overflowFlags = #arith.overflow<nuw>}>") is POISON


@pytest.mark.parametrize(
    ("name", "a", "b", "message"),
    [
        ("arith.divsi", 1, 0, "a division by 0"),
        ("arith.divsi", -128, -1, "overflows 8 bits"),
        ("arith.remui", 1, 0, "a division by 0"),
    ],
)
def test_divisions_without_a_result(name: str, a: int, b: int, message: str) -> None:
    with pytest.raises(Undefined, match=message):
        binary(name, a, b)


def test_floats() -> None:
    assert binary("arith.divf", 1.0, -0.0, "f32") == -math.inf
    assert math.isnan(binary("arith.maximumf", math.nan, 1.0, "f32"))
    assert binary("arith.maxnumf", math.nan, 1.0, "f32") == 1.0
    assert math.copysign(1.0, binary("arith.minimumf", 0.0, -0.0, "f32")) == -1.0
    assert binary("arith.addf", 1e30, 1e30, "f16") == math.inf
    assert binary("arith.addf", 1.0, 2.0**-30, "f32") == 1.0


@pytest.mark.parametrize(("value", "result"), [(1e10, POISON), (math.nan, POISON), (-3.7, -3)])
def test_float_to_integer(value: float, result: Any) -> None:
    assert run('%r = "arith.fptosi"(%a) : (f32) -> i8', "i8", (value,), "%a: f32") == result


def test_mask_of_a_large_bound() -> None:
    body = '%r = "vector.create_mask"(%n) : (index) -> vector<3xi1>'
    assert run(body, "vector<3xi1>", ((1 << 32) + 1,), "%n: index") == [1, 1, 1]
    assert run(body, "vector<3xi1>", (-1,), "%n: index") == [0, 0, 0]


def test_masked_reduction_keeps_the_initial_value() -> None:
    body = """
    %r = "vector.mask"(%m) ({
      %s = "vector.multi_reduction"(%x, %a) <{kind = #vector.kind<add>, reduction_dims = []}>
           : (vector<2xi8>, vector<2xi8>) -> vector<2xi8>
      "vector.yield"(%s) : (vector<2xi8>) -> ()
    }) : (vector<2xi1>) -> vector<2xi8>
    """
    args = tuple(array_of(v, (2,)) for v in ([1, 0], [5, 6], [10, 20]))
    assert run(body, "vector<2xi8>", args, "%m: vector<2xi1>, %x: vector<2xi8>, %a: vector<2xi8>") == [15, 20]


MEMORY = """
    %m = "memref.alloc"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> memref<2xi8>
    %r = "memref.load"(%m, %i) : (memref<2xi8>, index) -> i8
"""


def test_memory() -> None:
    assert run(MEMORY, "i8", (1,), "%i: index") is POISON
    with pytest.raises(Undefined, match="index 2 of dim 0 is outside of its 2 elements"):
        run(MEMORY, "i8", (2,), "%i: index")


def test_maps_with_products_of_symbols() -> None:
    map_ = "affine_map<()[s0, s1] -> (s0 * s1 + 7 floordiv 2)>"
    body = f'%r = "affine.apply"(%a, %b) <{{map = {map_}}}> : (index, index) -> index'
    assert run(body, "index", (3, 4), "%a: index, %b: index") == 15


def test_bits_of_floats_in_dense_constants() -> None:
    body = '%r = "arith.constant"() <{value = dense<[0xFF800000, 1.5]> : vector<2xf32>}> : () -> vector<2xf32>'
    assert run(body, "vector<2xf32>") == [-math.inf, 1.5]


def test_limit_of_steps() -> None:
    body = """
    %z = "arith.constant"() <{value = 0 : index}> : () -> index
    %o = "arith.constant"() <{value = 1 : index}> : () -> index
    "scf.for"(%z, %n, %o) ({ ^bb1(%i: index): "scf.yield"() : () -> () }) : (index, index, index) -> ()
    %r = "arith.constant"() <{value = 1 : i8}> : () -> i8
    """
    with pytest.raises(OutOfSteps):
        run(body, "i8", (1 << 40,), "%n: index")


def test_unknown_op_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"no rule for 'async\.runtime'"):
        run('%r = "async.runtime"() : () -> i8', "i8")
