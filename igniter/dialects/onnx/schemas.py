"""Op schemas as plain python data, by domain, op and opset version.

`igniter.registry.SCHEMAS` names their source: the frontend, which reads the schemas of the installed `onnx` package.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from igniter.registry import SCHEMAS, load


@dataclass(frozen=True)
class Parameter:
    """An input or output of an op. `types` use the spelling of ONNX, `tensor(float)`; `type_var` is its type variable,
    or its only type."""

    name: str
    optional: bool
    variadic: bool
    min_arity: int
    homogeneous: bool
    type_var: str
    types: frozenset[str]


@dataclass(frozen=True)
class AttributeSpec:
    """An attribute of an op: its kind (`AttributeProto.AttributeType`) and its default as a python value."""

    name: str
    kind: int
    required: bool
    default: Any


@dataclass(frozen=True)
class OpSchema:
    """One version of one op."""

    domain: str
    name: str
    since_version: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: dict[str, AttributeSpec]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    deprecated: bool
    deterministic: bool

    def input(self, index: int) -> Parameter:
        """Returns the parameter of the input at `index`; the last one covers all values of a variadic input."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def output(self, index: int) -> Parameter:
        """Returns the parameter of the output at `index`."""
        return self.outputs[min(index, len(self.outputs) - 1)]


@cache
def op_names() -> tuple[tuple[str, str], ...]:
    """Returns `(domain, op)` of every op with a schema, sorted."""
    return cast("tuple[tuple[str, str], ...]", load(f"{SCHEMAS}:op_names")())


@cache
def latest_opset(domain: str) -> int:
    """Returns the newest known version of a domain; 1 for an unknown domain."""
    return cast("int", load(f"{SCHEMAS}:latest_opset")(domain))


@cache
def find_schema(domain: str, op_type: str, opset: int | None) -> OpSchema | None:
    """Returns the schema of the op in `opset` (the newest if `None`) of `domain`; `None` if it has none."""
    return cast("OpSchema | None", load(f"{SCHEMAS}:find_schema")(domain, op_type, opset))
