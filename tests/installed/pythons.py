"""The interpreters that the package is tried on: on the path, known to pyenv, or named in the variable `PYTHONS`."""

from __future__ import annotations

import os
import shutil
import subprocess

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")
"""Those that `pyproject.toml` allows and there are wheels for; `t` is free-threaded."""

ASKS = "import sys, sysconfig, venv, ensurepip; free = sysconfig.get_config_var('Py_GIL_DISABLED')\n"
ASKS += "print('%d.%d%s' % (*sys.version_info[:2], 't' if free else ''))"


def _version(path: str) -> str:
    """The version of an interpreter; "" where it does not run, or cannot make environments."""
    try:
        done = subprocess.run([path, "-I", "-c", ASKS], capture_output=True, text=True, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _of_pyenv(version: str) -> list[str]:
    """The interpreters of a version that pyenv has, whether or not its shims lead there."""
    if shutil.which("pyenv") is None:
        return []
    listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True)
    prefix = version.removesuffix("t") + "."
    named = [n for n in listed.stdout.split() if n.startswith(prefix) and n.endswith("t") == version.endswith("t")]
    folders = (subprocess.run(["pyenv", "prefix", n], capture_output=True, text=True).stdout.strip() for n in named)
    return [f"{folder}/bin/python" for folder in folders if folder]


def pythons() -> tuple[dict[str, str], dict[str, str]]:
    """The interpreters by version, and for each version without one why there is none."""
    named = os.environ.get("PYTHONS", "").replace(",", " ").split()
    given = {_version(path): path for path in named}
    if "" in given:
        raise SystemExit(f"PYTHONS names {given['']}, which does not run or has no venv")
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for version in VERSIONS:
        candidates = [given[version]] if version in given else []
        on_path = shutil.which(f"python{version}")
        candidates += [on_path] if on_path else []
        candidates += _of_pyenv(version)
        path = next((c for c in candidates if _version(c) == version), "")
        if path:
            found[version] = path
        else:
            missing[version] = "there is none on the path, in PYTHONS or in pyenv"
    return found, missing
