"""Comparison of every value that crosses a region: each region's kernel against its nodes in ONNX Runtime, on the same
inputs.

The regions are compiled again as separate custom ops, with the same kernels as in the compiled model. Two models then
contain all regions side by side, disconnected, with their operands as inputs of the model. In one model each region is
its nodes, in the other its custom op. The inputs come from one run of the graph in which the regions were formed. This
graph is also compared with the original, because the passes before fusion may be wrong.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from igniter.activity import doing
from igniter.dialects.fusion import PackOp, RegionOp
from igniter.dialects.onnx.attributes import texts_attr, texts_of
from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.frontend import export_model
from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run, storable
from igniter.runtime.session import make_session
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.judgement import Allowance, Noise, compare_within, failure
from igniter.verification.original import Original, nudged_feed, unoptimised
from igniter.verification.report import OutputResult, Status, plain

if TYPE_CHECKING:
    from igniter.runtime.library import Library

PASSES = "the passes before fusion"


class CompiledRegions(Protocol):
    """The regions of a model with their kernels, each a custom op of its own; the compiler makes them."""

    @property
    def module(self) -> ModuleOp:
        """The model with its regions, which still contain the nodes."""
        ...

    @property
    def digest(self) -> str:
        """The digest of the kernels."""
        ...

    def library(self, module: ModuleOp) -> tuple[Library, ModuleOp]:
        """Returns a library with the kernels of the regions in `module`, and a copy of `module` with custom ops in
        their place."""
        ...


CompileRegions: TypeAlias = "Callable[[Original], CompiledRegions]"
"""The compiler, as the comparison calls it."""


@dataclass(frozen=True)
class RegionResult:
    """The result of one region on the inputs of its original nodes. `nodes` has op types with the nodes' names."""

    region: str
    kernel: str
    nodes: tuple[str, ...]
    outputs: tuple[OutputResult, ...]

    @property
    def ok(self) -> bool:
        """True if no conclusive output differs."""
        return all(o.ok or o.says_nothing for o in self.outputs)


@dataclass(frozen=True)
class ValuesResult:
    """The results of all regions, in the order of computation. `folder` reproduces the first failure."""

    shapes: dict[str, int]
    regions: tuple[RegionResult, ...]
    cannot: str = ""
    folder: Path | None = field(default=None)

    @property
    def status(self) -> Status:
        if any(not r.ok for r in self.regions):
            return "differs"
        return "passed" if self.regions and not self.cannot else "not verified"

    @property
    def first_failure(self) -> RegionResult | None:
        """The first region that differs, or `None`."""
        return next((r for r in self.regions if not r.ok), None)

    @property
    def message(self) -> str:
        """A description of the first difference. Without a difference: the reason for no comparison, or ""."""
        wrong = self.first_failure
        if wrong is None:
            return self.cannot
        output = next(o for o in wrong.outputs if not o.ok)
        where = f" ({', '.join(wrong.nodes)}; kernel @{wrong.kernel})" if wrong.kernel else ""
        kept = f"; {self.folder} reproduces it" if self.folder is not None else ""
        return f"the first difference is in {wrong.region}{where}: value '{output.name}': {output.reason}{kept}"

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        wrong = self.first_failure
        return plain(
            {
                "status": self.status,
                "shapes": self.shapes,
                "message": self.message,
                "first_failure": None if wrong is None else wrong.region,
                "folder": None if self.folder is None else str(self.folder),
                "regions": [{**asdict(r), "ok": r.ok} for r in self.regions],
            }
        )


def verify_regions(
    original: Original,
    compile_regions: CompileRegions,
    feed: Mapping[str, Any],
    shapes: dict[str, int],
    allowed: Allowance,
    keep_in: Path,
) -> ValuesResult:
    """Compares every region of the model on its inputs for `feed`. The folder of a failure is made in `keep_in`."""
    c = compile_regions(original)
    # Draws are not compared: both sides get the same ones.
    regions = [
        op
        for op in main_graph(c.module).body.ops
        if isinstance(op, RegionOp) and not any(draws(inner) for inner in op.block.ops)
    ]
    if not regions:
        return ValuesResult(shapes, (), cannot="the compiled model has no regions: everything is left to ONNX Runtime")
    crossing = crossing_of(regions)
    values = values_of(c.module, crossing, original, feed)
    results = [_passes_result(original, feed, values.outputs, allowed)]
    results += _region_results(c, regions, values.crossing, allowed)
    found = ValuesResult(shapes, tuple(r for r in results if r is not None))
    wrong = found.first_failure
    if wrong is None or not wrong.kernel:
        return found
    region = next(r for r in regions if r.label == wrong.region)
    return replace(found, folder=_reproducer(c, region, values.crossing, keep_in / wrong.region, wrong))


# -- the values that cross --------------------------------------------------------------------------------------------


def crossing_of(regions: Sequence[RegionOp]) -> list[SSAValue]:
    """Returns the operands of regions without duplicates and constants."""
    return list(dict.fromkeys(v for r in regions for v in r.inputs if not _is_constant(v)))


def _is_constant(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, PackOp):
        return True
    return isinstance(owner, NoValueOp) or (isinstance(owner, OnnxOp) and owner.op_type == "Constant")


@dataclass(frozen=True)
class _Values:
    outputs: list[Any]
    crossing: dict[SSAValue, Any]


def values_of(module: ModuleOp, crossing: Sequence[SSAValue], original: Original, feed: Mapping[str, Any]) -> _Values:
    """Returns ORT's values for the graph's outputs and for `crossing`, with all regions inlined."""
    mapping: dict[SSAValue, SSAValue] = {}
    copy = module.clone(mapping)
    graph = main_graph(copy)
    end = graph.body.last_op
    assert isinstance(end, ReturnOp)
    own = len(end.operands)
    names = texts_of(graph.attributes.get("output_names"))
    asked = [v for v in crossing if isinstance(v, OpResult)]
    end.operands = [*end.operands, *(mapping[v] for v in asked)]
    graph.attributes["output_names"] = texts_attr([*names, *(f"igniter.value.{i}" for i in range(len(asked)))])
    found: list[Any] = run(_session(onnx_level(copy), original.folder, optimised=False), feed)
    known: dict[SSAValue, Any] = dict(zip(asked, found[own:], strict=True))
    inputs = main_graph(module)
    for name, argument in zip(inputs.input_names, inputs.body.args, strict=True):
        if name in feed:
            known[argument] = feed[name]
    return _Values(found[:own], known)


def _passes_result(
    original: Original, feed: Mapping[str, Any], outputs: Sequence[Any], allowed: Allowance
) -> RegionResult | None:
    """Compares the graph in which regions were formed with the original. Returns `None` for a random model."""
    if original.random_values is None or original.random_values:
        return None
    expected, _ = original.run(feed)
    others = original.others(feed, {}, 0, thorough=False, seconds=None)
    results = [
        compare_within(name, e, a, allowed, Noise([o[i] for o in others], seen=bool(others)))
        for i, (name, e, a) in enumerate(zip(original.output_names, expected, outputs, strict=True))
    ]
    return RegionResult(PASSES, "", (), tuple(results))


# -- regions side by side ---------------------------------------------------------------------------------------------


def side_by_side(module: ModuleOp, regions: Sequence[RegionOp]) -> tuple[ModuleOp, list[SSAValue]]:
    """Returns a module of only the regions, and the values of `module` for its inputs `v0`, `v1`, ..."""
    crossing = crossing_of(regions)
    block = Block(arg_types=[v.type for v in crossing])
    mapping: dict[SSAValue, SSAValue] = dict(zip(crossing, block.args, strict=True))
    results: list[SSAValue] = []
    for region in regions:
        for operand in region.inputs:
            _copy_constant(operand, block, mapping)
        # A clone maps its results too, which would connect the next region to it.
        copy = region.clone({operand: mapping[operand] for operand in region.inputs if operand in mapping})
        block.add_op(copy)
        results += copy.results
    block.add_op(ReturnOp.make(results))
    attributes = {
        "input_names": texts_attr([f"v{i}" for i in range(len(crossing))]),
        "output_names": texts_attr([f"{r.label}.{i}" for r in regions for i in range(len(r.results))]),
    }
    return ModuleOp([GraphOp.make("regions", Region(block), attributes)], dict(module.attributes)), crossing


def _copy_constant(value: SSAValue, block: Block, mapping: dict[SSAValue, SSAValue]) -> None:
    if value in mapping or isinstance(value.type, NoneType):
        return
    owner = value.owner
    assert isinstance(owner, Operation)
    for operand in owner.operands:
        _copy_constant(operand, block, mapping)
    block.add_op(owner.clone(mapping))


def _region_results(
    c: CompiledRegions, regions: Sequence[RegionOp], values: Mapping[SSAValue, Any], allowed: Allowance
) -> list[RegionResult]:
    module, crossing = side_by_side(c.module, regions)
    feed = {f"v{i}": values[v] for i, v in enumerate(crossing)}
    nodes = onnx_level(module)
    plain_session, fast = (_session(nodes, "", optimised=o) for o in (False, True))
    expected = plain_session.run(None, feed)
    others = [fast.run(None, feed)]
    for seed in range(2):
        nudged = nudged_feed(feed, seed)
        if nudged is not None:
            others.append(plain_session.run(None, nudged))
    results: list[RegionResult] = []
    at = 0
    for region, actual in zip(regions, run_kernels(c, module, regions, values), strict=True):
        judged: list[OutputResult] = []
        for index, name in enumerate(value_names(region)):
            noise = Noise([o[at] for o in others], seen=True)
            if isinstance(actual, str):
                judged.append(failure(name, "", (), f"the kernel fails: {actual}"))
            else:
                judged.append(compare_within(name, expected[at], actual[index], allowed, noise))
            at += 1
        results.append(RegionResult(region.label, region.kernel_name or "", _node_names(region), tuple(judged)))
    return results


def run_kernels(
    c: CompiledRegions, module: ModuleOp, regions: Sequence[RegionOp], values: Mapping[SSAValue, Any]
) -> list[list[Any] | str]:
    """Returns the results of each region's kernel, or its error. Kernels run together, or one by one after a
    failure."""
    try:
        found: list[Any] = list(_run_compiled(c, module, [values[v] for v in crossing_of(regions)]))
    except Exception as error:  # ONNX Runtime's errors have no common base
        if len(regions) == 1:
            return [str(error).split("\n", 1)[0]]
        return [run_kernels(c, side_by_side(c.module, [region])[0], [region], values)[0] for region in regions]
    split: list[list[Any] | str] = []
    for region in regions:
        split.append([found.pop(0) for _ in region.results])
    return split


def _run_compiled(c: CompiledRegions, module: ModuleOp, arrays: Sequence[Any]) -> list[Any]:
    with doing("the kernels ran, each as an op", runs="kernels"):
        return run(compiled_session(c, module), {f"v{i}": a for i, a in enumerate(arrays)})


def compiled_session(c: CompiledRegions, module: ModuleOp, folder: Path | None = None, **options: Any) -> Any:
    """Returns a session with the regions of `module` as custom ops. Its files are kept in `folder`, if given. `options`
    are ONNX Runtime's."""
    library, model = _compiled(c, module)
    with tempfile.TemporaryDirectory(prefix="igniter-regions-") as temporary:
        where = folder or Path(temporary)
        path = library.write(where)
        (where / "compiled.onnx").write_bytes(model)
        return make_session(model, [path], **{"log_severity_level": 4, **options})


def _compiled(c: CompiledRegions, module: ModuleOp) -> tuple[Library, bytes]:
    library, rewritten = c.library(module)
    return library, export_model(rewritten).SerializeToString()


def _session(module: ModuleOp, folder: str, *, optimised: bool) -> Any:
    options: dict[str, Any] = {} if optimised else {"graph_optimization_level": unoptimised()}
    return make_session(exact_bytes(export_model(module)), log_severity_level=4, **options)


def _node_names(region: RegionOp) -> tuple[str, ...]:
    nodes = [op for op in region.block.ops if isinstance(op, OnnxOp) and op.op_type != "Constant"]
    return tuple(f"{op.op_type} '{op.node_name}'" if op.node_name else op.op_type for op in nodes)


def value_names(region: RegionOp) -> list[str]:
    """Returns the model's names of a region's results; `LABEL.INDEX` for unnamed ones."""
    names: list[str] = []
    for index, value in enumerate(region.yielded):
        owner = value.owner
        given = texts_of(owner.properties.get("output_names")) if isinstance(owner, Operation) else []
        position = value.index if isinstance(value, OpResult) else 0
        names.append(given[position] if position < len(given) and given[position] else f"{region.label}.{index}")
    return names


# -- the reproducer of a failure --------------------------------------------------------------------------------------

SCRIPT = '''"""Runs one region as its nodes and as its kernel, and says how far they are apart."""

from pathlib import Path

import numpy as np
import onnxruntime as ort

from igniter.frontend.ort_values import run, typed

here = Path(__file__).resolve().parent
inputs = dict(np.load(here / "inputs.npz"))
options = ort.SessionOptions()
options.register_custom_ops_library(str(next(here.glob("libigniter_*.so"))))
nodes = ort.InferenceSession(here / "nodes.onnx", providers=["CPUExecutionProvider"])
kernel = ort.InferenceSession(here / "compiled.onnx", options, providers=["CPUExecutionProvider"])
inputs = typed(nodes, inputs)
for value, e, a in zip(nodes.get_outputs(), run(nodes, inputs), run(kernel, inputs)):
    off = np.abs(np.asarray(e, np.float64) - np.asarray(a, np.float64))
    print(value.name, e.dtype, e.shape, "largest difference", off.max(initial=0), "of", np.abs(e).max(initial=0))
'''


def _reproducer(
    c: CompiledRegions, region: RegionOp, values: Mapping[SSAValue, Any], folder: Path, wrong: RegionResult
) -> Path:
    """Writes a folder with the region as nodes and as a custom op, its inputs, and a script to compare both."""
    module, crossing = side_by_side(c.module, [region])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("libigniter_*.so"):
        old.unlink()
    (folder / "nodes.onnx").write_bytes(exact_bytes(export_model(onnx_level(module))))
    compiled_session(c, module, folder)
    arrays: dict[str, Any] = {f"v{i}": values[v] for i, v in enumerate(crossing)}
    np.savez(folder / "inputs.npz", **storable(arrays))
    (folder / "region.mlir").write_text(f"{region}\n", encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(plain(asdict(wrong)), indent=2) + "\n", encoding="utf-8")
    (folder / "run.py").write_text(SCRIPT, encoding="utf-8")
    return folder
