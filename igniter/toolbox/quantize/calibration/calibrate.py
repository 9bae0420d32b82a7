"""The ranges of values over samples: each run of ONNX Runtime returns a group of values, counted in a histogram each.

Values are requested in groups whose total bytes stay under a limit, by their sizes in earlier samples. So the memory is
that of the model, one group of one sample, and 32 KiB for each value, for any number of samples and any shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from igniter.toolbox.quantize.calibration.histogram import Histogram

GROUP_BYTES = 64 << 20
FIRST_GROUP = 8
"""The number of values in a group while their sizes are unknown."""


@dataclass
class Observation:
    """The observed values: a histogram of each, and the number of samples."""

    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    samples: int = 0


def observe(
    session: Any,
    names: Sequence[str],
    samples: Callable[[], Iterator[Mapping[str, Any]]],
    progress: Callable[[str], None] = lambda _: None,
) -> Observation:
    """Returns histograms of the session's outputs `names` over all samples."""
    found = Observation({name: Histogram() for name in names})
    sizes: dict[str, int] = {}
    for feed in samples():
        progress(f"sample {found.samples + 1}")
        for group in groups_of(names, sizes):
            for name, value in zip(group, session.run(list(group), dict(feed)), strict=True):
                found.histograms[name].add(value)
                sizes[name] = max(sizes.get(name, 0), value.nbytes)
        found.samples += 1
    return found


def groups_of(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Yields the names in groups of `GROUP_BYTES`; a name without a size counts for a share of a group."""
    group: list[str] = []
    total = 0
    for name in names:
        size = sizes.get(name, GROUP_BYTES // FIRST_GROUP)
        if group and total + size > GROUP_BYTES:
            yield tuple(group)
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield tuple(group)


__all__ = ["Observation", "groups_of", "observe"]
