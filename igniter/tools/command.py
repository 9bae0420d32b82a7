"""The command line from requests: one command for each verb, and help in groups. A verb's module is imported when its
command is used."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Annotated, Any, ClassVar, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from igniter.toolbox.request import Argument, Option, Parameter, Request, build, parameters, summary
from igniter.tools.completion import values
from igniter.tools.errors import reported
from igniter.tools.verbs import GROUPS, VERBS, request_of

SETTINGS: dict[str, Any] = {
    # Typer's own adds options and imports to every start; `igniter.tools.completion` calls typer on a shell's request.
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""The options of a `typer.Typer`."""

DEBUG = Parameter("debug", bool, False, Option("Show a traceback with an error.", "--debug"))


def command_of(verb: str, request: type[Request]) -> Any:
    """Returns the command of a verb, for click."""
    made = parameters(request)
    lists = {p.name for p in made if get_origin(p.type) is tuple}

    def command(**given: Any) -> None:
        debug = given.pop("debug", False)
        given.update({name: tuple(given[name] or ()) for name in lists})
        try:
            with reported(debug, given.get("json", False)):
                status = build(request, given).run()
        except typer.Exit as error:
            raise typer.Exit(request.failure or error.exit_code) from None
        if status:
            raise typer.Exit(status)

    listed = [_typed(p) for p in (*made, *((DEBUG,) if request.has_debug else ()))]
    command.__signature__ = inspect.Signature(listed)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {p.name: p.annotation for p in listed}
    command.__doc__ = request.__doc__
    app = typer.Typer(**SETTINGS)
    named = {flag: p.about.elsewhere for p in made if isinstance(p.about, Option) for flag in _flags(p)}
    bare = {flag: p.about.bare for p in made if isinstance(p.about, Option) and p.about.bare for flag in _flags(p)}
    app.command(verb, cls=type("Command", (_Command,), {"elsewhere": named, "bare": bare}))(command)
    return typer.main.get_command(app)


class _Command(TyperCommand):
    """A command that refuses the values of another tool with a text of their own."""

    elsewhere: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """For each option, the texts of such values."""
    bare: ClassVar[Mapping[str, str]] = {}
    """The values of options that are given without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for argument, following in zip(args, [*args[1:], ""], strict=False):
            flag, equals, value = argument.partition("=")
            told = self.elsewhere.get(flag, {}).get(value if equals else following)
            if told is not None:
                raise typer.BadParameter(told, ctx=ctx, param_hint=f"'{flag}'")
        end = args.index("--") if "--" in args else len(args)
        given = [f"{a}={self.bare[a]}" if a in self.bare else a for a in args[:end]]
        return super().parse_args(ctx, [*given, *args[end:]])


def _flags(parameter: Parameter) -> tuple[str, ...]:
    flags = parameter.about.flags if isinstance(parameter.about, Option) else ()
    return flags or (f"--{parameter.name.replace('_', '-')}",)


def _typed(parameter: Parameter) -> inspect.Parameter:
    """Returns a parameter for typer."""
    kind, about = parameter.type, parameter.about
    default = inspect.Parameter.empty if parameter.default is MISSING else parameter.default
    if get_origin(kind) is tuple:
        kind, default = list[str] | None, None
    if isinstance(about, Argument):
        info: Any = typer.Argument(help=about.help)
    else:
        info = typer.Option(
            *about.flags,
            help=about.help,
            metavar=about.metavar,
            min=about.min,
            max=about.max,
            autocompletion=getattr(values, about.completes) if about.completes else None,
            show_default=about.show_default and default not in ("", None),
        )
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


class Commands(dict[str, Any]):
    """The commands by verb, made when they are read."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(VERBS))

    def __getitem__(self, verb: str) -> Any:
        if super().__getitem__(verb) is None:
            self[verb] = command_of(verb, request_of(verb))
        return super().__getitem__(verb)

    def get(self, verb: str, default: Any = None) -> Any:
        """Returns a command, or `default` for an unknown verb."""
        return self[verb] if verb in self else default  # noqa: SIM401

    def items(self) -> Any:
        """Returns pairs of a verb and its command."""
        return list(self._pairs())

    def values(self) -> Any:
        """Returns the commands."""
        return [command for _, command in self._pairs()]

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        return ((verb, self[verb]) for verb in self)


class Verbs(TyperGroup):
    """The group of all verbs: its help lists them by purpose, one line each."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, VERBS))
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:{width}}", summary(request_of(verb))) for verb in verbs])
