"""Edits of structured kernels: simplify bodies, drop schedules and their directives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DictionaryAttr, FloatAttr, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from igniter.dialects.loop import ComputeOp, LoadOp, ReadOp
from igniter.dialects.loop.attrs import is_float
from igniter.dialects.loop.schedule import Loop, ScheduleAttr, Store
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
    """Yields edits to drop a directive of a schedule, or a hint of a loop."""
    for op in module.walk():
        if isinstance(op, ComputeOp) and op.schedule is not None:
            for place, step in enumerate(op.schedule.data):
                if isinstance(step, Loop):
                    for word, nothing in NOTHING_SAID.items():
                        if getattr(step, word) != nothing:
                            edit = partial(_drop_of_loop, place=place, word=word)
                            yield Edit(op, f"drop {word} of loop {step.axis}", edit)
                if isinstance(step, Store):
                    yield Edit(op, "drop store", partial(_drop_step, place=place))
        found = op.properties.get("hints")
        if isinstance(found, DictionaryAttr):
            for path in _paths(found):
                yield Edit(op, f"drop {'.'.join(path)}", partial(_drop_word, path=path))


NOTHING_SAID = {
    "tail": "",
    "into_result": False,
    "threads": None,
    "fuse": "",
    "accumulators": 0,
    "vector": 0,
    "unroll": None,
}
"""The defaults of a schedule's loop: its properties without each directive."""


def _drop_of_loop(op: Operation, place: int, word: str) -> None:
    assert isinstance(op, ComputeOp) and op.schedule is not None
    steps = list(op.schedule.data)
    step = steps[place]
    assert isinstance(step, Loop)
    less = {word: NOTHING_SAID[word]}
    if word == "vector":
        less["accumulators"] = 0
    steps[place] = replace(step, **less)
    op.schedule = ScheduleAttr(steps)


def _drop_step(op: Operation, place: int) -> None:
    assert isinstance(op, ComputeOp) and op.schedule is not None
    op.schedule = ScheduleAttr([*op.schedule.data[:place], *op.schedule.data[place + 1 :]])


def _paths(words: DictionaryAttr) -> Iterator[tuple[str, ...]]:
    for name, value in words.data.items():
        if isinstance(value, DictionaryAttr):
            yield from ((name, *rest) for rest in _paths(value))
        yield (name,)


def _drop_word(op: Operation, path: tuple[str, ...]) -> None:
    found = op.properties["hints"]
    assert isinstance(found, DictionaryAttr)
    op.properties["hints"] = _without(found, path)


def _without(words: DictionaryAttr, path: tuple[str, ...]) -> DictionaryAttr:
    first, *rest = path
    if not rest:
        return DictionaryAttr({k: v for k, v in words.data.items() if k != first})
    inner = words.data[first]
    assert isinstance(inner, DictionaryAttr)
    return DictionaryAttr({**words.data, first: _without(inner, tuple(rest))})


REDUCTIONS = (
    Reduction("drop schedules", schedules),
    Reduction("drop words of schedules", words),
    Reduction("simplify bodies", bodies),
    Reduction("read constants", reads),
)
