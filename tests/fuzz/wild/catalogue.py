"""The nodes of ONNX's own test cases, with their inputs: each op with attributes that somebody thought of.

The onnx package computes its cases when they are asked for, which takes ten seconds, so they are kept in a file.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from tests.fuzz.wild.pool import Array, Pool

LARGEST = 3000
SKIPPED = frozenset(("Bernoulli", "RandomNormal", "RandomUniform", "Multinomial", "ImageDecoder", "Constant"))
"""Ops that are random, or read pictures."""


@dataclass(frozen=True)
class Entry:
    """One node; `inputs` are in the node's order, None where it has none."""

    node: bytes
    opset: int
    inputs: tuple[Array | None, ...]


@cache
def catalogue() -> dict[str, list[Entry]]:
    """The nodes by op, from the file where there is one."""
    path = Path(tempfile.gettempdir()) / f"igniter-fuzz-nodes-{onnx.__version__}-{os.getuid()}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    made = _from_onnx()
    own = path.with_suffix(f".{os.getpid()}")
    own.write_bytes(pickle.dumps(made))
    own.replace(path)
    return made


def _from_onnx() -> dict[str, list[Entry]]:
    from onnx.backend.test.loader import load_model_tests

    found: dict[str, list[Entry]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or graph.initializer or graph.node[0].op_type in SKIPPED:
            continue
        node = graph.node[0]
        given = dict(zip([i.name for i in graph.input], case.data_sets[0][0], strict=False))
        inputs = tuple(given.get(n) for n in node.input)
        arrays = [a for a in inputs if a is not None]
        if any(not isinstance(a, np.ndarray) or a.dtype.kind in "OUS" or a.size > LARGEST for a in arrays):
            continue
        opset = max(i.version for i in case.model.opset_import if i.domain == node.domain)
        key = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        found.setdefault(key, []).append(Entry(node.SerializeToString(), opset, inputs))
    return found


def start(p: Pool) -> bool:
    """Puts one node with its inputs into an empty pool; those that are no weights are inputs of the model."""
    entries = catalogue()
    entry = p.rng.choice(entries[p.rng.choice(sorted(entries))])
    node = onnx.NodeProto.FromString(entry.node)
    before = p.opset
    if not node.domain:
        p.opset = entry.opset
    names: list[str] = []
    for array in entry.inputs:
        if array is None:
            names.append("")
        elif p.chance(0.8 if array.dtype.kind in "iu" and array.ndim <= 1 else 0.25):
            names.append(p.weight(array))
        else:
            names.append(p.input(array.dtype, array.shape))
            p.values[names[-1]] = array
    node.input[:] = names
    node.output[:] = [p.fresh("v") if n else "" for n in node.output]
    node.name = f"{node.op_type}_0"
    if p.try_made(node):
        return True
    p.opset = before  # ONNX Runtime may have no op of the newest
    return False
