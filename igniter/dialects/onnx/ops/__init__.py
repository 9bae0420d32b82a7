"""The specs of the ONNX ops, one `OpSpec` an op, in the module of its family.

A family is a module with `SPECS`, a list of `OpSpec`s; `families.py` says which module has which op, so that a spec is
found in one step and nothing is imported before it is needed. Packages outside Igniter `register` theirs in a module
that they name under the entry point group `igniter.ops`; it is imported before the first spec is looked up.
"""

from __future__ import annotations

import importlib
from functools import cache

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.ops.families import FAMILIES, FAMILY_OF
from igniter.dialects.onnx.registry import OpSpec
from igniter.registry import load_external

_registered: dict[str, OpSpec] = {}


def register(spec: OpSpec) -> OpSpec:
    """Makes an op known, or replaces what is known of it: for packages outside Igniter."""
    _registered[spec.name] = spec
    return spec


def spec_named(name: str) -> OpSpec | None:
    """The spec of an op by its qualified name (`Add`, `com.microsoft.Gelu`); None where there is none."""
    _load_external()
    family = FAMILY_OF.get(name)
    return _registered.get(name) or (None if family is None else _specs_of(family)[name])


def spec_of(op: OnnxOp) -> OpSpec | None:
    """The spec of a node; None where Igniter knows no more of the op than its schema."""
    found = spec_named(op.qualified_name)
    # Most rules of an op do not ask where its values come from.
    return spec_named(op.op_type) if found is None and is_bound(op) else found


def is_builtin(name: str) -> bool:
    """Whether the rules of an op are Igniter's own, or nobody's."""
    _load_external()
    return name not in _registered


def all_specs() -> dict[str, OpSpec]:
    """Every spec, by name."""
    _load_external()
    return {**_builtin(), **_registered}


@cache
def _load_external() -> None:
    """Import the modules that installed packages name under `igniter.ops`: they call `register`."""
    load_external("ops")


def _builtin() -> dict[str, OpSpec]:
    return {name: spec for family in FAMILIES for name, spec in _specs_of(family).items()}


@cache
def _specs_of(family: str) -> dict[str, OpSpec]:
    """The specs of a module of this package."""
    specs: list[OpSpec] = importlib.import_module(f"{__name__}.{family}").SPECS
    return {spec.name: spec for spec in specs}
