"""`--stop-after`: every pass that says what a rewrite is counts them, and stops where it is told."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from xdsl.utils.exceptions import VerifyException

from igniter.context import IgniterContext
from igniter.dialects.source import SourceParser
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.registry import PASSES, load_pass
from igniter.rewrite_budget import Rewrites, budget, what_counts
from igniter.targets import backend_for
from igniter.toolbox.ir_text import module_text
from igniter.tools.opt_driver import split_chunks

LIT = Path(__file__).parents[2] / "lit_tests" / "transforms"
OWN = {name for name, where in PASSES.items() if where.startswith("igniter.")}
COUNTING = sorted(name for name in OWN if what_counts(load_pass(name)))
UNCOUNTED = {
    "apply-tuned-schedules",
    "check-bounds",
    "drop-checks",
    "elide-weights",
    "fold-packs",
    "form-kernel-graph",
    "form-ort-library",
    "form-programs",
    "guard-assumptions",
    "infer-shapes",
    "inline-failed-regions",
    "inline-regions",
    "lower-programs",
    "lower-to-loops",
    "lower-to-triton",
    "plan-buffers",
    "schedule-kernels",
}
"""What runs whole: to infer, to check, to lower, to take apart."""
EDITS = {name for name, where in PASSES.items() if where.startswith("igniter.toolbox.")}
"""What a user asks for is done whole, or refused."""


def test_every_pass_counts_or_is_known_not_to():

    assert OWN - set(COUNTING) - EDITS == UNCOUNTED


def _cases(name: str) -> list[tuple[str, str, str]]:
    """The pipelines of the pass's lit test, their targets and its chunks of IR."""
    found: list[tuple[str, str, str]] = []
    stem = name.replace("-", "_")
    for path in sorted([*LIT.glob(f"*/{stem}*.mlir"), *LIT.glob(f"*/{stem}/*.mlir")]):
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r"RUN: igniter-opt (.*)", text):
            words = shlex.split(line.split("|")[0])
            pipeline = next((words[k + 1] for k, w in enumerate(words) if w in ("-p", "--passes")), "")
            if name in pipeline:
                pipeline = pipeline.replace("%S", str(path.parent))
                target = next((w.removeprefix("--target=") for w in words if w.startswith("--target=")), "")
                found += [(pipeline, target, chunk.decode()) for chunk, _ in split_chunks(text.encode())]
    return found


def _run(pipeline: str, target: str, text: str, limit: int | None) -> tuple[Rewrites, str] | None:
    """The count and the IR; `None` for a case that is there to be refused."""
    ctx = IgniterContext()
    if target.startswith("cuda"):
        ctx.machine = backend_for(target).machine_for(target)
    ctx.rewrites.limit = limit
    try:
        module = SourceParser(ctx, text).parse_module()
        module.verify()
        run_passes(ctx, module, parse_passes(pipeline))
    except (IgniterError, VerifyException):
        return None
    return ctx.rewrites, module_text(module)


@pytest.mark.parametrize("name", COUNTING)
def test_a_pass_counts_what_it_does(name: str):
    counted = 0
    for pipeline, target, text in _cases(name):
        whole = _run(pipeline, target, text, None)
        if whole is None or not whole[0].made.get(name):
            continue
        made, ir = whole
        counted += made.made[name]
        # As many as there are is all of it, and fewer are as many as were asked for.
        again = _run(pipeline, target, text, made.count)
        assert again is not None and again[1] == ir
        for limit in {0, made.count // 2, made.count - 1}:
            fewer = _run(pipeline, target, text, limit)
            assert fewer is not None and fewer[0].count == limit
        if counted > 8:
            break
    assert counted, f"the lit test of {name} makes no rewrite that counts"


def test_a_budget_is_shared_by_the_passes_and_the_clones_of_a_context():
    ctx = IgniterContext()
    ctx.rewrites.limit = 2
    assert budget(ctx, "a").take("x", "one")
    assert budget(ctx.clone(), "b").take("y", "two")
    assert not budget(ctx, "a").take("z", "three")
    assert ctx.rewrites.made == {"a": 1, "b": 1} and ctx.rewrites.last == "b: 'y' two"
