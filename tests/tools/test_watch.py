"""What `igniter` says when native code takes its process down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from igniter.activity import BOARD_BYTES, Activity
from igniter.tools.watch import explain
from tests.hostile.base import FLOAT, info, model_of

# A run under nohup ignores hang-ups, and its children inherit that.
SETUP = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from igniter.activity import doing, leaving
from igniter.tools.watch import watched
watched(sys.argv[1:])
"""


def ended(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A watched process that runs `code`."""
    return subprocess.run([sys.executable, "-c", SETUP + code, *arguments], capture_output=True, text=True, check=False)


CRASH = "os.kill(os.getpid(), signal.SIGSEGV)\n"


def test_what_onnxruntime_crashes_on_is_an_error_of_one_paragraph() -> None:
    done = ended(f"with doing('the original was loaded', runs='onnxruntime', hint='try --no-verify'):\n    {CRASH}")
    assert done.returncode == 1
    assert done.stdout == ""
    # Before it are a line for each stage.
    assert done.stderr[done.stderr.index("igniter:") :] == (
        "igniter: error: ONNX Runtime itself crashes on this model (SIGSEGV, an access to memory that is not its own), "
        "while the original was loaded; try --no-verify\n"
    )


def test_json_says_it_too() -> None:
    done = ended(f"with doing('the pass tile-loops ran'):\n    {CRASH}", "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert error["kind"] == "internal error"
    assert "(SIGSEGV, an access to memory that is not its own), while the pass tile-loops ran" in error["message"]


def test_the_innermost_is_told_and_what_is_over_is_not() -> None:
    inside = "    with doing('two'): pass\n    with doing('three'):\n        "
    assert "while three" in ended(f"with doing('one'):\n{inside}{CRASH}").stderr
    assert "while one" in ended(f"with doing('one'):\n{inside}pass\n    {CRASH}").stderr
    assert "while" not in ended(f"with doing('one'): pass\n{CRASH}").stderr


def test_where_kernels_ran_before_the_blame_is_not_onnxruntimes_alone() -> None:
    done = ended(f"with doing('k', runs='kernels'): pass\nwith doing('o', runs='onnxruntime'):\n    {CRASH}")
    assert done.returncode == 2
    assert done.stderr.startswith("igniter: internal error: the process crashed (SIGSEGV")


def test_names_are_of_any_length_and_of_any_characters() -> None:
    done = ended(f"with doing('a' * {BOARD_BYTES}):\n    {CRASH}")
    assert done.stderr.startswith("igniter: internal error: the process crashed (SIGSEGV")
    done = ended(f"with doing('\\x1b[31m red ' + 'a' * 9000):\n    {CRASH}")
    assert "\\x1b[31m red" in done.stderr and len(done.stderr) < 2200


def test_a_folder_that_was_to_go_is_gone(tmp_path: Path) -> None:
    (tmp_path / "staging").mkdir()
    (tmp_path / "staging" / "model.onnx").touch()
    ended(f"with leaving(sys.argv[1]):\n    {CRASH}", str(tmp_path / "staging"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("code", "status"), [("sys.exit(7)", 7), ("pass", 0), ("raise SystemExit('no')", 1)])
def test_the_exit_status_is_the_childs(code: str, status: int) -> None:
    assert ended(code).returncode == status


def waiting(code: str = "") -> tuple[subprocess.Popen[str], int]:
    """A watched process that sleeps, and its child's number."""
    code = f"{SETUP}{code}\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_over(child: int) -> bool:
    for _ in range(500):
        try:
            if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_reaches_the_child_and_ends_both_by_it(number: int) -> None:
    process, child = waiting()
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (-number, "")
    assert is_over(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_the_child_does_not_outlive_its_watcher() -> None:
    process, child = waiting()
    process.kill()
    process.communicate(timeout=30)
    assert is_over(child)


def test_a_kill_is_told() -> None:
    process, child = waiting("d = doing('the stage \"llvm\" ran'); d.__enter__()")
    os.kill(child, signal.SIGKILL)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert said.startswith(
        'igniter: error: killed, while the stage "llvm" ran: by the system, which does so when memory'
    )


def test_signals_that_have_no_name_are_told() -> None:
    assert explain("signal 63", Activity("x")) == (False, "the process crashed (signal 63), while x")


CRASHING = """
import os, signal, sys
import onnxruntime
class Session(onnxruntime.InferenceSession):
    def run(self, *arguments, **options):
        os.kill(os.getpid(), signal.SIGFPE)
onnxruntime.InferenceSession = Session
from igniter.tools.main import main
main()
"""


@pytest.mark.slow
def test_compile_tells_where_the_original_crashes_and_leaves_nothing(tmp_path: Path) -> None:
    from onnx import helper

    node = helper.make_node("Relu", ["x"], ["y"])
    data = model_of([node], [info("x", FLOAT, [2, 3])], [info("y", FLOAT, [2, 3])]).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    arguments = ["compile", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "out"), "--no-cache"]
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    # Before it are a line for each stage.
    assert done.stderr[done.stderr.index("igniter:") :] == (
        "igniter: error: ONNX Runtime itself crashes on this model (SIGFPE, a division of integers by zero), while the "
        "original ran, with inputs of the dims x 2x3; give other inputs with --shape or --inputs, or --no-verify "
        "compiles the model without running the original\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
