"""`extract-part`: extracts the part of a model between given values, or the part before or after it.

    x -> a -> b -> c -> y      extract-part{start="a" end="c"}      a -> b -> c
                               extract-part{... part="before"}      x -> a
                               extract-part{... part="after"}       c -> y

The *inside* are the nodes on the paths from values of `start` to values of `end`. *After* are all users of the inside,
and *before* are all other nodes. In sequence, the three compute the model. Other values read by the inside are its
inputs too, and other results read after it are its outputs; `exact` excludes the latter, for a part used alone. Without
`start` the inside begins at the inputs; without `end` it ends at the outputs. Types and symbols of dims are kept; every
part has its own weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit
from igniter.toolbox.edit.names import Names
from igniter.toolbox.extract.parts import Part, Partition

PARTS = ("before", "inside", "after")


@dataclass(frozen=True)
class ExtractPart(Edit):
    """Keeps the part between values of the model, before them, or after them."""

    name = "extract-part"
    start: tuple[str, ...] = ()
    """The start of the inside; its inputs."""
    end: tuple[str, ...] = ()
    """The end of the inside; its outputs."""
    part: str = "inside"
    """before, inside or after."""
    exact: bool = False
    """Keeps only `end` as outputs; for the inside only."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.part not in PARTS:
            raise IgniterError(f"there is no part '{self.part}': it is one of {', '.join(PARTS)}")
        if self.exact and self.part != "inside":
            raise IgniterError("'exact' is for the inside: before and after have the outputs that the others need")
        found = extract_parts(op, self.start, self.end, exact=self.exact)
        kept = next((p for p in found if p.name == self.part), None)
        if kept is None:
            raise IgniterError(f"there is nothing {self.part} of these values")
        for old in list(op.ops):
            old.detach()
            old.erase()
        made = kept.module
        for new in list(made.ops):
            new.detach()
            op.body.block.add_op(new)
        remark(ctx, self.name, "", "applied", f"{kept.nodes} nodes are {self.part}")


def extract_parts(module: ModuleOp, start: tuple[str, ...], end: tuple[str, ...], *, exact: bool = False) -> list[Part]:
    """Returns the parts with nodes, in order. Raises `IgniterError` if no path leads from `start` to `end`."""
    partition = Partition(module)
    names = Names(module)
    first = [names.main_value(n, "and a model is cut in its main graph") for n in start]
    last = [names.main_value(n, "and a model is cut in its main graph") for n in end]
    if not start and not end:
        raise IgniterError("name the values to begin or to end with")
    for name, value in zip(end, last, strict=True):
        if isinstance(value, BlockArgument) or value.owner in partition.shared:
            raise IgniterError(f"'{name}' is {names.kind(value)}, which no node of the model computes from its inputs")
        if value in first:
            raise IgniterError(f"'{name}' is named as a begin and an end")
    below = _below(partition, first or list(partition.graph.body.args))
    if not last:
        last = [v for _, v in partition.outputs]
    above = _above(partition, last, set(first))
    inside = [op for op in partition.nodes if op in below and op in above]
    for name, value in zip(end, last, strict=False):
        if value.owner not in below:
            raise IgniterError(f"'{name}' does not depend on {', '.join(start) or 'any input'}")
    for name, value in zip(start, first, strict=True):
        if not any(value in partition.reads[op] for op in inside):
            raise IgniterError(f"nothing that {', '.join(end) or 'an output'} depends on reads '{name}' on the way")
    inside = _closed(partition, inside)
    behind = _below(partition, [r for op in inside for r in op.results])
    stages = {
        "before": [op for op in partition.nodes if op not in behind and op not in set(inside)],
        "inside": inside,
        "after": [op for op in partition.nodes if op in behind and op not in set(inside)],
    }
    if exact:
        # An output independent of `start` is not part of the inside: its producers are not there.
        behind_start = [(n, v) for n, v in partition.outputs if v.owner in set(inside)]
        outputs = [(n, v) for n, v in zip(end, last, strict=True)] if end else behind_start
        return [partition.part("inside", inside, partition.needed(inside), outputs)]
    titles = [t for t in PARTS if stages[t]]
    return partition.parts([stages[t] for t in titles], titles)


def _closed(partition: Partition, inside: list[OnnxOp]) -> list[OnnxOp]:
    """Adds the nodes between two of the nodes: one start value may depend on another."""
    own = set(inside)
    behind = _below(partition, [r for op in inside for r in op.results])
    ahead = _above(partition, [v for op in inside for v in partition.reads[op]], set())
    return [op for op in partition.nodes if op in own or (op in behind and op in ahead)]


def _below(partition: Partition, values: list[SSAValue]) -> set[Operation]:
    """Returns all users of the values, direct and indirect."""
    reached = set(values)
    found: set[Operation] = set()
    for op in partition.nodes:
        if any(v in reached for v in partition.reads[op]):
            found.add(op)
            reached.update(op.results)
    return found


def _above(partition: Partition, values: list[SSAValue], stop: set[SSAValue]) -> set[Operation]:
    """Returns all producers of the values, direct and indirect, without passing `stop`."""
    found: set[Operation] = set()
    pending = [v.owner for v in values if isinstance(v, OpResult)]
    while pending:
        op = pending.pop()
        if op in found or not isinstance(op, OnnxOp) or op in partition.shared:
            continue
        found.add(op)
        pending += [v.owner for v in partition.reads[op] if isinstance(v, OpResult) and v not in stop]
    return found
