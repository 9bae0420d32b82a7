"""Differences between results and eager's, by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

pytree = torch.utils._pytree

CLOSE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 8e-3, torch.bfloat16: 6e-2}
"""Relative to the value, and a tenth of it relative to the largest of the tensor."""


Compute = Callable[[], Any]


@dataclass(frozen=True)
class Eager:
    """More of what eager computes, where its results leave room. Each is a function that is called when it is needed.

    `exact` are the results in double precision. Values are right where they are as near to those as eager's are, and
    zeros where they have their sign. `others` are the results for the same values in memory that is laid out otherwise:
    the sign of `maximum(0.0, -0.0)` is another one in the last elements of a tensor, which no vector holds. `magnitude`
    is a sum of the absolute values in double precision: the order of a sum rounds by as much, or overflows.
    """

    exact: Compute
    others: Compute = list
    magnitude: Compute = lambda: None


def differences(got: Any, want: Any, eager: Compute | Eager | None = None) -> list[tuple[str, str]]:
    """Kind and description of each difference: of `type`, `value`, `zero` (its sign) or `layout` (strides).

    `eager` may be the function for results in double precision alone.
    """
    more = eager if isinstance(eager, Eager) or eager is None else Eager(eager)
    ours, spec = pytree.tree_flatten(got)
    theirs, other = pytree.tree_flatten(want)
    if spec != other:
        return [("type", f"{spec} instead of {other}")]
    found: list[tuple[str, str]] = []
    for place, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        found += [(kind, f"result {place}: {what}") for kind, what in _leaf_differences(one, two, _of(more, place))]
    return found


def _of(eager: Eager | None, place: int) -> Eager | None:
    """The same of one result."""
    if eager is None:
        return None
    return Eager(
        lambda: _leaf(eager.exact(), place),
        lambda: [_leaf(each, place) for each in eager.others()],
        lambda: _leaf(eager.magnitude(), place),
    )


def _leaf(result: Any, place: int) -> Any:
    leaves = pytree.tree_leaves(result)
    return leaves[place] if place < len(leaves) else None


def _leaf_differences(got: Any, want: Any, eager: Eager | None) -> list[tuple[str, str]]:
    if not isinstance(want, torch.Tensor):
        same = type(got) is type(want) and (got == want or (got != got and want != want))
        return [] if same else [("value", f"{got!r} instead of {want!r}")]
    if not isinstance(got, torch.Tensor) or got.shape != want.shape or got.dtype != want.dtype:
        return [("type", f"{_type(got)} instead of {_type(want)}")]
    if got.layout is not torch.strided or want.layout is not torch.strided:
        same = got.layout == want.layout and torch.equal(got.to_dense(), want.to_dense())
        return [] if same else [("value", "sparse tensors differ")]
    found: list[tuple[str, str]] = []
    if got.stride() != want.stride() and want.numel() > 1:
        found.append(("layout", f"strides {got.stride()} instead of {want.stride()} of {tuple(want.shape)}"))
    return found + _value_differences(got.detach().resolve_conj().resolve_neg(), want.detach(), eager)


def _value_differences(got: torch.Tensor, want: torch.Tensor, eager: Eager | None) -> list[tuple[str, str]]:
    want = want.resolve_conj().resolve_neg()
    if not want.dtype.is_floating_point and not want.dtype.is_complex:
        wrong = got != want
        if bool(wrong.any()) and eager is not None:
            wrong &= ~_in_others(got, eager)
        return [("value", _example(got, want, wrong))] if bool(wrong.any()) else []
    if want.dtype.is_complex:
        if torch.equal(torch.nan_to_num(got), torch.nan_to_num(want)):
            return []
        got, want, eager = torch.view_as_real(got), torch.view_as_real(want), None
    close = CLOSE.get(want.dtype, 0.2)
    a, b = got.double(), want.double()
    wrong = _wrong(a, b, close)
    if bool(wrong.any()) and eager is not None:
        reference = _like(eager.exact(), want)
        if reference is not None:
            wrong &= ~_as_near(a, b, reference, want.dtype, close)
            size = _like(eager.magnitude(), want)
            if size is not None:
                finite = b.isfinite() | reference.isfinite()
                overflows = size > torch.finfo(want.dtype).max / 4
                wrong &= ~(finite & (overflows | ((a - b).abs() <= close * size)))
        wrong &= ~_in_others(got, eager)
    if bool(wrong.any()):
        return [("value", _example(got, want, wrong))]
    signs = (b == 0) & (a == 0) & (torch.signbit(a) != torch.signbit(b))
    if bool(signs.any()) and eager is not None:
        signs &= ~_in_others(got, eager)
        reference = _like(eager.exact(), want)
        if reference is not None:
            signs &= (reference != 0) | (torch.signbit(reference) != torch.signbit(a))
    return [("zero", _example(got, want, signs))] if bool(signs.any()) else []


def _like(result: Any, want: torch.Tensor) -> torch.Tensor | None:
    """A result in double precision, where it is of the shape of another."""
    return result.double() if isinstance(result, torch.Tensor) and result.shape == want.shape else None


def _in_others(got: torch.Tensor, eager: Eager) -> torch.Tensor:
    """The elements that eager computes for another layout of its arguments, the sign of a zero included."""
    found = torch.zeros(got.shape, dtype=torch.bool)
    for other in eager.others():
        if isinstance(other, torch.Tensor) and other.shape == got.shape and other.dtype == got.dtype:
            found |= (got == other) & (torch.signbit(got) == torch.signbit(other))
    return found


def _wrong(a: torch.Tensor, b: torch.Tensor, close: float) -> torch.Tensor:
    finite = b[b.isfinite()].abs()
    # Beside a largest value of another scale all else would pass.
    largest = float(finite.median()) * 10 if finite.numel() else 0.0
    near = (a - b).abs() <= close * b.abs() + close * 0.1 * min(largest, 1e3) + 1e-30
    same = (a == b) | (a.isnan() & b.isnan())
    return ~(same | (near & b.isfinite()))


def _as_near(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype, close: float) -> torch.Tensor:
    """Elements as far from the exact value as eager's, or that overflow where the exact value is at the limit."""
    # Where eager alone overflows on the way, the exact value is no worse.
    theirs = torch.where(b.isfinite(), (b - exact).abs(), 0.0)
    near = (a - exact).abs() <= 4 * theirs + close * exact.abs()
    # A product that overflows on the way to an infinity makes eager's a NaN, and depends on the order of the sum.
    near |= (a == exact) & exact.isinf()
    near |= ~a.isfinite() & ~b.isfinite() & exact.isfinite()
    overflows = (exact.abs() > torch.finfo(dtype).max / 4) & ((a.sign() == exact.sign()) & (b.sign() == exact.sign()))
    return near | overflows


def _example(got: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor) -> str:
    at = tuple(wrong.nonzero()[0].tolist())
    return f"{int(wrong.sum())} of {wrong.numel()}, {got[at].item()!r} instead of {want[at].item()!r} at {at}"


def _type(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, torch.Tensor) else repr(type(value).__name__)


def sharing(tensors: Sequence[Any]) -> list[int]:
    """For each tensor the number of the first one in the same memory."""
    first: dict[int, int] = {}
    found: list[int] = []
    for place, tensor in enumerate(tensors):
        strided = isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
        address = tensor.untyped_storage().data_ptr() if strided and tensor.numel() else 0
        found.append(first.setdefault(address, place) if address else place)
    return found
