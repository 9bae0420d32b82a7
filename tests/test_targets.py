"""Backends: found by the names of targets, and the same to the rest of the compiler."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict

import pytest

from igniter import registry
from igniter.errors import IgniterError
from igniter.pipelines import PIPELINES
from igniter.targets import backend_for


def test_a_target_without_a_prefix_is_a_cpu() -> None:
    cpu = backend_for("x86-64-v3")
    assert cpu is backend_for("native") is backend_for("cpu:x86-64-v3,znver4") is backend_for("cpu")
    assert cpu.name == "cpu"
    assert cpu.target_of("cpu:x86-64-v3") == cpu.target_of("x86-64-v3")
    assert cpu.target_of("cpu") == cpu.target_of("native")
    assert [t.name for t in cpu.targets_of("cpu:x86-64-v2, x86-64-v3")] == ["x86-64-v2", "x86-64-v3"]
    assert cpu.machine_for("cpu:znver4") == cpu.machine_for(cpu.target_of("znver4"))


def test_names_of_targets_can_be_completed() -> None:
    cpu, cuda = backend_for("native"), backend_for("cuda")
    names = cpu.target_names()
    assert names[0] == "native" and {"x86-64-v3", "znver4", "aarch64", "neoverse-v2"} <= set(names)
    assert len(names) == len(set(names))
    # Each is a target, but for `native` on machines that there is no code for.
    assert [cpu.target_of(name).name for name in names[1:]] == list(names[1:])
    assert cpu.target_names("aarch64+dotp") == ["aarch64+dotprod"]
    assert "x86-64-v4+avx512bf16" not in cpu.target_names("x86-64-v4+avx512bf16+")
    assert cpu.target_names("native+") == cpu.target_names("vax") == []
    assert cuda.target_names("cuda:sm_9") == ["cuda:sm_90"]
    assert [cuda.target_of(name) for name in cuda.target_names("cuda+")]
    hip = backend_for("hip:gfx942")
    assert [hip.target_of(name).name for name in hip.target_names()] == list(hip.target_names())


def test_what_no_backend_has_is_said_by_the_backend_for_cpus() -> None:
    with pytest.raises(IgniterError, match=r"there is no target 'vax:11'.*Common targets: native"):
        backend_for("vax:11").target_of("vax:11")


def test_targets_of_several_backends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BACKENDS, "other", "igniter.backends.cpu.backend:CpuBackend")
    with pytest.raises(IgniterError, match="for the backends cpu and other"):
        backend_for("native,other:x")


def test_the_pipelines_of_the_backend_for_cpus_are_there() -> None:
    own = asdict(backend_for("cpu").pipelines)
    assert set(own.values()) <= PIPELINES.keys()
    assert {f"cpu-{level}" for level in own} == set(own.values())


def test_the_pipeline_that_schedules_is_cut_behind_the_author() -> None:
    choosing, behind = backend_for("cpu").around_schedules()
    assert choosing.endswith("choose-schedule") and behind.startswith("form-fma,lower-to-loops")
    assert f"{choosing},{behind},form-ort-library" == ",".join(PIPELINES["cpu-schedule"])


def test_a_target_is_read_without_llvm() -> None:
    code = (
        "import sys; from igniter.targets import backend_for; backend_for('znver4').targets_of('znver4'); "
        "print([m for m in sys.modules if m.startswith('llvmlite')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
