"""The verification of a compiled function of `linalg`.

There is no ONNX model to run. The reference is the function's structured kernel in the interpreter
(`igniter.verification.interp.structured`), before any choice of a schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from igniter.compiler.artifact import Artifact, VerificationFailed
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.base import constant_weight
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.frontend.ort_values import run
from igniter.transforms.fusion.form_kernel_graph import DOMAIN
from igniter.verification.check_inputs import TypedInput, default_sizes, random_arrays
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.structured import run_kernel
from igniter.verification.judgement import compare_output
from igniter.verification.report import CaseResult, Verification

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]


def is_function(module: ModuleOp) -> bool:
    """True for the graph around one kernel made by `form-kernel-graph`."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    regions = [op for op in graphs[0].body.ops if isinstance(op, RegionOp)] if graphs else []
    node = regions[0].block.first_op if len(regions) == 1 else None
    return node is not None and getattr(node, "domain", "") == DOMAIN


def require_kernel(artifact: Artifact, module: ModuleOp, given: Mapping[str, Any]) -> None:
    """Compares the compiled model with its kernel, and adds the outcome to the report; raises `VerificationFailed` if a
    result differs."""
    graph = main_graph(module)
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    (region,) = (op for op in graph.body.ops if isinstance(op, RegionOp))
    cases = [_case(artifact, graph, kernel, region, feed, sizes, given) for feed, sizes in _feeds(graph, kernel, given)]
    cannot = "" if cases else "no sizes were found that the function takes; give --inputs or --shapes"
    found = Verification(tuple(cases), cannot=cannot, against="the interpreter of its kernel")
    artifact.report["verification"] = found.to_dict()
    if found.status == "differs":
        failures = "; ".join(found.failures[:3])
        raise VerificationFailed(f"the compiled function computes something else than its kernel: {failures}", found)


def _feeds(
    graph: GraphOp, kernel: KernelOp, given: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Array], dict[str, int]]]:
    """Returns inputs with their sizes: those given, or random ones at sizes that the kernel's requirements allow."""
    inputs = given.get("inputs")
    if inputs is not None:
        several: Any = [inputs] if isinstance(inputs, Mapping) else inputs
        for feed in cast("Sequence[Mapping[str, Array]]", several):
            yield feed, {}
        return
    types = [a.type for a in graph.body.args]
    specs = [TypedInput(n, t) for n, t in zip(graph.input_names, types, strict=True)]
    distinct = default_sizes(types)
    choices: list[dict[str, int]] = [dict(s) for s in given.get("shapes") or ()]
    if not choices:
        choices = [distinct, *(dict.fromkeys(distinct, size) for size in (4, 17, 1))]
    for sizes in [dict(s) for s in dict.fromkeys(tuple(c.items()) for c in choices)]:
        known = {n: sizes.get(n, distinct[n]) for n in distinct}
        if all(r.holds(known) for r in kernel.requires if r.symbols <= known.keys()):
            arrays = random_arrays(specs, known, int(given.get("seed") or 0))
            yield dict(zip(graph.input_names, arrays, strict=True)), known


def _case(
    artifact: Artifact,
    graph: GraphOp,
    kernel: KernelOp,
    region: RegionOp,
    feed: Mapping[str, Array],
    sizes: dict[str, int],
    given: Mapping[str, Any],
) -> CaseResult:
    """Compares the results for one feed. Data that a check of the kernel refuses is no comparison."""
    places = {arg: feed[name] for name, arg in zip(graph.input_names, graph.body.args, strict=True)}
    tensors: list[Array] = []
    for value in region.inputs:
        weight = constant_weight(value)
        tensors.append(places[value] if weight is None else weight.array())  # pyright: ignore[reportArgumentType]
    try:
        wanted = run_kernel(kernel, tensors)
    except InterpreterError as error:
        return CaseResult(sizes, "skipped", reason=error.message)
    made = run(artifact.session(), feed)
    outputs = tuple(
        compare_output(name, e, a, given.get("rtol"), given.get("atol") or 0.0)
        for name, e, a in zip(graph.output_names, wanted, made, strict=True)
    )
    status = "passed" if all(o.ok for o in outputs) else "failed"
    return CaseResult(sizes, status, outputs)
