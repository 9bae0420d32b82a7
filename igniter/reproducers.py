"""Reproducers: a failed pass leaves one `.mlir` file that repeats the failure.

    // A failure of igniter 0.1.0:
    //   pass 'tile-loops': ZeroDivisionError: division by zero
    // repeat it:  igniter-opt FILE --run-reproducer
    // shrink it:  igniter reduce FILE
    builtin.module { .. the IR in front of the failing pass .. }
    {-#
      external_resources: {
        igniter_reproducer: {
          pipeline: "tile-loops{sizes=8},vectorize-loops",
          verify_each: "true",
          ...
        }
      }
    #-}

The section at the end is MLIR's file metadata; every value is a string. `FACTS` lists the keys.

The context holds the `Recorder`. With `eager`, `run_passes` copies the IR before every pass, so tools set it on
request, or when they repeat a run that failed. The IR of a nested run (`schedule-kernels`) is one kernel, and so is the
reproducer.

Weights are elided unless the failure needs them: the file is read back and its first pass is run; if that does not
fail in the same way, the weights are written too. An elided weight has random values when a reproducer runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import re
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xdsl.parser import Parser
from xdsl.printer import Printer

from igniter._version import __version__
from igniter.errors import IgniterError, is_crash, reproducer_of
from igniter.registry import load, load_pass, plugins

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from igniter.context import IgniterContext


_log = logging.getLogger(__name__)

Weights = Literal["auto", "elide", "keep"]

FACTS = {
    "pipeline": "the failing pass and the passes after it; with a local reproducer the failing pass alone",
    "error": "the message of the failure",
    "verify_each": "whether the IR is verified after every pass",
    "check_each": "whether the IR is run before and after every pass",
    "seed": "the seed of the inputs of check_each",
    "check_sizes": "sizes of symbols for check_each",
    "stop_after": "the number of rewrites that the passes may still make",
    "allow_unregistered": "whether ops of unknown dialects are accepted",
    "emit": "the output behind the passes, if its emission fails",
    "machine": "the figures of the target's machine that differ from the default's, as JSON",
    "sizes": "the typical sizes of symbols, as JSON",
    "weights": "elided or kept",
    "versions": "Igniter, Python, the platform and the packages that decide about the result",
    "plugins": "the installed packages with entry points of Igniter",
}
"""The facts of a reproducer, by their keys."""

PACKAGES = ("xdsl", "numpy", "onnx", "onnxruntime", "llvmlite", "triton")
KEPT_ELEMENTS = 64
"""The largest tensor that is always kept: shapes, axes and scalars decide about passes."""
MOST_FILES = 50
"""The number of files in a folder of reproducers; older ones are removed."""

_SECTION = re.compile(r"\{-#\s*external_resources:\s*\{\s*igniter_reproducer:\s*\{(.*)\}\s*\}\s*#-\}\s*\Z", re.S)
_ENTRY = re.compile(r'(\w+):\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class Reproducer:
    """The facts of a reproducer besides its IR; absent ones are not in the file."""

    facts: Mapping[str, str]

    @property
    def pipeline(self) -> str:
        return self.facts.get("pipeline", "")

    def json(self, key: str, default: Any) -> Any:
        """Returns the value of a fact that is JSON."""
        return json.loads(self.facts[key]) if self.facts.get(key) else default

    def section(self) -> str:
        """Returns the facts as the section at the end of a file."""
        lines = ",\n".join(f"      {key}: {json.dumps(value)}" for key, value in self.facts.items())
        return f"\n{{-#\n  external_resources: {{\n    igniter_reproducer: {{\n{lines}\n    }}\n  }}\n#-}}\n"


def split_reproducer(text: str, name: str) -> tuple[str, Reproducer | None]:
    """Returns the IR of a file and the facts of its reproducer, `None` for any other file; `name` is for errors."""
    if "igniter_reproducer" not in text or (found := _SECTION.search(text)) is None:
        return text, None
    try:
        facts = {key: str(json.loads(value)) for key, value in _ENTRY.findall(found.group(1))}
    except ValueError as error:
        raise IgniterError(f"{name}: cannot read the reproducer at its end: {error}") from error
    return text[: found.start()], Reproducer(facts)


@dataclass
class Recorder:
    """The setting for reproducers of a run: the file, or a folder for files with generated names."""

    file: str = ""
    folder: str = ""
    local: bool = False
    """True for the failing pass alone instead of the pipeline from there."""
    weights: Weights = "auto"
    eager: bool = True
    """True to copy the IR before every pass."""
    ahead: bool = False
    """True to write the file before every pass, for crashes of native code; the end of the run removes it."""
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """Further facts of the run."""
    wrote: bool = False
    """True once the run has written a file."""

    def before(self, ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], facts: Mapping[str, str]) -> None:
        """Writes the file ahead of a pass, if asked to."""
        if self.ahead and self.file:
            message = f"the process ended while the pass '{passes[0].name}' ran"
            self._write(ctx, module, passes, {**facts, "error": message}, keep=self.weights == "keep")

    def leave(
        self,
        ctx: Context,
        module: ModuleOp,
        passes: Sequence[ModulePass],
        error: Exception,
        facts: Mapping[str, str] | None = None,
    ) -> str:
        """Writes the reproducer of `error`, raised by the first of `passes` on `module` or, without passes, behind
        them; returns its path."""
        said = {**(facts or {}), "error": str(error).strip() or type(error).__name__}
        # A check of results is about values: with random weights the difference could hide.
        compared = said.get("check_each") == "true" and not hasattr(error, "pass_name")
        keep = self.weights == "keep" or (self.weights == "auto" and compared)
        path = self._write(ctx, module, passes, said, keep=keep)
        if not keep and self.weights == "auto" and passes and not _repeats(path, ctx, passes[0], error):
            path = self._write(ctx, module, passes, said, keep=True, path=path)
        return path

    def _write(
        self,
        ctx: Context,
        module: ModuleOp,
        passes: Sequence[ModulePass],
        facts: Mapping[str, str],
        *,
        keep: bool,
        path: str = "",
    ) -> str:
        copy, elided = module, False
        if not keep:
            copy = module.clone()
            load_pass("elide-weights")(limit=KEPT_ELEMENTS).apply(ctx, copy)  # pyright: ignore[reportCallIssue]
            elided = bool(load("igniter.dialects.onnx.stand_ins:elided")(copy))
        pipeline = ",".join(str(this.spec()) for this in (passes[:1] if self.local else passes))
        said = {**self._common(ctx), **facts, "weights": "elided" if elided else "kept"}
        note = Reproducer({"pipeline": pipeline, **{key: said[key] for key in FACTS if said.get(key)}})
        text = f"{_text(copy)}{note.section()}"
        path = self.file or path or self._fresh(text)
        _write_whole(Path(path), f"{_header(path, said['error'])}{text}")
        self.wrote = True
        _log.info("reproducer: %s", path)
        return path

    def _common(self, ctx: Context) -> dict[str, str]:
        facts = dict(self.settings)
        machine = getattr(ctx, "machine", None)
        if machine is not None:
            typical = type(machine)().values()
            facts["machine"] = json.dumps({k: v for k, v in machine.values().items() if v != typical[k]})
        if sizes := getattr(ctx, "sizes", None):
            facts["sizes"] = json.dumps(dict(sizes))
        if ctx.allow_unregistered:
            facts["allow_unregistered"] = "true"
        return {**facts, "versions": versions(), "plugins": ", ".join(plugins())}

    def _fresh(self, text: str) -> str:
        folder = Path(self.folder or tempfile.gettempdir())
        folder.mkdir(parents=True, exist_ok=True)
        old = sorted(folder.glob("igniter-*.mlir"), key=lambda p: p.stat().st_mtime)
        for path in old[: max(0, len(old) - MOST_FILES + 1)]:
            with suppress(OSError):  # Another process may have removed it.
                path.unlink()
        return str(folder / f"igniter-{hashlib.sha256(text.encode()).hexdigest()[:12]}.mlir")


def recorder_of(ctx: Context) -> Recorder | None:
    """Returns the recorder of a context; `None` if failures leave no reproducer."""
    found = getattr(ctx, "recorder", None)
    return found if isinstance(found, Recorder) else None


@contextmanager
def recording(
    ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], *, verify_each: bool, check_each: bool
) -> Generator[None]:
    """Leaves a reproducer if the block fails, in which the first of `passes` runs; the error gets its path."""
    recorder = recorder_of(ctx)
    if recorder is None or not recorder.eager:
        yield
        return
    facts = {"verify_each": str(verify_each).lower()}
    if check_each:
        facts["check_each"] = "true"
    rewrites = getattr(ctx, "rewrites", None)
    if rewrites is not None and rewrites.limit is not None:
        facts["stop_after"] = str(max(0, rewrites.limit - rewrites.count))
    saved = module.clone()
    recorder.before(ctx, saved, passes, facts)
    try:
        yield
    except Exception as error:  # any error gets a reproducer; raised again
        if not reproducer_of(error):
            name_reproducer(error, recorder.leave(ctx, saved, passes, error, facts))
        raise


def reproduce(ctx: IgniterContext, module: ModuleOp, passes: tuple[ModulePass, ...]) -> str:
    """Runs passes that failed once more, on a copy of their input, with a copy of the IR before each; returns the path
    of the reproducer, "" if they do not fail again or nothing is recorded."""
    recorder = recorder_of(ctx)
    if recorder is None:
        return ""
    again = ctx.quiet()
    again.recorder = replace(recorder, eager=True)
    try:
        _run_passes()(again, module, passes)
    except Exception as error:  # the same failure is expected
        return reproducer_of(error)
    return ""


def leave_emission(ctx: Context, module: ModuleOp, error: Exception) -> None:
    """Leaves the reproducer of an emission that failed on a module, for its target; the error gets the path."""
    recorder = recorder_of(ctx)
    if recorder is not None and not reproducer_of(error):
        name_reproducer(error, recorder.leave(ctx, module, (), error, {"emit": "llvm"}))


def name_reproducer(error: Exception, path: str) -> None:
    """Records the path of a reproducer on an error, as `error.reproducer`."""
    if path:
        error.reproducer = path  # pyright: ignore[reportAttributeAccessIssue]


def versions() -> str:
    """Returns the versions of the packages that decide about a result, without importing them."""
    metadata = import_module("importlib.metadata")
    found = [f"igniter {__version__}", f"python {platform.python_version()}", platform.platform()]
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)


def _repeats(path: str, ctx: Context, this: ModulePass, error: Exception) -> bool:
    """True if the pass fails on the file in the same way."""
    again: Context = getattr(ctx, "quiet", ctx.clone)()
    try:
        text, _ = split_reproducer(Path(path).read_text(encoding="utf-8"), path)
        module = Parser(again, text, path).parse_module()
        load("igniter.dialects.onnx.stand_ins:fill")(module)
        _run_passes()(again, module, (this,))
    except Exception as found:  # the same failure is expected
        return _kind(found) == _kind(error)
    return False


def _run_passes() -> Callable[..., None]:
    """Returns `igniter.passes.run_passes`, which imports this module."""
    return load("igniter.passes:run_passes")


def _kind(error: Exception) -> tuple[str, ...]:
    cause = error.__cause__
    return (type(error).__name__, type(cause).__name__, str(is_crash(error)))


def _header(path: str, error: str) -> str:
    shown = "".join(f"//   {line}\n" for line in error.splitlines()[:20])
    return (
        f"// A failure of igniter {__version__}:\n{shown}"
        f"// repeat it:  igniter-opt {path} --run-reproducer\n// shrink it:  igniter reduce {path}\n"
    )


def _text(module: ModuleOp) -> str:
    out = StringIO()
    Printer(stream=out).print_op(module)
    return f"{out.getvalue()}\n"


def _write_whole(path: Path, text: str) -> None:
    """Writes a file in one step: a crash during the write leaves the former one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
