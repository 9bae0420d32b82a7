"""The named ops of `linalg`: each is its access maps in one line, and a body.

    linalg.matmul            m k, k n -> m n
    linalg.conv_2d_nchw_fchw n c y*S+v*D x*S+w*D, f c v w -> n f y x

An axis is a letter; `y*S+v*D` is a window: the k-th one in an operand has the k-th stride and the k-th dilation. The
axes of the output are parallel, the others are reductions. `#` is a scalar operand. Elementwise ops have the rank of
their output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block
from xdsl.irdl import irdl_op_definition, opt_prop_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.linalg import bodies
from igniter.dialects.linalg.enums import word_of
from igniter.dialects.linalg.structure import (
    Structure,
    StructuredOp,
    axis_name,
    element_type_of,
    map_of,
    maps_in,
    rank_of,
)
from igniter.dialects.linalg.text import (
    parse_group,
    parse_maps,
    parse_results,
    print_dict,
    print_group,
    print_results,
)
from igniter.dialects.sym.expr import Expr

MakeBody = Callable[[bodies.Types, bool], Block]


@dataclass(frozen=True)
class NamedSpec:
    """The meaning of a named op: its maps ("" for an elementwise op) and its body."""

    maps: str
    body: MakeBody


_WINDOW = re.compile(r"(\w)\*S\+(\w)\*D")


@cache
def _parsed(maps: str) -> tuple[tuple[str, ...], list[list[str]], str]:
    """Returns the axes (those of the output first), the subscripts of every operand, and the axes of the output."""
    inputs, _, output = maps.partition("->")
    operands = [part.split() for part in (*inputs.split(","), output)]
    letters = [x for part in (operands[-1], *operands) for term in part for x in re.findall(r"[a-z]", term)]
    return tuple(dict.fromkeys(letters)), operands, output


class NamedOp(StructuredOp):
    """The base of the named ops."""

    strides = opt_prop_def(Attribute)
    dilations = opt_prop_def(Attribute)
    cast_fn = opt_prop_def(Attribute, prop_name="cast")
    indexing_maps = opt_prop_def(Attribute)
    fun = opt_prop_def(Attribute)
    shapes = var_region_def()
    """The body in the generic form of the text, which repeats the op's own."""

    def structure(self) -> Structure:
        spec, operands = SPECS[self.name], [*self.inputs, *self.outputs]
        unsigned = word_of(self.cast_fn) == "cast_unsigned"
        body = spec.body([element_type_of(v) for v in operands], unsigned)
        if self.indexing_maps is not None:
            return self._with_maps(body)
        if not spec.maps:
            return self._elementwise(body)
        letters, texts, output = _parsed(spec.maps)
        names = {letter: Expr.of(axis_name(k)) for k, letter in enumerate(letters)}
        maps = tuple(() if part == ["#"] else self._subscripts(part, names) for part in texts)
        kinds = tuple("parallel" if letter in output else "reduction" for letter in letters)
        return Structure(kinds, maps, body)

    def _elementwise(self, body: Block) -> Structure:
        if not self.outputs:
            raise VerifyException(f"'{self.name}' has no output")
        rank = rank_of(self.outputs[0])
        whole = tuple(Expr.of(axis_name(k)) for k in range(rank))
        maps = tuple(whole if rank_of(v) else () for v in (*self.inputs, *self.outputs))
        return Structure(("parallel",) * rank, maps, body)

    def _with_maps(self, body: Block) -> Structure:
        given = maps_in(self.indexing_maps)
        if given is None:
            raise VerifyException(f"'{self.name}': indexing_maps is not a list of affine maps")
        output = {e.symbol for e in map_of(given[-1])}
        axes = [axis_name(k) for k in range(given[-1].data.num_dims)]
        kinds = tuple("parallel" if a in output else "reduction" for a in axes)
        return Structure(kinds, tuple(map(map_of, given)), body)

    def _subscripts(self, terms: list[str], names: dict[str, Expr]) -> tuple[Expr, ...]:
        found: list[Expr] = []
        windows = 0
        for term in terms:
            window = _WINDOW.fullmatch(term)
            if window is None:
                found.append(names[term])
                continue
            outer, inner = (names[x] for x in window.groups())
            stride, dilation = self._factor(self.strides, windows), self._factor(self.dilations, windows)
            found.append(outer * stride + inner * dilation)
            windows += 1
        return tuple(found)

    def _factor(self, attr: Attribute | None, place: int) -> int:
        if attr is None:
            return 1
        if not isinstance(attr, DenseIntOrFPElementsAttr):
            raise VerifyException(f"'{self.name}': strides and dilations are constants, not {attr}")
        values = list(cast("DenseIntOrFPElementsAttr[Any]", attr).get_values())
        return int(values[place if place < len(values) else 0])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        given = parser.parse_optional_attr_dict()
        maps = parse_maps(parser)
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        given |= parser.parse_optional_attr_dict()
        if parser.parse_optional_keyword("attrs") is not None:
            parser.parse_punctuation("=")
            given |= parser.parse_optional_attr_dict()
        names = cls.get_irdl_definition().properties
        properties = {key: given.pop(key) for key in list(given) if key in names}
        if maps is not None:
            properties["indexing_maps"] = maps
        given.pop("operandSegmentSizes", None)
        return cls.build(
            operands=[inputs, outputs],
            result_types=[parse_results(parser)],
            properties=properties,
            attributes=given,
            regions=[[]],
        )

    def print(self, printer: Printer) -> None:
        hidden = ("operandSegmentSizes", "indexing_maps", "linalg.memoized_indexing_maps")
        shown = {k: a for k, a in {**self.properties, **self.attributes}.items() if k not in hidden}
        print_dict(printer, shown)
        if self.indexing_maps is not None:
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_results(printer, [r.type for r in self.res])


def _product(maps: str) -> NamedSpec:
    return NamedSpec(maps, bodies.product_sum)


def _quantized(maps: str) -> NamedSpec:
    inputs, _, output = maps.partition("->")
    return NamedSpec(f"{inputs}, #, # -> {output}", bodies.quantized_sum)


def _pool(maps: str, name: str) -> NamedSpec:
    return NamedSpec(maps, bodies.fold_of(name))


_Y, _X, _Z = "y*S+v*D", "x*S+w*D", "z*S+u*D"
_CONVOLUTIONS = {
    "conv_1d": f"{_X}, w -> x",
    "conv_2d": f"{_Y} {_X}, v w -> y x",
    "conv_3d": f"{_Z} {_Y} {_X}, u v w -> z y x",
    "conv_1d_nwc_wcf": f"n {_X} c, w c f -> n x f",
    "conv_1d_ncw_fcw": f"n c {_X}, f c w -> n f x",
    "conv_2d_nhwc_hwcf": f"n {_Y} {_X} c, v w c f -> n y x f",
    "conv_2d_nhwc_fhwc": f"n {_Y} {_X} c, f v w c -> n y x f",
    "conv_2d_nchw_fchw": f"n c {_Y} {_X}, f c v w -> n f y x",
    "conv_2d_ngchw_fgchw": f"n g c {_Y} {_X}, f g c v w -> n g f y x",
    "conv_2d_ngchw_gfchw": f"n g c {_Y} {_X}, g f c v w -> n g f y x",
    "conv_2d_nhwgc_gfhwc": f"n {_Y} {_X} g c, g f v w c -> n y x g f",
    "conv_3d_ndhwc_dhwcf": f"n {_Z} {_Y} {_X} c, u v w c f -> n z y x f",
    "conv_3d_ncdhw_fcdhw": f"n c {_Z} {_Y} {_X}, f c u v w -> n f z y x",
    "depthwise_conv_1d_nwc_wc": f"n {_X} c, w c -> n x c",
    "depthwise_conv_1d_ncw_cw": f"n c {_X}, c w -> n c x",
    "depthwise_conv_1d_nwc_wcm": f"n {_X} c, w c m -> n x c m",
    "depthwise_conv_2d_nchw_chw": f"n c {_Y} {_X}, c v w -> n c y x",
    "depthwise_conv_2d_nhwc_hwc": f"n {_Y} {_X} c, v w c -> n y x c",
    "depthwise_conv_2d_nhwc_hwcm": f"n {_Y} {_X} c, v w c m -> n y x c m",
    "depthwise_conv_3d_ndhwc_dhwc": f"n {_Z} {_Y} {_X} c, u v w c -> n z y x c",
    "depthwise_conv_3d_ncdhw_cdhw": f"n c {_Z} {_Y} {_X}, c u v w -> n c z y x",
    "depthwise_conv_3d_ndhwc_dhwcm": f"n {_Z} {_Y} {_X} c, u v w c m -> n z y x c m",
}
_PRODUCTS = {
    "matmul": "m k, k n -> m n",
    "matmul_transpose_a": "k m, k n -> m n",
    "matmul_transpose_b": "m k, n k -> m n",
    "batch_matmul": "b m k, b k n -> b m n",
    "batch_matmul_transpose_a": "b k m, b k n -> b m n",
    "batch_matmul_transpose_b": "b m k, b n k -> b m n",
    "batch_reduce_matmul": "b m k, b k n -> m n",
    "mmt4d": "m k a c, n k b c -> m n a b",
    "batch_mmt4d": "h m k a c, h n k b c -> h m n a b",
    "matvec": "m n, n -> m",
    "vecmat": "y, y n -> n",
    "batch_matvec": "b m k, b k -> b m",
    "batch_vecmat": "b k, b k n -> b n",
    "dot": "m, m -> ",
}
_POOLS = {
    "pooling_nhwc": (f"n {_Y} {_X} c, v w -> n y x c", ("sum", "max", "max_unsigned", "min", "min_unsigned")),
    "pooling_nchw": (f"n c {_Y} {_X}, v w -> n c y x", ("sum", "max")),
    "pooling_nwc": (f"n {_X} c, w -> n x c", ("sum", "max", "max_unsigned", "min", "min_unsigned")),
    "pooling_ncw": (f"n c {_X}, w -> n c x", ("sum", "max")),
    "pooling_ndhwc": (f"n {_Z} {_Y} {_X} c, u v w -> n z y x c", ("sum", "max", "min")),
}
_UNARY = ("exp", "log", "abs", "ceil", "floor", "negf", "round", "sqrt", "rsqrt", "square", "tanh", "erf", "reciprocal")
_BINARY = ("add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf")


def _specs() -> dict[str, NamedSpec]:
    found = {name: _product(maps) for name, maps in {**_PRODUCTS, **_CONVOLUTIONS}.items()}
    for name in ("matmul", "batch_matmul"):
        found[f"quantized_{name}"] = _quantized(_PRODUCTS[name])
    for name, maps in _CONVOLUTIONS.items():
        found[f"{name}_q"] = _quantized(maps)
    for name, (maps, kinds) in _POOLS.items():
        found |= {f"{name}_{kind}": _pool(maps, "add" if kind == "sum" else kind) for kind in kinds}
    found |= {name: NamedSpec("", bodies.unary_of(name)) for name in _UNARY}
    found |= {name: NamedSpec("", bodies.binary_of(name)) for name in _BINARY}
    found |= {name: NamedSpec("", bodies.copied) for name in ("copy", "fill")}
    found["select"] = NamedSpec("", bodies.selected)
    return found


def _named_op(name: str, spec: NamedSpec) -> type[NamedOp]:
    """Returns the class of a named op."""
    fields = {"name": name, "__doc__": spec.maps or "Elementwise."}
    return irdl_op_definition(type(f"Named_{name}", (NamedOp,), fields))


SPECS: dict[str, NamedSpec] = {f"linalg.{name}": spec for name, spec in _specs().items()}
"""The meanings of the named ops, by name."""
NAMED_OPS: dict[str, type[NamedOp]] = {name: _named_op(name, spec) for name, spec in SPECS.items()}
"""The classes of the named ops, by name."""

__all__ = ["NAMED_OPS", "SPECS", "NamedOp", "NamedSpec"]
