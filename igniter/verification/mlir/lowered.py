"""A module of MLIR executed by MLIR's runner: lowered to LLVM, with a driver that calls one function (`driver.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp, StringAttr

from igniter.errors import IgniterError
from igniter.runtime.mlir_tools import TO_LLVM, MlirError, MlirTools, run_tool, runner_libraries
from igniter.verification.mlir.drawing import Argument
from igniter.verification.mlir.driver import ENTRY, Declared, Driver, Printed
from igniter.verification.mlir.machine import attr_of, name_of
from igniter.verification.mlir.math_rules import LIBRARY
from igniter.verification.mlir.observing import Function, Run, functions
from igniter.verification.mlir.reading import GENERIC, generic_form, parse_module, print_module
from igniter.verification.mlir.values import Unsupported

SECONDS = 60

PASSES = (
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map "
    "allow-unknown-ops",
    "--convert-linalg-to-loops",
    "--convert-bufferization-to-memref",
    "--lower-vector-mask",
    "--lower-vector-multi-reduction",
    "--convert-vector-to-scf",
    # Without this option, a mask with a bound over 32 bits is wrong.
    *(f"{p}=force-32bit-vector-indices=false" if p == "--convert-vector-to-llvm" else p for p in TO_LLVM),
)
"""From the dialects that the interpreter knows to the LLVM dialect. Nothing is deallocated."""


class NotRun(IgniterError):
    """Raised if MLIR's runner cannot execute a module; the message says why."""

    code = "IGN0607"


def declared(module: ModuleOp) -> list[Declared]:
    """Returns the functions without a body, those of the C library left out."""
    found: list[Declared] = []
    for op in module.ops:
        name, type_ = attr_of(op, "sym_name"), attr_of(op, "function_type")
        if name_of(op) != "func.func" or op.regions[0].blocks:
            continue
        assert isinstance(name, StringAttr) and isinstance(type_, builtin.FunctionType)
        if name.data not in LIBRARY:
            found.append(Declared(name.data, tuple(type_.inputs), tuple(type_.outputs)))
    return found


def run_lowered(
    text: str, externals: Sequence[Declared], function: Function, cases: Sequence[Sequence[Argument]], tools: MlirTools
) -> list[Run]:
    """Returns what a function does on every case, executed by MLIR's runner.

    Raises `NotRun` if the module or the driver cannot be lowered, and `MlirError` if the execution fails.
    """
    try:
        libraries = runner_libraries(tools)
        driver = run_tool(tools.opt, GENERIC, Driver(function, externals).text(cases), SECONDS)
        program = parse_module(generic_form(text, tools))
        if function.name not in functions(program):
            # The program is lowered already, so the driver is lowered alone.
            driver = run_tool(tools.opt, [*PASSES, *GENERIC], driver, SECONDS)
        merged = print_module(_merged(program, parse_module(driver)))
        lowered = run_tool(tools.opt, PASSES, merged, SECONDS)
    except (MlirError, Unsupported) as error:
        lines = str(error).splitlines()
        raise NotRun(next((line for line in lines if "error:" in line), lines[0])) from error
    assert tools.runner is not None
    flags = ["-e", ENTRY, "--entry-point-result=void", f"--shared-libs={','.join(libraries)}"]
    printed = run_tool(tools.runner, flags, lowered, SECONDS)
    reader = Printed([int(word) for word in printed.split()], function, externals)
    try:
        return [reader.run() for _ in cases]
    except Unsupported as error:
        raise MlirError(str(error)) from error


def _merged(program: ModuleOp, driver: ModuleOp) -> ModuleOp:
    """Moves the functions and globals of the driver into the program; a definition replaces a declaration."""
    known = {str(attr_of(op, "sym_name")): op for op in program.ops}
    for op in list(driver.ops):
        other = known.get(str(attr_of(op, "sym_name")))
        declares = bool(op.regions) and not op.regions[0].blocks
        if other is not None and declares:
            continue
        if other is not None:
            if not other.regions or other.regions[0].blocks:
                raise NotRun(f"the program defines {attr_of(op, 'sym_name')}, as the driver does")
            other.detach()
        op.detach()
        program.body.block.add_op(op)
    return program
