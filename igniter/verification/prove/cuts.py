"""Cut points: arrays that both programs compute are proven equal one by one, in the order of the structured kernel.

A scheduled buffer usually holds the result of one nest, under its label. Once each loaded element of the buffer is
proven to be an element of the nest's result, later proofs take both as elements of one array with a name. So the proof
of a nest ends at the results of the nests before it, and not at the inputs of the kernel.

A cut replaces equal values by one name, so a proof with cuts holds. Labels are only hints: a buffer without a proof is
not cut. A rewrite across a cut has no proof with it; `prove` then tries without cuts.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from igniter.dialects.loop import ComputeOp, KernelOp, ViewOp
from igniter.dialects.sym import element_of
from igniter.verification.prove.equality import Equality
from igniter.verification.prove.integers import NotDecided, Points, Relation, Sizes, coalesced, isl
from igniter.verification.prove.scheduled import ScheduledValues
from igniter.verification.prove.structured import StructuredValues
from igniter.verification.prove.values import Output


class Cuts:
    """The cuts between a structured kernel and a later version of it."""

    def __init__(self, before: StructuredValues, equality: Equality, sizes: Sizes):
        self.before = before
        self.equality = equality
        self.context: Points = sizes.context()
        self.count = 0

    def of_schedule(self, kernel: KernelOp, after: ScheduledValues) -> None:
        """Cuts the buffers of a scheduled kernel."""
        roots = list(after.statements.roots.values())
        for op, tensor in _computed(kernel):
            labels = {op.label, *(f"result {k}" for k, v in enumerate(kernel.returned) if _origin(v) is tensor)}
            named = [r for r in roots if r.label in labels and element_of(r.value.type) == element_of(tensor.type)]
            # The accumulators of a nest, in its loops, hold the values of its result: they come first.
            for root in sorted(named, key=lambda r: -len(r.instance)):
                if root not in after.cuts:
                    elements = after.elements(root)
                    found = None if elements is None else self._equal(tensor, elements, not root.instance)
                    if found is not None:
                        after.cuts[root] = found

    def of_kernel(self, kernel: KernelOp, after: StructuredValues, other: KernelOp) -> None:
        """Cuts the tensors of a structured kernel."""
        theirs = {(op.label, v.index): v for op, v in _computed(other)}  # pyright: ignore
        for op, tensor in _computed(kernel):
            same = theirs.get((op.label, tensor.index))  # pyright: ignore
            if same is not None and element_of(same.type) == element_of(tensor.type):
                found = self._equal(tensor, after.elements(same), True)
                if found is not None:
                    after.cuts[same] = found[0], found[1].set_tuple_name(isl().dim_type.in_, "E")

    def _equal(self, tensor: SSAValue, theirs: Output, is_whole: bool) -> tuple[str, Relation] | None:
        """Returns the key of a tensor, and the relation from the elements of another array to equal ones of it."""
        self.equality.limits.check()
        key, mine = self.before.named_elements(tensor)
        try:
            for pairs in self._candidates(mine, theirs, is_whole):
                if self._covers(pairs, theirs) and self.equality.failures(mine.value, theirs.value, pairs) is None:
                    self.before.cut(tensor)
                    self.count += 1
                    return key, pairs.reverse().set_tuple_name(isl().dim_type.out, key)
        except NotDecided:
            self.equality.limits.check()
        return None

    def _candidates(self, mine: Output, theirs: Output, is_whole: bool) -> Iterator[Relation]:
        """Yields relations between the elements: under equal dims the same ones, then those with equal inputs."""
        left, right = mine.value.space, theirs.value.space
        if is_whole and mine.dims == theirs.dims:
            same = left.domain.identity().set_tuple_name(isl().dim_type.out, right.name)
            yield same.intersect_range(right.domain)
        found = self.equality.matching.of(mine.value, theirs.value, exact=True)
        if found is not None:
            found = coalesced(found.intersect_domain(left.domain).intersect_range(right.domain))
            if found.n_basic_map() > 1:
                # One convex relation keeps later ones small.
                yield found.simple_hull().to_map().intersect_domain(left.domain).intersect_range(right.domain)
            yield found

    def _covers(self, pairs: Relation, theirs: Output) -> bool:
        """True if every element of the other array has exactly one partner."""
        needed = theirs.value.space.domain.intersect_params(self.context)
        return needed.is_subset(pairs.range()) and pairs.reverse().is_single_valued()


def _computed(kernel: KernelOp) -> Iterator[tuple[ComputeOp, SSAValue]]:
    for op in kernel.block.ops:
        if isinstance(op, ComputeOp):
            for tensor in op.outputs:
                yield op, tensor


def _origin(tensor: SSAValue) -> SSAValue:
    while isinstance(tensor.owner, ViewOp):
        tensor = tensor.owner.source
    return tensor
