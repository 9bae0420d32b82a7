"""`build`: subjects by onnxruntime-genai's builder, in each form of weights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmark.export import CACHE
from benchmark.language_models.subjects import SUBJECTS

FOLDER = CACHE / "language-models"

FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "f32": ("fp32", ()),
    "f16": ("fp16", ()),
    "int4-level0": ("int4", ("accuracy_level=0", "block_size=32")),
    "int4-level4": ("int4", ("accuracy_level=4", "block_size=32")),
    "int8": ("int8", ("accuracy_level=4",)),
}
"""Forms: the builder's precision and its extra options. The builder writes no attribute for
level 0, and level 4 without an option."""
PRUNED = "-pruned"
"""The ending of a form whose graph returns the logits of the last position only."""


def form_arguments(form: str) -> list[str]:
    """Returns the builder's arguments for a form, or raises `KeyError`."""
    precision, options = FORMS[form.removesuffix(PRUNED)]
    extra = [*options, *(["prune_lm_head=true"] if form.endswith(PRUNED) else [])]
    return ["-p", precision, *(["--extra_options", *extra] if extra else [])]


def source(name: str, folder: Path) -> Path:
    """Returns the subject as transformers reads it, written if missing."""
    place = folder / name / "source"
    if not place.exists():
        staging = Path(tempfile.mkdtemp(prefix="build-", dir=_made(folder / name)))
        SUBJECTS[name].write(staging)
        staging.rename(place)
    return place


def build(name: str, form: str, folder: Path = FOLDER) -> Path:
    """Returns the folder of a model for onnxruntime-genai, built if missing."""
    place = folder / name / form
    if place.exists():
        return place
    given = source(name, folder)
    staging = Path(tempfile.mkdtemp(prefix="build-", dir=_made(folder / name)))
    cache = Path(tempfile.mkdtemp(prefix="cache-", dir=folder / name))
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", str(given), "-o", str(staging)]
    command += ["-e", "cpu", "-c", str(cache), *form_arguments(form)]
    done = subprocess.run(
        command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=False
    )
    shutil.rmtree(cache, ignore_errors=True)  # The builder removes it if all is well.
    if done.returncode:
        shutil.rmtree(staging)
        raise RuntimeError(f"the builder failed for {name}, {form}:\n{done.stderr[-2000:]}")
    staging.chmod(0o755)
    staging.rename(place)
    return place


def run(names: Sequence[str], forms: Sequence[str], folder: Path) -> int:
    """Builds all forms of all subjects and prints where they are; the status is 1 if one failed."""
    failed = 0
    for name in names:
        for form in forms:
            try:
                print(build(name, form, folder), flush=True)
            except RuntimeError as error:
                print(error, file=sys.stderr)
                failed = 1
    return failed


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
