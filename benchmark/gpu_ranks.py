"""`python -m benchmark.gpu_ranks`: whether estimates without a GPU put kernels in the order of measured times.

Two questions, by the rank correlation of Spearman:

* across cases: which launches and models take longest. Igniter's own kernels are estimated as a report does
  (`igniter.backends.triton.estimates`), beside their times in `gpu_times/cases.csv`;
* within a case: which blocks, warps and stages are best. The times by which authors choose blocks
  (`igniter.schedules.product_blocks`, `attention_time`), beside hand-written kernels in `gpu_times/variants_h100.csv`.
  The loss is the measured time of the variant expected to be the fastest, relative to the best one.

Nothing is run on a GPU. `--models` also estimates whole models, which takes minutes.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.gpu import launched, scheduled
from benchmark.on_gpu.cases import cases, models
from igniter.backends.triton.compiler import Resources
from igniter.backends.triton.devices import device_of
from igniter.backends.triton.estimates import estimate
from igniter.compiler.compilation import Compilation
from igniter.schedules.attention_time import AttentionSize, AttentionTile
from igniter.schedules.product_blocks import H100, Blocks, ProductSize

TIMES = Path(__file__).with_name("gpu_times")

USUAL = Resources(registers=64, spills=0, stack=0, shared=0)
"""The assumed resources of a kernel: Triton is not asked."""

GELU = 45.0
"""The operations of a bias and Gelu after a product, as the author counts them."""


@dataclass(frozen=True)
class Timed:
    """A measured time and an expected one, in milliseconds."""

    case: str
    what: str
    measured: float
    expected: float


def spearman(found: Sequence[Timed]) -> float:
    """Returns the rank correlation of the expected times with the measured ones; NaN if one of them has no order."""
    measured, expected = (_ranks([getattr(t, name) for t in found]) for name in ("measured", "expected"))
    deviations = measured - measured.mean(), expected - expected.mean()
    spread = np.sqrt((deviations[0] ** 2).sum() * (deviations[1] ** 2).sum())
    return float((deviations[0] * deviations[1]).sum() / spread) if spread else float("nan")


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Returns the rank of each value; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def loss(found: Sequence[Timed]) -> float:
    """Returns the measured time of the variant expected to be the fastest, relative to the best. Of equal ones it is
    the slowest."""
    least = min(t.expected for t in found)
    chosen = max(t.measured for t in found if t.expected <= least * (1 + 1e-9))
    return chosen / min(t.measured for t in found)


# -- across cases -----------------------------------------------------------------------------------------------------


def measured_cases(whole_models: bool = False) -> list[dict[str, str]]:
    """Returns the measured times of Igniter's kernels, without those of whole models by default."""
    return [row for row in _rows("cases.csv") if whole_models or not row["sizes"]]


def across(rows: Sequence[dict[str, str]]) -> Iterator[Timed]:
    """Yields the expected time of each case on the GPU that measured it. As measured, a case has one library for all
    sizes."""
    known = {case.name: case for case in [*cases(), *models(Path())]}
    made: dict[tuple[str, str], Compilation] = {}
    for row in rows:
        case, target = known[row["case"]], row["target"]
        if (case.name, target) not in made:
            made = {(case.name, target): scheduled(case.make(), target, case.sizes[0] if case.chosen else {})}
        sizes = {k: int(v) for k, v in (pair.split("=") for pair in row["sizes"].split())}
        device = device_of(row["gpu"].lower())
        launches = launched(made[case.name, target], sizes)
        expected = sum(estimate(op, kernel, env, USUAL, 0, device).seconds for op, kernel, env in launches)
        yield Timed(case.name, f"{target} {row['sizes']} {row['gpu']}", float(row["ms"]), expected * 1e3)


# -- within a case ----------------------------------------------------------------------------------------------------


def within() -> dict[str, list[Timed]]:
    """Returns the variants of each case that differ by their blocks; all convolutions are one case."""
    found: dict[str, list[Timed]] = {}
    for row in _rows("variants_h100.csv"):
        if row["apart"]:
            continue
        kind = row["case"].partition(" ")[0]
        expected = {"product": _product, "convolution": _convolution}.get(kind, _attention)(row) * 1e3
        case = "convolutions of a ResNet-50" if kind == "convolution" else row["case"]
        what = f"{row['case']} " if kind == "convolution" else ""
        what += f"{row['technique']} {row['rows']}x{row['columns']}x{row['depth']} w{row['warps']} s{row['stages']}"
        found.setdefault(case, []).append(Timed(case, what, float(row["ms"]), expected))
    return found


def _product(row: dict[str, str]) -> float:
    rows, columns, depth, kind, later = _matched(r"product (\d+)x(\d+)x(\d+) (\w+)( \+.*)?", row["case"])
    how = "tf32" if kind == "f32" else ""
    after = GELU if later else 0.0
    size = ProductSize(int(rows), int(columns), int(depth), 1, 4 if how else 2, how, H100, after)
    depth_bytes = int(row["depth"]) * size.bytes
    shape = int(row["rows"]), int(row["columns"]), depth_bytes, int(row["stages"]), int(row["warps"])
    return size.seconds(Blocks(*shape, bool(row["maps"])))


def _convolution(row: dict[str, str]) -> float:
    """The rows are the pixels of all images. Warps and stages were searched over, and are not in the data."""
    pattern = r"convolution (\d+)x(\d+)x(\d+)x\d+ to (\d+), (\d)x\d, stride (\d) (\w+)"
    *numbers, kind = _matched(pattern, row["case"])
    batch, channels, side, columns, window, stride = map(int, numbers)
    how = "tf32" if kind == "tf32" else ""
    size = ProductSize(batch * (side // stride) ** 2, columns, channels * window**2, 1, 4 if how else 2, how, H100)
    parts = int(row["parts"])
    sides = [(int(row["rows"]), int(row["columns"]))] if row["rows"] else [(64, 32), (64, 64), (128, 64)]
    part = size.split(parts) if parts > 1 else size
    seconds = min(part.seconds(Blocks(*each, 128, 4, 4)) for each in sides)
    return seconds + (size.joining(parts) if parts > 1 else 0.0)


def _attention(row: dict[str, str]) -> float:
    pattern = r"(attention|decoding) (\d+)x(\d+)(?:/(\d+))?x(\d+)x(\d+)( causal)?"
    kind, batch, heads, shared, keys, head, causal = _matched(pattern, row["case"])
    decoding = kind == "decoding"
    count = int(batch) * int(shared if decoding else heads)
    rows = int(heads) // int(shared) if decoding else int(keys)
    size = AttentionSize(count, rows, int(keys), int(head), int(head), 2, "", H100, bool(causal))
    tile = AttentionTile(int(row["rows"]), int(row["columns"]), int(row["warps"]), int(row["stages"]))
    return size.seconds(tile, int(row["parts"] or 1))


def _matched(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    assert found is not None, f"'{text}' is no case"
    return found.groups("")


def _rows(file: str) -> list[dict[str, str]]:
    lines = (TIMES / file).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


# -- printing ---------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="store_true", help="whole models too")
    parser.add_argument("--all", action="store_true", help="list each case and variant")
    args = parser.parse_args()
    print("measured times of GPUs beside estimates without one")
    print("| within a case | variants | rank correlation | loss |\n| --- | ---: | ---: | ---: |")
    found = within()
    for case, variants in found.items():
        print(f"| {case} | {len(variants)} | {spearman(variants):.2f} | {loss(variants):.2f} |")
        _list(variants if args.all else [])
    everything = [each for variants in found.values() for each in variants]
    print(f"| all | {len(everything)} | {spearman(everything):.2f} | |\n")
    whole = list(across(measured_cases(args.models)))
    print(f"across {len(whole)} cases: {spearman(whole):.3f}")
    _list(whole if args.all else [])


def _list(found: Sequence[Timed]) -> None:
    for each in found:
        ratio = each.expected / each.measured
        print(f"    {each.case}, {each.what}: measured {each.measured:.4g}, expected {each.expected:.4g} ({ratio:.2f})")


if __name__ == "__main__":
    main()
