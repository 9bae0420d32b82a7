"""`python -m tests.extras`: the tests that need what `make test` does without, in an environment that has it.

PyTorch in its build for CPUs, its exporter and `transformers`, the documentation's tools, and, where `apt-get` can
install them, Chromium and the shells whose completion is tested. A line says what cannot be had; its tests skip with
the reason.

    TORCH_INDEX=URL make test-extras        where the usual index has only the build for CUDA, of gigabytes
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.installed.torch_builds import index_options, no_cpu_build

ROOT = Path(__file__).parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
SYSTEM = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "fish": ("fish",), "zsh": ("zsh",)}
"""Packages of the system by name, and the programs of which any will do."""

PINNED = ("torch", "transformers")
"""What the extra `bench` pins or bounds, and these tests take from there."""

GENAI = "onnxruntime-genai>=0.18"
"""What runs the folders of `igniter compile --genai`."""

AXE = "axe-playwright-python>=0.1.8"
"""The package that carries axe-core, which checks the accessibility of reports."""

TESTS = (
    "tests/torch",
    "tests/frontend/test_exported_models.py",
    "tests/benchmark/test_convolutions.py",
    "tests/generate",
    "tests/language_models/test_genai.py",
    "tests/runtime/report",
    "tests/tools/test_completion.py",
    "tests/docs/test_site.py",
    "tests/deploy/test_serving_cluster.py",
)
"""The tests that skip without what is installed here; `test_extras.py` looks for others."""


def requirements(extras: Mapping[str, Sequence[str]]) -> list[str]:
    """PyTorch and what its tests need besides the extra `torch`."""
    # PyTorch's own database of ops imports the last one.
    return [
        *(line for line in extras["bench"] if line.startswith(PINNED)),
        *extras["generate"],
        GENAI,
        AXE,
        "expecttest>=0.2",
    ]


def install_system() -> list[str]:
    """Installs the programs that are missing, where `apt-get` can; those that are missing still, with the reason."""
    missing = [name for name, programs in SYSTEM.items() if not any(map(shutil.which, programs))]
    if not missing:
        return []
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return [f"{name}: there is no apt-get here, or no right to use it" for name in missing]
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"env": variables, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    subprocess.run(["apt-get", "update", "--quiet"], **quiet)
    left: list[str] = []
    for name in missing:
        done = subprocess.run(["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", name], **quiet)
        if done.returncode:
            left.append(f"{name}: apt-get says {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
    return left


def install_python(python: str) -> list[str]:
    """Installs the packages that can be had; the others, with the reason."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    left: list[str] = []
    wanted = [".[torch]", *requirements(extras)]
    with tempfile.TemporaryDirectory() as folder:
        cuda = no_cpu_build(python, [f"{ROOT}[torch]", *wanted[1:]], Path(folder))
    groups = (
        ("PyTorch", wanted, cuda),
        ("the documentation's tools", [".[docs]"], ""),
        ("Ray Serve", [".[serve]"], ""),
    )
    for what, names, refused in groups:
        why = refused or _failure([python, *PIP, "install", *index_options(), "--editable", *names])
        if why:
            left.append(f"{what}: {why}")
    return left


def _failure(command: Sequence[str]) -> str:
    """Why a command fails, which is the last that it says; "" where it succeeds."""
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit status {done.returncode}"


def main(arguments: list[str]) -> int:
    print("installing what the extras and the system have", flush=True)
    for line in [*install_system(), *install_python(sys.executable)]:
        print(f"not installed, so its tests skip: {line}", flush=True)
    command = [sys.executable, "-m", "pytest", "-rs", "-m", "not full", *arguments, *TESTS]
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
