"""The measures of the project's English: `python -m tests.words [PATH ...]`.

| column | is |
| --- | --- |
| `words` | words of docstrings and comments, or of a page's prose |
| `per 1000` | how many of them are *what*, *which* or *that* |
| `openings` | percent of the docstrings that begin with What, Whether, Which or How |
| `idioms` | phrases that the field does not use (`IDIOMS`) |

`--list` prints each opening and idiom with its line.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
RELATIVES = frozenset({"what", "which", "that"})
OPENING = re.compile(r"\s*(What|Whether|Which|How)\b")
IDIOMS = re.compile(
    r"\b(hangs? on|is said|are said|is told|are told|goes that|go that|told nothing|so many|there is none"
    r"|there are none|those that|the ones that|one that there is|stands? for|as of|at the rim|the rim|tells? apart"
    r"|told apart)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`")


@dataclass
class Count:
    """The measures of some text."""

    words: int = 0
    relatives: int = 0
    docstrings: int = 0
    openings: list[str] = field(default_factory=list[str])
    idioms: list[str] = field(default_factory=list[str])

    def add(self, place: str, text: str) -> None:
        """Counts `text`; code between backticks is no prose."""
        prose = CODE.sub("", text)
        found = WORD.findall(prose)
        self.words += len(found)
        self.relatives += sum(w.lower() in RELATIVES for w in found)
        self.idioms += [f"{place}: {m.group(0)}" for m in IDIOMS.finditer(prose)]

    def add_docstring(self, place: str, text: str) -> None:
        """Counts a docstring, and how it begins."""
        self.docstrings += 1
        if OPENING.match(text):
            self.openings.append(f"{place}: {text.strip().splitlines()[0]}")
        self.add(place, text)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, those of attributes among them."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for at, statement in enumerate(body):
            value = statement.value if isinstance(statement, ast.Expr) else None
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                continue
            if at == 0 or isinstance(body[at - 1], ast.Assign | ast.AnnAssign):
                yield statement.lineno, value.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment, without directives of tools."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(type:|noqa|pyright|ruff|pragma|!)", token.string):
            yield token.start[0], token.string.lstrip("# ")


def count_python(path: Path, count: Count) -> None:
    """Adds a Python file's docstrings and comments."""
    source = path.read_text()
    name = path.relative_to(ROOT)
    for line, text in docstrings(ast.parse(source)):
        count.add_docstring(f"{name}:{line}", text)
    for line, text in comments(source):
        count.add(f"{name}:{line}", text)


def count_page(path: Path, count: Count) -> None:
    """Adds a page's prose: no code blocks."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            count.add(f"{path.relative_to(ROOT)}:{number}", line)


def measure(paths: list[Path]) -> dict[str, Count]:
    """The counts by package of igniter/, by folder elsewhere."""
    counts: dict[str, Count] = defaultdict(Count)
    for path in sorted(paths):
        parts = path.relative_to(ROOT).parts
        key = "/".join(parts[: 2 if len(parts) > 2 else 1]) if path.suffix == ".py" else parts[0]
        (count_python if path.suffix == ".py" else count_page)(path, counts[key])
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "igniter", ROOT / "docs", ROOT / "README.md"])
    parser.add_argument("--list", action="store_true", help="print each opening and idiom")
    options = parser.parse_args()
    files: list[Path] = []
    for path in (p.resolve() for p in options.paths):
        found = [q for q in path.rglob("*") if q.suffix in (".py", ".md")] if path.is_dir() else [path]
        files += [q for q in found if "site" not in q.parts]
    total = Count()
    print(f"{'':28} {'words':>7} {'per 1000':>8} {'docstrings':>10} {'openings':>8} {'idioms':>6}")
    for key, count in sorted(measure(files).items()):
        _line(key, count)
        total.words += count.words
        total.relatives += count.relatives
        total.docstrings += count.docstrings
        total.openings += count.openings
        total.idioms += count.idioms
    _line("all", total)
    if options.list:
        print(*total.openings, *total.idioms, sep="\n")
    return 0


def _line(key: str, c: Count) -> None:
    share = 100 * len(c.openings) / max(c.docstrings, 1)
    rate = 1000 * c.relatives / max(c.words, 1)
    print(f"{key:28} {c.words:7} {rate:8.1f} {c.docstrings:10} {share:7.1f}% {len(c.idioms):6}")


if __name__ == "__main__":
    sys.exit(main())
