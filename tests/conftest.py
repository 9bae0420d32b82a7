"""The fixtures and settings that all tests share."""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine and what else it does, not of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Tests are shared out among processes already.
os.environ.setdefault("IGNITER_JOBS", "1")

STATES: dict[str, dict[str, Any]] = {}
"""Of the generators called `RNG`, by module: how they were when it was imported."""

SWEEP = 3
"""A test with more sets of parameters than this is a sweep."""

WHOLE = ("tests/docs/", "tests/tools/")
"""Where no test is a sweep: each set is another page, pass, command or error. `--quick` runs every second one."""

SHARE = 12
"""One set of parameters in so many is run of a sweep, and at least `LEAST`, unless `--sweeps` asks for all."""

LEAST = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweeps", action="store_true", help="run every set of parameters of every test")
    parser.addoption("--quick", action="store_true", help="run one set of parameters of a test, and no slow test")
    parser.addoption("--rest", action="store_true", help="run what `--quick` leaves out of the sample of sweeps")


def pytest_configure(config: pytest.Config) -> None:
    """Tests of many examples have as many as they name with `--sweeps`; see `tests.examples`. `IGNITER_NATIVE` and
    `IGNITER_REACH` are those of `tests.machines`."""
    # The modules of all tests stay alive: the cycle collector would scan them again and again.
    gc.set_threshold(20_000, 20, 50)
    if config.getoption("--sweeps"):
        os.environ["IGNITER_ALL_EXAMPLES"] = "1"
    if "IGNITER_NATIVE" in os.environ or "IGNITER_REACH" in os.environ:
        from tests.machines.plugin import OnAnotherMachine

        config.pluginmanager.register(OnAnotherMachine())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps a share of the sets of each sweep, and of them the part that `--quick` or `--rest` asks for.

    The names alone decide, so it is the same everywhere. Tests that are asked for by name are all run.
    """
    gc.freeze()
    if config.getoption("--sweeps") or any("::" in argument for argument in config.args):
        return
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    kept: set[pytest.Item] = set()
    for group in groups.values():
        kept.update(_asked_for(_sample(sorted(group, key=lambda item: zlib.crc32(item.nodeid.encode()))), config))
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def _sample(sets: list[pytest.Item]) -> list[pytest.Item]:
    """Of the sets of parameters of one test: all, or a share of those of a sweep."""
    if len(sets) <= SWEEP or sets[0].nodeid.startswith(WHOLE):
        return sets
    return sets[: max(LEAST, -(-len(sets) // SHARE))]


def _asked_for(sets: list[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """Of the sample of one test: all, what `--quick` runs, or the others."""
    quick = 1 if not sets[0].nodeid.startswith(WHOLE) else max(1, len(sets) // 2)
    if sets[0].get_closest_marker("slow") is not None:
        quick = 0
    if config.getoption("--quick"):
        return sets[:quick]
    return sets[quick:] if config.getoption("--rest") else sets


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """A module's generator gives the same numbers in a test, whatever ran before it: tests are shared out among
    processes, and selected."""
    rng = getattr(request.module, "RNG", None)
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = STATES.setdefault(request.module.__name__, dict(rng.bit_generator.state))


@pytest.fixture
def this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The target `native` is the machine that runs, although the tests run as if on another one."""
    from igniter.backends.cpu.target import target_of

    monkeypatch.delenv("IGNITER_NATIVE", raising=False)
    target_of.cache_clear()
    yield
    target_of.cache_clear()
