"""Tensor parallelism: a folder with a model for every rank, and the segments of ranks between collectives."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.frontend import import_model, save_model
from igniter.passes import run_passes
from igniter.toolbox.edit.verified import EditCheck
from igniter.toolbox.extract.parts import Part, Partition
from igniter.toolbox.split.shard_products import ALL_REDUCE, COLLECTIVES, ShardProducts
from igniter.toolbox.split.stages.manifest import Manifest, Segment, Stage
from igniter.toolbox.split.stages.writing import replace_folder, require_folder

if TYPE_CHECKING:
    from igniter.dialects.onnx.structure import GraphOp


def write_ranks(
    ir: ModuleOp,
    ctx: Context,
    ranks: int,
    folder: str | Path,
    *,
    alone: bool = True,
    sizes: Mapping[str, int] | None = None,
    check: Callable[[Manifest], EditCheck] | None = None,
) -> tuple[Manifest, EditCheck | None]:
    """Writes a model for every rank, the models of its segments, and the manifest. The folder appears when all is
    written, unless `check` finds a difference. The segments' weights are in the files of the ranks."""
    target = require_folder(folder)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        graph = main_graph(ir)
        stages: list[Stage] = []
        by_rank: list[list[tuple[Part, dict[str, str]]]] = []
        for rank in range(ranks):
            copy = ir.clone()
            run_passes(ctx, copy, (ShardProducts(ranks=ranks, rank=rank, alone=alone),))
            path = scratch / f"rank{rank}.onnx"
            save_model(copy, path, external_data_threshold=1024)
            files: set[str] = set()
            segments = segments_of(import_model(path, external=files))
            for i, (part, _) in enumerate(segments):
                save_model(part.module, scratch / f"rank{rank}.segment{i}.onnx", keep=files)
            by_rank.append(segments)
            nodes = sum(p.nodes for p, _ in segments)
            stages.append(Stage(f"rank{rank}", path.name, tuple(graph.input_names), tuple(graph.output_names), nodes))
        made = _manifest(graph, stages, by_rank, dict(sizes or {}), scratch)
        made.write()
        found = check(made) if check is not None else None
        if found is None or found.status != "differs":
            replace_folder(scratch, target)
        return _manifest(graph, stages, by_rank, dict(sizes or {}), target), found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _manifest(
    graph: GraphOp,
    stages: list[Stage],
    by_rank: list[list[tuple[Part, dict[str, str]]]],
    sizes: dict[str, int],
    folder: Path,
) -> Manifest:
    segments = tuple(
        Segment(tuple(f"{s.name}.segment{i}.onnx" for s in stages), part.inputs, part.outputs, reduces)
        for i, (part, reduces) in enumerate(by_rank[0])
    )
    inputs, outputs = tuple(graph.input_names), tuple(graph.output_names)
    return Manifest("tensor", inputs, outputs, tuple(stages), sizes, folder, segments)


def is_collective(op: Operation) -> bool:
    """True if a node sums values over ranks."""
    return isinstance(op, OnnxOp) and (op.domain, op.op_type) == (COLLECTIVES, ALL_REDUCE)


def segments_of(module: ModuleOp) -> list[tuple[Part, dict[str, str]]]:
    """Returns the segments of a rank between its collectives, in order, and the sums after each: the name of the sum,
    and of the rank's part of it. A node is in the first segment with all of its inputs."""
    partition = Partition(module)
    level: dict[Operation, int] = {}
    for op in partition.nodes:
        before = [v.owner for v in partition.reads[op] if isinstance(v, OpResult) and v.owner in level]
        level[op] = max((level[o] + is_collective(o) for o in before), default=0)
    count = 1 + max(level.values(), default=0)
    stages = [[op for op in partition.nodes if level[op] == i and not is_collective(op)] for i in range(count)]
    sums = [[op for op in partition.nodes if level[op] == i and is_collective(op)] for i in range(count)]
    returned = {v for _, v in partition.outputs}
    found: list[tuple[Part, dict[str, str]]] = []
    for i in range(count):
        own = set(stages[i])
        outputs = [
            (partition.names[r], r)
            for op in stages[i]
            for r in op.results
            if r in partition.names and (r in returned or any(use not in own for use in _readers(r, partition)))
        ]
        if i == count - 1:
            known = {v for _, v in outputs}
            outputs += [(n, v) for n, v in partition.outputs if _from_outside(v, partition) and v not in known]
        part = partition.part(f"segment{i}", stages[i], partition.needed(stages[i]), outputs)
        reduces = {partition.names[op.results[0]]: partition.names[op.operands[0]] for op in sums[i]}
        found.append((part, reduces))
    return found


def _readers(value: OpResult, partition: Partition) -> set[Operation]:
    """Returns the nodes of the main graph that read a value, also inside their subgraphs."""
    block = partition.graph.body
    found: set[Operation] = set()
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent is not block:
            op = op.parent_op()
        if op is not None:
            found.add(op)
    return found


def _from_outside(value: object, partition: Partition) -> bool:
    """True if an output of the model is no node's result: an input, or a constant."""
    return not isinstance(value, OpResult) or value.owner in partition.shared
