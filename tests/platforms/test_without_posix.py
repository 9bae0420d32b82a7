"""Igniter on a system without POSIX: every module is imported, and a model compiled, loaded and verified, in a process
without the modules and functions that Windows has not. The wheel is for any system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Other packages are imported first: on Windows they take other ways, by the name of the system.
PRELUDE = """
import asyncio, concurrent.futures, ctypes, json, multiprocessing.pool, os, pathlib, shutil, signal, subprocess, sys
import tempfile
import llvmlite.binding, numpy, onnx, onnx.helper, onnx.reference, rich.live, typer, xdsl.xdsl_opt_main
os.environ["IGNITER_CACHE_DIR"] = sys.argv[1] + "/cache"
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "_posixsubprocess")
FUNCTIONS = (
    *("fork", "forkpty", "getuid", "geteuid", "getgid", "getpgid", "setpgid", "killpg", "setsid", "sched_getaffinity"),
    *("sysconf", "sysconf_names", "nice", "wait", "WIFSIGNALED", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "pread"),
    *("uname", "getloadavg", "chown", "fchown", "mkfifo", "statvfs", "posix_fadvise", "register_at_fork", "setpgrp"),
)
SIGNALS = ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGQUIT", "alarm", "setitimer")
for name in MODULES:
    sys.modules[name] = None
for name in FUNCTIONS:
    if hasattr(os, name):
        delattr(os, name)
for name in SIGNALS:
    if hasattr(signal, name):
        delattr(signal, name)
"""

IMPORT_ALL = """
import importlib, pkgutil, igniter
failed, count = [], 0
OTHERS = ("igniter.torch", "igniter.tools.torch", "igniter.backends.triton")
def note(name):
    if not name.startswith(OTHERS):
        failed.append(name)
for found in pkgutil.walk_packages(igniter.__path__, "igniter.", onerror=note):
    if found.name.startswith(OTHERS) or found.name.endswith("__main__"):
        continue
    count += 1
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        # An optional package, not a module of this system.
        if error.name is None or error.name.partition(".")[0] in MODULES:
            failed.append(f"{found.name}: {error}")
    except (ImportError, AttributeError, NameError) as error:
        failed.append(f"{found.name}: {type(error).__name__}: {error}")
print(count, "modules")
print("\\n".join(failed))
sys.exit(bool(failed))
"""

COMPILE = """
from onnx import TensorProto, helper
x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 8]) for n in "xy")
nodes = [helper.make_node("Softmax", ["x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
graph, opset = helper.make_graph(nodes, "g", [x], [y]), helper.make_opsetid("", 21)
model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
import igniter
for _ in range(2):
    artifact = igniter.load(model).compile(sys.argv[1] + "/out")
    assert artifact.report["regions"] == 1 and artifact.report["verification"]["status"] == "passed"
print(artifact.session().run(None, {"x": numpy.ones((2, 8), numpy.float32)})[0])
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, str(folder)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_module_is_imported(tmp_path: Path) -> None:
    assert int(run(IMPORT_ALL, tmp_path).split()[0]) > 500


@pytest.mark.slow
def test_a_model_is_compiled_verified_and_run(tmp_path: Path) -> None:
    assert "0.125" in run(COMPILE, tmp_path)


@pytest.mark.parametrize("module", ["fcntl", "resource"])
def test_the_modules_are_missing(module: str, tmp_path: Path) -> None:
    """The process has what it is to have: this test can fail."""
    code = f"{PRELUDE}\nimport {module}"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert done.returncode != 0 and b"ModuleNotFoundError" in done.stderr
