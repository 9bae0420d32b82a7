"""Micro-kernels by LLVM's cycle models: multiply-adds alone limit the loops of f32, f64 and 16-bit weights."""

from __future__ import annotations

import pytest

from benchmark import cycle_models
from igniter.backends.cpu.target import target_of

pytestmark = pytest.mark.skipif(cycle_models.program() is None, reason="no llvm-mca: apt-get install llvm")


@pytest.mark.parametrize("cpu", ["neoverse-n1", "neoverse-v1"])
def test_products_of_floats(cpu: str) -> None:
    found = cycle_models.row(cpu, "f32")
    assert found.multiply_adds == 24
    assert found.rate >= cycle_models.GOAL


@pytest.mark.slow
def test_panels_of_16_bit_floats() -> None:
    """Converted once for eight bodies of rows."""
    found = cycle_models.row("neoverse-v1", "f32f16")
    assert found.multiply_adds == 8 * 24
    assert found.rate >= cycle_models.GOAL


def test_a_dot_product_takes_a_factor_from_a_lane() -> None:
    """A load that fills all lanes (`ld1r`) occupies a unit for products."""
    assert cycle_models.row("neoverse-n1", "i8i8").rate >= cycle_models.GOAL


@pytest.mark.parametrize(("cpu", "kind"), [("neoverse-v1", "bf16"), ("neoverse-v2", "u8i8")])
def test_matrix_products_of_interleaved_panels(cpu: str, kind: str) -> None:
    """32 stripes of six rows: a full stripe, not the loop of five rows, which has as many products."""
    found = cycle_models.row(cpu, kind)
    assert found.size.rows == 192 and found.multiply_adds == 32 * 24
    assert found.rate >= cycle_models.GOAL


@pytest.mark.parametrize("cpu", ["neoverse-v1", "neoverse-v2"])
def test_sve_multiplies_no_more_than_neon(cpu: str) -> None:
    """The reason why there is no code for SVE (docs/deploy/platforms.md)."""
    rates = cycle_models.vector_rates(cpu)
    assert len(rates) == 4
    assert all(sve <= 1.01 * neon for _, _, neon, sve in rates)


@pytest.mark.full
@pytest.mark.parametrize("cpu", cycle_models.CPUS)
@pytest.mark.parametrize("kind", cycle_models.KINDS)
def test_every_core(cpu: str, kind: str) -> None:
    feature = cycle_models.KINDS[kind]
    if feature and not target_of(cpu).has_feature(feature):
        pytest.skip(f"{cpu} has no {feature}")
    assert cycle_models.row(cpu, kind).rate >= cycle_models.GOAL
