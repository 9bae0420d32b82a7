"""The pipelines of a compilation with edits: `with my-pass after canonicalize-onnx`."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

from igniter.pipeline_text import edit_levels
from igniter.targets import Pipelines

LEVELS = ("onnx", "subnormals", "tiles", "fusion", "loop", "schedule", "programs", "calls", "made", "weights")
"""The pipelines of a compile, in order of their runs."""


@lru_cache(maxsize=64)
def spliced(own: Pipelines, text: str) -> tuple[Pipelines, tuple[str, ...]]:
    """Returns the pipelines with the edits of `text`, and the notes of the edits."""
    changed, notes = edit_levels({level: getattr(own, level) for level in LEVELS}, text)
    return dataclasses.replace(own, **changed), notes
