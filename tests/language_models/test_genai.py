"""Compiled decoders inside of onnxruntime-genai, whose configuration names the library of ops: the tokens of the
original, generated, continued after a rewind, and in a batch with padding."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import onnx
import pytest

import igniter
from tests.language_models.decoders import HEADS, LAYERS, LONGEST, SHARED, SIZE, WIDE, WORDS, llama

og: Any = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")

PROMPT = [5, 17, 3, 90, 41, 8]


def configuration(library: str | None) -> dict[str, Any]:
    """The part of `genai_config.json` that a decoder needs."""
    options: dict[str, Any] = {"log_id": "test", "provider_options": [], "intra_op_num_threads": 2}
    if library is not None:
        options["custom_ops_library"] = library
    names = {f"{side}_{part}_names": f"{side_name}.%d.{part}" for side, side_name in
             (("past", "past_key_values"), ("present", "present")) for part in ("key", "value")}  # fmt: skip
    decoder = {
        "session_options": options,
        "filename": "model.onnx",
        "head_size": SIZE,
        "hidden_size": WIDE,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            **{k: v for k, v in names.items() if k.startswith("past")},
        },
        "outputs": {"logits": "logits", **{k: v for k, v in names.items() if k.startswith("present")}},
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": SHARED,
    }
    tokens = {"bos_token_id": 1, "eos_token_id": WORDS - 1, "pad_token_id": 0}
    model = {**tokens, "context_length": LONGEST, "decoder": decoder, "type": "llama", "vocab_size": WORDS}
    search = {"do_sample": False, "max_length": LONGEST, "past_present_share_buffer": True, "num_beams": 1}
    return {"model": model, "search": search}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The original and the compiled model, loaded by onnxruntime-genai."""
    original, compiled = (tmp_path_factory.mktemp(name) for name in ("original", "compiled"))
    onnx.save(llama(), str(original / "model.onnx"))
    folder = compiled / "folder"
    igniter.load(str(original / "model.onnx")).compile(output=folder, verify=False)
    (library,) = folder.glob("*.so")
    for place, name in ((original, None), (folder, library.name)):
        (place / "genai_config.json").write_text(json.dumps(configuration(name)))
    return og.Model(str(original)), og.Model(str(folder))


def generator(model: Any, batch: int = 1, **search: Any) -> Any:
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(batch_size=batch, **search)
    return og.Generator(model, parameters)


def run(made: Any, steps: int) -> list[Sequence[int]]:
    tokens: list[Sequence[int]] = []
    for _ in range(steps):
        if made.is_done():
            break
        made.generate_next_token()
        tokens.append([int(n) for n in made.get_next_tokens()])
    return tokens


def test_tokens(models: tuple[Any, Any]) -> None:
    both: list[list[Sequence[int]]] = []
    for model in models:
        made = generator(model)
        made.append_tokens(PROMPT)
        both.append(run(made, 200))
    assert len(both[0]) > 4
    assert both[1] == both[0]


def test_rewound_and_continued(models: tuple[Any, Any]) -> None:
    both: list[list[Sequence[int]]] = []
    for model in models:
        made = generator(model)
        made.append_tokens(PROMPT)
        first = run(made, 4)
        made.rewind_to(5)
        made.append_tokens([33, 7])
        both.append([*first, *run(made, 40)])
    assert both[1] == both[0]


def test_a_batch_and_beams(models: tuple[Any, Any]) -> None:
    for search in ({"batch": 2}, {"num_beams": 3, "max_length": 24}):
        both: list[list[int]] = []
        for model in models:
            made = generator(model, **search)
            made.append_tokens([PROMPT, PROMPT[::-1]] if "batch" in search else PROMPT)
            run(made, 16)
            both.append([int(n) for n in made.get_sequence(0)])
        assert both[1] == both[0]
