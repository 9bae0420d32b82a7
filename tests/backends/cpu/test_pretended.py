"""Another machine in the place of `native`: figures of a file, or a target with its instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import igniter
from igniter.analysis.machine import IDENTITY, MachineError
from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.jit import compile_func
from igniter.backends.cpu.machine import machine_for
from igniter.backends.cpu.pretended import KEPT
from igniter.backends.cpu.target import host_target, target_of
from igniter.errors import IgniterError
from tests.machines import HERE, MACHINES, ROOT

Pretend = Callable[[str], None]
PROGRAM = """
builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "sums" [i: parallel n, j: reduction 40] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}
"""


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch, this_machine: None) -> Iterator[Pretend]:
    """Lets `native` be the machine of a file or the target of a name."""

    def begin(given: str) -> None:
        monkeypatch.setenv("IGNITER_NATIVE", given)
        target_of.cache_clear()

    yield begin
    target_of.cache_clear()


@pytest.mark.parametrize("name", MACHINES)
def test_figures_of_a_file(pretend: Pretend, name: str) -> None:
    own = machine_for("native")
    path = HERE / f"{name}.json"
    data = json.loads(path.read_text())
    pretend(str(path))
    found, base = machine_for("native"), machine_for(data.pop("name"))
    assert found != own and target_of("native") == host_target()
    for figure, entry in data.items():
        assert getattr(found, figure) == entry["value"] and found.source_of(figure) == "sysfs"
    assert all(getattr(found, figure) == getattr(own, figure) for figure in IDENTITY)
    assert all(getattr(found, figure) <= getattr(own, figure) for figure in KEPT)
    # Nothing is derived, as on the machine itself.
    assert (found.vector_bytes, found.fma_ports, found.l2_budget) == (base.vector_bytes, base.fma_ports, own.l2_budget)


@pytest.mark.parametrize("name", MACHINES)
def test_kernels_of_every_machine_run_here(pretend: Pretend, name: str) -> None:
    """Vectors may be wider than this machine's."""
    pretend(str(HERE / f"{name}.json"))
    module = igniter.parse(PROGRAM)
    module = module.run_passes("cpu-schedule", target="native")
    func = next(op for op in module.ir.ops if op.name == "loop.func")
    x, y = np.random.default_rng(0).integers(-9, 9, (7, 40)).astype(np.float32), np.zeros(7, np.float32)
    compile_func(func)(x, y, n=7)
    assert np.array_equal(y, x.sum(1))


def test_a_target_with_its_instructions(pretend: Pretend) -> None:
    for name in ("sapphirerapids", "neoverse-n1"):
        pretend(name)
        native, machine = target_of("native"), machine_for("native")
        assert (native.name, native.cpu, native.arch) == ("native", name, target_of(name).arch)
        assert (machine.l2_bytes, machine.byte_tiles) == (machine_for(name).l2_bytes, machine_for(name).byte_tiles)
        module = igniter.parse(PROGRAM).run_passes("cpu-schedule", target="native")
        func = next(op for op in module.ir.ops if op.name == "loop.func")
        from igniter.backends.cpu.emit_llvm import emit_llvm

        assert compile_object(emit_llvm(func, native), native)[:4] == b"\x7fELF"
    if host_target().arch != "aarch64":
        with pytest.raises(IgniterError, match="does not run on this machine"):
            compile_func(func)


def test_a_file_has_to_name_its_target(pretend: Pretend, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text('{"l2_bytes": 4096}')
    pretend(str(file))
    with pytest.raises(MachineError, match="needs a file with a 'name'"):
        machine_for("native")


@pytest.mark.slow
def test_the_files_that_reach_the_machine_are_recorded(tmp_path: Path) -> None:
    """Through a constant of a helper module, through a fixture's cache, through a process; a parser's tests do not."""
    record = tmp_path / "reach.txt"
    tests = {
        "tests/runtime/test_cpu_choice.py::test_names_of_several_targets": True,
        "tests/backends/cpu/test_target.py::test_native_is_this_machine": True,
        "tests/dialects/test_expr_isl.py::test_upper_bounds_bound": False,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env={**os.environ, "IGNITER_REACH": str(record), "IGNITER_NATIVE": "many_small"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reached = set(record.read_text().split())
    assert reached == {name.partition("::")[0] for name, reaches in tests.items() if reaches}
