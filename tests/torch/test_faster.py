"""What is slower compiled than in eager stays eager, and nothing else does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
import igniter.torch.faster  # noqa: E402


class Clock:
    """Time that passes by what is called: seconds for each call of a way, in turns."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(igniter.torch.faster, "CALLS", 5)
        monkeypatch.setattr(igniter.torch.faster.time, "perf_counter", lambda: self.now)

    def way(self, name, seconds):
        times = iter(seconds)

        def call():
            self.now += next(times)
            return name

        return call


def race_of(monkeypatch, ours, theirs, sizes=(8, 8, 8, 8, 8)):
    clock = Clock(monkeypatch)
    race = igniter.torch.faster.Race()
    compiled, eager = clock.way("compiled", ours), clock.way("eager", theirs)
    for size in sizes:
        if race.settled or race.eager_is_faster([torch.ones(size)]):
            break
        assert race.run(compiled, eager, [torch.ones(size)]) == "compiled"
    return race


def test_five_slow_calls_in_a_row_settle_that_eager_is_faster(monkeypatch):
    race = race_of(monkeypatch, [1.0] * 5, [0.1] * 5)
    assert not race.settled and race.eager_is_faster([torch.ones(8)])
    assert race.reason == "eager is faster: 100.000 ms, compiled 1000.000 ms"


@pytest.mark.parametrize("fast", range(5))
def test_one_call_that_is_not_clearly_slower_keeps_what_is_compiled(monkeypatch, fast):
    ours = [1.0] * 5
    ours[fast] = 0.12
    race = race_of(monkeypatch, ours, [0.1] * 5)
    assert race.settled and not race.eager_is_faster([torch.ones(8)]) and not race.reason


def test_larger_arguments_are_measured_anew(monkeypatch):
    race = race_of(monkeypatch, [1.0] * 5, [0.1] * 5)
    assert race.eager_is_faster([torch.ones(32)]) and not race.eager_is_faster([torch.ones(33)])
    assert not race.settled and not race.reason


def slow(runner, calls):
    """A session that takes a while."""
    import time

    run = runner.__call__

    def __call__(self, values):
        calls.append(1)
        time.sleep(0.02)
        return run(self, values)

    return __call__


@pytest.mark.parametrize("keep_faster", [True, False])
def test_a_slow_part_becomes_eager_and_says_so(monkeypatch, uncompiled, keep_faster):
    from igniter.torch.binding import Runner

    calls = []
    monkeypatch.setattr(igniter.torch.faster, "CALLS", 5)
    monkeypatch.setattr(Runner, "__call__", slow(Runner, calls))
    fast = torch.compile(lambda x: x * 2 + 1, backend="igniter", options={"keep_faster": keep_faster})
    with torch.no_grad():
        for _ in range(9):
            assert torch.equal(fast(torch.ones(4)), torch.full((4,), 3.0))
    told = "eager is faster" in str(igniter.torch.explain())
    # The first call is not measured: it compiles.
    assert told == keep_faster and len(calls) == (6 if keep_faster else 9)
