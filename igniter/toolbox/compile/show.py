"""`igniter compile`: a model to a folder for ONNX Runtime, or to any level on the way."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import (
    console,
    parse_sizes,
    print_json,
    progress,
    subnormal_lines,
    verification_lines,
    verification_table,
)

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.compiler.compilation import Compilation, CompileOptions
    from igniter.toolbox.compile.request import CompileRequest


def run(request: CompileRequest) -> None:
    """Compiles, and prints a summary."""
    if request.sizes and request.emit == "onnx":
        raise IgniterError("--sizes decides about a level behind --emit=onnx: leave one of them out")
    if request.fusion_author and request.emit == "onnx":
        raise IgniterError("--fusion-author decides about a level behind --emit=onnx: leave one of them out")
    if request.db and not request.tuned:
        raise IgniterError("--db names the database of --tuned: give both, or neither")
    if request.tuned and request.emit in ("onnx", "fusion", "loop"):
        raise IgniterError(f"--tuned decides about a level behind --emit={request.emit}: leave one of them out")
    if request.tuned:
        # Reports a missing database before the work.
        _options(request).tuned_digest()
    if request.emit == "library":
        _compile_library(request)
    else:
        _emit_level(request)


def _compile_library(request: CompileRequest) -> None:
    import igniter

    output = request.output or f"{Path(request.model).stem}.igniter"
    with progress("compiling", request.json) as step:
        compile_it = _bound(request).compile if request.bind_dim else partial(igniter.compile, request.model)
        artifact = compile_it(
            output,
            options=_options(request),
            verify=request.verify,
            load=request.load,
            cache=request.cache,
            strict=request.strict,
            **request.given.for_verify(),
            progress=step,
        )
    report = artifact.report
    if request.sizes:
        report = {**report, "fusion": _at_sizes(parse_sizes(request.sizes), report)}
    if request.json:
        shown = dict(report)
        if not request.remarks:
            shown.pop("remarks", None)
        print_json({**shown, "output": str(artifact.folder)})
        return
    _print_report(artifact, report, request)


def _bound(request: CompileRequest) -> Module:
    """Returns the model with the dims of `--bind-dim` made equal to others."""
    import igniter
    from igniter.toolbox.edit.show import pairs

    module = igniter.load(request.model)
    if request.bind_dim:
        module.bind_dims(dict(zip(*pairs("--bind-dim", request.bind_dim), strict=True)))
    return module


def _at_sizes(given: Mapping[str, int], report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the summaries of the report with their bytes at the sizes `given`."""
    from igniter.analysis.fusion.summary import FusionSummary
    from igniter.analysis.typical_sizes import MEMORY

    found = [FusionSummary.from_dict({k: v for k, v in s.items() if k != "text"}) for s in report["fusion"]]
    full = {**dict.fromkeys({name for s in found for name in s.symbols}, MEMORY), **given}
    return [{**s.to_dict(), "text": str(s)} for s in (s.at(full) for s in found)]


def _print_report(artifact: Any, report: Mapping[str, Any], request: CompileRequest) -> None:
    out = console()
    programs = f" ({len(report['programs'])} of them programs)" if report["programs"] else ""
    out.print(
        f"{report['nodes_before']} nodes became {report['nodes_after']}: {report['regions']} fused{programs}, "
        f"{report['kernels']} different kernels for {report['target']}"
    )
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report["seconds"].items())
    out.print(f"seconds: {stages}")
    for remark in report["remarks"]:
        if remark["pass"] in ("lower-precision", "winograd") and "count" in remark["details"]:
            if not remark["details"]["count"] and request.winograd == "auto" and remark["pass"] == "winograd":
                continue
            colour = "" if remark["details"]["count"] else "[yellow]"
            out.print(f"{colour}{remark['message']}")
    for line in subnormal_lines(report):
        out.print(line)
    for line in verification_lines(report["verification"]) if "verification" in report else ():
        out.print(line)
    if "verification" not in report and not report.get("loads", {}).get("tried", True):
        out.print(f"[yellow]not loaded:[/] {report['loads']['reason']}")
    _print_left(out, report["left_to_onnxruntime"], request.explain)
    if request.explain:
        from igniter.analysis.typical_sizes import MEMORY

        given = f"{request.sizes}, and every other" if request.sizes else "every"
        out.print(f"the byte figures take {given} symbolic dim to be {MEMORY}", markup=False)
        for summary in report["fusion"]:
            out.print(summary["text"], markup=False)
        for line in _expected(report):
            out.print(line, markup=False)
    if request.remarks:
        for remark in report["remarks"]:
            out.print(f"{remark['pass']}: {remark['node']}: {remark['kind']}: {remark['message']}", markup=False)
    out.print(f"[bold]{artifact.folder}")


LONGEST = 10
"""The number of launches in the list of expected durations."""


def _expected(report: Mapping[str, Any]) -> list[str]:
    """Returns lines with the expected durations of launches in a run, the longest total first."""
    from igniter.compiler.driver import EXPECTED

    calls = Counter(step["kernel"] for program in report["programs"] for step in program["steps"])
    found = [(r["details"], max(1, calls[r["node"]])) for r in report["remarks"] if r["pass"] == EXPECTED]
    if not found:
        return []
    total = sum(each["microseconds"] * count for each, count in found)
    launches = sum(count for _, count in found)
    lines = [f"expected on {found[0][0]['device']}, by its data sheet: {total / 1e3:.3f} ms in {launches} launches"]
    for each, count in sorted(found, key=lambda e: -e[0]["microseconds"] * e[1])[:LONGEST]:
        lines.append(
            f"  {count} x {each['microseconds']:.1f} us {each['launch']} by {each['limit']}: "
            f"{each['megabytes']:.2f} MB, {each['gigaops']:.2f} Gop" + (f" ({each['sizes']})" if each["sizes"] else "")
        )
    return lines


def _print_left(out: Any, left: list[dict[str, Any]], explain: bool) -> None:
    """Prints the counts of left nodes by reason; failed kernels one by one, and with `explain` all."""
    failed = [entry for entry in left if entry["kind"] == "failed"]
    if failed:
        out.print(f"[yellow]{len(failed)} nodes had kernels that could not be compiled, and stay:")
        for entry in failed[: None if explain else 3]:
            out.print(f"  {entry['node']} ({entry['op']}): {entry['reason'].splitlines()[0]}", markup=False)
    refused = [entry for entry in left if not entry["choice"] and entry["kind"] != "failed"]
    if refused:
        ops = ", ".join(op if n == 1 else f"{n} {op}" for op, n in Counter(e["op"] for e in refused).most_common(6))
        out.print(f"{len(refused)} nodes without a kernel stay with ONNX Runtime ({ops}); --explain says why")
    for entry in refused if explain else ():
        out.print(f"  {entry['node']} ({entry['op']}): {entry['reason'].splitlines()[0]}", markup=False)


def _emit_level(request: CompileRequest) -> None:
    from igniter.api import blaming
    from igniter.compiler.compilation import Compilation
    from igniter.runtime.cache import default_cache
    from igniter.runtime.session import silence

    with progress("compiling", request.json) as step:
        silence()
        step("reading")
        module = _bound(request)
        c = Compilation(
            module.ir,
            _options(request),
            module.ctx,
            cache=default_cache() if request.cache else None,
            strict=request.strict,
            progress=step,
        )
        with blaming(module.source):
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
        from igniter.transforms.fusion.form_fusion_regions import summaries

        for summary in summaries(c.ctx.remarks) if request.explain else ():
            err.print(str(summary), markup=False)
        for remark in c.ctx.remarks if request.remarks else ():
            err.print(str(remark), markup=False)
    _write(text, request.output)


def emit(c: Compilation, level: str) -> str | bytes:
    """Takes the compilation to `level`, one of `igniter.compiler.driver.STAGES` before the library, and prints it."""
    from igniter.api import is_fused
    from igniter.compiler import driver
    from igniter.toolbox.ir_text import module_text
    from igniter.transforms.fusion.inline_regions import onnx_level

    fused = is_fused(c.module)
    if not fused:
        driver.make_onnx(c)
    if level == "onnx":
        return module_text(onnx_level(c.module) if fused else c.module)
    if fused:
        driver.require_no_author(c)
    else:
        driver.make_fusion(c)
    if level == "fusion":
        return module_text(c.module)
    driver.make_loop(c)
    if level == "loop":
        return module_text(c.module)
    if level == "scheduled":
        return module_text(driver.make_scheduled(c))
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


def _options(request: CompileRequest) -> CompileOptions:
    """Returns the compile options."""
    from igniter.compiler.compilation import CompileOptions
    from igniter.toolbox.tune.store import database_path

    machine = ()
    if request.machine:
        from igniter.targets import read_machine

        machine = read_machine(request.machine)
    options = CompileOptions(
        target=request.target,
        machine=machine,
        sizes=tuple(parse_sizes(request.sizes).items()),
        precision=request.precision,
        winograd=int(request.winograd) if request.winograd.isdigit() else request.winograd,
        subnormals=request.subnormals,
        fusion_author=request.fusion_author,
        profile=request.profile,
        tuned=str(database_path(request.db)) if request.tuned else "",
        provider=request.provider,
    )
    return replace(options, sanitize=True) if request.sanitize else options
