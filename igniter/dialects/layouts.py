"""Layouts: in which order the elements of a constant are stored. `fusion.pack` and `fusion.unpack` have one each.

    layout ::= `[` part, ... `]` `words`?
    part   ::= dim | dim `floordiv` size | dim `mod` size | dim `mod` size `floordiv` size | dim `mod` size `mod` size

The dims of the stored tensor stand outermost first, each a dim of the plain one, the blocks of `size` that it is cut
into, or the place in such a block. `[1 floordiv 16, 0, 1 mod 16]` are panels of 16 columns, dim 1, for every step of
depth, dim 0. Blocks of blocks are for convolutions in groups, whose channels fill no panels: `[0 floordiv 24, 0 mod 24
floordiv 16, 2, 3, 1, 0 mod 24 mod 16]` are two panels for each group of 24, the second of them half full.

In `[0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words` four bytes of a column are the bytes of one element, an
unsigned integer of 32 bits, of which the first is the lowest.
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
    """A dim of a stored tensor: a dim of the plain one, its blocks of `size`, or the place in such a block."""

    dim: int
    size: int = 0
    """Of a block; 0: the part is the whole dim."""
    inside: bool = False
    """Whether the part is the place in a block."""
    of: int = 0
    """The size of the blocks that are cut into these; 0: the whole dim is."""

    def __str__(self) -> str:
        what = f"{self.dim} mod {self.of}" if self.of else str(self.dim)
        return f"{what} {'mod' if self.inside else 'floordiv'} {self.size}" if self.size else what


@dataclass(frozen=True)
class Layout:
    """In which order the elements of a tensor are stored: the dims of the stored tensor, outermost first.

    A dim in blocks has two of them, the blocks and the places in a block; what the last block lacks is stored as 0.
    """

    parts: tuple[Part, ...]
    words: bool = False
    """Whether the last part, the places in blocks of four bytes, is no dim: these bytes are one element."""

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
        """Panels of `lanes` columns side by side for every step of depth, or for every `group` of them: the dims that
        are neither come first, then the panels, the dims of the depth in the order given, and the columns of a panel.
        `blocks`: of so many columns, each of which begins with a panel. `words`: of bytes, `group` of which are one.
        """
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
        """Why this is no layout of a tensor of that rank; None where it is one."""
        for dim in {*range(rank), *(part.dim for part in self.parts)}:
            own = [part for part in self.parts if part.dim == dim]
            whole = len(own) == 1 and not own[0].size
            blocks = [p for p in own if p.of] or own
            split = len(blocks) == 2 and len({p.size for p in blocks}) == 1 and len({p.inside for p in blocks}) == 2
            outer = [p for p in own if p not in blocks]
            divided = [(p.size, p.inside) for p in outer] == [(p.of, False) for p in blocks[:1] if p.of]
            if dim >= rank or not (whole or (split and blocks[0].size and blocks[0].of == blocks[1].of and divided)):
                return f"layout {self} does not store each of {rank} dims once, whole or as blocks and places in them"
        if self.words and not (self.parts[-1].inside and self.parts[-1].size == WORD):
            return f"the last part of layout {self} is not the places in blocks of {WORD} bytes"
        return None

    @property
    def dims(self) -> tuple[Part, ...]:
        """The parts that are dims of the stored tensor."""
        return self.parts[:-1] if self.words else self.parts

    def stored_element(self, element: Attribute) -> Attribute:
        """The type of the elements of the stored tensor."""
        return IntegerType(8 * WORD, Signedness.UNSIGNED) if self.words else element

    def stored_dims(self, dims: Sequence[Expr]) -> tuple[Expr, ...]:
        """The dims of the stored tensor."""
        whole = [Expr.of(p.of) if p.of else dims[p.dim] for p in self.parts]
        return tuple(
            Expr.of(p.size) if p.inside else dim.ceildiv(p.size) if p.size else dim
            for p, dim in zip(self.dims, whole, strict=False)
        )

    def subscripts(self, at: Sequence[Expr]) -> list[Expr]:
        """Where in the stored tensor the element at the subscripts `at` of the plain one is; of words, the word."""
        found: list[Expr] = []
        for part in self.dims:
            place, size = at[part.dim], Expr.of(part.size)
            place = mod(place, Expr.of(part.of)) if part.of else place
            found.append(mod(place, size) if part.inside else floordiv(place, size) if part.size else place)
        return found

    @property
    def divided(self) -> tuple[int, int] | None:
        """A dim that is in blocks of blocks, and the size of the outer ones; None where there is none."""
        return next(((part.dim, part.of) for part in self.parts if part.of), None)

    def of_blocks(self) -> Layout:
        """This layout, of the tensor whose divided dim is two: which block, and the place in it."""
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
        """The places of the parts of the plain dims, in the order of those, blocks before what is inside of them."""
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
        """A layout in brackets."""

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
