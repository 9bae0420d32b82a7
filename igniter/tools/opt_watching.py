"""The observers of an `igniter-opt` run, and their reports: dumps, times, counts, remarks and debug logs."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from xdsl.printer import Printer

from igniter.dialects.generic_text import GenericPrinter
from igniter.errors import IgniterError, did_you_mean
from igniter.observation.logs import logger_of
from igniter.observation.printing import Dumps, IRPrinter
from igniter.observation.times import PassTimes
from igniter.observation.units import UnitFilter
from igniter.passes import NestedPasses
from igniter.remarks import Remarks
from igniter.tools.watch_options import WatchOptions

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from igniter.context import IgniterContext


@dataclass
class Watching:
    """The observers of one run, and their reports. `again` is true for the later parts of a split file."""

    options: WatchOptions
    stdout: IO[str]
    stderr: IO[str]
    printer: IRPrinter
    times: PassTimes
    kernels: UnitFilter
    again: bool = False

    @staticmethod
    def of(options: WatchOptions, stdout: IO[str], stderr: IO[str], *, again: bool = False) -> Watching:
        """Returns the observers for the options."""
        kernels = UnitFilter.of(options.filter_kernel)
        dumps = Dumps(
            frozenset(options.print_before),
            frozenset(options.print_after),
            options.print_before_all,
            options.print_after_all,
            options.print_after_change,
            options.print_after_failure,
        )
        tree = Path(options.print_tree) if options.print_tree else None
        made = partial(GenericPrinter, print_generic_format=True) if options.print_generic else Printer
        printer = IRPrinter(dumps, stderr, kernels, tree, made)
        return Watching(options, stdout, stderr, printer, PassTimes(kernels), kernels, again)

    def report(self, ctx: IgniterContext, *, failed: bool) -> None:
        """Writes remarks, counts and times. After a run that has not failed, raises `IgniterError` for a kernel of
        `--filter-kernel` that does not exist."""
        if self.options.remarks:
            self._remarks(ctx)
        if self.options.pass_statistics:
            form: Any = self.options.pass_statistics
            self._write(ctx.statistics.text(form, self.kernels), self.options.info_output)
        if self.options.timing:
            display: Any = self.options.timing
            self._write(self.times.table(display), self.options.info_output)
        if not failed:
            self.kernels.require_seen()

    def _remarks(self, ctx: IgniterContext) -> None:
        kept = Remarks(items=[r for r in ctx.remarks if self.kernels.has_remark(r.unit, r.node, r.details)])
        text = kept.to_json() if self.options.remarks == "json" else "\n".join(map(str, kept))
        self._write(text + "\n" if text else "", self.options.remarks_output)

    def _write(self, text: str, where: str) -> None:
        if where in ("", "-"):
            (self.stdout if where else self.stderr).write(text)
            return
        # Times and counts share a file, and so do the parts of a split one.
        mode = "a" if self.again or where in self._written else "w"
        with open(where, mode, encoding="utf-8") as file:
            file.write(text)
        self._written.add(where)

    def __post_init__(self) -> None:
        self._written: set[str] = set()


def print_pipeline(ctx: IgniterContext, passes: Sequence[ModulePass], stream: IO[str]) -> None:
    """Prints a pipeline as `-p` takes it, with all options that differ from their defaults; then the pipelines that its
    passes run on each kernel."""
    print(f"builtin.module({','.join(str(this.spec()) for this in passes)})", file=stream)
    for this in passes:
        inner = getattr(this, "inner_passes", None)
        if inner is not None and not isinstance(this, NestedPasses):
            print(f"// {this.name} runs {','.join(str(each.spec()) for each in inner(ctx))}", file=stream)


def check_watching(options: WatchOptions, passes: Sequence[ModulePass]) -> None:
    """Raises `IgniterError` for an option without effect on `passes`, which include nested ones."""
    there = {p.name for p in passes}
    named = {
        "--print-ir-before": options.print_before,
        "--print-ir-after": options.print_after,
        "--debug-only": options.debug_only,
    }
    for option, names in named.items():
        for name in names:
            if name not in there:
                raise IgniterError(f"{option}={name}: '{name}' is no pass of the pipeline{did_you_mean(name, there)}")
    if options.print_tree and not options.prints:
        raise IgniterError(
            "--print-ir-tree-dir is the folder of printed IR: give --print-ir-after-all or the like, too"
        )
    if options.filter_kernel and not options.is_seen:
        raise IgniterError(
            "--filter-kernel selects from printed IR, times, counts and remarks: give --print-ir-after-all, --timing, "
            "--pass-statistics or --remarks, too"
        )
    wanting = options.wants_runs
    if wanting and not any(hasattr(p, "inner_passes") for p in passes):
        raise IgniterError(
            f"{wanting} the passes that run kernel by kernel, and this pipeline has none: "
            "'cpu-kernels' in the place of 'cpu-schedule' has them (-p cpu-onnx,cpu-fusion,cpu-loop,cpu-kernels)"
        )
    if options.info_output and not (options.timing or options.pass_statistics):
        raise IgniterError("--info-output-file is for --timing and --pass-statistics: give one of them, too")


@contextmanager
def debug_log(names: Sequence[str], stream: IO[str]) -> Generator[None]:
    """Prints the debug logs of the passes `names` to `stream`: their loggers are named like their modules."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("[%(igniter_pass)s] %(message)s", defaults={"igniter_pass": "log"}))
    loggers = [logger_of(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
