"""Op schemas of the installed `onnx` package: the source of `igniter.dialects.onnx.schemas`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import onnx.defs

from igniter.dialects.onnx.attributes import to_python
from igniter.dialects.onnx.draws import RANDOM_OPS
from igniter.dialects.onnx.schemas import AttributeSpec, OpSchema, Parameter
from igniter.frontend.attributes import import_attribute


@cache
def op_names() -> tuple[tuple[str, str], ...]:
    """Returns `(domain, op)` of every op with a schema, sorted."""
    return tuple(sorted({(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}))


@cache
def schema_domains() -> frozenset[str]:
    """Returns the domains whose ops ONNX defines."""
    return frozenset(domain for domain, _ in op_names())


@cache
def latest_opset(domain: str) -> int:
    """Returns the newest version of a domain in the installed `onnx`; 1 for an unknown domain."""
    if domain == "":
        return onnx.defs.onnx_opset_version()
    return max((s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain), default=1)


@cache
def find_schema(domain: str, op_type: str, opset: int | None) -> OpSchema | None:
    """Returns the schema of the op in `opset` (the newest if `None`) of `domain`; `None` if it has none."""
    version = latest_opset(domain) if opset is None else opset
    if not onnx.defs.has(op_type, version, domain):
        return None
    return _convert(onnx.defs.get_schema(op_type, version, domain))


NONDETERMINISTIC = RANDOM_OPS | {"AffineGrid", "If", "Loop", "Scan", "SequenceMap"}
"""The ops that newer versions of `onnx` mark as nondeterministic: they draw random numbers, or their bodies may.
Version 1.18 has no such mark."""


def _is_deterministic(schema: Any) -> bool:
    mark = getattr(schema, "node_determinism", None)
    return schema.name not in NONDETERMINISTIC if mark is None else mark.name != "NonDeterministic"


def _convert(schema: Any) -> OpSchema:
    unlimited = 2**31 - 1
    return OpSchema(
        domain=schema.domain,
        name=schema.name,
        since_version=schema.since_version,
        inputs=tuple(_parameter(p) for p in schema.inputs),
        outputs=tuple(_parameter(p) for p in schema.outputs),
        attributes={
            name: AttributeSpec(name, int(a.type.value), a.required, _default(a.default_value))
            for name, a in schema.attributes.items()
        },
        min_inputs=schema.min_input,
        max_inputs=min(schema.max_input, unlimited),
        min_outputs=schema.min_output,
        max_outputs=min(schema.max_output, unlimited),
        deprecated=schema.deprecated,
        deterministic=_is_deterministic(schema),
    )


def _parameter(parameter: Any) -> Parameter:
    option = parameter.option.name
    return Parameter(
        name=parameter.name,
        optional=option == "Optional",
        variadic=option == "Variadic",
        min_arity=parameter.min_arity,
        homogeneous=parameter.is_homogeneous,
        type_var=parameter.type_str,
        types=frozenset(map(_spelled, parameter.types)),
    )


def _spelled(type_: str) -> str:
    """Returns a type in the spelling of `igniter.dialects.onnx.verify.type_name`: schemas spell a map to scalars in two
    ways."""
    return re.sub(r"map\((\w+), *tensor\((\w+)\)\)", r"map(\1, \2)", type_)


def _default(attribute: Any) -> Any:
    return to_python(import_attribute(attribute)) if attribute.type else None
