"""Timing of systems in turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from igniter.errors import IgniterError
from igniter.runtime.timing import CONTROL, Timing, speedup_line, time_models


def inputs() -> dict[str, np.ndarray]:
    return {"x": np.ones((2, 8), np.float32), "w": np.ones(8, np.float32), "ids": np.array([1, 3])}


@pytest.mark.slow
def test_every_system_gets_its_turns(model: Path) -> None:
    seen: list[int] = []
    timing = time_models(
        {"a": (model, ()), "b": (model.read_bytes(), ())}, inputs(), rounds=3, seconds=0.01, progress=seen.append
    )
    assert seen == [1, 2, 3]
    assert timing.names == ("a", "b", CONTROL)
    assert {name: len(rounds) for name, rounds in timing.rounds.items()} == {"a": 3, "b": 3, CONTROL: 3}
    assert len({len(runs) for rounds in timing.rounds.values() for runs in rounds}) == 1
    assert all(timing.median(name) > 0 for name in timing.names)
    assert set(timing.to_dict()) == {"a", "b", CONTROL}


def test_ratios_are_within_a_round() -> None:
    # The machine got three times slower after the first round; the ratio does not see it.
    timing = Timing(("a", "b"), {"a": [[1.0], [3.0], [3.0]], "b": [[2.0], [6.0], [6.0]]})
    assert timing.ratio("b") == 2.0
    assert timing.ratio("a") == 1.0
    assert timing.noise == 0.0
    timing.rounds[CONTROL] = [[1.1], [3.3], [3.3]]
    assert timing.noise == pytest.approx(0.1)


@pytest.mark.slow
def test_what_does_not_run_is_named(tmp_path: Path, model: Path) -> None:
    with pytest.raises(IgniterError, match=r"'broken' does not run: .*none\.onnx"):
        time_models({"a": (model, ()), "broken": (tmp_path / "none.onnx", ())}, inputs(), rounds=1)


def test_the_line_of_a_benchmark() -> None:
    line = speedup_line("NAME", 0.0124166, 0.00956533)
    assert line == ("benchmark model: >>> NAME >>> : time-cost changes from 12.4166ms to 9.56533ms, speedup: 22.96%")
