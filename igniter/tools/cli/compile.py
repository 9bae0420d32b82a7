"""`igniter compile`: a model to a folder that ONNX Runtime loads, or to any level on the way."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.tools.cli.output import console, parse_shapes, print_json, progress, verification_table

if TYPE_CHECKING:
    from igniter.driver import Compilation


@dataclass(frozen=True)
class CompileRequest:
    """The command line of `igniter compile`."""

    model: str
    output: str
    target: str
    precision: str
    emit: str
    explain: bool
    remarks: bool
    json: bool
    verify: bool
    cache: bool
    strict: bool
    shapes: tuple[str, ...]


def run(request: CompileRequest) -> None:
    """Compile, and say what was done."""
    if request.emit == "library":
        _compile_library(request)
    else:
        _emit_level(request)


def _compile_library(request: CompileRequest) -> None:
    import igniter

    output = request.output or f"{Path(request.model).stem}.igniter"
    with progress("compiling", request.json) as step:
        step("reading")
        module = igniter.load(request.model)
        artifact = module.compile(
            output,
            target=request.target,
            precision=request.precision,
            verify=request.verify,
            cache=request.cache,
            strict=request.strict,
            shapes=parse_shapes(request.shapes),
            progress=step,
        )
    report = artifact.report
    if request.json:
        shown = dict(report)
        if not request.remarks:
            shown.pop("remarks", None)
        print_json({**shown, "output": str(artifact.folder)})
        return
    _print_report(artifact, request)


def _print_report(artifact: Any, request: CompileRequest) -> None:
    out = console()
    report = artifact.report
    programs = f" ({len(report['programs'])} of them programs)" if report["programs"] else ""
    out.print(
        f"{report['nodes_before']} nodes became {report['nodes_after']}: {report['regions']} fused{programs}, "
        f"{report['kernels']} different kernels for {report['target']}"
    )
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report["seconds"].items())
    out.print(f"seconds: {stages}")
    verification = report.get("verification")
    if verification is not None:
        worst = max(verification["max_errors"].values(), default=0.0)
        cases = sum(case["status"] == "passed" for case in verification["cases"])
        errors = ", ".join(f"{name} {error:.1e}" for name, error in verification["max_errors"].items())
        out.print(f"verified against ONNX Runtime at {cases} shapes, largest relative error {worst:.1e} ({errors})")
    if report["left_to_onnxruntime"]:
        out.print(f"[yellow]{len(report['left_to_onnxruntime'])} regions could not be compiled and stay nodes:")
        for entry in report["left_to_onnxruntime"][: None if request.explain else 3]:
            out.print(f"  {entry['region']}: {entry['reason'].splitlines()[0]}", markup=False)
    if request.explain:
        for summary in report["fusion"]:
            out.print(summary["text"], markup=False)
    if request.remarks:
        for remark in report["remarks"]:
            out.print(f"{remark['pass']}: {remark['node']}: {remark['kind']}: {remark['message']}", markup=False)
    out.print(f"[bold]{artifact.folder}")


def _emit_level(request: CompileRequest) -> None:
    import igniter
    from igniter.driver import Compilation, CompileOptions
    from igniter.runtime.cache import default_cache

    with progress("compiling", request.json) as step:
        step("reading")
        module = igniter.load(request.model)
        c = Compilation(
            module.ir,
            CompileOptions(target=request.target, precision=request.precision),
            module.ctx,
            cache=default_cache() if request.cache else None,
            strict=request.strict,
            progress=step,
        )
        text = emit(c, request.emit)
    if request.json:
        payload = text if isinstance(text, str) else f"{len(text)} bytes"
        if request.output:
            _write(text, request.output)
            payload = request.output
        from igniter.api import report

        print_json({**report(c), request.emit: payload})
        return
    if request.explain or request.remarks:
        err = console(stderr=True)
        from igniter.transforms.form_fusion_regions import summaries

        for summary in summaries(c.ctx.remarks) if request.explain else ():
            err.print(str(summary), markup=False)
        for remark in c.ctx.remarks if request.remarks else ():
            err.print(str(remark), markup=False)
    _write(text, request.output)


def emit(c: Compilation, level: str) -> str | bytes:
    """Take the compilation to `level`, one of `igniter.driver.STAGES` before the library, and print it."""
    from igniter import driver
    from igniter.tools.opt_driver import print_module

    driver.make_onnx(c)
    if level == "onnx":
        return print_module(c.module)
    driver.make_fusion(c)
    if level == "fusion":
        return print_module(c.module)
    driver.make_loop(c)
    if level == "loop":
        return print_module(c.module)
    if level == "scheduled":
        return print_module(driver.make_scheduled(c))
    driver.make_llvm(c)
    if level == "llvm":
        return driver.make_module(c)
    if level == "asm":
        return driver.make_assembly(c)
    if level == "obj":
        return driver.make_object(c)
    raise IgniterError(f"there is no level '{level}'; there are {', '.join(driver.STAGES)}")


def _write(text: str | bytes, output: str) -> None:
    if isinstance(text, bytes):
        if not output:
            if sys.stdout.isatty():
                raise IgniterError("an object file does not belong on a terminal: give -o FILE")
            sys.stdout.buffer.write(text)
            return
        write_whole(output, text)
    elif output:
        write_whole(output, text)
    else:
        sys.stdout.write(text)


__all__ = ["CompileRequest", "emit", "run", "verification_table"]
