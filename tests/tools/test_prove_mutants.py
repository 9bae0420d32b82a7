"""A proof never holds for a kernel that computes something else: random mutants are proven or differ, not both."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.verification.prove.integers import Limits
from igniter.verification.prove.prove import prove
from igniter.verification.prove.runs import run_both
from tests.tools.test_prove_methods import BIASED, DIFFERENCES, LOOPS, MASK, MASKED, REPAIRED

pytest.importorskip("islpy", reason="proofs need islpy")

SOFTMAX = (Path(__file__).parents[2] / "lit_tests/examples/softmax.mlir").read_text()
KERNELS = {
    "mask": MASK,
    "masked": MASKED,
    "biased": BIASED,
    "differences": DIFFERENCES,
    "repaired": REPAIRED,
    "softmax": SOFTMAX,
}
OPS = {
    "arith.addf": "arith.subf",
    "arith.subf": "arith.addf",
    "arith.mulf": "arith.addf",
    "arith.maximumf": "arith.minimumf",
    "accumulate add": "accumulate max",
    "accumulate max": "accumulate add",
    "cmpf ogt": "cmpf oge",
}
SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 70)
MARKS = re.compile(r"(?<![\w.%@<])\d+(?![\w.x])")
"""Numbers of bounds, subscripts and guards."""


def mutants(text: str, seed: int, count: int) -> Iterator[str]:
    """Kernels with one number, op or pair of operands changed."""
    chance = random.Random(seed)
    lines = text.splitlines()
    body = [k for k, line in enumerate(lines) if "loop.func" not in line and "arith.constant" not in line]
    found = 0
    while found < count:
        k = chance.choice(body)
        line = lines[k]
        numbers = list(MARKS.finditer(line.partition(" : ")[0]))
        ops = [name for name in OPS if name in line]
        changed = line
        if ops and chance.random() < 0.5:
            changed = line.replace(ops[0], OPS[ops[0]])
        elif numbers:
            at = chance.choice(numbers)
            changed = line[: at.start()] + str(int(at.group()) + chance.choice((-1, 1))) + line[at.end() :]
        elif " = arith." in line:
            changed = re.sub(r"(%\w+), (%\w+)", r"\2, \1", line, count=1)
        if changed != line:
            found += 1
            yield "\n".join([*lines[:k], changed, *lines[k + 1 :]])


def check(name: str, seed: int, count: int) -> tuple[int, int]:
    """Returns the numbers of mutants that are proven, and that are refuted."""
    ctx = IgniterContext()
    module = Parser(ctx, KERNELS[name], name).parse_module()
    kernel = next(k for k in module.ops if isinstance(k, KernelOp)).clone()
    run_passes(ctx, module, parse_passes(LOOPS))
    proven, refuted = 0, 0
    for text in mutants(str(module), seed, count):
        try:
            mutant = next(iter(Parser(IgniterContext(), text, "mutant").parse_module().ops))
            assert isinstance(mutant, FuncOp)
            mutant.verify()
        except (ParseError, VerifyException, IgniterError):
            continue
        found = prove(kernel, mutant, Limits(seconds=20))
        refuted += found.status == "refuted"
        if found.status != "proven":
            continue
        proven += 1
        chance = random.Random(seed + proven)
        for _ in range(12):
            sizes = {n: chance.choice(SIZES) for n in kernel.symbol_names}
            difference = run_both(kernel, mutant, sizes)
            assert difference is None, f"proven, but at {sizes}: {difference}\n{text}"
    return proven, refuted


@pytest.mark.parametrize("name", ("biased", "differences", "repaired"))
def test_a_proven_mutant_computes_the_same(name: str) -> None:
    _, refuted = check(name, 1, 5)
    assert refuted


@pytest.mark.full
@pytest.mark.parametrize("name", KERNELS)
def test_many_proven_mutants_compute_the_same(name: str) -> None:
    _, refuted = check(name, 2, 120)
    assert refuted > 20
