"""The errors for users."""

from __future__ import annotations


class IgniterError(Exception):
    """An error within the user's control; the message is one clear paragraph, shown without a traceback."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
