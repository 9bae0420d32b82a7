"""The time of each node of a model in ONNX Runtime, for balancing stages by time."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from igniter.dialects.onnx.attributes import text_attr
from igniter.errors import IgniterError
from igniter.frontend import save_model
from igniter.runtime.session import make_session
from igniter.toolbox.extract.parts import Partition
from igniter.toolbox.split.stages.writing import example_inputs
from igniter.verification.original import Original, unoptimised

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

ROUNDS = 5
"""The number of timed runs, after an untimed one."""


def node_seconds(
    partition: Partition, source: str | Path | bytes, sizes: Mapping[str, int], seed: int = 0
) -> dict[Operation, float]:
    """Returns the median seconds of every node of a model on one thread, without optimisations across nodes, at the
    given sizes; for other dims a search finds sizes at which the model runs."""
    original = Original(source if isinstance(source, bytes) else str(source))
    _, feed = example_inputs(original, source, sizes, seed, 30.0)
    by_name = {f"igniter{i}": op for i, op in enumerate(partition.nodes)}
    with tempfile.TemporaryDirectory(prefix="igniter-time-") as scratch:
        path = Path(scratch) / "named.onnx"
        _save_named(partition, by_name, path)
        events = _profile(path, feed, scratch)
    found: dict[Operation, float] = {}
    for name, op in by_name.items():
        found[op] = statistics.median(events[name]) if name in events else 0.0
    if not any(found.values()):
        raise IgniterError("ONNX Runtime's profile names none of the model's nodes: balance by flops or bytes")
    return found


def _save_named(partition: Partition, by_name: Mapping[str, OnnxOp], path: Path) -> None:
    """Writes the model with a name of its own for every node; the module keeps its names."""
    before = {op: op.properties.get("node_name") for op in by_name.values()}
    try:
        for name, op in by_name.items():
            op.properties["node_name"] = text_attr(name)
        save_model(partition.module, path)
    finally:
        for op, old in before.items():
            if old is None:
                op.properties.pop("node_name", None)
            else:
                op.properties["node_name"] = old


def _profile(path: Path, feed: Mapping[str, Any], scratch: str) -> dict[str, list[float]]:
    prefix = os.path.join(scratch, "profile")
    session: Any = make_session(
        path,
        graph_optimization_level=unoptimised(),
        enable_profiling=True,
        profile_file_prefix=prefix,
        intra_op_num_threads=1,
        log_severity_level=4,
    )
    for _ in range(ROUNDS + 1):
        session.run(None, dict(feed))
    data: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    found: defaultdict[str, list[float]] = defaultdict(list)
    for event in data:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            found[name.removesuffix("_kernel_time")].append(event["dur"] / 1e6)
    return {name: times[1:] or times for name, times in found.items()}
