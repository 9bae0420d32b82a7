"""From a seed to a `Case`: a random valid model and inputs for several sizes of its symbols."""

from __future__ import annotations

import random

from igniter.dialects.sym.expr import Expr
from tests.fuzz import ops_structure  # noqa: F401  (registers its rules)
from tests.fuzz.graph import SYMBOLS, Case, GraphBuilder, make_feed, make_model
from tests.fuzz.ops import RULES

SMALL_REGIONS = "form-fusion-regions{contractions=all singletons=all max-nodes=2}"
EVERYTHING = "form-fusion-regions{contractions=all singletons=all},pack-weights"
"""Fusion that leaves to ORT only what cannot be compiled."""
OPSETS = (13, 17, 18, 20, 21)
STATIC = (1, 2, 3, 4, 5, 6, 7, 8, 16, 17)


def make_case(seed: int) -> Case:
    """The model of a seed: always the same."""
    rng = random.Random(seed)
    b = GraphBuilder(rng, rng.choice(OPSETS), special=rng.random() < 0.15)
    dynamic = rng.random() < 0.6
    for _ in range(rng.randint(1, 3)):
        _input(b, dynamic)
    rules, weights = zip(*RULES, strict=True)
    wanted = rng.choice((2, 4, 8, 16, 30))
    for _ in range(20 * wanted):
        if len(b.nodes) >= wanted:
            break
        rng.choices(rules, weights)[0](b)
    made = [v for v in b.values if v not in b.inputs]
    if not made:
        (value,) = b.node("Identity", [b.inputs[0].name], [_like(b)])
        made = [value]
    read = {name for node in b.nodes for name in node.input}
    leaves = [v for v in made if v.name not in read]
    # Some values that are read inside are outputs as well.
    outputs = list(dict.fromkeys([*leaves, *rng.sample(made, min(len(made), rng.randint(0, 2)))]))
    model = make_model(b, outputs)
    sizes = [{"n": 3, "m": 5}]
    if dynamic:
        sizes.append({s: rng.choice((1, 1, 2, 8, 13)) for s in SYMBOLS})
        if rng.random() < 0.3:
            sizes.append({s: rng.choice((0, 4)) for s in SYMBOLS})
    return Case(seed, model, tuple(make_feed(b, model, s) for s in sizes), tuple(sizes), fusion_of(seed))


def fusion_of(seed: int) -> str:
    """Half of the cases compile as by default, the others as much as can be: in large regions, or in small ones, of
    which programs are made."""
    return "cpu-fusion" if seed % 2 else EVERYTHING if seed % 4 else SMALL_REGIONS


def _input(b: GraphBuilder, dynamic: bool) -> None:
    rng = b.rng
    rank = rng.choice((0, 1, 2, 2, 3, 3, 4, 5))
    dims: list[Expr] = []
    for _ in range(rank):
        if dynamic and rng.random() < 0.5:
            dims.append(Expr.of(rng.choice(SYMBOLS)))
        else:
            dims.append(Expr.of(0 if rng.random() < 0.02 else rng.choice(STATIC[: 10 if rank < 4 else 4])))
    type_ = rng.choice(("f32",) * 8 + ("f64", "i32", "i64", "i64", "u8", "i8", "b"))
    b.input(type_, dims, exact=rng.random() < 0.3)


def _like(b: GraphBuilder) -> tuple[str, tuple[Expr, ...], bool, float]:
    x = b.inputs[0]
    return x.type, x.dims, x.exact, x.bound
