"""The types of ONNX values, and the table of ONNX element types.

Tensors are builtin tensors: `tensor<2x?xf32, #sym.dims<2, seq>>` and, where the rank is not known, `tensor<*xf32>`.
Signed integers are signless (`i64`), unsigned ones are `ui8`..., bool is `i1`, an omitted input or output is `none`.
The rest have types of this dialect:

    !onnx.string                      an element type
    !onnx.unknown                     a value, or an element, of which the model says nothing
    !onnx.seq<T>  !onnx.optional<T>
    !onnx.map<i64, T>
    !onnx.sparse_tensor<T>            T a builtin tensor
    !onnx.opaque<"domain", "name">
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.dialects.builtin import ComplexType, IntegerType, NoneType, Signedness, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """The element type of string tensors."""

    name = "onnx.string"


@irdl_attr_definition
class UnknownType(ParametrizedAttribute, TypeAttribute):
    """The type of a value or element without type information in the model; inference replaces it."""

    name = "onnx.unknown"


@irdl_attr_definition
class SequenceType(ParametrizedAttribute, TypeAttribute):
    """A sequence of values of one type."""

    name = "onnx.seq"
    element: Attribute


@irdl_attr_definition
class OptionalType(ParametrizedAttribute, TypeAttribute):
    """The type of a value that may be absent at run time."""

    name = "onnx.optional"
    element: Attribute


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """A map from integers or strings."""

    name = "onnx.map"
    key: Attribute
    value: Attribute


@irdl_attr_definition
class SparseTensorType(ParametrizedAttribute, TypeAttribute):
    """A sparse tensor; the parameter is the dense tensor's type."""

    name = "onnx.sparse_tensor"
    dense: Attribute


@irdl_attr_definition
class OpaqueType(ParametrizedAttribute, TypeAttribute):
    """An opaque type, understood only by the ops of one domain."""

    name = "onnx.opaque"
    domain: StringAttr
    type_name: StringAttr


NONE = NoneType()
UNKNOWN = UnknownType()
STRING = StringType()


@dataclass(frozen=True)
class ElementType:
    """One ONNX element type.

    `code` is `TensorProto.DataType`, `onnx_name` the spelling in op schemas (`tensor(float)`), `numpy_name` the dtype
    of `Weight.array()` (from `ml_dtypes` if NumPy lacks it), `bits` the width of one element in ONNX's `raw_data`,
    where elements of less than a byte are packed from the low bits on; 0 for strings.
    """

    code: int
    onnx_name: str
    attr: Attribute
    numpy_name: str
    bits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return _dtype(self.numpy_name)

    @property
    def ort_code(self) -> int:
        """ORT's own code (`ONNXTensorElementDataType`), equal to ONNX's except for the newest types."""
        return {"uint2": 24, "int2": 25, "float8e8m0": 26}.get(self.onnx_name, self.code)


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType(1, "float", builtin.f32, "float32", 32),
    ElementType(2, "uint8", _unsigned(8), "uint8", 8),
    ElementType(3, "int8", IntegerType(8), "int8", 8),
    ElementType(4, "uint16", _unsigned(16), "uint16", 16),
    ElementType(5, "int16", IntegerType(16), "int16", 16),
    ElementType(6, "int32", builtin.i32, "int32", 32),
    ElementType(7, "int64", builtin.i64, "int64", 64),
    ElementType(8, "string", STRING, "object", 0),
    ElementType(9, "bool", builtin.i1, "bool", 8),
    ElementType(10, "float16", builtin.f16, "float16", 16),
    ElementType(11, "double", builtin.f64, "float64", 64),
    ElementType(12, "uint32", _unsigned(32), "uint32", 32),
    ElementType(13, "uint64", _unsigned(64), "uint64", 64),
    ElementType(14, "complex64", ComplexType(builtin.f32), "complex64", 64),
    ElementType(15, "complex128", ComplexType(builtin.f64), "complex128", 128),
    ElementType(16, "bfloat16", builtin.bf16, "bfloat16", 16),
    ElementType(17, "float8e4m3fn", builtin.f8E4M3FN, "float8_e4m3fn", 8),
    ElementType(18, "float8e4m3fnuz", builtin.f8E4M3FNUZ, "float8_e4m3fnuz", 8),
    ElementType(19, "float8e5m2", builtin.f8E5M2, "float8_e5m2", 8),
    ElementType(20, "float8e5m2fnuz", builtin.f8E5M2FNUZ, "float8_e5m2fnuz", 8),
    ElementType(21, "uint4", _unsigned(4), "uint4", 4),
    ElementType(22, "int4", IntegerType(4), "int4", 4),
    ElementType(23, "float4e2m1", builtin.f4E2M1FN, "float4_e2m1fn", 4),
    ElementType(24, "float8e8m0", builtin.f8E8M0FNU, "float8_e8m0fnu", 8),
    ElementType(25, "uint2", _unsigned(2), "uint2", 2),
    ElementType(26, "int2", IntegerType(2), "int2", 2),
    ElementType(27, "float6e2m3", builtin.f6E2M3FN, "float6_e2m3fn", 6),
    ElementType(28, "float6e3m2", builtin.f6E3M2FN, "float6_e3m2fn", 6),
)

BY_CODE: dict[int, ElementType] = {t.code: t for t in ELEMENT_TYPES}
BY_ATTR: dict[Attribute, ElementType] = {t.attr: t for t in ELEMENT_TYPES}
BY_NAME: dict[str, ElementType] = {t.onnx_name: t for t in ELEMENT_TYPES}


def element_type(attr: Attribute) -> ElementType:
    """Returns the table row of an element type of the IR; raises `ValueError` if ONNX has no such type."""
    try:
        return BY_ATTR[attr]
    except KeyError:
        raise ValueError(f"{attr} is not an ONNX element type") from None


@cache
def element_of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """Returns the table row of a NumPy dtype; raises `ValueError` if ONNX has no such type."""
    name = "object" if dtype.kind in "OUS" else dtype.name
    for row in ELEMENT_TYPES:
        if row.numpy_name == name:
            return row
    raise ValueError(f"NumPy dtype {dtype} has no ONNX element type")


@cache
def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(ml_dtypes, name))


TYPES: list[type[Attribute]] = [
    StringType,
    UnknownType,
    SequenceType,
    OptionalType,
    MapType,
    SparseTensorType,
    OpaqueType,
]
