"""The checks of ONNX Runtime for a folder, and a session of it in a process of its own.

`python -m igniter.toolbox.doctor.folder_session FOLDER LIBRARY ...` creates the session and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from igniter.backends.ort.api import OLDEST_ORT
from igniter.errors import IgniterError
from igniter.runtime.library import library_info
from igniter.runtime.session import CPU_PROVIDER, make_session, said_by_onnxruntime
from igniter.toolbox.doctor import Finding
from igniter.toolbox.doctor.building import installed_providers
from igniter.toolbox.doctor.folder_files import MODEL, Folder
from igniter.toolbox.doctor.trial import ended, in_another_process

SECONDS = 300.0
"""The time limit of a session, for models of several gigabytes on a slow disk."""
GROUP = "onnxruntime"
MOST = 4
"""The number of inputs that a finding names."""


def onnxruntime(folder: Folder) -> Iterator[Finding]:
    """Checks that the installed ONNX Runtime has the version and the providers that the libraries need."""
    found = installed_providers()
    if isinstance(found, str):
        do = "pip install --force-reinstall onnxruntime"
        yield Finding(GROUP, "onnxruntime", "problem", f"it does not load: {found}", do)
        return
    version, *providers = found
    problems: list[Finding] = []
    for path in (p for p in folder.libraries if p.is_file()):
        try:
            info = library_info(path)
        except IgniterError:
            continue
        needed = int(info.get("ort_api_version", 0))
        if _minor(version) < needed:
            says = f"{version} is too old: {path.name} needs {OLDEST_ORT.get(needed, f'1.{needed}')} or newer"
            problems.append(Finding(GROUP, "onnxruntime", "problem", says, "pip install --upgrade onnxruntime"))
        wanted = [str(name) or CPU_PROVIDER for name in info.get("providers", [""])]
        if not set(wanted) & set(providers):
            says = f"{path.name} is for {' and '.join(wanted)}, and {version} here has only {', '.join(providers)}"
            do = "install the package of ONNX Runtime with it (onnxruntime-gpu), or compile with --target=native"
            problems.append(Finding(GROUP, "providers", "problem", says, do))
    yield from problems or [Finding(GROUP, "onnxruntime", "ok", f"{version}, with {', '.join(providers)}")]


def _minor(version: str) -> int:
    """Returns 22 for 1.22.1: the version of the C API that it has. A later major version has all of them."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return minor if major == 1 else 1_000


def session(folder: Folder) -> Iterator[Finding]:
    """Creates a session of the folder in another process."""
    name = "igniter.toolbox.doctor.folder_session"
    done = in_another_process(["-m", name, str(folder.model), *map(str, folder.libraries)], SECONDS)
    if done is None:
        yield Finding("session", "session", "problem", f"it was not created within {SECONDS:g} seconds")
        return
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last: dict[str, str] = lines[-1] if lines else {"error": ended(done)}
    if "error" not in last:
        yield Finding("session", "session", "ok", last["says"])
        return
    do = "the files are those that were compiled: see the message; igniter verify FOLDER compares with the original"
    yield Finding("session", "session", "problem", f"ONNX Runtime does not create one: {last['error']}", do)


def main() -> None:
    """Creates a session of the model and the libraries in the arguments."""
    model, *libraries = sys.argv[1:]
    try:
        made: Any = make_session(Path(model), libraries, intra_op_num_threads=1, log_severity_level=4)
        given = [f"{value.name}: {value.type}{value.shape}" for value in made.get_inputs()]
        inputs = ", ".join([*given[:MOST], *([f"and {len(given) - MOST} more"] if len(given) > MOST else [])])
    except IgniterError as error:
        print(json.dumps({"error": said_by_onnxruntime(error)}), flush=True)
        raise SystemExit(1) from None
    print(json.dumps({"says": f"ONNX Runtime loads {MODEL} and its library; inputs {inputs}"}), flush=True)


if __name__ == "__main__":
    main()
