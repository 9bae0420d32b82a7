"""Shared edits of graphs: lists of inputs and outputs, the order of nodes, and dead nodes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from igniter.dialects.onnx.attributes import entries_of, texts_attr, texts_of
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, info_list
from igniter.dialects.onnx.structure import GraphOp, ReturnOp
from igniter.errors import IgniterError
from igniter.toolbox.edit.names import Names, Scope, node_text

SIGNATURE = "igniter.signature"
"""The model's types of its inputs, as kept by `infer-shapes`; an edit of these types drops them."""
DERIVED = (SIGNATURE, "igniter.assumptions")


def info_entries(attr: Attribute | None, count: int) -> list[Attribute | None]:
    """Returns the `count` entries of an `info_list`, `None` for empty ones."""
    found: list[Attribute | None] = []
    if isinstance(attr, ArrayAttr):
        entries = cast("ArrayAttr[Attribute]", attr).data
        found = [e if isinstance(e, DictionaryAttr) and e.data else None for e in entries]
    return [*found, *[None] * (count - len(found))][:count]


def set_info(holder: Operation, key: str, entries: Sequence[Attribute | None]) -> None:
    """Writes an `info_list`: the inverse of `info_entries`."""
    made = info_list(list(entries))
    if made is None:
        holder.attributes.pop(key, None)
    else:
        holder.attributes[key] = made


def add_outputs(scope: Scope, outputs: Iterable[tuple[str, SSAValue]]) -> None:
    """Appends outputs to a graph."""
    added = list(outputs)
    names = scope.output_names
    infos = info_entries(scope.info.get("output_info"), len(names))
    _replace_return(scope, [*scope.result.operands, *(v for _, v in added)])
    renewed = Scope(scope.block, scope.holder if scope.is_main else scope.result)
    renewed.info["output_names"] = texts_attr([*names, *(n for n, _ in added)])
    set_info(renewed.holder, "output_info", [*infos, *[None] * len(added)])


def remove_outputs(scope: Scope, positions: set[int]) -> None:
    """Removes outputs from the main graph."""
    kept = [i for i in range(len(scope.result.operands)) if i not in positions]
    names = scope.output_names
    infos = info_entries(scope.info.get("output_info"), len(names))
    _replace_return(scope, [scope.result.operands[i] for i in kept])
    scope.info["output_names"] = texts_attr([names[i] for i in kept])
    set_info(scope.holder, "output_info", [infos[i] for i in kept])


def _replace_return(scope: Scope, values: Sequence[SSAValue]) -> None:
    old = scope.result
    made = ReturnOp.make(values, dict(old.attributes))
    old.detach()
    old.erase()
    scope.block.add_op(made)


def remove_input(graph: GraphOp, position: int) -> None:
    """Removes an unused input from the main graph."""
    names = graph.input_names
    infos = info_entries(graph.attributes.get("input_info"), len(names))
    defaults = dict(entries_of(graph.attributes.get("input_defaults")))
    defaults.pop(names[position], None)
    graph.body.erase_arg(graph.body.args[position])
    graph.attributes["input_names"] = texts_attr([n for i, n in enumerate(names) if i != position])
    set_info(graph, "input_info", [e for i, e in enumerate(infos) if i != position])
    set_defaults(graph, defaults)
    forget_derived(graph)


def set_defaults(graph: GraphOp, defaults: dict[str, Attribute]) -> None:
    """Sets the overridable initializers, by the input's name."""
    if defaults:
        graph.attributes["input_defaults"] = DictionaryAttr(defaults)
    else:
        graph.attributes.pop("input_defaults", None)


def forget_derived(graph: GraphOp) -> None:
    """Drops the results of an earlier `infer-shapes` on a graph with changed inputs."""
    for key in DERIVED:
        graph.attributes.pop(key, None)


# -- order ------------------------------------------------------------------------------------------------------------


def reads(op: Operation) -> Iterator[SSAValue]:
    """Yields the values read by a node: its operands, and outer values read by the graphs inside it."""
    inner: set[SSAValue] = set()
    for sub in op.walk():
        inner.update(sub.results)
        for region in sub.regions:
            for block in region.blocks:
                inner.update(block.args)
    for sub in op.walk():
        yield from (v for v in sub.operands if v not in inner)


def restore_order(block: Block) -> None:
    """Moves nodes after their operands, with as few moves as possible. Raises `IgniterError` if they form a cycle."""
    ops = list(block.ops)
    index = {op: i for i, op in enumerate(ops)}
    before: dict[Operation, set[Operation]] = {}
    after: dict[Operation, list[Operation]] = {op: [] for op in ops}
    for op in ops:
        wanted = {v.owner for v in reads(op) if isinstance(v, OpResult) and v.owner in index and v.owner is not op}
        before[op] = set(wanted)
        for other in wanted:
            after[other].append(op)
    if all(index[other] < index[op] for op, wanted in before.items() for other in wanted):
        return
    ready = [index[op] for op in ops if not before[op]]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        op = ops[heapq.heappop(ready)]
        order.append(op)
        for later in after[op]:
            before[later].discard(op)
            if not before[later]:
                heapq.heappush(ready, index[later])
    if len(order) < len(ops):
        stuck = next(op for op in ops if before[op] and not isinstance(op, ReturnOp))
        raise IgniterError(f"{node_text(stuck)} would depend on its own result")
    last = order.pop(order.index(ops[-1]))
    for op in [*order, last]:
        op.detach()
        block.add_op(op)


# -- dead nodes -------------------------------------------------------------------------------------------------------


def sweep(candidates: Iterable[SSAValue]) -> list[str]:
    """Erases the unused nodes of these values, and nodes read only by them. Returns their names."""
    gone: list[str] = []
    pending = [v.owner for v in candidates if isinstance(v, OpResult)]
    erased: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op in erased or op.parent is None or any(r.first_use is not None for r in op.results):
            continue
        pending += [v.owner for v in reads(op) if isinstance(v, OpResult)]
        erased.add(op)
        if isinstance(op, OnnxOp):
            gone.append(node_text(op))
        op.parent.erase_op(op)
    return gone


def is_omitted(value: SSAValue) -> bool:
    """True if a value marks an omitted input."""
    return isinstance(value.type, NoneType) or isinstance(value.owner, NoValueOp)


def rename_annotations(names: Names, renamed: dict[str, str]) -> None:
    """Renames tensors in quantization annotations."""
    for scope in names.scopes:
        attr = scope.info.get("quantization_annotations")
        if isinstance(attr, ArrayAttr):
            scope.info["quantization_annotations"] = _renamed(cast(Attribute, attr), renamed)


def _renamed(attr: Attribute, renamed: dict[str, str]) -> Attribute:
    if isinstance(attr, ArrayAttr):
        items = list(cast("ArrayAttr[Attribute]", attr).data)
        texts = texts_of(cast(Attribute, attr)) if all(not isinstance(i, ArrayAttr) for i in items) else None
        if texts is not None and len(texts) == 2:
            return texts_attr([texts[0], renamed.get(texts[1], texts[1])])
        if len(items) == 2 and not isinstance(items[0], ArrayAttr):
            name = texts_of(ArrayAttr([items[0]]))[0]
            return ArrayAttr([*texts_attr([renamed.get(name, name)]).data, _renamed(items[1], renamed)])
        return ArrayAttr([_renamed(i, renamed) for i in items])
    return attr
