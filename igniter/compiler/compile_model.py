"""The way of a model through a compilation, from its module to its folder (`docs/explanation/compile-path.md`).

compile_model
  lower_to_kernels    the levels: make_onnx, make_fusion, make_loop, make_llvm (`driver`)
  make_library        one shared library with the kernels and programs (`driver`)
  write_artifact      the folder, written beside its place (`artifact`), then
    require_verified    compared with ONNX Runtime on the original (`artifact`)
    require_loads       loaded by ONNX Runtime (`loading`), and put in place
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from igniter.activity import leaving
from igniter.compiler.artifact import Artifact, VerificationFailed, check_replaceable, write_artifact
from igniter.compiler.compilation import Compilation
from igniter.compiler.compile_helpers import jobs
from igniter.compiler.compile_report import report
from igniter.compiler.driver import (
    lower_to_kernels,
    make_library,
    provider_of,
)
from igniter.compiler.kernel_checks import is_function, require_kernel
from igniter.compiler.loading import NotLoaded, again, not_loaded, require_loads
from igniter.compiler.reproduce import kernel_recorder, leaving_reproducer
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend import export_model, save_model
from igniter.memory import BoundReached, bound, bytes_text
from igniter.runtime.library import Library
from igniter.runtime.session import CPU_PROVIDER, said_by_onnxruntime
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.report import Verification
from igniter.verification.specs import checked_shapes, specs_of_module

if TYPE_CHECKING:
    from igniter.verification.ahead import Ahead
    from igniter.verification.kept_results import KeptResults

EXTERNAL_BYTES = 1024
"""The least size in bytes of weights in the external file, mapped by ORT; smaller weights stay in the model."""


def compile_model(
    c: Compilation,
    source: str | Path | bytes | None,
    original: ModuleOp,
    output: str | PathLike[str] | None,
    verify: Mapping[str, Any] | None,
    load: bool,
) -> Artifact:
    """Compiles the module of `c` in place, and writes the folder `output`, or a temporary one.

    `original` is the module as it was given, `source` the file behind it, if the module is unchanged. `verify` has the
    arguments of `Artifact.verify`, or is `None` for no verification; `load` asks ONNX Runtime to load the result. If it
    refuses a node that was left to it, the model is compiled again with a kernel for the node.
    """
    folder = Path(output) if output is not None else None
    if folder is not None:
        # Checked here, before a compilation of minutes for a large model.
        check_replaceable(folder)
    _require_outputs(c.module)
    _require_dims(original, verify)
    c.require_options()
    c.require_library()
    c.ctx.recorder = c.ctx.recorder or kernel_recorder()
    with _runs_of_original(c, source, verify) as ahead:
        while True:
            with leaving_reproducer(c, original, lower_to_kernels):
                lower_to_kernels(c)
            try:
                return _write(c, make_library(c), source, original, folder, verify, load, ahead)
            except NotLoaded as error:
                c = again(c, original, error)


@contextmanager
def _runs_of_original(
    c: Compilation, source: str | Path | bytes | None, verify: Mapping[str, Any] | None
) -> Generator[Ahead | None]:
    """Runs the original beside the compilation, if it is in a file and will be verified at sizes found by a search."""
    if verify is None or verify.get("inputs") is not None or not isinstance(source, (str, Path)) or jobs() < 2:
        yield None
        return
    # Not before: a compile without verification needs none of it.
    from igniter.verification.ahead import start

    providers = [provider_of(c, part) or CPU_PROVIDER for part in c.parts]
    found = start(
        str(source), verify.get("shapes"), int(verify.get("seed", 0)), verify.get("budget"), providers=providers
    )
    if found is None:
        yield None
        return
    with leaving(str(found.folder)), found:
        yield found


def _write(
    c: Compilation,
    library: Library | None,
    source: str | Path | bytes | None,
    original: ModuleOp,
    output: Path | None,
    verify: Mapping[str, Any] | None,
    load: bool,
    ahead: Ahead | None,
) -> Artifact:
    """Writes the folder, after loading and verification."""
    # Before the weights are written: their copies and the original's memory together could be too much.
    results = None if ahead is None else ahead.finish()
    return write_artifact(
        output,
        save_model=lambda path: _save(c, path),
        libraries=[library] if library is not None else [],
        report=report(c),
        source=source,
        finish=lambda artifact: _finish(artifact, c, original, verify, load, results),
    )


def _require_outputs(module: ModuleOp) -> None:
    """Raises for a model without outputs: ONNX Runtime loads it but refuses each run."""
    end = main_graph(module).body.last_op
    if end is not None and not end.operands:
        raise IgniterError("the model has no outputs, so there is nothing to compute: name one in its graph")


def _require_dims(module: ModuleOp, verify: Mapping[str, Any] | None) -> None:
    """Raises before the compilation if the sizes given for the verification are of unknown dims."""
    asked: Sequence[Mapping[str, int]] = (verify or {}).get("shapes") or ()
    specs = specs_of_module(module) if asked else []
    for shapes in asked:
        checked_shapes(specs, shapes)


def _save(c: Compilation, path: Path) -> None:
    with c.stage("write"):
        save_model(
            c.module,
            path,
            external_data_threshold=EXTERNAL_BYTES,
            hashed=True,
            oldest_ir=True,
            exact_integers=True,
        )


def _finish(
    artifact: Artifact,
    c: Compilation,
    original: ModuleOp,
    verify: Mapping[str, Any] | None,
    load: bool,
    results: KeptResults | None,
) -> None:
    """Verifies and loads a model before it replaces `output`, and adds the outcome and the times to its report. Raises
    `VerificationFailed` if an output differs, `NotLoaded` if ONNX Runtime does not load it."""
    try:
        if verify is not None:
            with c.stage("verify"):
                artifact.reference_results = results
                try:
                    _verify(artifact, original, verify)
                except VerificationFailed:
                    if artifact.loads or artifact.refusal is None:
                        raise
                    if load:
                        raise not_loaded(artifact.refusal, c) from artifact.refusal
                    artifact.report["verification"] = _unloaded(artifact.refusal)
        _require_within_bounds(artifact)
        if load:
            with c.stage("load"):
                require_loads(artifact, c)
    finally:
        artifact.report["seconds"] = c.report_seconds()
        artifact.report["peak_memory"] = c.peak_memory


def _require_within_bounds(artifact: Artifact) -> None:
    """Raises `BoundReached` if the process has bounds, and nothing was compared because of them."""
    bounded = bound()
    found: Mapping[str, Any] = artifact.report.get("verification") or {}
    if bounded is not None and bounded.bytes and bounded.refused and found.get("status") == "not verified":
        raise BoundReached(
            f"the stage 'verify' cannot keep to max_memory ({bytes_text(bounded.bytes)}): {bounded.refused}; allow "
            "more memory, or compile without verification"
        )


def _unloaded(error: Exception) -> dict[str, Any]:
    """Returns the outcome of a verification without a run."""
    return Verification((), cannot=f"the compiled model does not load: {said_by_onnxruntime(error)}").to_dict()


def _verify(artifact: Artifact, original: ModuleOp, verify: Mapping[str, Any]) -> None:
    """Calls `Artifact.require_verified`, with the original from memory if it is in no file. A function of `linalg` is
    compared with its kernel in the interpreter."""
    if is_function(original):
        require_kernel(artifact, original, verify)
        return
    if artifact.source is None:
        try:
            artifact.source = export_model(onnx_level(original)).SerializeToString()
        except IgniterError:
            cannot = "the original is in memory, and too large for a message: give the path of a file"
            artifact.report["verification"] = Verification((), cannot=cannot).to_dict()
            return
    artifact.require_verified(verify)
