"""The checks of a compiled folder: why a session of it would fail on this machine.

    for finding in examine_folder("model.igniter"):
        print(finding.status, finding.name, finding.says, finding.do)

Nothing in the folder is executed until every check of its files has passed. Then a process of its own creates a
session, so a crash is a finding too.
"""

from __future__ import annotations

from pathlib import Path

from igniter.compiler.artifact import read_report
from igniter.toolbox.doctor import Finding, folder_files, folder_libraries, folder_session, guarded, worst
from igniter.toolbox.doctor.folder_files import Folder


def examine_folder(path: str | Path) -> list[Finding]:
    """Runs every check of a folder. Raises nothing."""
    place = Path(path)
    if not place.is_dir():
        what = f"{place} is a file" if place.exists() else f"there is no folder {place}"
        do = "give the folder that 'igniter compile MODEL -o FOLDER' made"
        return [Finding("folder", "folder", "problem", what, do)]
    folder = Folder(place, read_report(place) or {})
    found = guarded("folder", lambda: folder_files.report(folder))
    found += guarded("model", lambda: folder_files.model(folder))
    found += guarded("weights", lambda: folder_files.weights(folder))
    found += guarded("library", lambda: folder_libraries.present(folder))
    found += guarded("library", lambda: folder_libraries.loadable(folder))
    found += guarded("onnxruntime", lambda: folder_session.onnxruntime(folder))
    if worst(found) == "problem":
        says = "not created: a folder with a problem is not executed"
        return [*found, Finding("session", "session", "optional", says, "solve the problems above first")]
    return [*found, *guarded("session", lambda: folder_session.session(folder))]
