"""Tokens to text, piece by piece: no character is split, and no text behind the start of a stop word is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer writes for a byte that is no character, or not yet."""
MOST_WAITING = 3
"""The bytes that may be the start of a character: it has at most 4 in UTF-8."""
CONTEXT = 4
"""The tokens before the first one that its text may depend on."""


class TextStream:
    """The text of one sequence of tokens.

    The text of a token depends on the tokens before it (spaces of words), so each piece is the difference between the
    text of the last tokens with the new ones and without them.
    """

    def __init__(self, tokenizer: Any, stop: Sequence[str] = (), context: Sequence[int] = ()):
        self.tokenizer = tokenizer
        self.stop: list[str] = [word for word in stop if word]
        self._tokens = list(context[-CONTEXT:])
        self._start, self._whole = 0, len(self._tokens)
        """The first token that is decoded again, and the number of tokens at whose end no character was open."""
        self._shown = len(self._decode(self._tokens))
        """The characters of the text from `_start` on that have been returned."""
        self._waiting: str = ""
        """Text that may be the start of a stop word."""
        self.text: str = ""
        """The text so far, up to a stop word."""
        self.stopped = ""
        """The stop word that was found."""

    def add(self, token: int) -> str:
        """Returns the text that a token completes, "" if a character or a possible stop word is not whole yet."""
        if self.stopped:
            return ""
        self._tokens.append(token)
        text = self._decode(self._tokens[self._start :])
        open_bytes = len(text) - len(text.rstrip(INCOMPLETE))
        # Of more bytes than a character has, the first are none.
        until = len(text) - min(open_bytes, MOST_WAITING)
        new = text[self._shown : until]
        self._shown = max(self._shown, until)
        if not open_bytes:
            self._start, self._whole = self._whole, len(self._tokens)
            self._shown = len(self._decode(self._tokens[self._start :]))
        return self._show(new, last=False)

    def end(self) -> str:
        """Returns the text that was held back at the end of the tokens."""
        if self.stopped:
            return ""
        text = self._decode(self._tokens[self._start :])
        new, self._shown = text[self._shown :], len(text)
        return self._show(new, last=True)

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens))) if tokens else ""

    def _show(self, new: str, *, last: bool) -> str:
        text: str = self._waiting + new
        found = [(text.index(word), word) for word in self.stop if word in text]
        if found:
            # The first; of several at one place the longest.
            place, self.stopped = min(found, key=lambda f: (f[0], -len(f[1])))
            text, self._waiting = text[:place], ""
        else:
            held = 0 if last else self._held(text)
            text, self._waiting = text[: len(text) - held], text[len(text) - held :]
        self.text += text
        return text

    def _held(self, text: str) -> int:
        """Returns the length of the longest end of `text` that starts a stop word."""
        longest = max((len(word) - 1 for word in self.stop), default=0)
        for length in range(min(longest, len(text)), 0, -1):
            if any(word.startswith(text[-length:]) for word in self.stop):
                return length
        return 0


__all__ = ["TextStream"]
