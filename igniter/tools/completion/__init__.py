"""What a shell offers when TAB is pressed behind `igniter` and `igniter-opt`.

The scripts of `scripts.py` call the program itself with `REQUEST` set in its environment, and with the words of the
command line up to the one that is being written. The program answers on standard output, in lines:

    words               first what is offered: `words`, `open` (words that one goes on writing: no space behind them),
                        `files`, or `nothing`
    --target<TAB>text   then, for words, each with what its help says

What it answers with is typer's, for `igniter`; `opt.py` reads the parser of `igniter-opt`. Where the program says
nothing, because something is wrong with it, the scripts offer files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

REQUEST = "_IGNITER_COMPLETE"
"""The environment variable that asks a program for what can stand at the end of its command line."""


@dataclass(frozen=True)
class Answer:
    """What is offered; `kind` is one of `words`, `open`, `files` and `nothing`."""

    kind: str
    words: tuple[tuple[str, str], ...] = ()
    """Each with its help."""

    def __str__(self) -> str:
        lines = (f"{word}\t{' '.join(text.split())}".rstrip() for word, text in self.words)
        return "\n".join((self.kind, *lines))


NOTHING, FILES = Answer("nothing"), Answer("files")


def offered(words: Iterable[tuple[str, str]], kind: str = "words") -> Answer:
    """An answer of these words; nothing, where there are none."""
    found = tuple(words)
    return Answer(kind, found) if found else NOTHING


def respond(arguments: Sequence[str], answer: Callable[[Sequence[str], str], Answer]) -> None:
    """Print what `answer` has for the words before the last one, and for that."""
    *before, last = arguments or [""]
    print(answer(before, last))


def split_option(word: str) -> tuple[str, str]:
    """`--target=` and what is behind it; of other words, nothing and the word."""
    name, equals, value = word.partition("=")
    return (f"{name}=", value) if equals and name.startswith("--") else ("", word)


def answer_for(top: Any, before: Sequence[str], last: str) -> Answer:
    """What can stand behind the words `before`, by a command that typer made, where `last` has been written."""
    # The private module has the class that asks a command, whichever click this typer is made with.
    from typer._completion_classes import BashComplete

    command, own = _command_of(top, list(before))
    if command is None:
        return NOTHING
    prefix, _ = split_option(last)
    items = BashComplete(top, {}, "igniter", REQUEST).get_completions(list(before), last)
    if items:
        # The help that comes with the name of a command is cut off.
        commands = getattr(command, "commands", {})
        words = ((i.value, commands[i.value].help if i.value in commands else i.help) for i in items)
        return offered((f"{prefix}{word}", (text or "").partition("\n\n")[0]) for word, text in words)
    return FILES if _may_be_file(command, own, last) else NOTHING


def _command_of(command: Any, words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words lead to, and those that are its own; None where there is no such command."""
    while hasattr(command, "commands"):
        at = next((i for i, word in enumerate(words) if not word.startswith("-")), None)
        if at is None:
            break
        command, words = command.commands.get(words[at]), words[at + 1 :]
    return command, words


def _may_be_file(command: Any, before: Sequence[str], last: str) -> bool:
    """Whether what is written is not the name of a command or an option, nor a number."""
    prefix, _ = split_option(last)
    if hasattr(command, "commands") or (last.startswith("-") and not prefix):
        return False
    name = prefix.rstrip("=") or (before[-1] if before else "")
    option = next((p for p in command.params if name in p.opts and not getattr(p, "is_flag", False)), None)
    if option is None:
        return True
    # One that has values of its own to offer has no files besides.
    return not isinstance(option.default, (int, float)) and getattr(option, "_custom_shell_complete", None) is None
