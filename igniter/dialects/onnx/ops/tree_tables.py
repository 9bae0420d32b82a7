"""Tree ensembles as tables: the attributes of the three ops of ai.onnx.ml, in a common form.

A node is a row; a leaf has `yes` -1. The weights of leaf `n` are those from `first[n]` to `first[n + 1]`. Roots and
nodes are in the order of a traversal, so that nodes visited together are near in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.dialects.onnx.ops.ml_scores import numbers
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

Array = np.ndarray[Any, Any]
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = 6
"""The mode of TreeEnsemble that tests for membership in a set."""


@dataclass
class Node:
    """One node during the construction of tables. A leaf has no `mode`."""

    feature: int = 0
    value: float = 0.0
    mode: int | None = None
    missing: bool = False
    yes: Any = None
    no: Any = None
    weights: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])


@dataclass(frozen=True)
class Trees:
    """The tables of an ensemble."""

    tables: Mapping[str, Array]
    modes: frozenset[int]
    depth: int
    """The maximum number of nodes on a path."""
    trees: int
    always: frozenset[int]
    """The targets with a weight for every row."""
    ever: frozenset[int]
    """The targets with a weight in some leaf."""
    positive: bool
    """True if no weight is negative."""


@lru_cache(maxsize=16)
def trees_of(op: OnnxOp) -> Trees:
    """Returns the tables of a node; raises `IgniterError` if it is no ensemble of trees."""
    roots, nodes = _new_form(op) if op.op_type == "TreeEnsemble" else _old_form(op)
    return _tables(roots, nodes)


def _tensor_or_list(op: OnnxOp, name: str) -> list[Any]:
    given = op.attr(f"{name}_as_tensor")
    return numbers(op, name) if given is None else list(np.asarray(given).reshape(-1))


def _old_form(op: OnnxOp) -> tuple[list[Any], dict[Any, Node]]:
    """Parses TreeEnsembleRegressor and TreeEnsembleClassifier."""
    modes = [m.decode() if isinstance(m, bytes) else str(m) for m in numbers(op, "nodes_modes")]
    keys = list(zip(numbers(op, "nodes_treeids"), numbers(op, "nodes_nodeids"), strict=True))
    features, values = numbers(op, "nodes_featureids"), _tensor_or_list(op, "nodes_values")
    yes, no = numbers(op, "nodes_truenodeids"), numbers(op, "nodes_falsenodeids")
    missing = numbers(op, "nodes_missing_value_tracks_true") or [0] * len(keys)
    nodes: dict[Any, Node] = {}
    for k, key in enumerate(keys):
        if modes[k] == "LEAF":
            nodes[key] = Node()
            continue
        mode = MODES.index(modes[k]) if modes[k] in MODES else len(MODES) - 1
        down = (key[0], yes[k]), (key[0], no[k])
        nodes[key] = Node(int(features[k]), float(values[k]), mode, bool(missing[k]), *down)
    kind = "target" if op.op_type == "TreeEnsembleRegressor" else "class"
    owners = zip(numbers(op, f"{kind}_treeids"), numbers(op, f"{kind}_nodeids"), strict=True)
    targets, weights = numbers(op, f"{kind}_ids"), _tensor_or_list(op, f"{kind}_weights")
    for owner, target, weight in zip(owners, targets, weights, strict=True):
        if owner not in nodes:
            raise IgniterError(f"a weight belongs to node {owner[1]} of tree {owner[0]}, which does not exist")
        nodes[owner].weights.append((int(target), float(weight)))
    below = {child for n in nodes.values() if n.mode is not None for child in (n.yes, n.no)}
    roots: dict[Any, Any] = {}
    for key in keys:
        if key not in below:
            roots.setdefault(key[0], key)
    return list(roots.values()), nodes


def _new_form(op: OnnxOp) -> tuple[list[Any], dict[Any, Node]]:
    """Parses TreeEnsemble: leaves have separate lists, and a node may test for membership in a set."""
    modes = np.asarray(op.attr("nodes_modes")).reshape(-1)
    splits = np.asarray(op.attr("nodes_splits")).reshape(-1)
    members = op.attr("membership_values")
    sets = _sets(np.asarray(members).reshape(-1)) if members is not None else []
    features = numbers(op, "nodes_featureids")
    missing = numbers(op, "nodes_missing_value_tracks_true") or [0] * len(features)
    ends = [
        [("leaf" if leaf else "node", index) for leaf, index in zip(numbers(op, leafs), numbers(op, ids), strict=True)]
        for leafs, ids in (("nodes_trueleafs", "nodes_truenodeids"), ("nodes_falseleafs", "nodes_falsenodeids"))
    ]
    nodes: dict[Any, Node] = {}
    taken = iter(sets)
    for k, feature in enumerate(features):
        mode, yes, no = int(modes[k]), ends[0][k], ends[1][k]
        if mode != MEMBER:
            nodes["node", k] = Node(int(feature), float(splits[k]), mode, bool(missing[k]), yes, no)
            continue
        # A chain of comparisons, one for each member.
        values = next(taken)
        for place, value in enumerate(values):
            key = ("node", k) if place == 0 else ("node", k, place)
            other = no if place == len(values) - 1 else ("node", k, place + 1)
            nodes[key] = Node(int(feature), value, MODES.index("BRANCH_EQ"), bool(missing[k]), yes, other)
    weights = np.asarray(op.attr("leaf_weights")).reshape(-1)
    for k, (target, weight) in enumerate(zip(numbers(op, "leaf_targetids"), weights, strict=True)):
        nodes["leaf", k] = Node(weights=[(int(target), float(weight))])
    return [("node", r) for r in numbers(op, "tree_roots")], nodes


def _sets(values: Array) -> list[list[float]]:
    """Splits a list into sets, each ended by NaN."""
    found: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            found.append([])
        else:
            found[-1].append(float(value))
    return [s for s in found if s]


def _tables(roots: Sequence[Any], nodes: Mapping[Any, Node]) -> Trees:
    order: dict[Any, int] = {}
    depth = 0
    always: set[int] = set()
    for root in roots:
        common: set[int] | None = None
        pending = [(root, 1)]
        seen: set[Any] = set()
        while pending:
            key, level = pending.pop()
            node = nodes.get(key)
            if node is None or level > len(nodes):
                raise IgniterError("a node of a tree is missing, or is its own descendant")
            depth = max(depth, level)
            if key in seen:
                continue
            seen.add(key)
            order.setdefault(key, len(order))
            if node.mode is None:
                targets = {t for t, _ in node.weights}
                common = targets if common is None else common & targets
            else:
                pending += [(node.no, level + 1), (node.yes, level + 1)]
        always |= common or set()
    listed = [nodes[key] for key in order]
    leaves = [w for n in listed for w in n.weights]
    first = np.concatenate([[0], np.cumsum([len(n.weights) for n in listed])])
    tables: dict[str, Array] = {
        "roots": np.array([order[r] for r in roots], np.int32),
        "feature": np.array([n.feature for n in listed], np.int32),
        "value": np.array([n.value for n in listed], np.float64),
        "mode": np.array([0 if n.mode is None else n.mode for n in listed], np.int32),
        "missing": np.array([n.missing for n in listed], np.int32),
        "yes": np.array([-1 if n.mode is None else order[n.yes] for n in listed], np.int32),
        "no": np.array([-1 if n.mode is None else order[n.no] for n in listed], np.int32),
        "first": first.astype(np.int32),
        "target": np.array([t for t, _ in leaves], np.int32),
        "weight": np.array([w for _, w in leaves], np.float64),
    }
    return Trees(
        tables,
        frozenset(n.mode for n in listed if n.mode is not None),
        depth,
        len(roots),
        frozenset(always),
        frozenset(t for t, _ in leaves),
        all(w >= 0 for _, w in leaves),
    )
