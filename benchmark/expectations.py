"""The expected time of kernels beside their measured time: does the cost model tell fast from slow?

    python -m benchmark.expectations                      the kernels of the shipped networks, on this machine
    python -m benchmark.expectations encoder model.onnx   networks or files of your own
    python -m benchmark.expectations --json               every kernel

Every different kernel of a model is scheduled as in a compile, run alone on one thread, and timed in turns of at least
2 ms; its time is the median. The expectation is `expected_time` (`igniter/schedules/expected_time.py`) at the same
sizes. The table has, for each model, the kernels within a factor of 2 and the median ratio; then the farthest kernels.
Kernels with procedures, whose steps the model does not count, are listed apart.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from igniter.errors import IgniterError
from igniter.targets import Target, backend_for
from igniter.toolbox.experiment.networks import NETWORKS
from igniter.toolbox.kernel.workbench import (
    choose_sizes,
    expected_seconds,
    first_run,
    inputs_for,
    kernels_in,
    long_enough,
    schedule,
)

FACTOR = 2.0


@dataclass(frozen=True)
class Pair:
    """One kernel: the expected and the measured microseconds."""

    model: str
    kernel: str
    what: str
    bound: str
    expected: float
    measured: float

    @property
    def ratio(self) -> float:
        """The expected time relative to the measured one."""
        return self.expected / self.measured

    @property
    def is_near(self) -> bool:
        """True within a factor of 2."""
        return max(self.ratio, 1 / self.ratio) <= FACTOR


def pairs_of(name: str, path: str, target: Target, turns: int) -> Iterator[Pair | str]:
    """Yields the kernels of a model; the name of one without an expectation."""
    machine = backend_for(target.name).machine_for(target)
    _, kernels = kernels_in(path, machine)
    for label, kernel in kernels.items():
        kernel.detach()
        what = ", ".join(op.label for op in kernel.computations[:3])
        try:
            version = schedule(label, kernel, target)
            sizes = choose_sizes(version.kernel, {})
            expected = expected_seconds(version, sizes, machine)
            if expected is None:
                yield f"{label}: {what}"
                continue
            compiled, outputs = first_run(label, version.func, target, inputs_for(kernel, sizes, 0), sizes, 1)
            inputs = inputs_for(kernel, sizes, 0)
            symbols = {n: sizes[n] for n in version.func.symbol_names}
            turn, repeats = long_enough(compiled.prepared([*inputs, *outputs], symbols, 1))
            measured = statistics.median(turn() for _ in range(turns)) / repeats
        except IgniterError as error:
            yield f"{label}: {error.message}"
            continue
        yield Pair(name, label, what, expected[1], expected[0] * 1e6, measured * 1e6)


def summary(pairs: Sequence[Pair]) -> str:
    """Returns the share within the factor, the median ratio, and the spread."""
    near = sum(p.is_near for p in pairs)
    middle = math.exp(statistics.median(math.log(p.ratio) for p in pairs))
    return f"{near} of {len(pairs)} kernels ({near / len(pairs):.0%}) within {FACTOR:g}x, median ratio {middle:.2f}"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models", nargs="*", default=list(NETWORKS), help="shipped networks or files; all six by default"
    )
    parser.add_argument("--target", default="native", help="the CPU (default: this machine)")
    parser.add_argument("--turns", type=int, default=7, help="turns of each kernel")
    parser.add_argument("--far", type=int, default=12, help="the number of farthest kernels to list")
    parser.add_argument("--json", action="store_true", help="print every kernel as JSON")
    given = parser.parse_args()
    target = backend_for(given.target).target_of(given.target)
    found: list[Pair] = []
    apart: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models:
            path = name
            if name in NETWORKS:
                path = str(Path(folder) / f"{name}.onnx")
                Path(path).write_bytes(NETWORKS[name]().SerializeToString())
            own = list(pairs_of(Path(name).stem, path, target, given.turns))
            pairs = [p for p in own if isinstance(p, Pair)]
            apart += [f"{name} {p}" for p in own if isinstance(p, str)]
            found += pairs
            if pairs and not given.json:
                print(f"{name:12} {summary(pairs)}", flush=True)
    if given.json:
        print(json.dumps([{**asdict(p), "ratio": p.ratio} for p in found], indent=1))
        return
    print(f"{'all':12} {summary(found)}")
    print(
        f"\nthe farthest:\n{'model':12} {'kernel':8} {'expected us':>12} {'measured us':>12} {'ratio':>6}  bound, nests"
    )
    for p in sorted(found, key=lambda p: -abs(math.log(p.ratio)))[: given.far]:
        print(f"{p.model:12} {p.kernel:8} {p.expected:12.1f} {p.measured:12.1f} {p.ratio:6.2f}  {p.bound}, {p.what}")
    print(f"\nwithout an expectation: {len(apart)}")
    for line in apart:
        print(f"  {line}")


if __name__ == "__main__":
    main()
