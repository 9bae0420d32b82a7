"""Minimal filtering F(m, 3): m results of a filter of three taps from m + 2 products instead of 3 m.

A filter is a product of polynomials, determined by its values at enough points (Toom and Cook; Winograd, "Arithmetic
Complexity of Computations", 1980): the values of both factors at m + 2 points are multiplied, and the results are sums
of these products. Applied along two axes, this gives the algorithm of Lavin and Gray for convolutions with 3 x 3
windows, "Fast Algorithms for Convolutional Neural Networks" (2016):

    y = A^T ((G g G^T) * (B^T d B)) A       d: a tile of m + 2 by m + 2 of the image, y: m by m results, * by elements

The points are 0, pairs a and -a, and infinity. A pair shares its even and its odd part, so that B^T and A^T cost about
two operations per element. The code computes these sums, and derives the matrices from them.

The choice of pairs determines the error (Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the
Accuracy of Winograd Convolution for Deep Neural Networks", 2020). F(4, 3) usually has the pairs 1 and 2; 5/8 and 3/2
cost the same number of operations and have half the error, because the powers in the transforms' coefficients grow
less. These coefficients are exact in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any, Protocol, TypeVar

import numpy as np

TAPS = 3
"""The taps of the filter along each axis."""


class Summand(Protocol):
    """The operands of transforms: values of a body, or arrays."""

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...


Element = TypeVar("Element", bound=Summand)


@dataclass(frozen=True)
class MinimalFilter:
    """The filter F(m, 3) with the points 0, a and -a of each of its pairs, and infinity."""

    pairs: tuple[float, ...]
    usual_error: float
    """The error for random data, relative to that of a direct sum in order: measured for 32 to 512 channels."""

    @property
    def results(self) -> int:
        """The m results of a tile along each axis."""
        return 2 * len(self.pairs)

    @property
    def size(self) -> int:
        """The elements of a tile along each axis, equal to the number of products."""
        return self.results + TAPS - 1

    @property
    def points(self) -> tuple[float, ...]:
        """The finite points, in the order of the products; infinity comes last."""
        return (0.0, *(p for a in self.pairs for p in (a, -a)))

    # -- the transforms ------------------------------------------------------------------------------------------------

    def of_input(self, d: Sequence[Element]) -> list[Element]:
        """Applies B^T: the values of a tile at each point, times the divisors of `weight_matrix`."""
        inner = _squares(self.pairs)
        found = [_sum([(c, d[2 * k]) for k, c in enumerate(inner)])]
        for a in self.pairs:
            others = _squares([b for b in self.pairs if b != a])
            even = _sum([(c, d[2 * k + 2]) for k, c in enumerate(others)])
            odd = _sum([(c, d[2 * k + 1]) for k, c in enumerate(others)])
            found += [_sum([(1.0, even), (a, odd)]), _sum([(1.0, even), (-a, odd)])]
        return [*found, _sum([(c, d[2 * k + 1]) for k, c in enumerate(inner)])]

    def of_products(self, m: Sequence[Element]) -> list[Element]:
        """Applies A^T: the results from the products."""
        pairs = [(m[2 * k + 1], m[2 * k + 2]) for k in range(len(self.pairs))]
        sums, differences = [x + y for x, y in pairs], [x - y for x, y in pairs]
        found: list[Element] = []
        for power in range(self.results):
            terms = [(a**power, s) for a, s in zip(self.pairs, differences if power % 2 else sums, strict=True)]
            first = [(1.0, m[0])] if power == 0 else []
            last = [(1.0, m[-1])] if power == self.results - 1 else []
            found.append(_sum([*first, *last, *terms]))
        return found

    def of_weight(self, g: Sequence[Element]) -> list[Element]:
        """Applies G without its divisors: the values of a polynomial with the coefficients `g` at each point.

        Every product is one with a power of two, so it is exact: the results have the same bits with fused
        multiply-adds and without, in every implementation of these operators.
        """
        first, middle, last = g
        found = [first]
        for a in self.pairs:
            even, odd = first + _scaled(last, a * a), _scaled(middle, a)
            found += [even + odd, even - odd]
        return [*found, last]

    @property
    def divisors(self) -> tuple[float, ...]:
        """The divisors of `of_weight`, by point: the product of a point's distances from the others; 1 at infinity."""
        return (*(float(np.prod([p - q for q in self.points if q != p])) for p in self.points), 1.0)

    def factors(self) -> list[float]:
        """Returns the factors of a transformed window, row by row: the reciprocals of the products of two divisors,
        in f64."""
        return [1.0 / (a * b) for a in self.divisors for b in self.divisors]

    # -- as matrices ---------------------------------------------------------------------------------------------------

    def input_matrix(self) -> np.ndarray[Any, Any]:
        """Returns B^T, with one row per product."""
        return np.stack(self.of_input(list(np.eye(self.size))))

    def output_matrix(self) -> np.ndarray[Any, Any]:
        """Returns A^T, with one row per result."""
        return np.stack(self.of_products(list(np.eye(self.size))))

    def weight_matrix(self) -> np.ndarray[Any, Any]:
        """Returns G: the powers of each point, divided by the product of its distances from the others; at infinity the
        last tap."""
        powers = np.stack(self.of_weight(list(np.eye(TAPS))))
        return powers / np.array(self.divisors)[:, None]

    def weight(self, plain: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns G g G^T of windows `[.., 3, 3]`, computed in f64. Numbers that the windows' type would make subnormal
        are 0, because products with them are slow (docs/explanation/numerics.md). The kernels that compute the same
        when a session loads (`igniter.dialects.onnx.ops.tile_weights`) give the same bits."""
        taps = np.ascontiguousarray(plain.transpose(-2, -1, *range(plain.ndim - 2)), dtype=np.float64)
        made = np.stack(self.at_points(taps, float(np.finfo(plain.dtype).tiny)), axis=-1)
        return made.reshape(*plain.shape[:-2], self.size, self.size)

    def at_points(self, taps: np.ndarray[Any, Any], least: float) -> list[np.ndarray[Any, Any]]:
        """Returns `weight` point by point, for taps `[3, 3, ..]` in f64; magnitudes below `least` are 0."""
        values = both_axes([list(row) for row in taps], self.of_weight)
        made = [value * factor for value, factor in zip(values, self.factors(), strict=True)]
        return [np.where(np.abs(value) < least, 0.0, value) for value in made]

    # -- the error -----------------------------------------------------------------------------------------------------

    @property
    def amplification(self) -> float:
        """The error bound relative to a direct sum of the same products: the largest sum of the magnitudes in a result,
        for a window and a tile of ones, divided by the number of taps."""
        b, g, a = (np.abs(x) for x in (self.input_matrix(), self.weight_matrix(), self.output_matrix()))
        along_an_axis = float((a @ (g.sum(axis=1) * b.sum(axis=1))).max()) / TAPS
        return along_an_axis**2

    def expected_error(self, channels: int, unit: float) -> float:
        """Returns the expected error for random data with `channels` channels, relative to the typical result. `unit`
        is half a unit in the last place of 1. The error is `usual_error` times that of a direct sum in order, whose
        roundings add up like a random walk."""
        return self.usual_error * unit * float(TAPS**2 * channels) ** 0.5

    @property
    def growth(self) -> float:
        """The largest ratio of a value of `of_input` to the largest element of a tile; tiles above the largest float
        over this overflow."""
        return float(np.abs(self.input_matrix()).sum(axis=1).max()) ** 2


FILTERS = {2: MinimalFilter((1.0,), usual_error=0.7), 4: MinimalFilter((0.625, 1.5), usual_error=2)}
"""The filters, by the results of a tile along each axis."""


def both_axes(
    tile: Sequence[Sequence[Element]], transform: Callable[[Sequence[Element]], list[Element]]
) -> list[Element]:
    """Applies a transform to the columns of a tile, then to the rows of the result, row by row."""
    columns = [transform([row[k] for row in tile]) for k in range(len(tile[0]))]
    return [value for k in range(len(columns[0])) for value in transform([column[k] for column in columns])]


def _scaled(value: Element, coefficient: float) -> Element:
    """Returns a positive multiple of a value as a sum of multiples by powers of two, the largest first."""
    total: Element | None = None
    left = coefficient
    while left:
        power = 2.0 ** (frexp(left)[1] - 1)
        term = value if power == 1.0 else value * power
        total = term if total is None else total + term
        left -= power
    assert total is not None, "a coefficient is positive"
    return total


def _squares(pairs: Sequence[float]) -> list[float]:
    """Returns the coefficients of the product of x - a^2 over `pairs`, from the constant on."""
    found = [1.0]
    for a in pairs:
        shifted = [0.0, *found]
        found = [s - a * a * c for s, c in zip(shifted, [*found, 0.0], strict=True)]
    return found


def _sum(terms: Sequence[tuple[float, Element]]) -> Element:
    """Returns the weighted sum of values, terms with coefficient 1 first, so that products are added to a sum."""
    (coefficient, total), *rest = sorted(terms, key=lambda term: term[0] != 1.0)
    if coefficient != 1.0:
        total = total * coefficient
    for coefficient, value in rest:
        if coefficient == -1.0:
            total = total - value
        else:
            total = total + (value if coefficient == 1.0 else value * coefficient)
    return total
