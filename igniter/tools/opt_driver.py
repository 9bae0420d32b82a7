"""A run of `igniter-opt` after its command line is parsed: read, run passes under observation, write."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError, VerifyException

from igniter.context import IgniterContext
from igniter.crashes import crash_text
from igniter.environment import require_lock
from igniter.errors import IgniterError, code_of, how_to_repeat, reproducer_of, status_of
from igniter.observation import PassObserver, passes_within
from igniter.observation.times import VERIFY
from igniter.passes import parse_passes, run_passes
from igniter.pipeline_text import expand
from igniter.rewrite_budget import what_counts
from igniter.runtime.files import write_whole
from igniter.toolbox.ir_text import module_text
from igniter.toolbox.reproducing import parse_ir
from igniter.tools.diagnostics import check_expected, has_expectations
from igniter.tools.igniter_opt import SEPARATOR, OptOptions
from igniter.tools.log_lines import shown_warnings
from igniter.tools.opt_watching import Watching, check_watching, debug_log, print_pipeline
from igniter.tools.reproducing import discard, recorder_for, reproduced, require_possible
from igniter.tools.roundtrip import require_roundtrip

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.verification.prove.observer import Prover

OWN = ("mlir", "none")
"""The outputs with which --check-with reads the input as MLIR's, if there are no passes."""


@dataclass
class OptDriver:
    """One run of `igniter-opt`."""

    options: OptOptions
    stdin: IO[bytes]
    stdout: IO[str]
    stderr: IO[str]
    prover: Prover | None = None

    def run(self) -> int:
        """Returns the exit status: 0, or 1 after a reported error."""
        try:
            require_lock()
            require_possible(self.options)
            if self.options.run_reproducer:
                data, name, frontend = self._read()
                self.options, machines, passes = reproduced(self.options, data, name)
            else:
                machines = self._machines()
                passes = self._passes(machines)
                self._check(passes, machines)
                for note in expand(self.options.pipeline).notes:
                    print(f"igniter-opt: note: {note}", file=self.stderr)
                if self.options.dump_pass_pipeline:
                    print_pipeline(IgniterContext(machine=machines[0] if machines else None), passes, self.stderr)
                data, name, frontend = self._read()
        except (IgniterError, OSError) as error:
            return self._report(error)
        chunks = [(data, 0)]
        if self.options.split_input_file and frontend == "mlir":
            chunks = split_chunks(data, self.options.split_input_file)
        status = 0
        outputs: list[str | bytes] = []
        with shown_warnings("igniter-opt", self.stderr):
            for chunk, offset in chunks:
                text, failed = self._run_chunk(chunk, name, offset, frontend, passes, machines)
                outputs.append(text)
                status = max(status, failed)
        # A failed run creates no empty file, and leaves an existing one alone.
        if any(outputs) or status == 0:
            try:
                self._write(outputs)
            except OSError as error:
                if self.options.output == "-":
                    raise
                return self._report(IgniterError(f"cannot write {self.options.output}: {error.strerror}"))
        return status

    def _machines(self) -> list[MachineModel]:
        """Returns the machines for passes; empty if the command line names none, and passes keep their defaults."""
        if self.options.target is None and not self.options.machine:
            return []
        from igniter.targets import described_machines

        return described_machines(self.options.target, self.options.machine)

    def _passes(self, machines: Sequence[MachineModel]) -> tuple[ModulePass, ...]:
        if not machines:
            return parse_passes(self.options.pipeline)
        from igniter.analysis.machine import pass_figures

        return parse_passes(self.options.pipeline, pass_figures(machines))

    def _check(self, outer: Sequence[ModulePass], machines: Sequence[MachineModel]) -> None:
        """Raises `IgniterError` for an option without effect."""
        passes = list(passes_within(IgniterContext(machine=machines[0] if machines else None), outer))
        check_watching(self.options.watch, passes)
        if self.options.print_debuginfo and self.options.emit not in ("mlir", "generic"):
            raise IgniterError("--print-debuginfo is for IR: it needs --emit=mlir or generic")
        if self.options.debug_info and self.options.emit != "llvm":
            raise IgniterError("--debug-info is for the text of --emit=llvm: give both, or neither")
        if self.options.llvm is not None and self.options.emit != "llvm":
            raise IgniterError("--llvm is the version of LLVM that --emit=llvm writes for: give both, or neither")
        if self.options.proofs and "prove" not in self.options.check_each:
            raise IgniterError("--proofs are those of --check-each=prove: give both, or neither")
        if self.options.check_sizes and "values" not in self.options.check_each:
            raise IgniterError("--check-sizes are those of --check-each: give both, or neither")
        if self.options.check_with and (passes or self.options.emit not in OWN):
            from igniter.tools.check_with import TEXTS

            if self.options.emit not in TEXTS:
                forms = " or ".join(f"--emit={t}" for t in TEXTS)
                raise IgniterError(f"--check-with runs a pass of MLIR: after Igniter's passes, give {forms}")
        if self.options.stop_after is not None and not any(map(what_counts, passes)):
            raise IgniterError("--stop-after counts rewrites, and no pass of the pipeline makes any that count")

    # Reading and writing.

    def _read(self) -> tuple[bytes, str, str]:
        path = self.options.input
        frontend = self.options.frontend
        if frontend == "auto":
            frontend = "onnx" if path.endswith((".onnx", ".onnxtxt", ".textproto")) else "mlir"
        if path == "-":
            return self.stdin.read(), "<stdin>", frontend
        if frontend == "onnx":
            # The frontend maps the file; a read here would create a second copy.
            return b"", path, frontend
        with open(path, "rb") as file:
            return file.read(), path, frontend

    def _parse(self, ctx: IgniterContext, data: bytes, name: str, frontend: str, first_line: int = 1) -> ModuleOp:
        if frontend == "mlir":
            return parse_ir(ctx, text_of(data, name), name, first_line, self.options.implicit_module)
        from igniter.frontend import import_model

        return import_model(data if name == "<stdin>" else name)

    def _emit(self, module: ModuleOp) -> str | bytes:
        emit = self.options.emit
        if emit == "none":
            return ""
        if emit == "onnx":
            from igniter.frontend import export_model
            from igniter.transforms.fusion.inline_regions import onnx_level

            return export_model(onnx_level(module)).SerializeToString()
        if emit in ("linalg", "scf"):
            from igniter.backends import mlir

            return mlir.emit(module, emit)
        if emit in ("llvm", "asm"):
            from igniter.targets import backend_for

            name = self.options.target or "native"
            backend = backend_for(name)
            target = backend.target_of(name)
            if emit == "llvm":
                return backend.llvm_text(module, target, self.options.llvm, self.options.debug_info)
            return backend.assembly(backend.emit_module(module, target), target)
        generic = emit == "generic" or self.options.watch.print_generic
        return module_text(module, generic=generic, locations=self.options.print_debuginfo)

    def _write(self, outputs: list[str | bytes]) -> None:
        binary = [o for o in outputs if isinstance(o, bytes)]
        if binary:
            payload = b"".join(binary)
            if self.options.output == "-":
                getattr(self.stdout, "buffer", sys.stdout.buffer).write(payload)
                return
            write_whole(self.options.output, payload)
            return
        text = f"{self.options.output_split_marker}\n".join(str(o) for o in outputs) if any(outputs) else ""
        if self.options.output == "-":
            self.stdout.write(text)
            return
        write_whole(self.options.output, text)

    # One chunk.

    def _run_chunk(
        self,
        data: bytes,
        name: str,
        offset: int,
        frontend: str,
        passes: tuple[ModulePass, ...],
        machines: Sequence[MachineModel],
    ) -> tuple[str | bytes, int]:
        ctx = IgniterContext(
            allow_unregistered=self.options.allow_unregistered, machine=machines[0] if machines else None
        )
        ctx.remarks.enabled = bool(self.options.watch.remarks)
        ctx.rewrites.limit = self.options.stop_after
        ctx.isolation.enabled = self.options.isolate
        ctx.strict = self.options.strict
        ctx.recorder = recorder_for(self.options)
        watching = Watching.of(self.options.watch, self.stdout, self.stderr, again=offset > 0)
        output: str | bytes = ""
        failure: Exception | None = None
        if self._is_foreign(frontend, passes):
            try:
                output = self._check_with(text_of(data, name))
            except Exception as error:  # any failure is reported by _conclude
                failure = error
            return self._conclude(output, failure, data, offset)
        try:
            with watching.times.step("(read)"):
                module = self._parse(ctx, data, name, frontend, offset + 1)
            if self.options.verify_each:
                with watching.times.step(VERIFY):
                    module.verify()
            if self.options.verify_roundtrip:
                with watching.times.step("(verify roundtrip)"):
                    require_roundtrip(ctx, module)
            self._give_sizes(ctx, module)
            self._run_passes(ctx, module, passes, watching)
            with watching.times.step("(write)"):
                output = self._emit(module)
                if self.options.check_with:
                    output = self._check_with(str(output))
            discard(ctx)
        except Exception as error:  # any failure is reported by _conclude
            failure = error
            discard(ctx, error)
        if self.prover is not None:
            self.prover.finish()
        try:
            watching.report(ctx, failed=failure is not None)
        except (IgniterError, OSError) as error:
            failure, output = error, ""
        self._rewrites(ctx, passes)
        return self._conclude(output, failure, data, offset)

    def _is_foreign(self, frontend: str, passes: Sequence[ModulePass]) -> bool:
        """True if the input is a text of MLIR's own dialects, which only --check-with handles."""
        return bool(self.options.check_with) and frontend == "mlir" and not passes and self.options.emit in OWN

    def _check_with(self, text: str) -> str:
        from igniter.tools.check_with import check_with

        written = check_with(text, self.options.check_with, self.options.check_seed, self.stderr)
        return "" if self.options.emit == "none" else written

    def _give_sizes(self, ctx: IgniterContext, module: ModuleOp) -> None:
        if not self.options.sizes:
            return
        from igniter.analysis.typical_sizes import give_module_sizes
        from igniter.toolbox.output import parse_sizes

        ctx.sizes = parse_sizes(self.options.sizes)
        give_module_sizes(module, ctx.sizes)

    def _run_passes(
        self, ctx: IgniterContext, module: ModuleOp, passes: tuple[ModulePass, ...], watching: Watching
    ) -> None:
        observers: list[PassObserver] = [watching.printer] if self.options.watch.prints else []
        checks = self.options.check_each.split(",")
        if "values" in checks:
            from igniter.toolbox.output import parse_shapes
            from igniter.verification.check import ResultChecker

            sizes = {n: s for case in parse_shapes(self.options.check_sizes) or [] for n, s in case.items()}
            observers.append(ResultChecker(ctx, seed=self.options.check_seed, log=self.stderr, sizes=sizes))
        if "prove" in checks:
            observers.append(self._prover())
        if self.options.watch.timing:
            observers.append(watching.times)
        with debug_log(self.options.watch.debug_only, self.stderr):
            run_passes(ctx, module, passes, verify_each=self.options.verify_each, observers=tuple(observers))

    def _prover(self) -> PassObserver:
        from igniter.verification.prove.observer import Prover

        self.prover = Prover(log=self.stderr, output=self.options.proofs)
        return self.prover

    def _conclude(
        self, output: str | bytes, failure: Exception | None, data: bytes, offset: int
    ) -> tuple[str | bytes, int]:
        if self.options.verify_diagnostics and has_expectations(data):
            problems = check_expected(data, failure, offset)
            for problem in problems:
                print(f"igniter-opt: {problem}", file=self.stderr)
            return output, 1 if problems else 0
        if failure is None:
            return output, 0
        if self.options.verify_diagnostics:
            return f"{describe(failure, offset)}\n", 0
        return output, self._report(failure, offset)

    def _report(self, error: Exception, offset: int = 0) -> int:
        if self.options.debug:
            import traceback

            traceback.print_exception(error, file=self.stderr)
        if self.options.error_format == "json":
            found = {"code": code_of(error), "message": describe(error, offset), "reproducer": reproducer_of(error)}
            print(json.dumps({"error": {name: text for name, text in found.items() if text}}), file=self.stderr)
            return status_of(error)
        print(f"igniter-opt: error: {describe(error, offset)}", file=self.stderr)
        if path := reproducer_of(error):
            print(f"igniter-opt: note: {how_to_repeat(path)}", file=self.stderr)
        return status_of(error)

    def _rewrites(self, ctx: IgniterContext, passes: Sequence[ModulePass]) -> None:
        """Reports the effect of --stop-after."""
        limit, made = self.options.stop_after, ctx.rewrites.count
        if limit is None:
            return
        inner = list(passes_within(ctx, passes))
        whole = dict.fromkeys(p.name for p in inner if not what_counts(p) and not hasattr(p, "inner_passes"))
        if whole:
            print(f"igniter-opt: note: --stop-after does not hold for {', '.join(whole)}", file=self.stderr)
        last = f"; the last: {ctx.rewrites.last}" if made else ""
        counted = f"{made} rewrite{'s' if made != 1 else ''}"
        text = counted if made == limit else f"no more than {counted} to make"
        print(f"igniter-opt: note: --stop-after={limit}: {text}{last}", file=self.stderr)


def text_of(data: bytes, name: str) -> str:
    """Returns the text of a file; raises `IgniterError` if it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise IgniterError(
            f"{name} is no text of IR: {error.reason} at byte {error.start} (a model is read by its name, .onnx, or "
            "with --frontend=onnx)"
        ) from error


def split_chunks(data: bytes, marker: str = SEPARATOR) -> list[tuple[bytes, int]]:
    """Returns the parts between lines with `marker`, each with the number of lines before it."""
    chunks: list[tuple[bytes, int]] = []
    lines: list[bytes] = []
    offset = 0
    for number, line in enumerate(data.splitlines(keepends=True)):
        if line.rstrip() == marker.encode():
            chunks.append((b"".join(lines), offset))
            lines, offset = [], number + 1
        else:
            lines.append(line)
    return [*chunks, (b"".join(lines), offset)]


def describe(error: BaseException, offset: int = 0) -> str:
    """Returns an error in one paragraph; the line numbers of a parse error are those of the whole file."""
    if isinstance(error, ParseError):
        error.span = dataclasses.replace(error.span, line_offset=offset)
        return str(error).rstrip()
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error).strip() or type(error).__name__
    if isinstance(error, (IgniterError, ValueError, VerifyException)):
        return text
    return crash_text(error) if isinstance(error, Exception) else f"{type(error).__name__}: {text}"
