"""Micro-kernels as data: every declared one does what it means, and packages bring their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, i32

from igniter import registry
from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.micro_kernels import CpuMicroKernel
from igniter.backends.cpu.target import Target, target_of
from igniter.backends.cpu.tile_bodies import Body, TileSize
from igniter.backends.cpu.tile_calls import SIGNATURE
from igniter.backends.cpu.tile_kernels import kind_named, tile_name
from igniter.dialects.loop import instructions
from igniter.dialects.loop.instructions import BUILT_IN, BY_NAME, MicroKernel, meaning, micro_kernel
from igniter.dialects.loop.panels import group_of, kind_of
from igniter.dialects.onnx.types import element_type
from igniter.errors import IgniterError
from igniter.toolbox.kernel.schedules import Schedule
from igniter.verification.interp.scheduled import run_func
from igniter.verification.interp.structured import run_kernel

from .cpu_kit import check_against_interpreter
from .test_tile_kernels import Guarded, compiled

Array = np.ndarray

HERE = "tests.backends.cpu.test_micro_kernels"
PACKAGE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "my_package"

REACH_MEANING = "%v = arith.addf %x, %y : f32"
REACH_TEXT = meaning("reach", "f32", "f32", "f32", REACH_MEANING, lanes=16, combiner="max")


class ReachBody(Body):
    """The longest of the ways over all k."""

    def step(self, a: Value, b: Value, total: Value) -> Value:
        return self.combine(self.binary("fadd", a, b), total)


REACH = CpuMicroKernel("test.reach", REACH_TEXT, code=ReachBody)
ABSENT = CpuMicroKernel("test.absent", REACH_TEXT, code=ReachBody, missing=lambda target: "it is too small")
NO_KERNEL = "test"
SI8 = IntegerType(8, Signedness.SIGNED)


def scalar_text(name: str, size: TileSize, target: Target) -> str:
    """Distances in words, without vectors: what a function of text may be."""
    lanes = 16 * size.panels
    return f"""
define hidden void @{name}({SIGNATURE}) #0 {{
entry:
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %row.end ]
  %more = icmp slt i64 %r, %rows
  br i1 %more, label %column, label %done
column:
  %j = phi i64 [ 0, %row ], [ %j1, %column.end ]
  %left = icmp slt i64 %j, {lanes}
  br i1 %left, label %start, label %row.end
start:
  %p = lshr i64 %j, 4
  %l = and i64 %j, 15
  %c0 = mul i64 %r, %c_row
  %c1 = shl i64 %j, 2
  %c2 = add i64 %c0, %c1
  %cp = getelementptr i8, ptr %c, i64 %c2
  %old = load i32, ptr %cp, align 4
  %adds = icmp ne i64 %add, 0
  %first = select i1 %adds, i32 %old, i32 0
  br label %step
step:
  %k = phi i64 [ 0, %start ], [ %k1, %body ]
  %sum = phi i32 [ %first, %start ], [ %next.sum, %body ]
  %on = icmp slt i64 %k, %depth
  br i1 %on, label %body, label %column.end
body:
  %a0 = mul i64 %r, %a_row
  %a1 = mul i64 %k, %a_depth
  %a2 = add i64 %a0, %a1
  %ap = getelementptr i8, ptr %a, i64 %a2
  %x = load i32, ptr %ap, align 4
  %b0 = mul i64 %p, %b_panel
  %b1 = mul i64 %k, %b_depth
  %b2 = add i64 %b0, %b1
  %b3 = shl i64 %l, 2
  %b4 = add i64 %b2, %b3
  %bp = getelementptr i8, ptr %b, i64 %b4
  %y = load i32, ptr %bp, align 4
  %d = sub i32 %x, %y
  %q = mul i32 %d, %d
  %next.sum = add i32 %sum, %q
  %k1 = add i64 %k, 1
  br label %step
column.end:
  store i32 %sum, ptr %cp, align 4
  %j1 = add i64 %j, 1
  br label %column
row.end:
  %r1 = add i64 %r, 1
  br label %row
done:
  ret void
}}
"""


WORDS = CpuMicroKernel(
    "test.words",
    meaning("words", "i32", "i32", "i32", "%d = arith.subi %x, %y : i32\n %v = arith.muli %d, %d : i32", lanes=16),
    code=scalar_text,
)

OUTSIDE = {
    "my.distance": "my_package.distance:DISTANCE",
    **{k.name: f"{HERE}:{k.name.split('.')[1].upper()}" for k in (REACH, ABSENT, WORDS)},
    "test.none": f"{HERE}:NO_KERNEL",
    "test.other": f"{HERE}:REACH",
}
SOUND = ("my.distance", "test.reach", "test.words")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if packages with these micro-kernels were installed."""
    before = registry.external

    @cache
    def external(group: str) -> dict[str, str]:
        return OUTSIDE if group == "micro_kernels" else before(group)

    monkeypatch.setattr(registry, "external", external)
    monkeypatch.syspath_prepend(str(PACKAGE))
    instructions._external.cache_clear()
    yield
    instructions._external.cache_clear()
    for name in [n for n in sys.modules if n.partition(".")[0] == "my_package"]:
        del sys.modules[name]


def numbers(rng: np.random.Generator, dtype: np.dtype, dims: tuple[int, ...]) -> Array:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (-1000, 1000) if dtype.itemsize > 2 else (info.min, info.max)
        return rng.integers(low, high, dims, endpoint=True).astype(dtype)
    return rng.standard_normal(dims).astype(dtype)


@pytest.mark.parametrize("name", (*BUILT_IN, *SOUND))
def test_code_does_what_is_meant(name: str) -> None:
    """Random tiles, edges and no depth at all, against the meaning as the interpreter runs it."""
    kernel, kind, pages = micro_kernel(name), kind_named(name), Guarded()
    rng = np.random.default_rng(len(name))
    a_type, b_type, c_type = (element_type(e).dtype for e in kernel.facts.elements)
    size = TileSize(5, 2)
    inner = (kernel.group,) if kernel.group > 1 else ()
    for rows, groups, add in ((1, 1, False), (3, 0, False), (3, 0, True), (5, 7, True), (5, 32, False), (2, 19, True)):
        a = numbers(rng, a_type, (rows, groups, *inner))
        b = numbers(rng, b_type, (size.panels, groups, kernel.lanes, *inner))
        c = numbers(rng, c_type, (rows, size.panels, kernel.lanes))
        (meant,) = run_kernel(kernel.facts.kernel, [a, b])
        meant = meant.reshape(c.shape)
        if add:
            meant = np.maximum(c, meant) if kernel.facts.combiner == "max" else c + meant
        buffers = [pages.copy(x) for x in (a, b, c)]
        compiled(name, size, "native")(
            *buffers,
            a_row=kind.step_bytes * groups,
            a_depth=kind.step_bytes,
            b_panel=kind.panel_bytes * kind.lanes * groups,
            b_depth=kind.panel_bytes * kind.lanes,
            c_row=kind.sum_bytes * kind.lanes * size.panels,
            rows=rows,
            depth=groups,
            add=int(add),
        )
        scale = float(np.abs(meant[np.isfinite(meant)].astype(np.float64)).max(initial=1))
        tolerance = 0 if c_type.kind == "i" else 1e-13 if name == "f64" else 1e-5
        np.testing.assert_allclose(buffers[2], meant, tolerance, tolerance * scale, err_msg=f"{rows}x{groups} {add}")


CHOSEN = {
    ("f32", "f32", "f32"): ("f32", 1),
    ("f64", "f64", "f64"): ("f64", 1),
    ("f32", "f16", "f32"): ("f32f16", 1),
    ("f32", "bf16", "f32"): ("f32bf16", 1),
    ("bf16", "bf16", "f32"): ("bf16", 2),
    ("u8", "i8", "i32"): ("u8i8", 4),
    ("i8", "i8", "i32"): ("i8i8", 4),
    ("i16", "i16", "i32"): ("i16", 2),
}
"""The micro-kernels of products of elements, and the steps of depth that they multiply together."""


@pytest.mark.parametrize("rounds", (0, 1, 3))
def test_one_without_rounds_is_called_for_each(rounds: int) -> None:
    """An outer sum is calls one after the other, where a micro-kernel has none of its own."""
    product = "%a[s, r, k] * %b[p, s, k, l] over r = 3, p = 2, l = 16, k = 5, s = n tile [4, 2]"
    text = f"""
loop.func @distances symbols [n] (%a: memref<?x3x5xi32, #sym.dims<n, 3, 5>>,
    %b: memref<2x?x5x16xi32, #sym.dims<2, n, 5, 16>>, %c: memref<3x32xi32>, %e: memref<3x32xi32>) outputs 2 {{
  loop.tile_product %c[r, 16*p + l] = {product} kernel "test.words"
  loop.tile_product %e[r, 16*p + l] += {product} kernel "test.words"
}}"""
    rng = np.random.default_rng(0)
    a, b = (numbers(rng, np.dtype("i4"), dims) for dims in ((rounds, 3, 5), (2, rounds, 5, 16)))
    start = np.full((3, 32), 7, "i4")
    plain, more = check_against_interpreter(text, [a, b, start, start.copy()], {"n": rounds}, ("native",))
    apart = a[None, :, :, :, None] - b[:, :, None]
    np.testing.assert_array_equal(plain, (apart**2).sum((1, 3)).transpose(1, 0, 2).reshape(3, 32))
    np.testing.assert_array_equal(more, plain + 7)


def test_which_are_chosen() -> None:
    """One for each row of the table, and none for all else."""
    types = {n: e for k in BUILT_IN.values() for n, e in zip(k.element_names, k.facts.elements, strict=True)}
    for a, b, c in product(types, repeat=3):
        kind, group = CHOSEN.get((a, b, c), (None, 1))
        assert kind_of(types[a], types[b], types[c]) == kind
        assert kind is None or group_of(kind) == group
    assert kind_of(SI8, SI8, i32) == "i8i8"
    assert {"f16"} == BY_NAME


BODIES = {
    "my.distance": ("%d = arith.subf %x, %y : f32", "%q = arith.mulf %d, %d : f32"),
    "test.reach": ("%q = arith.addf %y, %x : f32",),
    "f32": ("%q = arith.mulf %y, %x : f32",),
}


def nest(name: str, combiner: str = "add", body: tuple[str, ...] | None = None) -> str:
    lines = "\n".join(body or BODIES[name])
    return f"""
builtin.module {{
  loop.kernel @k symbols [n] (%a: tensor<?x40xf32, #sym.dims<n, 40>>, %b: tensor<40x64xf32>)
      -> (tensor<?x64xf32, #sym.dims<n, 64>>) {{
    %s = loop.nest "s" [i: parallel n, j: parallel 64, k: reduction 40] -> tensor<?x64xf32, #sym.dims<n, 64>> {{
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      {lines}
      loop.yield {combiner} %q at [i, j]
    }}
    loop.return %s : tensor<?x64xf32, #sym.dims<n, 64>>
  }}
}}
"""


def scheduled(tmp_path: Path, text: str, name: str, target: str = "native") -> Schedule:
    file = tmp_path / "k.mlir"
    file.write_text(text)
    s = Schedule(file, target=target)
    s.split("s", "j", 32)
    s.split("s", "i", 5)
    s.reorder("s", "j by 32", "i by 5", "k", "i", "j")
    s.tensorize("s", "i", "j", "k", (5, 2), name)
    return s


@pytest.mark.parametrize("name", BODIES)
def test_schedules_name_a_micro_kernel(name: str, tmp_path: Path) -> None:
    """Compiled, and run by the interpreter."""
    combiner = "max" if name == "test.reach" else "add"
    s = scheduled(tmp_path, nest(name, combiner), name)
    assert f'tile [5, 2] by "{name}"' in s.text()
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((13, 40)).astype(np.float32), rng.standard_normal((40, 64)).astype(np.float32)
    x, y = a[:, :, None].astype(float), b[None].astype(float)
    expected = {
        "my.distance": lambda: ((x - y) ** 2).sum(1),
        "test.reach": lambda: (x + y).max(1),
        "f32": lambda: (x * y).sum(1),
    }[name]()
    np.testing.assert_allclose(s.run(a, b)[0], expected, 1e-5, 1e-5)
    func = s.apply()
    assert f'kernel "{name}"' in str(func)
    result = np.zeros((13, 64), np.float32)
    run_func(func, [a, b, result], {"n": 13})
    np.testing.assert_allclose(result, expected, 1e-5, 1e-5)


def test_blocks_of_depth_are_folded(tmp_path: Path) -> None:
    """What a block of the depth gives is folded with what the result holds."""
    file = tmp_path / "k.mlir"
    schedule = 'schedule [j by 32, k by 8 into result, i by 5, product(i, j, k) tile [5, 2] by "test.reach", i, j]'
    file.write_text(nest("test.reach", "max").replace("k: reduction 40] ->", f"k: reduction 40] {schedule} ->"))
    a, b = np.full((7, 40), -2, np.float32), np.full((40, 64), -1, np.float32)
    a[:, 33] = -1
    assert (Schedule(file).run(a, b)[0] == -2).all()


@pytest.mark.parametrize(
    ("name", "combiner", "body", "message"),
    (
        (
            "my.distance",
            "add",
            ("%q = arith.mulf %x, %y : f32",),
            "its body differs from the meaning of micro-kernel '.*'",
        ),
        ("my.distance", "max", BODIES["my.distance"], "needs a single value combined with 'add'"),
        (
            "my.distance",
            "add",
            ("%d = arith.subf %x, %x : f32", "%q = arith.mulf %d, %d : f32"),
            "needs two reads, not 1",
        ),
        ("u8i8", "add", BODIES["f32"], "takes elements of u8 and i8 and folds i32, not f32, f32 and f32"),
        ("my.distanse", "add", BODIES["my.distance"], "did you mean 'my.distance'"),
        (
            "test.absent",
            "max",
            BODIES["test.reach"],
            "target 'native' does not have the .*'test.absent'",
        ),
        ("test.none", "add", BODIES["f32"], "the micro-kernel 'test.none' is a str, not a MicroKernel"),
        ("test.other", "add", BODIES["f32"], "the micro-kernel 'test.reach' is installed as 'test.other'"),
    ),
)
def test_refusals(name: str, combiner: str, body: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=message):
        scheduled(tmp_path, nest(name, combiner, body), name)


def test_a_target_may_lack_it(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=r"'x86-64' does not have the micro-kernel 'my.distance': it has no fused"):
        scheduled(tmp_path, nest("my.distance"), "my.distance", "x86-64")


@pytest.mark.parametrize(
    ("change", "message"),
    (
        (("16", "8"), "the sums of a panel must fill 64 bytes, so its constant number of lanes must be 16"),
        (("%b[p, k, l]", "%b[p, k, r]"), "the second tensor must be read at"),
        (("%a[r, k]", "%a[k, r]"), "the first tensor must be read at"),
        (("k: reduction groups", "k: parallel groups"), "is not a valid kernel"),
        (("at [r, p, l]", "at [r, p]"), "is not a valid kernel"),
        (("arith.addf %x, %y", "arith.addf %x, %x"), None),
        (("loop.kernel", "loop.colonel"), "is not a valid kernel"),
    ),
)
def test_meanings_that_are_none(change: tuple[str, str], message: str | None) -> None:
    kernel = MicroKernel("k", REACH_TEXT.replace(*change))
    if message is None:
        assert kernel.facts.combiner == "max"
        return
    with pytest.raises(IgniterError, match=message):
        _ = kernel.facts


def test_what_changes_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another meaning and other code have another name in what is compiled; Igniter's own have none to add."""
    cpu, size = target_of("x86-64-v3"), TileSize(6, 1)
    before, outside = tile_name("test.reach", size, cpu), instructions.outside_identity
    monkeypatch.setitem(OUTSIDE, "test.none", f"{HERE}:REACH_2")
    monkeypatch.delitem(OUTSIDE, "test.other")
    monkeypatch.setattr(sys.modules[HERE], "REACH_2", replace(REACH, name="test.none"), raising=False)
    identity = outside()
    monkeypatch.setattr(sys.modules[HERE], "REACH", replace(REACH, text=REACH_TEXT + " "))
    instructions._external.cache_clear()
    assert tile_name("test.reach", size, cpu) != before
    assert outside() != identity
    monkeypatch.setattr(registry, "external", lambda group: {})
    assert outside() == ""


def test_one_that_does_not_load_harms_who_names_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OUTSIDE, "test.broken", "no_such_package:KERNEL")
    told = instructions.outside_identity()
    assert "test.broken" in told and "no_such_package" in told
    assert "no_such_package" in (instructions.micro_kernel_reason("test.broken") or "")
