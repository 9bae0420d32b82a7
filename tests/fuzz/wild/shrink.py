"""Making a failing model small: one feed, one output, and nodes turned into inputs while it still fails alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import onnx

from igniter.frontend.ort_values import run
from tests.fuzz.wild.pool import Array, make_session, reads, value_info
from tests.fuzz.wild.run import Outcome, Wild, run_wild


def shrink(case: Wild) -> tuple[Wild, Outcome]:
    """The smallest case that has the same status, found greedily, and what becomes of it."""
    outcome = run_wild(case)
    if not outcome.failed:
        return case, outcome
    changed = True
    while changed:
        changed = False
        for smaller in _candidates(case):
            found = run_wild(smaller)
            if found.status == outcome.status:
                case, outcome, changed = smaller, found, True
                break
    return case, outcome


def describe(case: Wild) -> str:
    """The ops that are left, as one line."""
    return " ".join(n.op_type for n in case.model.graph.node)


def _candidates(case: Wild) -> Iterator[Wild]:
    first, *others = case.feeds
    if others:
        yield dataclasses.replace(case, feeds=(first,))
    if len(others) > 1:
        # The first shows that the model is valid, another may be what fails.
        for feed in others:
            yield dataclasses.replace(case, feeds=(first, feed))
    outputs = [o.name for o in case.model.graph.output]
    if len(outputs) > 1:
        for name in outputs:
            yield _with_outputs(case, {name})
        for name in outputs:
            yield _with_outputs(case, {*outputs} - {name})
    names = [n.name for n in case.model.graph.node]
    for name in names if len(names) < 4 else [*names[: len(names) // 2][::-1], *names]:
        smaller = _without(case, name)
        if smaller is not None:
            yield smaller


def _with_outputs(case: Wild, names: set[str]) -> Wild:
    def kept(model: onnx.ModelProto) -> onnx.ModelProto:
        changed = _copied(model)
        for output in [o for o in changed.graph.output if o.name not in names]:
            changed.graph.output.remove(output)
        return changed

    return _pruned(dataclasses.replace(case, model=kept(case.model), reference=kept(case.reference)))


def _without(case: Wild, name: str) -> Wild | None:
    """The case with one node's results as inputs of whatever dims, which get the values that ONNX Runtime computes."""
    node = next(n for n in case.reference.graph.node if n.name == name)
    results = [o for o in node.output if o]
    if {o.name for o in case.model.graph.output} & set(results):
        return None
    probed = _copied(case.reference)
    del probed.graph.output[:]
    probed.graph.output.extend(onnx.ValueInfoProto(name=o) for o in results)
    try:
        session = make_session(probed)
        feeds = [{**feed, **dict(zip(results, run(session, feed), strict=True))} for feed in case.feeds]
    except Exception:  # the node is the one that ONNX Runtime refuses
        return None

    def cut(model: onnx.ModelProto) -> onnx.ModelProto:
        changed = _copied(model)
        changed.graph.node.remove(next(n for n in changed.graph.node if n.name == name))
        for o in results:
            array = feeds[0][o]
            shape = [f"{o}_{k}" if len({f[o].shape for f in feeds}) > 1 else d for k, d in enumerate(array.shape)]
            changed.graph.input.append(value_info(o, array.dtype, shape))
        return changed

    made = tuple(feeds)
    return _pruned(dataclasses.replace(case, model=cut(case.model), reference=cut(case.reference), feeds=made))


def _copied(model: onnx.ModelProto) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    return changed


def _pruned(case: Wild) -> Wild:
    """Without the nodes, inputs and weights that no output needs."""
    for model in (case.model, case.reference):
        graph = model.graph
        needed = {o.name for o in graph.output}
        for node in reversed(list(graph.node)):
            if needed & set(node.output):
                needed |= reads(node)
            else:
                graph.node.remove(node)
        for part in (graph.input, graph.initializer):
            for item in [i for i in part if i.name not in needed]:
                part.remove(item)
    names = {i.name for i in case.model.graph.input}
    feeds: list[dict[str, Array]] = [{k: v for k, v in feed.items() if k in names} for feed in case.feeds]
    return dataclasses.replace(case, feeds=tuple(feeds))
