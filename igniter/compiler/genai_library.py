"""The library's name in `genai_config.json`, when a model is compiled into a folder that has one.

onnxruntime-genai registers the library that the file names (`custom_ops_library`), and each result has a library with
another name. The file belongs to the user, so nothing else in it changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from igniter.runtime.files import write_whole

GENAI = "genai_config.json"


def renew_library(folder: Path, libraries: Sequence[str]) -> str | None:
    """Writes the name of the library into the `genai_config.json` of a compiled folder, if the file names an earlier
    one. Returns the sentence that says so; None if the file names one of `libraries` or none, is missing, or is not a
    configuration."""
    place = folder / GENAI
    if not place.is_file():
        return None
    try:
        config: Any = json.loads(place.read_text(encoding="utf-8"))
        options: Any = config["model"]["decoder"]["session_options"]
        former = str(options["custom_ops_library"])
    except (ValueError, KeyError, TypeError):
        return None
    if former in libraries or not re.search(r"igniter_[0-9a-f]+\.", former):
        return None
    if len(libraries) != 1:
        return f"{GENAI} names {former}, which is no library of the model any more: compile again with --genai"
    options["custom_ops_library"] = libraries[0]
    write_whole(place, json.dumps(config, indent=4) + "\n")
    return f"{GENAI} names {libraries[0]} instead of {former}"
