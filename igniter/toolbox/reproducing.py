"""A reproducer's facts as a run: its context, its passes and its observer (`igniter.reproducers`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.context import IgniterContext
from igniter.dialects.source import SourceParser
from igniter.errors import IgniterError
from igniter.passes import parse_passes
from igniter.registry import UnknownName, load, plugins
from igniter.reproducers import Reproducer, split_reproducer


@dataclass(frozen=True)
class ReproducedRun:
    """The settings of the run that a reproducer repeats."""

    facts: Reproducer
    machine: MachineModel
    sizes: Mapping[str, int]

    @property
    def flags(self) -> Mapping[str, bool]:
        """The facts that are true or false."""
        found = self.facts.facts
        return {name: found.get(name) == "true" for name in ("verify_each", "check_each", "allow_unregistered")}

    @property
    def seed(self) -> int:
        return int(self.facts.facts.get("seed", "0"))

    @property
    def stop_after(self) -> int | None:
        said = self.facts.facts.get("stop_after")
        return None if said is None else int(said)

    def context(self) -> IgniterContext:
        """Returns the context of the passes."""
        ctx = IgniterContext(
            allow_unregistered=self.flags["allow_unregistered"], machine=self.machine, sizes=self.sizes
        )
        ctx.rewrites.limit = self.stop_after
        return ctx

    def passes(self) -> tuple[ModulePass, ...]:
        """Returns the passes; raises `IgniterError` with the missing packages if one of them is unknown.

        A pipeline of a reproducer has all options, so figures of the machine are no defaults here."""
        try:
            return parse_passes(self.facts.pipeline)
        except IgniterError as error:
            said = self.facts.facts.get("plugins", "")
            absent = [name for name in said.split(", ") if name and name not in plugins()]
            if not absent or not ("there is no" in str(error) or isinstance(error, UnknownName)):
                raise
            raise IgniterError(
                f"{error.message}; the reproducer was written with packages that are not installed here: "
                f"{', '.join(absent)}"
            ) from error


def run_of(facts: Reproducer) -> ReproducedRun:
    """Returns the run of a reproducer; raises `IgniterError` for facts that cannot be read."""
    try:
        said = facts.json("machine", {})
        sizes = {str(name): int(size) for name, size in facts.json("sizes", {}).items()}
    except (ValueError, AttributeError) as error:
        raise IgniterError(f"cannot read the facts of the reproducer: {error}") from error
    return ReproducedRun(facts, MachineModel.of_values(said) if said else TYPICAL, sizes)


def read_reproducer(path: str | Path) -> Reproducer | None:
    """Returns the facts of a file; `None` if it is no reproducer."""
    if not str(path).endswith(".mlir"):
        return None
    return split_reproducer(Path(path).read_text(encoding="utf-8"), str(path))[1]


def parse_ir(ctx: IgniterContext, text: str, name: str, first_line: int = 1, implicit_module: bool = True) -> ModuleOp:
    """Parses the IR of a file, whose text begins at `first_line`; elided weights of a reproducer get values."""
    ir, facts = split_reproducer(text, name)
    module = SourceParser(ctx, ir, name, first_line).parse_module(implicit_module)
    if facts is not None:
        # By name: IR without weights needs no NumPy.
        load("igniter.dialects.onnx.stand_ins:fill")(module)
    return module
