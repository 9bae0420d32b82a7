"""A lit test format that runs `igniter-opt` and `filecheck` inside lit's own process.

Starting Python and importing xDSL costs some 0.3 s for each RUN line, far more than the passes take. So a RUN line
that is a plain pipe of `igniter-opt`, `filecheck`, `not` and `cat` is run by calling them; any other line (a
redirection to a file, `&&`, another tool) goes to lit's shell as always. What a tool may not do here is leave state
behind: one worker runs many tests.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import traceback
from pathlib import Path
from typing import Any

import lit.Test
import lit.TestRunner
from lit.formats import ShTest

IN_PROCESS = ("igniter-opt", "filecheck", "cat")
_SHELL = re.compile(r"&&|\|\||[;<>`$]")


class Stream(io.TextIOWrapper):
    """A text stream over memory whose bytes can be read back."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def data(self) -> bytes:
        self.flush()
        memory: Any = self.buffer
        return memory.getvalue()


def parse_pipe(line: str) -> list[list[str]] | None:
    """The commands of a plain pipe, or `None` where the line needs a shell."""
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", line.replace("2>&1", ""))
    if _SHELL.search(unquoted):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    for token in lexer:
        if token == "|":
            commands.append([])
        else:
            commands[-1].append(token)
    for command in commands:
        words = command[1:] if command[:1] == ["not"] else command
        if not words or words[0] not in IN_PROCESS:
            return None
    return commands


def _call(words: list[str], stdin: bytes, stdout: Stream, stderr: Stream) -> int:
    name, *arguments = words
    try:
        if name == "igniter-opt":
            from igniter.tools.igniter_opt import run

            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                return run(arguments, io.BytesIO(stdin), stdout, stderr)
        if name == "cat":
            stdout.buffer.write(b"".join(Path(a).read_bytes() for a in arguments) if arguments else stdin)
            return 0
        return _filecheck(words, stdin, stdout, stderr)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:
        # A tool must report its errors itself; one that escapes is a failure even where the test expects one.
        stderr.write(traceback.format_exc())
        return 128


def _filecheck(words: list[str], stdin: bytes, stdout: Stream, stderr: Stream) -> int:
    import sys

    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options

    previous = sys.stdin
    sys.stdin = io.StringIO(stdin.decode())
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            return Matcher.from_opts(parse_argv_options(list(words))).run()
    finally:
        sys.stdin = previous


def run_pipe(commands: list[list[str]]) -> tuple[int, str]:
    """Run the commands one after another; the first failure's status, and what was said on the way."""
    data = b""
    said: list[str] = []
    status = 0
    for command in commands:
        merged = "2>&1" in command
        words = [w for w in command if w != "2>&1"]
        inverted = words[0] == "not"
        words = words[1:] if inverted else words
        stdout = Stream()
        stderr = stdout if merged else Stream()
        code = _call(words, data, stdout, stderr)
        if inverted and code < 128:
            code = int(code == 0)
        data = stdout.data()
        if stderr is not stdout and stderr.data():
            said.append(f"# {shlex.join(words)}\n{stderr.data().decode()}")
        if code:
            said.append(f"# {shlex.join(command)}: exit status {code}\n")
            status = status or code
    if status:
        said.append(f"# output of the last command\n{data.decode(errors='replace')}")
    return status, "\n".join(said)


class InProcessTest(ShTest):
    """ShTest, but for RUN lines that need no shell."""

    def execute(self, test: Any, litConfig: Any) -> Any:
        parsed = lit.TestRunner.parseIntegratedTestScript(test, require_script=True)
        if isinstance(parsed, lit.Test.Result):
            return parsed
        directory, base = lit.TestRunner.getTempPaths(test)
        substitutions = lit.TestRunner.getDefaultSubstitutions(test, directory, base)
        conditions = dict.fromkeys(test.config.available_features, True)
        script = lit.TestRunner.applySubstitutions(parsed, substitutions, conditions, recursion_limit=None)
        pipes: list[tuple[str, list[list[str]]]] = []
        for line in script:
            match = re.fullmatch(lit.TestRunner.kPdbgRegex, line) if isinstance(line, str) else None
            commands = parse_pipe(match.group(2)) if match else None
            if match is None or commands is None:
                return super().execute(test, litConfig)
            pipes.append((match.group(2), commands))
        for text, commands in pipes:
            status, said = run_pipe(commands)
            if status:
                return lit.Test.Result(lit.Test.FAIL, f"RUN: {text}\n{said}")
        return lit.Test.Result(lit.Test.PASS)
