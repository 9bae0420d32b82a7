"""`igniter generate` prints tokens or text as they come, JSON, and statistics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import igniter
from benchmark.models.decoders import Form
from igniter.errors import IgniterError
from igniter.toolbox.generate.request import GenerateRequest
from igniter.toolbox.generate.show import parse_ids

Models = Callable[[Form], Path]


def run(capsys: pytest.CaptureFixture[str], model: Path, **given: Any) -> tuple[str, str]:
    GenerateRequest(str(model), **given).run()
    found = capsys.readouterr()
    return found.out, found.err


def test_tokens_without_a_tokenizer(model: Models, capsys: pytest.CaptureFixture[str]):
    expected = igniter.Generator(model("shared")).generate([3, 9], max_new_tokens=6).tokens
    assert run(capsys, model("shared"), ids=("3,9",), max_new_tokens=6) == (f"{','.join(map(str, expected))}\n", "")
    eos = str(expected[3])
    assert run(capsys, model("shared"), ids=("3,9",), max_new_tokens=6, eos=eos)[0].strip() == ",".join(
        map(str, expected[: expected.index(int(eos))])
    )


def test_a_batch(model: Models, capsys: pytest.CaptureFixture[str]):
    out, err = run(capsys, model("growing"), ids=("3,9", "5"), max_new_tokens=4, stats=True)
    alone = [igniter.Generator(model("growing")).generate(p, max_new_tokens=4).tokens for p in ([3, 9], [5])]
    assert out.splitlines() == [",".join(map(str, each)) for each in alone]
    assert "prompt: 3 tokens in" in err and "8 new tokens" in err and "ended by: length" in err


def test_json_has_tokens_times_and_reasons(model: Models, capsys: pytest.CaptureFixture[str]):
    given = {"ids": ("3,9",), "max_new_tokens": 6, "json": True, "draft": str(model("whole")), "draft_tokens": 2}
    found = json.loads(run(capsys, model("shared"), **given)[0])
    (result,), (times,), (accepted,) = found["results"], found["times"], found["acceptance"]
    assert len(result["tokens"]) == 6 and result["finish_reason"] == "length" and found["cache"] == "shared"
    assert times["first"] >= times["prefill"] > 0 and times["decode_tokens_per_second"] > 0
    assert accepted["rate"] == 1.0 and accepted["drafted"] == accepted["accepted"]


def test_acceptance_is_printed(model: Models, capsys: pytest.CaptureFixture[str]):
    given = {"ids": ("3,9",), "max_new_tokens": 6, "stats": True, "draft": str(model("whole")), "draft_tokens": 2}
    assert "drafted: 3 tokens in 2 rounds, 3 accepted (100%)" in run(capsys, model("shared"), **given)[1]


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "nothing is given to continue"),
        ({"ids": ("1",), "prompt": ("a",)}, "give one of them"),
        ({"ids": ("1",), "chat": True}, "--chat takes messages"),
        ({"ids": ("1",), "system": "s"}, "--system is the system message of --chat"),
        ({"ids": ("1,x",)}, "--ids '1,x' is no list of tokens"),
        ({"ids": ("1",), "eos": "end"}, "--eos 'end' is no list of tokens"),
    ],
)
def test_options_that_do_not_fit(given: Any, message: str, model: Models):
    with pytest.raises(IgniterError, match=message):
        GenerateRequest(str(model("shared")), **given).run()


def test_ids_are_parsed():
    assert parse_ids("1, 2,33") == [1, 2, 33]
