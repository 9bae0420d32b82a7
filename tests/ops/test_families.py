"""The table of the modules that have specs is what these have."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import igniter.dialects.onnx.ops as ops
from igniter.dialects.onnx.ops.families import FAMILIES, FAMILY_OF


def test_every_spec_is_in_the_table() -> None:
    found: dict[str, list[str]] = {}
    for module in pkgutil.iter_modules(ops.__path__):
        specs = getattr(importlib.import_module(f"{ops.__name__}.{module.name}"), "SPECS", None)
        if specs is not None:
            found[module.name] = [spec.name for spec in specs]
    assert {family: names.split() for family, names in FAMILIES.items()} == found
    names = [name for each in found.values() for name in each]
    assert len(set(names)) == len(names) == len(FAMILY_OF)


def test_a_spec_brings_its_module_alone() -> None:
    code = (
        "import sys; from igniter.dialects.onnx.ops import spec_named; assert spec_named('Relu').name == 'Relu'; "
        "assert spec_named('NoSuchOp') is None; print('igniter.dialects.onnx.ops.trees' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
