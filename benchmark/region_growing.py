"""How region growing scales: `python -m benchmark.region_growing [--nodes 10000,100000] [--json FILE]`.

Random DAGs with one to three inputs a node; a share of the nodes are barriers, which cannot be fused. The families
differ in how far back the inputs lie: `local` like the layers of a model, `skips` with one edge in ten from anywhere
before, `hubs` with one in five from one of the first five nodes, `uniform` all from anywhere before. The time is the
process's own, the least of the runs; the exponent is that between the smallest and the largest graph.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from igniter.analysis.fusion.region_growing import Growth, grow_regions

Source = Callable[[random.Random, int], int]


def _near(rng: random.Random, node: int) -> int:
    return max(0, node - 1 - int(rng.expovariate(0.1)))


def _anywhere(rng: random.Random, node: int) -> int:
    return rng.randrange(node)


FAMILIES: dict[str, Source] = {
    "local": _near,
    "skips": lambda rng, node: (_near if rng.random() < 0.9 else _anywhere)(rng, node),
    "hubs": lambda rng, node: _near(rng, node) if rng.random() < 0.8 else rng.randrange(min(node, 5)),
    "uniform": _anywhere,
}


@dataclass(frozen=True)
class Measurement:
    """One family at one size."""

    family: str
    barriers: float
    nodes: int
    edges: int
    regions: int
    seconds: float
    edges_searched: int


def make_graph(family: str, nodes: int, barriers: float, seed: int = 1) -> tuple[list[tuple[int, int]], list[bool]]:
    """The edges of a random DAG, and which nodes may be fused."""
    rng = random.Random(seed)
    source = FAMILIES[family]
    edges = [(source(rng, node), node) for node in range(1, nodes) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    return edges, [rng.random() >= barriers for _ in range(nodes)]


def measure(family: str, nodes: int, barriers: float, runs: int) -> Measurement:
    """The fastest of some runs."""
    edges, eligible = make_graph(family, nodes, barriers)
    best, growth = math.inf, None
    for _ in range(runs):
        start = time.process_time()
        growth = grow_regions(nodes, edges, eligible)
        best = min(best, time.process_time() - start)
    assert isinstance(growth, Growth)
    visited = growth.statistics.visited
    return Measurement(family, barriers, nodes, len(edges), len(growth.members), round(best, 3), visited)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="10000,100000", help="sizes, comma-separated")
    parser.add_argument("--barriers", default="0,0.05,0.3", help="shares of nodes that cannot be fused")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    args = parser.parse_args()
    sizes = sorted(int(n) for n in args.nodes.split(","))
    table = Table("random DAG", "barriers", *(f"{n:,} nodes" for n in sizes), "growth", "regions", "edges searched")
    found: list[Measurement] = []
    for family in FAMILIES:
        for barriers in map(float, args.barriers.split(",")):
            rows = [measure(family, n, barriers, args.runs) for n in sizes]
            found += rows
            times = [f"{m.seconds:.2f} s" for m in rows]
            exponent = math.log(rows[-1].seconds / rows[0].seconds) / math.log(sizes[-1] / sizes[0])
            last = rows[-1]
            growth = f"n^{exponent:.2f}" if len(sizes) > 1 else ""
            table.add_row(family, f"{barriers:.0%}", *times, growth, f"{last.regions:,}", f"{last.edges_searched:,}")
    Console(width=120).print(table)
    if args.json:
        args.json.write_text(json.dumps([asdict(m) for m in found], indent=2))


if __name__ == "__main__":
    main()
