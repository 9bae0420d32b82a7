"""The walk of funcs and kernels visits what xDSL's visits, also while ops are erased and inserted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation, Region

from igniter.dialects.loop import ForOp, FuncOp, KernelOp
from igniter.dialects.walking import Walked, preorder

Walk = Callable[[Operation], Iterable[Operation]]


def tree(rng: random.Random, depth: int, name: str) -> TestOp:
    """An op with up to two regions of up to two blocks of up to four ops."""
    counts = [[rng.randrange(5) for _ in range(rng.randrange(3))] for _ in range(rng.randrange(3) if depth else 0)]
    regions = [
        Region([Block([tree(rng, depth - 1, f"{name}.{r}{b}{k}") for k in range(n)]) for b, n in enumerate(blocks)])
        for r, blocks in enumerate(counts)
    ]
    return TestOp(regions=regions, attributes={"name": StringAttr(name)})


def visited(root: Operation, walk: Walk, seed: int) -> list[str]:
    """The names of the ops in the order of their visits, while some are erased and others inserted."""
    rng, found = random.Random(seed), list[str]()
    for op in walk(root):
        name = op.attributes["name"]
        assert isinstance(name, StringAttr)
        found.append(name.data)
        choice = rng.randrange(6) if seed and op.parent is not None else 5
        new = TestOp(attributes={"name": StringAttr(f"new{len(found)}")})
        if choice == 0:
            assert op.parent is not None
            op.parent.insert_op_after(new, op)
        elif choice == 1:
            assert op.parent is not None
            op.parent.insert_op_before(new, op)
        elif choice == 2 and not op.regions:
            op.detach()
            op.erase()
        elif choice == 3:
            op.add_region(Region(Block([new])))
    return found


@pytest.mark.parametrize("changes", [False, True])
def test_the_order_is_xdsls(changes: bool) -> None:
    longest = 0
    for seed in range(1, 60):
        ours, theirs = (tree(random.Random(seed), 4, "t") for _ in range(2))
        names = visited(ours, preorder, seed * changes)
        assert names == visited(theirs, Operation.walk, seed * changes)
        assert str(ours) == str(theirs)
        longest = max(longest, len(names))
    assert longest > 50


def test_large_ops_are_walked_so() -> None:
    assert all(issubclass(op, Walked) for op in (ForOp, FuncOp, KernelOp))
