"""Binding of a region's symbols: from its operands, or from tensors read only for this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.fusion.legality import (
    Reason,
    as_tensor,
    has_dims,
    is_kernel_type,
    node_symbols,
    tensor_operands,
)
from igniter.dialects.onnx.bound import is_carrier
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.bind_symbols import bind_symbols
from igniter.dialects.sym.expr import symbols_of


class SymbolSources:
    """The sources of symbols beyond a region's operands."""

    def __init__(self, inputs: Iterable[SSAValue], block: Block | None = None):
        """Collects the sources. `inputs` are those of the graph and, for a subgraph, those of the graphs around it. The
        carriers among the nodes of `block` come before every user of their values (`carrier_edges`)."""
        self._inputs: dict[str, SSAValue] = {}
        self._carriers = {} if block is None else _carriers(block.ops)
        for argument in inputs:
            for name in _dim_names(argument):
                self._inputs.setdefault(name, argument)

    def bindings(self, members: Sequence[Operation]) -> tuple[SSAValue, ...] | Reason:
        """Returns additional operands of a region of `members`, read only to bind its symbols.

        They are graph inputs, or ancestors of a member, so they cannot close a cycle.
        """
        operands = region_operands(members)
        needed: set[str] = set()
        for op in members:
            needed |= node_symbols(op)
        added: list[SSAValue] = []
        above: Mapping[str, Sequence[SSAValue]] | None = None
        bound = _bound(operands)
        for name in sorted(needed):
            if name in bound:
                continue
            sources = [v for v in (self._inputs.get(name),) if v is not None]
            if not sources:
                above = _dims_above(members) if above is None else above
                sources = [*above.get(name, ()), *([self._carriers[name]] if name in self._carriers else [])]
            # A call could not check an operand with an unbound dim.
            told = (v for v in sources if _symbols(v) <= _bound([*operands, *added, v]) | needed)
            source = next(told, None)
            if source is None:
                return Reason("symbols", f"no possible input of the region has the dim {name}")
            added.append(source)
            bound = _bound([*operands, *added])
        return tuple(added)


def carrier_edges(nodes: Sequence[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Yields the edges from each carrier's node to the nodes whose kernels need its values and do not read it: they are
    computed from shapes bound by the carrier."""
    carriers = _carriers(nodes)
    for op in nodes if carriers else ():
        needed = node_symbols(op) & carriers.keys()
        if not needed or is_carrier(op):
            continue
        bound = _bound(tensor_operands(op))
        for name in sorted(needed - bound):
            owner = carriers[name].owner
            assert isinstance(owner, Operation)
            yield owner, op


def _carriers(ops: Iterable[Operation]) -> dict[str, SSAValue]:
    """Returns the carrier of each carried value."""
    found: dict[str, SSAValue] = {}
    for op in ops:
        if is_carrier(op):
            for name in _dim_names(op.results[0]):
                found.setdefault(name, op.results[0])
    return found


def region_operands(members: Sequence[Operation]) -> list[SSAValue]:
    """Returns the tensors from outside, in order of first use."""
    inside = set(members)
    found: dict[SSAValue, None] = {}
    for op in members:
        for operand in tensor_operands(op):
            if operand.owner not in inside:
                found[operand] = None
    return list(found)


def is_inside(op: Operation, members: Set[Operation]) -> bool:
    """True if an op is one of `members` or in the body of one."""
    around: Operation | None = op
    while around is not None and around not in members:
        around = around.parent_op()
    return around is not None


def _dim_names(value: SSAValue) -> Iterable[str]:
    """Returns the dims of a tensor with a plain symbol."""
    type_ = as_tensor(value.type)
    if type_ is None or not has_dims(type_) or not is_kernel_type(type_.element_type):
        return ()
    return [d.symbol for d in dims_of(type_) if d.symbol is not None]


def _bound(operands: Iterable[SSAValue]) -> frozenset[str]:
    types = [as_tensor(v.type) for v in operands]
    return bind_symbols([(dims_of(t), True) for t in types if t is not None]).bound


def _symbols(value: SSAValue) -> frozenset[str]:
    type_ = as_tensor(value.type)
    return frozenset() if type_ is None else symbols_of(dims_of(type_))


def _dims_above(members: Iterable[Operation]) -> dict[str, list[SSAValue]]:
    """Returns, for each symbol, the members' ancestors with such a dim."""
    own = set(members)
    seen: set[Operation] = set()
    found: dict[str, list[SSAValue]] = {}
    stack: list[Operation] = list(own)
    while stack:
        op = stack.pop()
        for operand in tensor_operands(op):
            owner = operand.owner
            if not isinstance(owner, Operation) or owner in own:
                continue
            for name in _dim_names(operand):
                found.setdefault(name, []).append(operand)
            if owner not in seen:
                seen.add(owner)
                stack.append(owner)
    return found
