"""`ShapeEngine`: the shapes of all values of a model at given sizes, in microseconds.

    engine = igniter.shape_engine("model.onnx")
    engine.at(batch=1, seq=128)["logits"]                       (1, 128, 30522)
    engine.at(input_shapes={"input_ids": (1, 128)})["logits"]   the same, with the sizes read off the inputs

The expressions become Python code once (`shape_code`). A model has far fewer shapes than values, so each is computed
once, and all results share one index of values.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.registry import UnknownName
from igniter.toolbox.shapes.shape_code import Check, ShapeCode, compile_shapes
from igniter.toolbox.shapes.shapes import ModelShapes, ValueShape, shape_text

Shape = tuple[int | None, ...]


class SizedShapes(Mapping[str, "Shape | None"]):
    """Shapes by the values' names: a data-dependent dim is `None`, and so is a shape of unknown rank."""

    __slots__ = ("_index", "_shapes", "sizes")

    def __init__(self, index: Mapping[str, int], shapes: Sequence[Shape], sizes: tuple[tuple[str, int], ...]):
        self._index = index
        self._shapes = shapes
        self.sizes = sizes
        """The sizes of the symbols."""

    def __getitem__(self, name: str) -> Shape | None:
        place = self._index.get(name)
        if place is None:
            raise UnknownName("value", name, self._index)
        return self._shapes[place] if place >= 0 else None

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<shapes of {len(self)} values at {', '.join(f'{n}={v}' for n, v in self.sizes) or 'fixed sizes'}>"


@dataclass(frozen=True)
class _Input:
    name: str
    rank: int
    reads: tuple[tuple[int, str], ...]
    """Axes with a plain symbol, which they bind."""
    fixed: tuple[tuple[int, int], ...]
    """Axes of one size."""
    rest: tuple[tuple[int, Expr], ...]
    """Axes with an expression that their size must equal; it may be solved for a symbol."""


class ShapeEngine:
    """The shapes of a model's values (all, or the ones named in `values`) as functions of the sizes of its symbols."""

    def __init__(self, shapes: ModelShapes, values: Sequence[str] | None = None):
        self.shapes = shapes
        self.symbols = shapes.symbols
        """The names of the sizes to give."""
        by_name = {v.name: v for v in shapes.values}
        for name in values or ():
            if name not in by_name:
                raise UnknownName("value", name, by_name)
        self._values = tuple(by_name[n] for n in values) if values is not None else shapes.values
        rows: dict[tuple[Expr, ...], int] = {}
        first: list[str] = []
        nested: list[bool] = []
        self._index: dict[str, int] = {}
        for v in self._values:
            if v.dims is None:
                self._index[v.name] = -1
                continue
            if v.dims not in rows:
                first.append(v.name)
                nested.append(True)
            row = self._index[v.name] = rows.setdefault(v.dims, len(rows))
            if not v.scope and nested[row]:
                first[row], nested[row] = v.name, False
        self._code: ShapeCode = compile_shapes(self.symbols, list(rows), shapes.assumptions, first, nested)
        self._evaluate = self._code.evaluate
        self._get: Any = operator.itemgetter(*self.symbols) if len(self.symbols) > 1 else None
        self._aliases = _aliases(shapes)
        self._inputs = tuple(_input(shapes, i) for i in range(len(shapes.inputs)))

    @property
    def source(self) -> str:
        """The Python code of the shapes."""
        return self._code.source

    @property
    def values(self) -> tuple[ValueShape, ...]:
        """The values whose shapes it computes."""
        return self._values

    def at(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        **named: int,
    ) -> SizedShapes:
        """Returns the shapes at these sizes of the symbols, given as a mapping, by name, or read off the inputs'
        shapes.

        Raises `IgniterError` for a symbol without a size, an unknown symbol, a negative or non-integer size, a shape
        unfit for its input, and a violated assumption of the model.
        """
        given: Mapping[str, int] = {**(sizes or {}), **named} if named else sizes or {}
        if input_shapes:
            given = self._read(input_shapes, given)
        try:
            args = self._arguments(given)
        except (KeyError, TypeError):
            given = self._settled(given)
            args = self._arguments(given)
        found = self._evaluate(*args)
        if isinstance(found, int):
            raise IgniterError(self._broken(self._code.checks[found], dict(zip(self.symbols, args, strict=True))))
        return SizedShapes(self._index, found, tuple(zip(self.symbols, args, strict=True)))

    def _arguments(self, given: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the sizes in order; raises `KeyError` or `TypeError` for sizes in need of a closer check."""
        if len(given) != len(self.symbols):
            raise KeyError
        args: tuple[int, ...] = self._get(given) if self._get is not None else tuple(given[s] for s in self.symbols)
        for size in args:
            if type(size) is not int or size < 0:
                raise TypeError
        return args

    # -- the general case --------------------------------------------------------------------------------------------

    def _settled(self, given: Mapping[str, int]) -> dict[str, int]:
        """Returns integers for all symbols, also from sizes given under equivalent names; else raises an error with the
        reason."""
        known: dict[str, int] = {}
        for name, size in given.items():
            if name not in self.symbols and name not in self._aliases:
                raise UnknownName("symbol in the model's inputs", name, dict.fromkeys(self.symbols), listed=True)
            known[name] = _size(name, size)
        sizes = {name: size for name, size in known.items() if name in self.symbols}
        for name, size in known.items():
            if name in self._aliases:
                _solve(self._aliases[name], size, sizes)
        for name, size in known.items():
            alias = self._aliases.get(name)
            if alias is not None and alias.symbols <= sizes.keys() and alias.evaluate(sizes) != size:
                meant = f"'{alias}'" if alias.constant is None else "fixed"
                found = alias.evaluate(sizes)
                raise IgniterError(f"'{name}' is {meant} in this model, which is {found} here and not {size}")
        missing = [s for s in self.symbols if s not in sizes]
        if missing:
            raise IgniterError(
                f"there is no size for {', '.join(map(repr, missing))}: the inputs are {self._signature()}, so give "
                f"{', '.join(f'{s}=...' for s in self.symbols)}"
            )
        return sizes

    def _signature(self) -> str:
        return ", ".join(f"{i.name} {shape_text(i.dims)}" for i in self.shapes.inputs)

    def _read(self, input_shapes: Mapping[str, Sequence[int]], given: Mapping[str, int]) -> dict[str, int]:
        """Returns the sizes of symbols from the shapes of some or all inputs, besides the given ones."""
        sizes = dict(given)
        by_name = {i.name: i for i in self._inputs}
        late: list[tuple[_Input, int, Expr, int]] = []
        for name, shape in input_shapes.items():
            told = by_name.get(name)
            if told is None:
                raise UnknownName("input", name, by_name, listed=True)
            if told.rank >= 0 and len(shape) != told.rank:
                dims = next(i.dims for i in self.shapes.inputs if i.name == name)
                raise IgniterError(f"input '{name}' is {shape_text(dims)}: the shape {list(shape)} has another rank")
            for axis, symbol in told.reads:
                size = _axis_size(name, axis, shape[axis])
                if sizes.setdefault(symbol, size) != size:
                    raise IgniterError(
                        f"axis {axis} of input '{name}' is {size}, but '{symbol}', which it is, is {sizes[symbol]}"
                    )
            for axis, size in told.fixed:
                if shape[axis] != size:
                    raise IgniterError(f"axis {axis} of input '{name}' is {size}, and not {shape[axis]}")
            late += [(told, axis, e, _axis_size(name, axis, shape[axis])) for axis, e in told.rest]
        for told, axis, e, size in late:
            _solve(e, size, sizes)
            if e.symbols <= sizes.keys() and e.evaluate(sizes) != size:
                raise IgniterError(
                    f"axis {axis} of input '{told.name}' is {e}, which is {e.evaluate(sizes)}, and not {size}"
                )
        return sizes

    def _broken(self, check: Check, sizes: Mapping[str, int]) -> str:
        at = ", ".join(f"{n}={v}" for n, v in sizes.items())
        if check.left.constant is not None:
            found = check.right.evaluate(sizes)
            return f"the model has no shapes at {at}: {check.right} would be {found}, and {check.about}"
        values: list[str] = []
        for side in (check.left, check.right):
            try:
                values.append(str(side.evaluate(sizes)))
            except ZeroDivisionError:
                values.append("undefined")
        wanted = f"{'' if check.relation == '==' else 'at most '}{check.right}, which is {values[1]}"
        return f"the model does not run at {at}: {check.left} is {values[0]} and has to be {wanted}: else {check.about}"


def _size(name: str, value: Any) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        raise IgniterError(f"the size of '{name}' is {value!r}, which is no integer") from None
    if size < 0:
        raise IgniterError(f"the size of '{name}' is {size}: sizes are not negative")
    return size


def _axis_size(name: str, axis: int, value: Any) -> int:
    # The usual case first: a text for each axis would dominate the time.
    return value if type(value) is int and value >= 0 else _size(f"axis {axis} of input '{name}'", value)


def _aliases(shapes: ModelShapes) -> dict[str, Expr]:
    """Returns the declared symbols replaced by inference."""
    found: dict[str, Expr] = {}
    for given in shapes.inputs:
        for declared, dim in zip(given.declared or (), given.dims or (), strict=False):
            if declared is not None and declared != dim and declared.symbol is not None:
                found[declared.symbol] = dim
    return {name: e for name, e in found.items() if name not in shapes.symbols}


def _input(shapes: ModelShapes, index: int) -> _Input:
    given = shapes.inputs[index]
    if given.dims is None:
        return _Input(given.name, -1, (), (), ())
    reads = tuple((axis, d.symbol) for axis, d in enumerate(given.dims) if d.symbol is not None)
    fixed = tuple((axis, d.constant) for axis, d in enumerate(given.dims) if d.constant is not None)
    rest = tuple((axis, d) for axis, d in enumerate(given.dims) if d.symbol is None and d.constant is None)
    return _Input(given.name, len(given.dims), reads, fixed, rest)


def _solve(e: Expr, value: int, sizes: dict[str, int]) -> None:
    """Solves `e == value` for its one symbol without a size, where it stands alone: `past` in `past + 1 == 8`."""
    free = [s for s in sorted(e.symbols) if s not in sizes]
    if len(free) != 1:
        return
    coefficient, rest = e.coefficient(free[0]), e.without(free[0])
    if coefficient is None or not coefficient.symbols <= sizes.keys():
        return
    scale = coefficient.evaluate(sizes)
    quotient, remainder = divmod(value - rest.evaluate(sizes), scale) if scale else (0, 1)
    if remainder == 0 and quotient >= 0:
        sizes[free[0]] = quotient
