"""The Python API: load a model, run passes over it, compile it.

import igniter

artifact = igniter.compile("model.onnx", target="native")
session = artifact.session(intra_op_num_threads=1)

module = igniter.load("model.onnx").run_passes("infer-shapes,fold-constants")
print(module)
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.driver import (
    Compilation,
    CompileOptions,
    count_nodes,
    make_fusion,
    make_library,
    make_llvm,
    make_loop,
    make_onnx,
)
from igniter.errors import IgniterError
from igniter.memory import collection_paused
from igniter.passes import run_pipeline
from igniter.remarks import Remarks
from igniter.runtime.files import write_whole

if TYPE_CHECKING:
    import onnx

    from igniter.runtime.artifact import Artifact
    from igniter.runtime.verify import Verification

    Model: TypeAlias = "str | PathLike[str] | bytes | onnx.ModelProto"

REPORT = "report.json"
EXTERNAL_BYTES = 1024
"""Weights of at least this size go to the external file, which ORT maps; the rest stays in the model."""


_PROTO_LIMIT = (1 << 31) - 1
"""protobuf serialises no more."""


class VerificationFailed(IgniterError):
    """The compiled model does not compute what the original computes; `verification` has the figures."""

    def __init__(self, message: str, verification: Verification):
        super().__init__(message)
        self.verification = verification


class Module:
    """A model as IR, at whatever level its passes have taken it to."""

    def __init__(self, ir: ModuleOp, ctx: IgniterContext, source: str | Path | bytes | None = None):
        self.ir = ir
        self.ctx = ctx
        self.source = source
        self.import_seconds = 0.0
        """How long `load` took to make IR of the model."""

    @property
    def remarks(self) -> Remarks:
        """What the passes that ran said."""
        return self.ctx.remarks

    def run_passes(self, pipeline: str, *, verify_each: bool = True) -> Self:
        """Run a pipeline (`"infer-shapes,form-fusion-regions{...}"`) over the IR, in place."""
        run_pipeline(self.ctx, self.ir, pipeline, verify_each=verify_each)
        return self

    def clone(self) -> Module:
        """A copy that passes can change without changing this one."""
        return Module(self.ir.clone(), self.ctx.clone(), self.source)

    def to_onnx(self) -> onnx.ModelProto:
        """The model as a `ModelProto`, fusion regions taken apart and kernels left out."""
        from igniter.frontend import export_model

        return export_model(self._onnx_level())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as an ONNX file."""
        from igniter.frontend import save_model

        save_model(self._onnx_level(), path)

    def _onnx_level(self) -> ModuleOp:
        from igniter.transforms.inline_regions import onnx_level

        return onnx_level(self.ir)

    def compile(
        self,
        output: str | PathLike[str] | None = None,
        *,
        target: str = "native",
        precision: str = "f32",
        options: CompileOptions | None = None,
        verify: bool = True,
        shapes: Sequence[Mapping[str, int]] | None = None,
        cache: bool = True,
        strict: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Artifact:
        """Compile a copy of the model, and check the result against ONNX Runtime unless `verify` is false.

        The folder `output` gets the rewritten model, its library and a report; without one the artifact lives in a
        temporary folder as long as the object. `precision` is f32, or on request bf16 or int8-dynamic for products with
        weights. `shapes` are the values of the symbolic dims to verify with.
        `VerificationFailed` says which output differs; `strict` makes a kernel that cannot be compiled an error.
        """
        chosen = options or CompileOptions(target=target, precision=precision)
        copy = self.clone()
        compilation = Compilation(copy.ir, chosen, copy.ctx, strict=strict, progress=progress or (lambda _: None))
        if cache:
            from igniter.runtime.cache import default_cache

            compilation.cache = default_cache()
        if self.import_seconds:
            compilation.seconds["import"] = self.import_seconds
        return _compile(compilation, self.source, self, output, verify, shapes)

    def __str__(self) -> str:
        return str(self.ir)


def load(model: Model) -> Module:
    """The module of an ONNX model: a path, the bytes of a file, or a `ModelProto`. Weights stay in their file."""
    from igniter.frontend import import_model

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    source: str | Path | bytes | None = None
    if isinstance(model, bytes):
        source = model
    elif isinstance(model, (str, PathLike)):
        source = Path(cast("str", model))
    elif model.ByteSize() < _PROTO_LIMIT:
        source = model.SerializeToString()
    start = time.perf_counter()
    with collection_paused():
        module = Module(import_model(model), ctx, source)
    module.import_seconds = time.perf_counter() - start
    return module


def parse(text: str) -> Module:
    """The module that `text` writes, in the syntax that `str(module)` gives."""
    from xdsl.parser import Parser

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    return Module(Parser(ctx, text).parse_module(), ctx)


def compile(model: Model, output: str | PathLike[str] | None = None, **options: Any) -> Artifact:
    """`load(model).compile(output, ...)`."""
    return load(model).compile(output, **options)


def lower_to_kernels(c: Compilation) -> None:
    """Take a module from wherever it is to compiled kernels; levels that it is past are left out."""
    from igniter.dialects.fusion import RegionOp
    from igniter.dialects.loop import KernelOp

    has_kernels = any(isinstance(op, KernelOp) for op in c.module.ops)
    has_regions = any(isinstance(op, RegionOp) for op in c.module.walk())
    if not has_regions and not has_kernels:
        make_onnx(c)
        make_fusion(c)
    c.nodes_before = c.nodes_before or count_nodes(c.module)
    make_loop(c)
    make_llvm(c)


def _compile(
    c: Compilation,
    source: str | Path | bytes | None,
    original: Module,
    output: str | PathLike[str] | None,
    verify: bool,
    shapes: Sequence[Mapping[str, int]] | None,
) -> Artifact:
    from igniter.frontend import save_model
    from igniter.runtime.artifact import write_artifact

    lower_to_kernels(c)
    library = make_library(c)
    temporary = None if output is not None else tempfile.mkdtemp(prefix="igniter-")
    folder = Path(output) if output is not None else Path(cast("str", temporary)) / "model.igniter"
    with c.stage("write"):
        artifact = write_artifact(
            folder,
            save_model=lambda path: save_model(c.module, path, external_data_threshold=EXTERNAL_BYTES),
            libraries=[library] if library is not None else [],
            report=report(c),
            source=source,
        )
    if temporary is not None:
        weakref.finalize(artifact, shutil.rmtree, temporary, ignore_errors=True)
    if artifact.source is None:
        artifact.source = original.to_onnx().SerializeToString()
    verification: Verification | None = None
    if verify:
        with c.stage("verify"):
            verification = artifact.verify(shapes=shapes)
    _record(artifact, verification, c)
    return artifact


def _record(artifact: Artifact, verification: Verification | None, c: Compilation) -> None:
    """Put what came after the folder was written into its report; `VerificationFailed` where that is not good."""
    if verification is not None:
        artifact.report["verification"] = verification.to_dict()
    artifact.report["seconds"] = c.report_seconds()
    artifact.report["peak_memory"] = c.peak_memory
    text = json.dumps(artifact.report, indent=2, default=str) + "\n"
    write_whole(artifact.folder / REPORT, text)
    if verification is not None and not verification.ok:
        failures = "; ".join(verification.failures[:3])
        raise VerificationFailed(
            f"the compiled model in {artifact.folder} does not compute what the original computes: {failures}",
            verification,
        )


def report(c: Compilation) -> dict[str, Any]:
    """What `report.json` says of a compilation."""
    from igniter.runtime.library import versions
    from igniter.transforms.form_fusion_regions import summaries

    return {
        "versions": versions(),
        "options": c.options.to_dict(),
        "target": c.options.target,
        "nodes_before": c.nodes_before,
        "nodes_after": count_nodes(c.module),
        "kernels": len(c.kernels),
        "regions": _region_count(c),
        "programs": [p.to_dict() for p in c.steps],
        "inputs": _input_dims(c),
        "left_to_onnxruntime": [{"region": name, "reason": reason} for name, reason in c.dropped],
        "seconds": c.report_seconds(),
        "peak_memory": c.peak_memory,
        "fusion": [{**s.to_dict(), "text": str(s)} for s in summaries(c.ctx.remarks)],
        "remarks": [r.to_dict() for r in c.ctx.remarks],
    }


def _input_dims(c: Compilation) -> dict[str, list[str]]:
    """The dims of the inputs, in the symbols that the figures of programs are in."""
    from igniter.analysis.fusion_legality import as_tensor, has_dims
    from igniter.dialects.onnx.structure import main_graph
    from igniter.dialects.sym import dims_of

    graph = main_graph(c.module)
    types = [(name, as_tensor(arg.type)) for name, arg in zip(graph.input_names, graph.body.args, strict=True)]
    return {name: [str(d) for d in dims_of(t)] for name, t in types if t is not None and has_dims(t)}


def _region_count(c: Compilation) -> int:
    from igniter.dialects.onnx.base import OnnxOp

    return sum(isinstance(op, OnnxOp) and op.domain.startswith("igniter.") for op in c.module.walk())
