"""Kernels of models, run by stock MLIR on the values of a run of the model, and compared with ONNX Runtime.

`python -m tests.backends.mlir` prints the table of all of ONNX's node cases, of the examples or of models. Structured
kernels run in the form of `--emit=linalg`, scheduled ones in that of `--emit=scf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import SSAValue

from igniter.backends.mlir.text import MlirRefusal
from igniter.context import IgniterContext
from igniter.dialects.fusion import RegionOp
from igniter.dialects.generic_text import IrParser
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.structure import ReturnOp, main_graph
from igniter.dialects.sym import dims_of
from igniter.errors import IgniterError
from igniter.frontend import export_model, import_model
from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run
from igniter.passes import parse_passes, run_passes
from igniter.runtime.mlir_tools import MlirError
from igniter.runtime.session import make_session
from igniter.tools.opt_driver import split_chunks
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.check import run_kernel_op
from igniter.verification.check_inputs import TypedInput, index_bound, random_arrays, sizes_of, sizes_without_empties
from igniter.verification.interp.structured import bind_dims
from igniter.verification.judgement import compare_output
from igniter.verification.mlir_kernels import run_kernel_by_mlir
from igniter.verification.original import unoptimised
from tests.backends.mlir.mlir_kit import call_scheduled

EVERYTHING = "form-fusion-regions{contractions=all singletons=all views=all},lift-constants,pack-weights"
STRUCTURED = f"cpu-onnx,bind-values,cpu-subnormals,cpu-tiles,{EVERYTHING},cpu-loop"
"""From a model to structured kernels; every node that has a kernel gets one."""
SCHEDULABLE = (
    f"{STRUCTURED},canonicalize-loop,split-axes,inline-nests,form-rims,order-dims,collapse-axes,canonicalize-loop,"
    "postpone-scales,form-variants,pack-operands,check-bounds{guard=true},choose-schedule,form-fma"
)
"""The same, and all passes on that level."""
SCHEDULED = f"{STRUCTURED},cpu-schedule"
"""From a model to scheduled kernels."""
FORMS = {"linalg": STRUCTURED, "scf": SCHEDULED}
"""The passes down to the kernels of a form."""

Kernel = KernelOp | FuncOp

ROOT = Path(__file__).parents[3]
EXAMPLES = tuple(sorted([*ROOT.glob("docs/examples/*.mlir"), *ROOT.glob("lit_tests/examples/*.mlir")]))
GOOD = ("ort", "evaluator", "interpreter", "not as ort")


@dataclass(frozen=True)
class KernelRun:
    """One kernel in MLIR. `ort`, `evaluator` (ONNX's, where ONNX Runtime has no values) and `interpreter` (if neither
    has) are equal to that; `not as ort` is equal to the interpreter alone, `differs` to none. MLIR has no form of it
    (`refused`), or does not lower it (`failed`). `not run`: no reference runs it, on this data or at all."""

    source: str
    kernel: str
    status: str
    reason: str = ""


def lowered(model: bytes | str, passes: str = STRUCTURED) -> ModuleOp:
    """A model after passes down to kernels; a node whose kernel a pass refuses stays with ONNX Runtime."""
    module, context = import_model(model), IgniterContext()
    context.isolation.enabled = True
    run_passes(context, module, parse_passes(passes))
    return module


def inputs_of(kernel: Kernel) -> Sequence[SSAValue]:
    """The arguments of a kernel that it reads; those of a scheduled one are followed by its results."""
    args = kernel.block.args
    return args if isinstance(kernel, KernelOp) else args[: len(args) - kernel.output_count]


def kernels_of(module: ModuleOp) -> dict[str, Kernel]:
    return {k.sym_name.data: k for k in module.ops if isinstance(k, Kernel)}


def run_model(source: str, model: bytes | str, feed: Mapping[str, Any], passes: str = STRUCTURED) -> list[KernelRun]:
    """Every kernel of a model, on the values of a run of the model by ONNX Runtime or ONNX's evaluator, else on random
    ones."""
    try:
        module = lowered(model, passes)
    except Exception as error:
        return [KernelRun(source, "", "not run", f"the pipeline: {_first_line(error)}")]
    kernels = kernels_of(module)
    regions = [r for r in main_graph(module).body.ops if isinstance(r, RegionOp) and r.kernel_name in kernels]
    reference, why, values = "ort", "", list[tuple[list[Any], list[Any]]]()
    try:
        values = values_of_regions(module, regions, feed) if regions else []
    except Exception as error:  # ONNX Runtime has no kernel for a node of it, for instance.
        reference, why = "evaluator", f"no values by ONNX Runtime: {_first_line(error)}"
        try:
            values = values_of_regions(module, regions, feed, evaluate)
        except Exception:
            regions = []
    found: dict[str, KernelRun] = {}
    for region, (inputs, outputs) in zip(regions, values, strict=True):
        name = region.kernel_name or ""
        if name not in found:
            sizes = sizes_of([a.type for a in inputs_of(kernels[name])], [np.shape(a) for a in inputs])
            found[name] = run_one(source, kernels[name], inputs, sizes, outputs, reference)
    everywhere = [r for r in module.walk() if isinstance(r, RegionOp)]
    for name, kernel in kernels.items():
        if name not in found:
            region = next((r for r in everywhere if r.kernel_name == name), None)
            alone = run_random(source, kernel, region)
            found[name] = replace(alone, reason="; ".join(filter(None, (alone.reason, why))))
    return list(found.values())


def run_examples(paths: Sequence[Path] = EXAMPLES, form: str = "linalg") -> Iterator[KernelRun]:
    """Every kernel of examples, of the documentation and of lit's, on random inputs."""
    for path in paths:
        for number, (chunk, _) in enumerate(split_chunks(path.read_bytes())):
            source = f"{path.name}:{number}" if number else path.name
            try:
                module = IrParser(IgniterContext(), chunk.decode(), path.name).parse_module()
                module.verify()
                if not kernels_of(module):
                    run_passes(IgniterContext(), module, parse_passes(STRUCTURED))
                if form == "scf" and any(isinstance(k, KernelOp) for k in kernels_of(module).values()):
                    run_passes(IgniterContext(), module, parse_passes("cpu-schedule"))
            except Exception as error:
                yield KernelRun(source, "", "not run", f"the example is one of an error: {_first_line(error)}")
                continue
            regions = {r.kernel_name: r for r in module.walk() if isinstance(r, RegionOp)}
            for name, kernel in kernels_of(module).items():
                yield run_random(source, kernel, regions.get(name))


def evaluate(model: bytes, feed: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model by ONNX's evaluator."""
    return list(ReferenceEvaluator(onnx.load_from_string(model)).run(None, dict(feed)))


def run_by_ort(model: bytes, feed: Mapping[str, Any]) -> list[Any]:
    return run(make_session(model, graph_optimization_level=unoptimised(), log_severity_level=4), feed)


def values_of_regions(
    module: ModuleOp,
    regions: Sequence[RegionOp],
    feed: Mapping[str, Any],
    compute: Callable[[bytes, Mapping[str, Any]], list[Any]] = run_by_ort,
) -> list[tuple[list[Any], list[Any]]]:
    """The operands and the results of regions in one run of the graph."""
    mapping: dict[SSAValue, SSAValue] = {}
    copy = module.clone(mapping)
    graph = main_graph(copy)
    end = graph.body.last_op
    assert end is not None
    asked = [[v for v in r.inputs if not isinstance(v.type, NoneType)] for r in regions]
    wanted = list(dict.fromkeys(v for r, a in zip(regions, asked, strict=True) for v in (*a, *r.results)))
    graph.body.insert_op_before(ReturnOp.make([mapping.get(v, v) for v in wanted]), end)
    graph.body.erase_op(end)
    graph.attributes["output_names"] = texts_attr([f"value_{k}" for k in range(len(wanted))])
    graph.attributes.pop("output_info", None)
    # Packed weights are operands, too.
    run_passes(IgniterContext(), copy, parse_passes("fold-packs"))
    data = exact_bytes(export_model(onnx_level(copy)))
    found = dict(zip(wanted, compute(data, feed), strict=True))
    return [([found[v] for v in a], [found[v] for v in r.results]) for r, a in zip(regions, asked, strict=True)]


def run_random(source: str, kernel: Kernel, region: RegionOp | None) -> KernelRun:
    """A kernel on random inputs, compared with the interpreter."""
    args = inputs_of(kernel)
    bounds = [2] * len(args) if region is None else [index_bound(a) for a in region.block.args]
    specs = [TypedInput(f"i{k}", a.type, b) for k, (a, b) in enumerate(zip(args, bounds, strict=True))]
    sizes = sizes_without_empties([a.type for a in args], list(kernel.walk()), kernel.requires, {})
    return run_one(source, kernel, random_arrays(specs, sizes, 0), sizes, None)


def run_one(
    source: str,
    kernel: Kernel,
    inputs: Sequence[Any],
    sizes: Mapping[str, int],
    expected: Sequence[Any] | None,
    reference: str = "ort",
) -> KernelRun:
    """One kernel on inputs, compared with what `reference` has, or else with the interpreter."""
    name = kernel.sym_name.data
    try:
        if isinstance(kernel, FuncOp):
            sizes = bind_dims([dims_of(a.type) for a in inputs_of(kernel)], kernel.symbol_names, inputs, sizes)
            found = call_scheduled(kernel, inputs, sizes)
        else:
            found = run_kernel_by_mlir(kernel, inputs, sizes)
    except MlirRefusal as error:
        return KernelRun(source, name, "refused", error.message)
    except MlirError as error:
        return KernelRun(source, name, "failed", error.message)
    except IgniterError as error:
        # The inputs or the data break a rule of a node.
        return KernelRun(source, name, "not run", error.message)
    worst = "" if expected is None else difference(expected, found)
    if expected is not None and not worst:
        return KernelRun(source, name, reference)
    try:
        interpreted = run_kernel_op(kernel, [np.asarray(a, order="C") for a in inputs], sizes)
    except IgniterError as error:
        return KernelRun(source, name, "differs" if worst else "not run", f"{worst}; interpreter: {error.message}")
    assert interpreted is not None
    apart = difference(interpreted, found)
    return KernelRun(source, name, "differs" if apart else "not as ort" if worst else "interpreter", apart or worst)


def difference(expected: Sequence[Any], found: Sequence[Any]) -> str:
    """The difference of results, within the tolerances of `igniter.verification.judgement`: 1e-4 of the magnitude for
    f32, 1e-2 for f16, none for integers; empty for equal ones."""
    for index, (e, a) in enumerate(zip(expected, found, strict=True)):
        wanted = np.asarray(e)
        if wanted.dtype == np.uint8 and a.dtype.kind == "V" and a.dtype.itemsize == 1:
            # How ONNX Runtime hands out types that NumPy has no name for.
            wanted = wanted.view(a.dtype)
        result = compare_output(f"result {index}", wanted, a)
        if not result.ok:
            return f"result {index}: {result.reason}"
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
