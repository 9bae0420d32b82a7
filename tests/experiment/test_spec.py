"""Specifications of experiments: defaults, grids, the round trip of archives, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from igniter.errors import IgniterError
from igniter.toolbox.experiment.networks import NETWORKS
from igniter.toolbox.experiment.shipped import shipped_spec, shipped_specs
from igniter.toolbox.experiment.spec import METRICS
from igniter.toolbox.experiment.spec_reading import read_spec, spec_of
from igniter.toolbox.experiment.variants import compile_options, with_author

LEAST: dict[str, Any] = {"models": ["mixer"], "variant": [{"name": "a"}]}


def test_the_least_specification_has_defaults():
    spec = spec_of(LEAST, "dir/fusion.toml")
    assert (spec.title, spec.base, spec.threads, spec.metrics) == ("fusion", "a", (1,), tuple(METRICS))
    assert spec.measure.rounds == 7 and spec.measure.launches == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modles": []}, "there is no key 'modles'.*did you mean 'models'"),
        ({"models": []}, "names no models"),
        ({"models": "mixer"}, "models is 'mixer'; it must be a list"),
        ({"variant": []}, "has no variants"),
        ({"variant": [{"fusion": "default"}]}, "variant 1 has no name"),
        ({"variant": [{"name": "a"}, {"name": "a"}]}, "two variants are called 'a'"),
        ({"variant": [{"name": "a", "schedul": "naive"}]}, "no key 'schedul'.*did you mean 'schedule'"),
        ({"variant": [{"name": "a", "system": "openvin"}]}, "no system 'openvin'.*did you mean 'openvino'"),
        ({"variant": [{"name": "a", "system": "openvino", "fusion": "x"}]}, "'fusion' has no effect on openvino"),
        ({"variant": [{"name": "a", "options": {"precison": "bf16"}}]}, "'precison'.*did you mean 'precision'"),
        ({"variant": [{"name": "a", "options": {"target": "native"}}]}, "there is no key 'target'"),
        ({"variant": [{"name": "a", "pipelines": {"fuson": "x"}}]}, "did you mean 'fusion'"),
        ({"variant": [{"name": "a", "sizes": "runs"}]}, 'neither a table of sizes nor "run"'),
        ({"variant": [{"name": "a", "tune": "long"}]}, "tune is 'long'; it must be a number of seconds"),
        ({"base": "b"}, "the base 'b' is no variant"),
        ({"metrics": ["kernel"]}, "no metric 'kernel'.*did you mean 'kernels'"),
        ({"ir": ["schedule"]}, "no level 'schedule'.*did you mean 'scheduled'"),
        ({"threads": [-1]}, "threads is -1; it must be a whole number from 0"),
        ({"sizes": [{"batch": 0}]}, "batch is 0; it must be a whole number from 1"),
        ({"measure": {"round": 3}}, "no key 'round'.*did you mean 'rounds'"),
        ({"measure": {"rounds": 1}}, "rounds is 1; it must be a whole number from 2"),
        ({"measure": {"seconds": 0}}, "seconds is 0; it must be a positive number"),
        ({"measure": {"confidence": 95}}, "confidence is 95; it must be from 0.5 to below 1"),
        ({"measure": {"verify": 1}}, "verify is 1; it must be true or false"),
        ({"grid": {"fusion": "default"}}, "grid.fusion must be a list"),
        ({"grid": {"fuson": ["default"]}}, "did you mean 'fusion'"),
    ],
)
def test_a_wrong_specification_is_an_error_that_says_where(change: dict[str, Any], message: str):
    with pytest.raises(IgniterError, match=message) as error:
        spec_of({**LEAST, **change}, "my.toml")
    assert error.value.message.startswith("my.toml")


def test_a_grid_multiplies_variants():
    grid = {"fusion": ["default", "by-kind"], "options": {"winograd": ["off", "auto"]}}
    spec = spec_of({**LEAST, "variant": [{"name": "a", "options": {"precision": "bf16"}}], "grid": grid})
    assert [v.name for v in spec.variants] == [
        f"a, fusion={f}, winograd={w}" for f in ("default", "by-kind") for w in ("off", "auto")
    ]
    assert spec.variants[1].options == {"precision": "bf16", "winograd": "auto"}


def test_a_grid_alone_makes_variants():
    spec = spec_of({"models": ["mixer"], "grid": {"schedule": ["default", "naive"]}})
    assert [v.name for v in spec.variants] == ["schedule=default", "schedule=naive"]


@pytest.mark.parametrize("name", shipped_specs())
def test_a_shipped_specification_survives_its_archive(name: str):
    spec = shipped_spec(name)
    assert spec_of(spec.to_dict()) == spec
    assert all(model.name in NETWORKS and model.sizes for model in spec.models)


@pytest.mark.parametrize("name", shipped_specs())
def test_the_variants_of_shipped_specifications_are_options_of_a_compilation(name: str):
    for variant in shipped_spec(name).variants:
        if variant.system == "igniter":
            assert compile_options(variant, {}).fusion_author == variant.fusion


def test_a_schedule_author_reaches_every_pass_that_asks_one():
    passes = with_author("cpu-schedule", "naive{}")
    assert passes.count("author=") == 2
    with pytest.raises(IgniterError, match="has no effect"):
        with_author("canonicalize-loop", "naive")


def test_a_file_that_is_not_toml_is_an_error(tmp_path: Path):
    (tmp_path / "a.toml").write_text("models = [")
    with pytest.raises(IgniterError, match=r"a.toml is not TOML"):
        read_spec(tmp_path / "a.toml")
    with pytest.raises(IgniterError, match="cannot read"):
        read_spec(tmp_path / "b.toml")
