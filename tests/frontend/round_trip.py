"""import → print → parse → export, and the models to do it with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test.case.test_case import TestCase
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.frontend import export_model, import_model
from tests.conformance import node_cases as conformance

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def reparsed(module: ModuleOp) -> ModuleOp:
    """The module read back from its text, which must be the same module."""
    text = str(module)
    again = Parser(IgniterContext(), text).parse_module()
    assert module.is_structurally_equivalent(again)
    assert str(again) == text
    return again


def round_trip(model: Any) -> onnx.ModelProto:
    """The round-tripped model; the IR is verified on the way."""
    module = import_model(model)
    module.verify()
    return export_model(reparsed(module))


def node_cases() -> tuple[TestCase, ...]:
    """The backend node tests of ONNX."""
    return tuple(conformance.node_cases().values())


def model_files() -> list[Path]:
    """Every model file that the onnx package ships."""
    return sorted(DATA.glob("**/*.onnx"))
