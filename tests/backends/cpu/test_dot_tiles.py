"""Dot products of bytes side by side: every target computes what the interpreter does, and stores keep their order."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import SSAValue

from igniter.backends.cpu.dot_bytes import words_at_once
from igniter.backends.cpu.dot_tiles import Step, steps_of
from igniter.backends.cpu.target import target_of
from igniter.dialects.loop import StoreOp

from .cpu_kit import check_against_interpreter, parse_func

X86 = ("native", "x86-64-v3", "x86-64-v2", "aarch64")


def tile(rows: int, pairs: int, most: int, lanes: int) -> str:
    """A block of `rows` dot products that share unsigned bytes, each stored where the next one begins."""
    lines = [
        f"loop.func @f symbols [] (%u: memref<{pairs}x{lanes}xi32>, %s: memref<{rows}x{pairs}xi32>, "
        f"%t: memref<{lanes}xi32>, %y: memref<{rows}x{lanes}xi32>) outputs 1 {{"
    ]
    kind = f"vector<{lanes}xi32>"
    for row in range(rows):
        lines.append(f"%t{row} = loop.load %t[v] lane v : {kind}")
        operands: list[str] = []
        for k in range(pairs):
            lines += [
                f"%u{row}_{k} = loop.load %u[{k}, v] lane v : {kind}",
                f"%m{row}_{k} = arith.constant dense<{most * 0x01010101}> : {kind}",
                f"%b{row}_{k} = arith.andi %u{row}_{k}, %m{row}_{k} : {kind}",
                f"%s{row}_{k} = loop.load %s[{row}, {k}] : i32",
                f"%w{row}_{k} = vector.broadcast %s{row}_{k} : i32 to {kind}",
            ]
            operands += [f"%b{row}_{k}", f"%w{row}_{k}"]
        lines.append(f"%d{row} = loop.dot_bytes {', '.join(operands)}, %t{row} most {most} : {kind}")
        lines.append(f"loop.store %d{row}, %y[{row}, v] lane v")
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("target", X86)
@pytest.mark.parametrize(
    ("rows", "pairs", "most", "lanes"), [(4, 8, 15, 8), (2, 9, 15, 8), (3, 17, 15, 4), (2, 5, 31, 8), (3, 3, 127, 8)]
)
def test_tiles_compute_what_the_interpreter_does(rows: int, pairs: int, most: int, lanes: int, target: str) -> None:
    rng = np.random.default_rng(rows * pairs)
    anything = np.iinfo(np.int32)
    u, t = (rng.integers(anything.min, anything.max, n, np.int32, endpoint=True) for n in ((pairs, lanes), (lanes,)))
    s = rng.integers(anything.min, anything.max, (rows, pairs), np.int32, endpoint=True)
    s[0] = -2139062144  # Four times -128: the largest sums.
    u[:] = np.where(rng.random(u.shape) < 0.5, most * 0x01010101, u)
    buffers = [u, s, t, np.zeros((rows, lanes), np.int32)]
    check_against_interpreter(tile(rows, pairs, most, lanes), buffers, targets=[target])


def test_values_are_made_before_their_use_and_stores_keep_their_order() -> None:
    block = parse_func(tile(3, 4, 15, 8)).block
    order = steps_of(block, target_of("x86-64-v3"))
    dots = next(op for op in order if isinstance(op, Step)).tile.dots
    assert len(dots) == 3
    assert [op.pair for op in order if isinstance(op, Step)] == [0, 1, 2, 3]
    assert len([op for op in order if not isinstance(op, Step)]) == len(list(block.ops)) - len(dots)
    stores = [op for op in order if isinstance(op, StoreOp)]
    assert stores == [op for op in block.ops if isinstance(op, StoreOp)]
    known: set[SSAValue] = set(block.args)
    for op in order:
        if isinstance(op, Step):
            used = [v for dot in dots for v in dot.operands[2 * op.pair : 2 * op.pair + 2]]
            made = [dot.result for dot in dots] if op.pair == op.tile.pairs - 1 else []
        else:
            used, made = list(op.operands), list(op.results)
        assert known.issuperset(used)
        known.update(made)


def test_targets_with_one_instruction_have_no_tiles() -> None:
    block = parse_func(tile(3, 4, 15, 8)).block
    for name in ("znver4", "sapphirerapids", "x86-64-v2", "aarch64"):
        assert list(steps_of(block, target_of(name))) == list(block.ops)
        assert words_at_once(target_of(name), 8, 15) == 0
    assert words_at_once(target_of("x86-64-v3"), 8, 15) == 8
    assert words_at_once(target_of("x86-64-v3"), 8, 127) == 1
