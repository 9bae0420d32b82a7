"""The nodes of a model on quantised tensors: products and convolutions of f32 in the main graph."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.errors import IgniterError

QUANTIZED = {"Conv": 0, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1}
"""The ops quantised by default, and the axis of a plain weight with a scale for each index."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A quantisable node: `name` is its own, or its result's if it has none or shares it."""

    name: str
    op: OnnxOp

    @property
    def weight_axis(self) -> int:
        """The axis of the weight whose indices have scales of their own."""
        if self.op.op_type == "Gemm" and self.op.attr("transB", 0):
            return 0
        if self.op.op_type == "MatMul":
            weight = constant_weight(self.op.operands[1])
            return len(weight.shape) - 1 if weight is not None else 0
        return QUANTIZED[self.op.op_type]

    @property
    def computed(self) -> list[int]:
        """The places of the non-constant factors, whose ranges are calibrated."""
        return [k for k in range(2) if constant_value(self.op.operands[k]) is None]


def value_name(value: SSAValue, graph: GraphOp) -> str:
    """Returns the model's name for a value of its main graph; "" without a name."""
    if isinstance(value, BlockArgument):
        return graph.input_names[value.index] if value.block is graph.body else ""
    owner = value.owner
    if not isinstance(owner, OnnxOp) or not isinstance(value, OpResult):
        return ""
    names = owner.output_names
    return names[value.index] if value.index < len(names) else ""


def candidates(
    module: ModuleOp, ops: Collection[str] = (), only: Sequence[str] = (), leave: Sequence[str] = ()
) -> list[Candidate]:
    """Returns the nodes of the main graph to quantise: of the types `ops` (by default all of `QUANTIZED`), fitting a
    pattern of `only` and none of `leave`, on names and types. Raises `IgniterError` for a pattern without a match."""
    unknown = sorted(set(ops) - QUANTIZED.keys())
    if unknown:
        raise IgniterError(f"{', '.join(unknown)} cannot be quantised: ops that can are {', '.join(QUANTIZED)}")
    graph = main_graph(module)
    found: list[Candidate] = []
    taken: set[str] = set()
    for op in graph.body.ops:
        if not isinstance(op, OnnxOp) or op.qualified_name not in (ops or QUANTIZED):
            continue
        if not isinstance(tensor_element(op.results[0].type), Float32Type):
            continue
        candidate = _candidate(op, graph, taken)
        if candidate is not None:
            taken.add(candidate.name)
            found.append(candidate)
    for pattern in (*only, *leave):
        _require(pattern, found)
    chosen = [c for c in found if (not only or _fits(c, only)) and not _fits(c, leave)]
    if not chosen:
        raise IgniterError(f"there is nothing to quantise: no {', '.join(ops or QUANTIZED)} of f32 in the main graph")
    return chosen


def outside(module: ModuleOp, ops: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """Returns the unquantisable nodes of the types `ops`, whatever the choice of names, with reasons."""
    graph = main_graph(module)
    found: list[tuple[str, str]] = []
    for op in module.walk():
        if not isinstance(op, OnnxOp) or op.qualified_name not in (ops or QUANTIZED):
            continue
        name = op.node_name or next(iter(op.output_names), "") or op.op_type
        if op.parent is not graph.body:
            found.append((name, "it is inside another node or a function, whose values are not calibrated"))
        elif not isinstance(tensor_element(op.results[0].type), Float32Type):
            found.append((name, "its result is not known to be f32"))
        elif _candidate(op, graph, set()) is None:
            found.append((name, "its factors are constants of another form, on the left, or have no names"))
    return tuple(found)


def _candidate(op: OnnxOp, graph: GraphOp, taken: set[str]) -> Candidate | None:
    if len(op.operands) < 2:
        return None
    result = value_name(op.results[0], graph)
    name = op.node_name if op.node_name and op.node_name not in taken else result
    made = Candidate(name, op)
    named = all(value_name(op.operands[k], graph) for k in made.computed)
    weight = constant_weight(op.operands[1])
    # A constant of another form than a tensor, or on the left, is dequantised as a whole.
    whole = 1 in made.computed or (weight is not None and not weight.elided)
    return made if made.computed == sorted({0, *made.computed}) and named and whole and result else None


def _fits(candidate: Candidate, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(n, p) for p in patterns for n in (candidate.name, candidate.op.op_type))


def _require(pattern: str, found: Sequence[Candidate]) -> None:
    if any(_fits(c, [pattern]) for c in found):
        return
    known = [*dict.fromkeys(n for c in found for n in (c.name, c.op.op_type))]
    near = difflib.get_close_matches(pattern.strip("*"), known, 3, 0.5)
    hint = f"like it are {', '.join(near)}" if near else f"there are {', '.join(known[:5]) or 'none'}"
    raise IgniterError(f"'{pattern}' names no node or op that can be quantised: {hint}")


__all__ = ["QUANTIZED", "Candidate", "candidates", "outside", "value_name"]
