"""Authors by name: the deciders of fusion (`fusion/author.py`) or of schedules (`igniter/schedules/author.py`).

An author is a frozen dataclass derived from the base of its kind. Its fields are its options, each with a type and a
default, like those of a pass: `NAME`, or `NAME{option=value ...}`. `AuthorKind.make` makes one from such a text.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, _convert_arg_to_type, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from igniter.errors import IgniterError


class AuthorError(IgniterError):
    """A failed author, or an invalid answer of one."""

    code = "IGN0401"
    exit_status = 4


A = TypeVar("A", bound=ArgSpecConvertible)


@dataclass(frozen=True)
class AuthorKind(Generic[A]):
    """The common properties of the authors of one kind."""

    what: str
    """The name of the kind in errors: `fusion author`."""
    base: type[A]
    load: Callable[[str], Any]
    """Looks up an author by name; raises `UnknownName` if there is no such author."""

    def make(
        self, text: str, asked: Mapping[str, object] | None = None, figures: Mapping[str, object] | None = None
    ) -> A:
        """Returns the author of `text`, `NAME` or `NAME{option=value ...}`; raises `IgniterError` for an invalid text.

        `asked` are options given to the pass: the author has to have them, and the text must not repeat them. `figures`
        of the target set the otherwise unset fields of these names.
        """
        spec = self._parse(text)
        author_type = self._type(spec.name)
        fields = [f.name for f in dataclasses.fields(author_type)]  # pyright: ignore[reportArgumentType]
        given = self._given(spec, author_type, fields)
        for option, value in (asked or {}).items():
            self._require_option(spec.name, option, fields)
            if option in given:
                spelled = option.replace("_", "-")
                raise IgniterError(
                    f"'{spelled}' is given both to the pass and to the {self.what} '{spec.name}'; give it once"
                )
            given[option] = value
        given = {**{name: value for name, value in (figures or {}).items() if name in fields}, **given}
        missing = [name.replace("_", "-") for name in sorted(author_type.required_fields() - given.keys())]
        if missing:
            raise IgniterError(f"the {self.what} '{spec.name}' needs a value for {', '.join(missing)}")
        try:
            return author_type(**given)
        except (TypeError, ValueError) as error:
            raise IgniterError(f"the {self.what} '{spec.name}' rejects its options: {error}") from error

    def _parse(self, text: str) -> ArgSpec:
        try:
            parsed = list(parse_pipeline(text))
        except ArgSpecParseError as error:
            raise IgniterError(f"cannot read the {self.what} '{text}': {error}") from error
        if len(parsed) != 1:
            raise IgniterError(f"'{text}' is not a {self.what}; write NAME or NAME{{option=value other=value}}")
        return parsed[0]

    def _type(self, name: str) -> type[A]:
        found: Any = self.load(name)
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise IgniterError(
                f"the {self.what} '{name}' is {found!r}; it must be a class derived from "
                f"{self.base.__module__}.{self.base.__qualname__}"
            )
        return found

    def _given(self, spec: ArgSpec, author_type: type[A], fields: Sequence[str]) -> dict[str, Any]:
        """Returns the options in the text."""
        hints = get_type_hints(author_type)
        given: dict[str, Any] = {}
        for option, value in spec.normalize_parameter_names().parameters.items():
            self._require_option(spec.name, option, fields)
            given[option] = self._converted(spec.name, option, value, hints[option])
        return given

    def _require_option(self, name: str, option: str, fields: Sequence[str]) -> None:
        if option in fields:
            return
        spelled, known = option.replace("_", "-"), [f.replace("_", "-") for f in fields]
        close = difflib.get_close_matches(spelled, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        has = f"its options are {', '.join(known)}" if known else "it has no options"
        raise IgniterError(f"the {self.what} '{name}' has no option '{spelled}': {has}{hint}")

    def _converted(self, name: str, option: str, value: tuple[Any, ...], kind: Any) -> Any:
        """Returns the value of an option, checked against its type by the rules for options of passes."""
        try:
            return _convert_arg_to_type(value, kind)
        except ValueError:
            wanted = " or ".join(map(str, get_args(kind))) or getattr(kind, "__name__", str(kind))
            shown = ",".join(map(str, value)) or "nothing"
            raise IgniterError(
                f"the option '{option.replace('_', '-')}' of the {self.what} '{name}' is {wanted}, not {shown}"
            ) from None
