"""Requests: each verb of the toolbox, declared once.

A verb is a frozen dataclass, a `Request`, in `igniter/toolbox/VERB/request.py`. Its fields are the arguments and
options of the verb, with types, defaults and help:

    @dataclass(frozen=True)
    class GreetRequest(Request):
        \"\"\"Greet a model.\"\"\"

        model: Annotated[str, Argument("The ONNX model.")]
        times: Annotated[int, Option("How often.", min=1)] = 1

`igniter.tools.command` makes the command line and its completion from the fields, `schema` the JSON schema. A field
whose type is a dataclass is a group: its fields are options of the verb too, all or those of `Some`.

A request is light: `igniter --help` imports all of them. The verb itself is the function `run(request)` of `show.py` in
the same folder, unless `entry` names another one; its module is imported when the verb runs, and imports the rest at
its top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib import import_module
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Argument:
    """A field given by its place on the command line."""

    help: str


@dataclass(frozen=True, init=False)
class Option:
    """A field given by name: by `flags`, or by the name of the field if there are none."""

    help: str
    flags: tuple[str, ...]
    metavar: str | None
    min: float | None
    max: float | None
    completes: str
    """The function of `igniter.tools.completion.values` for completions; "" for none."""
    show_default: bool
    """False if the default stands for no value."""
    elsewhere: Mapping[str, str]
    """Values that another tool takes, each with the text of the error."""
    bare: str
    """The value of the option without `=VALUE`; "" if it always has one."""

    def __init__(
        self,
        help: str,
        *flags: str,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        completes: str = "",
        show_default: bool = True,
        elsewhere: Mapping[str, str] | None = None,
        bare: str = "",
    ):
        given = (help, flags, metavar, min, max, completes, show_default, elsewhere or {}, bare)
        for field, value in zip(fields(self), given, strict=True):
            object.__setattr__(self, field.name, value)


class Some(tuple[str, ...]):
    """The fields of a group that a verb has; the others keep their defaults."""

    def __new__(cls, *names: str) -> Some:
        return super().__new__(cls, names)


class Request:
    """A verb and its options. The first paragraph of the docstring is the verb's line in `igniter --help`."""

    has_debug: ClassVar[bool] = True
    """True if an error may show its traceback, with `--debug`."""
    failure: ClassVar[int | None] = None
    """The exit status of any error, if it is not the usual one."""
    entry: ClassVar[str] = "show:run"
    """The function that performs the verb on a request, as `MODULE:FUNCTION` of the package of the request's class."""

    def run(self) -> int | None:
        """Performs the verb and prints its result; returns the exit status, `None` for 0."""
        return entry_of(type(self))(self)


def entry_of(request: type[Request]) -> Callable[[Request], int | None]:
    """Returns the function that performs a verb; imports its module."""
    module, _, function = request.entry.partition(":")
    package = request.__module__.rpartition(".")[0]
    return getattr(import_module(f"{package}.{module}"), function)


@dataclass(frozen=True)
class Parameter:
    """A field of a request, or of a group in it."""

    name: str
    type: Any
    """`bool`, `int`, `float`, `str`, a `Literal`, `tuple[str, ...]`, or one of these or `None`."""
    default: Any
    """`MISSING` if the field must be given."""
    about: Argument | Option
    group: str = ""
    """The field of the request with the group; "" for a field of the request itself."""


def parameters(request: type[Any], group: str = "", names: tuple[str, ...] | None = None) -> list[Parameter]:
    """Returns the fields of a request, in order, those of groups in the place of the groups."""
    hints = get_type_hints(request, include_extras=True)
    found: list[Parameter] = []
    for field in fields(request):
        if names is not None and field.name not in names:
            continue
        hint = hints[field.name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if is_dataclass(kind) and isinstance(kind, type):
            some = next((note for note in notes if isinstance(note, Some)), None)
            found += parameters(kind, field.name, some)
        else:
            about = next(note for note in notes if isinstance(note, (Argument, Option)))
            found.append(Parameter(field.name, kind, field.default, about, group))
    return found


R = TypeVar("R", bound=Request)


def build(request: type[R], given: Mapping[str, Any]) -> R:
    """Returns a request from the values of its parameters, by name."""
    own: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for parameter in parameters(request):
        if parameter.name in given:
            into = groups.setdefault(parameter.group, {}) if parameter.group else own
            into[parameter.name] = given[parameter.name]
    hints = get_type_hints(request)
    return request(**own, **{name: hints[name](**values) for name, values in groups.items()})


def summary(request: type[Request]) -> str:
    """Returns the verb's line in `igniter --help`."""
    return " ".join((request.__doc__ or "").partition("\n\n")[0].split())


def schema(request: type[Request]) -> dict[str, Any]:
    """Returns the JSON schema of a request: its fields with types, defaults and help."""
    listed = parameters(request)
    return {
        "title": request.__name__,
        "description": summary(request),
        "type": "object",
        "properties": {p.name: _property(p) for p in listed},
        "required": [p.name for p in listed if p.default is MISSING],
        "additionalProperties": False,
    }


_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _property(parameter: Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {**_json_type(parameter.type), "description": parameter.about.help}
    if parameter.default is not MISSING:
        made["default"] = [] if parameter.default == () else parameter.default
    if isinstance(parameter.about, Option):
        limits = {"minimum": parameter.about.min, "maximum": parameter.about.max}
        made |= {name: limit for name, limit in limits.items() if limit is not None}
    return made


def _json_type(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": {"type": "string"}}
    if NoneType in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
        inner = _json_type(kind)
        return {"enum": [*inner["enum"], None]} if "enum" in inner else {"type": [inner["type"], "null"]}
    return {"type": _JSON_TYPES[kind]}
