"""The specs of the ONNX ops, one `OpSpec` an op, in the module of its family.

A family is a module with `SPECS`, a list of `OpSpec`s. `families.py` maps each op to its module, so that a lookup takes
one step and modules are imported on demand. Packages outside Igniter `register` their specs in a module named under the
entry point group `igniter.ops`; it is imported before the first lookup.
"""

from __future__ import annotations

import importlib
from functools import cache

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.ops.families import FAMILIES, FAMILY_OF
from igniter.dialects.onnx.registry import OpSpec
from igniter.registry import load, load_external

_registered: dict[str, OpSpec] = {}


def register(spec: OpSpec) -> OpSpec:
    """Registers the spec of an op, or replaces the known one; for packages outside Igniter. Its rules are guarded
    (`igniter.dialects.onnx.rule_guards`): one that raises costs its own node."""
    _registered[spec.name] = load("igniter.dialects.onnx.rule_guards:guarded")(spec)
    return spec


def spec_named(name: str) -> OpSpec | None:
    """Returns the spec of an op by its qualified name (`Add`, `com.microsoft.Gelu`); None if it has no spec."""
    _load_external()
    family = FAMILY_OF.get(name)
    return _registered.get(name) or (None if family is None else _specs_of(family)[name])


def spec_of(op: OnnxOp) -> OpSpec | None:
    """Returns the spec of a node; None if Igniter only knows the op's schema."""
    found = spec_named(op.qualified_name)
    # Most rules of an op do not depend on the source of its values.
    return spec_named(op.op_type) if found is None and is_bound(op) else found


def is_builtin(name: str) -> bool:
    """True if no external package has registered the rules of an op."""
    _load_external()
    return name not in _registered


def all_specs() -> dict[str, OpSpec]:
    """Returns every spec, by name."""
    _load_external()
    return {**_builtin(), **_registered}


@cache
def _load_external() -> None:
    """Imports the modules that installed packages name under `igniter.ops`: they call `register`."""
    load_external("ops")


def _builtin() -> dict[str, OpSpec]:
    return {name: spec for family in FAMILIES for name, spec in _specs_of(family).items()}


@cache
def _specs_of(family: str) -> dict[str, OpSpec]:
    """Returns the specs of a module of this package."""
    specs: list[OpSpec] = importlib.import_module(f"{__name__}.{family}").SPECS
    return {spec.name: spec for spec in specs}
