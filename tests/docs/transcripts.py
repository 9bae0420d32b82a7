"""The console blocks of the documentation, run: `python -m tests.docs.transcripts [PAGE...]` rewrites their outputs.

    ```console
    $ igniter-opt docs/examples/mask_softmax.mlir -p infer-shapes
    builtin.module ...
    ...
    ```

A block holds commands, each with the output that the page shows, errors included. Commands that begin with `igniter`
or `igniter-opt` are run, all those of a page in one folder, which has the repository's `docs` and `lit_tests` in it.
What a page shows must be what comes out, to the letter; `...` stands for any text within a line, and for any lines
where it stands alone. The pages of `WITH_PACKAGE` are run as if `docs/examples/my_package` were installed.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .warm import Warm

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "docs" / "examples" / "my_package"
WITH_PACKAGE = frozenset(
    (
        "docs/tutorials/add-an-op.md",
        "docs/how-to/add-a-pass.md",
        "docs/tutorials/find-a-miscompile.md",
        "docs/tutorials/my-first-pass.md",
        "docs/tutorials/riscv.md",
        "docs/tutorials/write-a-backend.md",
        "docs/how-to/write-a-fusion-author.md",
        "docs/how-to/declare-a-micro-kernel.md",
        "docs/how-to/write-a-schedule-author.md",
    )
)
RUN = re.compile(r"igniter(-opt)?( |$)")
SHELL = re.compile(r"[<>&;*$`\\]")
STAGE_LINE = re.compile(r"^compiling: \w+, [0-9.]+ s\n", re.M)
"""A line of a compile whose standard error is no terminal (`igniter.toolbox.output.progress`)."""
FENCE = "```"


@dataclass
class Command:
    """One command of a page and the lines that the page shows under it."""

    text: str
    line: int
    shown: list[str]

    @property
    def is_run(self) -> bool:
        return RUN.match(self.text) is not None

    def matches(self, output: str) -> bool:
        """True if the command's output is what the page shows."""
        return (
            re.fullmatch(_pattern(self.shown), "".join(f"{line.rstrip()}\n" for line in output.splitlines()))
            is not None
        )


def _pattern(shown: list[str]) -> str:
    parts: list[str] = []
    for line in shown:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\n")
    return "".join(parts)


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[Command]:
    """The commands of a page's console blocks, in order. A line ending in a backslash goes on in the next."""
    found: list[Command] = []
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith(FENCE):
            inside = line == f"{FENCE}console"
        elif inside and line.startswith("$ "):
            found.append(Command(line[2:], number, []))
        elif inside and found and found[-1].text.endswith("\\") and not found[-1].shown:
            found[-1].text = f"{found[-1].text[:-1].rstrip()} {line.removeprefix('>').strip()}"
        elif inside and found:
            found[-1].shown.append(line)
    return found


def environment(page: Path, folder: Path) -> dict[str, str]:
    """What a page's commands see: this Python's tools first, a cache of their own, and the package where it is due."""
    paths = [str(ROOT)]
    if page.relative_to(ROOT).as_posix() in WITH_PACKAGE:
        paths += [str(PACKAGE), str(install_metadata(folder / "site"))]
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": os.pathsep.join(paths),
        "IGNITER_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }


def install_metadata(site: Path) -> Path:
    """What an installer writes besides the package's files: its name and its entry points, as pyproject.toml says."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(groups, encoding="utf-8")
    return site


class Runner:
    """Runs the commands of one page, in `folder`."""

    def __init__(self, page: Path, folder: Path, tools: Warm):
        self._tools = tools
        self._folder = folder / "work"
        self._folder.mkdir(exist_ok=True)
        for name in ("docs", "lit_tests"):
            (self._folder / name).symlink_to(ROOT / name)
        self._environment = environment(page, folder)
        self._apart = page.relative_to(ROOT).as_posix() in WITH_PACKAGE

    def run(self, command: Command) -> str:
        """Standard output and standard error of a command."""
        first, pipe, rest = command.text.partition(" | ")
        if SHELL.search(first):
            return self._shell(command.text)
        here = first.startswith("igniter-opt ") and "--help" not in first and not self._apart
        run = self._run_here if here else self._run_apart
        output, errors = run(shlex.split(first), apart=bool(pipe))
        if not pipe:
            return output
        # Of a process, errors are seen before its pipe ends.
        return self._shell(rest, output) + errors if here else errors + self._shell(rest, output)

    def _run_apart(self, command: Sequence[str], apart: bool) -> tuple[str, str]:
        """A command in a process of its own. With `apart`, errors are not in the output."""
        output, errors = self._tools.run(command, self._folder, self._environment, apart)
        return STAGE_LINE.sub("", output), STAGE_LINE.sub("", errors)

    def _shell(self, text: str, given: str | None = None) -> str:
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self._folder,
            env=self._environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # A page shows what a terminal does, which has a spinner in the place of these lines.
        return STAGE_LINE.sub("", done.stdout)

    def _run_here(self, command: Sequence[str], apart: bool) -> tuple[str, str]:
        """`igniter-opt` in this process, which has imported what it needs already. With `apart`, errors are not in the
        output."""
        from igniter.tools.igniter_opt import run

        _, *arguments = command
        output = io.StringIO()
        errors = io.StringIO() if apart else output
        before = Path.cwd()
        os.chdir(self._folder)
        try:
            run(arguments, io.BytesIO(), output, errors)
        finally:
            os.chdir(before)
        return output.getvalue(), errors.getvalue() if apart else ""


def differences(page: Path, folder: Path, tools: Warm) -> Iterator[str]:
    """The expected and the actual output, where they differ."""
    runner = Runner(page, folder, tools)
    for command in commands(page):
        if not command.is_run:
            continue
        output = runner.run(command)
        if not command.matches(output):
            shown = "\n".join(command.shown)
            yield f"{page.relative_to(ROOT)}:{command.line}: $ {command.text}\n--- shown\n{shown}\n--- found\n{output}"


def rewrite(page: Path, folder: Path, tools: Warm) -> None:
    """Put what comes out into the page. Blocks with `...` are left as they are, and named where they do not fit."""
    runner = Runner(page, folder, tools)
    lines = page.read_text(encoding="utf-8").splitlines()
    for command in [(c, runner.run(c)) for c in commands(page) if c.is_run][::-1]:
        this, output = command
        if this.matches(output):
            continue
        if any("..." in line for line in this.shown) or (not output and this.shown):
            print(f"{page.relative_to(ROOT)}:{this.line}: by hand: $ {this.text}\n{output}")
            continue
        first = this.line
        while lines[first - 1].endswith("\\"):
            first += 1
        lines[first : first + len(this.shown)] = [line.rstrip() for line in output.splitlines()]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    import tempfile

    with Warm() as tools:
        for page in [Path(p).resolve() for p in sys.argv[1:]] or pages():
            with tempfile.TemporaryDirectory() as folder:
                rewrite(page, Path(folder), tools)


if __name__ == "__main__":
    main()
