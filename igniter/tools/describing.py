"""What a pass is: its summary, its options with their descriptions, the unit of its rewrites, and its counts."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.observation.statistics import declared
from igniter.pipelines import PIPELINES
from igniter.registry import UnknownName, all_passes, load_pass, where_pass
from igniter.rewrite_budget import what_counts

if TYPE_CHECKING:
    from xdsl.utils.arg_spec import ArgSpecConvertible


@dataclasses.dataclass(frozen=True)
class PassOption:
    """An option, as written in a pipeline."""

    name: str
    type: str
    default: str
    """The default as text, or `required`."""
    description: str

    def __str__(self) -> str:
        text = f"{self.name}: {self.type} = {self.default}"
        return f"{text}  {self.description}" if self.description else text


def summary_of(documented: Any) -> str:
    """Returns the first sentence of a class's docstring, or of its module's if the class has none."""
    text = str(getattr(documented, "__doc__", None) or "")
    if not text or text.startswith(f"{documented.__name__}("):  # the default docstring of @dataclass
        text = sys.modules[documented.__module__].__doc__ or ""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".")


def options_of(pass_type: type[ArgSpecConvertible]) -> list[PassOption]:
    """Returns the options of a pass or of an author."""
    described = _field_docstrings(pass_type)
    rows: list[PassOption] = []
    for option in dataclasses.fields(pass_type):
        if option.default is not dataclasses.MISSING:
            default = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
        elif option.default_factory is not dataclasses.MISSING:
            default = str(option.default_factory())
        else:
            default = "required"
        text = described.get(option.name, "")
        rows.append(PassOption(option.name.replace("_", "-"), _type_name(option.type), default, text))
    return rows


def _type_name(kind: Any) -> str:
    """Returns a field's type as its source has it: text under `from __future__ import annotations`, else an object."""
    return kind.__name__ if type(kind) is type else str(kind)


def _field_docstrings(documented: type) -> dict[str, str]:
    """Returns the strings under the fields of a class and of its bases, from their sources; empty without sources."""
    found: dict[str, str] = {}
    for each in reversed(documented.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        body = _classes(each.__module__).get(each.__name__, [])
        for statement, following in pairwise(body):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = _string(following)
                if text:
                    found[statement.target.id] = text
    return found


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    """Returns the bodies of a module's classes; empty without its source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def _string(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""


def to_dict(name: str, pass_type: type[Any], where: str) -> dict[str, Any]:
    """Returns a pass for JSON."""
    return {
        "name": name,
        "summary": summary_of(pass_type),
        "class": where,
        "options": [dataclasses.asdict(option) for option in options_of(pass_type)],
        **({"one_rewrite": what_counts(pass_type)} if what_counts(pass_type) else {}),
        **({"statistics": [s.counted for s in declared(pass_type)]} if declared(pass_type) else {}),
    }


def help_of(name: str) -> str:
    """Returns the help of a pass or a named pipeline; raises `IgniterError` for another name."""
    where = where_pass(name)
    if where is None:
        if name in PIPELINES:
            return f"{name} is a pipeline:\n\n" + "".join(f"    {each}\n" for each in PIPELINES[name])
        raise IgniterError(str(UnknownName("pass or pipeline", name, {**all_passes(), **PIPELINES})))
    pass_type = load_pass(name)
    module = sys.modules[pass_type.__module__]
    text = inspect.cleandoc(module.__doc__ or pass_type.__doc__ or "")
    parts = [text, f"class: {where}"]
    if options := options_of(pass_type):
        parts.append("options:\n" + "\n".join(f"  {option}" for option in options))
    if what_counts(pass_type):
        parts.append(f"one rewrite, for --stop-after: {what_counts(pass_type)}")
    if counts := declared(pass_type):
        parts.append("counts, for --pass-statistics:\n" + "\n".join(f"  {count.counted}" for count in counts))
    return "\n\n".join(filter(None, parts)) + "\n"
