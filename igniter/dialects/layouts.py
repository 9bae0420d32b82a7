"""Layouts: the storage order of the elements of a constant. `fusion.pack` and `fusion.unpack` have one each.

    layout ::= `[` part, ... `]` `words`?
    part   ::= dim | dim `floordiv` size | dim `mod` size | dim `mod` size `floordiv` size | dim `mod` size `mod` size

The dims of the stored tensor are listed outermost first. Each is a dim of the plain tensor, its index of blocks of
`size`, or the offset in such a block. `[1 floordiv 16, 0, 1 mod 16]` are panels of 16 columns (dim 1) for every step of
depth (dim 0). Blocks of blocks are for grouped convolutions, whose channels do not fill panels: `[0 floordiv 24, 0 mod
24 floordiv 16, 2, 3, 1, 0 mod 24 mod 16]` are two panels for each group of 24, the second one half full.

In `[0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words` four bytes of a column form one element, an unsigned
32-bit integer, with the first byte lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute
from xdsl.parser import Parser

from igniter.dialects.sym.expr import Expr, floordiv, mod

WORD = 4
"""The bytes of a word."""


@dataclass(frozen=True)
class Part:
    """A dim of a stored tensor: a dim of the plain tensor, its index of blocks of `size`, or the offset in such a
    block."""

    dim: int
    size: int = 0
    """The block size; 0 if the part is the whole dim."""
    inside: bool = False
    """True if the part is the offset in a block."""
    of: int = 0
    """The size of the enclosing blocks; 0 if the whole dim is divided."""

    def __str__(self) -> str:
        what = f"{self.dim} mod {self.of}" if self.of else str(self.dim)
        return f"{what} {'mod' if self.inside else 'floordiv'} {self.size}" if self.size else what


@dataclass(frozen=True)
class Layout:
    """The storage order of the elements of a tensor: the dims of the stored tensor, outermost first.

    A blocked dim becomes two: the block index and the offset in a block. The last block is padded with zeros.
    """

    parts: tuple[Part, ...]
    words: bool = False
    """True if the last part, the offset in blocks of four bytes, is no dim: the four bytes are one element."""

    @classmethod
    def panels(
        cls,
        rank: int,
        columns: int,
        depths: Sequence[int],
        lanes: int,
        group: int = 1,
        blocks: int = 0,
        words: bool = False,
    ) -> Layout:
        """Returns panels of `lanes` adjacent columns for every step of depth, or for every `group` of steps. The order
        is: the remaining dims, the panels, the dims of the depth as given, and the columns of a panel. `blocks` is the
        size of blocks of columns that each begin with a panel. With `words`, `group` bytes form one element."""
        *outer, last = depths
        others = [Part(k) for k in range(rank) if k != columns and k not in depths]
        others += [Part(columns, blocks)] if blocks else []
        deep, grouped = (Part(last, group), [Part(last, group, True)]) if group > 1 else (Part(last), [])
        return cls(
            (
                *(*others, Part(columns, lanes, of=blocks), *map(Part, outer), deep),
                *(Part(columns, lanes, True, blocks), *grouped),
            ),
            words,
        )

    def reason(self, rank: int) -> str | None:
        """Returns the reason why this is no layout of a tensor of that rank; None if it is one."""
        for dim in {*range(rank), *(part.dim for part in self.parts)}:
            own = [part for part in self.parts if part.dim == dim]
            whole = len(own) == 1 and not own[0].size
            blocks = [p for p in own if p.of] or own
            split = len(blocks) == 2 and len({p.size for p in blocks}) == 1 and len({p.inside for p in blocks}) == 2
            outer = [p for p in own if p not in blocks]
            divided = [(p.size, p.inside) for p in outer] == [(p.of, False) for p in blocks[:1] if p.of]
            if dim >= rank or not (whole or (split and blocks[0].size and blocks[0].of == blocks[1].of and divided)):
                return (
                    f"layout {self} must store each of {rank} dims exactly once: whole, or as blocks and offsets in "
                    "them"
                )
        if self.words and not (self.parts[-1].inside and self.parts[-1].size == WORD):
            return f"the last part of layout {self} must be the offset in blocks of {WORD} bytes"
        return None

    @property
    def dims(self) -> tuple[Part, ...]:
        """The parts that are dims of the stored tensor."""
        return self.parts[:-1] if self.words else self.parts

    def stored_element(self, element: Attribute) -> Attribute:
        """Returns the element type of the stored tensor."""
        return IntegerType(8 * WORD, Signedness.UNSIGNED) if self.words else element

    def stored_dims(self, dims: Sequence[Expr]) -> tuple[Expr, ...]:
        """Returns the dims of the stored tensor."""
        whole = [Expr.of(p.of) if p.of else dims[p.dim] for p in self.parts]
        return tuple(
            Expr.of(p.size) if p.inside else dim.ceildiv(p.size) if p.size else dim
            for p, dim in zip(self.dims, whole, strict=False)
        )

    def subscripts(self, at: Sequence[Expr]) -> list[Expr]:
        """Returns the subscripts in the stored tensor of the element at `at` of the plain one; for words, those of its
        word."""
        found: list[Expr] = []
        for part in self.dims:
            place, size = at[part.dim], Expr.of(part.size)
            place = mod(place, Expr.of(part.of)) if part.of else place
            found.append(mod(place, size) if part.inside else floordiv(place, size) if part.size else place)
        return found

    @property
    def divided(self) -> tuple[int, int] | None:
        """The dim with blocks of blocks, and the size of the outer blocks; None if no dim has them."""
        return next(((part.dim, part.of) for part in self.parts if part.of), None)

    def of_blocks(self) -> Layout:
        """Returns this layout for the tensor whose divided dim is two dims: the block index and the offset in it."""
        if self.divided is None:
            return self
        dim, _ = self.divided
        return replace(
            self,
            parts=tuple(
                Part(dim + 1, p.size, p.inside)
                if p.of
                else Part(dim)
                if p.dim == dim
                else replace(p, dim=p.dim + (p.dim > dim))
                for p in self.parts
            ),
        )

    def order(self, rank: int) -> list[int]:
        """Returns the places of the parts, ordered by plain dim, block index before offset."""
        return [
            place
            for dim in range(rank)
            for place, _ in sorted(
                ((k, p) for k, p in enumerate(self.parts) if p.dim == dim), key=lambda entry: entry[1].inside
            )
        ]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.parts))}]{' words' if self.words else ''}"

    @classmethod
    def parse(cls, parser: Parser) -> Layout:
        """Parses a layout in brackets."""

        def part() -> Part:
            dim = parser.parse_integer()
            if parser.parse_optional_keyword("floordiv") is not None:
                return Part(dim, parser.parse_integer())
            if parser.parse_optional_keyword("mod") is None:
                return Part(dim)
            of = parser.parse_integer()
            if parser.parse_optional_keyword("floordiv") is not None:
                return Part(dim, parser.parse_integer(), of=of)
            if parser.parse_optional_keyword("mod") is not None:
                return Part(dim, parser.parse_integer(), True, of)
            return Part(dim, of, True)

        parts = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, part))
        return cls(parts, parser.parse_optional_keyword("words") is not None)
