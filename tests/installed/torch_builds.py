"""Which build of PyTorch an installation would take: on the usual index the wheel for Linux is one for CUDA, with
gigabytes of libraries that no test on a CPU needs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def index_options() -> list[str]:
    """pip's options for the index that `TORCH_INDEX` names, where PyTorch's builds for CPUs are."""
    named = os.environ.get("TORCH_INDEX", "")
    return ["--extra-index-url", named] if named else []


def no_cpu_build(python: str, requirements: Sequence[str], folder: Path) -> str:
    """Why no PyTorch for CPUs would be installed; "" where one would. Nothing is installed or unpacked."""
    report = folder / "torch.json"
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--dry-run"]
    done = subprocess.run(
        [*command, "--report", str(report), *index_options(), *requirements],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return f"PyTorch cannot be installed: {lines[-1] if lines else 'pip does not say why'}"
    names = [item["metadata"]["name"] for item in json.loads(report.read_text())["install"]]
    libraries = [name for name in names if name.startswith(("nvidia-", "cuda-"))]
    if libraries:
        return (
            f"PyTorch of this index is a build for CUDA, with {len(libraries)} packages of libraries: name an index of "
            "builds for CPUs in TORCH_INDEX"
        )
    return ""
