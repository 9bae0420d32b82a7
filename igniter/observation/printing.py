"""The printer of IR before and after passes, as in `mlir-opt`, to a stream or to a tree of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.printer import Printer

from igniter.observation import PassWatcher, Unit
from igniter.observation.units import UnitFilter

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation
    from xdsl.passes import ModulePass


@dataclass(frozen=True)
class Dumps:
    """The dumps to print."""

    before: frozenset[str] = frozenset()
    """The passes to print the IR before, by name; nested passes included."""
    after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    after_change: bool = False
    """Prints the IR after each pass with a change, and a line for each other pass."""
    after_failure: bool = False
    """Prints the IR as a failed pass left it."""

    def __bool__(self) -> bool:
        return bool(self.before or self.after) or any(
            (self.before_all, self.after_all, self.after_change, self.after_failure)
        )


@dataclass
class IRPrinter(PassWatcher):
    """Prints `dumps` to `stream`; with `tree`, writes them to files of this folder, one folder a nested op."""

    dumps: Dumps
    stream: IO[str]
    kernels: UnitFilter = field(default_factory=UnitFilter)
    tree: Path | None = None
    printer: Callable[[IO[str]], Printer] = Printer
    """Makes the printer of the IR."""
    _units: list[Unit] = field(default_factory=list[Unit])
    _texts: list[str] = field(default_factory=lambda: [""])
    """The IR before the running pass, for each level of nesting; "" if unknown."""
    _numbers: list[int] = field(default_factory=lambda: [-1])
    """The number of the running pass in its pipeline, for each level of nesting."""

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self._numbers[-1] += 1
        if self.dumps.after_change and not self._texts[-1]:
            self._texts[-1] = self._text(module)
        if self.dumps.before_all or this.name in self.dumps.before:
            self._dump("Before", this, self._text(module))

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        if self.dumps.after_change:
            text = self._text(module)
            if text != self._texts[-1]:
                self._dump("After", this, text)
            elif text:
                print(f"// -----// {this.name}{self._where()}: no change //----- //", file=self.stream)
            self._texts[-1] = text
        elif self.dumps.after_all or this.name in self.dumps.after:
            self._dump("After", this, self._text(module))

    def failed(self, this: ModulePass, module: ModuleOp, error: Exception) -> None:
        if getattr(error, "pass_name", this.name) != this.name:
            return  # The failure of a nested pass: its IR is printed already.
        if self.dumps.after_failure or self.dumps.after_all or this.name in self.dumps.after:
            self._dump("After", this, self._text(module), " Failed")

    def enter(self, unit: Unit) -> None:
        self._units.append(unit)
        self._texts.append("")
        self._numbers.append(-1)

    def leave(self, unit: Unit) -> None:
        self._units.pop()
        self._texts.pop()
        self._numbers.pop()

    def _text(self, module: ModuleOp) -> str:
        """Returns the selected part of a module as text; "" if nothing of it is selected."""
        if not self.kernels:
            return op_text(module, self.printer)
        if self._units and self.kernels.has(self._units[-1].name):
            return op_text(module, self.printer)
        return "".join(op_text(op, self.printer) for op in self.kernels.ops(module))

    def _where(self) -> str:
        return f" on {self._units[-1]}" if self._units else ""

    def _dump(self, when: str, this: ModulePass, text: str, end: str = "") -> None:
        if not text:
            return
        header = f"// -----// IR Dump {when} {this.spec()}{end}{self._where()} //----- //\n"
        if self.tree is None:
            print(f"{header}{text}", file=self.stream)
            return
        file = self._file(when, this)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(header + text, encoding="utf-8")

    def _file(self, when: str, this: ModulePass) -> Path:
        """Returns the file of a dump: `FOLDER/builtin_module/loop_kernel_r3/4_2_after_fuse-loops.mlir`."""
        assert self.tree is not None
        folders = [_plain(f"{unit.kind}_{unit.name}") for unit in self._units]
        numbers = "_".join(map(str, self._numbers))
        name = f"{numbers}_{when.lower()}_{_plain(this.name)}.mlir"
        return self.tree.joinpath("builtin_module", *folders, name)


def op_text(op: Operation, printer: Callable[[IO[str]], Printer] = Printer) -> str:
    """Returns an op as text, with a final newline."""
    out = StringIO()
    printer(out).print_op(op)
    return out.getvalue() + "\n"


def _plain(name: str) -> str:
    """Returns a name as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
