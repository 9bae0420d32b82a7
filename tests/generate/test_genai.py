"""`igniter compile --genai` writes folders that onnxruntime-genai runs as they are, with the tokens of the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

import igniter
from igniter.compiler.genai_library import renew_library
from igniter.errors import IgniterError
from igniter.toolbox.compile.request import CompileRequest
from igniter.toolbox.generate.genai_config import parse_settings

from .conftest import TINY

SET = ("type=llama", "context_length=200", "eos_token_id=255")


def compiled(folder: Path, form: Any = "shared", given: tuple[str, ...] = SET) -> Path:
    """A folder of the decoder, compiled for onnxruntime-genai."""
    if not (folder / "model.onnx").exists():
        onnx.save(TINY.model(form), folder / "model.onnx")
    out = folder / "out.igniter"
    CompileRequest(str(folder / "model.onnx"), str(out), verify=False, genai=True, genai_set=given, json=True).run()
    return out


@pytest.mark.slow
def test_a_configuration_is_made_from_the_graph(tmp_path: Path):
    (tmp_path / "tokenizer.json").write_text("{}")
    out = compiled(tmp_path)
    config = json.loads((out / "genai_config.json").read_text())
    (library,) = out.glob("libigniter_*")
    model, decoder = config["model"], config["model"]["decoder"]
    assert decoder["session_options"]["custom_ops_library"] == library.name and decoder["filename"] == "model.onnx"
    expected = {"head_size": 16, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_attention_heads": 4}
    assert expected.items() <= decoder.items() and decoder["hidden_size"] == 64
    assert decoder["inputs"]["past_key_names"] == "past_key_values.%d.key"
    assert decoder["outputs"]["present_value_names"] == "present.%d.value"
    assert model["vocab_size"] == 256 and model["eos_token_id"] == model["pad_token_id"] == 255
    assert config["search"]["past_present_share_buffer"] is True and config["search"]["max_length"] == 200
    assert (out / "tokenizer.json").is_file()
    generator = igniter.Generator(out)
    assert generator.cache == "shared" and generator.context == 200 and generator.model.eos == {255}


def test_the_configuration_of_the_source_is_kept(tmp_path: Path):
    onnx.save(TINY.model("shared"), tmp_path / "model.onnx")
    given = {
        "model": {"type": "qwen2", "eos_token_id": [7, 8], "decoder": {"filename": "other.onnx", "head_size": 16}},
        "search": {"past_present_share_buffer": True, "top_k": 3},
    }
    (tmp_path / "genai_config.json").write_text(json.dumps(given))
    out = compiled(tmp_path, given=())
    config = json.loads((out / "genai_config.json").read_text())
    assert config["search"] == given["search"] and config["model"]["eos_token_id"] == [7, 8]
    assert config["model"]["decoder"]["filename"] == "model.onnx"
    assert config["model"]["decoder"]["session_options"]["custom_ops_library"].startswith("libigniter_")


def test_a_later_compile_names_its_library(tmp_path: Path):
    """By the command and from Python; other settings of the file stay, and so does a library of another maker."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) {y = Exp(x)}'
    )

    def compile_again() -> igniter.Artifact:
        return igniter.load(model).compile(output=tmp_path / "m", verify=False)

    artifact = compile_again()
    (library,) = artifact.libraries
    place = artifact.folder / "genai_config.json"
    assert artifact.renewed is None and not place.exists()
    for former, now, said in (
        ("libigniter_0123456789abcdef.so", library.name, True),
        (library.name, library.name, False),
        ("libother.so", "libother.so", False),
    ):
        options = {"custom_ops_library": former, "log_id": "mine"}
        place.write_text(json.dumps({"model": {"decoder": {"session_options": options}, "type": "llama"}}))
        text = compile_again().renewed
        assert (text is not None and former in text) == said
        expected = {"decoder": {"session_options": {**options, "custom_ops_library": now}}, "type": "llama"}
        assert json.loads(place.read_text())["model"] == expected


@pytest.mark.parametrize("text", ("{", "[]", "{}", '{"model": {"decoder": null}}'))
def test_another_file_of_that_name_stays(tmp_path: Path, text: str):
    (tmp_path / "genai_config.json").write_text(text)
    assert renew_library(tmp_path, ["libigniter_0123456789abcdef.so"]) is None
    assert (tmp_path / "genai_config.json").read_text() == text


def test_what_cannot_be_known_is_asked_for(tmp_path: Path):
    with pytest.raises(
        IgniterError, match=r"says type, context_length, eos_token_id, which genai_config\.json needs: give "
    ):
        compiled(tmp_path, given=())
    (tmp_path / "config.json").write_text('{"model_type": "llama", "max_position_embeddings": 99, "eos_token_id": 3}')
    config = json.loads((compiled(tmp_path, given=("eos_token_id=4,5",)) / "genai_config.json").read_text())
    assert config["model"]["context_length"] == 99 and config["model"]["eos_token_id"] == [4, 5]


@pytest.mark.parametrize("text", ("eos=2", "eos_token_id", "context_length=x", "context_length=1,2"))
def test_settings_that_do_not_fit(text: str):
    with pytest.raises(IgniterError, match="--genai-set"):
        parse_settings([text])


def test_options_that_do_not_go_together(tmp_path: Path):
    onnx.save(TINY.model("shared"), tmp_path / "model.onnx")
    with pytest.raises(IgniterError, match="--genai-set is for --genai"):
        CompileRequest(str(tmp_path / "model.onnx"), genai_set=SET).run()
    with pytest.raises(IgniterError, match="--genai completes a folder"):
        CompileRequest(str(tmp_path / "model.onnx"), genai=True, emit="onnx").run()


def test_onnxruntime_genai_runs_the_folder(tmp_path: Path):
    og: Any = pytest.importorskip("onnxruntime_genai")
    out = compiled(tmp_path)
    # Tokens are given and taken as numbers, so any tokenizer will do for the model to be loaded.
    prompt, count = [3, 9, 27, 5, 1], 60
    model = og.Model(str(out))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=100, do_sample=False)
    generator = og.Generator(model, params)
    generator.append_tokens(prompt)
    found: list[int] = []
    while len(found) < count and not generator.is_done():
        generator.generate_next_token()
        found.append(int(generator.get_next_tokens()[0]))
    expected = igniter.Generator(tmp_path / "model.onnx").generate(prompt, max_new_tokens=count, eos=255).tokens
    assert found[: len(expected)] == expected and len(expected) > 10
