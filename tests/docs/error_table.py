"""The table of error codes on its page: `python -m tests.docs.error_table` writes it anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from igniter.errors import INVALID_IR

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "errors.md"
TABLE = re.compile(r"(?<=<!-- codes -->\n).*?(?=<!-- end of codes -->)", re.DOTALL)
BASE = "IgniterError"
FIXED = (
    ("IGN0000", "any other exception", 2, "A fault of Igniter, or a crash of native code."),
    (INVALID_IR, "xDSL's `ParseError`, `VerifyException`", 1, "IR that cannot be read, or that does not verify."),
    ("IGN0002", "OSError", 1, "An error of the operating system: a missing file, a full disk."),
)


@dataclass(frozen=True)
class ErrorClass:
    """One class of errors; `code` is "" if the class does not define its own."""

    name: str
    module: str
    bases: tuple[str, ...]
    code: str
    exit_status: int | None
    about: str


def classes() -> list[ErrorClass]:
    """Returns `IgniterError` and every class derived from it, read from the sources."""
    found = {each.name: each for path in sorted((ROOT / "igniter").rglob("*.py")) for each in _classes_in(path)}

    def derives(each: ErrorClass) -> bool:
        return each.name == BASE or any(base in found and derives(found[base]) for base in each.bases)

    return [each for each in found.values() if derives(each)]


def _classes_in(path: Path) -> Iterator[ErrorClass]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        values: dict[str, object] = {}
        for line in node.body:
            target = line.target if isinstance(line, ast.AnnAssign) else None
            if isinstance(line, ast.Assign):
                target = line.targets[0]
            if isinstance(target, ast.Name) and isinstance(line.value, ast.Constant):
                values[target.id] = line.value.value
        status = values.get("exit_status")
        yield ErrorClass(
            node.name,
            module,
            tuple(b.id for b in node.bases if isinstance(b, ast.Name)),
            str(values.get("code", "")),
            status if isinstance(status, int) else None,
            " ".join((ast.get_docstring(node) or "").split()),
        )


def status_of(each: ErrorClass, known: dict[str, ErrorClass]) -> int:
    """Returns the exit status of a class, its own or an inherited one."""
    if each.exit_status is not None:
        return each.exit_status
    return next(status_of(known[base], known) for base in each.bases if base in known)


def table() -> str:
    """Returns the table, in the order of codes."""
    known = {each.name: each for each in classes()}
    rows = [(e.code, f"`{e.module}.{e.name}`", status_of(e, known), e.about) for e in known.values()]
    lines = [f"| {code} | {name} | {status} | {about} |" for code, name, status, about in sorted([*rows, *FIXED])]
    return "\n".join(["| code | error | exit status | meaning |", "| --- | --- | --- | --- |", *lines, ""])


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
