"""`igniter compile`: a model to a folder for ONNX Runtime, or to any level on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.errors import IgniterError
from igniter.observation.times import PassTimes
from igniter.registry import load
from igniter.targets import read_machine
from igniter.toolbox.output import (
    console,
    parse_sizes,
    print_json,
    progress,
    subnormal_lines,
    verification_lines,
)
from igniter.toolbox.tune.store import database_path

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact
    from igniter.toolbox.compile.request import CompileRequest

GENAI = "igniter.toolbox.generate.genai_config"
"""The module for --genai, which a result from the cache does not wait for."""


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
    if request.debug_info and request.emit in ("onnx", "fusion", "loop", "scheduled"):
        raise IgniterError(f"--debug-info is for code, and --emit={request.emit} writes none: leave one of them out")
    if request.pass_timing and request.emit != "library":
        raise IgniterError("--pass-timing times a compile to a library: leave --emit out, or use igniter-opt --timing")
    for note in _options(request).edit_notes():
        console(stderr=True).print(f"igniter: note: --passes: {note}", markup=False)
    measures = request.measure or request.measure_again
    if measures and request.emit != "library":
        raise IgniterError(f"--measure times a library, and --emit={request.emit} makes none: leave one of them out")
    if (request.max_memory or request.max_seconds) and request.emit != "library":
        raise IgniterError(
            f"--max-memory and --max-seconds bound a compile to a library, not --emit={request.emit}: leave them out"
        )
    if request.threads != 1 and not measures:
        raise IgniterError("--threads is for --measure: give both, or neither")
    if request.genai and request.emit != "library":
        raise IgniterError(f"--genai completes a folder, and --emit={request.emit} makes none: leave one of them out")
    if request.genai_set and not request.genai:
        raise IgniterError("--genai-set is for --genai: give both, or neither")
    if request.genai_set:
        # Reports a wrong one before the work.
        load(f"{GENAI}:parse_settings")(request.genai_set)
    if request.tuned:
        # Reports a missing database before the work.
        _options(request).tuned_digest()
    if request.emit == "library":
        _compile_library(request)
    else:
        from igniter.toolbox.compile.levels import print_level

        print_level(request, _options(request))


def _compile_library(request: CompileRequest) -> None:
    output = request.output or f"{Path(request.model).stem}.igniter"
    times = PassTimes() if request.pass_timing else None
    with progress("compiling", request.json, lines=True) as step:
        artifact = _compiler(request)(
            output,
            options=_options(request),
            verify=request.verify,
            load=request.load,
            cache=request.cache,
            strict=request.strict,
            **request.given.for_verify(),
            progress=step,
            measure="again" if request.measure_again else request.measure,
            threads=request.threads,
            max_memory=request.max_memory or None,
            max_seconds=request.max_seconds or None,
            **({} if times is None else {"observers": (times,)}),
        )
    if request.genai:
        settings = load(f"{GENAI}:parse_settings")(request.genai_set)
        load(f"{GENAI}:write_genai")(artifact, Path(request.model), settings)
    report = artifact.report
    if times is not None:
        report = {**report, "passes": times.to_dict()}
    if request.sizes:
        report = {**report, "fusion": _at_sizes(parse_sizes(request.sizes), report)}
    if request.json:
        shown = dict(report)
        if not request.remarks:
            shown.pop("remarks", None)
        print_json({**shown, "output": str(artifact.folder)})
        return
    _print_report(artifact, report, request)
    if artifact.renewed is not None and not request.genai:
        console().print(artifact.renewed, markup=False)
    if times is not None:
        print_times(times, report)


def _compiler(request: CompileRequest) -> Callable[..., Artifact]:
    """Returns the call that compiles the model, with its bound dims."""
    if not request.bind_dim:
        return partial(igniter.compile, request.model)
    from igniter.toolbox.compile.levels import bound

    return bound(request).compile


def _at_sizes(given: Mapping[str, int], report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the summaries of the report with their bytes at the sizes `given`."""
    from igniter.analysis.fusion.summary import FusionSummary
    from igniter.analysis.typical_sizes import MEMORY

    found = [FusionSummary.from_dict({k: v for k, v in s.items() if k != "text"}) for s in report["fusion"]]
    full = {**dict.fromkeys({name for s in found for name in s.symbols}, MEMORY), **given}
    shown = [replace(s.at(full), assumed=tuple(sorted(s.symbols - given.keys()))) for s in found]
    return [{**s.to_dict(), "text": str(s)} for s in shown]


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
    if report.get("tile_weights"):
        out.print(report["tile_weights"]["text"])
    if report.get("f32_products"):
        out.print(report["f32_products"]["text"], markup=False)
    for line in subnormal_lines(report):
        out.print(line)
    for line in verification_lines(report["verification"]) if "verification" in report else ():
        out.print(line)
    if "verification" not in report and not report.get("loads", {}).get("tried", True):
        out.print(f"[yellow]not loaded:[/] {report['loads']['reason']}")
    measured = report.get("measured", {"text": (), "explanation": ()})
    for line in measured["text"]:
        out.print(line, style="bold red" if line.startswith("WRONG") else "", markup=False)
    for line in measured["explanation"] if request.explain else ():
        out.print(line, markup=False)
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


def print_times(times: PassTimes, report: Mapping[str, Any]) -> None:
    """Prints the times of passes, and the number of kernels whose passes did not run."""
    out = console()
    out.print(times.table(), markup=False, highlight=False, end="")
    if report["cached_kernels"]:
        out.print(
            f"{report['cached_kernels']} kernels are from the cache, and their passes did not run; --no-cache runs them"
        )


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
    faster = [entry for entry in left if entry["kind"] == "measured"]
    if faster:
        ops = ", ".join(f"{n} {op}" for op, n in Counter(e["op"] for e in faster).most_common(6))
        out.print(f"{len(faster)} nodes were measured faster in ONNX Runtime, and stay ({ops}); --explain says why")
    for entry in faster if explain else ():
        out.print(f"  {entry['node']} ({entry['op']}): {entry['reason']}", markup=False)
    refused = [entry for entry in left if not entry["choice"] and entry["kind"] != "failed"]
    if refused:
        ops = ", ".join(op if n == 1 else f"{n} {op}" for op, n in Counter(e["op"] for e in refused).most_common(6))
        out.print(f"{len(refused)} nodes without a kernel stay with ONNX Runtime ({ops}); --explain says why")
    for entry in refused if explain else ():
        out.print(f"  {entry['node']} ({entry['op']}): {entry['reason'].splitlines()[0]}", markup=False)


def _options(request: CompileRequest) -> CompileOptions:
    """Returns the compile options."""
    machine = ()
    if request.machine:
        machine = read_machine(request.machine)
    options = CompileOptions(
        target=request.target,
        machine=machine,
        sizes=tuple(parse_sizes(request.sizes).items()),
        precision=request.precision,
        winograd=int(request.winograd) if request.winograd.isdigit() else request.winograd,
        subnormals=request.subnormals,
        tile_weights=request.tile_weights,
        fusion_author=request.fusion_author,
        profile=request.profile,
        tuned=str(database_path(request.db)) if request.tuned else "",
        provider=request.provider,
        passes=request.passes,
        debug_info=request.debug_info,
    )
    return replace(options, sanitize=True) if request.sanitize else options
