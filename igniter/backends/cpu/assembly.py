"""Analyses the loops in a kernel's assembly: instructions, registers, spills."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LABEL = re.compile(r"^(\.?L?[\w.$]+):")
_X86_JUMP = re.compile(r"^\s+j\w+\s+(\.L\w+)")
_ARM_JUMP = re.compile(r"^\s+(?:b|b\.\w+|cbn?z|tbn?z)\s+(?:.*,\s*)?(\.L\w+)")
_VECTOR = re.compile(r"%?([xyz]mm\d+)\b|\b([vq]\d+)\b")
_MULTIPLY_ADD = re.compile(
    r"^\s+(?:vfn?m(?:add|sub)\w+|vpdp\w+|vdpbf16ps|tdp\w+|f?mla|fmls|(?:[su]|us|su|bf)(?:dot|mmla))\b"
)


@dataclass(frozen=True)
class AssemblyLoop:
    """An innermost loop: one block with a jump back to its own head."""

    label: str
    lines: tuple[str, ...]

    @property
    def instructions(self) -> int:
        return sum(_is_instruction(line) for line in self.lines)

    @property
    def multiply_adds(self) -> int:
        """The instructions for multiply-adds: FMA, dot products, tiles."""
        return sum(bool(_MULTIPLY_ADD.match(line)) for line in self.lines)

    @property
    def vector_registers(self) -> int:
        """The number of distinct vector registers, of any width."""
        names = {m.group(1) or m.group(2) for line in self.lines for m in _VECTOR.finditer(_code(line))}
        return len({int(name.lstrip("xyzmvq")) for name in names})

    @property
    def spills(self) -> int:
        """The instructions for spills and reloads of registers."""
        return sum(_is_spill(line) for line in self.lines)


@dataclass(frozen=True)
class Listing:
    """The assembly of a kernel."""

    text: str

    @property
    def spills(self) -> int:
        """The instructions for spills and reloads of registers, also outside of loops."""
        return sum(_is_spill(line) for line in self.text.splitlines())

    @property
    def bytes_of_stack(self) -> int:
        """The largest frame, in bytes; 0 if no function has one."""
        frames = re.findall(r"^\s+sub[q]?\s+\$(\d+), %rsp|^\s+sub\s+sp, sp, #(\d+)", self.text, re.MULTILINE)
        return max((int(a or b) for a, b in frames), default=0)

    def loops(self) -> list[AssemblyLoop]:
        """Returns the innermost loops, those with the largest share of multiply-adds first, then the longest."""
        found = [loop for loop in _loops(self.text.splitlines()) if loop.instructions]
        return sorted(found, key=lambda loop: (-loop.multiply_adds / loop.instructions, -loop.instructions))


def _loops(lines: Sequence[str]) -> Iterator[AssemblyLoop]:
    label, start = "", 0
    for k, line in enumerate(lines):
        head = _LABEL.match(line)
        if head is not None:
            label, start = head.group(1), k
            continue
        jump = _X86_JUMP.match(line) or _ARM_JUMP.match(line)
        if jump is not None and jump.group(1) == label:
            yield AssemblyLoop(label, tuple(lines[start : k + 1]))


def _code(line: str) -> str:
    """Returns a line without its comment."""
    return re.split(r"\s#|\s//", line, maxsplit=1)[0]


def _is_instruction(line: str) -> bool:
    code = line.strip()
    return line[:1].isspace() and bool(code) and code[0] not in ".#/"


def _is_spill(line: str) -> bool:
    return line.rstrip().endswith(("Spill", "Reload"))
