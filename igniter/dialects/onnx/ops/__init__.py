"""The specs of the ONNX ops, one `OpSpec` an op, in the module of its family.

A family is a module with `SPECS`, a list of `OpSpec`s; `FAMILIES` says which module has which op, so that a spec is
found in one step and nothing is imported before it is needed. Packages outside Igniter `register` theirs in a module
that they name under the entry point group `igniter.ops`; it is imported before the first spec is looked up.
"""

from __future__ import annotations

import importlib
from functools import cache

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_bound
from igniter.dialects.onnx.registry import OpSpec
from igniter.registry import load_external

FAMILIES: tuple[str, ...] = (
    "activation",
    "attention",
    "block_quantized",
    "bound_movement",
    "bound_reduction",
    "bound_resize",
    "bound_windows",
    "contraction",
    "contrib_attention",
    "contrib_counts",
    "contrib_norms",
    "convolution",
    "elementwise",
    "grouped_attention",
    "indexing",
    "integer_convolution",
    "legacy",
    "linear_algebra",
    "linear_attention",
    "loss",
    "ml_features",
    "ml_linear",
    "ml_svm",
    "movement",
    "node_counts",
    "normalization",
    "pooling",
    "quantization",
    "quantized_recurrent",
    "random",
    "rearrangement",
    "recurrent",
    "reduction",
    "resize",
    "rois",
    "rotary",
    "sampling",
    "scan",
    "scatter",
    "shape",
    "selection",
    "signal",
    "softmax",
    "sorting",
    "transformer",
    "trees",
    "transposed",
    "unique",
    "windows",
)
"""The modules of this package that have specs."""

_registered: dict[str, OpSpec] = {}


def register(spec: OpSpec) -> OpSpec:
    """Makes an op known, or replaces what is known of it: for packages outside Igniter."""
    _registered[spec.name] = spec
    return spec


def spec_named(name: str) -> OpSpec | None:
    """The spec of an op by its qualified name (`Add`, `com.microsoft.Gelu`); None where there is none."""
    _load_external()
    return _registered.get(name) or _builtin().get(name)


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


@cache
def _builtin() -> dict[str, OpSpec]:
    found: dict[str, OpSpec] = {}
    for family in FAMILIES:
        specs: list[OpSpec] = importlib.import_module(f"{__name__}.{family}").SPECS
        for spec in specs:
            if spec.name in found:
                raise ValueError(f"two specs for {spec.name}")
            found[spec.name] = spec
    return found
