"""The attributes of ONNX nodes.

Floats, ints, strings, their lists, and types are builtin attributes (`2.0 : f32`, `1 : i64`, `"same"`, `array<i64: 0,
1>`, `["a"]`). The rest:

    #onnx.tensor<2xi64, [1, -1]>                           a tensor, its values written out
    #onnx.tensor<2x2xf32, "0x0000803F...">                 its bytes, in ONNX's raw layout
    #onnx.tensor<768x768xf32, file("a.onnx", 4096, 2359296)>   bytes that stay in a file: path, offset, length
    #onnx.tensor<768x768xf32, elided>                      for reading only
    #onnx.sparse_tensor<values, indices, array<i64: ...>>
    #onnx.ref<"alpha", 1>                                  in a function: the caller's attribute, and its type code
    #onnx.empty<7>                                         an empty list, and its type code
    #onnx.graphs<2>                                        a list of graphs, which are regions of the op
    #onnx.proto<"NodeDeviceConfigurationProto", "0x...">   a message carried as it is

Non-ASCII strings are builtin bytes attributes, because xDSL parses an escaped string as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

from igniter.dialects.onnx import building
from igniter.dialects.onnx.types import STRING, element_type
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.dialects.onnx.weights import Weight

INLINE_VALUES = 64
"""The maximum number of elements of a tensor printed as values; larger ones are printed as bytes."""

INLINE_BYTES = 1024
"""The maximum size of a file-backed tensor printed inline; larger ones are printed as a reference."""


@irdl_attr_definition
class TensorAttr(Data["Weight"]):
    """A constant tensor; `handle` refers to its bytes."""

    name = "onnx.tensor"

    @property
    def handle(self) -> Weight:
        return self.data

    @property
    def type(self) -> TensorType[Attribute]:
        return TensorType(self.data.element_type, self.data.shape)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Weight:
        return _parse_weight(parser)

    def print_parameter(self, printer: Printer) -> None:
        _print_weight(printer, self.data)


@irdl_attr_definition
class SparseTensorAttr(ParametrizedAttribute):
    """A sparse tensor: values, indices (linear or by axis) and the dense dims."""

    name = "onnx.sparse_tensor"
    values: TensorAttr
    indices: TensorAttr
    dims: Attribute


@irdl_attr_definition
class RefAttr(ParametrizedAttribute):
    """A reference inside a function to the caller's attribute called `parameter`."""

    name = "onnx.ref"
    parameter: StringAttr
    code: IntegerAttr


@irdl_attr_definition
class EmptyListAttr(ParametrizedAttribute):
    """An empty list of the kind `code` (`AttributeProto.AttributeType`)."""

    name = "onnx.empty"
    code: IntegerAttr


@irdl_attr_definition
class GraphsAttr(ParametrizedAttribute):
    """A list of `count` graphs; they are regions of the op."""

    name = "onnx.graphs"
    count: IntegerAttr


@irdl_attr_definition
class ProtoAttr(ParametrizedAttribute):
    """A message of the ONNX format, opaque to the IR."""

    name = "onnx.proto"
    message: StringAttr
    hex: StringAttr

    @staticmethod
    def of(message: str, data: bytes) -> ProtoAttr:
        return ProtoAttr(StringAttr(message), StringAttr("0x" + data.hex()))

    @property
    def bytes(self) -> bytes:
        return bytes.fromhex(self.hex.data[2:])


ATTRIBUTES: list[type[Attribute]] = [TensorAttr, SparseTensorAttr, RefAttr, EmptyListAttr, GraphsAttr, ProtoAttr]


# -- python values ----------------------------------------------------------------------------------------------------

STRING_KIND, FLOATS_KIND, INTS_KIND, STRINGS_KIND = 3, 6, 7, 8


def text_attr(value: str | bytes) -> StringAttr | BytesAttr:
    """Returns a string attribute that parses to the same value."""
    return _short_text(value) if len(value) <= SHORT else _text(value)


def own_text(value: str) -> StringAttr | BytesAttr:
    """Returns `text_attr` of a rarely repeated name, without caching."""
    return building.text(value) if value.isascii() else _text(value)


SHORT = 64
"""The maximum length of cached texts: names of keys, ops and types repeat often, stack traces do not."""


def _text(value: str | bytes) -> StringAttr | BytesAttr:
    if isinstance(value, str):
        if value.isascii():
            return building.text(value)
        data = value.encode("utf-8", "surrogateescape")
    else:
        data = value
    return StringAttr(data.decode("ascii")) if data.isascii() else BytesAttr(data)


_short_text = lru_cache(maxsize=1 << 14)(_text)


def text_of(attr: Attribute | None, default: str = "") -> str:
    """Returns the text of a string attribute; `default` for other attributes."""
    if isinstance(attr, StringAttr):
        return attr.data
    if isinstance(attr, BytesAttr):
        return attr.data.decode("utf-8", "surrogateescape")
    return default


def texts_attr(values: Sequence[str]) -> ArrayAttr[Attribute]:
    """Returns a list of strings as an attribute."""
    return ArrayAttr([text_attr(v) for v in values])


def texts_of(attr: Attribute | None) -> list[str]:
    """Returns the strings in an attribute of `texts_attr`."""
    return [text_of(a) for a in cast("ArrayAttr[Attribute]", attr).data] if isinstance(attr, ArrayAttr) else []


def pairs_attr(pairs: Sequence[tuple[str, str]]) -> Attribute:
    """Returns metadata as an attribute: a dictionary, or a list of pairs if keys repeat or are not ASCII."""
    keys = [k for k, _ in pairs]
    if len(set(keys)) == len(keys) and all(k.isascii() for k in keys):
        return DictionaryAttr({k: text_attr(v) for k, v in pairs})
    return ArrayAttr([texts_attr(pair) for pair in pairs])


def pairs_of(attr: Attribute | None) -> list[tuple[str, str]]:
    """Returns the pairs in an attribute of `pairs_attr`."""
    if isinstance(attr, DictionaryAttr):
        return [(k, text_of(v)) for k, v in attr.data.items()]
    if isinstance(attr, ArrayAttr):
        return [(p[0], p[1]) for p in (texts_of(pair) for pair in cast("ArrayAttr[Attribute]", attr).data)]
    return []


def to_attr(value: object) -> Attribute:
    """Returns the attribute for a Python value: a number, text, array, weight, type, or a homogeneous list."""
    from igniter.dialects.onnx.weights import Weight

    if isinstance(value, Attribute):
        return value
    if isinstance(value, (bool, int, np.integer)):
        return IntegerAttr(int(cast(int, value)), i64)
    if isinstance(value, (float, np.floating)):
        return FloatAttr(float(cast(float, value)), f32)
    if isinstance(value, (str, bytes)):
        return text_attr(value)
    if isinstance(value, np.ndarray):
        return TensorAttr(Weight.of(cast("np.ndarray[Any, Any]", value)))
    if isinstance(value, Weight):
        return TensorAttr(value)
    if isinstance(value, (list, tuple)):
        return _list_attr(cast("Sequence[object]", value))
    raise TypeError(f"an ONNX attribute cannot hold {value!r}")


def _list_attr(values: Sequence[object]) -> Attribute:
    if not values:
        return EmptyListAttr(IntegerAttr(INTS_KIND, i64))
    if all(isinstance(v, (int, np.integer)) for v in values):
        return ints_attr([int(cast(int, v)) for v in values])
    if all(isinstance(v, (int, float, np.integer, np.floating)) for v in values):
        return floats_attr([float(cast(float, v)) for v in values])
    return ArrayAttr([to_attr(v) for v in values])


def ints_attr(values: Sequence[int]) -> Attribute:
    """Returns a list of integers as an attribute."""
    return _ints_attr(tuple(values))


@lru_cache(maxsize=1 << 10)
def _ints_attr(values: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i64, values) if values else EmptyListAttr(IntegerAttr(INTS_KIND, i64))


@lru_cache(maxsize=1 << 10)
def int_attr(value: int) -> IntegerAttr[IntegerType]:
    """Returns an integer attribute."""
    return IntegerAttr(value, i64)


def floats_attr(values: Sequence[float]) -> Attribute:
    """Returns a list of f32 as an attribute."""
    if not values:
        return EmptyListAttr(IntegerAttr(FLOATS_KIND, i64))
    items = [FloatAttr(v, f32) for v in values]
    if not all(_reads_back_in_array(item.value.data) for item in items):
        return ArrayAttr(items)
    return DenseArrayBase.from_list(f32, values)


def _reads_back_in_array(value: float) -> bool:
    """True if xDSL prints an f32 of a dense array in decimal; it does not parse the hexadecimal form there."""
    return isfinite(value) and ("." in f"{value:.9g}" or f32.unpack(f32.pack((float(f"{value:.5e}"),)), 1)[0] == value)


def to_python(attr: Attribute) -> Any:
    """Returns the Python value of an attribute: int, float, str (bytes if not UTF-8), list or array; other attributes
    unchanged."""
    if isinstance(attr, IntegerAttr):
        return attr.value.data
    if isinstance(attr, FloatAttr):
        return attr.value.data
    if isinstance(attr, StringAttr):
        return attr.data
    if isinstance(attr, BytesAttr):
        try:
            return attr.data.decode("utf-8")
        except UnicodeDecodeError:
            return attr.data
    if isinstance(attr, TensorAttr):
        return attr.data.array()
    if isinstance(attr, SparseTensorAttr):
        return dense_of(attr)
    if isinstance(attr, EmptyListAttr):
        return []
    if isinstance(attr, DenseArrayBase):
        return list(cast("DenseArrayBase[Any]", attr).get_values())
    if isinstance(attr, ArrayAttr):
        return [to_python(a) for a in cast("ArrayAttr[Attribute]", attr).data]
    return attr


def dense_of(attr: SparseTensorAttr) -> np.ndarray[Any, Any]:
    """Returns the dense tensor of a sparse one."""
    values = attr.values.data.array()
    indices = attr.indices.data.array()
    dense = np.zeros(to_python(attr.dims), dtype=values.dtype)
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return dense


def attribute_kind(attr: Attribute) -> int | None:
    """Returns the `AttributeProto.AttributeType` of an attribute; `None` if no ONNX attribute can hold it."""
    if isinstance(attr, (RefAttr, EmptyListAttr)):
        return attr.code.value.data
    if isinstance(attr, DenseArrayBase):
        return FLOATS_KIND if cast("DenseArrayBase[Any]", attr).elt_type == f32 else INTS_KIND
    if isinstance(attr, ArrayAttr):
        items = cast("ArrayAttr[Attribute]", attr).data
        kinds = {attribute_kind(a) for a in items}
        kind = kinds.pop() if len(kinds) == 1 else None
        return {1: 6, 2: 7, 3: 8, 4: 9, 11: 12, 13: 14}.get(kind) if kind is not None else None
    for cls, code in _KINDS:
        if isinstance(attr, cls):
            return code
    return None


_KINDS: tuple[tuple[type[Attribute], int], ...] = (
    (FloatAttr, 1),
    (IntegerAttr, 2),
    (StringAttr, STRING_KIND),
    (BytesAttr, STRING_KIND),
    (TensorAttr, 4),
    (GraphsAttr, 10),
    (SparseTensorAttr, 11),
    (TypeAttribute, 13),
)


def entries_of(attr: Attribute | None) -> Mapping[str, Attribute]:
    """Returns the entries of a dictionary attribute; empty if it is absent."""
    return attr.data if isinstance(attr, DictionaryAttr) else {}


def dictionary(entries: Mapping[str, Attribute | None]) -> DictionaryAttr:
    """Returns a dictionary of the entries other than `None`."""
    return DictionaryAttr({k: v for k, v in entries.items() if v is not None})


# -- the text of tensors ----------------------------------------------------------------------------------------------


def _print_weight(printer: Printer, weight: Weight) -> None:
    printer.print_string("<")
    printer.print_string("".join(f"{d}x" for d in weight.shape))
    printer.print_attribute(weight.element_type)
    printer.print_string(", ")
    if weight.elided or getattr(weight.derivation, "printed", "") == "elided":
        printer.print_string("elided")
    elif weight.strings is not None:
        with printer.in_square_brackets():
            printer.print_list(weight.strings, printer.print_bytes_literal)
    elif weight.file is not None and weight.nbytes > INLINE_BYTES:
        printer.print_string("file(")
        printer.print_string_literal(weight.file.path)
        printer.print_string(f", {weight.file.offset}, {weight.file.length})")
    else:
        values = _values_text(weight) if weight.size <= INLINE_VALUES else None
        printer.print_string(values if values is not None else f'"0x{weight.raw().hex().upper()}"')
    printer.print_string(">")


def _values_text(weight: Weight) -> str | None:
    """Returns the values as a list; `None` if the text would not parse to the same bytes."""
    values = weight.array().reshape(-1)
    if values.dtype.kind in "iu" or weight.element.onnx_name.startswith(("int", "uint")):
        return f"[{', '.join(str(int(v)) for v in values)}]"
    if values.dtype.kind == "b":
        bits = values.view(np.uint8)
        return f"[{', '.join('true' if v else 'false' for v in bits)}]" if (bits <= 1).all() else None
    if values.dtype.kind != "f" and weight.element.onnx_name != "bfloat16":
        return None
    if not np.isfinite(values.astype(np.float64)).all():
        return None
    text = [_float_text(v) for v in values]
    same = np.array([float(t) for t in text]).astype(values.dtype)
    return f"[{', '.join(text)}]" if same.tobytes() == values.tobytes() else None


def _float_text(value: Any) -> str:
    text = str(value)
    if "." in text:
        return text
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0{e}{exponent}"


def _parse_weight(parser: AttrParser) -> Weight:
    from igniter.dialects.onnx.weights import FileRange, Weight

    with parser.in_angle_brackets():
        position = parser.pos
        shape, element = parser.parse_ranked_shape()
        parser.parse_punctuation(",")
        if parser.parse_optional_keyword("elided") is not None:
            return _checked(parser, position, lambda: Weight(shape, element))
        if element == STRING:
            strings = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_bytes(parser))
            return _checked(parser, position, lambda: Weight(shape, element, strings=strings))
        if parser.parse_optional_keyword("file") is not None:
            with parser.in_parens():
                path = parser.parse_str_literal()
                parser.parse_punctuation(",")
                offset = parser.parse_integer()
                parser.parse_punctuation(",")
                where = FileRange(path, offset, parser.parse_integer())
            return _checked(parser, position, lambda: Weight(shape, element, file=where))
        text = parser.parse_optional_str_literal()
        if text is not None:
            raw = bytes.fromhex(text.removeprefix("0x"))
            return _checked(parser, position, lambda: Weight(shape, element, raw=raw))
        values = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_number(allow_boolean=True)
        )
        return _checked(parser, position, lambda: _weight_of_values(shape, element, values))


def _weight_of_values(shape: Sequence[int], element: Attribute, values: Sequence[int | float]) -> Weight:
    from igniter.dialects.onnx.weights import Weight

    dtype = element_type(element).dtype
    # Floats narrower than NumPy's are rounded from f64; wide integers must not pass through f64.
    first = np.float64 if any(isinstance(v, float) for v in values) else np.int64 if dtype.kind == "V" else dtype
    return Weight(shape, element, array=np.array(values, first).astype(dtype).reshape(tuple(shape)))


def _checked(parser: AttrParser, position: int, build: Any) -> Weight:
    try:
        return build()
    except (IgniterError, ValueError, OverflowError) as error:
        parser.raise_error(str(error), position)


def _parse_bytes(parser: AttrParser) -> bytes:
    token = parser._parse_optional_token_in((MLIRTokenKind.STRING_LIT, MLIRTokenKind.BYTES_LIT))
    if token is None:
        parser.raise_error("string literal expected")
    return StringLiteral.from_span(token.span).bytes_contents
