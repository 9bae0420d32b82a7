"""The arguments of `igniter-opt` before they are parsed: the spellings that users of `mlir-opt` and of LLVM type.

A long option may have one dash (`-cse`). A value follows `=`; an option whose value is optional never takes the next
argument, so `--timing a.mlir` reads the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

from igniter.errors import IgniterError, did_you_mean

HELP = ("-h", "--help")


class OptParser(argparse.ArgumentParser):
    """A parser whose errors are exceptions: the usage of all options would bury them."""

    def error(self, message: str) -> NoReturn:
        raise IgniterError(f"{message} (igniter-opt --help lists all options)")

    def parsed(self, arguments: Sequence[str], others: Collection[str]) -> argparse.Namespace:
        """Returns the parsed arguments; raises `IgniterError` for an unknown option, with a suggestion from the options
        and `others`, and for a second file."""
        found, left = self.parse_known_args(separate_values(arguments, self))
        if not left:
            return found
        option = next((each for each in left if each.startswith("-")), None)
        if option is None:
            self.error(f"one file is read, and '{left[0]}' is another one after '{found.input}'")
        name = option.partition("=")[0]
        self.error(f"there is no option or pass {name}{did_you_mean(name, {*long_options(self), *others})}")


def long_options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Returns the options of a parser that begin with two dashes."""
    return {name: action for action in parser._actions for name in action.option_strings if name.startswith("--")}


def values_of(names: Collection[str], arguments: Sequence[str]) -> list[str]:
    """Returns the values of an option with several names, before the arguments are parsed."""
    found: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.partition("=")
        if f"--{name.lstrip('-')}" in names and name.startswith("-"):
            found.append(value if equals else following)
    return [text for text in found if text]


def two_dashes(arguments: Iterable[str], known: Collection[str]) -> list[str]:
    """Writes long options with two dashes: `-cse` is `--cse`, if `known` has it."""
    return [_two_dashes(argument, known) for argument in arguments]


def _two_dashes(argument: str, known: Collection[str]) -> str:
    if argument.startswith("--") or not argument.startswith("-") or len(argument) == 2:
        return argument
    return f"-{argument}" if f"-{argument.partition('=')[0]}" in known else argument


def separate_values(arguments: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Ends each option with an optional value by `=`, so that it does not take the next argument; one that is a choice
    of the option stays its value: `--remarks json`."""
    options = long_options(parser)
    found: list[str] = []
    for index, argument in enumerate(arguments):
        action = options.get(argument)
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        ends = action is not None and action.nargs == "?" and argument not in HELP
        if ends and action is not None and following not in (action.choices or ()):
            found.append(f"{argument}={action.const or ''}")
        else:
            found.append(argument)
    return found


def described_name(arguments: Sequence[str]) -> str:
    """Returns the pass or pipeline of `--help PASS`; "" if there is none."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in HELP and equals:
            return value
        if name in HELP:
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            return "" if following.startswith("-") else following
    return ""


def joined(pipelines: Sequence[str]) -> str:
    """Returns the pipelines of several arguments as one. Edits end with the argument that they are in."""
    if len(pipelines) == 1:
        return pipelines[0]
    return ",".join(f"builtin.module({each})" if " with" in each else each for each in pipelines)
