"""Differences between results and eager's, by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

pytree = torch.utils._pytree

CLOSE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 8e-3, torch.bfloat16: 6e-2}
"""Relative to the value, and a tenth of it relative to the largest of the tensor."""


def differences(got: Any, want: Any, exact: Callable[[], Any] | None = None) -> list[tuple[str, str]]:
    """Kind and description of each difference: of `type`, `value`, `zero` (its sign) or `layout` (strides).

    `exact` computes the results in double precision. Values are right where they are as near to those as eager's are.
    """
    ours, spec = pytree.tree_flatten(got)
    theirs, other = pytree.tree_flatten(want)
    if spec != other:
        return [("type", f"{spec} instead of {other}")]
    found: list[tuple[str, str]] = []
    for place, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        reference = None if exact is None else (lambda place=place: _leaf(exact(), place))
        found += [(kind, f"result {place}: {what}") for kind, what in _leaf_differences(one, two, reference)]
    return found


def _leaf(result: Any, place: int) -> Any:
    leaves = pytree.tree_leaves(result)
    return leaves[place] if place < len(leaves) else None


def _leaf_differences(got: Any, want: Any, exact: Callable[[], Any] | None) -> list[tuple[str, str]]:
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
    return found + _value_differences(got.detach().resolve_conj().resolve_neg(), want.detach(), exact)


def _value_differences(got: torch.Tensor, want: torch.Tensor, exact: Callable[[], Any] | None) -> list[tuple[str, str]]:
    want = want.resolve_conj().resolve_neg()
    if not want.dtype.is_floating_point and not want.dtype.is_complex:
        wrong = got != want
        return [("value", _example(got, want, wrong))] if bool(wrong.any()) else []
    if want.dtype.is_complex:
        if torch.equal(torch.nan_to_num(got), torch.nan_to_num(want)):
            return []
        got, want, exact = torch.view_as_real(got), torch.view_as_real(want), None
    close = CLOSE.get(want.dtype, 0.2)
    a, b = got.double(), want.double()
    wrong = _wrong(a, b, close)
    if bool(wrong.any()) and exact is not None:
        reference = exact()
        if isinstance(reference, torch.Tensor) and reference.shape == want.shape:
            wrong &= ~_as_near(a, b, reference.double(), want.dtype, close)
    if bool(wrong.any()):
        return [("value", _example(got, want, wrong))]
    signs = (b == 0) & (a == 0) & (torch.signbit(a) != torch.signbit(b))
    return [("zero", _example(got, want, signs))] if bool(signs.any()) else []


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
