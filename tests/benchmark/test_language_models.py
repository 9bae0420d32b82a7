"""Language models as onnxruntime-genai's builder writes them: the command line, without the packages that build."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.language_models import __main__, attention, build
from benchmark.language_models.peers import cell, random_prompt
from benchmark.language_models.systems import Rates
from igniter.runtime.session import make_session


def test_arguments_of_the_builder() -> None:
    assert build.form_arguments("f32") == ["-p", "fp32"]
    level4 = ["-p", "int4", "--extra_options", "accuracy_level=4", "block_size=32"]
    assert build.form_arguments("int4-level4") == level4
    assert build.form_arguments("int4-level4-pruned") == [*level4, "prune_lm_head=true"]


@pytest.mark.parametrize("arguments", [["llama2"], ["llama", "--forms", "int3"]])
def test_an_unknown_name_is_an_error(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["language_models", "build", *arguments])
    with pytest.raises(SystemExit):
        __main__.main()
    assert f"unknown: {arguments[-1]}; there are llama, smollm2" in capsys.readouterr().err


def test_a_system_beside_the_first_one_has_medians_of_ratios() -> None:
    first = [Rates(100, 10, []), Rates(200, 30, []), Rates(400, 20, [])]
    other = [Rates(150, 20, []), Rates(200, 30, []), Rates(1600, 10, [])]
    assert cell(first, first) == "200 / 20"
    assert cell(first, other) == "1.50 / 1.00"


def test_every_round_has_a_prompt_of_its_own() -> None:
    assert random_prompt(8, 0) == random_prompt(8, 0) != random_prompt(8, 1)


@pytest.mark.parametrize("form", attention.FORMS)
def test_an_attention_of_each_form_runs_in_one_buffer(form: str) -> None:
    case = attention.Case(form, 2, 1)
    assert case.keys > case.rows or form != "window"
    run = attention.bound_run(make_session(attention.node_model(form, 2).SerializeToString()), case)
    assert run().shape == (1, 1, attention.HEADS * attention.SIZE)
    assert np.isfinite(run()).all()
