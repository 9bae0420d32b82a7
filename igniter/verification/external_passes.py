"""The check of an external pass: a program reads a module of MLIR and writes another; both run on the same arguments.

The interpreter of `igniter/verification/mlir` is the reference: it calls no pass of MLIR, so a wrong folder or lowering
cannot be on both sides. MLIR's runner executes the output a second time (`mlir/lowered.py`): it decides where the
interpreter does not know an op of the output, and confirms otherwise. Arguments for which the input has undefined
behaviour are left out.
"""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from igniter.errors import IgniterError
from igniter.runtime.mlir_tools import MlirError, MlirTools, find_tools, run_tool
from igniter.verification.mlir.drawing import Argument, Draw, constants_of
from igniter.verification.mlir.lowered import NotRun, declared, run_lowered
from igniter.verification.mlir.machine import Machine
from igniter.verification.mlir.observing import (
    Function,
    Run,
    difference,
    functions,
    require_same_signature,
    run_function,
)
from igniter.verification.mlir.reading import GENERIC, generic_form, parse_module, print_module
from igniter.verification.mlir.values import OutOfSteps, Undefined, Unsupported

Kind = Literal["wrong", "crash", "refusal", "invalid output", "timeout"]


@dataclass(frozen=True)
class CheckOptions:
    """The options of a check."""

    seed: int = 0
    cases: int = 24
    """The number of arguments that every function runs on."""
    draws: int = 400
    """The most arguments that are drawn to find so many without undefined behaviour."""
    seconds: float = 20.0
    """The processor's time to find the cases of one function, and twice as long to find a first one."""
    steps: int = 300_000
    """The most ops that the input may execute on one argument; the output may execute 20 times as many."""
    timeout: float = 60.0
    """Seconds that the command may take."""
    runner: bool = True
    """True if MLIR's runner executes the output, too."""


@dataclass(frozen=True)
class Finding:
    """A fault of the external pass."""

    kind: Kind
    message: str
    function: str = ""
    executor: str = ""
    """Who found the difference: `interpreter` or `runner`."""
    arguments: tuple[str, ...] = ()
    how: str = ""
    """For `wrong`: `undefined behaviour` or `endless` if the output does not compute a result at all."""

    def __str__(self) -> str:
        where = f"@{self.function}: " if self.function else ""
        on = f"; arguments: {', '.join(self.arguments)}" if self.arguments else ""
        who = f" (found by the {self.executor})" if self.executor else ""
        return f"{self.kind}: {where}{self.message}{on}{who}"


@dataclass
class Checked:
    """The outcome of a check."""

    output: str = ""
    """The text that the command wrote."""
    finding: Finding | None = None
    notes: list[str] = field(default_factory=list[str])
    """One line per function, and everything that was not checked, with the reason."""
    cases: int = 0
    """The number of arguments that were compared."""


@dataclass(frozen=True)
class Command:
    """An external command: text on standard input, text on standard output."""

    argv: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Command:
        """Returns the command of a command line. Raises `IgniterError` if there is no such program."""
        argv = shlex.split(text)
        if not argv:
            raise IgniterError("--check-with names no command: 'mlir-opt --cse', say")
        if shutil.which(argv[0]) is None:
            near = next((n for n in (f"{argv[0]}-{v}" for v in range(40, 18, -1)) if shutil.which(n)), "")
            hint = f"; there is {near}" if near else ""
            raise IgniterError(f"--check-with: there is no program '{argv[0]}' on the path{hint}")
        return Command(tuple(argv))

    @property
    def is_mlir_opt(self) -> bool:
        """True if the program takes the flags of mlir-opt."""
        return Path(self.argv[0]).name.startswith("mlir-opt")

    def run(self, text: str, timeout: float) -> str | Finding:
        """Returns the output for a text, or the fault of the program."""
        try:
            done = subprocess.run(self.argv, input=text, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return Finding("timeout", f"no end in {timeout:g} s")
        if done.returncode == 0:
            return done.stdout
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        error = next((line for line in lines if "error:" in line), lines[0] if lines else "no message")
        if done.returncode < 0 or done.returncode >= 128:
            number = -done.returncode if done.returncode < 0 else done.returncode - 128
            return Finding("crash", f"the command ended by signal {number}: {error}")
        return Finding("refusal", f"the command ended with status {done.returncode}: {error}")


def check_text(text: str, command: Command, options: CheckOptions | None = None) -> Checked:
    """Runs a command on a module and compares the module before and after.

    Raises `IgniterError` if the text is no valid module of MLIR.
    """
    tools = find_tools()
    module = parse_module(_valid(text, tools))
    return _checked(module, text, command.run(text, (options or CheckOptions()).timeout), options, tools)


def check_module(module: ModuleOp, command: Command, options: CheckOptions | None = None) -> Checked:
    """Does what `check_text` does for a parsed module, with one process less if the command is mlir-opt."""
    tools = find_tools()
    text = print_module(module)
    if command.is_mlir_opt:
        # It verifies its input, and writes the form that is read here.
        written = Command((*command.argv, *GENERIC)).run(text, (options or CheckOptions()).timeout)
        if isinstance(written, Finding):
            _valid(text, tools)
    else:
        _valid(text, tools)
        written = command.run(text, (options or CheckOptions()).timeout)
    return _checked(module, text, written, options, tools)


def _valid(text: str, tools: MlirTools) -> str:
    """Returns a module in the generic form. Raises `IgniterError` if it is not valid."""
    try:
        return run_tool(tools.opt, GENERIC, text)
    except MlirError as error:
        raise IgniterError(f"the input is no valid MLIR: {_error_line(error)}") from error


def _checked(
    module: ModuleOp, text: str, written: str | Finding, options: CheckOptions | None, tools: MlirTools
) -> Checked:
    checked = Checked()
    if isinstance(written, Finding):
        checked.finding = written
        return checked
    checked.output = written
    try:
        after = parse_module(generic_form(written, tools))
    except MlirError as error:
        checked.finding = Finding("invalid output", _error_line(error))
        return checked
    Comparison(module, after, options or CheckOptions(), checked, tools, text, written).run()
    return checked


def _error_line(error: MlirError) -> str:
    lines = str(error).splitlines()
    return next((line for line in lines if "error:" in line), lines[0])


@dataclass(frozen=True)
class Case:
    """Arguments without undefined behaviour, and what the input does on them."""

    arguments: tuple[Argument, ...]
    run: Run


@dataclass
class Comparison:
    """The comparison of two modules, function by function."""

    before: ModuleOp
    after: ModuleOp
    options: CheckOptions
    checked: Checked
    tools: MlirTools
    text: str
    """The input of the command."""
    written: str
    """Its output."""

    def run(self) -> None:
        """Compares until the first finding."""
        wanted, found = functions(self.before), functions(self.after)
        if not wanted:
            self.checked.notes.append("the module has no function with a body")
        for name, function in wanted.items():
            if not function.is_public and name not in found:
                continue
            self.checked.finding = self._function(function, found.get(name))
            if self.checked.finding is not None:
                return

    def _function(self, before: Function, after: Function | None) -> Finding | None:
        name = before.name
        try:
            cases, undefined = self._cases(before)
        except Unsupported as error:
            self.checked.notes.append(f"@{name}: not checked: {error}")
            return None
        if not cases:
            reason = f"all {undefined[0]} arguments drawn have undefined behaviour: {undefined[1]}"
            self.checked.notes.append(f"@{name}: not checked: {reason}")
            return None
        self.checked.cases += len(cases)
        notes = self.checked.notes
        interpreted, finding = "", None
        try:
            finding = self._interpret(before, after, cases)
        except Unsupported as error:
            interpreted = str(error)
        if finding is not None:
            return finding
        confirmed = ""
        if self.options.runner:
            finding, confirmed = self._execute(before, cases)
            if finding is not None:
                return finding
        if interpreted:
            notes.append(f"@{name}: {len(cases)} arguments; the interpreter does not run the output: {interpreted}")
        else:
            notes.append(f"@{name}: {len(cases)} arguments agree")
        if confirmed:
            notes[-1] += f"; {confirmed}"
        return None

    def _cases(self, function: Function) -> tuple[list[Case], tuple[int, str]]:
        """Returns arguments without undefined behaviour, and the number and an example of others."""
        options = self.options
        draw = Draw(random.Random(f"{options.seed}/{function.name}"), constants_of(self.before))
        machine = Machine(self.before)
        end = time.process_time() + options.seconds
        cases: list[Case] = []
        known: set[str] = set()
        undefined, example = 0, ""
        for _ in range(options.draws):
            # Without any case yet, it is worth to go on for longer.
            late = time.process_time() > (end if cases else end + options.seconds)
            if len(cases) == options.cases or late:
                break
            arguments = tuple(draw.arguments(function.inputs))
            key = repr([a.data for a in arguments])
            if key in known:
                continue
            known.add(key)
            try:
                cases.append(Case(arguments, run_function(machine, function, arguments, options.steps)))
                draw.keep()
            except (Undefined, OutOfSteps) as error:
                undefined, example = undefined + 1, str(error)
        return cases, (undefined, example)

    def _interpret(self, before: Function, after: Function | None, cases: Sequence[Case]) -> Finding | None:
        if after is None:
            raise Unsupported(f"there is no func.func @{before.name} in it")
        require_same_signature(before, after)
        machine = Machine(self.after)
        for case in cases:
            limit = 20 * case.run.steps + 10_000
            how = ""
            try:
                found = difference(case.run, run_function(machine, after, case.arguments, limit), before)
            except Undefined as error:
                found, how = f"the output has undefined behaviour: {error}", "undefined behaviour"
            except OutOfSteps:
                found = f"the output executes more than {limit:,} ops where the input executes {case.run.steps:,}"
                how = "endless"
            if found:
                return Finding("wrong", found, before.name, "interpreter", tuple(map(str, case.arguments)), how)
        return None

    def _execute(self, function: Function, cases: Sequence[Case]) -> tuple[Finding | None, str]:
        """Runs the output by MLIR's runner; returns a difference, or how it ended in words.

        A difference counts only if the runner agrees with the interpreter on the input: otherwise it is one of the
        lowering.
        """
        try:
            found, case = self._difference(self.written, function, cases)
        except NotRun as error:
            return None, f"not run by MLIR's runner: {error}"
        if not found:
            return None, "MLIR's runner agrees"
        try:
            original, _ = self._difference(self.text, function, cases)
        except NotRun as error:
            return None, f"MLIR's runner differs ({found}), and does not run the input: {error}"
        if original:
            return None, f"MLIR's runner differs on the input itself, by a fault of its lowering: {original}"
        arguments = () if case is None else tuple(map(str, case.arguments))
        return Finding("wrong", found, function.name, "runner", arguments), ""

    def _difference(self, text: str, function: Function, cases: Sequence[Case]) -> tuple[str, Case | None]:
        """Returns where the runner differs from the interpreter's run of the input, and on which arguments."""
        externals = declared(self.before)
        try:
            runs = run_lowered(text, externals, function, [c.arguments for c in cases], self.tools)
        except MlirError as error:
            return f"the execution fails: {_error_line(error)}", None
        for case, run in zip(cases, runs, strict=True):
            found = difference(case.run, run, function)
            if found:
                return found, case
        return "", None
