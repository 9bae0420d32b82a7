"""Streams of text split no character, and show nothing of a stop word."""

from __future__ import annotations

import random

import pytest

from igniter.toolbox.generate.text_stream import TextStream

from .conftest import Bytes

TEXT = "a é 漢字 👩\u200d🚀 end"


def streamed(
    tokens: list[int], stop: tuple[str, ...] = (), context: list[int] | None = None
) -> tuple[list[str], TextStream]:
    stream = TextStream(Bytes(), stop, context or [])
    pieces = [stream.add(token) for token in tokens]
    return [*pieces, stream.end()], stream


def test_a_character_comes_whole():
    pieces, stream = streamed(list(TEXT.encode()))
    assert "".join(pieces) == stream.text == TEXT
    assert all(len(piece) <= 1 and "\N{REPLACEMENT CHARACTER}" not in piece for piece in pieces)


def test_bytes_that_are_no_character_are_shown_in_the_end():
    pieces, _ = streamed([0x61, 0xF0, 0x9F])
    assert "".join(pieces) == b"a\xf0\x9f".decode(errors="replace") and pieces[1:3] == ["", ""]
    # Four of them are no start of a character.
    pieces, _ = streamed([0xFF, 0xFF, 0xFF, 0xFF, 0x62])
    assert pieces == ["", "", "", *["\N{REPLACEMENT CHARACTER}"], "\N{REPLACEMENT CHARACTER}" * 3 + "b", ""]


def test_random_bytes_are_shown_as_they_are_decoded():
    rng = random.Random(1)
    for _ in range(300):
        tokens = [rng.choice([0x61, 0xC3, 0xA9, 0xE6, 0xBC, 0xA2, 0xF0, 0x9F, 0x9A, 0x80, 0xFF]) for _ in range(20)]
        context = tokens[: rng.randrange(6)]
        pieces, stream = streamed(tokens)
        assert "".join(pieces) == stream.text == bytes(tokens).decode(errors="replace")
        streamed(tokens, (), context)


def test_a_stop_word_ends_the_text_before_it():
    pieces, stream = streamed(list(b"one, two, three, four"), ("three", "o, t"))
    assert "".join(pieces) == "one, tw" and stream.stopped == "o, t"
    pieces, stream = streamed(list(b"one, two"), ("two!",))
    assert "".join(pieces) == "one, two" and not stream.stopped
    assert pieces[-1] == "two"


def test_the_longest_of_stop_words_at_one_place():
    class Words(Bytes):
        def decode(self, tokens):  # type: ignore[no-untyped-def]
            return "".join(["ab", "abc", "x"][t] for t in tokens)

    stream = TextStream(Words(), ("ab", "abc"))
    assert stream.add(2) + stream.add(1) == "x" and stream.stopped == "abc"


@pytest.mark.parametrize("seed", range(5))
def test_random_texts_with_random_stop_words(seed: int):
    rng = random.Random(seed)
    for _ in range(50):
        text = "".join(rng.choice("abé漢") for _ in range(30))
        stop = tuple("".join(rng.choice("abé漢") for _ in range(rng.randint(1, 4))) for _ in range(2))
        pieces, stream = streamed(list(text.encode()), stop)
        ends = [text.index(word) for word in stop if word in text]
        # The first to be whole ends the text.
        whole = [text.index(word) + len(word) for word in stop if word in text]
        first = min(range(len(whole)), key=lambda k: (whole[k], ends[k])) if whole else None
        expected = text if first is None else text[: ends[first]]
        assert "".join(pieces) == stream.text == expected


def test_the_text_of_a_token_may_depend_on_those_before_it():
    class Spaced:
        """Like SentencePiece: the first word has no space in front."""

        def decode(self, tokens: list[int]) -> str:
            return " ".join(f"w{t}" for t in tokens)

    stream = TextStream(Spaced(), (), [1, 2, 3])
    assert [stream.add(4), stream.add(5), stream.end()] == [" w4", " w5", ""]
