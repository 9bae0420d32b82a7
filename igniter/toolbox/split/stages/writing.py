"""Writing parts of a model as a folder of stages, and comparing their results with the whole model."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.frontend import import_model, save_model
from igniter.runtime.session import SessionError, make_session
from igniter.toolbox.edit.verified import EditCheck
from igniter.toolbox.split.stages.manifest import FILE, Manifest, Stage
from igniter.toolbox.split.stages.running import local_callers, runner_of
from igniter.verification.graph_facts import facts_of
from igniter.verification.judgement import compare_output
from igniter.verification.original import Original, unoptimised
from igniter.verification.verify import typical_inputs

if TYPE_CHECKING:
    from igniter.toolbox.extract.parts import Part


def write_stages(
    parts: Sequence[Part],
    folder: str | Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    costs: Sequence[Mapping[str, float]] = (),
    sizes: Mapping[str, int] | None = None,
    check: Callable[[Manifest], EditCheck] | None = None,
) -> tuple[Manifest, EditCheck | None]:
    """Writes the models and the manifest of a folder. The folder appears when all is written, unless `check` finds a
    difference. An existing folder is replaced if it holds stages, and refused otherwise."""
    target = require_folder(folder)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        stages: list[Stage] = []
        for i, part in enumerate(parts):
            save_model(part.module, scratch / f"{part.name}.onnx")
            cost = dict(costs[i]) if costs else {}
            stages.append(Stage(part.name, f"{part.name}.onnx", part.inputs, part.outputs, part.nodes, cost))
        made = Manifest("pipeline", tuple(inputs), tuple(outputs), tuple(stages), dict(sizes or {}), scratch)
        made.write()
        found = check(made) if check is not None else None
        if found is None or found.status != "differs":
            replace_folder(scratch, target)
        return Manifest(made.kind, made.inputs, made.outputs, made.stages, made.sizes, target), found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def require_folder(folder: str | Path) -> Path:
    """Raises `IgniterError` if a folder of stages cannot be written because the path has other content."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not (target / FILE).is_file())):
        raise IgniterError(f"{target} is there already and holds no stages: name another folder, or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def replace_folder(made: Path, target: Path) -> None:
    """Moves a folder to the place of another one, if any."""
    made.chmod(0o755)
    if target.exists():
        old = target.with_name(f".{target.name}.{os.getpid()}.old")
        os.replace(target, old)
        os.replace(made, target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(made, target)


def check_stages(
    source: str | Path | bytes,
    manifest: Manifest,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    budget: float = 30.0,
) -> EditCheck:
    """Compares the results of stages, or ranks, with the whole model."""
    original = reference_of(source)
    try:
        found, feed = example_inputs(original, source, sizes, seed, budget)
    except IgniterError as error:
        return EditCheck("not run", reason=error.message)
    expected = original.session.run(list(manifest.outputs), feed)
    actual = runner_of(manifest, local_callers(manifest, **original.options)).run(feed)
    return judged(manifest.outputs, expected, [actual[n] for n in manifest.outputs], found)


def check_part(
    source: str | Path | bytes,
    part: Part,
    path: str | Path,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    budget: float = 30.0,
) -> EditCheck:
    """Compares the results of a part, given the whole model's values at its inputs, with the whole model's values."""
    original = reference_of(source)
    try:
        found, feed = example_inputs(original, source, sizes, seed, budget)
    except IgniterError as error:
        return EditCheck("not run", reason=error.message)
    wanted = [n for n in dict.fromkeys((*part.inputs, *part.outputs)) if n not in feed]
    reference = original.exposing([n for n in wanted if n not in original.output_names])
    known = {**feed, **dict(zip(wanted, reference.run(wanted, feed), strict=True))}
    session: Any = make_session(path, **original.options)
    actual = session.run(list(part.outputs), {n: known[n] for n in part.inputs if n in known})
    return judged(part.outputs, [known[n] for n in part.outputs], actual, found)


def reference_of(source: str | Path | bytes) -> Original:
    """Returns the whole model as the reference of its parts, without graph optimisations if possible. A fusion of nodes
    in only one of two models rounds and saturates at other places (an 8-bit product separated by a border from the
    rounding of its result). Parts run in ONNX Runtime unchanged, and have its integers."""
    model = source if isinstance(source, bytes) else str(source)
    plain = Original(model, options={"graph_optimization_level": unoptimised()}, exact=False)
    try:
        _ = plain.session
    except SessionError:  # it has no kernel for a node removed by its optimisations
        return Original(model, exact=False)
    return plain


def example_inputs(
    original: Original, source: str | Path | bytes, sizes: Mapping[str, int] | None, seed: int, budget: float
) -> tuple[dict[str, int], dict[str, Any]]:
    """Returns sizes and inputs at which the original runs; raises `IgniterError` if it does not, or is random."""
    if original.random_values is None or original.random_values:
        raise IgniterError("random nodes are in it, so that two runs differ")
    module = import_model(source if isinstance(source, bytes) else str(source))
    return typical_inputs(original, facts_of(module), dict(sizes or {}), seed, budget, small=True)


def judged(names: Sequence[str], expected: Sequence[Any], actual: Sequence[Any], sizes: dict[str, int]) -> EditCheck:
    """Compares the outputs."""
    outputs = tuple(compare_output(n, e, a) for n, e, a in zip(names, expected, actual, strict=True))
    bad = next((o for o in outputs if not o.ok), None)
    if bad is not None:
        return EditCheck("differs", outputs, sizes, f"'{bad.name}': {bad.reason}")
    return EditCheck("passed", outputs, sizes)
