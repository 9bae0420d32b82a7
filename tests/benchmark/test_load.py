"""The settings of `benchmark.load`: each runs, and its surroundings are what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmark.load.__main__ import Row, cells, measure, prepare, systems
from benchmark.load.settings import SHARED, settings_of
from benchmark.load.surroundings import Group, NoGroup, neighbours


def test_settings_are_named_once_and_cover_the_shared_ones() -> None:
    names = [setting.name for setting in settings_of(4)]
    assert len(names) == len(set(names))
    assert set(SHARED) < set(names)
    assert {s.quota for s in settings_of(1)} == {None, 1}


@pytest.mark.slow
def test_a_setting_runs(tmp_path: Path) -> None:
    model = prepare("demo", tmp_path)
    setting = next(s for s in settings_of(2) if s.name == "mixed")
    row = measure(model, setting, 0.05, 2, spinning=False)
    assert set(row.rates) == set(systems())
    assert all(rate > 0 for rate in row.rates.values())
    assert len(np.load(model.inputs).files) == 3


def test_cells_compare_with_the_references() -> None:
    rows = [Row("m", "processes", {"ort": 8.0, "igniter": 10.0}, {"ort": 0.1, "igniter": 0.2})]
    rows.append(Row("m", "alone", {"ort": 4.0, "igniter": 5.0}, {"ort": 0.1, "igniter": 0.2}))
    rows.append(Row("m", "sessions", {"ort": 8.0, "igniter": 9.0}, {"ort": 0.1, "igniter": 0.2}))
    assert cells(rows[2], rows)[-4:] == ["1.12", "1.80", "0.90", "20%"]
    assert "no group" in cells(Row("m", "quota", skipped="no group"), rows)


def test_neighbours_end() -> None:
    with neighbours(1):
        pass
    done = subprocess.run(["ps", "-o", "args", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False)
    assert "while True" not in done.stdout


def test_a_group_has_its_quota() -> None:
    try:
        group = Group(1)
    except NoGroup as error:
        pytest.skip(str(error))
    try:
        code = "import sys; sys.stdin.readline(); print(open('/proc/self/cgroup').read())"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)
        group.add(process.pid)
        assert "igniter-load-" in process.communicate("\n")[0]
    finally:
        group.remove()
