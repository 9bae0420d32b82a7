"""Facts of decoders with caches: sizes that their inputs can have, and the inputs that count keys.

GroupQueryAttention accepts few combinations of the number of new keys, the rows of the past and the total length: the
past ends where the new keys begin, or past and present are one buffer with room for all keys. Drawn independently,
nearly all are errors. A cache that slides has room for its window.

A decoder exported from PyTorch concatenates the past and the new keys, and its mask is as long as both together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from igniter.analysis.onnx.shape_inference import ShapeFacts
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.windowed_cache import slides
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from igniter.dialects.onnx.structure import GraphOp

Sizes = dict[str, int]
PAST_KEY, LENGTHS, TOTAL = 3, 5, 6
"""Operands of GroupQueryAttention."""

STEPS: tuple[tuple[str, int, int, int, int], ...] = (
    ("usual", 2, 1, 24, 9),
    ("unequal", 3, 1, 7, 8),
    ("usual", 1, 3, 24, 11),
    ("equal", 2, 13, 13, 13),
    ("usual", 2, 5, 0, 5),
    ("odd", 1, 21, 47, 21),
    ("usual", 1, 1, 31, 32),
    ("many", 1, 67, 96, 67),
)
"""The kind of a case, the batch, the new keys, the rows of the past and the total length: steps and prompts, with a
past of their own or in a buffer for more keys. ONNX Runtime takes several new keys after others in a batch of one."""


GROWING: tuple[tuple[str, int, int, int, int], ...] = tuple(
    (kind, batch, new, past, new + past)
    for kind, batch, new, past in (
        ("usual", 2, 1, 9),
        ("unequal", 3, 1, 7),
        ("usual", 1, 3, 8),
        ("equal", 2, 13, 13),
        ("usual", 2, 5, 0),
        ("odd", 1, 21, 26),
        ("many", 1, 67, 29),
    )
)
"""The same for caches that grow by the new keys."""

MOST_WINDOW = 64
"""The longest window that a prompt is as long as."""


def _filling(window: int, batch: int, new: int, past: int, total: int) -> tuple[int, int, int, int]:
    """Returns a case with at least as many keys as a window has. ONNX Runtime does not write the rows of a cache that
    slides behind its keys, so two runs differ there; a full cache has no such rows."""
    missing = max(0, window - total)
    if new < total or not missing:
        return batch, new, past + missing, total + missing
    if window > MOST_WINDOW:
        # Several keys after others, not a prompt of thousands of tokens.
        return 1, new, past + missing, total + missing
    return batch, new + missing, past + missing if past else 0, total + missing


@dataclass(frozen=True)
class CacheFacts:
    """The dims of a decoder that an attention over a cache ties to each other."""

    batch: str
    new: str
    past: str
    """The rows of the past; those of a window if all caches slide."""
    total: str
    masks: frozenset[str] = frozenset()
    """The inputs whose sums are numbers of keys."""
    windows: tuple[tuple[str, int], ...] = ()
    """The rows of caches that slide, each with the window."""
    steps: tuple[tuple[str, int, int, int, int], ...] = STEPS

    def sizes(self) -> Iterator[tuple[str, Sizes]]:
        """Yields sizes of these dims, each with the kind of its case."""
        windows = dict(self.windows)
        for kind, *numbers in self.steps:
            case = _filling(max(windows.values(), default=0), *numbers)
            yield kind, {**dict(zip((self.batch, self.new, self.past, self.total), case, strict=True)), **windows}


def cache_facts(graph: GraphOp, facts: ShapeFacts) -> CacheFacts | None:
    """Returns the dims of the first GroupQueryAttention whose past is an input and whose dims are symbols, and the rows
    of all caches that slide. Without such an op, the dims are those of the first Concat of a past with new keys."""
    names: Mapping[SSAValue, str] = dict(zip(graph.body.args, graph.input_names, strict=True))
    whole: CacheFacts | None = None
    sliding: CacheFacts | None = None
    windows: dict[str, int] = {}
    for op in graph.walk():
        if not isinstance(op, OnnxOp) or op.op_type != "GroupQueryAttention" or len(op.operands) <= TOTAL:
            continue
        found = _facts_of(op, names, facts)
        if found is not None and slides(op):
            sliding = sliding or found
            windows[found.past] = max(windows.get(found.past, 1), int(op.attr("local_window_size", -1)))
        elif found is not None:
            whole = whole or found
    first = whole or sliding
    return _growing(graph, names, facts) if first is None else replace(first, windows=tuple(windows.items()))


def _facts_of(op: OnnxOp, names: Mapping[SSAValue, str], facts: ShapeFacts) -> CacheFacts | None:
    query, past, total = op.operands[0], op.operands[PAST_KEY], facts.values.get(op.operands[TOTAL])
    if past not in names or total is None or len(total) != 1:
        return None
    try:
        cached, asked = (dims_of(facts.types.get(value, value.type)) for value in (past, query))
    except ValueError:
        return None
    if len(cached) != 4 or len(asked) != 3:
        return None
    symbols = [dim.symbol for dim in (cached[0], asked[1], cached[2], total[0])]
    batch, new, rows, length = symbols
    if batch is None or new is None or rows is None or length is None or len(set(symbols)) < len(symbols):
        return None
    return CacheFacts(batch, new, rows, length, frozenset(_inputs_behind(op.operands[LENGTHS], names)))


def _growing(graph: GraphOp, names: Mapping[SSAValue, str], facts: ShapeFacts) -> CacheFacts | None:
    """Returns the dims of the first past of an input that new keys are concatenated to, if the last dim of a mask is a
    symbol besides them."""
    masks = [value for value, name in names.items() if "mask" in name.lower()]
    for op in graph.walk():
        if not isinstance(op, OnnxOp) or op.op_type != "Concat" or len(op.operands) != 2 or op.operands[0] not in names:
            continue
        try:
            past, keys = (dims_of(facts.types.get(value, value.type)) for value in op.operands)
            lengths = [dims_of(mask.type)[-1].symbol for mask in masks]
        except (ValueError, IndexError):
            continue
        axis = int(op.attr("axis", 0))
        if len(past) != len(keys) or len(past) < 3:
            continue
        symbols = [past[0].symbol, keys[axis].symbol, past[axis].symbol]
        for total in lengths:
            batch, new, rows = symbols
            if batch and new and rows and total and len({*symbols, total}) == 4:
                return CacheFacts(batch, new, rows, total, steps=GROWING)
    return None


def _inputs_behind(value: SSAValue, names: Mapping[SSAValue, str]) -> Iterator[str]:
    """Yields the inputs from which a value is computed."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in names:
            yield names[current]
        elif isinstance(current.owner, OnnxOp):
            todo += current.owner.operands
