"""Edits of structured kernels: simplify bodies, drop schedules and their directives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from igniter.dialects.loop import AllocOp, ComputeOp, ForOp, LoadOp, ReadOp
from igniter.dialects.loop.attrs import is_float
from igniter.dialects.loop.schedule import Loop, ScheduleAttr, Store
from igniter.dialects.loop.words import LOOP_TABLE, TABLE, LoopWords, W, without, words_in
from igniter.toolbox.reduce.edits import CannotEdit, Edit, Reduction


def bodies(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a scalar or vector op by an operand of its type."""
    for op in module.walk():
        if op.name.partition(".")[0] in ("arith", "math") and len(op.results) == 1:
            for place, value in enumerate(op.operands):
                if value.type == op.results[0].type:
                    yield Edit(op, f"use operand {place} instead", partial(_forward, place=place))


def _forward(op: Operation, place: int) -> None:
    op.results[0].replace_all_uses_with(op.operands[place])
    op.detach()
    op.erase()


def reads(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a read or load by the constant 1."""
    for op in module.walk():
        if isinstance(op, (ReadOp, LoadOp)):
            yield Edit(op, "read 1", _read_one)


def _read_one(op: Operation) -> None:
    kind = op.results[0].type
    assert op.parent is not None
    one = _one(kind)
    op.parent.insert_op_before(one, op)
    op.results[0].replace_all_uses_with(one.result)
    op.detach()
    op.erase()


def _one(kind: Attribute) -> arith.ConstantOp:
    if isa(kind, IntegerType):
        return arith.ConstantOp(IntegerAttr(1, kind))
    if not is_float(kind):
        raise CannotEdit(f"there is no 1 of {kind}")
    assert isa(kind, AnyFloat)
    return arith.ConstantOp(FloatAttr(1.0, kind))


def schedules(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop the schedule of a nest."""
    for op in module.walk():
        if isinstance(op, ComputeOp) and op.schedule is not None:
            yield Edit(op, "drop the schedule", _unschedule)


def _unschedule(op: Operation) -> None:
    op.properties.pop("schedule", None)


def words(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a word of a schedule's loop or of a scheduled loop."""
    for op in module.walk():
        if isinstance(op, ComputeOp) and op.schedule is not None:
            for place, step in enumerate(op.schedule.data):
                if isinstance(step, Loop):
                    for word in words_in(step):
                        if word.name not in KEPT:
                            edit = partial(_drop_of_loop, place=place, word=word.name)
                            yield Edit(op, f"drop {word.name} of loop {step.axis}", edit)
                if isinstance(step, Store):
                    yield Edit(op, "drop store", partial(_drop_step, place=place))
        if isinstance(op, ForOp):
            yield from (Edit(op, f"drop {'.'.join(path)}", partial(_drop_word, path=path)) for path in _paths(op.words))
        if isinstance(op, AllocOp) and op.storage is not None:
            yield Edit(op, "drop store", partial(_drop_storage))


KEPT = frozenset(("by", "grid", "slide", "prefetch"))
"""Words that the reducer leaves: without them the loops of an axis no longer fit together, or nothing becomes
smaller."""


def _less(words: W, name: str) -> W:
    """Returns the words without one, and without those that need it."""
    table = LOOP_TABLE if isinstance(words, LoopWords) else TABLE
    return without(words, name, *(row.name for row in table.values() if name in row.beside))


def _drop_of_loop(op: Operation, place: int, word: str) -> None:
    assert isinstance(op, ComputeOp) and op.schedule is not None
    steps = list(op.schedule.data)
    step = steps[place]
    assert isinstance(step, Loop)
    steps[place] = _less(step, word)
    op.schedule = ScheduleAttr(steps)


def _drop_step(op: Operation, place: int) -> None:
    assert isinstance(op, ComputeOp) and op.schedule is not None
    op.schedule = ScheduleAttr([*op.schedule.data[:place], *op.schedule.data[place + 1 :]])


def _paths(words: LoopWords) -> Iterator[tuple[str, ...]]:
    for word in words_in(words):
        if word.name == "inside" and words.inside is not None:
            yield from ((word.name, *rest) for rest in _paths(words.inside))
        yield (word.name,)


def _drop_word(op: Operation, path: tuple[str, ...]) -> None:
    assert isinstance(op, ForOp)
    op.words = _without_path(op.words, path)


def _without_path(words: LoopWords, path: tuple[str, ...]) -> LoopWords:
    first, *rest = path
    if not rest:
        return _less(words, first)
    assert words.inside is not None
    return replace(words, inside=_without_path(words.inside, tuple(rest)))


def _drop_storage(op: Operation) -> None:
    assert isinstance(op, AllocOp)
    op.storage_attr = None


REDUCTIONS = (
    Reduction("drop schedules", schedules),
    Reduction("drop words of schedules", words),
    Reduction("simplify bodies", bodies),
    Reduction("read constants", reads),
)
