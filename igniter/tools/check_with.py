"""`igniter-opt --check-with=COMMAND`: a module of MLIR through an external pass, with its results compared."""

from __future__ import annotations

from typing import IO

from igniter.errors import IgniterError
from igniter.verification.external_passes import CheckOptions, Command, check_text

TEXTS = ("linalg", "scf")
"""The outputs of Igniter's own IR that MLIR's passes take."""


class PassWrong(IgniterError):
    """Raised for a fault of an external pass."""

    code = "IGN0106"
    exit_status = 3


def check_with(text: str, command: str, seed: int, log: IO[str]) -> str:
    """Returns the text after the command. Raises `PassWrong` if the command changes a result, crashes or fails.

    Also raises `IgniterError` if no function can be compared: a check without a comparison is none.
    """
    checked = check_text(text, Command.parse(command), CheckOptions(seed=seed))
    for note in checked.notes:
        print(f"check: {command}: {note}", file=log)
    if checked.finding is not None:
        raise PassWrong(f"'{command}': {checked.finding}")
    if not checked.cases:
        raise IgniterError(f"'{command}': nothing was compared: the notes above say why")
    return checked.output
