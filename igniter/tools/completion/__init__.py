"""Shell completion after TAB for `igniter` and `igniter-opt`.

The scripts of `scripts.py` call the program itself with `REQUEST` set in its environment, and with the words of the
command line up to the incomplete one. The program answers on standard output, in lines:

    words               first what is offered: `words`, `open` (words that one goes on writing: no space behind them),
                        `files`, or `nothing`
    --target<TAB>text   then, for words, each with what its help says

For `igniter`, typer gives the answer; `opt.py` reads the parser of `igniter-opt`. If the program fails and gives no
answer, the scripts offer files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

REQUEST = "_IGNITER_COMPLETE"
"""The environment variable for requests of completions of a program's command line."""


@dataclass(frozen=True)
class Answer:
    """The completions; `kind` is one of `words`, `open`, `files` and `nothing`."""

    kind: str
    words: tuple[tuple[str, str], ...] = ()
    """The words, each with its help."""

    def __str__(self) -> str:
        lines = (f"{word}\t{' '.join(text.split())}".rstrip() for word, text in self.words)
        return "\n".join((self.kind, *lines))


NOTHING, FILES = Answer("nothing"), Answer("files")


def offered(words: Iterable[tuple[str, str]], kind: str = "words") -> Answer:
    """Returns an answer with these words; `NOTHING` for an empty list."""
    found = tuple(words)
    return Answer(kind, found) if found else NOTHING


def respond(arguments: Sequence[str], answer: Callable[[Sequence[str], str], Answer]) -> None:
    """Prints the result of `answer` for the words before the last one, and for the last one."""
    *before, last = arguments or [""]
    print(answer(before, last))


def split_option(word: str) -> tuple[str, str]:
    """Splits `--target=VALUE` after the equals sign; any other word becomes "" and the word."""
    name, equals, value = word.partition("=")
    return (f"{name}=", value) if equals and name.startswith("--") else ("", word)


def answer_for(top: Any, before: Sequence[str], last: str) -> Answer:
    """Returns completions of `last` after the words `before`, for a command made by typer."""
    # The private module has the completion class for any click below this typer.
    from typer._completion_classes import BashComplete

    command, own = _command_of(top, list(before))
    if command is None:
        return NOTHING
    prefix, _ = split_option(last)
    items = BashComplete(top, {}, "igniter", REQUEST).get_completions(list(before), last)
    if items:
        # The help of a subcommand in the completion item is truncated.
        commands = getattr(command, "commands", {})
        words = ((i.value, commands[i.value].help if i.value in commands else i.help) for i in items)
        return offered((f"{prefix}{word}", (text or "").partition("\n\n")[0]) for word, text in words)
    return FILES if _may_be_file(command, own, last) else NOTHING


def _command_of(command: Any, words: list[str]) -> tuple[Any, list[str]]:
    """Returns the command for the words, and the words of its own; None for an unknown command."""
    while hasattr(command, "commands"):
        at = next((i for i, word in enumerate(words) if not word.startswith("-")), None)
        if at is None:
            break
        command, words = command.commands.get(words[at]), words[at + 1 :]
    return command, words


def _may_be_file(command: Any, before: Sequence[str], last: str) -> bool:
    """True if the word can be a file: not the name of a command or an option, nor a number."""
    prefix, _ = split_option(last)
    if hasattr(command, "commands") or (last.startswith("-") and not prefix):
        return False
    name = prefix.rstrip("=") or (before[-1] if before else "")
    option = next((p for p in command.params if name in p.opts and not getattr(p, "is_flag", False)), None)
    if option is None:
        return True
    # An option with completions of its own takes no files.
    return not isinstance(option.default, (int, float)) and getattr(option, "_custom_shell_complete", None) is None
