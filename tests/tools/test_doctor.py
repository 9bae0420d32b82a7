"""`igniter doctor`: what works is said to work, what is broken is named with what to do, and nothing is a traceback."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from igniter.toolbox import doctor
from igniter.toolbox.doctor import Finding, building, gpu, machine, packages, trial, worst
from igniter.toolbox.doctor.show import text
from tests.docs.transcripts import ROOT


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **variables}
    return subprocess.run(
        [sys.executable, "-m", "igniter.tools.main", "doctor", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=200,
    )


def named(findings: list[Finding], name: str) -> Finding:
    (found,) = [f for f in findings if f.name == name]
    return found


@pytest.mark.slow
def test_what_works_is_said_to_work() -> None:
    done = run("--json")
    found = json.loads(done.stdout)
    by_name = {f["name"]: f for f in found["findings"]}
    assert done.returncode == (1 if found["counts"]["problem"] else 0)
    assert [f for f in found["findings"] if f["status"] == "problem"] == []
    assert by_name["a model"]["status"] == "ok", by_name["a model"]
    assert by_name["a library"]["says"].endswith("loaded and called")
    assert by_name["onnxruntime"]["says"].startswith(metadata.version("onnxruntime"))
    assert "vectors of" in by_name["native"]["says"]
    assert "CPU" in by_name["providers"]["says"]
    assert {f["group"] for f in found["findings"]} == set(doctor.checks())


def test_a_broken_onnxruntime_is_a_line_and_not_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "__init__.py").write_text("import os; os.abort()\n")
    done = run(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", IGNITER_LINKER="no-such-linker")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert "it does not load: the process ended by SIGABRT" in done.stdout
    assert "failed at importing onnxruntime: the process ended by SIGABRT" in done.stdout
    assert "IGNITER_LINKER is 'no-such-linker'" in done.stdout
    assert done.stdout.strip().endswith("what is needed is broken: 3 problems")


def test_a_check_that_raises_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken():
        yield Finding("a", "first", "ok", "fine")
        raise ModuleNotFoundError("No module named 'numpy'")

    monkeypatch.setattr(doctor, "checks", lambda: {"a": broken})
    first, second = doctor.examine()
    assert first.status == "ok"
    assert (second.status, second.says) == ("problem", "ModuleNotFoundError: No module named 'numpy'")
    assert "reinstall" in second.do
    assert worst([first, second]) == "problem"
    assert worst([]) == "ok"


def requirements(*lines: str) -> Callable[[], tuple[Requirement, ...]]:
    return lambda: tuple(Requirement(line) for line in lines)


@pytest.mark.parametrize(
    ("version", "status", "says"),
    [
        ("1.30.0", "ok", "1.30.0 (>=1.22); the tests run with 1.32.0"),
        ("1.32.0", "ok", "1.32.0, as tested"),
        ("1.32.0+local", "ok", "1.32.0+local, as tested"),
        ("1.40.0", "warning", "1.40.0, newer than 1.32.0, with which the tests run"),
        ("1.20.1", "problem", "1.20.1, and what is asked for is >=1.22"),
        (None, "problem", "not installed, and nothing works without it"),
    ],
)
def test_versions(monkeypatch: pytest.MonkeyPatch, version: str | None, status: str, says: str) -> None:
    def found(name: str) -> str:
        if name != "onnxruntime" or version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    asked = requirements("onnxruntime>=1.22", "onnxruntime==1.32.0; extra == 'dev'", "ray>=2; extra == 'ray'")
    monkeypatch.setattr(packages, "_requirements", asked)
    monkeypatch.setattr(packages.metadata, "version", found)
    finding = named(list(packages.versions()), "onnxruntime")
    assert (finding.status, finding.says) == (status, says)
    assert bool(finding.do) == (status != "ok")
    (ray,) = packages.extras()
    assert (ray.name, ray.status, ray.do) == ("ray", "optional", "pip install 'onnx-igniter[ray]'")


def test_two_packages_with_one_module_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"onnxruntime": "1.32.0", "onnxruntime-gpu": "1.31.0"}

    def found(name: str) -> str:
        if name not in both:
            raise metadata.PackageNotFoundError(name)
        return both[name]

    monkeypatch.setattr(packages, "_requirements", requirements("onnxruntime>=1.22"))
    monkeypatch.setattr(packages.metadata, "version", found)
    finding = named(list(packages.versions()), "onnxruntime")
    assert finding.status == "problem"
    assert "onnxruntime and onnxruntime-gpu are installed" in finding.says
    del both["onnxruntime"]
    assert named(list(packages.versions()), "onnxruntime").says == "1.31.0 of onnxruntime-gpu (>=1.22)"


def test_the_package_of_another_author_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> str:
        if name != "igniter":
            raise metadata.PackageNotFoundError(name)
        return "2.0"

    monkeypatch.setattr(packages.metadata, "version", found)
    finding = named(list(packages.versions()), "another igniter")
    assert (finding.status, "another author's" in finding.says) == ("warning", True)
    assert finding.do.startswith("pip uninstall igniter")


def test_sources_that_are_not_installed_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_requirements", lambda: None)
    found = list(packages.versions())
    assert named(found, "metadata").status == "warning"
    assert named(found, "numpy").says == metadata.version("numpy")
    assert list(packages.extras()) == []


def test_every_extra_is_said_to_be_for_something() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) == set(packages.EXTRAS) | {"bench", "dev", "docs"}
    needed = {Requirement(line).name for line in project["dependencies"]}
    assert set(packages._FALLBACK) | {"packaging", "ml_dtypes"} == needed | {"ml-dtypes"}


def test_a_linker_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken-ld"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("IGNITER_LINKER", str(broken))
    linker, library = building.linker()
    assert linker.says.endswith("broken-ld (IGNITER_LINKER)")
    assert library.status == "problem"
    assert "it is broken" in library.says


def test_a_library_that_is_not_loaded() -> None:
    found = building._loaded(b"no library")
    assert found.status == "problem"
    assert "TMPDIR" in found.do


def test_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "made" / "yet"
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(folder))
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "2G")
    (found,) = [f for f in building.cache() if f.name == "cache"]
    assert (found.status, found.says) == ("ok", f"{folder}: 0 entries, 0.0 MiB of 2,048 MiB")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "not").write_text("a file")
    (found,) = building.cache()
    assert found.status == "warning"
    assert "is no folder" in found.says
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "0")
    (found,) = building.cache()
    assert "turned off by IGNITER_CACHE_SIZE" in found.says
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "many")
    (found,) = building.cache()
    assert (found.status, "not a size" in found.says) == ("problem", True)


@pytest.mark.usefixtures("this_machine")
def test_a_machine_that_there_is_no_code_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from igniter.backends.cpu import target
    from igniter.backends.cpu.machine import _machine, machine_for

    _machine.cache_clear()
    monkeypatch.setattr("llvmlite.binding.get_process_triple", lambda: "riscv64-unknown-linux-gnu")
    target.host_target.cache_clear()
    target.target_of.cache_clear()
    try:
        found = named(list(machine.cpu()), "native")
        # Code for other machines is still made there.
        assert machine_for("x86-64-v3").vector_bytes == 32
    finally:
        monkeypatch.undo()
        target.host_target.cache_clear()
        target.target_of.cache_clear()
    assert found.status == "problem"
    assert "riscv64" in found.says


def test_the_cpu_is_named_by_its_figures() -> None:
    from igniter.backends.cpu.machine import machine_for

    found = named(list(machine.cpu()), "figures")
    assert machine_for("native").microarchitecture in found.says
    for name in (machine_for(t).microarchitecture for t in ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64")):
        assert machine._figures(name).status == "warning" and name in machine._figures(name).says
    assert machine._figures(machine_for("sapphirerapids").microarchitecture).says.startswith("of sapphirerapids")


class Driver:
    """A driver of CUDA with one device."""

    def __init__(self, status: int, major: int):
        self._status, self._major = status, major

    def cuInit(self, _: int) -> int:
        return self._status

    def cuDriverGetVersion(self, number) -> None:
        number._obj.value = 12080

    def cuDeviceGetCount(self, count) -> None:
        count._obj.value = 1

    def cuDeviceGet(self, device, index: int) -> None:
        device._obj.value = index

    def cuDeviceGetName(self, name, _: int, __) -> None:
        name.value = b"A card"

    def cuDeviceGetAttribute(self, value, which: int, _) -> None:
        value._obj.value = self._major if which == 75 else 0


@pytest.mark.parametrize(
    ("driver", "statuses"),
    [
        (None, {"driver": "optional"}),
        (Driver(100, 9), {"driver": "warning"}),
        (Driver(0, 9), {"driver": "ok", "device 0": "ok", "provider": "warning"}),
        (Driver(0, 7), {"driver": "ok", "device 0": "warning", "provider": "warning"}),
    ],
    ids=["none", "does-not-start", "card", "old-card"],
)
def test_gpus(monkeypatch: pytest.MonkeyPatch, driver: Driver | None, statuses: dict[str, str]) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: driver)
    monkeypatch.setattr(gpu, "find_spec", lambda _: object())
    monkeypatch.setattr(building, "installed_providers", lambda: ["1.32.0", "CPUExecutionProvider"])
    found = {f.name: f for f in gpu.gpus()}
    assert {name: f.status for name, f in found.items()} == statuses
    if "device 0" in found:
        assert found["driver"].says == "CUDA 12.8"
        assert found["device 0"].says.startswith("A card, sm_")


def test_a_model_that_takes_too_long() -> None:
    (found,) = trial.end_to_end(seconds=0.01)
    assert (found.status, found.says) == ("problem", "compiling a small model did not end within 0.01 seconds")


def test_what_is_printed() -> None:
    findings = [
        Finding("a", "one", "ok", "fine"),
        Finding("a", "second", "problem", "word " * 30, "do this"),
        Finding("b", "third", "warning", "\x1b[2Jno"),
    ]
    lines = text(findings, colours=False, width=60).split("\n")
    assert lines[:2] == ["a", "  ok       one     fine"]
    assert lines[2].startswith("  PROBLEM  second  word")
    assert "                   -> do this" in lines
    assert "\\x1b" in "".join(lines)
    assert lines[-1] == "what is needed is broken: 1 problem, 1 warning"
    assert max(map(len, lines)) <= 60
    assert "\x1b[31;1mPROBLEM\x1b[0m" in text(findings, colours=True, width=60)
    assert text(findings[:1], colours=False, width=60).endswith("everything works")
