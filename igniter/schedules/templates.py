"""Templates of schedules: the author fills them from the machine, and the tuner enumerates their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from igniter.dialects.loop.schedule import Loop, Product, Step

Block = tuple[str, int]
"""A loop of a template: an axis, and the iterations of a block."""


@dataclass(frozen=True)
class ProductTemplate:
    """The loops of a contraction in tiles for a micro-kernel, and of the nests that work on its tiles.

        shared..., depth by depth_block into result, inner..., sums..., product(rows, columns, depth) tile [..], copies

    The shared loops belong to all nests of the group, in whose axes they have other names.
    """

    rows: str
    """The axis of rows; empty for a contraction without rows."""
    columns: str
    depth: str
    tile: tuple[int, int]
    """The rows and panels of a tile."""
    lanes: int
    """The columns of a panel."""
    shared: tuple[Block, ...]
    """The loops of all nests, outermost first; batch axes have blocks of one."""
    inner: tuple[Block, ...] = ()
    """The contraction's own loops around a tile."""
    depth_block: int = 0
    """The steps of a block of the depth, each added to the result; 0: the whole depth at once."""
    sums: tuple[str, ...] = ()
    """The reductions beside the depth."""
    fuse: str = ""
    """The label of the shared loops."""
    grain: int = 0
    """The iterations of the outermost loop in a task; 0 lets the compiler choose."""

    @property
    def width(self) -> int:
        """The columns of a tile."""
        return self.tile[1] * self.lanes

    @property
    def product(self) -> Product:
        """The micro-kernel."""
        return Product(self.rows, self.columns, self.depth, self.tile)

    def outer(self, names: Mapping[str, str] | None = None) -> list[Loop]:
        """Returns the shared loops of a nest; `names` are its names of the contraction's axes."""
        first = self.shared[0][0] if self.shared else ""
        return [
            Loop(
                axis if names is None else names[axis],
                by=by,
                fuse=self.fuse,
                threads=self.grain if axis == first else None,
            )
            for axis, by in self.shared
        ]

    def around_tile(self) -> list[Loop]:
        """Returns the contraction's own loops around a tile."""
        depth = [Loop(self.depth, by=self.depth_block, into_result=True)] if self.depth_block else []
        return [*depth, *(Loop(axis, by=by) for axis, by in self.inner), *(Loop(axis) for axis in self.sums)]

    def contraction(self, copies: Sequence[Step]) -> list[Step]:
        """Returns the steps of the contraction; `copies` move a tile to the result."""
        return [*self.outer(), *self.around_tile(), self.product, *copies]
