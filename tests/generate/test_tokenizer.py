"""Tokenizers and chat templates beside a model, and what is said where a package is missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import igniter
from benchmark.models.decoders import Form
from igniter.errors import IgniterError

from .conftest import TINY, Bytes

Models = Callable[[Form], Path]

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message['content'] | trim }}</>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model whose tokens are bytes, and its tokenizer and template."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    onnx.save(TINY.model("shared"), tmp_path / "model.onnx")
    # The characters that stand for bytes in GPT-2's tokenizers, of which each is one token.
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(tokenizers.models.BPE({c: k for k, c in enumerate(alphabet)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    config = {"chat_template": TEMPLATE, "bos_token": {"content": "!"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_the_tokenizer_beside_a_model_is_found(folder: Path):
    generator = igniter.Generator(folder)
    found = generator.generate("Häuser und 漢字", max_new_tokens=30, temperature=2.0, seed=0)
    assert len(found.prompt) == len("Häuser und 漢字".encode())
    assert generator.tokenizer is not None and generator.tokenizer.decode(found.prompt) == "Häuser und 漢字"
    stream = generator.stream("Häuser und 漢字", max_new_tokens=30, temperature=2.0, seed=0)
    assert "".join(stream) == found.text == generator.tokenizer.decode(found.tokens)


def test_a_compiled_folder_finds_the_tokenizer_of_its_source(folder: Path, tmp_path: Path):
    igniter.compile(folder / "model.onnx", tmp_path / "out" / "model.igniter", verify=False)
    found = igniter.Generator(tmp_path / "out" / "model.igniter").generate("abc", max_new_tokens=5)
    assert found.text == igniter.Generator(folder).generate("abc", max_new_tokens=5).text


def test_a_chat_keeps_its_cache(folder: Path):
    pytest.importorskip("jinja2")
    chat = igniter.Generator(folder).chat("Be brief.")
    first = chat.send("Hello ", max_new_tokens=5, temperature=1.0, seed=1, eos=[])
    tokenizer = igniter.Generator(folder).tokenizer
    assert tokenizer is not None
    assert tokenizer.decode(first.prompt) == "!<system>Be brief.</>\n<user>Hello</>\n<assistant>"
    assert [m["role"] for m in chat.messages] == ["system", "user", "assistant"]
    second = chat.send("More", max_new_tokens=5, temperature=1.0, seed=1)
    assert tokenizer.decode(second.prompt).endswith("</>\n<user>More</>\n<assistant>")
    # Up to the answer, whose text need not give its tokens again.
    assert second.times.reused_tokens >= len(first.prompt)


def test_a_template_that_refuses(folder: Path):
    pytest.importorskip("jinja2")
    (folder / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(IgniterError, match="the chat template refuses the conversation: roles must alternate"):
        igniter.Generator(folder).chat().send("Hello")
    (folder / "chat_template.jinja").write_text("{% for %}")
    with pytest.raises(IgniterError, match="the chat template is not valid"):
        igniter.Generator(folder).chat()


def test_templates_render_as_those_of_transformers(folder: Path):
    pytest.importorskip("jinja2")
    transformers: Any = pytest.importorskip("transformers")
    source = (
        "{%- for m in messages %}\n  {%- if loop.first and m.role != 'system' %}none\n{% endif %}\n"
        "{{ '<' + m.role + '>' }}{{ m | tojson }}\n    {% endfor %}\n{% if add_generation_prompt %}go{% endif %}"
    )
    (folder / "chat_template.jinja").write_text(source)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    messages = [{"role": "user", "content": 'ä "b" <c>'}, {"role": "assistant", "content": "d"}]
    expected = tokenizer.apply_chat_template(messages, chat_template=source, tokenize=False, add_generation_prompt=True)
    assert igniter.Generator(folder).template.render(messages) == expected


def test_a_missing_package_is_named(model: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    onnx.save(TINY.model("shared"), tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("hello")
    for name in ("tokenizers", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    generator = igniter.Generator(tmp_path)
    with pytest.raises(
        IgniterError, match=r"the package tokenizers, .*'onnx-igniter\[generate\]'.*\(--ids\) need none"
    ):
        generator.generate("text")
    with pytest.raises(IgniterError, match=r"a chat template needs the package jinja2, .*'onnx-igniter\[generate\]'"):
        igniter.Generator(tmp_path, Bytes()).chat()


def test_files_that_are_missing_are_named(model: Models):
    generator = igniter.Generator(model("shared"))
    with pytest.raises(IgniterError, match=r"no tokenizer.json is beside .*name it \(--tokenizer\)"):
        generator.generate("text")
    with pytest.raises(IgniterError, match="no chat template is beside"):
        generator.chat()
    with pytest.raises(IgniterError, match="there is no tokenizer nowhere"):
        igniter.Generator(model("shared"), "nowhere").generate("text")
