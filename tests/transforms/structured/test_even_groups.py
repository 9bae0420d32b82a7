"""The tiles of columns of a task, where several tasks share them."""

from __future__ import annotations

import pytest

from igniter.schedules.products import even_group


@pytest.mark.parametrize(
    "tiles, most, group", [(10, 8, 5), (20, 8, 5), (9, 3, 3), (7, 3, 2), (8, 8, 8), (1, 8, 1), (48, 8, 8), (None, 8, 8)]
)
def test_tasks_are_even(tiles: int | None, most: int, group: int) -> None:
    """Two threads have as many tiles, up to a part of one task."""
    assert min(even_group(tiles, most), tiles or most) == group
