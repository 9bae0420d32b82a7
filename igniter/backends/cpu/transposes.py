"""Matrices transposed in registers, by shuffles of two vectors at a time."""

from __future__ import annotations

from collections.abc import Sequence

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.function import Function


def transposed(f: Function, vectors: Sequence[Value], lanes: int, rows: int) -> list[Value]:
    """Returns the vectors of the transpose of a matrix of `rows` rows; `vectors` of `lanes` lanes hold its elements in
    order.

    A square of a power of 2 exchanges blocks across its diagonal. If a side is another power of 2, elements are
    interleaved, or deinterleaved, in log2 of the side steps. Any other matrix gathers each result from all vectors.
    """
    count = len(vectors)
    columns = count * lanes // rows
    if rows == count == lanes and not lanes & (lanes - 1):
        return _square(f, vectors)
    if count > 1 and rows == count and not count & (count - 1) and lanes % 2 == 0:
        return _interleaved(f, vectors, lanes)
    if count > 1 and columns == count and not count & (count - 1) and lanes % 2 == 0:
        return _taken_apart(f, vectors, lanes)
    return [
        _gathered(f, vectors, lanes, [at % rows * columns + at // rows for at in range(m * lanes, (m + 1) * lanes)])
        for m in range(count)
    ]


def _square(f: Function, vectors: Sequence[Value]) -> list[Value]:
    """Exchanges blocks of half the size across the diagonal, then blocks of half that, down to elements."""
    rows = list(vectors)
    n = len(rows)
    distance = n // 2
    while distance:
        keep = [lane if not lane & distance else n + lane - distance for lane in range(n)]
        move = [lane + distance if not lane & distance else n + lane for lane in range(n)]
        for i in (k for k in range(n) if not k & distance):
            low, high = rows[i], rows[i + distance]
            rows[i], rows[i + distance] = f.shuffle(low, high, keep), f.shuffle(low, high, move)
        distance //= 2
    return rows


def _interleaved(f: Function, vectors: Sequence[Value], lanes: int) -> list[Value]:
    """Interleaves, in each step, the elements of the first half of the vectors with those of the second."""
    now, half = list(vectors), len(vectors) // 2
    low = [k // 2 + lanes * (k % 2) for k in range(lanes)]
    high = [k + lanes // 2 for k in low]
    for _ in range(len(now).bit_length() - 1):
        pairs = zip(now[:half], now[half:], strict=True)
        now = [f.shuffle(a, b, lane) for a, b in pairs for lane in (low, high)]
    return now


def _taken_apart(f: Function, vectors: Sequence[Value], lanes: int) -> list[Value]:
    """Moves, in each step, the elements at even places before those at odd ones."""
    now = list(vectors)
    for _ in range(len(now).bit_length() - 1):
        pairs = list(zip(now[::2], now[1::2], strict=True))
        now = [f.shuffle(a, b, range(odd, 2 * lanes, 2)) for odd in (0, 1) for a, b in pairs]
    return now


def _gathered(f: Function, vectors: Sequence[Value], lanes: int, places: Sequence[int]) -> Value:
    """Returns the elements at `places` of all vectors: one shuffle for each further vector with some of them."""
    used = sorted({place // lanes for place in places})
    result = vectors[used[0]]
    lane = [place % lanes if place // lanes == used[0] else 0 for place in places]
    for number in used[1:] or used:
        lane = [
            lanes + place % lanes if place // lanes == number else at for place, at in zip(places, lane, strict=True)
        ]
        result = f.shuffle(result, vectors[number], lane)
        lane = list(range(lanes))
    return result
