"""Shapes, repeats and axes that are inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.values.bound import check_bound, ints

X = np.random.default_rng(0).standard_normal((5, 6, 7)).astype(np.float32)


def test_reshape() -> None:
    runs = [[X, ints(7, -1, 2)], [X, ints(0, 6, 7)], [X, ints(0, 0, -1)], [X, ints(210, 1, 1)]]
    check_bound("Reshape", runs, refused=[[X, ints(-1, -1, 2)], [X, ints(11, -1, 2)], [X, ints(5, 6, 8)]])


def test_reshape_takes_zeros_for_sizes_where_it_is_told_to() -> None:
    empty = X[:, :0]
    check_bound("Reshape", [[empty, ints(7, 0, 2)], [empty, ints(0, 5, 7)]], {"allowzero": 1})


def test_static_operands() -> None:
    check_bound("Reshape", [[X, ints(7, -1, 2)]], refused=[[X, ints(4, -1, 2)]], dynamic=False)


def test_unsqueeze() -> None:
    runs = [[X, ints(0, -1)], [X, ints(1, 2)], [X, ints(4, 0)]]
    check_bound("Unsqueeze", runs, refused=[[X, ints(1, 1)], [X, ints(5, 0)]])


def test_squeeze() -> None:
    x = X.reshape(5, 1, 6, 1, 7)
    check_bound("Squeeze", [[x, ints(1, -2)], [x, ints(3, 1)]], refused=[[x, ints(0, 1)], [x, ints(1, 7)]])


def test_tile() -> None:
    check_bound("Tile", [[X, ints(1, 2, 3)], [X, ints(2, 0, 1)]], refused=[[X, ints(-1, 1, 1)]])


def test_expand() -> None:
    runs = [[X, ints(2, 5, 1, 7)], [X, ints(1, 1, 1, 1)]]
    check_bound("Expand", runs, refused=[[X, ints(1, 3, 6, 7)], [X, ints(1, 1, 9, 1)]])


def test_expand_of_few_dims() -> None:
    thin = X[:, :1, 0]
    check_bound("Expand", [[thin, ints(9)], [thin, ints(0)], [thin, ints(1)]], refused=[[thin, ints(-1)]])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceLogSumExp"])
def test_reduction(op: str) -> None:
    runs = [[X, ints(1)], [X, ints(-1)], [X, ints(0)]]
    check_bound(op, runs, refused=[[X, ints(3)], [X, ints(-4)]])


def test_reduction_that_drops_axes() -> None:
    runs = [[X, ints(1, 0)], [X, ints(-1, 1)], [X, ints(0, 2)], [X[:0], ints(0, 2)], [X[:0], ints(2, 1)]]
    check_bound("ReduceL2", runs, {"keepdims": 0}, refused=[[X, ints(0, 5)]])


def test_reduction_of_integers_over_no_axis() -> None:
    x = (X * 9).astype(np.int32)
    check_bound("ReduceSumSquare", [[x, ints()]], {"noop_with_empty_axes": 1})
    check_bound("ReduceMax", [[x, ints()]])
