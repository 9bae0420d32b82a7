"""The way of a model through a compilation, from its module to its folder (`docs/explanation/compile-path.md`).

compile_model
  lower_to_kernels    the levels: make_onnx, make_fusion, make_loop, make_llvm (`driver`)
  make_library        one shared library with the kernels and programs (`driver`)
  write_artifact      the folder, written beside its place (`artifact`), then
    check               compared with ONNX Runtime on the original (`checking`)
    require_loads       loaded by ONNX Runtime (`loading`), and put in place
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.analysis.typical_sizes import give_module_sizes
from igniter.compiler.artifact import Artifact, check_replaceable, write_artifact
from igniter.compiler.checking import VerificationFailed, check
from igniter.compiler.compilation import Compilation, CompiledKernel
from igniter.compiler.driver import (
    count_nodes,
    is_fused,
    make_fusion,
    make_library,
    make_llvm,
    make_loop,
    make_onnx,
    nodes_left,
    require_all_compiled,
    require_no_author,
)
from igniter.compiler.loading import NotLoaded, again, not_loaded, require_loads
from igniter.compiler.results import folder_for
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_exported
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym import dims_of
from igniter.errors import IgniterError
from igniter.frontend import export_model, save_model
from igniter.runtime.library import Library, versions
from igniter.runtime.session import said_by_onnxruntime
from igniter.transforms.fusion.form_fusion_regions import summaries
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.report import Verification
from igniter.verification.specs import checked_shapes, specs_of_module

EXTERNAL_BYTES = 1024
"""The least size in bytes of weights in the external file, mapped by ORT; smaller weights stay in the model."""


def lower_to_kernels(c: Compilation) -> None:
    """Lowers a module from its current level to compiled kernels; levels above the current one are skipped."""
    if not is_fused(c.module):
        make_onnx(c)
        make_fusion(c)
    else:
        require_no_author(c)
        give_module_sizes(c.module, dict(c.options.sizes))
    c.nodes_before = c.nodes_before or count_nodes(c.module)
    make_loop(c)
    make_llvm(c)
    if c.strict:
        require_all_compiled(c)


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
    if output is not None:
        # Checked here, before a compilation of minutes for a large model.
        check_replaceable(Path(output))
    _require_outputs(c.module)
    _require_dims(original, verify)
    c.require_options()
    c.require_library()
    while True:
        lower_to_kernels(c)
        try:
            return _write(c, make_library(c), source, original, output, verify, load)
        except NotLoaded as error:
            c = again(c, original, error)


def _write(
    c: Compilation,
    library: Library | None,
    source: str | Path | bytes | None,
    original: ModuleOp,
    output: str | PathLike[str] | None,
    verify: Mapping[str, Any] | None,
    load: bool,
) -> Artifact:
    """Writes the folder, after loading and verification."""
    with folder_for(output) as place:
        artifact = write_artifact(
            place.folder,
            save_model=lambda path: _save(c, path),
            libraries=[library] if library is not None else [],
            report=report(c),
            source=source,
            finish=lambda artifact: _finish(artifact, c, original, verify, load),
        )
        place.lives_with(artifact)
    return artifact


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
    artifact: Artifact, c: Compilation, original: ModuleOp, verify: Mapping[str, Any] | None, load: bool
) -> None:
    """Verifies and loads a model before it replaces `output`, and adds the outcome and the times to its report. Raises
    `VerificationFailed` if an output differs, `NotLoaded` if ONNX Runtime does not load it."""
    try:
        if verify is not None:
            with c.stage("verify"):
                try:
                    _verify(artifact, original, verify)
                except VerificationFailed:
                    if artifact.loads or artifact.refusal is None:
                        raise
                    if load:
                        raise not_loaded(artifact.refusal, c) from artifact.refusal
                    artifact.report["verification"] = _unloaded(artifact.refusal)
        if load:
            with c.stage("load"):
                require_loads(artifact, c)
    finally:
        artifact.report["seconds"] = c.report_seconds()
        artifact.report["peak_memory"] = c.peak_memory


def _unloaded(error: Exception) -> dict[str, Any]:
    """Returns the outcome of a verification without a run."""
    return Verification((), cannot=f"the compiled model does not load: {said_by_onnxruntime(error)}").to_dict()


def _verify(artifact: Artifact, original: ModuleOp, verify: Mapping[str, Any]) -> None:
    """Calls `check`, with the original from memory if it is in no file."""
    if artifact.source is None:
        try:
            artifact.source = export_model(onnx_level(original)).SerializeToString()
        except IgniterError:
            cannot = "the original is in memory, and too large for a message: give the path of a file"
            artifact.report["verification"] = Verification((), cannot=cannot).to_dict()
            return
    check(artifact, verify)


def report(c: Compilation) -> dict[str, Any]:
    """Returns the contents of `report.json` for a compilation."""
    return {
        "versions": versions(),
        "options": c.options.to_dict(),
        "target": c.options.target,
        "machines": [m.to_dict() for m in c.machines],
        "nodes_before": c.nodes_before,
        "nodes_after": count_nodes(c.module),
        "kernels": len(c.kernels),
        "kernel_digest": kernel_digest(c.kernels),
        "regions": _region_count(c),
        "programs": [p.to_dict() for p in c.steps],
        "inputs": _input_dims(c),
        "left_to_onnxruntime": [node.to_dict() for node in nodes_left(c)],
        "seconds": c.report_seconds(),
        "peak_memory": c.peak_memory,
        "fusion": [{**s.to_dict(), "text": str(s)} for s in summaries(c.ctx.remarks)],
        "remarks": [r.to_dict() for r in c.ctx.remarks],
    }


def kernel_digest(kernels: Sequence[CompiledKernel]) -> str:
    """Returns a hash of the code of kernels, independent of the programs around them."""
    texts = sorted(text for kernel in kernels for text in kernel.variants)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _input_dims(c: Compilation) -> dict[str, list[str]]:
    """Returns the dims of the inputs, in the symbols used by the figures of programs."""
    graph = main_graph(c.module)
    types = [(name, as_tensor(arg.type)) for name, arg in zip(graph.input_names, graph.body.args, strict=True)]
    return {name: [str(d) for d in dims_of(t)] for name, t in types if t is not None and has_dims(t)}


def _region_count(c: Compilation) -> int:
    own = (op for op in c.module.walk() if isinstance(op, OnnxOp) and op.domain.startswith("igniter."))
    return sum(not is_exported(op) for op in own)
