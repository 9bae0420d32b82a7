"""Shell completion for `igniter-opt`, from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from igniter.registry import PASSES
from igniter.tools.completion import FILES, NOTHING, Answer, offered, split_option
from igniter.tools.completion.values import pass_options, pipeline, targets


def answer(parser: argparse.ArgumentParser, before: Sequence[str], last: str) -> Answer:
    """Returns completions of `last` after the words `before`."""
    options = {name: action for action in parser._actions for name in action.option_strings}
    prefix, value = split_option(last)
    name = prefix.rstrip("=")
    if name.removeprefix("--") in PASSES:
        return _options_of(name.removeprefix("--"), prefix, value)
    if not prefix and before and before[-1] in options and options[before[-1]].nargs is None:
        name = before[-1]
    if name in options:
        return _value(options[name], prefix, value)
    if last.startswith("-"):
        return _names(options, last)
    return FILES


def _options_of(name: str, prefix: str, value: str) -> Answer:
    """Returns the options of a pass written as a flag."""
    given, space, option = value.strip("{}").rpartition(" ")
    found = [each for each in pass_options(name) if each.startswith(option)]
    return offered(((f"{prefix}{given}{space}{each}", "") for each in found), "open")


def _value(action: argparse.Action, prefix: str, value: str) -> Answer:
    if action.choices is not None:
        return offered((f"{prefix}{each}", "") for each in action.choices if str(each).startswith(value))
    if action.metavar in ("PIPELINE", "PASS"):
        # A comma may follow, or the options of the pass.
        return offered(((f"{prefix}{each}", "") for each in pipeline(value)), "open")
    if action.metavar == "TARGET":
        return offered((f"{prefix}{each}", "") for each in targets(value))
    return FILES if action.metavar == "FILE" else NOTHING


def _names(options: dict[str, argparse.Action], last: str) -> Answer:
    """Returns options, and the flags of passes once a letter of one is written: without it there are too many."""
    found = {name: action.help or "" for name, action in options.items() if name.startswith(last)}
    if len(last) > 2:
        found |= {f"--{name}": "a pass" for name in PASSES if f"--{name}".startswith(last) and f"--{name}" not in found}
    return offered((name, text % {"prog": "igniter-opt"} if "%(" in text else text) for name, text in found.items())
