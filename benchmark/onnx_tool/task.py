"""What a worker is asked, and what both kinds of workers share. Imports nothing outside Python."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

Answer = dict[str, Any]
"""`figure` is what the table prints, `shapes` those of the outputs, `files` models that have to run."""

VERBS = ("profile", "shapes", "compute-graph", "memory", "extract", "fuse", "int8", "int4")


def serve(verbs: Mapping[str, Callable[[Any], Answer]]) -> None:
    """Does what the task on standard input asks, and ends what it prints with a line of JSON."""
    task = json.load(sys.stdin)
    try:
        answer = verbs[task["verb"]](task)
    # Anything that the other tool raises is what it has to say.
    except BaseException as error:
        traceback.print_exc()
        text = str(error).strip().splitlines()
        answer = {"error": f"{type(error).__name__}: {text[0] if text else ''}"}
    print("\n" + json.dumps(answer))
