"""`python -m tests.installed`: Igniter as its users install it, which no test of the checkout sees.

The wheel is built and installed into environments of their own outside of the checkout: with the newest and the oldest
versions that `pyproject.toml` allows, with each extra alone, and on the other Pythons that are found. There every verb
of the command line and every public call runs once (`guest/`).

    python -m tests.installed                       all of them but the heavy ones
    python -m tests.installed oldest tune           these alone
    python -m tests.installed --full                ONNX Runtime's versions in between and the heavy extras as well
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from igniter.tools.demo_model import Shape, save_demo_model
from tests.installed.environments import Environment, environments
from tests.installed.pythons import pythons
from tests.installed.torch_builds import no_cpu_build

ROOT = Path(__file__).parents[2]
GUEST = Path(__file__).parent / "guest"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
LIMIT = 1800
"""Seconds that one step of an environment may take."""


def run(command: list[str], folder: Path, log: Path, **more: str) -> bool:
    """Runs a command in a folder, with nothing of the checkout in its environment; whether it succeeded."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    variables = {**kept, "IGNITER_CACHE_DIR": str(folder / "cache"), "PYTHONNOUSERSITE": "1", **more}
    with log.open("a") as out:
        print("$", *command, file=out, flush=True)
        done = subprocess.run(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=LIMIT
        )
    return done.returncode == 0


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    log = folder / "wheel.log"
    if not run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], folder, log):
        raise SystemExit(f"the wheel is not built:\n{log.read_text()}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def check(this: Environment, wheel: Path, folder: Path) -> tuple[str, str]:
    """Makes one environment and runs its steps; `ok`, `skipped` or `FAILED`, and what there is to say of it."""
    start = time.monotonic()
    place = folder / this.name
    place.mkdir()
    log = place / "log"
    python = str(place / "venv" / "bin" / "python")
    if not run([this.python, "-m", "venv", str(place / "venv")], place, log):
        return "FAILED", log.read_text()
    if this.pipx:
        return by_pipx(this, python, wheel, place)
    asked = f"{wheel}[{this.extra}]" if this.extra else str(wheel)
    if this.torch:
        why = no_cpu_build(python, [asked, *this.requirements], place)
        if why:
            return "skipped", why
    if not run([python, *PIP, "install", asked, *this.requirements], place, log):
        last = log.read_text().strip().splitlines()[-1]
        # An extra that cannot be had here is not a fault of the package.
        return ("skipped", f"the extra cannot be installed: {last}") if this.extra else ("FAILED", log.read_text())
    installing = time.monotonic() - start
    for file in GUEST.glob("*.py"):
        shutil.copy(file, place)
    for step in (("models.py",), *this.steps):
        if not run([python, *step], place, log):
            return "FAILED", log.read_text()
    shutil.rmtree(place / "venv")
    return "ok", f"{time.monotonic() - start:.0f} s, of which {installing:.0f} s to install"


def by_pipx(this: Environment, python: str, wheel: Path, place: Path) -> tuple[str, str]:
    """Installs the wheel with a pipx of its own, and runs its programs."""
    start, log = time.monotonic(), place / "log"
    if not run([python, *PIP, "install", "pipx"], place, log):
        last = log.read_text().strip().splitlines()[-1]
        return "skipped", f"pipx cannot be installed: {last}"
    homes = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin"), "PIPX_MAN_DIR": str(place / "man")}
    if not run([python, "-m", "pipx", "install", str(wheel)], place, log, **homes):
        return "FAILED", log.read_text()
    save_demo_model(place / "model.onnx", Shape(layers=1))
    for program, *arguments in this.steps:
        if not run([str(place / "bin" / program), *arguments], place, log):
            return "FAILED", log.read_text()
    shutil.rmtree(place / "pipx")
    return "ok", f"{time.monotonic() - start:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="environments; all of them by default")
    parser.add_argument("--full", action="store_true", help="the heavy ones too")
    parser.add_argument("--list", action="store_true", help="list the environments")
    parser.add_argument("--jobs", type=int, default=2, help="environments at a time")
    args = parser.parse_args()
    found, missing = pythons()
    every = environments(ROOT / "pyproject.toml", found)
    unknown = set(args.names) - {e.name for e in every}
    if unknown:
        parser.error(f"there is no environment {', '.join(sorted(unknown))}: --list shows them")
    chosen = [e for e in every if (e.name in args.names if args.names else args.full or not e.heavy)]
    if args.list:
        print(*(f"{e.name:16} {'with --full  ' if e.heavy else ''}{e.purpose}" for e in every), sep="\n")
        return 0
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(prefix="igniter-installed-") as name:
        folder = Path(name)
        wheel = build(folder)
        with ThreadPoolExecutor(args.jobs) as pool:
            running = {e.name: pool.submit(check, e, wheel, folder) for e in chosen}
            for each, future in running.items():
                status, says = future.result()
                counts[status] += 1
                print(f"{status:8} {each:16} {says}", flush=True)
    for version, why in missing.items():
        counts["skipped"] += 1
        print(f"skipped  python{version:10} {why}")
    for left in [] if args.full or args.names else [e.name for e in every if e.heavy]:
        counts["skipped"] += 1
        print(f"skipped  {left:16} heavy: --full runs it")
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
