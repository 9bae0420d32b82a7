"""Making a failing case small: nodes become inputs with the values they had, as long as the case still fails."""

from __future__ import annotations

from dataclasses import replace

import onnx
from onnx import helper

from tests.fuzz.graph import Array, Case
from tests.fuzz.run import Outcome, reference, run_case


def shrink(case: Case) -> Case:
    """The smallest case that fails in the same way, found greedily; the case itself when it does not fail."""
    wanted = run_case(case).status
    if wanted in ("ok", "invalid", "ort"):
        return case
    for feed, sizes in zip(case.feeds, case.shapes, strict=True):
        alone = replace(case, feeds=(feed,), shapes=(sizes,))
        if _fails(alone, wanted):
            case = alone
            break
    for output in list(case.model.graph.output):
        fewer = _with_outputs(case, [o for o in case.model.graph.output if o.name != output.name])
        if fewer.model.graph.output and _fails(fewer, wanted):
            case = fewer
    changed = True
    while changed:
        changed = False
        for node in list(case.model.graph.node)[::-1]:
            smaller = _without(case, node.name)
            if smaller is not None and _fails(smaller, wanted):
                case, changed = smaller, True
    return case


def _fails(case: Case, status: str) -> bool:
    outcome: Outcome = run_case(case)
    return outcome.status == status


def _with_outputs(case: Case, outputs: list[onnx.ValueInfoProto]) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return _pruned(replace(case, model=model))


def _without(case: Case, name: str) -> Case | None:
    """The case with one node's results as inputs, which get the values that ORT computes; None where it has outputs."""
    node = next((n for n in case.model.graph.node if n.name == name), None)
    outputs = {o.name for o in case.model.graph.output}
    if node is None or set(node.output) <= outputs:
        return None
    probed = onnx.ModelProto()
    probed.CopyFrom(case.model)
    del probed.graph.output[:]
    probed.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in node.output)
    values = reference(probed, case.feeds)
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.node.remove(node)
    for name_, array in zip(node.output, values[0], strict=True):
        if name_ not in outputs:
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            shape = list(array.shape) if len(case.feeds) == 1 else [None] * array.ndim
            model.graph.input.append(helper.make_tensor_value_info(name_, code, shape))
    feeds = tuple(
        {**feed, **dict(zip(node.output, found, strict=True))} for feed, found in zip(case.feeds, values, strict=True)
    )
    return _pruned(replace(case, model=model, feeds=feeds))


def _pruned(case: Case) -> Case:
    """Without the nodes, inputs and weights that no output needs."""
    graph = case.model.graph
    needed = {o.name for o in graph.output}
    for node in reversed(list(graph.node)):
        if needed & set(node.output):
            needed.update(node.input)
        else:
            graph.node.remove(node)
    for part in (graph.input, graph.initializer):
        for item in [i for i in part if i.name not in needed]:
            part.remove(item)
    names = {i.name for i in graph.input}
    feeds: list[dict[str, Array]] = [{k: v for k, v in feed.items() if k in names} for feed in case.feeds]
    return replace(case, feeds=tuple(feeds))
