"""The errors that a user is meant to read."""

from __future__ import annotations


class IgniterError(Exception):
    """Something that the user can act on; the message is one clear paragraph, shown without a traceback."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
