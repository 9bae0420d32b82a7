"""`igniter.Schedule`: a kernel scheduled from Python, step by step, each step checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import igniter
from igniter.dialects.loop import AllocOp
from igniter.dialects.loop.schedule import Store
from igniter.dialects.loop.storage import Memory
from igniter.dialects.sym import dims_of
from igniter.errors import IgniterError
from igniter.toolbox.kernel.schedules import Schedule

EXAMPLES = Path(__file__).parents[2] / "lit_tests" / "examples"

LINEAR = """
builtin.module {
  loop.kernel @linear symbols [n] (%a: tensor<?x64xf32, #sym.dims<n, 64>>, %b: tensor<64x96xf32>, %c: tensor<96xf32>)
      -> (tensor<?x96xf32, #sym.dims<n, 96>>) {
    %p = loop.nest "matmul" [i: parallel n, j: parallel 96, k: reduction 64] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %m = arith.mulf %x, %y : f32
      loop.yield add %m at [i, j]
    }
    %s = loop.nest "bias" [i: parallel n, j: parallel 96] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %p[i, j] : f32
      %y = loop.read %c[j] : f32
      %z = arith.addf %x, %y : f32
      loop.yield none %z at [i, j]
    }
    %r = loop.nest "relu" [i: parallel n, j: parallel 96] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %s[i, j] : f32
      %zero = arith.constant 0.0 : f32
      %y = arith.maximumf %x, %zero : f32
      loop.yield none %y at [i, j]
    }
    loop.return %r : tensor<?x96xf32, #sym.dims<n, 96>>
  }
}"""


@pytest.fixture
def linear(tmp_path: Path) -> Schedule:
    file = tmp_path / "linear.mlir"
    file.write_text(LINEAR)
    return igniter.Schedule(file)


def check(s: Schedule) -> None:
    rng = np.random.default_rng(0)
    b, c = rng.standard_normal((64, 96), np.float32), rng.standard_normal(96, np.float32)
    for n in (1, 8, 19):
        a = rng.standard_normal((n, 64), np.float32)
        (got,) = s.run(a, b, c)
        np.testing.assert_allclose(got, np.maximum(a @ b + c, 0), 1e-4, 1e-4)


def test_a_kernel_begins_with_plain_loops(linear: Schedule) -> None:
    assert linear.nests == ["matmul", "bias", "relu"]
    assert linear.loops("matmul") == ["i", "j", "k"]
    check(linear)


def test_a_tile_with_its_epilogue(linear: Schedule) -> None:
    s = linear
    assert s.inline("bias") == ["relu"]
    assert s.split("matmul", "j", 48) == ("j by 48", "j")
    assert s.split("matmul", "i", 4) == ("i by 4", "i")
    assert s.reorder("matmul", "j by 48", "i by 4", "k", "i", "j") == ["j by 48", "i by 4", "k", "i", "j"]
    assert s.word("matmul", "j", vector=8, prefetch=True) == "j vector 8 prefetch"
    assert s.word("matmul", "j", prefetch=False) == "j vector 8"
    assert s.vectorize("matmul", "j", 16) == "j vector 16"
    s.threads("matmul", "j by 48")
    assert s.compute_at("relu", "matmul", "i by 4") == "at1"
    assert s.loops("relu") == ["j by 48", "i by 4", "i", "j"]
    check(s)
    # One loop over tiles, in which both are computed: the sums never reach memory of the kernel.
    func = str(s.apply())
    assert "scratch(0)" in func


@pytest.mark.slow
def test_split_sums_are_packed_and_multiplied_by_micro_kernels(linear: Schedule) -> None:
    s = linear
    assert s.split_reduction("matmul", "k", 4) == "matmul.parts"
    s.split("matmul.parts", "j", 48)
    s.split("matmul.parts", "i", 8)
    s.reorder("matmul.parts", "part", "j by 48", "i by 8", "i", "j", "k")
    assert s.tensorize("matmul.parts", "i", "j", "k", (8, 3)) == "product(i, j, k) tile [8, 3]"
    s.threads("matmul.parts", "part")
    check(s)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "loop", "space", "dims"),
    [
        ("", "i", "local", (64,)),
        ("registers", "i", "register", (64,)),
        ("stack", "i", "local", (64,)),
        ("arena", "i", "scratch", (64,)),
        ("", "", "scratch", (None, 64)),
        ("arena", "", "scratch", (None, 64)),
    ],
)
def test_where_a_result_lives(memory: Memory, loop: str, space: str, dims: tuple[int | None, ...]) -> None:
    s = Schedule(EXAMPLES / "stores.mlir")
    if memory == "registers":
        for label, inner in (("exp", "j"), ("sum", "k"), ("div", "j")):
            s.unroll(label, inner)
    assert s.store_at("exp", loop, memory) == ("store in " + memory if memory else "store")
    assert [step for step in s._schedule("exp").data if isinstance(step, Store)] == [Store(memory)]
    (made,) = [op for op in s.apply().walk() if isinstance(op, AllocOp) and op.label.data == "exp"]
    assert made.space == space
    assert tuple(d.constant for d in dims_of(made.result.type)) == dims
    rng = np.random.default_rng(0)
    for n in (0, 1, 5, 300):
        x = rng.standard_normal((n, 64), np.float32)
        for threads in (1, 2):
            (got,) = s.run(x, threads=threads)
            e = np.exp(x)
            np.testing.assert_allclose(got, (e / e.sum(axis=1, keepdims=True)).sum(axis=0), 1e-4, 1e-5)


def test_what_is_computed_at_a_loop_keeps_its_place() -> None:
    s = Schedule(EXAMPLES / "stores.mlir")
    copy = s.cache("sum", 0)
    s.compute_at(copy, "sum", "i")
    assert 'i threads fuse "g0", store in arena, j vector 16' in s.text()
    assert 'schedule [store, i threads fuse "g0"' in s.text()


def test_a_place_that_cannot_be_is_refused(linear: Schedule) -> None:
    s, before = linear, linear.text()
    with pytest.raises(IgniterError, match="which the readers of the result do not share"):
        s.store_at("matmul", "i")
    with pytest.raises(IgniterError, match="a result of the kernel, in the caller's memory"):
        s.store_at("relu")
    with pytest.raises(IgniterError, match="in registers: its dims are not constant"):
        s.store_at("matmul", memory="registers")
    with pytest.raises(IgniterError, match="cannot be stored on the stack"):
        s.store_at("matmul", memory="stack")
    assert s.text() == before


def test_packing_and_caching(tmp_path: Path) -> None:
    file = tmp_path / "scores.mlir"
    file.write_text(
        LINEAR.replace("%b: tensor<64x96xf32>", "%b: tensor<96x64xf32>").replace(
            "loop.read %b[k, j]", "loop.read %b[j, k]"
        )
    )
    s = Schedule(file)
    with pytest.raises(IgniterError, match="neither factor has contiguous columns"):
        s.tensorize("matmul", "i", "j", "k", (8, 3))
    made = s.pack("matmul")
    assert made in s.nests
    s.split("matmul", "j", 48)
    s.split("matmul", "i", 8)
    s.reorder("matmul", "j by 48", "i by 8", "i", "j", "k")
    s.tensorize("matmul", "i", "j", "k", (8, 3))
    copy = s.cache("relu", 0)
    s.compute_at(copy, "relu", "i")
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((5, 64), (96, 64), (96,)))
    (got,) = s.run(a, b, c)
    np.testing.assert_allclose(got, np.maximum(a @ b.T + c, 0), 1e-4, 1e-4)


def test_what_is_refused_changes_nothing(linear: Schedule) -> None:
    s = linear
    before = s.text()
    for step, reason in (
        (lambda: s.split("matmul", "l", 8), "nest 'matmul' has no loop 'l'; it has: i, j, k"),
        (lambda: s.split("gemm", "i", 8), "there is no nest called 'gemm'; there are bias, matmul, relu"),
        (lambda: s.split("matmull", "i", 8), "bias, matmul, relu; did you mean 'matmul'?"),
        (lambda: s.split("matmul", "jj", 8), "it has: i, j, k; did you mean 'j'?"),
        (lambda: s.threads("matmul", "k"), "loop 'k' is a reduction; it cannot have 'threads'"),
        (lambda: s.into_result("matmul", "k"), "loop 'k' iterates over single elements"),
        (lambda: s.vectorize("matmul", "j", -1), "'vector' takes a positive count, not -1"),
        (lambda: s.reorder("matmul", "i", "i"), "nest 'matmul' has loops named twice: i, i"),
        (lambda: s.word("matmul", "j", vectr=8), "cannot have 'vectr' on loop 'j'; did you mean 'vector'?"),
        (lambda: s.inline("matmul"), "nest 'matmul' cannot be inlined: it is a reduction with 'add'"),
        (lambda: s.compute_at("bias", "matmul", "k"), "where 'k' goes over 64: it has no more loops"),
        (lambda: s.tensorize("matmul", "j", "i", "k", (8, 3)), "its rows, columns and depth must be"),
        (lambda: s.split_reduction("matmul", "i", 4), "has no reduction 'i'; it has: k"),
        (lambda: s.cache("relu", 3), "nest 'relu' reads 1 tensors: there is no number 3"),
        (lambda: s.pack("relu"), "nothing to pack in nest 'relu'"),
    ):
        with pytest.raises(IgniterError) as caught:
            step()
        assert reason in str(caught.value)
        assert str(caught.value).count("nest 'matmull'") + str(caught.value).count("no nest") <= 1
        assert s.text() == before


def test_what_a_pass_finds_out_is_raised(linear: Schedule) -> None:
    linear.unroll("matmul", "i")
    with pytest.raises(IgniterError, match="loop 'i' has n iterations, which is not a constant"):
        linear.apply()


def test_the_text_is_read_again(linear: Schedule, tmp_path: Path) -> None:
    linear.split("matmul", "j", 48, tail="peel")
    linear.vectorize("matmul", "j", 8)
    file = tmp_path / "own.mlir"
    file.write_text(linear.text())
    assert str(Schedule(file)) == str(linear)


def test_schedules_are_timed_in_turns(linear: Schedule) -> None:
    author = Schedule(linear.kernel, author=True)
    assert "product(i, j, k)" in str(author)
    found = linear.time(author, rounds=1, n=16)
    assert found.sizes == {"n": 16}
    assert found.versions[0].ratio == 1
    assert len(found.versions) == 2
    assert "vfmadd" in author.asm() or "fmla" in author.asm() or "mulps" in author.asm()


def test_the_loops_that_go_together_are_found_by_what_is_read(tmp_path: Path) -> None:
    # Both axes have the same extent: the reader of the transpose goes along the other one.
    file = tmp_path / "square.mlir"
    file.write_text("""
builtin.module {
  loop.kernel @square symbols [] (%a: tensor<32x32xf32>) -> (tensor<32x32xf32>) {
    %t = loop.nest "twice" [i: parallel 32, j: parallel 32] -> tensor<32x32xf32> {
      %x = loop.read %a[i, j] : f32
      %y = arith.addf %x, %x : f32
      loop.yield none %y at [i, j]
    }
    %r = loop.nest "turned" [i: parallel 32, j: parallel 32] -> tensor<32x32xf32> {
      %x = loop.read %t[j, i] : f32
      loop.yield none %x at [i, j]
    }
    loop.return %r : tensor<32x32xf32>
  }
}""")
    s = Schedule(file)
    s.split("turned", "i", 8)
    assert s.compute_at("twice", "turned", "i by 8") == "at1"
    assert s.loops("twice") == ["j by 8", "i", "j"]
    a = np.random.default_rng(0).standard_normal((32, 32), np.float32)
    np.testing.assert_array_equal(s.run(a)[0], (2 * a).T)
    # Another group in a file that has one of that name already is another one.
    (tmp_path / "own.mlir").write_text(s.text())
    assert Schedule(tmp_path / "own.mlir").compute_at("twice", "turned", "i by 8") == "at1"
