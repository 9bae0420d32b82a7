"""Micro-kernels: the product of a few rows with a few panels of columns, the innermost part of every contraction.

    void @igniter.tile.f32.8x3.TARGET(ptr a, i64 a_row, i64 a_depth, ptr b, i64 b_panel, i64 b_depth,
                                      ptr c, i64 c_row, i64 rows, i64 depth, i64 add, ptr next)

    c[r, p*L + l] (+)= sum over k < depth of a[r, k] * b[p, k, l]      for r < rows, p < 3, l < L

A panel is `L` columns, 64 bytes of sums (16 of f32 or i32, 8 of f64), for any width of the target's vectors, so that
packed operands do not depend on it. `a_row`, `a_depth`, `b_panel`, `b_depth` and `c_row` are steps in bytes; the lanes
of a panel are contiguous. `rows` is at most the 8 of the name. Sums stay in registers over the whole depth: there is a
loop for each number of rows, and the call branches to it. Each step of depth prefetches a line from `next` on into the
second-level cache: panels of later calls. Operands narrower than the sums come in groups of steps of depth of four
bytes (2 of bf16, 4 of i8): `b[p, k, l]` is then such a group, and so is `a[r, k]`.

A contraction may have two sums, the inner one over the depth (the rows of a window, and the contiguous elements in
each). It then has rounds, with three more parameters: their number, and the steps of `a`, and of `b` and `next`, for
each. The sums stay in registers over all of them:

    c[r, p*L + l] (+)= sum over s < rounds, k < depth of a[s, r, k] * b[s, p, k, l]

With AMX, bytes and bf16 have tiles of more rows (`direct_tiles.py`). With Arm's matrix instructions, they have sums of
two rows by two columns (`matrix_products.py`), and a panel is interleaved once for many rows (`paired_panels.py`).
Panels of 16-bit floats beside an `a` of f32 are widened at the load, one step of depth at a time. Panels of f16 also
use AMX (`half_tiles.py`), and on NEON a panel is widened once for many rows (`widened_tiles.py`).

Every kind and size is an LLVM module of its own (`emit_tile_kernel`), independent of the model: it is compiled once and
kept in the cache. Kernels declare it by its name, from which `required` and `parse_name` find it again. The scheme is
that of Goto and van de Geijn, *Anatomy of High-Performance Matrix Multiplication* (2008), less the blocking of depth: a
panel of the depths of usual models fits the second-level cache.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from igniter.analysis.structured.contractions import BYTE_KINDS
from igniter.backends.cpu import direct_tiles, half_tiles
from igniter.backends.cpu.builder import LlvmModule
from igniter.backends.cpu.codegen import link_modules
from igniter.backends.cpu.matrix_products import MatrixBody, has_matrix_products
from igniter.backends.cpu.micro_kernels import CpuMicroKernel
from igniter.backends.cpu.paired_panels import add_paired_panels, has_paired_panels
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_bodies import TileKind, TileSize, add_bodies
from igniter.backends.cpu.tile_calls import PARAMETERS, ROUND_PARAMETERS, parameter_type
from igniter.backends.cpu.widened_tiles import add_widened_tiles, has_widened_tiles
from igniter.dialects.loop.instructions import BUILT_IN, known_micro_kernels, micro_kernel, micro_kernel_reason
from igniter.errors import IgniterError

KINDS = {name: TileKind(kernel) for name, kernel in BUILT_IN.items()}
"""The micro-kernels of Igniter."""


def kind_named(name: str) -> TileKind:
    """Returns the micro-kernel called `name`, also from another package."""
    return KINDS[name] if name in KINDS else TileKind(micro_kernel(name))


def tile_name(kind: str, size: TileSize, target: Target) -> str:
    """Returns the symbol of a micro-kernel; a library for several CPUs has one for each. The symbol of another
    package's micro-kernel includes its identity, so that cached callers of an older version are not reused."""
    own = "" if kind in KINDS else f" {micro_kernel(kind).identity}"
    identity = hashlib.sha256(f"{target.cpu} {target.features}{own}".encode()).hexdigest()[:8]
    return f"igniter.tile.{kind}.{size.rows}x{size.panels}{'r' if size.rounds else ''}.{identity}"


_NAME = re.compile(r"igniter\.tile\.([\w.-]+?)\.(\d+)x(\d+)(r?)\.[0-9a-f]{8}")


def parse_name(name: str) -> tuple[TileKind, TileSize] | None:
    """Parses the symbol of a micro-kernel; returns `None` for other symbols."""
    match = _NAME.fullmatch(name)
    if match is None or (match[1] not in KINDS and micro_kernel_reason(match[1]) is not None):
        return None
    return kind_named(match[1]), TileSize(int(match[2]), int(match[3]), match[4] == "r")


def has_rounds(kind: TileKind, rows: int, target: Target) -> bool:
    """True if a target's micro-kernels of a kind, for this number of rows, have an outer sum: all of Igniter's own but
    those that convert panels for many rows, on tiles or not."""
    converts = has_widened_tiles(kind, rows) or _has_half_tiles(kind, rows, target)
    return not isinstance(kind.kernel, CpuMicroKernel) and not converts


def uses_tiles(kind: TileKind, rows: int, target: Target) -> bool:
    """True if the micro-kernel of a kind, for this number of rows, leaves tiles configured: its caller releases them
    (`tile_registers.release_at_end`)."""
    return _has_direct_tiles(kind, rows, target) or _has_half_tiles(kind, rows, target)


def _has_direct_tiles(kind: TileKind, rows: int, target: Target) -> bool:
    there = (kind.name in BYTE_KINDS and target.byte_tiles) or (kind.name == "bf16" and target.half_tiles)
    return there and rows == direct_tiles.ROWS


def _has_half_tiles(kind: TileKind, rows: int, target: Target) -> bool:
    return kind.name == "f32f16" and target.half_tiles and rows == half_tiles.ROWS


def required(ir: str) -> list[str]:
    """Returns the micro-kernels declared by an LLVM module."""
    return sorted({m[0] for line in ir.splitlines() if line.startswith("declare") for m in _NAME.finditer(line)})


def declaration(name: str) -> str:
    """Returns the declaration of a micro-kernel."""
    parsed = parse_name(name)
    rounds = parsed is not None and parsed[1].rounds
    types = ", ".join(str(parameter_type(p)) for p in (ROUND_PARAMETERS if rounds else PARAMETERS))
    return f"declare hidden void @{name}({types})"


def with_tile_kernels(ir: str, target: Target) -> str:
    """Returns the module with its declared micro-kernels included, for use without a linker."""
    names = required(ir)
    if not names:
        return ir

    return link_modules([ir, *(emit_tile_kernel(name, target) for name in names)])


@lru_cache(maxsize=64)
def emit_tile_kernel(name: str, target: Target) -> str:
    """Returns the text of the LLVM module that defines the micro-kernel of this name."""
    module = LlvmModule(target)
    add_tile_kernel(module, name)
    return module.text()


def add_tile_kernel(module: LlvmModule, name: str) -> None:
    """Defines the micro-kernel of this name in a module."""
    parsed = parse_name(name)
    if parsed is None:
        raise IgniterError(f"'{name}' is not the name of a micro-kernel; known: {', '.join(known_micro_kernels())}")
    kind, size = parsed
    target = module.target
    module.defined.add(name)
    if isinstance(kind.kernel, CpuMicroKernel):
        kind.kernel.add_to(module, name, size)
        return
    if _has_direct_tiles(kind, size.rows, target):
        direct_tiles.add_direct_tiles(module, name, size, kind.kernel)
        name, size = f"{name}.stripe", TileSize(direct_tiles.STRIPE, size.panels, size.rounds)
    if _has_half_tiles(kind, size.rows, target):
        half_tiles.add_half_tiles(module, name, size.panels)
        for width in half_tiles.widths_of(size.panels):
            add_bodies(module, f"{name}.vectors.{width}", kind, TileSize(half_tiles.STRIPE, width))
    elif has_widened_tiles(kind, size.rows) and size.panels == 1:
        add_widened_tiles(module, name, kind)
    elif has_paired_panels(kind, size.rows) and size.panels == 1:
        add_paired_panels(module, name, kind, size)
    else:
        add_bodies(module, name, kind, size, MatrixBody if has_matrix_products(kind, target) else None)
