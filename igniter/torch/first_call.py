"""The first call of a graph with changed inputs or views of inputs, compared with eager from the caller's side.

After the compiled graph returns, AOTAutograd or the caller of `torch.export` copies new values into inputs and makes
views of them. So the comparison of results, inputs and their shared memory comes after this step. Each side has its own
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from igniter.torch.compare import differences
from igniter.torch.names import Tensor, is_tensor, pytree, torch


class CheckedCalls:
    """A wrapper of `fast`. The first call also runs `eager` on the arguments, and a difference makes the graph eager.

    `kept` is true for each input that both runs share: a weight unchanged by the graph. `leave` receives the reason if
    the graph stays eager. `pending` is true while parts are compiled in the background; until then `eager` serves, and
    the first call is the first one after that.
    """

    def __init__(
        self,
        fast: Callable[..., Any],
        eager: Callable[..., Any],
        kept: Sequence[bool],
        rtol: float,
        leave: Callable[[str], None],
        pending: Callable[[], bool] | None = None,
    ):
        self._run = fast
        self._eager = eager
        self._kept = kept
        self._rtol = rtol
        self._leave = leave
        self._checked = False
        self._pending = pending
        self._begun = False

    def __call__(self, *args: Any) -> Any:
        if self._checked:
            return self._run(*args)
        if self._pending is not None:
            if not self._begun:
                self._begun = True
                begin(self._run, args, self._kept)
            if self._pending():
                return self._eager(*args)
        return self._first(args)

    def _first(self, args: Sequence[Any]) -> Any:
        copies = copied(args, self._kept)
        before = torch.get_rng_state()
        expected = self._eager(*args)
        after = torch.get_rng_state()
        # Random ops are eager in both runs, and must draw the same numbers.
        torch.set_rng_state(before)
        try:
            got = self._run(*copies)
            wrong = call_difference(copies, got, args, expected, self._rtol)
        except Exception as error:
            # The eager results are available, so any error is just a reason to stay eager.
            wrong = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        finally:
            torch.set_rng_state(after)
        self._checked = True
        if wrong:
            self._leave(f"its results differ from eager: {wrong}")
            self._run = self._eager
        return expected


def call_difference(ours: Sequence[Any], got: Any, theirs: Sequence[Any], expected: Any, rtol: float) -> str:
    """Returns the difference of two calls, empty if they agree. `ours` and `theirs` are the inputs after each call."""
    mine: list[Any] = [*ours, *pytree.tree_leaves(got)]
    others: list[Any] = [*theirs, *pytree.tree_leaves(expected)]
    _, wrong = differences(mine, others, rtol)
    if wrong:
        return f"of inputs and results, {wrong}"
    count = len(ours)
    for place, (one, other) in enumerate(zip(mine, others, strict=True)):
        if place >= count and is_tensor(one) and _layout(one) != _layout(other) and _memory(other) in _memories(theirs):
            return f"result {place - count} is a view with {_layout(one)} instead of {_layout(other)}"
    if _sharing(mine) != _sharing(others):
        return f"inputs and results share memory as {_sharing(mine)} instead of {_sharing(others)}"
    return ""


def begin(run: Callable[..., Any], args: Sequence[Any], kept: Sequence[bool]) -> None:
    """Calls `run` on copies of the arguments, so that its parts are compiled in the background; the result is dropped.

    Parts that are not compiled yet run in eager. The state of the random numbers is as before.
    """
    before = torch.get_rng_state()
    try:
        run(*copied(args, kept))
    finally:
        torch.set_rng_state(before)


def copied(values: Sequence[Any], kept: Sequence[bool]) -> list[Any]:
    """Copies the tensors not in `kept`, with their strides, offsets and shared memory; returns all values."""
    whole: dict[int, Tensor] = {}
    copies: dict[int, Any] = {}
    for value, keep in zip(values, kept, strict=True):
        if not is_tensor(value) or keep or value.layout is not torch.strided:
            copies[id(value)] = value
        elif id(value) not in copies:
            copies[id(value)] = _copy(value, whole)
    return [copies[id(value)] for value in values]


def _copy(value: Tensor, whole: dict[int, Tensor]) -> Tensor:
    storage = value.untyped_storage()
    if storage._cdata not in whole:
        # The whole storage as bytes: it may also contain tensors of other types.
        every = torch.empty(0, dtype=torch.uint8).set_(storage)
        whole[storage._cdata] = every.clone()
    made = torch.empty(0, dtype=value.dtype)
    made.set_(whole[storage._cdata].untyped_storage(), value.storage_offset(), value.shape, value.stride())
    made = torch._conj(made) if value.is_conj() else made
    return torch._neg_view(made) if value.is_neg() else made


def _memory(value: Any) -> int:
    """Returns the address of a tensor's storage; 0 for other values and for tensors without strides."""
    return value.untyped_storage().data_ptr() if is_tensor(value) and value.layout is torch.strided else 0


def _memories(values: Sequence[Any]) -> set[int]:
    return {_memory(value) for value in values} - {0}


def _layout(value: Tensor) -> str:
    # The stride of an axis of one element has no effect.
    strides = [stride if size > 1 else 1 for size, stride in zip(value.shape, value.stride(), strict=True)]
    return f"strides {strides} and offset {value.storage_offset()}"


def _sharing(values: Sequence[Any]) -> list[int]:
    """Returns for each value the position of the first value in the same storage, counted from 1."""
    first: dict[int, int] = {}
    return [first.setdefault(_memory(value) or -place, place) for place, value in enumerate(values, 1)]
