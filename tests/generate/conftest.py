"""Tiny decoders in each form, written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest

from benchmark.models.decoders import Decoder, Form

TINY = Decoder(vocabulary=256, sharpness=2.0)
"""Its tokens are bytes."""


class Bytes:
    """A tokenizer whose tokens are bytes of UTF-8."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode(errors="replace")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Form], Path]:
    """The file of the decoder in a form."""
    folder = tmp_path_factory.mktemp("decoders")

    def made(form: Form) -> Path:
        path = folder / f"{form}.onnx"
        if not path.exists():
            onnx.save(TINY.model(form), path)
        return path

    return made
