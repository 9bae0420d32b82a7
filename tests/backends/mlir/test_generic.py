"""`--emit=generic` of every level is read by stock MLIR, and by Igniter as the same IR."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.generic_text import IrParser
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.passes import parse_passes, run_passes
from igniter.runtime.mlir_tools import missing_tools, run_opt
from igniter.toolbox.ir_text import module_text
from tests.backends.mlir.models import MODELS, model

pytestmark = pytest.mark.skipif(missing_tools() is not None, reason=missing_tools() or "")

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.mlir"))
LEVELS = {
    "onnx": "cpu-onnx,cpu-subnormals,cpu-tiles",
    "fusion": "cpu-fusion",
    "structured": "cpu-loop",
    "schedules": "canonicalize-loop,split-axes,inline-nests,form-variants,pack-operands,choose-schedule",
    "scheduled": "cpu-schedule",
}
"""The passes from one level to the next."""
OTHERS = {
    "programs": "cpu-onnx,cpu-subnormals,cpu-tiles,cpu-fusion,cpu-loop,cpu-kernels,cpu-programs,cpu-calls",
    "triton": "cuda",
    "launches": "cuda-onnx,cuda-fusion,cuda-loop,cuda-schedule,cuda-programs,cuda-calls",
}
"""Levels that start over."""


def check(module: ModuleOp, where: str) -> None:
    text = module_text(module, generic=True)
    run_opt(text, ["--allow-unregistered-dialect"])
    again = IrParser(IgniterContext(), text).parse_module()
    again.verify()
    assert module_text(again) == module_text(module), where


def check_levels(module: ModuleOp) -> int:
    """Checks every level that a module reaches; returns their number."""
    check(module, "as it is")
    reached = 1
    start = module.clone()
    for name, passes in LEVELS.items():
        if not _reaches(module, passes):
            break
        check(module, name)
        reached += 1
    for name, passes in OTHERS.items():
        other = start.clone()
        if _reaches(other, passes):
            check(other, name)
            reached += 1
    return reached


def _reaches(module: ModuleOp, passes: str) -> bool:
    """Runs passes; false for a module that they refuse, as some examples are made to be."""
    try:
        run_passes(IgniterContext(), module, parse_passes(passes))
    except (IgniterError, ValueError, KeyError):
        return False
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_at_every_level(path: Path) -> None:
    try:
        module = IrParser(IgniterContext(), path.read_text(), path.name).parse_module()
        module.verify()
    except Exception as error:
        pytest.skip(f"an example of an error: {error}")
    assert check_levels(module) > 1


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_models_at_every_level(name: str, tmp_path: Path) -> None:
    data, _ = model(name, tmp_path)
    assert check_levels(import_model(data)) > len(LEVELS)


def test_two_names_of_one_domain_are_one_key() -> None:
    """An import of `ai.onnx` beside one of the empty name would be two entries of one key."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (float[n] x) => (float[n] y) { y = Relu(x) }'
    )
    module = import_model(proto)
    text = module_text(module, generic=True)
    assert "opset_import = {ai.onnx = 17 : i64}" in text
    twice = text.replace("{ai.onnx = 17 : i64}", '{"" = 17 : i64, ai.onnx = 17 : i64}')
    again = IrParser(IgniterContext(), twice).parse_module()
    assert module_text(again, generic=True) == text


OLD = """
"builtin.module"() ({
  "loop.func"() <{sym_name = "k", symbols = ["n"], outputs = 1 : i64,
                  requires = [#sym.requirement<n <= 4 "too large">]}> ({
  ^bb0(%x: memref<?xf32, #sym.dims<n>>):
  }) : () -> ()
}) : () -> ()
"""


def test_the_forms_before_are_still_read() -> None:
    module = IrParser(IgniterContext(), OLD).parse_module()
    module.verify()
    assert "n <= 4" in module_text(module)
    assert "n le 4" in module_text(module, generic=True)
