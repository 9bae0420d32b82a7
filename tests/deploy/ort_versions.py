"""`python -m tests.deploy.ort_versions`: a compiled folder in every version of ONNX Runtime, as a table.

Each version is installed from the package index into a folder of its own, and a program without Igniter runs the folder
there (`guest.py`). `--write` puts the table into `docs/deploy/operations.md`; versions given by name are run alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from .models import FEED, compiled, expected

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy" / "operations.md"
GUEST = Path(__file__).with_name("guest.py")

VERSIONS = ("1.17", "1.18", *(f"1.{minor}" for minor in range(19, 33)))
"""The minor versions of the table; the newest patch of each is installed."""
BEFORE_NUMPY_2 = Version("1.19")
"""Older versions need NumPy 1."""

COLUMNS = {
    "runs": "runs, equal to NumPy",
    "binding": "IO binding",
    "threads": "8 threads on a session",
    "two": "two folders in a process",
    "profile": "in ORT's profile",
}
"""The columns: what `guest.py` reports, and its heading."""
BEGIN, END = "<!-- versions -->", "<!-- end of versions -->"


def install(version: str, folder: Path) -> str:
    """Installs a version into a folder; returns the error, "" for none."""
    numpy = ["numpy<2"] if Version(version) < BEFORE_NUMPY_2 else ["numpy>=2"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--only-binary=:all:"]
    done = subprocess.run(
        [*pip, "--no-deps", "--target", str(folder), f"onnxruntime=={version}.*", *numpy],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit status {done.returncode}")


def run(packages: Path, first: Path, second: Path, feed: Path) -> dict[str, str]:
    """Runs the guest with the ONNX Runtime in `packages`; returns what it reports, by column."""
    done = subprocess.run(
        [sys.executable, "-I", str(GUEST), str(packages), str(first), str(second), str(feed)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return {"version": "?", "error": said[-1] if said else f"exit status {done.returncode}"}
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the table in Markdown."""
    lines = [f"| ONNX Runtime | {' | '.join(COLUMNS.values())} |", f"| --- |{' --- |' * len(COLUMNS)}"]
    for row in rows:
        cells = [row.get(name, row.get("error", "no")) for name in COLUMNS]
        lines.append(f"| {row['version']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown() -> str:
    """Returns the table of the page."""
    found = re.search(rf"{BEGIN}\n(.*?)\n{END}", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"{PAGE} has no table of versions"
    return found[1]


def measure(versions: Sequence[str], folder: Path) -> list[dict[str, str]]:
    """Runs each version; `folder` gets what is installed and compiled."""
    import numpy as np

    (folder / "a").mkdir()
    (folder / "b").mkdir()
    first, second = compiled(folder / "a"), compiled(folder / "b", target="x86-64-v2,x86-64-v3")
    np.savez(folder / "feed.npz", y=expected(), **FEED)
    rows: list[dict[str, str]] = []
    for version in versions:
        packages = folder / version
        error = install(version, packages)
        row = (
            {"version": version, "error": f"not installed: {error}"}
            if error
            else run(packages, first.folder, second.folder, folder / "feed.npz")
        )
        rows.append({**row, "version": row["version"] if row["version"] != "?" else version})
        print(rows[-1], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="minor versions; all of the table by default")
    parser.add_argument("--write", action="store_true", help="write the table to the page")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="igniter-versions-") as name:
        rows = measure(args.versions, Path(name))
    made = table(rows)
    print(made)
    if args.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text.replace(shown(), made), encoding="utf-8")
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
