"""Tokenizers by the package `tokenizers`, and chat templates by `jinja2`: the extra `generate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from igniter.distribution import install_command
from igniter.errors import IgniterError

TOKENIZER, CONFIG, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


class Tokenizer(Protocol):
    """What generation asks of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Returns the tokens of a text, with the special ones that the model expects in front."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Returns the text of tokens, without special ones."""
        ...


class FileTokenizer:
    """The tokenizer of a file `tokenizer.json`."""

    def __init__(self, path: Path):
        try:
            library: Any = import_module("tokenizers")
        except ImportError as error:
            raise IgniterError(
                f"text needs the package tokenizers, which is not installed: {install_command('generate')}; "
                "token ids (--ids) need none"
            ) from error
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises plain exceptions
            raise IgniterError(f"{path} is no tokenizer: {error}") from error
        # Padding and truncation are those of training.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, text: str, special: bool = True) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=special).ids)

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        return self._tokenizer.decode(list(tokens), skip_special_tokens=not special)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a token by its text."""
        return self._tokenizer.token_to_id(token)


def find_tokenizer(folders: Sequence[Path], given: str | Path | None) -> Path | None:
    """Returns the file of the tokenizer: the given file or folder, or the one beside the model; `None` if there is
    none."""
    if given is not None:
        path = Path(given) / TOKENIZER if Path(given).is_dir() else Path(given)
        if not path.is_file():
            raise IgniterError(f"there is no tokenizer {path}")
        return path
    return next((folder / TOKENIZER for folder in folders if (folder / TOKENIZER).is_file()), None)


# -- chat templates ---------------------------------------------------------------------------------------------------


class ChatTemplate:
    """A template of conversations, rendered as `apply_chat_template` of transformers does."""

    def __init__(self, source: str, special: Mapping[str, Any]):
        self._special = dict(special)
        try:
            jinja2: Any = import_module("jinja2")
            sandbox: Any = import_module("jinja2.sandbox")
        except ImportError as error:
            raise IgniterError(
                f"a chat template needs the package jinja2, which is not installed: {install_command('generate')}"
            ) from error

        def fail(message: str) -> None:
            raise IgniterError(f"the chat template refuses the conversation: {message}")

        def to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **_: Any) -> str:
            return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

        def now(form: str) -> str:
            return datetime.now().strftime(form)

        made = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        made.filters["tojson"] = to_json
        made.globals["raise_exception"], made.globals["strftime_now"] = fail, now
        try:
            self._template = made.from_string(source)
        except jinja2.TemplateError as error:
            raise IgniterError(f"the chat template is not valid: {error}") from error
        self._error: Any = jinja2.TemplateError

    def render(self, messages: Sequence[Mapping[str, str]], *, prompt: bool = True) -> str:
        """Returns the text of messages, `{"role": ..., "content": ...}`; with `prompt`, up to an answer."""
        try:
            return self._template.render(
                messages=list(messages), add_generation_prompt=prompt, tools=None, documents=None, **self._special
            )
        except self._error as error:
            raise IgniterError(f"the chat template does not render: {error}") from error


def find_template(folders: Sequence[Path]) -> ChatTemplate | None:
    """Returns the template beside a tokenizer: `chat_template.jinja`, or an entry of `tokenizer_config.json`; `None` if
    there is none."""
    for folder in folders:
        config = read_json(folder / CONFIG)
        source: Any = config.get("chat_template")
        if (folder / TEMPLATE).is_file():
            source = (folder / TEMPLATE).read_text(encoding="utf-8")
        if isinstance(source, list):
            named = {e.get("name"): e.get("template") for e in cast("list[dict[str, str]]", source)}
            source = named.get("default") or next(iter(named.values()), None)
        if isinstance(source, str):
            return ChatTemplate(source, {k: _text(v) for k, v in config.items() if k.endswith("_token")})
    return None


def _text(token: Any) -> Any:
    return cast("dict[str, Any]", token).get("content") if isinstance(token, dict) else token


def read_json(path: Path) -> dict[str, Any]:
    """Returns a JSON object; an empty one if there is no such file. Raises `IgniterError` if it is not one."""
    if not path.is_file():
        return {}
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise IgniterError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise IgniterError(f"{path} is not a JSON object")
    return cast("dict[str, Any]", found)


__all__ = ["ChatTemplate", "FileTokenizer", "Tokenizer", "find_template", "find_tokenizer", "read_json"]
