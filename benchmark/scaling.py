"""How far threads can share whole models, on paper.

    python -m benchmark.scaling
    python -m benchmark.scaling --models resnet50 --batch 1 --cores 2 16

Compiles each model for a machine of a number of cores (`--cores`; the schedules of image networks depend on it), and
prints the longest chain of its tasks as a share of the work, and the gain of 2 to 32 threads: the longest thread's
cycles by those of one thread. Cycles are the compiler's estimates; shared caches and memory are not counted. Nothing is
timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import igniter
from benchmark.performance import MODELS, SEQUENCE
from igniter.analysis.typical_sizes import module_symbols
from igniter.compiler.compilation import CompileOptions
from igniter.toolbox.plan.compiled import compiled_programs
from igniter.toolbox.plan.threads import THREADS, thread_plan


def rows(name: str, cores: int, batches: list[int], target: str) -> Iterator[str]:
    """Yields a line of the table for each batch."""
    options = CompileOptions(target=target, machine={"cores": cores})  # type: ignore[arg-type]
    c, programs = compiled_programs(igniter.load(MODELS[name]()), options)
    for batch in batches:
        sizes = {s: SEQUENCE if "seq" in s else batch for s in module_symbols(c.module)}
        plan = thread_plan(c, programs, sizes)
        if plan is None:
            yield f"| {name} | {batch} | {cores} | no programs |"
            continue
        gains = " | ".join(f"{plan.gain(n):.1f}" for n in THREADS)
        yield f"| {name} | {batch} | {cores} | {plan.chain:.1%} | {gains} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--cores", nargs="+", type=int, default=[2, 16], help="cores of the machine compiled for")
    parser.add_argument("--target", default="native")
    given = parser.parse_args()
    print("| model | batch | cores | longest chain | " + " | ".join(f"{n} threads" for n in THREADS) + " |")
    print("| --- | ---: | ---: | ---: |" + " ---: |" * len(THREADS))
    for name in given.models:
        for cores in given.cores:
            for row in rows(name, cores, given.batch, given.target):
                print(row, flush=True)


if __name__ == "__main__":
    main()
