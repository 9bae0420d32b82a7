"""One node of every op, schema version and type: what the ledger of types (`tests.conformance.types`) tries.

A node comes from ONNX's own node cases (`tests.fuzz.wild.catalogue`), for com.microsoft and the rest from
`type_recipes`. For an older version of the schema an input that was an attribute then becomes one. Each type variable
of the schema takes each of its types in turn, the others the type that they have in the recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from igniter.dialects.onnx.types import BY_NAME
from tests.conformance.type_recipes import RECIPES, Recipe

OLDEST_OPSET = 7
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
CONTRIB = "com.microsoft"
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
RENAMED = {"constant_value": "value", "K": "k"}
"""Inputs whose attribute of an older version has another name."""
DIVISORS = frozenset(("Div", "Mod"))
SKIPPED = frozenset(("If", "Loop", "Scan", "SequenceMap", "Optional", "Gradient", "ImageDecoder", "FlexAttention"))
"""Ops with subgraphs, whose types are those of what is inside; those that read pictures or make no tensor."""


@dataclass(frozen=True)
class Schema:
    """The parts of a schema that the cases need: names, and type variables with their types by input and output."""

    domain: str
    name: str
    since: int
    opset: int
    inputs: tuple[tuple[str, str, bool], ...]
    """Name, type variable or type, and whether it is variadic."""
    outputs: tuple[tuple[str, str, bool], ...]
    types: tuple[tuple[str, tuple[str, ...]], ...]
    attributes: frozenset[str]

    @property
    def qualified(self) -> str:
        return f"{self.domain}.{self.name}" if self.domain else self.name


@dataclass(frozen=True)
class TypeCase:
    """One node to try. `types` says which variable has which type."""

    domain: str
    op: str
    since: int
    opset: int
    variable: str
    type: str

    @property
    def key(self) -> str:
        name = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"{name}-{self.since} {self.variable}={self.type}"


class NoCase(Exception):
    """There is no node for a case; the message says why."""


# -- schemas ----------------------------------------------------------------------------------------------------------


@cache
def schemas() -> dict[tuple[str, str, int], Schema]:
    """Every version of every op that is in force in opset 7 or later, and every op of com.microsoft."""
    versions: dict[tuple[str, str], list[Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS and schema.name not in SKIPPED:
            versions.setdefault((schema.domain, schema.name), []).append(schema)
    found: dict[tuple[str, str, int], Schema] = {}
    for (domain, name), known in sorted(versions.items()):
        known.sort(key=lambda s: s.since_version)
        for schema, following in zip(known, [*known[1:], None], strict=True):
            ended = following is not None and domain == "" and following.since_version <= OLDEST_OPSET
            if not ended and not schema.deprecated:
                opset = max(schema.since_version, OLDEST_OPSET if domain == "" else 1)
                found[domain, name, schema.since_version] = _schema(schema, opset)
    return {**found, **_contrib()}


def _schema(schema: Any, opset: int) -> Schema:
    return Schema(
        schema.domain,
        schema.name,
        schema.since_version,
        opset,
        tuple((p.name, p.type_str, p.option.name == "Variadic") for p in schema.inputs),
        tuple((p.name, p.type_str, p.option.name == "Variadic") for p in schema.outputs),
        tuple((c.type_param_str, tuple(sorted(c.allowed_type_strs))) for c in schema.type_constraints),
        frozenset(schema.attributes),
    )


def _contrib() -> dict[tuple[str, str, int], Schema]:
    """ONNX Runtime's own ops of com.microsoft."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found: dict[tuple[str, str, int], Schema] = {}
    for schema in state.get_all_operator_schema():
        if schema.domain != CONTRIB or schema.deprecated:
            continue
        sides = [
            tuple((p.name, p.typeStr, p.option.name == "Variadic") for p in side)
            for side in (schema.inputs, schema.outputs)
        ]
        types: dict[str, tuple[str, ...]] = {}
        for parameter in (*schema.inputs, *schema.outputs):
            types.setdefault(parameter.typeStr, tuple(sorted(parameter.types)))
        variables = tuple((name, allowed) for name, allowed in types.items() if "(" not in name)
        found[CONTRIB, schema.name, 1] = Schema(
            CONTRIB, schema.name, 1, 1, sides[0], sides[1], variables, frozenset(schema.attributes)
        )
    return found


def all_cases() -> list[TypeCase]:
    """Every op, version, type variable and type: first the newest version of every op, then the one before it, ..."""
    by_op: dict[str, list[Schema]] = {}
    for schema in schemas().values():
        by_op.setdefault(schema.qualified, []).append(schema)
    aged = [(-age, schema) for versions in by_op.values() for age, schema in enumerate(versions, -len(versions))]
    return [
        TypeCase(schema.domain, schema.name, schema.since, schema.opset, variable, type_)
        for _, schema in sorted(aged, key=lambda pair: pair[0])
        for variable, types in schema.types
        for type_ in types
    ]


# -- nodes ------------------------------------------------------------------------------------------------------------


@cache
def _recipes(qualified: str) -> list[Recipe]:
    """The nodes of an op that are known, those with the fewest inputs first."""
    from tests.fuzz.wild.catalogue import catalogue

    found = list(RECIPES.get(qualified, ()))
    entries = sorted(catalogue().get(qualified, ()), key=lambda e: sum(a.size for a in e.inputs if a is not None))
    for entry in sorted(entries, key=lambda e: sum(a is not None for a in e.inputs)):
        node = onnx.NodeProto.FromString(entry.node)
        found.append(Recipe(entry.inputs, {a.name: a for a in node.attribute}, len(node.output)))
    return found


def model_of(case: TypeCase) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model and its feed; `NoCase` where no recipe fits."""
    schema = schemas()[case.domain, case.op, case.since]
    reason = "no node of the op is known"
    for recipe in _recipes(schema.qualified)[:12]:
        try:
            return _built(schema, case, recipe)
        except (NoCase, TypeError, ValueError) as error:
            # What NumPy or the onnx package do not write down is no case either.
            reason = str(error).splitlines()[0]
    raise NoCase(reason)


def _built(schema: Schema, case: TypeCase, recipe: Recipe) -> tuple[onnx.ModelProto, dict[str, Any]]:
    inputs, attributes = _aged(schema, recipe)
    variables = [_parameter(schema.inputs, k)[1] for k in range(len(inputs))]
    if case.variable in variables:
        values = [
            None if a is None else _cast(a, case.type, schema.name in DIVISORS and k == 1) if v == case.variable else a
            for k, (a, v) in enumerate(zip(inputs, variables, strict=True))
        ]
    else:
        values = list(inputs)
        attributes = _with_output_type(schema, attributes, case.type)
    fixed = [
        k
        for k, a in enumerate(values)
        if isinstance(a, np.ndarray) and k and variables[k] != case.variable and a.dtype.kind in "iu" and a.ndim <= 1
    ]
    names = ["" if v is None else f"x{k}" for k, v in enumerate(values)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(
        schema.name, names, [f"y{k}" for k in range(recipe.outputs)], name="node", domain=schema.domain
    )
    node.attribute.extend(_attribute(name, value) for name, value in attributes.items())
    given = {n: v for k, (n, v) in enumerate(zip(names, values, strict=False)) if n and k not in fixed}
    graph = helper.make_graph(
        [node],
        "g",
        [_info(n, v) for n, v in given.items()],
        [helper.make_empty_tensor_value_info(n) for n in node.output],
        [numpy_helper.from_array(values[k], names[k]) for k in fixed if names[k]],
    )
    imports = [helper.make_opsetid(schema.domain, schema.opset)]
    if schema.domain:
        imports.append(helper.make_opsetid("", 21))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    _require_valid(model, schema)
    return model, given


def _attribute(name: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, onnx.AttributeProto):
        return value
    if value == []:
        raise NoCase(f"the type of the empty attribute '{name}' is not known")
    return helper.make_attribute(name, value)


def _aged(schema: Schema, recipe: Recipe) -> tuple[list[Any], dict[str, Any]]:
    """The inputs and attributes as this version of the schema has them."""
    inputs, attributes = list(recipe.inputs), dict(recipe.attributes)
    variadic = bool(schema.inputs) and schema.inputs[-1][2]
    newest = max(
        (s for (d, n, _), s in schemas().items() if (d, n) == (schema.domain, schema.name)), key=lambda s: s.since
    )
    names = [_parameter(newest.inputs, k)[0] for k in range(len(inputs))]
    own = {name for name, _, _ in schema.inputs}
    if not variadic:
        for k in reversed(range(len(inputs))):
            attribute = next((n for n in (names[k], RENAMED.get(names[k], "")) if n in schema.attributes), "")
            if names[k] in own or inputs[k] is None:
                continue
            if not attribute:
                if k >= len(schema.inputs):
                    raise NoCase(f"version {schema.since} has no input or attribute '{names[k]}'")
                continue
            array = np.asarray(inputs[k])
            attributes[attribute] = array.item() if array.ndim == 0 or attribute in ("k", "value") else array.tolist()
            del inputs[k]
    unknown = attributes.keys() - schema.attributes
    if unknown:
        raise NoCase(f"version {schema.since} has no attribute '{min(unknown)}'")
    if len(inputs) > len(schema.inputs) and not variadic:
        raise NoCase(f"version {schema.since} has {len(schema.inputs)} inputs")
    return inputs, attributes


def _parameter(parameters: Sequence[tuple[str, str, bool]], index: int) -> tuple[str, str, bool]:
    return parameters[min(index, len(parameters) - 1)] if parameters else ("", "", False)


def _with_output_type(schema: Schema, attributes: dict[str, Any], type_: str) -> dict[str, Any]:
    """The attributes with which an output has a type that no input has."""
    name = type_.removeprefix("tensor(").removesuffix(")")
    if name not in BY_NAME:
        raise NoCase(f"an output of {type_}")
    code = BY_NAME[name].code
    asked = next((a for a in TYPE_ATTRIBUTES if a in schema.attributes), "")
    if asked:
        return {**attributes, asked: code}
    if "value" in schema.attributes and schema.name in ("Constant", "ConstantOfShape"):
        value = numpy_helper.from_array(_cast(np.ones(1, np.float32), type_, False), "value")
        return {"value": value}
    raise NoCase("the type of the output follows from the inputs")


def _cast(value: Any, type_: str, divisor: bool) -> Any:
    """The values in another type, as near as it has them."""
    if type_.startswith("seq("):
        inner = _cast(value, type_[4:-1], divisor)
        return [inner, inner]
    name = type_.removeprefix("tensor(").removesuffix(")")
    if not type_.startswith("tensor(") or name not in BY_NAME:
        raise NoCase(f"no values are made of {type_}")
    dtype = BY_NAME[name].dtype
    array = np.asarray(value)
    if name == "string":
        return np.asarray([str(v) for v in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype.kind in "OUS":
        array = np.arange(array.size, dtype=np.float32).reshape(array.shape)
    if name == "bool":
        return np.asarray(array > 0) if array.dtype.kind != "b" else array
    if array.dtype.kind == "b":
        array = array.astype(np.float32)
    if name.startswith(("int", "uint")):
        if array.dtype.kind not in "iu":
            array = np.rint(np.nan_to_num(array.astype(np.float64).real, posinf=3, neginf=-3) * 3)
        bits = BY_NAME[name].bits
        low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        array = np.clip(np.abs(array) if name.startswith("u") else array, max(low, -100), min(high, 100))
        if divisor:
            array = np.where(array == 0, 1, array)
        return np.asarray(array).astype(np.int64).astype(dtype)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def _info(name: str, value: Any) -> onnx.ValueInfoProto:
    if isinstance(value, list):
        first = np.asarray(value[0])
        return helper.make_tensor_sequence_value_info(name, _code(first), list(first.shape))
    return helper.make_tensor_value_info(name, _code(value), list(value.shape))


def _code(array: np.ndarray[Any, Any]) -> int:
    from igniter.dialects.onnx.types import element_of_dtype

    return element_of_dtype(array.dtype).code


def _require_valid(model: onnx.ModelProto, schema: Schema) -> None:
    """`NoCase` for a node that its schema does not allow. ONNX Runtime's own ops have none here."""
    if schema.domain == CONTRIB:
        return
    try:
        onnx.checker.check_model(_without_outputs(model))
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise NoCase(str(error).strip().splitlines()[0][:200]) from error


def _without_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """For the checker, which wants the types of outputs, which inference finds."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    return copy
