"""Completions of shells after `igniter` and `igniter-opt`: the answers of the programs, and real shells that ask."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
import typer

from igniter.registry import PASSES
from igniter.toolbox.request import parameters
from igniter.tools.completion import REQUEST, Answer, answer_for
from igniter.tools.completion.opt import answer as answer_opt
from igniter.tools.completion.request import CompletionRequest
from igniter.tools.completion.scripts import SCRIPTS
from igniter.tools.igniter_opt import build_parser
from igniter.tools.main import app
from tests.docs.transcripts import ROOT

COMMAND = typer.main.get_command(app)


def words(line: str) -> list[str]:
    """The completions at the end of a command line of `igniter` or `igniter-opt`; `["<files>"]` for files."""
    program, *before, last = line.split(" ")
    found = answer_for(COMMAND, before, last) if program == "igniter" else answer_opt(build_parser(), before, last)
    return [f"<{found.kind}>"] if found.kind in ("files", "nothing") else [word for word, _ in found.words]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("igniter comp", ["compile", "compress", "completion"]),
        ("igniter completion ", ["bash", "zsh", "fish"]),
        ("igniter --vers", ["--version"]),
        ("igniter compile --winog", ["--winograd"]),
        ("igniter compile --winograd ", ["off", "auto", "on", "2", "4"]),
        ("igniter compile --precision=int", ["--precision=int8-dynamic"]),
        ("igniter compile ", ["<files>"]),
        ("igniter compile model.onnx -o ", ["<files>"]),
        ("igniter compile --machine=", ["<files>"]),
        ("igniter bench model.onnx --json ", ["<files>"]),
        ("igniter bench model.onnx --rounds ", ["<nothing>"]),
        ("igniter bench --rounds=", ["<nothing>"]),
        ("igniter bench --no-such", ["<nothing>"]),
        ("igniter no-such ", ["<nothing>"]),
        ("igniter no-such", ["<nothing>"]),
        ("igniter compile --target nat", ["native"]),
        ("igniter compile --target native,cuda:sm_9", ["native,cuda:sm_90"]),
        ("igniter compile --target=native,nat", ["<nothing>"]),
        ("igniter bench --target x86-64-v4+avx512bf16+avx512vn", ["x86-64-v4+avx512bf16+avx512vnni"]),
        ("igniter bench --target vax+", ["<nothing>"]),
        ("igniter compile --fusion-author d", ["default"]),
        ("igniter reduce -p infer-shapes,fold-cons", ["infer-shapes,fold-constants"]),
        ("igniter-opt --emit=l", ["--emit=linalg", "--emit=llvm"]),
        ("igniter-opt --remarks=", ["--remarks=text", "--remarks=json"]),
        ("igniter-opt --remarks ", ["<files>"]),
        ("igniter-opt model.onnx -o ", ["<files>"]),
        ("igniter-opt --check-seed ", ["<nothing>"]),
        ("igniter-opt --target zn", ["znver1", "znver2", "znver3", "znver4", "znver5"]),
        ("igniter-opt -p cpu-sched", ["cpu-schedule"]),
        ("igniter-opt --print-ir-after tile-l", ["tile-loops"]),
        ("igniter-opt -p cse,tile-loops{ax", ["cse,tile-loops{axis="]),
        ("igniter-opt -p tile-loops{axis=1,2}", ["<nothing>"]),
        ("igniter-opt -p tile-loops{axis=1},tile-l", ["tile-loops{axis=1},tile-loops"]),
        ("igniter-opt -p no-such{", ["<nothing>"]),
        ("igniter-opt --tile-loops=si", ["--tile-loops=size="]),
        ("igniter-opt --tile-l", ["--tile-loops"]),
        ("igniter-opt ", ["<files>"]),
    ],
)
def test_what_is_offered(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_every_option_and_command_is_offered() -> None:
    assert set(words("igniter ")) == set(COMMAND.commands)  # pyright: ignore
    for name, command in COMMAND.commands.items():  # pyright: ignore
        options = {option for p in command.params for option in p.opts if option.startswith("--")}
        assert options <= set(words(f"igniter {name} --"))
    assert not {f"--{name}" for name in PASSES} & set(words("igniter-opt --"))
    assert {f"--{name}" for name in PASSES if name[0] == "f"} <= set(words("igniter-opt --f"))


def test_options_within_braces_take_spaces() -> None:
    found = answer_opt(build_parser(), ["-p"], "tile-loops{axis=1 si")
    assert found == Answer("open", (("tile-loops{axis=1 size=", ""),))


def test_a_backend_of_another_package_has_its_targets_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    from igniter import registry

    monkeypatch.setitem(registry.BACKENDS, "card", "tests.tools.test_completion:CardBackend")
    assert words("igniter compile --target car") == ["carmel", "card"]
    assert words("igniter compile --target card:") == ["card:one", "card:two"]


class CardBackend:
    def target_names(self, start: str) -> list[str]:
        return [name for name in ("card", "card:one", "card:two") if name.startswith(start)]


def test_there_is_a_script_for_each_shell() -> None:
    (shell,) = parameters(CompletionRequest)
    assert get_args(shell.type) == tuple(SCRIPTS)


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("IGNITER_CACHE_DIR", REQUEST)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**own, "PATH": path, "PYTHONPATH": str(ROOT), "TERM": "dumb", "HISTFILE": "/dev/null"}


@pytest.mark.parametrize("program", ["igniter", "igniter-opt"])
def test_an_answer_imports_nothing_heavy(program: str) -> None:
    code = f"from igniter.tools.{'main' if program == 'igniter' else 'igniter_opt'} import main; main()"
    text = f"import sys; sys.argv = ['x', '--target', 'nat']\n{code}\nprint('LOADED', len(sys.modules), *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", text], env={**environment(), REQUEST: "1"}, capture_output=True, text=True, check=True
    )
    count, *loaded = done.stdout.splitlines()[-1].split()[1:]
    assert int(count) < 300
    assert not {"numpy", "onnx", "onnxruntime", "llvmlite", "xdsl", "rich"} & set(loaded)


class Terminal:
    """An interactive shell. Ctrl-T has it print the line that is being written, as `<<line>>`."""

    def __init__(self, command: list[str], folder: Path):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment(), start_new_session=True
        )
        os.close(slave)
        self._folder = folder
        self._seen = ""

    def send(self, text: str, until: str, seconds: float = 60) -> str:
        """Type, and wait for what matches `until`."""
        os.write(self._master, text.encode())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(until, self._seen)
            if found is not None:
                self._seen = self._seen[found.end() :]
                return found[(found.re.groups and 1) or 0]
            if select.select([self._master], [], [], 0.1)[0]:
                self._seen += os.read(self._master, 65536).decode(errors="replace").replace("\r", "")
        raise AssertionError(f"nothing like {until!r} within {seconds} s: {self._seen!r}")

    def read(self, script: str) -> None:
        """Have the shell read a script."""
        (self._folder / ".setup").write_text(f"{script}PS1='READY> '\n")
        self.send(". ./.setup\n", r"READY> ")

    def completed(self, line: str) -> str:
        """The line after TAB."""
        found = self.send(f"{line}\t\x14", r"<<(.*)>>")
        self.send("\x15\n", r"READY>")
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


BASH = """bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
_show() { printf '<<%s>>\\n' "$READLINE_LINE"; }; bind -x '"\\C-t": _show'
eval "$(igniter completion bash)"
"""
ZSH = """autoload -U compinit; compinit -D; unsetopt zle_bracketed_paste
show() { print -r -- "<<$BUFFER>>"; }; zle -N show; bindkey '^T' show; bindkey '^U' kill-whole-line;
bindkey '^I' expand-or-complete
eval "$(igniter completion zsh)"
"""
LINES = [
    ("igniter insp", "igniter inspect "),
    ("igniter compile --winogr", "igniter compile --winograd "),
    ("igniter compile --precision=int", "igniter compile --precision=int8-dynamic "),
    ("igniter compile --target=nativ", "igniter compile --target=native "),
    ("igniter compile --target native,cuda:sm_9", "igniter compile --target native,cuda:sm_90 "),
    ("igniter compile a_mod", "igniter compile a_model.onnx "),
    ("igniter compile --machine=a_mod", "igniter compile --machine=a_model.onnx "),
    ("igniter-opt a_model.onnx -p cse,tile-l", "igniter-opt a_model.onnx -p cse,tile-loops"),
    ("igniter-opt --print-ir-after tile-l", "igniter-opt --print-ir-after tile-loops"),
    ("igniter-opt --emit=ll", "igniter-opt --emit=llvm "),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "setup"), [(["bash", "--norc", "-i"], BASH), (["zsh", "-f", "-i"], ZSH)], ids=["bash", "zsh"]
)
def test_a_shell_completes(command: list[str], setup: str, tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / "a_model.onnx").touch()
    terminal = Terminal(command, tmp_path)
    try:
        terminal.read(setup)
        found = [terminal.completed(line) for line, _ in LINES]
    finally:
        terminal.close()
    assert found == [expected for _, expected in LINES]


def test_bash_keeps_an_open_quote(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    terminal = Terminal(["bash", "--norc", "-i"], tmp_path)
    try:
        terminal.read(BASH)
        line = terminal.completed('igniter-opt -p "tile-loops{axis=1 si')
        unknown = terminal.completed("igniter bench --rounds test")
    finally:
        terminal.close()
    # Readline itself closes the quote.
    assert line == 'igniter-opt -p "tile-loops{axis=1 size="'
    assert unknown == "igniter bench --rounds test"


@pytest.mark.slow
def test_fish_completes(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    (tmp_path / "a_model.onnx").touch()
    lines = [*LINES, ("igniter completion ", ""), ("igniter bench --rounds ", "")]
    script = "igniter completion fish | source\n" + "".join(f"complete -C '{line}'; echo ==\n" for line, _ in lines)
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    parts = done.stdout.split("==\n")[: len(lines)]
    # Where several lines come out, they are what there is to choose from; the text behind a tab is the help.
    offered = [[each.partition("\t")[0] for each in part.splitlines()] for part in parts]
    assert offered[:-2] == [[expected.split(" ")[-1] or expected.split(" ")[-2]] for _, expected in LINES], done.stderr
    assert sorted(offered[-2]) == ["bash", "fish", "zsh"]
    assert offered[-1] == []
