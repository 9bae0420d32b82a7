"""No figure is above the roof that was measured beside it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from igniter.targets import backend_for
from igniter.toolbox.kernel import workbench
from igniter.toolbox.kernel.workbench import Study, find_kernel, schedule, study
from igniter.toolbox.roofs import DISTURBED, roof_text
from igniter.tools.main import app

LINEAR = Path(__file__).resolve().parents[2] / "docs" / "examples" / "linear.mlir"


def test_a_share_above_its_roof_has_no_figure():
    assert [roof_text(share) for share in (None, 0.5, 1.0, 1.004)] == ["", "50%", "100%", "100%"]
    assert roof_text(1.2) == roof_text(17.55) == DISTURBED


@pytest.mark.parametrize(("shares", "attempts"), [((0.8,), 1), ((1.3, 0.9), 2), ((1.3, 1.3, 1.3), 3)])
def test_a_study_above_the_peak_is_taken_again(
    shares: tuple[float, ...], attempts: int, monkeypatch: pytest.MonkeyPatch
):
    backend = backend_for("native")
    target = backend.target_of("native")
    kernel = find_kernel(LINEAR, "", backend.machine_for(target))
    taken: list[Study] = []
    real = workbench._compared

    def compared(*args: object) -> Study:
        found = real(*args)  # type: ignore[arg-type]
        share = shares[len(taken)]
        taken.append(replace(found, noise=0.01, versions=[replace(v, peak_share=share) for v in found.versions]))
        return taken[-1]

    monkeypatch.setattr(workbench, "_compared", compared)
    found = study(kernel, [schedule("default", kernel, target)], target, sizes={"n": 16}, rounds=1)
    assert len(taken) == attempts and found is taken[-1]
    assert found.versions[0].peak_share == shares[-1]


@pytest.mark.parametrize(
    ("noises", "kept"), [((0.03,), 0), ((5.04, 0.03), 1), ((5.04, 0.4, 1.2), 1), ((0.4, 0.4, 0.4), 2)]
)
def test_a_noisy_study_is_taken_again(noises: tuple[float, ...], kept: int, monkeypatch: pytest.MonkeyPatch):
    backend = backend_for("native")
    target = backend.target_of("native")
    kernel = find_kernel(LINEAR, "", backend.machine_for(target))
    taken: list[Study] = []
    real = workbench._compared

    def compared(*args: object) -> Study:
        found = real(*args)  # type: ignore[arg-type]
        versions = [replace(v, peak_share=0.5) for v in found.versions]
        taken.append(replace(found, noise=noises[len(taken)], versions=versions))
        return taken[-1]

    monkeypatch.setattr(workbench, "_compared", compared)
    found = study(kernel, [schedule("default", kernel, target)], target, sizes={"n": 16}, rounds=1)
    assert len(taken) == len(noises) and found is taken[kept]
    assert found.is_disturbed == (noises[kept] > 0.2)


@pytest.mark.slow
def test_a_disturbed_machine_is_said(monkeypatch: pytest.MonkeyPatch):
    real = workbench._compared
    for noise, arguments in ((5.04, []), (5.04, ["--json"]), (0.05, [])):
        # One attempt: the same study counts three times.
        taken: list[Study] = []

        def compared(*args: object, n: float = noise, taken: list[Study] = taken) -> Study:
            if not taken:
                taken.append(replace(real(*args), noise=n))  # type: ignore[arg-type]
            return taken[0]

        monkeypatch.setattr(workbench, "_compared", compared)
        shown = CliRunner().invoke(app, ["kernel", str(LINEAR), "--sizes=n=8", "--rounds=1", *arguments]).stdout
        if arguments:
            assert json.loads(shown)["disturbed"] is True
        else:
            assert f"noise: the first against itself {noise:.1%}" in shown
            assert ("504.0%: the machine was disturbed, so times and ratios say little" in shown) == (noise > 1)
