"""The structured passes change no result: random kernels before and after, alone and together, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from igniter.analysis.structured.bounds import unproven_accesses
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.passes import parse_passes
from igniter.verification.interp.structured import run_kernel
from tests.transforms.structured.random_kernels import SIZES, inputs_of, kernels

PIPELINES = [
    "canonicalize-loop",
    "inline-nests",
    "inline-nests{divisions=always max-duplicate=100 max-recompute=100}",
    "collapse-axes",
    "canonicalize-loop,inline-nests,canonicalize-loop,collapse-axes,canonicalize-loop",
    "collapse-axes,canonicalize-loop,inline-nests{divisions=single},canonicalize-loop,inline-nests",
]

relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def run_passes(kernel: KernelOp, pipeline: str) -> KernelOp:
    """A copy of the kernel after the passes; every step must verify."""
    module = ModuleOp([kernel.clone()])
    ctx = IgniterContext()
    for each in parse_passes(pipeline):
        each.apply(ctx, module)
        module.verify()
    (result,) = module.ops
    assert isinstance(result, KernelOp)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
@relaxed
@given(kernel=kernels(), seed=st.integers(0, 9))
def test_results_stay(pipeline: str, kernel: KernelOp, seed: int) -> None:
    inputs = inputs_of(kernel, seed)
    wanted = run_kernel(kernel, inputs, SIZES)
    after = run_passes(kernel, pipeline)
    got = run_kernel(after, inputs, SIZES)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@relaxed
@given(kernel=kernels())
def test_accesses_stay_proven(kernel: KernelOp) -> None:
    """What is proven in bounds before is proven after: the passes lose no guard that a proof needs."""
    if not unproven_accesses(kernel):
        assert not unproven_accesses(run_passes(kernel, PIPELINES[4]))


@pytest.mark.slow
@relaxed
@given(kernel=kernels())
def test_canonical_form_is_final(kernel: KernelOp) -> None:
    """What is canonical has nothing left to simplify."""
    once = run_passes(kernel, PIPELINES[4])
    assert str(run_passes(once, "canonicalize-loop")) == str(once)


@pytest.mark.slow
@relaxed
@given(kernel=kernels())
def test_passes_are_deterministic(kernel: KernelOp) -> None:
    assert str(run_passes(kernel, PIPELINES[4])) == str(run_passes(kernel, PIPELINES[4]))
