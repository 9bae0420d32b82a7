"""The tensors of a served model: their types by the names of the protocol, and the checks of an input.

The types are those of the open inference protocol (https://github.com/kserve/open-inference-protocol), which KServe and
Triton Inference Server share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from igniter.dialects.onnx.types import BY_NAME
from igniter.errors import IgniterError

DATATYPES: Mapping[str, str] = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float": "FP32",
    "double": "FP64",
    "string": "BYTES",
}
"""The protocol's names of ONNX Runtime's element types (`tensor(float)`)."""


class BadRequest(IgniterError):
    """Raised for a request that the model cannot take."""

    code = "IGN0801"


@dataclass(frozen=True)
class Tensor:
    """An input or output. A dim is a number, or a name or None if it is known only at run time."""

    name: str
    datatype: str
    dims: tuple[int | str | None, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type: `object` for strings."""
        return dtype_of(self.datatype)

    @property
    def shape(self) -> list[int]:
        """The dims for clients, -1 for one known only at run time."""
        return [d if isinstance(d, int) else -1 for d in self.dims]

    def check(self, array: np.ndarray[Any, Any]) -> None:
        """Raises `BadRequest` if an array does not fit."""
        if array.dtype != self.dtype:
            raise BadRequest(f"input '{self.name}' is {self.datatype}, not {array.dtype}")
        fits = array.ndim == len(self.dims) and all(
            not isinstance(d, int) or d == n for d, n in zip(self.dims, array.shape, strict=True)
        )
        if not fits:
            raise BadRequest(f"input '{self.name}' has the shape {self.shape}, not {list(array.shape)}")


def dtype_of(datatype: str) -> np.dtype[Any]:
    """Returns the numpy type of a type of the protocol; raises `BadRequest` for an unknown one."""
    if datatype == "BYTES":
        return np.dtype(object)
    found = next((name for name, each in DATATYPES.items() if each == datatype), None)
    if found is None:
        raise BadRequest(f"there is no datatype '{datatype}'; known: {', '.join(DATATYPES.values())}")
    return np.dtype(BY_NAME[found].dtype)


def tensors_of(values: Sequence[Any], what: str) -> list[Tensor]:
    """Returns the inputs or outputs of a session; raises `IgniterError` for one that the protocol lacks."""
    found: list[Tensor] = []
    for value in values:
        kind = str(value.type)
        element = kind.removeprefix("tensor(").removesuffix(")") if kind.startswith("tensor(") else ""
        if element not in DATATYPES:
            raise IgniterError(
                f"{what} '{value.name}' is a {kind}, and the inference protocol has tensors of these types only: "
                f"{', '.join(DATATYPES)}"
            )
        found.append(Tensor(value.name, DATATYPES[element], tuple(value.shape)))
    return found


def check_feed(inputs: Sequence[Tensor], feed: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Raises `BadRequest` if the arrays of a request are not those of the model."""
    names = [t.name for t in inputs]
    missing, unknown = [n for n in names if n not in feed], [n for n in feed if n not in names]
    if missing or unknown:
        wrong = [f"'{n}' is missing" for n in missing] + [f"'{n}' is unknown" for n in unknown]
        raise BadRequest(f"the model's inputs are {', '.join(names)}: {', '.join(wrong)}")
    for tensor in inputs:
        tensor.check(feed[tensor.name])
